"""Tests of stepgraph_ctypes.py:   python3 check.py declarations LIBRARY CC...  |  python3 check.py recording LIBRARY

    declarations  sizes, offsets and constants are those that a C compiler finds in the headers, and every call is in the library
    recording     a step is recorded four times and compared, on the driver that STEPGRAPH_DRIVER names
"""
import ctypes
import os
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import stepgraph_ctypes as sg  # noqa: E402

what, path, *compiler = sys.argv[1:]
wrong = []


def check(truth, words):
    if not truth:
        wrong.append(words)


def declarations():
    headers = sg.Headers()
    entry = ctypes.CDLL(path)
    facts = dict(headers.constants)
    for name, struct in headers.structs.items():
        facts[f"sizeof({name})"] = ctypes.sizeof(struct)
        for field, _ in struct._fields_:
            facts[f"offsetof({name}, {field})"] = getattr(struct, field).offset
            facts[f"sizeof((({name} *)0)->{field})"] = getattr(struct, field).size
    lines = [f'    printf("%lld\\n", (long long)({fact}));' for fact in facts]
    program = "#include <stdio.h>\n#include <stepgraph/stepgraph.h>\nint main(void)\n{\n" + "\n".join(lines) + "\n    return 0;\n}\n"
    with tempfile.TemporaryDirectory() as tmp:
        source, program_file = pathlib.Path(tmp, "facts.c"), pathlib.Path(tmp, "facts")
        source.write_text(program)
        subprocess.run([*compiler, "-I", str(sg.INCLUDE.parent), "-o", str(program_file), str(source)], check=True)
        found = subprocess.run([str(program_file)], check=True, capture_output=True, text=True).stdout.split()
    for (fact, ours), theirs in zip(facts.items(), found, strict=True):
        check(ours == int(theirs), f"{fact} is {theirs}, not {ours}")
    for name in headers.calls:
        check(hasattr(entry, name) or "arena" in name, f"{name} is declared and not in the library")
    check(len(headers.structs) > 12 and len(headers.calls) > 50 and len(facts) > 200, "too little was found in the headers")
    print(f"{len(headers.structs)} structs, {len(headers.calls)} calls, {len(facts)} facts")


def recording():
    library = sg.Library(path)
    session = sg.Session(library, driver=os.environ.get("STEPGRAPH_DRIVER"))
    stream = ctypes.c_void_p(library.entry.stepgraph_session_stream(session.handle))
    pushed = session.symbol("cuCtxSetCurrent", 4000, ctypes.c_void_p)(library.entry.stepgraph_session_context(session.handle))
    allocate = session.symbol("cuMemAlloc", 3020, ctypes.c_void_p, ctypes.c_size_t)
    fill = session.symbol("cuMemsetD32Async", 3020, ctypes.c_uint64, ctypes.c_uint, ctypes.c_size_t, ctypes.c_void_p)
    buffers = [ctypes.c_uint64(), ctypes.c_uint64()]
    check(pushed == 0 and all(allocate(ctypes.byref(buffer), 4096) == 0 for buffer in buffers), "no memory")
    one, other = (buffer.value for buffer in buffers)

    def step(name, address, value):
        return session.record(name, lambda: check(fill(address, value, 1024, stream) == 0, "a set was refused"), library.STEP_ALLOW_UNREGISTERED)

    steps = [step("k", one, 7), step("k again", one, 7), step("k + 1", other, 8), step("k + 1 again", other, 8)]
    audit = session.compare(steps[:2], steps[2:])
    check({finding["kind"] for finding in audit.faults} == {"MOVED_POINTER", "CHANGING_SCALAR"}, audit.text)
    moved, changed = audit.of("MOVED_POINTER"), audit.of("CHANGING_SCALAR")
    check([(f["before"], f["after"]) for f in moved] == [(one, other)], audit.text)
    check([(f["before"], f["after"]) for f in changed] == [(7, 8)], audit.text)
    check(not session.compare(steps[2:3], steps[3:]).findings, "the same step twice, and a finding")
    found = sg.figures(steps[:2], steps[2:], audit, lambda: check(fill(one, 7, 1024, stream) == 0, "a set was refused"))
    check(found["nodes"] == 1 and found["kernels"] == 0 and found["faults"] == 2 and found["doubtful"] == 0, str(found))
    check(found["end_us_per_node"] > found["read_us_per_node"] > 0 and found["raw_us_per_node"] > found["instantiate_us_per_node"] > 0, str(found))
    steps[3].replay()

    try:
        session.record("refused", lambda: fill(one, 7, 1024, stream))
        check(False, "an address without a pin was let pass")
    except sg.Error as error:
        check(error.status == library.ERR_REFUSED and "that no pin covers" in str(error), str(error))
    try:
        session.record("broken", lambda: {}["missing"], library.STEP_ALLOW_UNREGISTERED)
        check(False, "what the host raised was lost")
    except RuntimeError as error:
        check("KeyError" in sg.told(error), sg.told(error))
    session.close()  # Lets the context go, and its memory with it
    print(audit.text)


{"declarations": declarations, "recording": recording}[what]()
for words in wrong:
    print(words)
sys.exit(1 if wrong else 0)
