"""A GPT, as in many training scripts: nothing in it knows of graphs."""
import dataclasses

import torch.nn.functional as F
from torch import nn


@dataclasses.dataclass(frozen=True)
class Size:
    layers: int
    width: int
    heads: int
    batch: int
    context: int
    vocabulary: int


SIZES = {
    "tiny": Size(layers=4, width=128, heads=4, batch=8, context=64, vocabulary=256),
    "small": Size(layers=8, width=512, heads=8, batch=8, context=512, vocabulary=4096),
    "gpt2": Size(layers=12, width=768, heads=12, batch=8, context=1024, vocabulary=50304),  # 124 million parameters
}


class Block(nn.Module):
    def __init__(self, size, dropout):
        super().__init__()
        self.heads, self.dropout = size.heads, dropout
        self.norm_1 = nn.LayerNorm(size.width)
        self.attention = nn.Linear(size.width, 3 * size.width)
        self.project_1 = nn.Linear(size.width, size.width)
        self.norm_2 = nn.LayerNorm(size.width)
        self.widen = nn.Linear(size.width, 4 * size.width)
        self.project_2 = nn.Linear(4 * size.width, size.width)

    def forward(self, x):
        batch, context, width = x.shape
        heads = self.attention(self.norm_1(x)).view(batch, context, 3, self.heads, width // self.heads)
        q, k, v = heads.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout if self.training else 0.0, is_causal=True)
        mixed = self.project_1(mixed.transpose(1, 2).reshape(batch, context, width))
        x = x + F.dropout(mixed, self.dropout, self.training)
        wide = self.project_2(F.gelu(self.widen(self.norm_2(x)), approximate="tanh"))
        return x + F.dropout(wide, self.dropout, self.training)


class GPT(nn.Module):
    def __init__(self, size, dropout=0.1):
        super().__init__()
        self.dropout = dropout
        self.tokens = nn.Embedding(size.vocabulary, size.width)
        self.places = nn.Embedding(size.context, size.width)
        self.blocks = nn.ModuleList(Block(size, dropout) for _ in range(size.layers))
        self.norm = nn.LayerNorm(size.width)
        self.head = nn.Linear(size.width, size.vocabulary, bias=False)
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                scale = 0.02 / (2 * size.layers) ** 0.5 if "project" in name else 0.02
                nn.init.normal_(parameter, std=scale)
        self.head.weight = self.tokens.weight

    def forward(self, ids, targets):
        """The mean loss over a batch of token ids."""
        x = self.tokens(ids) + self.places.weight[: ids.shape[1]]
        x = F.dropout(x, self.dropout, self.training)
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())
