"""Hooks by which `nn` and `optim` tell a capture about objects that own parameters.

A capture, in a layer below both, has to recognise modules and optimisers, and to observe their
calls and steps. `nn` and `optim` fill in their entries when they are imported; before that none of
their objects exist.
"""

from collections.abc import Callable
from typing import Any

from tensorlib._core.base.settings import Held


class Absent:
    """The class of no object."""


class Owners:
    """The modules, or the optimisers."""

    def __init__(self) -> None:
        self.base: type[Any] = Absent                          # their class
        self.hooks: tuple[Callable[..., Any], ...] = ()   # each gives what makes a hook one of all
        self.hooks_of_all: Any = None                          # what was added
        self.alive: Callable[[], list[Any]] = list     # gives all there are, if that is known
        self.keep: Callable[[], bool] = bool    # whether they keep what they compute for a while

    def hooked(self, *functions: Callable[..., Any]) -> Held:
        """A context under which functions are hooks of all of them: before and after a call, and
        before a step that another one calls, or what was put in the place of a class's own."""
        swaps = tuple(hook() for hook, _ in zip(self.hooks, functions))
        return Held(swaps, functions[:len(swaps)])


modules, optimizers = Owners(), Owners()
