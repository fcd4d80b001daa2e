"""Tests of the Python package in examples/pytorch:   python3 check.py WHAT LIBRARY [COMPILER...]

    current       stepgraph/abi.py is what declare.py writes now
    declarations  its sizes, offsets and constants are those that a C compiler finds in the headers, and every call is in the library
    prototypes    what each call, and each function in a struct, answers and is given is what a C++ compiler finds
    handles       what is written is read; options that there are not and objects that are gone are refused
    recording     a step is recorded four times and compared, on the driver that STEPGRAPH_DRIVER names
    loop          steps are launched, recorded, checked and replayed there
    functions     the library calls functions of Python's, and one that raises has failed
    recorder      the same through stepgraph.pytorch, with a stand-in for PyTorch
    training      parameters, an optimizer, gradients
    recorders     many of them, one after the other
    arena         and with an arena as PyTorch's memory
"""
import array
import copy
import ctypes
import gc
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time
import types
import warnings
import weakref

sys.dont_write_bytecode = True
import cases  # noqa: E402, F401: puts the package on the path
import declare  # noqa: E402
import stepgraph  # noqa: E402
from stepgraph import abi  # noqa: E402

what, path, *compiler = sys.argv[1:]
wrong = []


def check(truth, words):
    if not truth:
        wrong.append(words)


def current():
    check(declare.FILE.read_text(encoding="utf-8") == declare.module(declare.Headers()),
          f"{declare.FILE.name} is not what the headers declare: python3 tests/frameworks/declare.py")
    check(len(abi.STRUCTS) > 12 and len(abi.CALLS) > 50 and len(abi.CONSTANTS) > 100, "too little was found in the headers")


def said_by(source, suffix):
    """What a program prints, line by line."""
    with tempfile.TemporaryDirectory() as tmp:
        text, program = pathlib.Path(tmp, "facts" + suffix), pathlib.Path(tmp, "facts")
        text.write_text(source, encoding="utf-8")
        subprocess.run([*compiler, "-I", str(declare.INCLUDE.parent), "-o", str(program), str(text)], check=True)
        return subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout.splitlines()


def declarations():
    entry = ctypes.CDLL(path)
    facts = {f"STEPGRAPH_{name}": value for name, value in abi.CONSTANTS.items()}
    for name, struct in stepgraph.STRUCTS.items():
        facts[f"sizeof(stepgraph_{name})"] = ctypes.sizeof(struct)
        for field, _ in struct._fields_:
            facts[f"offsetof(stepgraph_{name}, {field})"] = getattr(struct, field).offset
            facts[f"sizeof(((stepgraph_{name} *)0)->{field})"] = getattr(struct, field).size
    lines = "\n".join(f'    printf("%lld\\n", (long long)({fact}));' for fact in facts)
    found = said_by("#include <stdio.h>\n#include <stepgraph/stepgraph.h>\nint main(void)\n{\n" + lines + "\n    return 0;\n}\n", ".c")
    for (fact, ours), theirs in zip(facts.items(), found, strict=True):
        check(ours == int(theirs), f"{fact} is {theirs}, not {ours}")
    for name in abi.CALLS:
        check(hasattr(entry, "stepgraph_" + name), f"stepgraph_{name} is declared and not in the library")
    print(f"{len(abi.STRUCTS)} structs, {len(abi.CALLS)} calls, {len(facts)} facts")


KINDS = r"""
#include <cstdio>
#include <stepgraph/stepgraph.h>
template <typename T> struct kind { static const char *is() { return __is_enum(T) ? "word" : "?"; } };
template <typename T> struct kind<T *> { static const char *is() { return "pointer"; } };
template <> struct kind<const char *> { static const char *is() { return "text"; } };
#define KIND(type, words) template <> struct kind<type> { static const char *is() { return words; } };
KIND(void, "nothing") KIND(char, "char") KIND(float, "float") KIND(double, "double") KIND(int32_t, "int32") KIND(int64_t, "int64")
KIND(uint32_t, "uint32") KIND(uint64_t, "uint64")
template <typename R, typename... A> void tell(R (*)(A...))
{
    std::printf("%s", kind<R>::is());
    const char *all[] = { kind<A>::is()..., nullptr };
    for (int i = 0; all[i] != nullptr; i++)
        std::printf(" %s", all[i]);
    std::printf("\n");
}
int main()
{
"""


