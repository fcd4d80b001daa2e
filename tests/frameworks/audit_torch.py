"""The audit of training steps of PyTorch, recorded from outside:   STEPGRAPH_LIBRARY=libstepgraph.so python3 audit_torch.py

A small language model with attention, forward, backward and update, recorded five times at step k and five times at step k + 1, and compared:

    recreated   parameters are made anew by each step, learning rate as a Python float: both must be named
    by value    the same in place: the learning rate must be named, and nothing else
    clean ...   AdamW with capturable=True, learning rate on the device, one with mixed precision and clipped gradients: nothing must be named

The last line is JSON. Exit status 0: all as expected, 1: not, 77: no PyTorch or no card.
"""
import sys

sys.dont_write_bytecode = True
import torch_host as host  # noqa: E402
from torch_host import cases, torch  # noqa: E402
from torch_steps import CLEAN, RATES, Bench, Clean  # noqa: E402


def compare(session, recordings):
    """(those of k, those of k + 1, the comparison), of pairs of which step and recording."""
    a, b = ([step for k, step in recordings if k == which] for which in (0, 1))
    return a, b, session.compare(a, b)


def figures(bench, a, b, audit, step):
    """Costs; records step again, so nothing that was recorded may be needed afterwards."""
    with host.in_place(bench.stream, bench.pool):
        return cases.figures(a, b, audit, step)


def recreated(*place):
    """p = p - rate * g, each time in new memory, as functional training code does."""
    bench = Bench(*place)
    now = {"parameters": bench.model.parameters, "rate": RATES[0]}

    def step():
        gradients = bench.model.gradients(now["parameters"])
        with torch.no_grad():
            now["parameters"] = [torch.add(p, g, alpha=-now["rate"]) for p, g in zip(now["parameters"], gradients)]
        for p in now["parameters"]:
            p.requires_grad_()

    bench.warm(step)
    begins, kept, recordings = {0: now["parameters"]}, [], []
    for k in cases.RECORDINGS:
        now["parameters"], now["rate"] = begins[k], RATES[k]
        recordings.append((k, bench.record(f"k + {k}", step)))
        kept.append(now["parameters"])
        begins.setdefault(1, now["parameters"])  # What the first recording of k would make
    a, b, audit = compare(bench.session, recordings)

    places = [[p.data_ptr() for p in begins[k]] for k in (0, 1)]
    expected = set(zip(*places))
    unnamed = expected - host.moves(audit)
    rates = [f for f in audit.faults if host.is_scalar(f, -RATES[0], -RATES[1])]
    wrong = [f"{len(unnamed)} of {len(expected)} parameters that moved are not named"] if unnamed else []
    wrong += [] if len(rates) == len(places[0]) else [f"the learning rate is named {len(rates)} times, for {len(places[0])} parameters"]
    return {
        **cases.figures(a, b, audit),
        "parameters": len(expected),
        "parameters_named": len(expected) - len(unnamed),
        "rate_named": len(rates),
        "shown": cases.some(audit.findings, 6),
        "wrong": wrong,
    }


def by_value(*place):
    bench = Bench(*place)
    now = {"rate": RATES[0]}

    def step():
        gradients = bench.model.gradients(bench.model.parameters)
        with torch.no_grad():
            for p, g in zip(bench.model.parameters, gradients):
                p.add_(g, alpha=-now["rate"])

    bench.warm(step)
    recordings = []
    for k in cases.RECORDINGS:
        now["rate"] = RATES[k]
        recordings.append((k, bench.record(f"k + {k}", step)))
    a, b, audit = compare(bench.session, recordings)
    rates = [f for f in audit.faults if host.is_scalar(f, -RATES[0], -RATES[1])]
    others = [f for f in audit.accused if f not in rates and cases.is_told_from_left_over(f)]
    count = len(bench.model.parameters)
    wrong = [] if len(rates) == count else [f"the learning rate is named {len(rates)} times, for {count} parameters"]
    wrong += [f"accused falsely: {' | '.join(cases.some(others, 6))}"] if others else []
    return {
        **figures(bench, a, b, audit, step),
        "rate_named": len(rates),
        "false": len(audit.accused) - len(rates),
        "shown": cases.some(audit.findings, 6),
        "wrong": wrong,
    }


def clean(**options):
    def run(*place):
        bench = Clean(*place, **options)
        a, b, audit = compare(bench.session, [(k, bench.record_step(k)) for k in cases.RECORDINGS])
        wrong = cases.unlike_expected(audit)
        before = bench.loss.item()
        for _ in range(20):
            a[0].replay()
        torch.cuda.synchronize()
        after = bench.loss.item()
        if not after < before:
            wrong.append(f"20 replays took the loss from {before} to {after}")
        return {
            **figures(bench, a, b, audit, bench.step),
            "false": len(audit.accused),
            "unclassified": audit.summary["findings"] - len(audit.accused),
            "loss": [round(before, 4), round(after, 4)],
            "shown": cases.some(audit.findings),
            "wrong": wrong,
        }

    return run


report = cases.Report("audit_torch", **host.facts())
report.case("recreated", host.with_session(recreated))
report.case("by value", host.with_session(by_value))
for name, options in CLEAN.items():
    report.case(f"clean, {name}", host.with_session(clean(**options)))
report.finish()
