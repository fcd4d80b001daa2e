/*
 * The edges that a recording needs, against all pairs of its nodes: each pair is asked whether it conflicts and whether the
 * recording ordered it, and reachability is computed the slow way.
 *
 * Recordings are drawn from a seed, which is printed; STEPGRAPH_TEST_SEED=N begins with another one.
 */
#include "support.h"

#include "graph/dag.h"
#include "graph/order.h"

#define SEEDS 2000
#define NODES 72

typedef bool matrix[NODES][NODES];

/* For inner loops: Check notes the place of each assertion, also of those that hold, in a file. */
#define MUST(condition, ...)                                                                                                     \
    do {                                                                                                                         \
        if (!(condition))                                                                                                        \
            ck_abort_msg(__VA_ARGS__);                                                                                           \
    } while (0)

static uint64_t first_seed = 1;

/* ---- a recording ------------------------------------------------------------------------------------------------- */

static struct {
    uint64_t seed;
    sg__order_input input;
    sg__graph_edge edges[NODES * NODES];
    sg__access accesses[NODES * 8];
    uint32_t kinds[NODES];
} r;

static uint32_t below(uint32_t limit)
{
    return unit_random(&r.seed) % limit;
}

static void put_edge(uint32_t from, uint32_t to)
{
    MUST(r.input.n_recorded < sizeof r.edges / sizeof *r.edges, "too many edges");
    r.edges[r.input.n_recorded++] = (sg__graph_edge){.from = from, .to = to};
}

static void touch(uint32_t node, uint64_t start, uint64_t bytes, bool write)
{
    MUST(r.input.n_accesses < sizeof r.accesses / sizeof *r.accesses, "too many accesses");
    r.accesses[r.input.n_accesses++] = (sg__access){.node = node, .start = start, .bytes = bytes, .write = write};
}

static void nothing(uint32_t n)
{
    r.input = (sg__order_input){.n = n, .recorded = r.edges, .accesses = r.accesses, .kinds = r.kinds};
    memset(r.kinds, 0, sizeof r.kinds);
}

static void chain(uint32_t n)
{
    nothing(n);
    for (uint32_t i = 1; i < n; i++)
        put_edge(i - 1, i);
}

/* As capturing makes it: a node comes after the ends of its stream, and a stream that waits for another one gets its ends too. */
static void draw_streams(uint32_t n)
{
    bool ends[5][NODES] = {{false}};
    uint32_t streams = 1 + below(5), begun = 1;

    nothing(n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t lane = below(begun);
        for (uint32_t k = 0; k < n; k++)
            if (ends[lane][k])
                put_edge(k, i);
        memset(ends[lane], 0, sizeof ends[lane]);
        ends[lane][i] = true;
        if (begun < streams && below(4) == 0)
            memcpy(ends[begun++], ends[lane], sizeof ends[lane]);
        if (begun > 1 && below(4) == 0) {
            uint32_t other = below(begun);
            lane = below(begun);
            for (uint32_t k = 0; k < n; k++)
                ends[lane][k] |= ends[other][k];
        }
    }
}

/* Any edges, any numbers; some of them twice. */
static void draw_edges(uint32_t n)
{
    uint32_t number[NODES], edges = n > 1 ? below(3 * n) : 0;

    nothing(n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t other = below(i + 1);
        number[i] = number[other];
        number[other] = i;
    }
    for (uint32_t i = 0; i < edges; i++) {
        uint32_t to = 1 + below(n - 1), from = below(to);
        put_edge(number[from], number[to]);
        if (below(8) == 0)
            put_edge(number[from], number[to]);
    }
}

