/*
 * Names with anything in them, through everything that the library writes: messages keep them, JSON stays JSON, a graph stays one that Graphviz
 * can read, and nothing is taken for a format. Names that a terminal would obey, or that would push the words out of a message, are refused.
 */
#include <ctype.h>
#include <unistd.h>

#include "support.h"

static const char *const hostile[] = {
    "plain",
    "%s%s%n%d %1000000d",
    "quote\" backslash\\ slash/ percent%",
    "}],{\"a\":[\"",
    "\"];node[label=\"x\"];//",
    "<b>&amp;</b><!--",
    "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x92\xa5",
    "broken \xc3 \xe2\x82 \xff\xfe \xf0\x9f",
    "\xed\xa0\x80 \xf8\x88\x80\x80\x80 \xc0\xaf",
    "../../etc/passwd",
    "",
    NULL, /* As long as a name may be. */
};
enum { HOSTILE = sizeof hostile / sizeof *hostile };

/* What no name may hold. */
static const char *const refused[] = {"line\nbreak", "\r", "tab\t", "\x1b[31mred", "bell\a", "\x7f", "\x01", NULL /* One byte too long. */};
enum { REFUSED = sizeof refused / sizeof *refused };

static char name[STEPGRAPH_NAME_MOST + 2];

/* A name of each kind, with a tail so that no two pins have the same. */
static const char *hostile_name(int i, const char *tail)
{
    if (hostile[i] == NULL) {
        memset(name, 'x', STEPGRAPH_NAME_MOST);
        strcpy(name + STEPGRAPH_NAME_MOST - strlen(tail), tail);
    } else {
        snprintf(name, sizeof name, "%s%s", hostile[i], tail);
    }
    return name;
}

/* ---- is it JSON, is it a graph ----------------------------------------------------------------------------------------- */

/* One UTF-8 sequence: its bytes, 0 if it is none. */
static size_t utf8(const unsigned char *s)
{
    if (s[0] < 0x80)
        return 1;
    if (s[0] >= 0xc2 && s[0] < 0xe0)
        return (s[1] & 0xc0) == 0x80 ? 2 : 0;
    if (s[0] >= 0xe0 && s[0] < 0xf0)
        return (s[1] & 0xc0) == 0x80 && (s[2] & 0xc0) == 0x80 && !(s[0] == 0xe0 && s[1] < 0xa0) && !(s[0] == 0xed && s[1] >= 0xa0) ? 3 : 0;
    if (s[0] >= 0xf0 && s[0] < 0xf5)
        return (s[1] & 0xc0) == 0x80 && (s[2] & 0xc0) == 0x80 && (s[3] & 0xc0) == 0x80 && !(s[0] == 0xf0 && s[1] < 0x90) &&
                       !(s[0] == 0xf4 && s[1] >= 0x90)
                   ? 4
                   : 0;
    return 0;
}

static const char *space(const char *s)
{
    return s + strspn(s, " \t\r\n");
}

/* Behind one value as RFC 8259 has it; NULL if it is none. */
static const char *json_value(const char *s);

static const char *json_string(const char *s)
{
    if (*s++ != '"')
        return NULL;
    while (*s != '"') {
        size_t bytes = utf8((const unsigned char *)s);
        if (bytes == 0 || (unsigned char)*s < 0x20)
            return NULL;
        if (*s != '\\') {
            s += bytes;
        } else if (s[1] == 'u') {
            for (int i = 2; i < 6; i++)
                if (!isxdigit((unsigned char)s[i]))
                    return NULL;
            s += 6;
        } else {
            if (s[1] == '\0' || strchr("\"\\/bfnrt", s[1]) == NULL)
                return NULL;
            s += 2;
        }
    }
    return s + 1;
}

static const char *json_members(const char *s, char close, int named)
{
    s = space(s);
    if (*s == close)
        return s + 1;
    for (;;) {
        if (named) {
            s = json_string(space(s));
            if (s == NULL || *(s = space(s)) != ':')
                return NULL;
            s++;
        }
        s = json_value(s);
        if (s == NULL)
            return NULL;
        s = space(s);
        if (*s == close)
            return s + 1;
        if (*s++ != ',')
            return NULL;
    }
}

static const char *json_value(const char *s)
{
    char *behind;

    s = space(s);
    if (*s == '{')
        return json_members(s + 1, '}', 1);
    if (*s == '[')
        return json_members(s + 1, ']', 0);
    if (*s == '"')
        return json_string(s);
    for (int i = 0; i < 3; i++) {
        static const char *const words[] = {"true", "false", "null"};
        if (strncmp(s, words[i], strlen(words[i])) == 0)
            return s + strlen(words[i]);
    }
    if (*s != '-' && !isdigit((unsigned char)*s))
        return NULL;
    (void)strtod(s, &behind);
    return behind > s ? behind : NULL;
}

static void is_json(const char *what, const char *text)
{
    const char *behind = json_value(text);

    ck_assert_msg(behind != NULL && *space(behind) == '\0', "%s is no JSON: %s", what, text);
}

