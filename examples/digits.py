"""Learns to read handwritten digits with a multilayer perceptron, in a few seconds.

    pip install "tensorlib[examples]"
    python examples/digits.py

Trains on four fifths of 1,797 real scans (examples/data/README.md), prints loss and accuracy on the
scans held out, and draws what it learnt into digits.png.
"""

import argparse
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from tqdm import tqdm

from tensorlib import Tensor, arange, from_numpy, manual_seed, no_grad, randn, randperm, zeros

DATA = Path(__file__).parent / "data" / "digits.csv.gz"
BATCH = 32
MOMENTUM = 0.9
NOISE = 0.3  # on the pixels in training; held-out accuracy, ten seeds: 98.6 %, without 98.2 %
GRID = (6, 10)
Scans = tuple[Tensor, Tensor]               # images and the digits they show
History = list[tuple[float, float, float]]  # training loss, held-out loss, held-out accuracy
BLUE, RED, GREY = "#2b6cb0", "#d64545", "#6b7280"


def load_digits() -> Scans:
    """The images, (1797, 64) from 0 to 1, and the digits they show."""
    table = np.loadtxt(DATA, delimiter=",", dtype=np.float32)
    return from_numpy(table[:, :64] / 16), from_numpy(table[:, 64].astype(np.int64))


def make_model(hidden: int) -> list[Tensor]:
    """Weights and biases of a perceptron with one hidden layer."""
    params = [
        randn(64, hidden) * math.sqrt(2 / 64), zeros(hidden),
        randn(hidden, 10) * math.sqrt(2 / hidden), zeros(10),
    ]
    return [param.requires_grad_() for param in params]


def log_probs(params: list[Tensor], images: Tensor) -> Tensor:
    """The logarithm of each digit's probability for each image."""
    w1, b1, w2, b2 = params
    return ((images @ w1 + b1).relu() @ w2 + b2).log_softmax(1)


def cross_entropy(log_p: Tensor, digits: Tensor) -> Tensor:
    return -log_p[arange(len(digits)), digits].mean()


def sgd_step(params: list[Tensor], velocities: list[Tensor], lr: float) -> None:
    """One step of gradient descent with momentum."""
    with no_grad():
        for param, velocity in zip(params, velocities):
            velocity *= MOMENTUM
            velocity += param.grad
            param -= lr * velocity
            param.grad = None


def train_epoch(params: list[Tensor], velocities: list[Tensor], scans: Scans, lr: float) -> float:
    """The mean loss over one pass through shuffled batches."""
    images, digits = scans
    losses: list[float] = []
    for batch in randperm(len(images)).split(BATCH):
        noisy = images[batch] + NOISE * randn(len(batch), 64)
        loss = cross_entropy(log_probs(params, noisy), digits[batch])
        loss.backward()
        sgd_step(params, velocities, lr)
        losses.append(loss.item())
    return sum(losses) / len(losses)


def evaluate(params: list[Tensor], scans: Scans) -> tuple[float, float, Tensor]:
    """Loss, accuracy in percent, and the log probabilities behind them."""
    images, digits = scans
    with no_grad():
        log_p = log_probs(params, images)
        correct = (log_p.argmax(1) == digits).sum().item()
        return cross_entropy(log_p, digits).item(), 100 * correct / len(digits), log_p


def train(params: list[Tensor], seen: Scans, held_out: Scans, epochs: int, lr: float) -> History:
    """The figures of each epoch."""
    velocities = [zeros(param.shape) for param in params]
    history: History = []
    for epoch in tqdm(range(epochs), unit="epoch", leave=False, disable=None):
        train_loss = train_epoch(params, velocities, seen, lr * (1 - epoch / epochs))
        loss, accuracy, _ = evaluate(params, held_out)
        tqdm.write(f"epoch {epoch + 1:3d}   training loss {train_loss:.4f}   "
                   f"held-out loss {loss:.4f}   accuracy {accuracy:5.1f} %")
        if not (math.isfinite(train_loss) and math.isfinite(loss)):
            raise SystemExit(f"digits: the loss is no longer finite: --lr {lr} is too high")
        history.append((train_loss, loss, accuracy))
    return history


def print_confusion(digits: list[int], guesses: list[int]) -> None:
    counts = np.zeros((10, 10), int)
    np.add.at(counts, (digits, guesses), 1)
    print("\nshown    read as" + "".join(f"{digit:5d}" for digit in range(10)))
    for digit, row in enumerate(counts):
        print(f"{digit:5d}" + " " * 11 + "".join(f"{count or '.':>5}" for count in row))