static void draw_accesses(void)
{
    uint32_t style = below(5), reads = below(5), span = 4 + below(60);

    for (uint32_t i = 0; i < r.input.n; i++)
        for (uint32_t k = below(5); k > 0; k--) {
            bool write = below(4) >= reads;
            switch (style) {
            case 0: /* Blocks. */
                touch(i, 0x1000 + 64 * below(span), 64, write);
                break;
            case 1: /* Any ranges, some of them empty. */
                touch(i, 0x1000 + below(span), below(span / 2), write);
                break;
            case 2: /* Small ones, and now and then all memory. */
                if (below(12) == 0)
                    touch(i, 0, UINT64_MAX, write);
                else
                    touch(i, 0x1000 + 8 * below(span), 8 + below(2), write);
                break;
            case 3: /* At the end of all addresses. */
                touch(i, UINT64_MAX - below(span), 1 + below(2 * span), write);
                break;
            default: /* Views of one buffer, some twice. */
                touch(i, 0x1000 + 16 * below(span), 16 * (1 + below(4)), write);
                if (below(3) == 0)
                    touch(i, 0x1000, 16 * (uint64_t)span, below(2) == 0);
                break;
            }
        }
}

static void draw_kinds(void)
{
    uint32_t barriers = below(3) == 0 ? 1 + below(20) : 0, classes = below(3);

    for (uint32_t i = 0; i < r.input.n; i++)
        if (barriers > 0 && below(barriers) == 0)
            r.kinds[i] = SG__ORDER_BARRIER;
        else if (classes > 0 && below(3) == 0)
            r.kinds[i] = 1 + below(classes);
    if (barriers == 0 && classes == 0 && below(2) == 0)
        r.input.kinds = NULL;
}

static void draw(uint64_t seed)
{
    uint32_t n;

    r.seed = seed;
    n = below(8) == 0 ? below(4) : 1 + below(NODES);
    switch (below(4)) {
    case 0:
        chain(n);
        break;
    case 1:
        draw_edges(n);
        break;
    default:
        draw_streams(n);
        break;
    }
    draw_accesses();
    draw_kinds();
}

/* ---- the slow way ------------------------------------------------------------------------------------------------ */

static void close_over(matrix m, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t j = 0; m[i][k] && j < n; j++)
                m[i][j] |= m[k][j];
}

static void reach(matrix m, uint32_t n, const sg__graph_edge *edges, size_t n_edges)
{
    memset(m, 0, sizeof(matrix));
    for (size_t i = 0; i < n_edges; i++) {
        MUST(edges[i].from < n && edges[i].to < n, "an edge leads nowhere");
        m[edges[i].from][edges[i].to] = true;
    }
    close_over(m, n);
}

/* All bytes but the one at the last address can be touched. */
static uint64_t end_of(const sg__access *access)
{
    return access->bytes > UINT64_MAX - access->start ? UINT64_MAX : access->start + access->bytes;
}

static bool conflict(uint32_t a, uint32_t b)
{
    if (r.input.kinds != NULL) {
        if (r.kinds[a] == SG__ORDER_BARRIER || r.kinds[b] == SG__ORDER_BARRIER)
            return true;
        if (r.kinds[a] != SG__ORDER_PLAIN && r.kinds[a] == r.kinds[b])
            return true;
    }
    for (size_t i = 0; i < r.input.n_accesses; i++)
        for (size_t k = 0; r.accesses[i].node == a && k < r.input.n_accesses; k++) {
            const sg__access *x = &r.accesses[i], *y = &r.accesses[k];
            if (y->node == b && (x->write || y->write) && x->start < end_of(y) && y->start < end_of(x) && x->start < end_of(x) &&
                y->start < end_of(y))
                return true;
        }
    return false;
}

/* What has to be ordered, and whether some pair conflicts that the recording leaves unordered. */
static bool needed_pairs(matrix recorded, matrix needed)
{
    uint32_t n = r.input.n;
    bool unordered = false;

    memset(needed, 0, sizeof(matrix));
    for (uint32_t a = 0; a < n; a++)
        for (uint32_t b = a + 1; b < n; b++)
            if (conflict(a, b)) {
                needed[a][b] = recorded[a][b];
                needed[b][a] = recorded[b][a];
                unordered |= !recorded[a][b] && !recorded[b][a];
            }
    close_over(needed, n);
    return unordered;
}

static void same_pairs(matrix got, matrix wanted, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < n; k++)
            MUST(got[i][k] == wanted[i][k], "%s between node %u and node %u", got[i][k] ? "added order" : "missing order", i, k);
}