def prototypes():
    kinds = [f"&stepgraph_{name}" for name in abi.CALLS] + [f"stepgraph_{name.replace('.', '::')}" for name in abi.FUNCTIONS]
    lines = "".join(f"    tell(static_cast<decltype({kind})>(nullptr));\n" for kind in kinds)
    for (name, ours), theirs in zip((abi.CALLS | abi.FUNCTIONS).items(), said_by(KINDS + lines + "}\n", ".cpp"), strict=True):
        ours = ours.replace("size_t", "uint64")
        check(ours == theirs, f"stepgraph_{name}: {ours} in Python, {theirs} in C")


def refused(kind, words, call, *arguments, **options):
    try:
        call(*arguments, **options)
    except kind as error:
        check(words in str(error), f"{words!r} is not in {str(error)!r}")
    else:
        check(False, f"nothing was said that {words!r} is in")


def handles():
    library = stepgraph.Library(path)
    session = stepgraph.Session(library)
    weight = stepgraph.Pin(session, "weight", library.ROLE_STATE, 8)
    weight.write(b"\x01\x02\x03\x04\x05\x06\x07\x08")
    check(weight.read() == bytes(range(1, 9)), "what was written is not what is read")
    refused(stepgraph.Error, "weight", weight.write, b"short")
    numbers = array.array("f", [1.5, -2.25])
    weight.write(numbers)
    check(weight.read() == numbers.tobytes(), "what was written as numbers is not what is read")
    fed = stepgraph.Pin(session, "fed", library.ROLE_FEED, 8)
    for value in (numbers.tobytes(), bytearray(numbers.tobytes()), memoryview(numbers), numbers):
        fed.feed_bytes(bytes(8))
        fed.feed_bytes(value)
        library.call("session_flush", session)
        check(fed.read() == numbers.tobytes(), f"what was fed as a {type(value).__name__} is not what is read: {fed.read()}")
    refused(TypeError, "chek_every", stepgraph.Loop, session, chek_every=50)
    relax = library.new("relax_config")
    kept = stepgraph.Loop(session, relax=relax)
    check(kept.config.relax == ctypes.addressof(relax) and relax in kept.config.alive, "the loop's options for relaxing do not live as long as it")
    loop, step = stepgraph.Loop(session, name="train"), stepgraph.Step(session, "step", 0)
    step.destroy()
    refused(stepgraph.Error, "NULL", step.replay)
    session.close()
    session.close()
    step.destroy()
    for make in (lambda session: stepgraph.Pin(session, "pin", library.ROLE_STATE, 8), lambda session: stepgraph.Arena(session, "arena", 4096), stepgraph.Loop):
        kept = make(stepgraph.Session(library, log=lambda level, line: None))
        gc.collect()
        check(isinstance(getattr(kept, "session", None), stepgraph.Session), f"the log of a session is gone before its {type(kept).__name__}")
        kept.session.close()
    for call, *arguments in ((session.wait,), (weight.read,), (loop.begin, 0), (loop.stats,)):
        refused(stepgraph.Error, "NULL", call, *arguments)


