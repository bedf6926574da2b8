"""Types of `tensorlib.ops.compose`."""

from collections.abc import Callable
from typing import Generic, ParamSpec, TypeVar

from tensorlib._core.graph.op import Op

_P = ParamSpec("_P")
_R = TypeVar("_R", covariant=True)

class _Composed(Op, Generic[_P, _R]):
    """An Op that is called as the function that it was made of."""

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...

def compose(name: str, fun: Callable[_P, _R]) -> _Composed[_P, _R]: ...
