/* Walking a report from code, its limits, its text and its JSON; reports that outlive what they are about. */
#include "findings.h"

static CUdeviceptr pin_of(stepgraph_role role, uint64_t bytes, const char *name)
{
    return stepgraph_pin_address(pin_make(session, role, bytes, name));
}

static stepgraph_finding finding_at(const stepgraph_audit *report, uint32_t i)
{
    stepgraph_finding f = STEPGRAPH_FINDING_INIT;

    OK(stepgraph_audit_get(report, i, &f));
    return f;
}

static char pageable[64];

/* Two faults behind two that are allowed. */
static stepgraph_audit *mixed(void)
{
    CUdeviceptr a = device_make(4), b = device_make(4), pin = pin_of(STEPGRAPH_ROLE_STATE, 4, "w");
    stepgraph_step *step = recording("train", STEPGRAPH_STEP_ALLOW_UNREGISTERED);

    inc(stream, a, 1);
    axpb(stream, pin, b, 1);
    CU(MemcpyHtoDAsync(pin, pageable, 4, stream));
    OK(stepgraph_step_mark(step, "\"late\" \\ "));
    CU(MemcpyHtoDAsync(pin, pageable + 8, 4, stream));
    return refused(step);
}

/* ---- walking ----------------------------------------------------------------------------------------------------------- */

START_TEST(faults_come_first_and_then_the_order_of_nodes)
{
    stepgraph_audit *report = mixed();

    HOLDS(report, 2, 4);
    ck_assert_uint_eq(summary_of(report).kept, 4);
    ck_assert_uint_eq(finding_at(report, 0).fault, 1);
    ck_assert_uint_eq(finding_at(report, 0).node, 2);
    ck_assert_uint_eq(finding_at(report, 1).fault, 1);
    ck_assert_uint_eq(finding_at(report, 1).node, 3);
    ck_assert_uint_eq(finding_at(report, 2).fault, 0);
    ck_assert_uint_eq(finding_at(report, 2).node, 0);
    ck_assert_uint_eq(finding_at(report, 3).fault, 0);
    ck_assert_uint_eq(finding_at(report, 3).node, 1);
}
END_TEST

START_TEST(index_past_the_end_stops_the_walk)
{
    stepgraph_audit *report = mixed();
    stepgraph_finding f = STEPGRAPH_FINDING_INIT;
    uint32_t n = 0;

    while (stepgraph_audit_get(report, n, &f) == STEPGRAPH_OK)
        n++;
    ck_assert_uint_eq(n, 4);
    f = (stepgraph_finding)STEPGRAPH_FINDING_INIT;
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_audit_get(report, 4, &f), "no finding 4");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_audit_get(report, UINT32_MAX, &f), "no finding");
    ck_assert_uint_eq(f.kind, 0);
}
END_TEST

START_TEST(structs_are_filled_up_to_their_size)
{
    stepgraph_audit *report = mixed();
    LONGER(stepgraph_finding, 16) longer;
    LONGER(stepgraph_audit_summary, 16) more_summary;
    stepgraph_finding f;
    stepgraph_audit_summary s;

    memset(&f, 0x77, sizeof f);
    f.size = offsetof(stepgraph_finding, before);
    OK(stepgraph_audit_get(report, 0, &f));
    ck_assert_uint_eq(f.kind, STEPGRAPH_FINDING_PAGEABLE);
    ck_assert_uint_eq(f.size, offsetof(stepgraph_finding, before));
    ck_assert_uint_eq(f.before, 0x7777777777777777ull);

    memset(&longer, 0x77, sizeof longer);
    longer.known.size = sizeof longer;
    OK(stepgraph_audit_get(report, 0, &longer.known));
    ck_assert_uint_eq(longer.known.before, (uintptr_t)pageable);

    memset(&s, 0x77, sizeof s);
    s.size = offsetof(stepgraph_audit_summary, kernels);
    OK(stepgraph_audit_get_summary(report, &s));
    ck_assert_uint_eq(s.nodes, 4);
    ck_assert_uint_eq(s.kernels, 0x7777777777777777ull);

    memset(&more_summary, 0x77, sizeof more_summary);
    more_summary.known.size = sizeof more_summary;
    OK(stepgraph_audit_get_summary(report, &more_summary.known));
    ck_assert_uint_eq(more_summary.known.kernels, 2);

    f.size = s.size = 8;
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_audit_get(report, 0, &f), "size");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_audit_get_summary(report, &s), "size");
}
END_TEST

