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


def instantiate_us(step):
    """What the driver takes to instantiate the graph of a READY step once more; None where it refuses: a graph that allocates."""
    session, library = step.session, step.library
    instantiate = session.symbol("cuGraphInstantiateWithFlags", 11040, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_ulonglong)
    destroy = session.symbol("cuGraphExecDestroy", 10000, ctypes.c_void_p)
    executable = ctypes.c_void_p()
    graph = library.get("step_graph", step)
    began = time.perf_counter_ns()
    code = instantiate(ctypes.byref(executable), graph, 0)
    taken = (time.perf_counter_ns() - began) / 1000
    if code != 0:
        return None
    destroy(executable)
    return taken


def figures(steps, comparison):
    """What recordings and their comparison cost and covered. The steps are READY and of the same form."""
    first = steps[0]
    audit, stats = first.audit().summary, first.stats()
    nodes = max(1, audit["nodes"])
    end_us = min(step.end_us for step in steps)
    tries = [instantiate_us(first) for _ in range(3)]
    instantiate = None if None in tries else min(tries)
    return {
        "nodes": audit["nodes"],
        "kernels": audit["kernels"],
        "unread": audit["unread"],
        "kernels_read_share": round(1 - stats.nodes_unread / max(1, audit["kernels"]), 4),
        "addresses": audit["addresses"],
        "in_pins": audit["in_pins"],
        "in_graph": audit["in_graph"],
        "bytes_compared": comparison.summary["bytes"],
        "end_us": round(end_us, 1),
        "end_us_per_node": round(end_us / nodes, 3),
        "instantiate_us": instantiate and round(instantiate, 1),
        "end_without_instantiate_us_per_node": instantiate and round((end_us - instantiate) / nodes, 3),
        "read_us_per_node": round(audit["read_ns"] / 1000 / nodes, 3),
        "recordings": len(steps),
        "compare_us": round(comparison.taken_us, 1),
        "compare_us_per_node": round(comparison.taken_us / nodes, 3),
        "findings": comparison.summary["findings"],
        "faults": comparison.summary["faults"],
    }


def some(findings, most=12):
    """The first findings, for a person."""
    shown = [f"{'' if finding['fault'] else '(no fault) '}{finding['text']}" for finding in findings[:most]]
    return shown + ([f"and {len(findings) - most} more"] if len(findings) > most else [])


def unlike_expected(audit, expected_faults=0):
    """What is wrong with a comparison that should have found so many faults; [] if it did."""
    if audit.summary["faults"] == expected_faults:
        return []
    return [f"{audit.summary['faults']} faults instead of {expected_faults}: " + " | ".join(some(audit.faults, 6))]