/* No edge follows from the others. */
static void no_edge_is_implied(const sg__order *order, matrix reached)
{
    for (size_t i = 0; i < order->n_edges; i++)
        for (uint32_t k = 0; k < order->n; k++)
            MUST(!(reached[order->edges[i].from][k] && reached[k][order->edges[i].to]),
                 "edge from %u to %u is implied by node %u", order->edges[i].from, order->edges[i].to, k);
    for (size_t i = 0; i < order->n_edges; i++)
        for (size_t k = 0; k < i; k++)
            MUST(memcmp(&order->edges[i], &order->edges[k], sizeof order->edges[i]) != 0, "an edge is there twice");
}

static void line_is_allowed(const uint32_t *line, matrix reached, uint32_t n)
{
    bool seen[NODES] = {false};

    for (uint32_t i = 0; i < n; i++) {
        MUST(line[i] < n && !seen[line[i]], "not a line of all nodes");
        seen[line[i]] = true;
        for (uint32_t k = i; k < n; k++)
            MUST(!reached[line[k]][line[i]], "node %u comes before node %u", line[i], line[k]);
    }
}

static uint32_t longest_path(matrix reached, const uint32_t *line, uint32_t n)
{
    uint32_t depth[NODES] = {0}, longest = 0;

    for (uint32_t i = 0; i < n; i++) {
        depth[line[i]] = 1;
        for (uint32_t k = 0; k < i; k++)
            if (reached[line[k]][line[i]] && depth[line[k]] >= depth[line[i]])
                depth[line[i]] = depth[line[k]] + 1;
        longest = depth[line[i]] > longest ? depth[line[i]] : longest;
    }
    return longest;
}

static void must(stepgraph_status status)
{
    stepgraph_error_info info = STEPGRAPH_ERROR_INFO_INIT;

    stepgraph_last_error(&info);
    ck_assert_msg(status == STEPGRAPH_OK, "%s: %s", stepgraph_status_name(status), info.message);
}

/* ---- drawn recordings -------------------------------------------------------------------------------------------- */

static matrix recorded, needed, got, wanted;

START_TEST(edges_are_those_of_all_pairs_that_conflict)
{
    sg__order order = {0};
    bool unordered;
    uint32_t n;

    draw(first_seed + (uint64_t)_i);
    n = r.input.n;
    must(sg__order_build(&r.input, &order));

    reach(recorded, n, r.edges, r.input.n_recorded);
    unordered = needed_pairs(recorded, needed);
    reach(got, n, order.edges, order.n_edges);
    same_pairs(got, needed, n);
    no_edge_is_implied(&order, got);
    line_is_allowed(order.line, recorded, n);
    ck_assert_uint_eq(order.n, n);
    ck_assert_uint_eq(order.path, longest_path(needed, order.line, n));
    ck_assert_uint_eq(order.recorded_path, longest_path(recorded, order.line, n));
    ck_assert_int_eq(order.n_unordered != 0, unordered);
    if (unordered) {
        ck_assert(conflict(order.unordered[0], order.unordered[1]));
        ck_assert(!recorded[order.unordered[0]][order.unordered[1]] && !recorded[order.unordered[1]][order.unordered[0]]);
    }
    sg__order_free(&order);
}
END_TEST