START_TEST(nothing_is_refused_or_does_nothing)
{
    stepgraph_finding f = STEPGRAPH_FINDING_INIT;
    stepgraph_audit_summary s = STEPGRAPH_AUDIT_SUMMARY_INIT;
    stepgraph_audit *report = NULL, *untouched = NULL;
    stepgraph_step *step = step_make(session, "idle", 0);

    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_audit_get(NULL, 0, &f), "NULL");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_audit_get_summary(NULL, &s), "NULL");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_audit_step(NULL, &report), "NULL");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_audit_step(step, NULL), "NULL");
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_audit_step(step, &untouched), "idle", "record");
    ck_assert_ptr_null(untouched);
    report = mixed();
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_audit_get(report, 0, NULL), "");
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_audit_get_summary(report, NULL), "");
    ck_assert_str_eq(stepgraph_audit_text(NULL), "");
    ck_assert_str_eq(stepgraph_audit_json(NULL), "{}");
    stepgraph_audit_destroy(NULL);
}
END_TEST

START_TEST(report_follows_the_recording)
{
    CUdeviceptr pin = pin_of(STEPGRAPH_ROLE_STATE, 4, "w"), buffer = device_make(4);
    stepgraph_step *step = recording("train", 0);
    stepgraph_audit *first, *report = NULL;

    inc(stream, buffer, 1);
    first = refused(step);
    OK(stepgraph_step_reset(step));
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_audit_step(step, &report), "train", "no recording");
    begin_recording(step);
    inc(stream, pin, 1);
    CLEAN(ready(step));
    HOLDS(first, 1, 1);
}
END_TEST

/* A recording that broke was not looked at. */
START_TEST(broken_recording_has_no_report)
{
    stepgraph_step *step = recording("train", 0);
    stepgraph_audit *report = NULL;

    launch(stream, kernels.nop, 1, NULL);
    ck_assert_int_ne(cu.StreamSynchronize(stream), CUDA_SUCCESS);
    FAILS(STEPGRAPH_ERR_CAPTURE, stepgraph_step_end(step), "train");
    FAILS(STEPGRAPH_ERR_STATE, stepgraph_audit_step(step, &report), "train", "no recording");
}
END_TEST

START_TEST(reports_outlive_what_they_are_about)
{
    CUdeviceptr pin = pin_of(STEPGRAPH_ROLE_STATE, 4, "layer0.weight"), buffer = device_make(4096);
    stepgraph_step *steps[2];
    stepgraph_audit *made, *difference;

    for (int i = 0; i < 2; i++) {
        steps[i] = recording("train", STEPGRAPH_STEP_ALLOW_UNREGISTERED);
        OK(stepgraph_step_mark(steps[i], "optimizer"));
        axpb(stream, pin, i ? buffer : pin, 1);
        made = ready(steps[i]);
    }
    difference = compared(steps[0], steps[1], NULL);
    for (int i = 0; i < 2; i++)
        drop_step(steps[i]);
    drop_pin(stepgraph_session_pin(session, "layer0.weight"));
    device_drop(buffer);
    drop_session(session);
    session = NULL;
    ck_assert_str_eq(NOTED(made, UNREGISTERED, 0, "axpb", 1, 0, "pin it", "4096 bytes").stage, "optimizer");
    ck_assert_str_eq(FOUND(difference, MOVED_POINTER, 0, "axpb", 1, 0, "pin it", "state 'layer0.weight'", "4096 bytes").stage,
                     "optimizer");
    ck_assert_ptr_null(json_fault(stepgraph_audit_json(difference)));
}
END_TEST

/* ---- limits --------------------------------------------------------------------------------------------------------------- */

