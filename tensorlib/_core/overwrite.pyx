"""Writing new values over a tensor's elements, and what that does to its history."""

from tensorlib._core.copies cimport copy_into, may_overlap, packed_copy
from tensorlib._core.creation cimport fill_number, plain_number
from tensorlib._core.memory cimport untracked
from tensorlib._core.node cimport mode
from tensorlib._core.operands cimport operand, stands_in
from tensorlib._core.operators cimport check_writable, forget, replaced_by
from tensorlib._core.shape cimport MAX_NDIM, broadcast
from tensorlib._core.tensor cimport Tensor, alias, new_scalar, requires_grad

cdef int overwritten(Tensor x, Tensor source) except -1:
    """Notes that the elements of `x` are those of `source` now, or (None) constants.

    What `x` was before gets a gradient of zero.
    """
    x.storage.version += 1
    if not mode().grad or not (requires_grad(x) or source is not None and requires_grad(source)):
        return 0
    return forget(x) if source is None else replaced_by(x, alias(x), source)


cdef int write(str name, Tensor x, Tensor source) except -1:
    """x := source, cast and broadcast, recorded."""
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef int d, ndim
    check_writable(name, x, mode().grad)
    ndim = broadcast(name, x.ndim_, x.dims, source.ndim_, source.dims, dims)
    for d in range(ndim):
        if ndim != x.ndim_ or dims[d] != x.dims[d]:
            raise RuntimeError(
                f"{name}: output with shape {tuple(x.shape)} doesn't match the broadcast shape "
                f"{tuple([dims[k] for k in range(ndim)])}")
    copy_into(x, packed_copy(source, source.type) if may_overlap(source, x) else source)
    return overwritten(x, source)


def _count_write(Tensor x):
    """Notes that the elements of `x` were written by other means."""
    if not untracked(x.storage):
        x.storage.version += 1


def copy_(Tensor self, src, non_blocking=False):
    """This tensor, after the elements of `src` were written over its own, cast and broadcast.

    Gradient: goes to `src`; the old elements get zero. Raises: RuntimeError, TypeError.
    """
    cdef Tensor source = operand(None, src, None)
    if source is None and stands_in(src):
        raise RuntimeError("copy_: vmap: a tensor that all examples of a batch share can't be "
                           "written with a value that differs between them")
    if source is None:
        raise TypeError(f"copy_: src must be a Tensor or a number, not {type(src).__name__}")
    write("copy_", self, source)
    return self


def fill_(Tensor self, value):
    """This tensor, after all its elements became `value`, a number or a 0-d tensor.

    Gradient: to a tensor `value` the sum; the old elements get zero.
    Raises: RuntimeError, TypeError, OutOfRangeError for a value that the dtype can't hold.
    """
    if isinstance(value, Tensor):
        if (<Tensor>value).ndim_:
            raise RuntimeError(
                f"fill_: value must be a number or a 0-d tensor, got {(<Tensor>value).ndim_} dims")
        write("fill_", self, <Tensor>value)
        return self
    write_number("fill_", self, plain_number("fill_", "value", value))
    return self


def zero_(Tensor self):
    """This tensor, after all its elements became zero. Gradient: the old elements get zero."""
    write_number("zero_", self, 0)
    return self


cdef int write_number(str name, Tensor x, object value) except -1:
    """x := a Python number, recorded."""
    cdef Tensor one
    check_writable(name, x, mode().grad)
    if x.packed:
        fill_number(name, x, value)
    else:
        one = new_scalar(x.type)
        fill_number(name, one, value)
        copy_into(x, one)
    return overwritten(x, None)
