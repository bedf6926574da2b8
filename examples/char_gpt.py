"""A small GPT that writes Python: it learns from the source text of the standard library.

    python examples/char_gpt.py
    python examples/char_gpt.py --steps 6000 --width 192 --prompt "class "

Letters are the words of a small `nn.zoo.GPT`, which predicts each next one; AdamW decays weights,
but no biases and norms, under a learning rate that warms up and falls. Then it writes, letter by
letter, and the picture shows which letters of unseen text surprise it.
"""

import argparse
import math
import os
import string
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common import BLUE, GREY, number, options, plain
from matplotlib.figure import Figure
from tqdm import tqdm

import tensorlib as tl
from tensorlib import Tensor, nn, optim
from tensorlib.nn import functional as F
from tensorlib.nn import zoo

ROWS, COLUMNS = 13, 64                       # of text in the picture
LETTERS = string.printable[:96] + "\n"
CODES = {letter: code for code, letter in enumerate(dict.fromkeys(LETTERS))}


# ---- the text ------------------------------------------------------------------------------------

def read_library(size: int) -> Tensor:
    """The codes of up to `size` letters of the standard library's modules."""
    folder, parts, total = Path(os.__file__).parent, list[str](), 0
    for path in sorted(folder.glob("[a-z]*.py")):
        parts.append(path.read_text(errors="ignore"))
        total += len(parts[-1])
        if total >= size:
            break
    return encoded("".join(parts))[:size]


def encoded(text: str) -> Tensor:
    return tl.tensor([CODES[letter] for letter in text if letter in CODES])


def decoded(codes: Tensor) -> str:
    letters = list(CODES)
    return "".join(letters[code] for code in codes.tolist())


def batch(text: Tensor, count: int, length: int) -> tuple[Tensor, Tensor]:
    """Pieces of the text, and the same moved by one letter: each (count, length)."""
    places = tl.randint(0, len(text) - length - 1, (count, 1)) + tl.arange(length + 1)
    pieces = text[places]
    return pieces[:, :-1], pieces[:, 1:]


# ---- the model ---------------------------------------------------------------------------------

def make_optimizer(model: nn.Module, lr: float) -> optim.Optimizer:
    """AdamW that decays matrices alone."""
    matrices = [p for p in model.parameters() if p.ndim > 1]
    others = [p for p in model.parameters() if p.ndim < 2]
    return optim.AdamW([{"params": matrices, "weight_decay": 0.1},
                        {"params": others, "weight_decay": 0.0}], lr=lr, betas=(0.9, 0.95))


def loss_of(model: zoo.GPT, codes: Tensor, following: Tensor) -> Tensor:
    return F.cross_entropy(model(codes).flatten(0, 1), following.flatten())


def train(model: zoo.GPT, text: Tensor, unseen: Tensor, args: argparse.Namespace
          ) -> tuple[list[float], list[tuple[int, float]]]:
    """The loss of each step, and of unseen text every so often."""
    optimizer = make_optimizer(model, args.lr)
    warm = max(1, args.steps // 20)
    schedule = optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(
        (step + 1) / warm, 0.1 + 0.45 * (1 + math.cos(math.pi * step / args.steps))))
    losses, checks = list[float](), list[tuple[int, float]]()
    bar = tqdm(range(args.steps), unit="step", leave=False, disable=None)
    for step in bar:
        loss = loss_of(model, *batch(text, args.batch, args.length))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        if step % max(1, args.steps // 10) == 0 or step == args.steps - 1:
            with tl.no_grad():
                check = loss_of(model, *batch(unseen, 64, args.length)).item()
            checks.append((step, check))
            tqdm.write(f"step {step + 1:5d}   loss {losses[-1]:.3f}   of unseen text {check:.3f}")
    return losses, checks


# ---- the picture ---------------------------------------------------------------------------------

def surprises(model: zoo.GPT, text: Tensor) -> tuple[Tensor, Tensor]:
    """Letters of a text, each with what it costs after half a window of others."""
    half = model.block_size // 2
    starts = tl.arange(0, len(text) - model.block_size - 1, half)
    pieces = text[starts.unsqueeze(1) + tl.arange(model.block_size + 1)]
    with tl.no_grad():
        logits = model(pieces[:, :-1])[:, -half:]
    codes = pieces[:, -half:].flatten()
    return codes, F.cross_entropy(logits.flatten(0, 1), codes, reduction="none")


def draw(path: Path, model: zoo.GPT, unseen: Tensor, losses: list[float],
         checks: list[tuple[int, float]]) -> None:
    figure: Any = Figure(figsize=(10, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[2, 3])
    left.plot(losses, color=GREY, linewidth=0.6, alpha=0.7, label="training")
    left.plot(*zip(*checks), ".-", color=BLUE, label="unseen text")
    left.legend(frameon=False)
    plain(left, "Cross-entropy of a letter", xlabel="step")
    right.set_title("Unseen text: the redder, the less expected", loc="left")
    right.set_axis_off()
    codes, surprise = surprises(model, unseen[:1000])
    row = column = 0
    for letter, nats in zip(decoded(codes), surprise.tolist()):
        if letter == "\n" or column == COLUMNS:
            row, column = row + 1, 0
        if row == ROWS:
            break
        if letter != "\n":
            right.text(column / COLUMNS, 1 - (row + 1) / ROWS, letter, family="monospace",
                       fontsize=8.5, bbox={"facecolor": (1, 0.2, 0.2, min(1, nats / 6)),
                                           "linewidth": 0, "pad": 1})
            column += 1
    figure.savefig(path, dpi=100)


def parse_arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = options(__doc__, "char_gpt.png")
    option = parser.add_argument
    option("--steps", type=number(int, 1, 10_000_000), default=1500, help="steps of AdamW")
    option("--lr", type=number(float, 1e-7, 1), default=3e-3, help="the highest learning rate")
    option("--batch", type=number(int, 1, 65536), default=16, help="pieces of text in each step")
    option("--length", type=number(int, 8, 8192), default=64, help="letters of a piece")
    option("--width", type=number(int, 8, 8192), default=64, help="numbers that stand for a letter")
    option("--heads", type=number(int, 1, 256), default=4, help="of attention; they divide width")
    option("--layers", type=number(int, 1, 256), default=3, help="blocks")
    option("--letters", type=number(int, 20_000, 1e9), default=2_000_000, help="of text to read")
    option("--write", type=number(int, 0, 1_000_000), default=500, help="letters to write")
    option("--prompt", default="def ", help="what the writing begins with")
    option("--temperature", type=number(float, 1e-3, 100), default=0.8, help="of the writing")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> float:
    args = parse_arguments(argv)
    if args.width % args.heads:
        raise SystemExit(f"char_gpt: --width {args.width} is no multiple of --heads {args.heads}")
    tl.manual_seed(args.seed)
    text = read_library(args.letters)
    text, unseen = text[:-len(text) // 20], text[-len(text) // 20:]
    model = zoo.GPT(len(CODES), args.length, args.layers, args.heads, args.width)
    print(f"{len(text):,} letters to learn from; "
          f"{sum(p.numel() for p in model.parameters()):,} parameters")
    losses, checks = train(model, text, unseen, args)
    draw(args.out, model, unseen, losses, checks)
    start = encoded("\n" + args.prompt)[None]
    print("\n" + decoded(model.generate(start, args.write, args.temperature)[0]))
    print(f"\nunseen text: {checks[-1][1] / math.log(2):.2f} bits for a letter; see {args.out}")
    return checks[-1][1]


if __name__ == "__main__":
    main()