static void never(void *unused)
{
    (void)unused;
    abort();
}

/* All are counted; of those that are kept, faults come first, wherever they stand. */
START_TEST(more_than_a_thousand_findings_are_counted_and_faults_are_kept)
{
    enum { NOTES = 1300, FAULTS = 3 };
    CUdeviceptr pin = pin_of(STEPGRAPH_ROLE_STATE, 4, "w");
    /* Host functions are looked at before addresses. */
    stepgraph_step *step = recording("train", _i ? STEPGRAPH_STEP_ALLOW_HOST_FUNCTIONS : STEPGRAPH_STEP_ALLOW_HOST_MEMORY);
    const uint32_t notes = _i ? STEPGRAPH_FINDING_HOST_FUNCTION : STEPGRAPH_FINDING_PAGEABLE;
    const uint32_t faults = _i ? STEPGRAPH_FINDING_PAGEABLE : STEPGRAPH_FINDING_HOST_FUNCTION;
    stepgraph_audit *report;
    stepgraph_finding f;

    for (int i = 0; i < NOTES + FAULTS; i++)
        if ((i < NOTES) == (_i != 0))
            CU(LaunchHostFunc(stream, never, NULL));
        else
            CU(MemcpyHtoDAsync(pin, pageable, 4, stream));
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_step_end(step), "3 faults");
    OK(stepgraph_audit_step(step, &report));
    keep_report(report);
    HOLDS(report, FAULTS, NOTES + FAULTS);
    ck_assert_uint_eq(summary_of(report).kept, 1000);
    ck_assert_uint_eq(summary_of(report).nodes, NOTES + FAULTS);
    for (uint32_t i = 0; i < 1000; i++) {
        f = finding_at(report, i);
        ck_assert_uint_eq(f.fault, i < FAULTS);
        ck_assert_uint_eq(f.kind, i < FAULTS ? faults : notes);
        ck_assert_uint_eq(f.node, i < FAULTS ? NOTES + i : i - FAULTS);
    }
    FAILS(STEPGRAPH_ERR_ARGUMENT, stepgraph_audit_get(report, 1000, &f), "1000");
    ck_assert_ptr_nonnull(strstr(stepgraph_audit_text(report), "and 303 more"));
    ck_assert_ptr_null(json_fault(stepgraph_audit_json(report)));
}
END_TEST

/* Until no note is left that could give way. */
START_TEST(faults_take_the_place_of_all_notes)
{
    enum { NOTES = 300, FAULTS = 1100 };
    CUdeviceptr pin = pin_of(STEPGRAPH_ROLE_STATE, 4, "w");
    stepgraph_step *step = recording("train", STEPGRAPH_STEP_ALLOW_HOST_FUNCTIONS); /* Which are looked at first. */
    stepgraph_audit *report;

    for (int i = 0; i < NOTES; i++)
        CU(LaunchHostFunc(stream, never, NULL));
    for (int i = 0; i < FAULTS; i++)
        CU(MemcpyHtoDAsync(pin, pageable, 4, stream));
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_step_end(step), "1100 faults");
    OK(stepgraph_audit_step(step, &report));
    keep_report(report);
    HOLDS(report, FAULTS, NOTES + FAULTS);
    ck_assert_uint_eq(summary_of(report).kept, 1000);
    for (uint32_t i = 0; i < 1000; i++) {
        ck_assert_uint_eq(finding_at(report, i).fault, 1);
        ck_assert_uint_eq(finding_at(report, i).node, NOTES + i);
    }
}
END_TEST

START_TEST(more_than_a_thousand_faults_are_counted)
{
    enum { FAULTS = 1500 };
    CUdeviceptr pin = pin_of(STEPGRAPH_ROLE_STATE, 4, "w");
    stepgraph_step *steps[2];
    stepgraph_audit *report;

    for (int k = 0; k < 2; k++) {
        steps[k] = recording("step", 0);
        for (int i = 0; i < FAULTS; i++)
            inc(stream, pin, (float)(i + k));
        ready(steps[k]);
    }
    report = compared(steps[0], steps[1], NULL);
    HOLDS(report, FAULTS, FAULTS);
    ck_assert_uint_eq(summary_of(report).kept, 1000);
    ck_assert_uint_eq(finding_at(report, 999).node, 999);
    ck_assert_ptr_nonnull(strstr(stepgraph_audit_text(report), "1500 faults"));
    ck_assert_ptr_nonnull(strstr(stepgraph_audit_text(report), "and 500 more"));
}
END_TEST

