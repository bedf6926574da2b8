"""The table of functions that implement operations on sparse tensors: `does` registers one."""

from typing import Any

from tensorlib import Tensor
from tensorlib._core.base.error_names import type_name
from tensorlib._core.interpreters.subclasses import asked_names, dispatching_form
from tensorlib.ops.lazy import name_of
from tensorlib.sparse.compressed import CompressedTensor, on_entries
from tensorlib.sparse.tensor import SparseTensor

class UnsupportedForSparse(NotImplementedError, TypeError):
    """An operation is not there for sparse tensors, or not for arguments of these kinds: a
    RuntimeError as in PyTorch, and a TypeError as the arguments are of the wrong kind."""


UnsupportedForSparse.__module__ = "tensorlib.sparse"
DONE: dict[str, Any] = {}           # functions by the names of the operations that they do

# methods without a record that are right as they are: of shape and dtype alone, or made of others
INHERITED = frozenset("""__len__ bfloat16 bool byte cdouble cfloat char dim double element_size
    float half int is_complex is_contiguous is_floating_point is_inference is_same_size is_signed
    item long nelement numel short size storage_offset stride""".split())
METHODS = INHERITED.union(name for kind in (SparseTensor, CompressedTensor) for name in vars(kind)
                          if callable(getattr(kind, name)))
for _name in asked_names():     # all others, such as those that write, are done here or refused
    _method = getattr(Tensor, _name)
    if callable(_method) and _name not in INHERITED and getattr(SparseTensor, _name) is _method:
        setattr(SparseTensor, _name, dispatching_form(_name))


def does(*names: Any, layouts: bool = False) -> Any:
    """The decorator of a function that does these operations, or slots, for sparse tensors.

    layouts: it takes matrices by rows and by columns itself; others are given `sparse_coo`.
    """
    def decorate(function: Any) -> Any:
        function = function if layouts else on_entries(function)
        DONE.update((x if isinstance(x, str) else name_of(x), function) for x in names)
        return function
    return decorate


def call(function: Any, args: Any, kwargs: Any) -> Any:
    """What a function gives for arguments of which some are sparse. Raises:
    UnsupportedForSparse."""
    name = function.__name__
    name = name.strip("_") if name.startswith("__") else name
    found = DONE.get(name)
    if found is None and name in METHODS and args and isinstance(args[0], SparseTensor):
        found = getattr(type(args[0]), name)         # `Tensor.coalesce(a)` is `a.coalesce()`
    if found is None:
        raise UnsupportedForSparse(f"{name} is not supported for sparse tensors; to_dense() gives a"
                                   " dense one (docs/sparse.md lists what is)")
    return found(*args, **kwargs)


def refuse(name: str, *args: Any) -> UnsupportedForSparse:
    """The error for arguments that an operation of sparse tensors does not take."""
    kinds = " and ".join("sparse" if isinstance(x, SparseTensor) else "dense"
                         if isinstance(x, Tensor) else type(x).__name__ for x in args)
    return UnsupportedForSparse(f"{name} is not supported for {kinds} arguments; to_dense() gives "
                                "a dense tensor")


def require_sparse(name: str, input: Any) -> None:
    """Raises RuntimeError for a dense tensor."""
    if not isinstance(input, SparseTensor):
        raise RuntimeError(f"{name}: expected a sparse tensor, got {type_name(input)}; to_sparse() "
                           "makes one of a dense tensor")
