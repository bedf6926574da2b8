"""Tensors of a graph that are used as numbers, and what becomes of their gradients.

A number has no gradient. In ordinary code a warning says so, as in PyTorch. In a function under a
transform a gradient of zero would be wrong, so such a use is recorded if possible, and otherwise an
error, which callers raise by the functions here.
"""

from tensorlib._core.base.watch cimport watched
from tensorlib._core.graph.modes cimport mode
from tensorlib._core.interpreters.foreign cimport is_proxy, is_tensor_like
from tensorlib._core.interpreters.stack cimport leaving
from tensorlib._core.tensor.numbers cimport as_real, element
from tensorlib._core.tensor.tensor cimport Tensor, requires_grad

import opcode
import sys

from tensorlib._core.base.warned import warn_of
from tensorlib._core.graph.op import find

cdef int STORE_SUBSCR = opcode.opmap["STORE_SUBSCR"]


cpdef bint in_graph(object value) noexcept:
    """Whether a value is a tensor whose gradient would be recorded now."""
    return isinstance(value, Tensor) and mode().grad and requires_grad(<Tensor>value)


cdef bint is_linked(object value):
    """Whether a value is in a graph, or is a proxy: results of operations are linked to it, but
    tensors made of its numbers are not."""
    return in_graph(value) or is_proxy(value)


cpdef bint differentiating() noexcept:
    """Whether a transform runs a function that it differentiates."""
    return mode().epoch != 0 or mode().forward_mode


cdef object number_of(Tensor x):
    """The one element as a Python number, for `float(x)` and `int(x)`.

    Raises: RuntimeError for `array[i] = x` if `x` is in a graph, ValueError for several elements.
    """
    if x.numel_ != 1:
        raise ValueError("only one element tensors can be converted to Python scalars, "
                         f"got shape {tuple(x.shape)}")
    if watched:
        leaving("float", x)
    if in_graph(x):
        if stored_at_index():
            raise RuntimeError(
                "setitem: a tensor that requires grad can't become an element of an array, which "
                "has no gradient; write it into a Tensor, or assign x.item()")
        warn_of_number()
    value = element(x)
    return as_real(value) if type(value) is complex else value


cdef bint stored_at_index():
    """Whether the number is for an assignment `array[i] = x` to an array of NumPy or `array`.

    This calls the same slot as `float(x)` without a Python frame of its own, so it is recognised by
    the current instruction of the calling function.
    """
    frame = sys._getframe()
    return frame.f_lasti >= 0 and frame.f_code.co_code[frame.f_lasti] == STORE_SUBSCR


cdef int warn_of_number() except -1:
    warn_of("Converting a tensor with requires_grad=True to a scalar may lead to unexpected "
            "behavior: the number has no gradient. Use x.item() if none is wanted, or stack "
            "tensors.")
    return 0


cdef int warn_of_copy(str name) except -1:
    warn_of(f"To copy construct from a tensor, it is recommended to use x.detach().clone(), or "
            f"x.clone() to keep its gradient, rather than {name}(x), whose result has none")
    return 0


cdef object joined(list leaves, tuple shape, object dtype, object tensor_of):
    """A tensor of consecutive numbers and tensors, recorded as a function of the latter."""
    parts = [(leaf if is_tensor_like(leaf) else tensor_of(leaf, dtype=dtype))
             .to(dtype).reshape(-1) for leaf in leaves]
    return find("cat").function(parts).reshape(shape)
