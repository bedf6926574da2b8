"""Types of `tensorlib.ops.primitive`."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, ParamSpec

from tensorlib import Tensor
from tensorlib._core.graph.op import Op

_P = ParamSpec("_P")
_Rule = Callable[..., Any]

class _Primitive(Generic[_P]):
    """What a primitive is called as: it may compute with arrays, and gives Tensors."""

    op: Op
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> Tensor: ...

def primitive(fun: Callable[_P, Any]) -> _Primitive[_P]: ...
def defvjp(
    op: _Primitive[...] | Op | str, *vjps: _Rule | None, argnums: Sequence[int] | None = None
) -> None: ...
def defjvp(
    op: _Primitive[...] | Op | str, *jvps: _Rule | None, argnums: Sequence[int] | None = None
) -> None: ...
def defvmap(op: _Primitive[...] | Op | str, rule: _Rule) -> None: ...
