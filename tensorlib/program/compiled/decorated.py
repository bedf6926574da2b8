"""Functions decorated with grad modes, in parts: the function inside is split."""

from types import FunctionType
from typing import Any

from tensorlib.autograd.modes import no_grad
from tensorlib.program.reads.graph_breaks import SplitFunction
from tensorlib.program.run.dispatch import Chooser

WRAPPER = no_grad()(lambda: None).__code__       # that of all such functions


def undecorated(f: Any) -> tuple[Any, list[Any]]:
    """The function that is decorated with grad modes, such as `@no_grad()`, and these modes, the
    innermost first; any other function as it is."""
    modes = []
    while type(f) is FunctionType and f.__code__ is WRAPPER:
        cells = dict(zip(WRAPPER.co_freevars, f.__closure__ or ()))
        modes.insert(0, cells["self"].cell_contents)
        f = cells["function"].cell_contents
    return f, modes


class Decorated(Chooser):
    """A function in parts that runs under grad modes."""

    def __init__(self, parted: SplitFunction, modes: list[Any]):
        self.parted, self.modes = parted, modes

    def may_replay(self) -> bool:
        """Whether some part is replayed, or was not called yet."""
        return self.parted.may_replay()

    def _choice(self) -> Any:
        found = self.parted._choice()
        for mode in self.modes:
            found = mode(found)
        return found
