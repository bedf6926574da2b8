"""Types of `tensorlib.ops.declare`, as far as `tensorlib.ops` offers it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, ParamSpec, TypeVar, overload

from tensorlib import Tensor
from tensorlib._core.graph.op import Op

_P = ParamSpec("_P")
_R = TypeVar("_R")
_F = TypeVar("_F", bound=Callable[..., Any])

FUNCTIONS: dict[str, Callable[..., Any]]

class Tensors: ...

class _Elementwise(Generic[_P]):
    """An element-wise operation; its declaration has a body of documentation alone."""

    op: Op
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> Tensor: ...
    @overload
    def deriv(self, argument: _F, *, fused: str | None = None) -> _F: ...
    @overload
    def deriv(
        self, argument: str | None = None, *, fused: str | None = None
    ) -> Callable[[_F], _F]: ...

class _Operation(Generic[_P, _R]):
    """An operation with a forward function of its own."""

    op: Op
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
    @overload
    def vjp(self, argument: _F) -> _F: ...
    @overload
    def vjp(self, argument: str | None = None) -> Callable[[_F], _F]: ...
    def jvp(self, rule: _F) -> _F: ...
    def symmetric(self, argument: str) -> Callable[[_F], _F]: ...

class _Declares:
    def __call__(self, function: Callable[_P, _R]) -> _Operation[_P, _R]: ...

class _DeclaresElementwise:
    def __call__(self, function: Callable[_P, Any]) -> _Elementwise[_P]: ...

class _Composite(Generic[_P, _R]):
    """An operation made of others."""

    op: Op
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
    def formula(self, function: _F) -> _F: ...

class _DeclaresComposite:
    def __call__(self, function: Callable[_P, _R]) -> _Composite[_P, _R]: ...

def elementwise(
    *, reference: Any = None, samples: Any = None, kernel: str | None = None,
    formula: Any = None, ufuncs: Sequence[Any] = (), edges: Sequence[float] = (),
    to_float: bool = False, boolean: Sequence[str] = (), factors: Sequence[str] = (),
    refuses: str | None = None,
    no_bools: tuple[str | None, str] | None = None,
    differentiable: bool = True, public: bool = True, method: bool = True, inplace: bool = True,
    convert: Any = None, slopes: Mapping[str, float] = {}, **declared: Any
) -> _DeclaresElementwise: ...
def op(
    *, reference: Any = None, samples: Any = None, linear: bool = False, multilinear: bool = False,
    view: bool | str = False, differentiable: bool = True, outputs: Sequence[str] = ("out",),
    public: bool = True, method: bool = True, name: str | None = None, kernel: Any = None,
    maker: Any = ..., convert: Any = None, out: bool = False, inplace: bool = False, **declared: Any
) -> _Declares: ...
def composite(
    *, reference: Any = None, samples: Any = None, differentiable: bool = True, method: bool = True,
    public: bool = True, outputs: Sequence[str] = ("out",), tensors: Sequence[str] | None = None,
    out: bool = False, inplace: Any = False, random: bool = False, between: str | None = None,
    factors: tuple[str, str] | None = None, view: bool | str = False,
    rounds_once: bool | None = None, **declared: Any
) -> _DeclaresComposite: ...
