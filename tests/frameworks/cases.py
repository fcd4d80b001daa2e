"""What scripts about a framework share: cases, each with its figures and with what is wrong, and the figures of recordings.

Puts the Python package of examples/pytorch on the path: import stepgraph.
"""
import ctypes
import json
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples/pytorch"))


# The recordings of step k, 0, and of step k + 1, 1, in an order in which nothing that only the time changes looks like the step
RECORDINGS = (0, 1, 1, 0, 1, 0, 0, 1, 1, 0)


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


def end_raw(session, enqueue):
    """Record by driver calls: microseconds of ending, instantiating and uploading, and those of instantiating alone."""
    pointer, number = ctypes.c_void_p, ctypes.c_ulonglong
    calls = {
        "cuStreamBeginCapture": (10010, pointer, ctypes.c_int),
        "cuStreamEndCapture": (10000, pointer, pointer),
        "cuGraphInstantiateWithFlags": (11040, pointer, pointer, number),
        "cuGraphUpload": (11010, pointer, pointer),
        "cuGraphExecDestroy": (10000, pointer),
        "cuGraphDestroy": (10000, pointer),
        "cuStreamSynchronize": (2000, pointer),
    }
    driver = {name: session.symbol(name, *how) for name, how in calls.items()}

    def call(name, *arguments):
        code = driver[name](*arguments)
        if code != 0:
            raise RuntimeError(f"{name}: code {code}")

    stream = ctypes.c_void_p(session.stream)
    graph, executable = ctypes.c_void_p(), ctypes.c_void_p()
    call("cuStreamBeginCapture", stream, 1)  # THREAD_LOCAL
    failure = None
    try:
        enqueue()
    except BaseException as error:  # The stream must be given back whatever happened.
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


def end_beside_driver(step, enqueue, times=7):
    """
    What end adds to the driver's own calls, in microseconds, by medians: the same work recorded anew, by turns with the library and by the
    driver's calls alone.
    """
    taken = {"end": [], "raw": [], "instantiate": [], "read": []}
    for turn in range(2 * times):
        if turn % 4 in (0, 3):
            step.library.call("step_reset", step)
            step.record(enqueue)
            taken["end"].append(step.end_us)
            taken["read"].append(step.audit().summary["read_ns"] / 1000)
        else:
            raw, instantiate = end_raw(step.session, enqueue)
            taken["raw"].append(raw)
            taken["instantiate"].append(instantiate)
    return {name: sorted(values)[len(values) // 2] for name, values in taken.items()}


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
        taken = end_beside_driver(first, enqueue)
        found.update({f"{name}_us_per_node": of_node(value) for name, value in taken.items()})
        found["added_of_instantiate"] = round((taken["end"] - taken["raw"]) / taken["instantiate"], 3)
    return found


def is_told_from_left_over(finding):
    """Only a pointer that moves between recordings of the same step may stay in doubt, however many there are (docs/audit.md)."""
    return finding["fault"] or finding["kind"] != "MOVED_POINTER"


def some(findings, most=12):
    """The first findings, for a person."""
    shown = [f"{'' if finding['fault'] else '(in doubt) ' if finding['doubtful'] else '(no fault) '}{finding['text']}" for finding in findings[:most]]
    return shown + ([f"and {len(findings) - most} more"] if len(findings) > most else [])


def unlike_expected(audit, expected_faults=0):
    """What is wrong with a comparison that should have found so many faults; [] if it did."""
    if audit.summary["faults"] == expected_faults and not any(is_told_from_left_over(finding) for finding in audit.accused if finding["doubtful"]):
        return []
    counted = f"{audit.summary['faults']} faults instead of {expected_faults}, and {audit.summary['doubtful']} in doubt: "
    return [counted + " | ".join(some(audit.accused, 6))]