START_TEST(lanes_add_the_order_of_each_lane_and_no_other)
{
    static const uint32_t widths[] = {1, 2, 3, 4, 8, 16, NODES, UINT32_MAX};
    sg__order order = {0}, lanes = {0};
    uint32_t lane_of[NODES], n;

    draw(first_seed + (uint64_t)_i);
    n = r.input.n;
    must(sg__order_build(&r.input, &order));
    reach(needed, n, order.edges, order.n_edges);
    for (size_t k = 0; k < sizeof widths / sizeof *widths; k++) {
        must(sg__order_lanes(&order, widths[k], &lanes, lane_of));
        memcpy(wanted, needed, sizeof wanted);
        for (uint32_t i = 0; i < n; i++) {
            MUST(lane_of[i] < widths[k], "node %u is on lane %u of %u", i, lane_of[i], widths[k]);
            for (uint32_t j = i + 1; j < n; j++)
                wanted[lanes.line[i]][lanes.line[j]] |= lane_of[lanes.line[i]] == lane_of[lanes.line[j]];
        }
        close_over(wanted, n);
        reach(got, n, lanes.edges, lanes.n_edges);
        same_pairs(got, wanted, n);
        no_edge_is_implied(&lanes, got);
        line_is_allowed(lanes.line, got, n);
        ck_assert_uint_eq(lanes.path, longest_path(got, lanes.line, n));
        ck_assert_uint_ge(lanes.path, order.path);
        /* What any list schedule reaches: a round either fills all lanes or shortens the longest way. */
        ck_assert_uint_le(lanes.path, n / widths[k] + order.path);
        if (widths[k] == 1)
            ck_assert_uint_eq(lanes.n_edges, n > 0 ? n - 1 : 0);
        sg__order_free(&lanes);
    }
    sg__order_free(&order);
}
END_TEST

START_TEST(lines_are_allowed_and_follow_from_the_seed)
{
    sg__order order = {0};
    uint32_t line[NODES], again[NODES], n;

    draw(first_seed + (uint64_t)_i);
    n = r.input.n;
    must(sg__order_build(&r.input, &order));
    reach(needed, n, order.edges, order.n_edges);
    for (uint64_t seed = 0; seed < 4; seed++) {
        must(sg__order_line(&order, seed, line));
        line_is_allowed(line, needed, n);
        must(sg__order_line(&order, seed, again));
        ck_assert_mem_eq(line, again, n * sizeof *line);
    }
    /* The most displaced one: each time the highest number that waits for nothing more. */
    must(sg__order_line(&order, 0, line));
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = i + 1; k < n; k++)
            if (line[k] > line[i]) {
                bool waits = false;
                for (uint32_t j = i; j < k; j++)
                    waits |= needed[line[j]][line[k]];
                MUST(waits, "node %u could have come before node %u", line[k], line[i]);
            }
    sg__order_free(&order);
}
END_TEST

/* ---- single recordings ------------------------------------------------------------------------------------------- */

static void expect_edges(size_t n, const sg__graph_edge *edges)
{
    sg__order order = {0};

    must(sg__order_build(&r.input, &order));
    ck_assert_uint_eq(order.n_edges, n);
    for (size_t i = 0; i < n; i++) {
        ck_assert_uint_eq(order.edges[i].from, edges[i].from);
        ck_assert_uint_eq(order.edges[i].to, edges[i].to);
    }
    sg__order_free(&order);
}

START_TEST(nothing_needs_nothing)
{
    sg__order order = {0}, lanes = {0};

    nothing(0);
    must(sg__order_build(&r.input, &order));
    ck_assert_uint_eq(order.n_edges, 0);
    ck_assert_uint_eq(order.path, 0);
    must(sg__order_lanes(&order, 8, &lanes, NULL));
    ck_assert_uint_eq(lanes.n_edges, 0);
    must(sg__order_line(&order, 0, NULL));
    sg__order_free(&order);
    sg__order_free(&lanes);

    nothing(1);
    touch(0, 0x1000, 16, true);
    must(sg__order_build(&r.input, &order));
    ck_assert_uint_eq(order.n_edges, 0);
    ck_assert_uint_eq(order.path, 1);
    sg__order_free(&order);
}
END_TEST

START_TEST(readers_run_side_by_side_between_writers)
{
    static const sg__graph_edge edges[] = {{0, 1}, {0, 2}, {2, 3}, {1, 3}};

    chain(4);
    touch(0, 0x1000, 64, true);
    touch(1, 0x1000, 8, false);
    touch(2, 0x1038, 8, false);
    touch(3, 0x1000, 64, true);
    expect_edges(4, edges);
}
END_TEST