def recording():
    library = stepgraph.Library(path)
    session = stepgraph.Session(library, driver_path=os.environ.get("STEPGRAPH_DRIVER"))
    stream = ctypes.c_void_p(session.stream)
    pushed = session.symbol("cuCtxSetCurrent", 4000, ctypes.c_void_p)(library.get("session_context", session))
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
    found = cases.figures(steps[:2], steps[2:], audit, lambda: check(fill(one, 7, 1024, stream) == 0, "a set was refused"))
    check(found["nodes"] == 1 and found["kernels"] == 0 and found["faults"] == 2 and found["doubtful"] == 0, str(found))
    check(found["end_us_per_node"] > found["read_us_per_node"] > 0 and found["raw_us_per_node"] > found["instantiate_us_per_node"] > 0, str(found))
    steps[3].replay()

    session.unread(("cupy_*", None, 24, 16, 8), ("other", 3, 40, 24, 16))
    try:
        session.unread(("cupy_*", None, 24, 16, 8), ("other", 3, 40, 32, 16))
        check(False, "bytes beyond their argument were let pass")
    except stepgraph.Error as error:
        check(error.status == library.ERR_ARGUMENT and "number 1" in str(error) and "16 bytes at 32" in str(error), str(error))
    session.unread()

    try:
        session.record("refused", lambda: fill(one, 7, 1024, stream))
        check(False, "an address without a pin was let pass")
    except stepgraph.Error as error:
        check(error.status == library.ERR_REFUSED and "that no pin covers" in str(error), str(error))
    try:
        session.record("broken", lambda: {}["missing"], library.STEP_ALLOW_UNREGISTERED)
        check(False, "what the host raised was lost")
    except RuntimeError as error:
        check("KeyError" in cases.told(error) and "KeyError" in str(error), cases.told(error))

    def half():
        check(fill(one, 9, 1024, stream) == 0, "a set was refused")
        raise ValueError("half a step")

    count = len(session.steps)
    refused(RuntimeError, "half a step", session.record, "half", half, library.STEP_ALLOW_UNREGISTERED)
    check(len(session.steps) == count, "a step that nobody has stays in its session")
    again = stepgraph.Step(session, "again", library.STEP_ALLOW_UNREGISTERED)
    refused(RuntimeError, "half a step", again.record, half)
    refused(stepgraph.Error, "it has no graph", again.replay)

    alive = []

    def holds():
        activation = set()
        alive.append(weakref.ref(activation))
        raise ValueError("half a step")

    gc.disable()
    refused(RuntimeError, "half a step", again.record, holds)
    check(alive[0]() is None, "what half a step held is still there")
    gc.enable()

    def interrupted():
        check(fill(one, 9, 1024, stream) == 0, "a set was refused")
        raise KeyboardInterrupt

    try:
        refused(KeyboardInterrupt, "", again.record, interrupted)
    except RuntimeError as error:
        check(False, f"an interrupt has become an error: {error}")
    again.record(lambda: check(fill(one, 9, 1024, stream) == 0, "a set was refused"))
    again.replay()
    session.close()  # Lets the context go, and its memory with it
    print(audit.text)


class Trainer:
    """Steps that copy: y is what x was, x is what is fed, and the new value of w is written elsewhere and committed. A host does the same sums."""

    def __init__(self, session, extent=256):
        library, self.extent, self.session = session.library, extent, session
        self.copy = session.symbol("cuMemcpyDtoDAsync", 3020, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_void_p)
        roles = {"fed": library.ROLE_FEED, "x": library.ROLE_STATE, "y": library.ROLE_STATE, "w": library.ROLE_STATE, "fresh": library.ROLE_SCRATCH,
                 "seen": library.ROLE_OUTPUT}
        self.pins = {name: stepgraph.Pin(session, name, role, extent) for name, role in roles.items()}
        self.right = {name: bytes(extent) for name in ("x", "y", "w", "seen")}

    def feed(self, k):
        self.pins["fed"].feed_bytes(bytes([k % 251]) * self.extent)

    def run(self):
        for to, what in (("y", "x"), ("x", "fed"), ("fresh", "y"), ("seen", "w")):
            check(self.copy(self.pins[to].address, self.pins[what].address, self.extent, self.session.stream) == 0, "a copy was refused")
        self.session.commit([self.pins["w"]], [self.pins["fresh"].address])

    def expect(self, k):
        right = self.right
        self.right = {"y": right["x"], "x": bytes([k % 251]) * self.extent, "seen": right["w"], "w": right["x"]}
        for name, value in self.right.items():
            check(self.pins[name].read() == value, f"step {k}: {name} is {self.pins[name].read()[:4]}, not {value[:4]}")


