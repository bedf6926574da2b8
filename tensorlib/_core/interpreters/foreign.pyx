"""Classes that are no Tensor and do operations themselves."""

from tensorlib._core.graph.op cimport Op
from tensorlib._core.tensor.tensor cimport Tensor


# A class that is no Tensor, but whose instances go where Tensors go (one example of a batch, say),
# has a class method `__tensor_call__(op, args, kwargs)` that does an operation given any of them.
# It is looked for where an operation would otherwise refuse its arguments, so Tensors never pay.
# `__tensor_function__(name, args)` does a function that is no operation, where that asks for it.
# `x.like()` is a tensor of its shape and dtype, `x.behind()` the tensor of all that it stands for,
# and `x.before(y)` stands for `y` as `x` does for that.

cpdef bint stands_in(object value):
    """Whether the value is no Tensor but has its own way to do operations."""
    return not isinstance(value, Tensor) and hasattr(type(value), "__tensor_call__")


cpdef object behind(object value):
    """The tensor of all values that a value stands for; a Tensor itself."""
    return value.behind() if stands_in(value) else value


cdef object stand_in(Op op, tuple args, dict kwargs):
    """The operation as done by a value among its arguments; NotImplemented where none does it."""
    for value in args:
        for part in (value if isinstance(value, (tuple, list)) else (value,)):
            if stands_in(part):
                return type(part).__tensor_call__(op, args, kwargs or {})
    return NotImplemented


def refuse_batch(str name, object value):
    """Raises RuntimeError for a value that stands for many tensors: results differ in shape."""
    if stands_in(value):
        raise RuntimeError(f"{name}: vmap: the shape of the result would differ between the "
                           "examples of a batch; use where and masks")


def in_batch(str name, tuple args):
    """What a function of operations gives, done by a value among its arguments that stands in."""
    for value in args:
        if stands_in(value):
            return type(value).__tensor_function__(name, args)


cdef int refuse_shared_write(str name, tuple args) except -1:
    """Raises RuntimeError if a value that stands for others is to be written to a tensor."""
    for value in args:
        if stands_in(value):
            why = getattr(type(value), "no_write", "vmap: a tensor that all examples of a batch "
                          "share can't be written in place or by out= with a value that differs "
                          "between them")
            raise RuntimeError(f"{name}: {why}; use the form that returns a new tensor")
    return 0