START_TEST(ranges_that_only_touch_each_other_do_not_overlap)
{
    chain(2);
    touch(0, 0x1000, 64, true);
    touch(1, 0x1040, 64, true);
    expect_edges(0, NULL);
}
END_TEST

START_TEST(barrier_waits_for_all_and_all_wait_for_it)
{
    static const sg__graph_edge edges[] = {{1, 2}, {0, 2}, {2, 3}, {2, 4}};

    chain(5);
    r.kinds[2] = SG__ORDER_BARRIER;
    expect_edges(4, edges);
}
END_TEST

START_TEST(classes_keep_their_own_order)
{
    static const sg__graph_edge edges[] = {{0, 2}, {1, 3}, {2, 4}};

    chain(5);
    r.kinds[0] = r.kinds[2] = r.kinds[4] = 7;
    r.kinds[1] = r.kinds[3] = UINT32_MAX - 1;
    expect_edges(3, edges);
}
END_TEST

/* Both sides of a fork write what the node before wrote; neither waits for the other. */
START_TEST(sides_of_a_fork_stay_unordered)
{
    static const sg__graph_edge edges[] = {{0, 1}, {0, 2}, {2, 3}, {1, 3}};
    sg__order order = {0};

    nothing(4);
    put_edge(0, 1);
    put_edge(0, 2);
    put_edge(1, 3);
    put_edge(2, 3);
    for (uint32_t i = 0; i < 4; i++)
        touch(i, 0x1000, 64, true);
    expect_edges(4, edges);
    must(sg__order_build(&r.input, &order));
    ck_assert_uint_eq(order.branches, 2);
    ck_assert_uint_eq(order.n_unordered, 2);
    ck_assert_uint_eq(order.unordered[0] + order.unordered[1], 3);
    sg__order_free(&order);
}
END_TEST

/* Forks and joins again and again need no more branches than streams. */
START_TEST(branches_are_as_many_as_streams)
{
    sg__order order = {0};

    nothing(61);
    for (uint32_t i = 0; i + 3 < 61; i += 3) {
        put_edge(i, i + 1);
        put_edge(i, i + 2);
        put_edge(i + 1, i + 3);
        put_edge(i + 2, i + 3);
    }
    must(sg__order_build(&r.input, &order));
    ck_assert_uint_eq(order.branches, 2);
    sg__order_free(&order);
}
END_TEST

static void refused(const sg__order_input *input, stepgraph_status expected, const char *words)
{
    stepgraph_error_info info = STEPGRAPH_ERROR_INFO_INIT;
    sg__order order = {0};

    ck_assert_int_eq(sg__order_build(input, &order), expected);
    stepgraph_last_error(&info);
    ck_assert_msg(strstr(info.message, words) != NULL, "%s", info.message);
    ck_assert_ptr_null(order.edges);
    ck_assert_ptr_null(order.line);
}

START_TEST(what_cannot_be_ordered_is_refused)
{
    sg__order order = {0};
    sg__order_input wide = {.n = SG__ORDER_BRANCHES_MAX};

    must(sg__order_build(&wide, &order));
    sg__order_free(&order);
    wide.n++;
    refused(&wide, STEPGRAPH_ERR_UNSUPPORTED, "more than 1024 branches");

    chain(3);
    put_edge(2, 0);
    refused(&r.input, STEPGRAPH_ERR_ARGUMENT, "circle: 3 of 3 nodes");
    chain(3);
    put_edge(1, 1);
    refused(&r.input, STEPGRAPH_ERR_ARGUMENT, "circle: 2 of 3 nodes");
    chain(3);
    put_edge(1, 3);
    refused(&r.input, STEPGRAPH_ERR_ARGUMENT, "from node 1 to node 3");
    chain(3);
    touch(3, 0x1000, 4, true);
    refused(&r.input, STEPGRAPH_ERR_ARGUMENT, "that of node 3");
    wide.n = UINT32_MAX;
    refused(&wide, STEPGRAPH_ERR_ARGUMENT, "too many");

    chain(3);
    must(sg__order_build(&r.input, &order));
    ck_assert_int_eq(sg__order_lanes(&order, 0, &order, NULL), STEPGRAPH_ERR_ARGUMENT);
    sg__order_free(&order);
}
END_TEST

