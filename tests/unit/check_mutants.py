"""Take every comparison, restore, filling and control out of the checker, one at a time, and see that a test turns red.

    python3 tests/unit/check_mutants.py SCRATCH [NAME ...]
    python3 tests/unit/check_mutants.py --places

Copies the project into SCRATCH, builds it there, and for each mutant below changes one place, rebuilds and runs test_check and test_check_hosts
on cusim. Exit status 1 if a mutant survives or its place is not found once. Run by hand after a change of lib/check*.c: it takes several
minutes. --places only looks whether all places are found, which is a test.
"""
import itertools
import os
import pathlib
import shutil
import subprocess
import sys

# Name, file in lib/, what stands there, what stands there then.
MUTANTS = [
    # Going back to the beginning.
    ("state is not restored", "check_arm.c", "sg__shot_restore(&check->shots, check->start, SG__GROUP_STATE | SG__GROUP_INPUT)",
     "sg__shot_restore(&check->shots, check->start, SG__GROUP_INPUT)"),
    ("inputs are not restored", "check_arm.c", "sg__shot_restore(&check->shots, check->start, SG__GROUP_STATE | SG__GROUP_INPUT)",
     "sg__shot_restore(&check->shots, check->start, SG__GROUP_STATE)"),
    ("the host's side of feeds is not restored", "check_arm.c", "    sg__feeds_image_restore(check->session, check->feeds_before);\n", ""),
    ("the host is not rewound", "check_arm.c", "    return sg__check_rewind(check, check->config.first);\n}\n\n/* ---- comparing",
     "    return STEPGRAPH_OK;\n}\n\n/* ---- comparing"),
    ("nothing is filled", "check_arm.c", "if (pin->role == STEPGRAPH_ROLE_OUTPUT || (pin->role == STEPGRAPH_ROLE_SCRATCH && scratch))", "if (scratch && pin->bytes == 0)"),
    ("outputs are not filled", "check_arm.c", "if (pin->role == STEPGRAPH_ROLE_OUTPUT || (pin->role == STEPGRAPH_ROLE_SCRATCH && scratch))",
     "if (pin->role == STEPGRAPH_ROLE_SCRATCH && scratch)"),
    ("scratch is not filled", "check_arm.c", "if (pin->role == STEPGRAPH_ROLE_OUTPUT || (pin->role == STEPGRAPH_ROLE_SCRATCH && scratch))",
     "if (pin->role == STEPGRAPH_ROLE_OUTPUT || (pin->bytes == 0 && scratch))"),
    ("arenas are not filled", "check_arm.c", "            status = fill_arena(session, pin, fill);\n", "            status = STEPGRAPH_OK;\n"),
    ("blocks of arenas are filled", "check_arm.c", "if (pin->in_arena && scratch)", "if (pin->in_arena && !scratch)"),
    ("fresh arms are filled alike", "check_arm.c", "status = fresh_more(check, SG__FILL_B);", "status = fresh_more(check, SG__FILL_A);"),
    ("replays are filled alike", "check_arm.c", "begin_replays(check, SG__FILL_B)", "begin_replays(check, SG__FILL_A)"),
    ("strict feeds are not asked for the first replay", "check_arm.c", "        step->used_feeds[i] = step->used[i]->feeds;\n    return sg__check_begin_arm",
     "        (void)step;\n    return sg__check_begin_arm"),
    # Comparing.
    ("fresh is not compared with fresh", "check_arm.c", "status = compare_step(check, true, SG__ARMS, i);", "status = STEPGRAPH_OK;"),
    ("waited replays are not compared", "check_arm.c", "status = compare_step(check, false, arm, i);", "status = arm == SG__ARM_WAITED ? STEPGRAPH_OK : compare_step(check, false, arm, i);"),
    ("queued replays are not compared", "check_arm.c", "return status == STEPGRAPH_OK ? compare_step(check, false, SG__ARM_QUEUED, check->steps - 1) : status;", "return status;"),
    ("late replays are not run", "check_arm.c", "check->config.feed_stream != NULL) {\n        check->total", "check->total == 0) {\n        check->total"),
    ("late feeds are not late", "check_arm.c", "status = delay(check, check->config.feed_stream);", "status = STEPGRAPH_OK;"),
    ("queued replays are not delayed", "check_arm.c", "        status = delay(check, check->session->stream);\n", "        status = STEPGRAPH_OK;\n"),
    ("fresh launches get no second chance", "check_arm.c", "    if (check->bad && !check->unsteady) {\n        status = fresh_spread(check);", "    if (check->bad && !check->unsteady) {\n        status = STEPGRAPH_OK;"),
    ("noisy replays are not repeated", "check_arm.c", "check->unsteady && check->bad && !check->hung", "check->unsteady && check->bad && check->hung"),
    ("only the last step is compared", "check_arm.c", "    if (check->after[i] == UINT32_MAX)", "    if (check->after[i] == UINT32_MAX || i + 1 < check->steps)"),
    ("nothing is beyond the spread", "check_arm.c", "return largest > SG__FAR * record->spread || sqrt(item->distance.squares) > SG__FAR * record->norm;", "return false;"),
    ("everything is beyond the spread", "check_arm.c", "return largest > SG__FAR * record->spread || sqrt(item->distance.squares) > SG__FAR * record->norm;", "return true;"),
    ("bytes are measured like values", "check_arm.c", "if (item->pin->type == STEPGRAPH_TYPE_BYTES)", "if (item->pin->bytes == 0)"),
    ("changes are not noted", "check_arm.c", "check->records[j].facts |= check->shots.items[j].group == SG__GROUP_STATE ? STEPGRAPH_CHECK_UNCHANGED : 0;", "(void)before;"),
    ("written outputs are not noted", "check_arm.c", "check->records[j].kept &= ~(1u << arm);", "(void)arm;"),
    ("ones that are left out of an output are not told", "check_arm.c", "    note_left_out(check, fresh, i);\n", ""),
    ("constants are looked at after the first step alone", "check_arm.c", "(i == 0 || i + 1 == check->steps)", "i == 0"),
    ("constants are not looked at after replays", "check_arm.c", "status = look_at_constants(check, \"its replay\");", "status = STEPGRAPH_OK;"),
    ("short feeds of later steps are not noted", "check_arm.c", "if (record->fed_bytes == 0 && pin->fed_bytes < pin->bytes) {", "if (i == 0 && pin->fed_bytes < pin->bytes) {"),
    ("a delay counts as the step's time", "check_arm.c", "status = wait_stream(check, check->config.feed_stream, limit_behind(check, delayed), late);",
     "status = wait_stream(check, check->config.feed_stream, limit_behind(check, delayed && late == NULL), late);"),
    ("with few slots the host waits", "check_arm.c", "check->session->feed_slots / 2 > 2 ? check->session->feed_slots / 2 : 2", "check->session->feed_slots / 2"),
    ("scratch that is gone is filled", "check.c", "        status = scratch_alive(check);\n", "        status = scratch_alive != NULL ? status : STEPGRAPH_OK;\n"),
    ("nothing is done from another beginning", "check_control.c", "        if (check->unsteady || check->records[j].fault)\n            return STEPGRAPH_OK;\n    status = launches_altered",
     "        return STEPGRAPH_OK;\n    status = launches_altered"),
    ("cells are altered by little alone", "check_control.c", "return status == STEPGRAPH_OK ? other_beginning(&control, true) : status;", "return status;"),
    ("controls begin from what the last step left", "check_control.c", "if (status == STEPGRAPH_OK && differ > 0)\n        status = sg__shot_save_groups(&check->shots, control->base, SG__GROUP_INPUT);", ""),
    ("inputs are not compared", "check_arm.c", "#define STATES_AND_MORE ((unsigned int)(SG__GROUP_STATE | SG__GROUP_INPUT | SG__GROUP_OUTPUT))", "#define STATES_AND_MORE ((unsigned int)(SG__GROUP_STATE | SG__GROUP_OUTPUT))"),
    ("states are not compared", "check_arm.c", "#define STATES_AND_MORE ((unsigned int)(SG__GROUP_STATE | SG__GROUP_INPUT | SG__GROUP_OUTPUT))", "#define STATES_AND_MORE ((unsigned int)(SG__GROUP_INPUT | SG__GROUP_OUTPUT))"),
    ("outputs are not compared", "check_arm.c", "#define STATES_AND_MORE ((unsigned int)(SG__GROUP_STATE | SG__GROUP_INPUT | SG__GROUP_OUTPUT))", "#define STATES_AND_MORE ((unsigned int)(SG__GROUP_STATE | SG__GROUP_INPUT))"),
    ("time has no limit", "wait.c", "&& waited < limit_ns)", "&& waited < limit_ns + 100000000000ull)"),
    ("a hanging session is not marked", "check_arm.c", "    sg__session_hangs(check->session, event, step->name);\n", "    (void)event;\n"),
    ("fresh launches do not wait for feeds", "check_arm.c", "    if (status == STEPGRAPH_OK && check->config.feed_stream != NULL)\n        status = wait_stream(check, check->config.feed_stream, check->config.timeout_ns, &late);\n",
     "    (void)late;\n"),
    # What it means.
    ("lucky pins are faults", "check_judge.c", "(same(waited, &record->arms[SG__ARM_AGAIN]) && same(waited, &record->arms[SG__ARM_AGAIN_2]))", "true"),
    ("repeated small differences are no faults", "check_judge.c", "(same(waited, &record->arms[SG__ARM_AGAIN]) && same(waited, &record->arms[SG__ARM_AGAIN_2]))", "false"),
    ("old values are not told from noise", "check_judge.c", "if (record->filled_alike) {", "if (record->filled_alike && item->pin->bytes == 0) {"),
    ("unwritten outputs are not noted", "check_judge.c", "            record->facts |= STEPGRAPH_CHECK_UNWRITTEN;\n", "            record->facts |= 0;\n"),
    ("an order is not told", "check_judge.c", "record->facts |= record->fault ? STEPGRAPH_CHECK_ORDER : 0;", "record->facts |= 0;"),
    ("steps without effect pass", "check_report.c", "    if (!changes)\n", "    if (!changes && report->n_pins == 0)\n"),
    ("a planted fault need not be seen", "check_report.c", "    if (states && s->planted_seen == 0)\n", "    if (states && s->planted_seen > 1)\n"),
    ("feeds need not be read", "check_report.c", "    if (feeds && !feeds_read)\n", "    if (feeds && !feeds_read && report->n_pins == 0)\n"),
    ("outputs need not be written", "check_report.c", "    if (s->outputs_unwritten > 0)\n", "    if (s->outputs_unwritten > 1000)\n"),
    # Controls.
    ("no fault is planted", "check_control.c", "item->pin->address + at, 1, 1, mask)", "item->pin->address + at, 1, 1, 0)"),
    ("controls do not go back", "check_control.c", "    stepgraph_status status = sg__shot_restore(&check->shots, check->start, SG__GROUP_STATE);\n", "    stepgraph_status status = STEPGRAPH_OK;\n"),
    ("controls keep their inputs", "check_control.c", "        status = sg__shot_restore(&check->shots, control->base, SG__GROUP_INPUT);\n", "        status = STEPGRAPH_OK;\n"),
    ("controls are not filled", "check_control.c", "return status == STEPGRAPH_OK ? sg__check_fill(check, SG__FILL_A) : status;", "return status;"),
    ("controls are not compared", "check_control.c", "            *seen_out = true;\n", "            *seen_out = false;\n"),
    ("controls see everything", "check_control.c", "    *seen_out = false;\n    status = sg__check_compare(check, &check->shots, control->base", "    *seen_out = true;\n    status = sg__check_compare(check, &check->shots, control->base"),
    ("controls do not run", "check_control.c", "    SG__CU(session->driver, GraphLaunch, control->check->step->exec, session->stream);\n    return STEPGRAPH_OK;\n\nfail:\n    return status;", "    (void)session;\n    status = STEPGRAPH_OK;\n    return status;"),
    ("controls of a wrong graph use the right one's results", "check_control.c", "    if (status != STEPGRAPH_OK || right)\n        return status;\n    status = launch(control);", "    if (status != STEPGRAPH_OK || launch != NULL)\n        return status;\n    status = launch(control);"),
    ("inputs are not altered", "check_control.c", "status = other != 0 ? sg__shot_restore_one(&check->shots, check->after[other], j) : alter_numbers(item->pin, true);", "status = STEPGRAPH_OK;"),
    ("no other value is looked for", "check_control.c", "                other[j] = i;\n", "                other[j] = 0;\n"),
    ("unsafe inputs are altered", "check_control.c", "if (other == 0 && !has_numbers(item->pin)) {", "if (other == 0 && item->pin->bytes == 0) {"),
    ("padding is not altered", "check_control.c", "pin->address + live, pin->bytes - live, pin->address, live)", "pin->address, 0 * live, pin->address, live)"),
    ("padding always counts", "check_control.c", "facts |= changed ? STEPGRAPH_CHECK_PADDING : 0;", "facts |= STEPGRAPH_CHECK_PADDING;"),
    # The search.
    ("the search does not go back", "check_search.c", "    stepgraph_status status = sg__shot_restore(&check->shots, before, SG__GROUP_STATE);\n", "    stepgraph_status status = before > 99 ? STEPGRAPH_ERR_STATE : STEPGRAPH_OK;\n"),
    ("the search keeps its inputs", "check_search.c", "        status = sg__shot_restore(&check->shots, check->after[search->step], SG__GROUP_INPUT);\n", "        status = STEPGRAPH_OK;\n"),
    ("the search does not feed", "check_search.c", "        status = sg__check_feed(check, search->step);\n", "        status = STEPGRAPH_OK;\n"),
    ("nothing is suspected", "check_search.c", "        name_suspect(check);\n        stepgraph_audit_destroy(audit);", "        stepgraph_audit_destroy(audit);"),
    ("the search does not fill", "check_search.c", "return status == STEPGRAPH_OK ? sg__check_fill(check, SG__FILL_A) : status;", "return status;"),
    ("the search runs whole graphs", "check_search.c", "            SG__CU(driver, GraphNodeSetEnabled, prefix->exec, node->handle, on ? 1 : 0);", "            (void)node;"),
    ("clones are not cut", "check_search.c", "        SG__CU(driver, GraphDestroyNode, node);\n", ""),
    ("the search compares scratch that moves", "check_search.c", "!search->scratch_moves && ", ""),
    ("the search never compares scratch", "check_search.c", "    if (!search->scratch_moves && ", "    if (search->scratch_moves && "),
    # Afterwards.
    ("nothing is put back", "check.c", "    if (status == STEPGRAPH_OK)\n        status = put_back(check, advance);\n", ""),
    ("feeds are not put back on the host", "check.c", "        sg__feeds_image_restore(session, advance ? check->feeds_after : check->feeds_before);\n", "        (void)session;\n"),
    ("counts are not put back", "check.c", "    step->stats.replays = check->stats.replays;\n", ""),
    ("the host is not rewound at the end", "check.c", "    return status == STEPGRAPH_OK ? sg__check_rewind(check, check->config.first + (advance ? check->steps : 0)) : status;\n", "    return status;\n"),
    ("an overwritten last step is taken for right", "check.c", "advance && !check->last_valid)", "advance && check->steps == 0)"),
    ("strict feeds forget what was fed before", "check.c", "step->used_feeds[i] = step->used[i]->feeds - (advance ? 0 : check->owed[i]);", "step->used_feeds[i] = step->used[i]->feeds;"),
    # Snapshots.
    ("host snapshots are not saved", "check_shot.c", "            SG__CU(shots->session->driver, MemcpyDtoHAsync, shot->host + window->offset, shots->staging, window->bytes, shots->session->stream);", "            continue;"),
    ("windows after the first are not compared", "check_shot.c", "        status = compare_window(shots, window, shot->table, fill, fill_now);\n", "        status = w > 0 ? STEPGRAPH_OK : compare_window(shots, window, shot->table, fill, fill_now);\n"),
    ("one pin is restored from elsewhere", "check_shot.c", "one->pin->address, shot->device + one->offset, one->pin->bytes", "one->pin->address, shot->device, one->pin->bytes"),
]

