"""Transforms composed of others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from textwrap import indent
from typing import Any

import tensorlib as tl
from tensorlib import Tensor, nn
from tensorlib._core.base.error_names import type_name
from tensorlib.nn.modules.repr import Shown

Transform = Callable[[Any], Any]


def drawn(low: float = 0.0, high: float = 1.0) -> float:
    """A number between two, by `tensorlib.manual_seed`."""
    return low + (high - low) * tl.rand((), dtype=tl.float64).item()


class Composed(nn.Module):
    """The base of transforms made of others, `transforms`."""

    def __init__(self, transforms: Iterable[Transform]) -> None:
        super().__init__()
        try:
            self.transforms = list(transforms)
        except TypeError:
            raise TypeError(f"{type(self).__name__}: takes a list of transforms, got "
                            f"{type_name(transforms)}") from None
        for each in self.transforms:
            if not callable(each):
                raise TypeError(f"{type(self).__name__}: a transform is a function or a module, "
                                f"got {type_name(each)}")

    def lines(self) -> list[str]:
        """What stands in the brackets of the text."""
        return [repr(each) for each in self.transforms]

    def __repr__(self) -> str:
        inside = "".join("\n" + indent(line, "    ") for line in self.lines())
        return f"{type(self).__name__}({inside}\n)"


class Compose(Composed):
    """Transforms one after the other.

    Args:
        transforms: the transforms, modules or functions.

    >>> Compose([CenterCrop(2), ToTensor()])(tensorlib.zeros(1, 4, 4)).shape
    tensorlib.Size([1, 2, 2])
    """

    def on_batches(self) -> list[Transform]:
        """What has to do the same to images together as to each, for all of this to do so."""
        return self.transforms

    def forward(self, img: Any) -> Any:
        for transform in self.transforms:
            img = transform(img)
        return img


class RandomApply(Composed):
    """Transforms one after the other, or none of them.

    Args:
        transforms: the transforms.
        p: how likely they are.
    """

    def __init__(self, transforms: Iterable[Transform], p: float = 0.5) -> None:
        super().__init__(transforms)
        self.p = probability("RandomApply", p)

    def lines(self) -> list[str]:
        """The probability, and the transforms."""
        return [f"p={self.p}", *super().lines()]

    def forward(self, img: Any) -> Any:
        if drawn() < self.p:
            for transform in self.transforms:
                img = transform(img)
        return img


class RandomOrder(Composed):
    """Transforms in an order that is drawn for each image.

    Args:
        transforms: the transforms.
    """

    def forward(self, img: Any) -> Any:
        for place in tl.randperm(len(self.transforms)).tolist():
            img = self.transforms[place](img)
        return img


class RandomChoice(Composed):
    """One transform, drawn for each image.

    Args:
        transforms: the transforms.
        p: how likely each is, in any unit; the same for None.
    """

    def __init__(self, transforms: Iterable[Transform], p: Sequence[float] | None = None) -> None:
        super().__init__(transforms)
        if p is not None and (len(p) != len(self.transforms) or not all(each >= 0 for each in p)
                              or not sum(p) > 0):
            raise ValueError(f"RandomChoice: p has a number of 0 or more for each of the "
                             f"{len(self.transforms)} transforms, and not 0 for all; got {p!r}")
        if not self.transforms:
            raise ValueError("RandomChoice: there is nothing to choose from")
        self.p = p

    def forward(self, img: Any) -> Any:
        weights = tl.ones(len(self.transforms)) if self.p is None else tl.tensor(
            self.p, dtype=tl.float64)
        return self.transforms[int(tl.multinomial(weights, 1))](img)


class Lambda(nn.Module):
    """A function as a transform.

    Args:
        lambd: the function of an image.
    """

    def __init__(self, lambd: Transform) -> None:
        super().__init__()
        if not callable(lambd):
            raise TypeError(f"Lambda: takes a function, got {type_name(lambd)}")
        self.lambd = lambd

    def forward(self, img: Any) -> Any:
        return self.lambd(img)


def probability(name: str, p: float) -> float:
    """`p`, which is one. Raises: ValueError."""
    if not 0 <= p <= 1:
        raise ValueError(f"{name}: p must be from 0 to 1, got {p}")
    return p


class Drawn(Shown):
    """The base of transforms that are done, as a whole, with a probability `p`."""

    shown = ("p",)

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = probability(type(self).__name__, p)

    def changed(self, img: Tensor) -> Tensor:
        """The image after it was changed; for subclasses to say."""
        raise NotImplementedError

    def forward(self, img: Tensor) -> Tensor:
        return self.changed(img) if drawn() < self.p else img
