"""GPT: a decoder of transformer blocks that predicts each next token."""

from __future__ import annotations

import math

import tensorlib as tl
from tensorlib import Tensor, nn
from tensorlib.nn import functional as F


class SelfAttention(nn.Module):
    """Each token attends to itself and to those before it."""

    def __init__(self, n_embd: int, n_head: int, dropout: float) -> None:
        super().__init__()
        self.n_head, self.dropout = n_head, dropout
        self.c_attn = nn.Linear(n_embd, 3 * n_embd)
        self.c_proj = nn.Linear(n_embd, n_embd)
        self.resid_dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        count, length, width = x.shape
        q, k, v = self.c_attn(x).view(count, length, 3, self.n_head, -1).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(
            q, k, v, is_causal=True, dropout_p=self.dropout if self.training else 0.0)
        mixed: Tensor = self.c_proj(seen.transpose(1, 2).reshape(count, length, width))
        result: Tensor = self.resid_dropout(mixed)
        return result


class Block(nn.Module):
    """Attention among tokens, then a perceptron for each, both added to what there was."""

    def __init__(self, n_embd: int, n_head: int, dropout: float) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(n_embd)
        self.attn = SelfAttention(n_embd, n_head, dropout)
        self.ln_2 = nn.LayerNorm(n_embd)
        self.mlp = nn.Sequential(nn.Linear(n_embd, 4 * n_embd), nn.GELU(),
                                 nn.Linear(4 * n_embd, n_embd), nn.Dropout(dropout))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        result: Tensor = x + self.mlp(self.ln_2(x))
        return result


class GPT(nn.Module):
    """A GPT in the form of GPT-2, with its names: the logits of each next token.

    Args:
        vocab_size: how many tokens there are.
        block_size: the most tokens that it attends to.
        n_layer: the blocks.
        n_head: the heads of attention, which divide `n_embd`.
        n_embd: the numbers that stand for a token.
        dropout: how likely each number is left out in training.

    Shapes: (N, L) of int64 -> (N, L, vocab_size), with L up to `block_size`
    Raises: ValueError for heads that do not divide `n_embd`, or more tokens than `block_size`.
    Source: Radford et al., Language models are unsupervised multitask learners, 2019.

    >>> model = GPT(vocab_size=65, block_size=16, n_layer=2, n_head=2, n_embd=32)
    >>> model(tensorlib.zeros(4, 16, dtype=tensorlib.int64)).shape
    tensorlib.Size([4, 16, 65])
    """

    def __init__(self, vocab_size: int, block_size: int, n_layer: int = 12, n_head: int = 12,
                 n_embd: int = 768, dropout: float = 0.0) -> None:
        super().__init__()
        if n_embd % n_head:
            raise ValueError(f"GPT: n_embd ({n_embd}) is not a multiple of n_head ({n_head})")
        self.block_size = block_size
        self.wte = nn.Embedding(vocab_size, n_embd)
        self.wpe = nn.Embedding(block_size, n_embd)
        self.drop = nn.Dropout(dropout)
        self.h = nn.ModuleList(Block(n_embd, n_head, dropout) for _ in range(n_layer))
        self.ln_f = nn.LayerNorm(n_embd)
        for name, weight in self.named_parameters():
            if weight.ndim > 1:          # what is added up in each block is smaller for more blocks
                added = name.endswith(("c_proj.weight", "mlp.2.weight"))
                nn.init.normal_(weight, std=0.02 / math.sqrt(2 * n_layer) if added else 0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(weight)

    def forward(self, idx: Tensor) -> Tensor:
        """The logits of the token after each."""
        length = idx.shape[-1]
        if length > self.block_size:
            raise ValueError(f"GPT: {length} tokens are more than block_size, {self.block_size}")
        x = self.drop(self.wte(idx) + self.wpe(tl.arange(length)))
        for block in self.h:
            x = block(x)
        return F.linear(self.ln_f(x), self.wte.weight)           # the weights are shared

    def generate(self, idx: Tensor, max_new_tokens: int, temperature: float = 1.0,
                 top_k: int | None = None) -> Tensor:
        """The tokens, and after them more, drawn one by one.

        Args:
            idx: the tokens to begin with, (N, L).
            max_new_tokens: how many more.
            temperature: below 1 likely tokens become likelier; 0 takes the likeliest.
            top_k: how many of the likeliest are drawn from; all for None.
        """
        if temperature < 0:
            raise ValueError(f"GPT.generate: temperature must be 0 or more, got {temperature}")
        was_training = self.training
        self.eval()
        try:
            with tl.no_grad():
                for _ in range(max_new_tokens):
                    logits = self(idx[:, -self.block_size:])[:, -1]
                    if top_k is not None:
                        least = logits.topk(min(top_k, logits.shape[-1])).values[:, -1:]
                        logits = logits.masked_fill(logits < least, -math.inf)
                    if temperature == 0:
                        token = logits.argmax(-1, keepdim=True)
                    else:
                        token = tl.multinomial((logits / temperature).softmax(-1), 1)
                    idx = tl.cat([idx, token], 1)
        finally:
            self.train(was_training)
        return idx