/* ---- texts ------------------------------------------------------------------------------------------------------------------
 */

START_TEST(text_says_what_was_looked_at_and_each_advice_once)
{
    stepgraph_audit *report = mixed();
    const char *text = stepgraph_audit_text(report), *first, *second;

    ck_assert_ptr_nonnull(strstr(text, "step 'train' cannot be replayed: 2 faults (4 nodes, 2 kernels, "));
    ck_assert_ptr_nonnull(strstr(text, "\n  (no fault) node 0  inc  arg 0 +0"));
    first = strstr(text, "\n      make it a FEED");
    ck_assert_ptr_nonnull(first);
    second = strstr(first + 20, "make it a FEED");
    ck_assert_ptr_null(second);
    ck_assert_int_eq(text[strlen(text) - 1], '\n');
}
END_TEST

START_TEST(json_holds_what_the_findings_hold)
{
    stepgraph_audit *report = mixed();
    const char *json = stepgraph_audit_json(report);

    ck_assert_msg(json_fault(json) == NULL, "%s in %s", json_fault(json), json);
    ck_assert_ptr_nonnull(strstr(json, "\"title\": \"step 'train'\""));
    ck_assert_ptr_nonnull(strstr(json, "\"faults\": 2, \"doubtful\": 0, \"findings\": 4, \"nodes\": 4, \"kernels\": 2, \"unread\": 0"));
    ck_assert_ptr_nonnull(
        strstr(json, "{\"kind\": \"pageable\", \"fault\": true, \"doubtful\": false, \"node\": 2, \"argument\": -1, \"offset\": 0, \"bytes\": 8"));
    ck_assert_ptr_nonnull(strstr(json, "{\"kind\": \"unregistered\", \"fault\": false, \"doubtful\": false, \"node\": 1, \"argument\": 1"));
    ck_assert_ptr_nonnull(strstr(json, "\"stage\": \"\\\"late\\\" \\\\ \""));
    ck_assert_ptr_nonnull(strstr(json, "\"name\": \"axpb\""));
}
END_TEST

/* Names as long as they may be, cut off wherever they are. */
START_TEST(json_is_utf_8_whatever_names_are)
{
    stepgraph_audit *report = NULL;
    stepgraph_step *step;
    char name[STEPGRAPH_NAME_MOST + 1], pin_name[sizeof name];

    memset(name, 'x', sizeof name);
    for (int i = _i; i + 2 < (int)sizeof name; i += 2) /* Two bytes each. */
        memcpy(&name[i], "\xc3\xa4", 3);
    name[sizeof name - 1] = '\0';
    memcpy(pin_name, name, sizeof pin_name);
    pin_adopt(session, STEPGRAPH_ROLE_STATE, device_make(64), 4, pin_name);
    step = recording(name, 0);
    OK(stepgraph_step_mark(step, name));
    CU(MemsetD8Async(stepgraph_pin_address(stepgraph_session_pin(session, pin_name)), 0, 16, stream));
    FAILS(STEPGRAPH_ERR_REFUSED, stepgraph_step_end(step), "cannot be replayed");
    OK(stepgraph_audit_step(step, &report));
    ck_assert_ptr_null(json_fault(stepgraph_audit_json(keep_report(report))));
}
END_TEST