/* Every string is closed, and outside of strings there is nothing but what we write. */
static void is_graph(const char *text)
{
    int within = 0;

    ck_assert_msg(strncmp(text, "digraph", 7) == 0, "%s", text);
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (within && c == '\\' && text[1] != '\0')
            text++;
        else if (c == '"')
            within = !within;
        else
            ck_assert_msg(within ? c >= 0x20 && c != 0x7f : c == '\n' || (c >= 0x20 && c < 0x7f), "a byte %02x %s a string: %s", c,
                          within ? "in" : "outside of", text);
    }
    ck_assert_msg(!within, "a string is not closed");
}

/* Plain text has lines and no other control characters: a terminal obeys some of them. */
static void is_text(const char *what, const char *text)
{
    ck_assert_msg(text != NULL && *text != '\0', "%s is empty", what);
    for (; *text != '\0'; text++)
        ck_assert_msg(*text == '\n' || ((unsigned char)*text >= 0x20 && *text != 0x7f), "%s has a byte %02x: %s", what, (unsigned char)*text, text);
}

static const char *file_text(const char *path)
{
    static char text[1 << 20];
    FILE *f = fopen(path, "rb");
    size_t n;

    ck_assert_ptr_nonnull(f);
    n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = '\0';
    return text;
}

/* ---- a step of hostile names --------------------------------------------------------------------------------------------- */

static stepgraph_pin *state, *input, *output;
static stepgraph_step *step;
static CUdeviceptr loose;

static stepgraph_status enqueue(void *user, stepgraph_step *of, uint64_t k)
{
    (void)user;
    (void)of;
    (void)k;
    axpb(stream, stepgraph_pin_address(output), stepgraph_pin_address(state), 1);
    inc(stream, stepgraph_pin_address(state), 1);
    return STEPGRAPH_OK;
}

static void make_step(int i)
{
    stepgraph_step_config config = STEPGRAPH_STEP_CONFIG_INIT;

    state = pin_make(session, STEPGRAPH_ROLE_STATE, 4, hostile_name(i, "state"));
    input = pin_make(session, STEPGRAPH_ROLE_CELL, 4, hostile_name(i, "input"));
    output = pin_make(session, STEPGRAPH_ROLE_OUTPUT, 4, hostile_name(i, "output"));
    loose = device_make(64);
    config.name = hostile_name(i, "");
    config.flags = STEPGRAPH_STEP_ALLOW_UNREGISTERED;
    OK(stepgraph_step_begin(session, &config, &step));
    keep_step(step);
    OK(stepgraph_step_prepare(step));
    OK(stepgraph_step_capture(step));
    OK(stepgraph_step_mark(step, hostile_name(i, "forward")));
    setv(stream, loose, 1);
    (void)enqueue(NULL, NULL, 0);
    copyf(stream, stepgraph_pin_address(output), stepgraph_pin_address(input));
    OK(stepgraph_step_end(step));
}

START_TEST(audit_and_drawing_stay_readable)
{
    static const char *const words[] = {"JSON of the graph", "graph"};
    stepgraph_audit *audit = NULL;
    char path[] = "/tmp/hostileXXXXXX";
    int fd = mkstemp(path);

    ck_assert_int_ge(fd, 0);
    close(fd);
    make_step(_i);
    OK(stepgraph_audit_step(step, &audit));
    is_json("the audit", stepgraph_audit_json(audit));
    is_text("the audit's text", stepgraph_audit_text(audit));
    stepgraph_audit_destroy(audit);

    OK(stepgraph_step_draw(step, STEPGRAPH_DRAW_JSON, path));
    is_json(words[0], file_text(path));
    OK(stepgraph_step_draw(step, STEPGRAPH_DRAW_DOT, path));
    is_graph(file_text(path));
    unlink(path);
}
END_TEST

START_TEST(check_stays_readable)
{
    stepgraph_check_config config = STEPGRAPH_CHECK_CONFIG_INIT;
    stepgraph_check *check = NULL;

    make_step(_i);
    config.enqueue = enqueue; /* Not what was recorded: it diverges, and the report has much to say. */
    OK(stepgraph_check_run(step, &config, &check));
    is_json("the check", stepgraph_check_json(check));
    is_text("the check's text", stepgraph_check_text(check));
    stepgraph_check_destroy(check);
}
END_TEST