/* ---- more nodes than bits are held for at a time ----------------------------------------------------------------- */

#define MANY 9000u

START_TEST(edges_are_reduced_window_by_window)
{
    size_t words = (MANY + 63) / 64, n = 0, kept = 0;
    sg__graph_edge *edges = malloc(4 * MANY * sizeof *edges), *copy = malloc(4 * MANY * sizeof *copy),
                   *fewest = malloc(4 * MANY * sizeof *fewest);
    uint64_t *rows = calloc(MANY * words, sizeof *rows);

    ck_assert_uint_lt(SG__DAG_BITS_BYTES, MANY * words * sizeof *rows);
    r.seed = first_seed + (uint64_t)_i;
    for (uint32_t i = 1; i < MANY; i++)
        for (uint32_t k = 1 + below(3); k > 0; k--)
            edges[n++] = (sg__graph_edge){.from = below(2) == 0 ? i - 1 - below(i < 40 ? i : 40) : below(i), .to = i};
    must(sg__dag_sort(MANY, edges, &n));
    memcpy(copy, edges, n * sizeof *edges);
    /* All that comes before each node, at once; then an edge is implied if another one of its node's leads there too. */
    for (size_t i = 0; i < n; i++) {
        uint64_t *row = rows + copy[i].to * words;
        const uint64_t *from = rows + copy[i].from * words;
        for (size_t k = 0; k < words; k++)
            row[k] |= from[k];
        row[copy[i].from / 64] |= (uint64_t)1 << copy[i].from % 64;
    }
    for (size_t i = 0, first = 0; i < n; i++) {
        bool implied = false;
        first = copy[first].to == copy[i].to ? first : i;
        for (size_t k = first; k < n && copy[k].to == copy[i].to; k++)
            implied |= (rows[copy[k].from * words + copy[i].from / 64] >> copy[i].from % 64 & 1) != 0;
        if (!implied)
            fewest[kept++] = copy[i];
    }
    ck_assert_uint_lt(kept, n);
    must(sg__dag_reduce(MANY, edges, &n));
    ck_assert_uint_eq(n, kept);
    ck_assert_mem_eq(edges, fewest, n * sizeof *edges);
    free(edges);
    free(copy);
    free(fewest);
    free(rows);
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("order");
    TCase *drawn = tcase_create("drawn"), *single = tcase_create("single"), *many = tcase_create("many");

    tcase_add_loop_test(drawn, edges_are_those_of_all_pairs_that_conflict, 0, SEEDS);
    tcase_add_loop_test(drawn, lanes_add_the_order_of_each_lane_and_no_other, 0, SEEDS);
    tcase_add_loop_test(drawn, lines_are_allowed_and_follow_from_the_seed, 0, SEEDS);
    tcase_add_test(single, nothing_needs_nothing);
    tcase_add_test(single, readers_run_side_by_side_between_writers);
    tcase_add_test(single, ranges_that_only_touch_each_other_do_not_overlap);
    tcase_add_test(single, barrier_waits_for_all_and_all_wait_for_it);
    tcase_add_test(single, classes_keep_their_own_order);
    tcase_add_test(single, sides_of_a_fork_stay_unordered);
    tcase_add_test(single, branches_are_as_many_as_streams);
    tcase_add_test(single, what_cannot_be_ordered_is_refused);
    tcase_add_loop_test(many, edges_are_reduced_window_by_window, 0, 2);
    tcase_set_timeout(many, 120);
    suite_add_tcase(suite, drawn);
    suite_add_tcase(suite, single);
    suite_add_tcase(suite, many);
    return suite;
}

int main(void)
{
    if (getenv("STEPGRAPH_TEST_SEED") != NULL)
        first_seed = strtoull(getenv("STEPGRAPH_TEST_SEED"), NULL, 0);
    printf("seeds %llu to %llu\n", (unsigned long long)first_seed, (unsigned long long)first_seed + SEEDS - 1);
    return unit_main(make);
}
