"""`compile(f, check=)`: compares a replay with the eager call, in everything that is observable.

Both start from the same state: the effects of the replay are undone before the function runs. The
caller gets the results of the function.
"""

from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any

from tensorlib._core.graph import owners
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.autograd.tree import flatten
from tensorlib.program.capture.returned import flatten_result, plain_objects
from tensorlib.program.compiled.states import State, bits_of, generators_of, params_of, version_of
from tensorlib.program.guards.signatures import gradient_of
from tensorlib.program.guards.values import is_same
from tensorlib.program.ir.errors import CaptureError
from tensorlib.program.ir.model import OpCall

VALUES = int, float, complex, str, bytes


class Seen(State):
    """What a call may change: tensors and their gradients, optimisers, generators."""

    def __init__(self, tensors: Iterable[Tensor], generators: list[Any]):
        optimizers = owners.optimizers.alive()
        kept = list({id(x): x for x in (*tensors, *params_of(optimizers))}.values())
        grads = [g for g in map(gradient_of, kept) if g is not None]
        super().__init__([*kept, *grads], kept, optimizers, generators)

    def seen(self) -> list[tuple[str, Any]]:
        """What is observable of it now: names and values."""
        found = [(f"the tensor of shape {tuple(x.shape)} that is written to", of_tensor(x))
                 for x, _ in self.copies]
        found += [(f"the gradient of a tensor of shape {tuple(x.shape)}",
                   None if gradient_of(x) is None else of_tensor(gradient_of(x)))
                  for x, _ in self.grads]
        found += [("the state of an optimiser", [of(v) for each in state.values()
                                                 for v in flatten(dict(each))[0]])
                  for state in self.optimizers]
        return found + [("the state of a generator", of_tensor(g.get_state()))
                        for g, _ in self.generators]


def of_tensor(x: Tensor) -> tuple[Any, ...]:
    """What is observable of a tensor: its layout, its place in a graph, its version, its bits."""
    return (str(x.dtype), tuple(x.shape), x.stride(), x.requires_grad, x.is_leaf, version_of(x),
            bits_of(x))


def of(x: Any) -> Any:
    """What is observable of a value."""
    return of_tensor(x) if isinstance(x, Tensor) else x


def are_alike(x: Any, y: Any) -> bool:
    """Whether two results are the same, as far as that is observable. Functions, numbers and
    strings are new objects in each call, and those of user-defined subclasses compare by the value
    of their base."""
    if is_same(x, y):
        return True
    if type(x) is type(y) is FunctionType:
        return (x.__module__, x.__qualname__, x.__code__.co_firstlineno) == (
            y.__module__, y.__qualname__, y.__code__.co_firstlineno)
    base = next((kind for kind in VALUES if isinstance(x, kind)), None)
    return type(x) is type(y) and base is not None and base.__repr__(x) == base.__repr__(y)


def compared(name: str, replayed: Callable[[], Any], eager: Callable[[], Any],
             tensors: list[Tensor], calls: Iterable[OpCall]) -> Any:
    """The result of the eager call, after the replay had the same one.

    tensors: those that either may write to. Raises: CaptureError where they differ.
    """
    state = Seen(tensors, generators_of(calls))
    results, raised, states = [], [], []
    for run in (replayed, eager):
        try:
            results.append(run())
            raised.append(None)
        except Exception as error:
            results.append(None)
            raised.append(error)
        states.append(state.seen())
        if len(results) == 1:
            leaves, structure = flatten_result(results[0], plain_objects(results[0]))
            first = [(place, of(x)) for place, x in enumerate(leaves)]
            state.put_back()
    leaves, other = flatten_result(results[1], plain_objects(results[1]))
    second = [(place, of(x)) for place, x in enumerate(leaves)]
    if [type(x) for x in raised] != [type(raised[1])] * 2:
        differs(name, f"the replay raises {raised[0]!r}, the eager call {raised[1]!r}")
    if raised[1] is not None:
        raise raised[1]
    if len(first) != len(second) or structure != other:
        differs(name, "the replay returns another structure than the eager call")
    for (place, x), (_, y) in zip(first, second):
        if not are_alike(x, y):
            differs(name, f"result {place} of the replay is not that of the eager call")
    for (what, x), (_, y) in zip(*states):
        if x != y:
            differs(name, f"{what} is another after the replay than after the eager call")
    return results[1]


def differs(name: str, how: str) -> None:
    """Raises: CaptureError."""
    raise CaptureError(f"compile: {name}: {how}; please report this, and call it without `compile` "
                       "meanwhile")
