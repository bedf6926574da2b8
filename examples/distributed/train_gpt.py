"""A tiny GPT learns the letters of Python's standard library, by one process or by many.

    python examples/distributed/train_gpt.py
    mpiexec -n 2 python examples/distributed/train_gpt.py
    python -m tensorlib.distributed.run -n 2 examples/distributed/train_gpt.py --deterministic
"""

import os
from pathlib import Path

from training import finish, parse_arguments, start, train

import tensorlib as tl
from tensorlib import Tensor, nn, optim
from tensorlib.nn import functional as F

LENGTH, WIDTH, HEADS, LAYERS = 32, 32, 4, 2
LETTERS = 128                                            # ASCII


class GPT(nn.Module):
    """The logits of each next letter: (N, L) -> (N, L, letters)."""

    def __init__(self) -> None:
        super().__init__()
        self.letter, self.place = nn.Embedding(LETTERS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, dropout=0.0, activation="gelu",
                                       batch_first=True, norm_first=True) for _ in range(LAYERS))
        self.norm, self.out = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, LETTERS)

    def forward(self, codes: Tensor) -> Tensor:
        x = self.letter(codes) + self.place(tl.arange(LENGTH))
        mask = nn.Transformer.generate_square_subsequent_mask(LENGTH)
        for block in self.blocks:
            x = block(x, mask, is_causal=True)
        logits: Tensor = self.out(self.norm(x))
        return logits


def read_library(size: int = 200_000) -> Tensor:
    """The codes of letters of the standard library's modules."""
    text = b""
    for path in sorted(Path(os.__file__).parent.glob("[a-z]*.py")):
        text += path.read_bytes()
        if len(text) > size:
            break
    return tl.tensor([code for code in text[:size] if code < LETTERS])


def main() -> None:
    args = parse_arguments(__doc__)
    start()
    tl.manual_seed(args.seed)                            # the same batches on every rank
    text = read_library()
    model = GPT()

    def batch(count: int) -> tuple[Tensor, Tensor]:
        places = tl.randint(0, len(text) - LENGTH - 1, (count, 1)) + tl.arange(LENGTH + 1)
        pieces = text[places]
        return pieces[:, :-1], pieces[:, 1:]

    loss = train(model, lambda net, x, y: F.cross_entropy(net(x).flatten(0, 1), y.flatten()), batch,
                 lambda net: optim.AdamW(net.parameters(), lr=args.lr / 50), args)
    finish(model, loss)


if __name__ == "__main__":
    main()