/* What a host calls its step need not be UTF-8 at all. */
START_TEST(json_replaces_what_is_no_utf_8)
{
    static const char *const names[] = {"\xff",     "a\xc3",     "\xe2\x82",       "\x80z", "\xf8\x88\x80\x80\x80",
                                        "\xc0\xaf", "\xe2\x82(", "ok \xe2\x82\xac"};
    stepgraph_step *step = recording(names[_i], 0);
    const char *json = stepgraph_audit_json(refused(step));

    ck_assert_msg(json_fault(json) == NULL, "%s", json);
    ck_assert_int_eq(strstr(json, "\\ufffd") != NULL, _i < 7);
    ck_assert_int_eq(strstr(json, "ok \xe2\x82\xac") != NULL, _i == 7);
}
END_TEST

/* One learning rate by value is one line, whatever number of kernels it goes to. */
START_TEST(text_says_the_same_about_several_nodes_once)
{
    CUdeviceptr w = pin_of(STEPGRAPH_ROLE_STATE, 4, "w");
    stepgraph_step *steps[2];
    stepgraph_audit *report;
    const char *text;

    for (int i = 0; i < 2; i++) {
        steps[i] = recording("step", 0);
        for (int k = 0; k < 20; k++)
            adam(w, w, k == 3 ? 0.5f * (float)(i + 1) : 0.1f * (float)(i + 1), 1, 7);
        ready(steps[i]);
    }
    report = compared(steps[0], steps[1], NULL);
    HOLDS(report, 20, 20);
    text = stepgraph_audit_text(report);
    ck_assert_ptr_nonnull(strstr(text, "20 faults (20 nodes, 20 kernels, "));
    ck_assert_ptr_nonnull(strstr(text, " bytes compared in 2 recordings)\n"));
    ck_assert_ptr_nonnull(strstr(text, "\n  node 0  adam  arg 2 +0   changing scalar"));
    ck_assert_ptr_nonnull(strstr(text, "\n      the same in 18 more nodes: 1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, ...\n"));
    ck_assert_ptr_nonnull(strstr(text, "\n  node 3  adam  arg 2 +0   changing scalar"));
    ck_assert_ptr_null(strstr(text, "\n  node 1  "));
    ck_assert_ptr_null(strstr(text, "address"));
    /* From code they are to be had one by one. */
    for (uint32_t i = 0; i < 20; i++)
        ck_assert_uint_eq(finding_at(report, i).node, i);
    ck_assert_str_eq(strstr(finding_at(report, 19).text, "adam"), strstr(finding_at(report, 0).text, "adam"));
}
END_TEST

START_TEST(numbers_of_findings_have_points_in_every_language)
{
    CUdeviceptr w = pin_of(STEPGRAPH_ROLE_STATE, 4, "w");
    stepgraph_step *steps[2];
    stepgraph_audit *report;
    const char *text, *json;

    for (int i = 0; i < 2; i++) {
        steps[i] = recording("step", 0);
        inc(stream, w, 0.5f * (float)(i + 1) + 1);
        ready(steps[i]);
    }
    report = compared(steps[0], steps[1], NULL);
    unit_commas_begin("numbers_of_findings_have_points_in_every_language");
    text = stepgraph_audit_text(report);
    json = stepgraph_audit_json(report);
    unit_commas_end();
    ck_assert_msg(strstr(text, "(as float 1.5 -> 2, ") != NULL, "%s", text);
    ck_assert_msg(strstr(json, "(as float 1.5 -> 2, ") != NULL, "%s", json);
}
END_TEST

/* What end says: the faults first, then what to do about the first, and all of it within the message. */
START_TEST(message_of_end_has_faults_first_and_advice_last)
{
    stepgraph_error_info info = STEPGRAPH_ERROR_INFO_INIT;
    CUdeviceptr buffer = device_make(4);
    stepgraph_step *step = recording("train", 0);
    const char *last, *and_more;
    int n = 0;

    for (int i = 0; i < 30; i++)
        inc(stream, buffer, 1);
    refused(step);
    OK(stepgraph_step_error(step, &info));
    ck_assert_ptr_nonnull(strstr(info.message, "cannot be replayed, 30 faults in what was recorded:\n  node 0  inc  arg 0 +0"));
    for (const char *line = info.message; (line = strstr(line, "\n  node ")) != NULL; line++)
        n++;
    ck_assert_int_ge(n, 5);
    and_more = strstr(info.message, "\n  and ");
    ck_assert_ptr_nonnull(and_more);
    ck_assert_int_eq(atoi(and_more + 7), 30 - n);
    last = strrchr(info.message, '\n');
    ck_assert_ptr_eq(strchr(and_more + 1, '\n'), last);
    ck_assert_ptr_nonnull(strstr(last, "pin it: register what it belongs to"));
    ck_assert_ptr_nonnull(strstr(last, "if the host keeps it in place"));
}
END_TEST

