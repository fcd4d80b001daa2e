"""The audit of training steps of PyTorch, recorded from outside:   STEPGRAPH_LIBRARY=libstepgraph.so python3 audit_torch.py

A small language model with attention, forward, backward and update, recorded three times at step k and three times at step k + 1, and compared:

    recreated   parameters are made anew by each step, learning rate as a Python float: both must be named
    by value    the same in place: the learning rate must be named, and nothing else
    clean ...   AdamW with capturable=True, learning rate on the device, one with mixed precision and clipped gradients: nothing must be named

The last line is JSON. Exit status 0: all as expected, 1: not, 77: no PyTorch or no card.
"""
import sys

sys.dont_write_bytecode = True
import torch_host as host  # noqa: E402
from torch_host import cases, torch  # noqa: E402
from torch_model import Model  # noqa: E402

RATES = (0.001, 0.002)
# In an order in which nothing that only the time changes looks like the step
RECORDINGS = ((0, "k"), (1, "k + 1"), (1, "k + 1 again"), (0, "k again"), (0, "k once more"), (1, "k + 1 once more"))


class Bench:
    """A model, a pool and the ways to warm up and to record."""

    all = []  # A pool must outlive the graphs over it

    def __init__(self, library, session, stream):
        self.library, self.session, self.stream = library, session, stream
        self.model, self.pool = Model(), torch.cuda.MemPool()
        Bench.all.append(self)

    def warm(self, step, times=3):
        """Outside the pool first, so that libraries' workspaces and an optimizer's state do not live in it."""
        with torch.cuda.stream(self.stream), torch.autograd.set_multithreading_enabled(False):
            for _ in range(2):
                step()
        torch.cuda.synchronize()
        for _ in range(times):
            with host.in_place(self.stream, self.pool):
                step()
        torch.cuda.synchronize()

    def record(self, name, step):
        with host.in_place(self.stream, self.pool):
            return self.session.record(name, step, self.library.STEP_ALLOW_UNREGISTERED)

    def compare(self, recordings):
        """(those of k, those of k + 1, the comparison), of pairs of which step and recording."""
        a, b = ([step for k, step in recordings if k == which] for which in (0, 1))
        return a, b, self.session.compare(a, b)

    def figures(self, a, b, audit, step):
        """Costs; records step again, so nothing that was recorded may be needed afterwards."""
        with host.in_place(self.stream, self.pool):
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
    for k, name in RECORDINGS:
        now["parameters"], now["rate"] = begins[k], RATES[k]
        recordings.append((k, bench.record(name, step)))
        kept.append(now["parameters"])
        begins.setdefault(1, now["parameters"])  # What the first recording of k would make
    a, b, audit = bench.compare(recordings)

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
    for k, name in RECORDINGS:
        now["rate"] = RATES[k]
        recordings.append((k, bench.record(name, step)))
    a, b, audit = bench.compare(recordings)
    rates = [f for f in audit.faults if host.is_scalar(f, -RATES[0], -RATES[1])]
    others = [f for f in audit.accused if f not in rates]
    count = len(bench.model.parameters)
    wrong = [] if len(rates) == count else [f"the learning rate is named {len(rates)} times, for {count} parameters"]
    wrong += [f"accused falsely: {' | '.join(cases.some(others, 6))}"] if others else []
    return {
        **bench.figures(a, b, audit, step),
        "rate_named": len(rates),
        "false": len(others),
        "shown": cases.some(audit.findings, 6),
        "wrong": wrong,
    }


def clean(mixed=False, **options):
    """AdamW in place; the learning rate is on the device, and changes there between the recordings."""

    def run(*place):
        bench = Bench(*place)
        parameters = bench.model.parameters
        rate = torch.tensor(RATES[0], device="cuda")
        optimizer = torch.optim.AdamW(parameters, lr=rate, capturable=True, **options)
        losses = torch.zeros((), device="cuda")

        def step():
            with torch.autocast("cuda", torch.bfloat16, enabled=mixed, cache_enabled=False):
                loss = bench.model.loss(parameters)
            for p, g in zip(parameters, torch.autograd.grad(loss, parameters)):
                p.grad = g
            if mixed:
                torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
            for p in parameters:
                p.grad = None
            losses.copy_(loss.detach())

        bench.warm(step)
        recordings = []
        for k, name in RECORDINGS:
            rate.fill_(RATES[k])
            recordings.append((k, bench.record(name, step)))
        a, b, audit = bench.compare(recordings)
        wrong = cases.unlike_expected(audit)
        before = losses.item()
        for _ in range(20):
            a[0].replay()
        torch.cuda.synchronize()
        after = losses.item()
        if not after < before:
            wrong.append(f"20 replays took the loss from {before} to {after}")
        return {
            **bench.figures(a, b, audit, step),
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
report.case("clean, one tensor at a time", host.with_session(clean(foreach=False)))
report.case("clean, foreach", host.with_session(clean(foreach=True)))
report.case("clean, fused", host.with_session(clean(fused=True)))
report.case("clean, mixed precision", host.with_session(clean(mixed=True, foreach=False)))
report.case("clean, mixed precision, foreach", host.with_session(clean(mixed=True, foreach=True)))
report.finish()
