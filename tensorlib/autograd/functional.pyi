"""Types of `tensorlib.autograd.functional`."""

from collections.abc import Callable
from typing import Any, Literal, TypeVar, overload

from tensorlib import Tensor

_R = TypeVar("_R")
_Inputs = Tensor | tuple[Tensor, ...]
_Mode = Literal["reverse-mode", "forward-mode"]

def vjp(
    func: Callable[..., _R], inputs: _Inputs, v: Any = None, create_graph: bool = False,
    strict: bool = False
) -> tuple[_R, Any]: ...
def jvp(
    func: Callable[..., _R], inputs: _Inputs, v: Any = None, create_graph: bool = False,
    strict: bool = False
) -> tuple[_R, _R]: ...
@overload
def jacobian(
    func: Callable[[Tensor], Tensor], inputs: Tensor, create_graph: bool = False,
    strict: bool = False, vectorize: bool = False, strategy: _Mode = "reverse-mode"
) -> Tensor: ...
@overload
def jacobian(
    func: Callable[..., Any], inputs: _Inputs, create_graph: bool = False, strict: bool = False,
    vectorize: bool = False, strategy: _Mode = "reverse-mode"
) -> Any: ...
@overload
def hessian(
    func: Callable[[Tensor], Tensor], inputs: Tensor, create_graph: bool = False,
    strict: bool = False, vectorize: bool = False, outer_jacobian_strategy: _Mode = "reverse-mode"
) -> Tensor: ...
@overload
def hessian(
    func: Callable[..., Tensor], inputs: _Inputs, create_graph: bool = False, strict: bool = False,
    vectorize: bool = False, outer_jacobian_strategy: _Mode = "reverse-mode"
) -> Any: ...
def hvp(
    func: Callable[..., Tensor], inputs: _Inputs, v: Any = None, create_graph: bool = False,
    strict: bool = False
) -> tuple[Tensor, Any]: ...
def vhp(
    func: Callable[..., Tensor], inputs: _Inputs, v: Any = None, create_graph: bool = False,
    strict: bool = False
) -> tuple[Tensor, Any]: ...