def loop():
    library = stepgraph.Library(path)
    said = []
    session = stepgraph.Session(library, log=lambda level, line: said.append(line), log_level=library.LOG_INFO)
    loop, trainer, kinds = stepgraph.Loop(session, name="python", flags=library.LOOP_IGNORE_CLOCK), Trainer(session), []
    for k in range(20):
        again = True
        while again:
            turn = loop.begin(k)
            if turn.feed:
                trainer.feed(k)
            if turn.run:
                trainer.run()
            again = loop.end()
            kinds.append(turn.kind)
        trainer.expect(k)
    stats = loop.stats()
    check(stats.steps == 20 and stats.rung == library.RUNG_REPLAY and stats.checks_identical == stats.checks > 0, loop.report())
    check(kinds[:3] == [library.TURN_WARMUP] * 3 and kinds[-1] == library.TURN_REPLAY, str(kinds))
    check(loop.audit() is not None and not loop.audit().faults, loop.audit() and loop.audit().text)
    check(any("'python'" in line for line in said), str(said))
    check(loop.verdict().answer == library.UNKNOWN and "replay" in loop.report(), loop.report())
    arena = stepgraph.Arena(session, "arena", 4096)
    block = arena.allocate(100)
    arena.free(block)
    try:
        arena.free(block)
        check(False, "a block was freed twice")
    except stepgraph.Error as error:
        check(error.status == library.ERR_ARGUMENT, str(error))
    loop.drop(0, "a test")
    check(loop.turn.rung == library.RUNG_NONE, "what is known of a graph that was dropped")
    check(loop.begin(20).kind != library.TURN_REPLAY, "what was dropped is replayed")
    loop.cancel()
    try:
        loop.end()
        check(False, "a turn that was cancelled was ended")
    except stepgraph.Error as error:
        check(error.status == library.ERR_STATE and "no turn" in str(error), str(error))
    try:
        library.NO_SUCH_CONSTANT
        check(False, "a constant that is not there")
    except AttributeError:
        pass
    session.close()


def functions():
    library = stepgraph.Library(path)
    session = stepgraph.Session(library)
    trainer, seen = Trainer(session), []

    def checked(**given):
        config = library.new("check_config", **given)
        report = library.made("check_run", step, ctypes.byref(config))
        verdict = library.get("check_get_summary", report, ctypes.byref(summary := library.new("check_summary"))) or summary.verdict
        library.get("check_destroy", report)
        return verdict

    def enqueue(user, step, k):
        seen.append(k)
        trainer.run()

    def broken(user, step, k):
        trainer.run()
        raise ValueError("the host's own fault")

    step = session.record("step", trainer.run)
    verdict = checked(enqueue=enqueue, feed=lambda user, step, k: trainer.feed(k))
    check(verdict == library.IDENTICAL and {0, 1, 2} <= set(seen), f"verdict {verdict}, steps {seen}")
    refused(stepgraph.Error, "enqueue callback for step 0 answered STEPGRAPH_ERR_ARGUMENT", checked, enqueue=broken)
    refused(stepgraph.Error, "progress", checked, enqueue=enqueue, progress=lambda *given: 1)
    session.close()


