"""Objects that own parameters: what the floors of modules and of optimisers say of theirs.

A capture, a floor below both, has to know these objects and to hear of their calls and steps. `nn`
and `optim` fill in their entry when they are imported; before that there are none of its objects.
"""

from collections.abc import Callable
from typing import Any


class Absent:
    """The class of no object."""


class Owners:
    """The modules, or the optimisers."""

    def __init__(self) -> None:
        self.base: type[Any] = Absent                          # their class
        self.hooks: tuple[Callable[..., Any], ...] = ()        # each adds a hook to all of them
        self.hooks_of_all: Any = None                          # what was added
        self.alive: Callable[[], list[Any]] = list     # gives all there are, if that is known


modules, optimizers = Owners(), Owners()
