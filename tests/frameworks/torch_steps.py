"""Training steps of PyTorch that are recorded and compared: a bench to record on, and steps that keep all in place."""
import torch_host as host
from torch_host import torch
from torch_model import Model

RATES = (0.001, 0.002)  # Of step k and step k + 1


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


class Clean(Bench):
    """AdamW in place; the learning rate is on the device, and changes there between the recordings."""

    def __init__(self, *place, mixed=False, **options):
        super().__init__(*place)
        self.mixed, self.rate, self.loss = mixed, torch.tensor(RATES[0], device="cuda"), torch.zeros((), device="cuda")
        self.optimizer = torch.optim.AdamW(self.model.parameters, lr=self.rate, capturable=True, **options)
        self.warm(self.step)

    def step(self):
        parameters = self.model.parameters
        with torch.autocast("cuda", torch.bfloat16, enabled=self.mixed, cache_enabled=False):
            loss = self.model.loss(parameters)
        for p, g in zip(parameters, torch.autograd.grad(loss, parameters)):
            p.grad = g
        if self.mixed:
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        self.optimizer.step()
        for p in parameters:
            p.grad = None
        self.loss.copy_(loss.detach())

    def record_step(self, k):
        """Step k or step k + 1, which differ in what is on the device only."""
        self.rate.fill_(RATES[k])
        return self.record(f"k + {k}", self.step)


CLEAN = {
    "one tensor at a time": {"foreach": False},
    "foreach": {"foreach": True},
    "fused": {"fused": True},
    "mixed precision": {"mixed": True, "foreach": False},
    "mixed precision, foreach": {"mixed": True, "foreach": True},
}