START_TEST(costs_are_told)
{
    stepgraph_pin *w = pin_make(session, STEPGRAPH_ROLE_STATE, 4, "w");
    stepgraph_step *steps[2];
    stepgraph_audit_summary single[2], both;

    for (int i = 0; i < 2; i++) {
        steps[i] = recording("step", 0);
        inc(stream, stepgraph_pin_address(w), 1);
        single[i] = summary_of(ready(steps[i]));
        ck_assert_uint_gt(single[i].read_ns, 0);
        ck_assert_uint_eq(single[i].compare_ns, 0);
        ck_assert_uint_eq(single[i].addresses, 1);
    }
    both = summary_of(compared(steps[0], steps[1], NULL));
    ck_assert_uint_eq(both.read_ns, single[0].read_ns + single[1].read_ns);
    ck_assert_uint_gt(both.compare_ns, 0);
    ck_assert_uint_eq(both.addresses, 1);
    ck_assert_uint_eq(both.in_pins, 1);
}
END_TEST

/* An allocator of the host's that keeps many blocks in one allocation: the sentence says which. */
START_TEST(place_within_an_allocation_is_told)
{
    CUdeviceptr pool = device_make(2097152);
    stepgraph_step *steps[2];
    stepgraph_finding f;

    for (int i = 0; i < 2; i++) {
        steps[i] = recording("step", STEPGRAPH_STEP_ALLOW_UNREGISTERED);
        inc(stream, pool + (i ? 222208 : 0), 1);
        ready(steps[i]);
    }
    f = finding_at(compared(steps[0], steps[1], NULL), 0);
    ck_assert_ptr_nonnull(strstr(f.text, "(2097152 bytes that no pin covers) -> "));
    ck_assert_ptr_nonnull(strstr(f.text, "(+222208 in 2097152 bytes that no pin covers)"));
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("audit_report");
    TCase *tc = audit_case(suite, "a: walking");

    tcase_add_test(tc, faults_come_first_and_then_the_order_of_nodes);
    tcase_add_test(tc, index_past_the_end_stops_the_walk);
    tcase_add_test(tc, structs_are_filled_up_to_their_size);
    tcase_add_test(tc, nothing_is_refused_or_does_nothing);
    tcase_add_test(tc, report_follows_the_recording);
    tcase_add_test(tc, broken_recording_has_no_report);
    tcase_add_test(tc, reports_outlive_what_they_are_about);

    tc = audit_case(suite, "b: limits");
    tcase_add_loop_test(tc, more_than_a_thousand_findings_are_counted_and_faults_are_kept, 0, 2);
    tcase_add_test(tc, faults_take_the_place_of_all_notes);
    tcase_add_test(tc, more_than_a_thousand_faults_are_counted);

    tc = audit_case(suite, "c: texts");
    tcase_add_test(tc, text_says_what_was_looked_at_and_each_advice_once);
    tcase_add_test(tc, text_says_the_same_about_several_nodes_once);
    tcase_add_test(tc, numbers_of_findings_have_points_in_every_language);
    tcase_add_test(tc, message_of_end_has_faults_first_and_advice_last);
    tcase_add_test(tc, costs_are_told);
    tcase_add_test(tc, place_within_an_allocation_is_told);
    tcase_add_test(tc, json_holds_what_the_findings_hold);
    tcase_add_loop_test(tc, json_is_utf_8_whatever_names_are, 0, 2);
    tcase_add_loop_test(tc, json_replaces_what_is_no_utf_8, 0, 8);
    return suite;
}

int main(void)
{
    return unit_main(make);
}