def recorder():
    import fake_torch

    library = stepgraph.Library(path)
    fake_torch.use(stepgraph.Session(library))
    from stepgraph.pytorch import Recorder

    generator, said = fake_torch.generator, []
    generator.set_offset(100)
    made = Recorder(library, log=lambda level, line: said.append(line), check_every=20, flags=library.LOOP_IGNORE_CLOCK)
    trainer = Trainer(made.session)
    drawn = stepgraph.Pin(made.session, "drawn", library.ROLE_STATE, 8)
    calls, faults, kept = [], {}, []

    def feed(k):
        if faults.get("feed") == k:
            raise ValueError("no batch")
        trainer.feed(k)

    def run(k):
        """A step that draws once: what it draws is the offset, by value where it is launched, from the word where it is recorded."""
        calls.append(k)
        made.mark("copies")
        if faults.pop("run", None) == k:
            raise KeyError("broken")
        trainer.run()
        state = generator.state
        if state.recording:
            check(trainer.copy(drawn.address, state.words[1], 8, made.session.stream) == 0, "a copy was refused")
        else:
            made.session.wait()
            fake_torch.driver.write(drawn.address, ctypes.byref(ctypes.c_uint64(state.offset)), 8)
            state.offset += 12
        if "keep" in faults:
            kept.append(made.memory.pool.allocate())

    def step(k, **options):
        turn = made.step(k, feed, run, **options)
        trainer.expect(k)
        first = 100 + 12 * (k - start)
        check(int.from_bytes(drawn.read(), "little") == first, f"step {k} draws from {drawn.read()}, not from {first}")
        check(generator.get_offset() == first + 12, f"after step {k} the generator is at {generator.get_offset()}")
        return turn.kind

    start = 0
    with made:
        torch = fake_torch.torch
        number, row = made.input("number", (), torch.int64), made.input("row", (4,), torch.int64)
        made.feed(number, 7)
        made.feed(row, fake_torch.on_cpu([1, 2, 3, 4]))
        made.launch(lambda k: None, lambda k: None)
        check(made.pins["number"][0].read() == (7).to_bytes(8, "little") and made.pins["row"][0].read()[8:16] == (2).to_bytes(8, "little"), "what was fed is not there")
        for value in (7, fake_torch.on_cpu([1]), torch.ones(4, device="cuda", dtype=torch.int64)):
            try:
                made.feed(row, value)
                check(False, f"{value} was fed to a row of four")
            except ValueError as error:
                check("row" in str(error), str(error))

        refused(ValueError, "number", made.feed, number, 1 << 63)

        kinds = [step(k) for k in range(40)]
        check(kinds.count(library.TURN_CHECK) > made.loop.config.check_steps and kinds[-1] == library.TURN_REPLAY, str(kinds))
        check(made.loop.stats().cancelled == 0, f"{made.loop.stats().cancelled} turns were begun twice")
        check(made.loop.verdict().launches == 5, f"{made.loop.verdict().launches} launches a step, and 5 copies")
        check(re.search(r"copies +[\d.]+ +[\d.]+ +\d+ +\d+", made.report()), made.report())
        check(calls == sorted(calls) and calls.count(1) == 2 and len(calls) < 20, f"run() was called for {calls}")

        faults["feed"] = 40
        try:
            step(40)
            check(False, "an exception of feed() was lost")
        except ValueError:
            pass
        del faults["feed"]
        check(step(40) == library.TURN_REPLAY, "a step whose feed had failed is not replayed when it is taken again")

        made.loop.drop(0, "a test")
        faults["run"] = 41
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            check(step(41) == library.TURN_FALLBACK, "a step that could not be recorded is not launched")
        check(len(warned) == 1 and "KeyError: 'broken'" in str(warned[0].message), str([str(warning.message) for warning in warned]))
        check(any("the host reported" in line for line in said), str(said))

        faults["keep"] = True
        said.clear()
        check({step(k, key=1) for k in range(42, 50)} <= {library.TURN_WARMUP, library.TURN_FRESH}, "a step that keeps memory is recorded")
        check(sum("keeps" in line and "rewind()" in line for line in said) == 1, str(said))
        del faults["keep"]
        for block in kept:
            block["state"] = "inactive"
        check([step(k, key=2) for k in range(50, 70)][-1] == library.TURN_REPLAY, made.report())
        with made:
            step(70, key=2)
        check(step(71, key=3) == library.TURN_WARMUP, "a recorder that was entered twice is left once")
        refused(RuntimeError, "within another", made.step, 72, feed, lambda k: made.step(k, feed, run))
        step(72)
    check(generator.get_offset() == 100 + 12 * 73, f"outside of the recorder the generator is at {generator.get_offset()}")
    for call, *arguments in ((made.step, 73, feed, run, 2), (made.step, 73, feed, run, 4), (made.launch, feed, run)):
        refused(RuntimeError, "with recorder", call, *arguments)
    generator.set_offset(500)
    with made:
        made.step(73, feed, run, key=2)
        check(int.from_bytes(drawn.read(), "little") == 500, f"a generator that was set outside is not gone on with, but {drawn.read()}")
    made.close()


class Optimizer:
    """What a recorder looks at in one of PyTorch's: load_state_dict() makes new tensors, as PyTorch's does."""

    def __init__(self, parameter, rate, moment):
        self.state, self.param_groups = {parameter: {"moment": moment}}, [{"lr": rate, "params": [parameter]}]

    def load_state_dict(self, saved):
        parameter = self.param_groups[0]["params"][0]
        self.state = {parameter: dict(saved)}
        self.param_groups = [{"lr": 0.5, "params": [parameter]}]  # Saved before there was a scheduler, which adds to groups


