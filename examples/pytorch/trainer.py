"""Two ways to train the model. Nothing here knows of graphs: each step() launches one whole step on PyTorch's current stream.

    WithOptimizer   AdamW of PyTorch: tensor by tensor ("forloop"), over lists of tensors ("foreach"), or in one kernel ("fused")
    Functional      an AdamW that makes every parameter and every moment anew in each step, as functional training code does
"""
import torch
from torch.func import functional_call

from model import GPT

BETAS, EPSILON, DECAY, MAX_NORM, NOT_TAKEN = (0.9, 0.95), 1e-8, 0.1, 1.0, 0


class Buffers:
    """What a step reads and what it fills, on the device: batches of token ids for each micro-step, learning rate; loss, norm of the gradient."""

    def __init__(self, size, accumulate=1, make_input=None, make_output=None):
        def zeros(name, shape, dtype):
            return torch.zeros(shape, dtype=dtype, device="cuda")

        make_input, make_output = make_input or zeros, make_output or zeros
        shape = (accumulate, size.batch, size.context)
        self.x, self.y = (make_input(name, shape, torch.int64) for name in ("x", "y"))
        self.rate = make_input("rate", (), torch.float32)
        self.loss, self.norm = (make_output(name, (), torch.float32) for name in ("loss", "norm"))


def batches(size, accumulate, count, seed=1):
    """Token ids on the CPU, (count, accumulate, batch, context) each: rows that count up, from anywhere and by any step, and what comes next in them."""
    generator = torch.Generator().manual_seed(seed)
    shape = (count, accumulate, size.batch, 1)
    start, stride = (torch.randint(size.vocabulary, shape, generator=generator) for _ in range(2))
    ids = (start + stride * torch.arange(size.context + 1)) % size.vocabulary
    return ids[..., :-1].contiguous().pin_memory(), ids[..., 1:].contiguous().pin_memory()


def schedule(k, most=1e-3, warmup=10):
    """The learning rate of step k: it grows, then falls slowly."""
    return most * min((k + 1) / warmup, (warmup / (k + 1)) ** 0.5)


class Trainer:
    """
    In mixed precision, and the gradient is clipped to a norm of at most MAX_NORM. plain: all in bf16, and nothing is clipped, so that the update of
    a parameter waits for its own gradient alone.
    """

    def __init__(self, size, buffers, dropout=0.1, seed=5, plain=False):
        torch.manual_seed(seed)
        self.plain = plain
        self.model, self.buffers = GPT(size, dropout).to("cuda", torch.bfloat16 if plain else torch.float32), buffers
        self.forward = self.model  # To be replaced by a compiled one
        self.mark = lambda stage: None  # Told which stage begins
        self.names = {parameter: name for name, parameter in self.model.named_parameters()}


class WithOptimizer(Trainer):
    """rate_by_value: the optimizer is given the learning rate as a Python number, as most scripts do, instead of a tensor."""

    def __init__(self, size, buffers, kind="fused", rate_by_value=False, **options):
        super().__init__(size, buffers, **options)
        form = {"forloop": {"foreach": False}, "foreach": {"foreach": True}, "fused": {"fused": True}}[kind]
        rate = schedule(0) if rate_by_value else buffers.rate
        self.optimizer = torch.optim.AdamW(self.model.parameters(), rate, BETAS, EPSILON, DECAY, capturable=True, **form)
        self.rate_by_value = rate_by_value

    def step(self):
        buffers, total = self.buffers, 0
        for x, y in zip(buffers.x, buffers.y):
            self.mark("forward")
            with torch.autocast("cuda", torch.bfloat16, enabled=not self.plain):
                loss = self.forward(x, y) / len(buffers.x)
            self.mark("backward")
            loss.backward()
            total = total + loss.detach()
        self.mark("update")
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), MAX_NORM) if not self.plain else NOT_TAKEN
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        buffers.loss.copy_(total)
        buffers.norm.fill_(norm)

    def state(self):
        """Everything that lives from step to step, by name."""
        found = {name: parameter.detach() for parameter, name in self.names.items()}
        for parameter, values in self.optimizer.state.items():
            found.update({f"{self.names[parameter]}.{key}": value for key, value in values.items()})
        return found

    def set_rate(self, value):
        for group in self.optimizer.param_groups:
            group["lr"] = value


class Functional(Trainer):
    """keep(state): where the new state is from now on. By default where it was made."""

    rate_by_value = False

    def __init__(self, size, buffers, **options):
        super().__init__(size, buffers, **options)
        self.keep, self.undoable, self.before = lambda state: state, False, None
        self.now = {}
        for parameter, name in self.names.items():
            self.now[name] = parameter.detach().clone().requires_grad_()
            self.now[name + ".mean"], self.now[name + ".square"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
        self.now["steps"] = torch.zeros((), device="cuda")
        self.forward = lambda parameters, x, y: functional_call(self.model, parameters, (x, y))

    def step(self):
        buffers, total, sums = self.buffers, 0, None
        self.before = self.now if self.undoable else None
        parameters = {name: self.now[name] for name in self.names.values()}
        for x, y in zip(buffers.x, buffers.y):
            self.mark("forward")
            with torch.autocast("cuda", torch.bfloat16, enabled=not self.plain):
                loss = self.forward(parameters, x, y) / len(buffers.x)
            self.mark("backward")
            gradients = torch.autograd.grad(loss, list(parameters.values()))
            sums = gradients if sums is None else [a + b for a, b in zip(sums, gradients)]
            total = total + loss.detach()
        self.mark("update")
        norm = NOT_TAKEN
        with torch.no_grad():
            if not self.plain:
                norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(sums)))
                scale = (MAX_NORM / (norm + 1e-6)).clamp(max=1.0)
                sums = [gradient * scale for gradient in sums]
            self.now = self.keep(self.update(parameters, sums))
        buffers.loss.copy_(total)
        buffers.norm.fill_(norm)

    def undo(self, k):
        """As if the last step had not been taken: the state is in this object's variables."""
        self.now = self.before

    def update(self, parameters, gradients):
        """AdamW, out of place."""
        rate, fresh = self.buffers.rate, {"steps": self.now["steps"] + 1}
        bias = [1 - beta ** fresh["steps"] for beta in BETAS]
        for (name, parameter), gradient in zip(parameters.items(), gradients):
            mean = self.now[name + ".mean"] * BETAS[0] + gradient * (1 - BETAS[0])
            square = self.now[name + ".square"] * BETAS[1] + gradient * gradient * (1 - BETAS[1])
            change = mean / bias[0] / ((square / bias[1]).sqrt() + EPSILON) + parameter * DECAY
            fresh[name] = (parameter - rate * change).requires_grad_()
            fresh[name + ".mean"], fresh[name + ".square"] = mean, square
        return fresh

    def state(self):
        return {name: value.detach() for name, value in self.now.items()}