def draw_curves(figure: Any, history: History) -> None:
    train_loss, loss, accuracy = zip(*history)
    epochs = range(1, len(history) + 1)
    above, below = figure.subplots(2, 1, sharex=True)
    above.semilogy(epochs, train_loss, ".-", color=GREY, label="training, with noise")
    above.semilogy(epochs, loss, ".-", color=BLUE, label="held out")
    above.set_title("Cross-entropy", loc="left")
    above.legend(frameon=False)
    below.plot(epochs, accuracy, ".-", color=BLUE)
    below.set_title(f"Held-out accuracy: {accuracy[-1]:.1f} % at the end", loc="left")
    below.set_xlabel("epoch")
    for axes in (above, below):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)


def draw_digits(figure: Any, images: Tensor, digits: list[int], log_p: Tensor) -> None:
    """The held-out scans that the model is least sure of, errors in red."""
    certainty, guesses = log_p.exp().amax(1).tolist(), log_p.argmax(1).tolist()
    hardest = sorted(range(len(digits)), key=certainty.__getitem__)
    errors = sum(guess != digit for guess, digit in zip(guesses, digits))
    figure.suptitle(f"Read {len(digits) - errors} of {len(digits)} held-out scans: "
                    "the least certain, errors in red", x=0.02, ha="left", fontsize=12)
    for axes, i in zip(figure.subplots(*GRID).flat, hardest):
        wrong = guesses[i] != digits[i]
        color = RED if wrong else GREY
        axes.imshow(images[i].reshape(8, 8).numpy(), cmap="Reds" if wrong else "Greys", vmax=1.1)
        axes.set_title(f"{guesses[i]}, not {digits[i]}" if wrong else str(guesses[i]),
                       color=color, weight="bold" if wrong else None, fontsize=10, pad=3)
        axes.set_xlabel(f"{100 * certainty[i]:.0f} %", color=color, fontsize=8, labelpad=2)
        axes.set(xticks=[], yticks=[])
        for spine in axes.spines.values():
            spine.set(color=color, linewidth=2 if wrong else 0.5)


def draw(path: Path, history: History, images: Tensor, digits: list[int], log_p: Tensor) -> None:
    figure: Any = Figure(figsize=(14, 6.6), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=[2, 5], wspace=0.03)
    draw_curves(left, history)
    draw_digits(right, images, digits, log_p)
    figure.savefig(path, dpi=110)


def number(convert: type[int] | type[float], low: float, high: float) -> Callable[[str], float]:
    """An argparse type: a number from low to high, and so never NaN."""
    def parse(text: str) -> float:
        try:
            value: float = convert(text)
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            kind = "a whole number" if convert is int else "a number"
            raise argparse.ArgumentTypeError(f"{text!r} is not {kind} from {low} to {high}")
        return value
    return parse


def picture(text: str) -> Path:
    """A path that can be written, tried now: not after the training."""
    path = Path(text)
    if path.suffix not in (".png", ".pdf", ".svg"):
        raise argparse.ArgumentTypeError(f"{text!r} does not end in .png, .pdf or .svg")
    existed = path.exists()
    try:
        path.open("ab").close()
    except OSError as error:
        raise argparse.ArgumentTypeError(f"cannot write {text!r}: {error.strerror}") from None
    if not existed:
        path.unlink()
    return path


def parse_arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").partition("\n")[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    option = parser.add_argument
    option("--epochs", type=number(int, 1, 10_000), default=40, help="passes over the scans")
    option("--lr", type=number(float, 1e-6, 100), default=0.1, help="learning rate; falls to 0")
    option("--hidden", type=number(int, 1, 8192), default=256, help="hidden units")
    option("--seed", type=number(int, 0, 2**32 - 1), default=0, help="of all that is random")
    option("--out", type=picture, default="digits.png", help="the picture: .png, .pdf or .svg")
    return parser.parse_args(argv)


def main() -> None:
    args = parse_arguments()
    manual_seed(args.seed)
    images, digits = load_digits()
    fifth = len(images) // 5
    held, seen = randperm(len(images)).split([fifth, len(images) - fifth])
    params = make_model(args.hidden)
    history = train(params, (images[seen], digits[seen]), (images[held], digits[held]),
                    args.epochs, args.lr)
    _, _, log_p = evaluate(params, (images[held], digits[held]))
    truth = digits[held].tolist()
    print_confusion(truth, log_p.argmax(1).tolist())
    draw(args.out, history, images[held], truth, log_p)
    print(f"\n{history[-1][2]:.1f} % of {len(truth)} held-out scans read; see {args.out}")


if __name__ == "__main__":
    main()