def training():
    import fake_torch

    library = stepgraph.Library(path)
    fake_torch.use(stepgraph.Session(library))
    from stepgraph.pytorch import Recorder

    torch, session = fake_torch.torch, stepgraph.Session(library)
    enqueue = session.symbol("cuMemcpyDtoDAsync", 3020, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_void_p)

    def tensor(*numbers):
        made = fake_torch.Tensor(fake_torch.new(fake_torch.driver.allocate, ctypes.c_uint64, 512), (len(numbers),), torch.int64)
        fake_torch.driver.write(made.address, (ctypes.c_int64 * len(numbers))(*numbers), made.nbytes)
        return made

    def sessions():
        return sum(isinstance(known, stepgraph.Session) and known._as_parameter_ is not None for known in gc.get_objects())

    made = Recorder(library, flags=library.LOOP_IGNORE_CLOCK)
    before = sessions()
    try:
        Recorder(library, chek_every=50)
        check(False, "an option that there is not")
    except TypeError as error:
        check("chek_every" in str(error) and sessions() == before, f"{error}: {sessions()} sessions are open, and before {before} were")
    parameter, first, second = tensor(1), tensor(2), tensor(3)
    parameter.requires_grad = True
    model = types.SimpleNamespace(named_parameters=lambda: [("weight", parameter)], named_buffers=lambda: [])

    def run(k):
        """The parameter becomes its moment, and the moment what is fed."""
        check(optimizer.param_groups[0]["lr"] is rate, f"step {k} has a rate that nobody feeds")
        moment = optimizer.state[parameter]["moment"]
        for to, what in ((parameter, moment), (moment, rate)):
            check(enqueue(to.address, what.address, 8, made.session.stream) == 0, "a copy was refused")

    def breaks(k):
        """A step that waits for the device between its gradients and the end."""
        check(parameter.grad is None, f"step {k} finds a gradient that nobody has computed")
        check(all(activation() is None for activation in alive), f"step {k} finds memory that a broken recording has not given back")
        activation = set()
        alive.append(weakref.ref(activation))
        run(k)
        parameter.grad = first
        captures = ctypes.c_int()
        fake_torch.driver.capturing(made.stream.cuda_stream, ctypes.byref(captures))
        if captures.value:
            raise RuntimeError("not while a stream records")
        parameter.grad = None

    def step(k, run=run, **options):
        turn = made.step(k, lambda k: made.feed(rate, k), run, **options)
        return turn.kind, *(int.from_bytes(made.pins[name][0].read(), "little") for name in ("weight", "weight.moment"))

    with made:
        rate = made.input("rate", (), torch.int64)
        optimizer = Optimizer(parameter, rate, first)
        made.keep_model(model)
        made.keep_optimizer(optimizer, model)
        optimizer.param_groups[0]["initial_lr"] = tensor(1)
        copy.deepcopy(optimizer.param_groups[0]["lr"])  # As load_state_dict() does; and torch.save() takes all attributes of a tensor along
        for k in range(10, 30):
            kind, *values = step(k)
        check(kind == library.TURN_REPLAY and values == [28, 29], f"{kind}, {values}: {made.report()}")
        optimizer.load_state_dict({"moment": second})
        kind, *values = step(30)
        check(kind == library.TURN_REPLAY and values == [3, 30], f"after a state was loaded: {kind}, {values}")
        check(optimizer.state[parameter]["moment"] is first and optimizer.param_groups[0]["lr"] is rate, "what was loaded is elsewhere")
        alive = []
        gc.disable()
        with warnings.catch_warnings(record=True):
            kinds = [step(k, breaks, key=1)[0] for k in range(31, 37)]
        gc.enable()
        check(library.TURN_FALLBACK in kinds, str(kinds))
        prepared, prepare = [], made.memory.prepare
        made.memory.prepare = lambda: prepared.append(1) or prepare()
        for k in range(37, 47):
            step(k, breaks if k % 2 else run, key=k % 2)
        check(not prepared, f"steps that are decided by turns are prepared {len(prepared)} times")
        made.loop.drop(1, "a test")
        step(47)
        step(48, run, key=1)
        check(len(prepared) == 1, f"a step whose graph was dropped is prepared {len(prepared)} times")
        optimizer.load_state_dict({})
        refused(RuntimeError, "moment", step, 49)
    made.close()


