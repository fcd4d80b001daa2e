"""A small language model, for the scripts that record its training steps."""
import torch
import torch.nn.functional as F

VOCABULARY, CONTEXT, WIDTH, HEADS, LAYERS, BATCH = 64, 32, 64, 4, 2, 4


class Model:
    """Parameters as a list, a loss as a function of them; batch and mask in place."""

    def __init__(self):
        generator = torch.Generator().manual_seed(1)

        def random(*shape):
            return (torch.randn(*shape, generator=generator) * 0.05).cuda()

        shapes = [(VOCABULARY, WIDTH), (CONTEXT, WIDTH)]
        for _ in range(LAYERS):
            shapes += [(WIDTH,), (WIDTH,), (WIDTH, 3 * WIDTH), (WIDTH, WIDTH), (WIDTH,), (WIDTH,), (WIDTH, 4 * WIDTH), (4 * WIDTH, WIDTH)]
        shapes += [(WIDTH,), (WIDTH,), (WIDTH, VOCABULARY)]
        self.parameters = [random(*shape).requires_grad_() for shape in shapes]
        self.ids = torch.randint(VOCABULARY, (BATCH, CONTEXT), generator=generator).cuda()
        self.targets = torch.randint(VOCABULARY, (BATCH, CONTEXT), generator=generator).cuda()
        self.mask = torch.full((CONTEXT, CONTEXT), float("-inf")).triu(1).cuda()
        torch.cuda.synchronize()

    def loss(self, parameters):
        rest = iter(parameters)
        x = F.embedding(self.ids, next(rest)) + next(rest)
        for _ in range(LAYERS):
            h = F.layer_norm(x, (WIDTH,), next(rest), next(rest))
            q, k, v = (h @ next(rest)).view(BATCH, CONTEXT, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
            weights = torch.softmax(q @ k.transpose(-2, -1) * (WIDTH // HEADS) ** -0.5 + self.mask, -1)
            x = x + (weights @ v).transpose(1, 2).reshape(BATCH, CONTEXT, WIDTH) @ next(rest)
            h = F.layer_norm(x, (WIDTH,), next(rest), next(rest))
            x = x + F.gelu(h @ next(rest)) @ next(rest)
        logits = F.layer_norm(x, (WIDTH,), next(rest), next(rest)) @ next(rest)
        return F.cross_entropy(logits.view(-1, VOCABULARY), self.targets.view(-1))

    def gradients(self, parameters):
        return torch.autograd.grad(self.loss(parameters), parameters)
