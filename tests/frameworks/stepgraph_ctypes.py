"""libstepgraph from Python, without an extension: what the frameworks' tests need of it.

Structs, constants and signatures are read from the public headers, so that no copy of them can go stale; a test compares the result with
a C compiler's. The library is what STEPGRAPH_LIBRARY names, else the system's libstepgraph.so.0.
"""
import ctypes
import json
import os
import pathlib
import re
import sys
import time

INCLUDE = pathlib.Path(__file__).resolve().parents[2] / "include/stepgraph"

# ---- the headers -----------------------------------------------------------------------------------------------------

PLAIN = {
    "char": ctypes.c_char,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
    "size_t": ctypes.c_size_t,
    "int32_t": ctypes.c_int32,
    "int64_t": ctypes.c_int64,
    "uint32_t": ctypes.c_uint32,
    "uint64_t": ctypes.c_uint64,
}


class Headers:
    """What the headers declare: constants, structs by name, and (result, arguments) of each call. Stops at what it cannot read."""

    def __init__(self, folder=INCLUDE):
        files = sorted(pathlib.Path(folder).glob("*.h"))
        if not files:
            raise OSError(f"no headers in {folder}")
        text = "\n".join(re.sub(r"/\*.*?\*/", " ", path.read_text(encoding="utf-8"), flags=re.S) for path in files)
        defines = re.findall(r"^#define (STEPGRAPH_\w+) (\d+) *$", text, flags=re.M)
        self.constants = {name: int(value) for name, value in defines}
        code = re.sub(r"^#.*(?:\\\n.*)*$", "", text, flags=re.M)
        self.words = set(re.findall(r"typedef enum (\w+)", code))  # Enumerations are passed as int
        self.callbacks = set(re.findall(r"typedef [\w ]+\(\*(\w+)\)", code))
        for body in re.findall(r"\benum\b[^{;]*\{(.*?)\}", code, flags=re.S):
            for entry in filter(str.strip, body.split(",")):
                match = re.fullmatch(r"\s*(\w+)\s*=\s*(-?\d+)u?(?:\s*<<\s*(\d+))?\s*", entry)
                if not match:
                    raise ValueError(f"cannot read the enumerator {entry.strip()!r}")
                self.constants[match[1]] = int(match[2]) << int(match[3] or 0)
        self.structs = {}
        for name, body in re.findall(r"typedef struct \w+ \{(.*?)\} (\w+);", code, flags=re.S):
            name, body = body, name
            fields = [self.field(declaration) for declaration in body.split(";") if declaration.strip()]
            self.structs[name] = type(name, (ctypes.Structure,), {"_fields_": fields})
        self.calls = {}
        for result, name, arguments in re.findall(r"STEPGRAPH_API\s+([\w ]+?[ *]+)(\w+)\((.*?)\);", code, flags=re.S):
            given = [] if arguments.strip() in ("", "void") else arguments.split(",")
            self.calls[name] = (self.passed(result), [self.passed(re.sub(r"\w+\s*$", "", one)) for one in given])

    def field(self, declaration):
        if match := re.fullmatch(r"\s*[\w ]+\(\*(\w+)\)\(.*\)\s*", declaration, flags=re.S):
            return match[1], ctypes.c_void_p
        match = re.fullmatch(r"\s*([\w ]+?)([ *]+)(\w+)(?:\[(\w+)\])?\s*", declaration)
        if not match:
            raise ValueError(f"cannot read the field {declaration.strip()!r}")
        kind, stars, name, length = match.groups()
        if "*" in stars or kind in self.callbacks:
            found = ctypes.c_void_p
        else:
            found = PLAIN[kind]
        if length:
            found = found * (int(length) if length.isdigit() else self.constants[length])
        return name, found

    def passed(self, kind):
        words = kind.replace("*", " * ").split()
        if "*" in words:
            return ctypes.c_char_p if words == ["const", "char", "*"] else ctypes.c_void_p
        if words == ["void"]:
            return None
        return ctypes.c_int if words[-1] in self.words else PLAIN[words[-1]]


# ---- the library -----------------------------------------------------------------------------------------------------


class Error(Exception):
    def __init__(self, status, words):
        super().__init__(words)
        self.status = status