def recorders():
    """One after the other, with streams of the host's between them: PyTorch has 32 streams, and none of a recorder's may be one of them."""
    import fake_torch

    library = stepgraph.Library(path)
    fake_torch.use(stepgraph.Session(library))
    from stepgraph.pytorch import Recorder

    others = set()
    for i in range(40):
        others |= {fake_torch.Stream().cuda_stream for _ in range(2)}
        made = Recorder(library, log=lambda level, line: None)
        check(made.stream.cuda_stream != made.random.side.cuda_stream, f"recorder {i} records on the stream of PyTorch's own recordings")
        check(not {made.stream.cuda_stream, made.random.side.cuda_stream} & others, f"recorder {i} has a stream of somebody else's")
        made.close()
    check(len(others) == 32, f"{len(others)} streams of PyTorch's")


def arena():
    """Steps whose temporaries come from an arena of the library's, through the allocator that takes PyTorch's place."""
    import fake_torch

    library = stepgraph.Library(path)
    fake_torch.use(stepgraph.Session(library))
    from stepgraph.pytorch import Recorder
    from stepgraph.pytorch_memory import ArenaMemory

    memory = ArenaMemory(library, quarantine=1024)
    allocate, free = fake_torch.installed
    check(allocate(0, 0, None) is None, "no bytes were allocated")
    blocks = []
    backward = threading.Thread(target=lambda: blocks.append(allocate(100, 0, None)))  # As PyTorch's, without a current context
    backward.start()
    backward.join()
    check(blocks[0] is not None, "no block in a thread without a current context")
    free(blocks[0], 100, 0, None)

    def interrupted(size):
        memory._from_driver = from_driver
        raise KeyboardInterrupt

    from_driver, memory._from_driver, block = memory._from_driver, interrupted, None
    try:
        block = allocate(5000, 0, None)
        time.sleep(5)
        check(False, "an interrupt was lost")
    except KeyboardInterrupt:
        pass
    check(block is not None, "PyTorch goes on without memory")
    free(block, 5000, 0, None)
    made = Recorder(library, memory=memory, flags=library.LOOP_IGNORE_CLOCK)
    trainer, used, kept, asked = Trainer(made.session), {True: set(), False: set()}, [], set()

    def run(k):
        blocks = [allocate(700, 0, None) for _ in range(3)]
        used[memory.recording].update(blocks)
        asked.add(made.loop.turn.flags)
        session = made.session
        check(trainer.copy(blocks[0], trainer.pins["x"].address, trainer.extent, session.stream) == 0, "a copy was refused")
        trainer.run()
        check(trainer.copy(trainer.pins["seen"].address, trainer.pins["seen"].address, 1, session.stream) == 0, "a copy was refused")
        for block in blocks:
            free(block, 700, 0, None)
        if k >= 30:
            kept.append(allocate(100, 0, None))

    with made:
        for k in range(30):
            turn = made.step(k, trainer.feed, run)
            trainer.expect(k)
        stats = library.filled("arena_get_stats", "arena_stats", memory.arena)
        inside = range(stats.address, stats.address + stats.bytes)
        check(turn.kind == library.TURN_REPLAY, made.report())
        check(library.TURN_KEEPS_NOTHING in asked, f"turn flags {asked}")
        check(used[True] and all(block in inside for block in used[True]), f"recorded: {used[True]}, and the arena is {inside}")
        check(len(used[False]) == 3 and not any(block in inside for block in used[False]), f"launched: {used[False]}")
        check(stats.blocks == 0 and stats.peak == 3 * 1024, f"{stats.blocks} blocks left, {stats.peak} bytes at most")
        made.loop.drop(0, "a test")
        said = []
        made._log = lambda level, line: said.append(line)
        for k in range(30, 40):
            turn = made.step(k, trainer.feed, run, key=1)
            trainer.expect(k)
        check(turn.kind == library.TURN_FRESH and any("keeps" in line for line in said), f"{turn.kind}: {said}")
    made.close()


{check.__name__: check for check in (current, declarations, prototypes, handles, recording, loop, functions, recorder, training, recorders, arena)}[what]()
for words in wrong:
    print(words)
sys.exit(1 if wrong else 0)
