"""Types of `tensorlib.func.reverse`."""

from collections.abc import Callable, Sequence
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, overload

from tensorlib import Tensor

_A = TypeVar("_A")
_R = TypeVar("_R")
_X = TypeVar("_X")
_P = ParamSpec("_P")
_Argnums = int | Sequence[int]

# A gradient by the first argument is alike that argument; by others the types can't be told.
@overload
def grad(
    func: Callable[Concatenate[_A, _P], Tensor], argnums: Literal[0] = 0,
    has_aux: Literal[False] = False, *, holomorphic: bool = False
) -> Callable[Concatenate[_A, _P], _A]: ...
@overload
def grad(
    func: Callable[Concatenate[_A, _P], tuple[Tensor, _X]], argnums: Literal[0] = 0, *,
    has_aux: Literal[True], holomorphic: bool = False
) -> Callable[Concatenate[_A, _P], tuple[_A, _X]]: ...
@overload
def grad(
    func: Callable[_P, Any], argnums: _Argnums = 0, has_aux: bool = False, *,
    holomorphic: bool = False
) -> Callable[_P, Any]: ...

@overload
def value_and_grad(
    func: Callable[Concatenate[_A, _P], Tensor], argnums: Literal[0] = 0,
    has_aux: Literal[False] = False, *, holomorphic: bool = False
) -> Callable[Concatenate[_A, _P], tuple[Tensor, _A]]: ...
@overload
def value_and_grad(
    func: Callable[Concatenate[_A, _P], tuple[Tensor, _X]], argnums: Literal[0] = 0, *,
    has_aux: Literal[True], holomorphic: bool = False
) -> Callable[Concatenate[_A, _P], tuple[tuple[Tensor, _X], _A]]: ...
@overload
def value_and_grad(
    func: Callable[_P, Any], argnums: _Argnums = 0, has_aux: bool = False, *,
    holomorphic: bool = False
) -> Callable[_P, tuple[Any, Any]]: ...

@overload
def grad_and_value(
    func: Callable[Concatenate[_A, _P], Tensor], argnums: Literal[0] = 0,
    has_aux: Literal[False] = False, *, holomorphic: bool = False
) -> Callable[Concatenate[_A, _P], tuple[_A, Tensor]]: ...
@overload
def grad_and_value(
    func: Callable[Concatenate[_A, _P], tuple[Tensor, _X]], argnums: Literal[0] = 0, *,
    has_aux: Literal[True], holomorphic: bool = False
) -> Callable[Concatenate[_A, _P], tuple[_A, tuple[Tensor, _X]]]: ...
@overload
def grad_and_value(
    func: Callable[_P, Any], argnums: _Argnums = 0, has_aux: bool = False, *,
    holomorphic: bool = False
) -> Callable[_P, tuple[Any, Any]]: ...

@overload
def elementwise_grad(
    func: Callable[Concatenate[_A, _P], Tensor], argnums: Literal[0] = 0, *,
    holomorphic: bool = False
) -> Callable[Concatenate[_A, _P], _A]: ...
@overload
def elementwise_grad(
    func: Callable[_P, Any], argnums: _Argnums = 0, *, holomorphic: bool = False
) -> Callable[_P, Any]: ...

@overload
def vjp(
    func: Callable[..., tuple[_R, _X]], *primals: Any, has_aux: Literal[True]
) -> tuple[_R, Callable[..., tuple[Any, ...]], _X]: ...
@overload
def vjp(
    func: Callable[..., _R], *primals: Any, has_aux: bool = False
) -> tuple[_R, Callable[..., tuple[Any, ...]]]: ...

@overload
def jacrev(
    func: Callable[Concatenate[Tensor, _P], Tensor], argnums: int = 0, *,
    has_aux: Literal[False] = False, chunk_size: int | None = None, holomorphic: bool = False
) -> Callable[Concatenate[Tensor, _P], Tensor]: ...
@overload
def jacrev(
    func: Callable[_P, Any], argnums: _Argnums = 0, *, has_aux: bool = False,
    chunk_size: int | None = None, holomorphic: bool = False
) -> Callable[_P, Any]: ...