class Library:
    def __init__(self, path=None):
        self.headers = Headers()
        self.entry = ctypes.CDLL(path or os.environ.get("STEPGRAPH_LIBRARY") or "libstepgraph.so.0")
        for name, (result, arguments) in self.headers.calls.items():
            call = getattr(self.entry, name, None)
            if call is not None:
                call.restype, call.argtypes = result, arguments

    def __getattr__(self, name):
        """Constants without their prefix: library.STEP_TIMING."""
        try:
            return self.headers.constants["STEPGRAPH_" + name]
        except KeyError:
            raise AttributeError(name) from None

    def new(self, name, **fields):
        record = self.headers.structs["stepgraph_" + name]()
        record.size = ctypes.sizeof(record)
        for key, value in fields.items():
            setattr(record, key, value)
        return record

    def call(self, name, *arguments):
        """A call that answers a status; raises its words."""
        status = getattr(self.entry, "stepgraph_" + name)(*arguments)
        if status != 0:
            info = self.new("error_info")
            self.entry.stepgraph_last_error(ctypes.byref(info))
            raise Error(status, info.message.decode(errors="replace") or f"stepgraph_{name}: status {status}")


class Session:
    """On a stream of the host's; close it with its steps."""

    def __init__(self, library, context=None, stream=None, driver=None):
        self.library = library
        self.steps = []
        handle = ctypes.c_void_p()
        config = library.new("session_config", context=context, stream=stream)
        if driver is not None:
            self.path = ctypes.create_string_buffer(os.fsencode(driver))
            config.driver_path = ctypes.addressof(self.path)
        library.call("session_open", ctypes.byref(config), ctypes.byref(handle))
        self.handle = handle

    def symbol(self, name, version, *argument_types):
        """An entry point of the driver; its result is 0 or a code."""
        address = self.library.entry.stepgraph_session_symbol(self.handle, name.encode(), version)
        if not address:
            raise Error(0, f"the driver has no {name}")
        return ctypes.CFUNCTYPE(ctypes.c_int, *argument_types)(address)

    def record(self, name, enqueue, flags=0):
        """Record what enqueue() enqueues. A refusal by end raises an Error with the audit's text."""
        step = Step(self, name, flags)
        step.record(enqueue)
        return step

    def compare(self, a, b):
        """Recordings of step k against recordings of step k + 1: a list of each, in the order of recording."""
        handle = ctypes.c_void_p()
        given = [(ctypes.c_void_p * len(steps))(*(step.handle for step in steps)) for steps in (a, b)]
        began = time.perf_counter_ns()
        self.library.call("audit_compare_many", len(a), given[0], len(b), given[1], ctypes.byref(handle))
        taken = time.perf_counter_ns() - began
        return Audit(self.library, handle, taken / 1000)

    def end_raw(self, enqueue):
        """Record by driver calls: microseconds of ending, instantiating and uploading, and those of instantiating alone."""
        p, n = ctypes.c_void_p, ctypes.c_ulonglong
        calls = {
            "cuStreamBeginCapture": (10010, p, ctypes.c_int),
            "cuStreamEndCapture": (10000, p, p),
            "cuGraphInstantiateWithFlags": (11040, p, p, n),
            "cuGraphUpload": (11010, p, p),
            "cuGraphExecDestroy": (10000, p),
            "cuGraphDestroy": (10000, p),
            "cuStreamSynchronize": (2000, p),
        }
        driver = {name: self.symbol(name, *how) for name, how in calls.items()}

        def call(name, *arguments):
            code = driver[name](*arguments)
            if code != 0:
                raise Error(code, f"{name}: code {code}")

        stream = ctypes.c_void_p(self.library.entry.stepgraph_session_stream(self.handle))
        graph, executable = ctypes.c_void_p(), ctypes.c_void_p()
        call("cuStreamBeginCapture", stream, 1)  # THREAD_LOCAL
        failure = None
        try:
            enqueue()
        except BaseException as error:
            failure = error
        began = time.perf_counter_ns()
        call("cuStreamEndCapture", stream, ctypes.byref(graph))
        if failure is not None:
            raise failure
        ended = time.perf_counter_ns()
        call("cuGraphInstantiateWithFlags", ctypes.byref(executable), graph, 0)
        instantiated = time.perf_counter_ns()
        call("cuGraphUpload", executable, stream)
        done = time.perf_counter_ns()
        call("cuStreamSynchronize", stream)
        call("cuGraphExecDestroy", executable)
        call("cuGraphDestroy", graph)
        return (done - began) / 1000, (instantiated - ended) / 1000

    def close(self):
        for step in self.steps:
            self.library.entry.stepgraph_step_destroy(step.handle)
        self.steps = []
        self.library.call("session_close", self.handle)