START_TEST(loop_reports_stay_readable)
{
    stepgraph_loop_config config = STEPGRAPH_LOOP_CONFIG_INIT;
    stepgraph_loop *loop = NULL;
    const char *text;

    make_step(_i);
    drop_step(step);
    config.name = hostile_name(_i, "");
    config.flags = STEPGRAPH_LOOP_TRACE;
    config.step_flags = STEPGRAPH_STEP_ALLOW_UNREGISTERED;
    OK(stepgraph_loop_create(session, &config, &loop));
    for (uint64_t k = 0; k < 12; k++) {
        stepgraph_turn turn = STEPGRAPH_TURN_INIT;
        do {
            OK(stepgraph_loop_begin(loop, k, &turn));
            if (turn.feed)
                OK(stepgraph_pin_feed_f32(input, (float)k));
            if (turn.run)
                OK(enqueue(NULL, NULL, k));
            OK(stepgraph_loop_end(loop, &turn));
        } while (turn.again);
    }
    OK(stepgraph_loop_report(loop, STEPGRAPH_REPORT_TEXT, &text));
    is_text("the loop's text", text);
    OK(stepgraph_loop_report(loop, STEPGRAPH_REPORT_JSON, &text));
    is_json("the loop's report", text);
    OK(stepgraph_loop_report(loop, STEPGRAPH_REPORT_TRACE, &text));
    is_json("the loop's trace", text);
    stepgraph_loop_destroy(loop);
}
END_TEST

#define REFUSES(call, what)                                                                                                      \
    do {                                                                                                                         \
        FAILS(STEPGRAPH_ERR_ARGUMENT, call, what "'s name", refused[_i] != NULL ? "control character" : "longer");              \
        is_text("the message", last_words());                                                                                    \
    } while (0)

START_TEST(names_that_cannot_be_shown_are_refused)
{
    stepgraph_pin_config pin = STEPGRAPH_PIN_CONFIG_INIT;
    stepgraph_step_config begun = STEPGRAPH_STEP_CONFIG_INIT;
    stepgraph_loop_config looped = STEPGRAPH_LOOP_CONFIG_INIT;
    stepgraph_arena_config allotted = STEPGRAPH_ARENA_CONFIG_INIT;
    stepgraph_pin *no_pin = NULL;
    stepgraph_step *no_step = NULL;
    stepgraph_loop *no_loop = NULL;
    stepgraph_arena *no_arena = NULL, *arena = NULL;
    uint64_t address;

    memset(name, 'x', STEPGRAPH_NAME_MOST + 1);
    name[STEPGRAPH_NAME_MOST + 1] = '\0';
    if (refused[_i] != NULL)
        snprintf(name, sizeof name, "%s", refused[_i]);
    pin.role = STEPGRAPH_ROLE_STATE;
    pin.bytes = 4;
    allotted.bytes = 4096;
    OK(stepgraph_arena_create(session, &allotted, &arena));
    pin.name = begun.name = looped.name = allotted.name = name;
    REFUSES(stepgraph_pin_create(session, &pin, &no_pin), "pin");
    REFUSES(stepgraph_step_begin(session, &begun, &no_step), "step");
    REFUSES(stepgraph_loop_create(session, &looped, &no_loop), "loop");
    REFUSES(stepgraph_arena_create(session, &allotted, &no_arena), "arena");
    REFUSES(stepgraph_arena_alloc(arena, 64, name, &address), "block");
    REFUSES(stepgraph_arena_note_alloc(session, 4096, 64, name), "block");
    OK(stepgraph_arena_destroy(arena));

    step = step_make(session, "step", 0);
    state = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "state");
    OK(stepgraph_step_prepare(step));
    OK(stepgraph_step_capture(step));
    REFUSES(stepgraph_step_mark(step, name), "stage");
    REFUSES(stepgraph_step_fork(step, stream_make(CU_STREAM_NON_BLOCKING), name), "side stream");
    inc(stream, stepgraph_pin_address(state), 1);
    OK(stepgraph_step_end(step)); /* The recording is none the worse for it. */
    ck_assert_uint_eq(pin_stats(session).pins, 1);
}
END_TEST

START_TEST(messages_stay_readable)
{
    stepgraph_pin_config config = STEPGRAPH_PIN_CONFIG_INIT;
    stepgraph_pin *none = NULL;

    make_step(_i);
    config.role = STEPGRAPH_ROLE_STATE;
    config.bytes = 4;
    config.name = hostile_name(_i, "state");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_pin_create(session, &config, &none), "taken");
    is_text("the message", last_words());
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_pin_destroy(state), "live graph");
    is_text("the message", last_words());
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_step_capture(step), "live");
    is_text("the message", last_words());
    ck_assert_str_eq(stepgraph_pin_name(state), hostile_name(_i, "state")); /* The name itself is kept as it was given. */
    ck_assert_ptr_eq(stepgraph_session_pin(session, hostile_name(_i, "state")), state);
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("hostile words");
    TCase *all = unit_case(suite, "all");

    tcase_add_loop_test(all, audit_and_drawing_stay_readable, 0, HOSTILE);
    tcase_add_loop_test(all, check_stays_readable, 0, HOSTILE);
    tcase_add_loop_test(all, loop_reports_stay_readable, 0, HOSTILE);
    tcase_add_loop_test(all, messages_stay_readable, 0, HOSTILE);
    tcase_add_loop_test(all, names_that_cannot_be_shown_are_refused, 0, REFUSED);
    return suite;
}

int main(void)
{
    return unit_main(make);
}
