"""What the examples share: the digits, options that check what they are given, plain pictures."""

import argparse
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tensorlib import Tensor, randperm
from tensorlib.utils.data import datasets

BLUE, RED, GREEN, GREY = "#2b6cb0", "#d64545", "#2f855a", "#6b7280"
Scans = tuple[Tensor, Tensor]               # images and the digits they show


def load_digits() -> Scans:
    """The images, (1797, 64) from 0 to 1, and the digits they show."""
    scans = datasets.Digits()
    return scans.data.flatten(1), scans.targets


def split_digits() -> tuple[Scans, Scans]:
    """Four fifths of the scans, to learn from, and a fifth held out, drawn at random."""
    images, digits = load_digits()
    held, seen = randperm(len(images)).split([len(images) // 5, len(images) - len(images) // 5])
    return (images[seen], digits[seen]), (images[held], digits[held])


# ---- options -------------------------------------------------------------------------------------

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


def options(doc: str | None, out: str) -> argparse.ArgumentParser:
    """A parser with what all examples take: a seed, and where the picture goes."""
    parser = argparse.ArgumentParser(
        description=(doc or "").partition("\n")[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--seed", type=number(int, 0, 2**32 - 1), default=0,
                        help="of all that is random")
    parser.add_argument("--out", type=picture, default=out, help="the picture: .png, .pdf or .svg")
    return parser


# ---- pictures ------------------------------------------------------------------------------------

def plain(axes: Any, title: str, **labels: Any) -> None:
    """Axes without a frame, with a title at the left and a light grid."""
    axes.set_title(title, loc="left")
    axes.set(**labels)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