class Step:
    def __init__(self, session, name, flags):
        self.session, self.library = session, session.library
        self.end_us = 0.0
        handle = ctypes.c_void_p()
        self.name = name.encode()
        config = self.library.new("step_config", flags=flags)
        self.text = ctypes.create_string_buffer(self.name)
        config.name = ctypes.addressof(self.text)
        self.library.call("step_begin", session.handle, ctypes.byref(config), ctypes.byref(handle))
        self.handle = handle
        session.steps.append(self)

    def record(self, enqueue):
        call = self.library.call
        call("step_prepare", self.handle)
        call("step_capture", self.handle)
        failure = None
        try:
            enqueue()
        except BaseException as error:  # The stream must be given back whatever happened.
            failure = error
        began = time.perf_counter_ns()
        status = self.library.entry.stepgraph_step_end(self.handle)
        self.end_us = (time.perf_counter_ns() - began) / 1000
        info = self.library.new("error_info")
        self.library.entry.stepgraph_last_error(ctypes.byref(info))
        words = info.message.decode(errors="replace")
        if failure is not None:
            raise RuntimeError(f"step {self.name.decode()!r} was not recorded to its end, which says: {words or 'nothing'}") from failure
        if status == self.library.ERR_REFUSED:
            words = self.audit().text
        if status != 0:
            raise Error(status, words)

    def end_beside_driver(self, enqueue, times=7):
        """
        What end adds to the driver's own calls, in microseconds, by medians: the same work recorded anew, by turns with the library and by the
        driver's calls alone.
        """
        taken = {"end": [], "raw": [], "instantiate": [], "read": []}
        for turn in range(2 * times):
            if turn % 4 in (0, 3):
                self.library.call("step_reset", self.handle)
                self.record(enqueue)
                taken["end"].append(self.end_us)
                taken["read"].append(self.audit().summary["read_ns"] / 1000)
            else:
                raw, instantiate = self.session.end_raw(enqueue)
                taken["raw"].append(raw)
                taken["instantiate"].append(instantiate)
        return {name: sorted(values)[len(values) // 2] for name, values in taken.items()}

    def replay(self):
        self.library.call("step_replay", self.handle)

    def stats(self):
        stats = self.library.new("step_stats")
        self.library.call("step_get_stats", self.handle, ctypes.byref(stats))
        return stats

    def audit(self):
        handle = ctypes.c_void_p()
        self.library.call("audit_step", self.handle, ctypes.byref(handle))
        return Audit(self.library, handle, 0.0)


class Audit:
    """A report, copied: a summary, its findings as dictionaries, its text."""

    def __init__(self, library, handle, taken_us):
        self.taken_us = taken_us
        summary = library.new("audit_summary")
        library.call("audit_get_summary", handle, ctypes.byref(summary))
        self.summary = {name: getattr(summary, name) for name, _ in summary._fields_ if name != "size"}
        self.text = library.entry.stepgraph_audit_text(handle).decode(errors="replace")
        prefix = "STEPGRAPH_FINDING_"
        kinds = {value: name[len(prefix) :] for name, value in library.headers.constants.items() if name.startswith(prefix)}
        self.findings = []
        for index in range(summary.kept):
            finding = library.new("finding")
            library.call("audit_get", handle, index, ctypes.byref(finding))
            found = {name: getattr(finding, name) for name, _ in finding._fields_ if name != "size"}
            for name, value in found.items():
                if isinstance(value, bytes):
                    found[name] = value.decode(errors="replace")
            found["kind"] = kinds[finding.kind]
            self.findings.append(found)
        library.entry.stepgraph_audit_destroy(handle)

    @property
    def faults(self):
        return [finding for finding in self.findings if finding["fault"]]

    @property
    def accused(self):
        """Faults, and what is in doubt."""
        return [finding for finding in self.findings if finding["fault"] or finding["doubtful"]]

    def of(self, kind):
        return [finding for finding in self.faults if finding["kind"] == kind]


# ---- a script about a framework --------------------------------------------------------------------------------------


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def told(error):
    """An error and what it came from, on one line."""
    words = []
    while error is not None:
        words.append(f"{type(error).__name__}: {' | '.join(str(error).splitlines())[:600]}")
        error = error.__cause__ or error.__context__
    return ", after ".join(words)


class Report:
    """Cases, each with its figures and with what is wrong; printed as one line of JSON, last."""

    def __init__(self, script, **facts):
        self.facts = {"script": script, **facts}
        self.cases = []

    def case(self, name, run, optional=False):
        """Run one case: it answers a dictionary, with what is wrong in the list 'wrong'. A case that raises is wrong, or left out."""
        began = time.perf_counter()
        try:
            case = run()
        except Exception as error:  # One case must not hide the others.
            case = {"left_out": told(error)} if optional else {"wrong": [told(error)]}
        case = {**case, "case": name, "seconds": round(time.perf_counter() - began, 2)}
        case.setdefault("wrong", [])
        print(f"{name}: {'; '.join(case['wrong']) or case.get('left_out') or 'as expected'}", flush=True)
        self.cases.append(case)

    def finish(self):
        wrong = sum(bool(case["wrong"]) for case in self.cases)
        print(json.dumps({**self.facts, "ok": wrong == 0 and bool(self.cases), "wrong": wrong, "cases": self.cases}), flush=True)
        os._exit(0 if wrong == 0 and self.cases else 1)  # How a framework takes itself down is not what is looked at


def figures(a, b, comparison, enqueue=None):
    """
    What recordings of two steps and their comparison cost and covered. The steps are READY, of the same form, and compared as given. With
    enqueue the first is recorded anew, several times, to see what end adds to the driver's own calls.
    """
    first, session = a[0], a[0].session
    audit, stats = first.audit().summary, first.stats()
    nodes = max(1, audit["nodes"])

    def of_node(microseconds):
        return round(microseconds / nodes, 3)

    two = sorted(session.compare(a[:1], b[:1]).taken_us for _ in range(5))[2]
    found = {
        "nodes": audit["nodes"],
        "kernels": audit["kernels"],
        "unread": audit["unread"],
        "kernels_read_share": round(1 - stats.nodes_unread / max(1, audit["kernels"]), 4),
        "addresses": audit["addresses"],
        "in_pins": audit["in_pins"],
        "in_graph": audit["in_graph"],
        "bytes_compared": comparison.summary["bytes"],
        "first_read_us_per_node": of_node(audit["read_ns"] / 1000),
        "recordings": len(a) + len(b),
        "compare_us_per_node": of_node(comparison.taken_us),
        "compare_two_us_per_node": of_node(two),
        "findings": comparison.summary["findings"],
        "doubtful": comparison.summary["doubtful"],
        "faults": comparison.summary["faults"],
    }
    if enqueue is not None:
        taken = first.end_beside_driver(enqueue)
        found.update({f"{name}_us_per_node": of_node(value) for name, value in taken.items()})
        found["added_of_instantiate"] = round((taken["end"] - taken["raw"]) / taken["instantiate"], 3)
    return found


def some(findings, most=12):
    """The first findings, for a person."""
    shown = [f"{'' if finding['fault'] else '(in doubt) ' if finding['doubtful'] else '(no fault) '}{finding['text']}" for finding in findings[:most]]
    return shown + ([f"and {len(findings) - most} more"] if len(findings) > most else [])


def unlike_expected(audit, expected_faults=0):
    """What is wrong with a comparison that should have found so many faults; [] if it did."""
    if audit.summary["faults"] == expected_faults and audit.summary["doubtful"] == 0:
        return []
    counted = f"{audit.summary['faults']} faults instead of {expected_faults}, and {audit.summary['doubtful']} in doubt: "
    return [counted + " | ".join(some(audit.accused, 6))]
