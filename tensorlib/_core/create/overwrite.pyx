"""Overwriting the elements of a tensor, and the history that it gets."""

from tensorlib._core.apply.inplace cimport (
    check_may_change, check_writable, copied_from, follow, set_history, take_histories,
)
from tensorlib._core.arrays.operands cimport operand
from tensorlib._core.base cimport watch
from tensorlib._core.base.dtypes cimport KIND
from tensorlib._core.base.shape cimport MAX_NDIM, broadcast, sizes_of
from tensorlib._core.base.storage cimport untracked
from tensorlib._core.base.upcalls cimport effect
from tensorlib._core.base.watch cimport watched
from tensorlib._core.create.creation cimport fill_number, plain_number
from tensorlib._core.graph.modes cimport mode
from tensorlib._core.interpreters.foreign cimport (
    call_proxy_in_place, is_tensor_like, overridden, to_write,
)
from tensorlib._core.interpreters.stack cimport offered
from tensorlib._core.tensor.tensor cimport (
    Tensor, new_scalar, replace, requires_grad, same_shape,
)
from tensorlib._core.tiles.copies cimport copy_into, may_overlap, packed_copy

from tensorlib._core.base.error_names import renamed, shown

cdef list histories_of(Tensor x, Tensor source):
    """The new histories if the elements of `x` become those of `source`, or (None) constants; None
    if nothing is recorded."""
    if not mode().grad or not (requires_grad(x) or source is not None and requires_grad(source)):
        return None
    return copied_from(x, source)


cdef void overwritten(Tensor x, list histories) noexcept:
    """Records that `x` was written, with the histories from `histories_of`."""
    x.storage.version += 1
    take_histories(histories)


cdef int write(str name, Tensor x, Tensor source) except -1:
    """x := source, cast and broadcast, recorded."""
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef int d, ndim
    cdef list histories
    check_writable(name, x, mode().grad)
    ndim = broadcast(name, x.ndim_, x.dims, source.ndim_, source.dims, dims)
    for d in range(ndim):
        if ndim != x.ndim_ or dims[d] != x.dims[d]:
            raise RuntimeError(
                f"{name}: output with shape {tuple(x.shape)} doesn't match the broadcast shape "
                f"{sizes_of(ndim, dims)}")
    histories = histories_of(x, source)
    copy_into(x, packed_copy(source, source.type) if may_overlap(source, x) else source)
    overwritten(x, histories)
    return 0


def _count_write(Tensor x):
    """Records that the elements of `x` were written by other means."""
    effect("increment_version", x)
    if not untracked(x.storage):
        x.storage.version += 1


def copy_(Tensor self, src, non_blocking=False):
    """This tensor, overwritten with the elements of `src`, cast and broadcast.

    Gradient: goes to `src`; the old elements get zero. Raises: RuntimeError, TypeError.
    """
    cdef Tensor source = operand(None, 0, src, None)
    if source is None:
        source = to_write("copy_", "src must be a Tensor or a number", src)
    if watched and offered(None, "copy_", (self, src), None) is not NotImplemented:
        return self
    write("copy_", self, source)
    return self


def fill_(Tensor self, value):
    """This tensor, filled with `value`, a number or a 0-d tensor.

    Gradient: to a tensor `value` the sum; the old elements get zero.
    Raises: RuntimeError, TypeError, OutOfRangeError for a value that the dtype can't hold.
    """
    cdef Tensor source
    if watched and offered(None, "fill_", (self, value), None) is not NotImplemented:
        return self
    if is_tensor_like(value):
        source = to_write("fill_", "value must be a Tensor or a number", value)
        if source.ndim_:
            raise RuntimeError(
                f"fill_: value must be a number or a 0-d tensor, got {source.ndim_} dims")
        write("fill_", self, source)
        return self
    write_number("fill_", self, plain_number("fill_", "value", value))
    return self


def zero_(Tensor self):
    """This tensor, filled with zeros. Gradient: the old elements get zero."""
    if watched and offered(None, "zero_", (self,), None) is not NotImplemented:
        return self
    write_number("zero_", self, 0)
    return self


cdef int write_number(str name, Tensor x, object value) except -1:
    """x := a Python number, recorded."""
    cdef Tensor one
    cdef list histories
    check_writable(name, x, mode().grad)
    histories = histories_of(x, None)
    if x.packed:
        fill_number(name, x, value)
    else:
        one = new_scalar(x.type)
        fill_number(name, one, value)
        copy_into(x, one)
    overwritten(x, histories)
    return 0


def write_result(str name, Tensor x, given):
    """`x`, after the result of an operation on it was written over its elements.

    Raises: RuntimeError for a result of another shape, or of a dtype that can't be cast.
    """
    cdef Tensor result = to_write(name, "its result must be a Tensor", given)
    if not same_shape(x, result):
        raise RuntimeError(f"{name}: output with shape {tuple(x.shape)} doesn't match the result's "
                           f"{tuple(result.shape)}")
    if KIND[result.type] > KIND[x.type]:
        raise RuntimeError(f"{name}: result type {result.dtype} can't be cast to the desired "
                           f"output type {x.dtype}")
    if watched:
        try:
            if offered(None, "copy_", (x, result), None) is not NotImplemented:
                return x
        except RuntimeError as error:
            raise renamed(error, "copy_", name)
    write(name, x, result)
    return x


def make_in_place(str name, function, bint kept, writer):
    """The method `NAME_` of a function: its result, written over the first tensor, or what `writer`
    does. kept: the gradient needs that as it was, so that the function is given a copy."""
    def method(self, *args, **kwargs):
        try:
            if "out" in kwargs:
                raise TypeError(f"{name}: takes no out: the result goes into the tensor itself")
            if not isinstance(self, Tensor):
                return call_proxy_in_place(name, function, (self, *args), kwargs)
            if watched & watch.OVERRIDES:        # a class knows the whole call, and its own memory
                done = overridden(getattr(Tensor, name), (self, *args), kwargs)
                if done is not NotImplemented:
                    return done
            if writer is not None:
                return writer(self, *args, **kwargs)
            return write_result(name, self, function(self.clone() if kept else self, *args,
                                                     **kwargs))
        except BaseException as error:
            raise shown(error, method, kwargs)
    return method


def take_layout(str name, Tensor x, view_of, tuple args):
    """`x`, after it got the layout and the grad_fn of `view_of(x, *args)`.

    Its elements are not moved. Values of it that were saved before count as overwritten.
    """
    cdef Tensor view
    cdef list followed
    if watched and offered(None, name, (x, *args), None) is not NotImplemented:
        return x
    check_may_change(name, x, mode().grad)
    x.storage.version += 1
    try:
        view = view_of(x, *args)
        followed = follow(x, view)
        replace(x, view)
    except BaseException:
        x.storage.version -= 1
        raise
    if view.grad_node is not None:
        set_history(x, view, followed)
    return x