root = pathlib.Path(__file__).resolve().parents[2]
if sys.argv[1:] == ["--places"]:
    lost = [f"{name}: {n} places in lib/{file}" for name, file, old, _ in MUTANTS if (n := (root / "lib" / file).read_text().count(old)) != 1]
    print("\n".join(lost) or f"{len(MUTANTS)} places found")
    sys.exit(1 if lost else 0)
scratch = pathlib.Path(sys.argv[1])
wanted = sys.argv[2:]
source, build = scratch / "source", scratch / "build"
shutil.rmtree(scratch, ignore_errors=True)
shutil.copytree(root, source, ignore=shutil.ignore_patterns(".git"))
subprocess.run(["meson", "setup", build, source], check=True, stdout=subprocess.DEVNULL)
programs = ["tests/unit/test_check", "tests/unit/test_check_hosts"]
kernels = ["lib/kernels/stepgraph-kernels.so", "tests/kernels/test-kernels.so"]
driver = "subprojects/cusim/libcusim.so"
env = dict(os.environ, STEPGRAPH_DRIVER=str(build / driver), CUSIM_KERNELS=":".join(str(build / pack) for pack in kernels))


def make():
    return subprocess.run(["ninja", "-C", build, *programs, *kernels, driver], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def red():
    """The tests of the first case in which some fail, or a word for why there are none to name."""
    cases = "right", "wrong", "determinism", "inputs", "planted", "order", "place", "memory", "calls", "time"
    for case, program in itertools.product(cases, programs):
        try:
            run = subprocess.run([build / program], env=dict(env, CK_RUN_CASE=case), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                 timeout=120)
        except subprocess.TimeoutExpired:
            return ["(does not end)"]
        names = [line.split(":")[4] for line in run.stdout.splitlines() if ":F:" in line or ":E:" in line]
        if names or run.returncode not in (0, 77):  # 77: it has no such case.
            return names or [f"(exit status {run.returncode})"]
    return []


first = make()
assert first.returncode == 0, first.stdout
assert red() == [], "the tests fail without any mutant"
survivors = 0
for name, file, old, new in MUTANTS:
    if wanted and not any(word in name for word in wanted):
        continue
    path = source / "lib" / file
    text = path.read_text()
    if text.count(old) != 1:
        print(f"NOT FOUND  {name}: {text.count(old)} places in {file}")
        survivors += 1
        continue
    path.write_text(text.replace(old, new))
    built = make()
    names = red() if built.returncode == 0 else ["DOES NOT BUILD"]
    path.write_text(text)
    bad = not names or names == ["DOES NOT BUILD"]
    survivors += bad
    print(f"{'SURVIVES   ' if bad else 'red        '}{name}: {', '.join(sorted(set(names))[:4]) if names else 'no test fails'}", flush=True)
print(f"{survivors} survive")
sys.exit(1 if survivors else 0)
