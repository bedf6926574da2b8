"""Types of `tensorlib.func.forward`."""

from collections.abc import Callable, Sequence
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, overload

from tensorlib import Tensor

_R = TypeVar("_R")
_X = TypeVar("_X")
_P = ParamSpec("_P")
_Argnums = int | Sequence[int]

@overload
def jvp(
    func: Callable[..., tuple[_R, _X]], primals: Any, tangents: Any, *, strict: bool = False,
    has_aux: Literal[True]
) -> tuple[_R, _R, _X]: ...
@overload
def jvp(
    func: Callable[..., _R], primals: Any, tangents: Any, *, strict: bool = False,
    has_aux: bool = False
) -> tuple[_R, _R]: ...

def linearize(
    func: Callable[..., _R], *primals: Any
) -> tuple[_R, Callable[..., _R]]: ...

@overload
def jacfwd(
    func: Callable[Concatenate[Tensor, _P], Tensor], argnums: int = 0,
    has_aux: Literal[False] = False, *, holomorphic: bool = False
) -> Callable[Concatenate[Tensor, _P], Tensor]: ...
@overload
def jacfwd(
    func: Callable[_P, Any], argnums: _Argnums = 0, has_aux: bool = False, *,
    holomorphic: bool = False
) -> Callable[_P, Any]: ...

@overload
def hessian(
    func: Callable[Concatenate[Tensor, _P], Tensor], argnums: int = 0, *,
    holomorphic: bool = False
) -> Callable[Concatenate[Tensor, _P], Tensor]: ...
@overload
def hessian(
    func: Callable[_P, Any], argnums: _Argnums = 0, *, holomorphic: bool = False
) -> Callable[_P, Any]: ...

def hvp(func: Callable[..., Tensor], primals: Any, tangents: Any) -> tuple[Tensor, Any]: ...
def vhp(func: Callable[..., Tensor], primals: Any, cotangents: Any) -> tuple[Tensor, Any]: ...
