from cpython.float cimport PyFloat_CheckExact
from cpython.long cimport PyLong_CheckExact
from cpython.object cimport PyObject

from tensorlib._core.base cimport watch
from tensorlib._core.base.watch cimport watched
from tensorlib._core.graph.op cimport Op

from tensorlib._core.tensor.tensor cimport Tensor

cpdef bint stands_in(object value)


cdef inline bint is_taken(object value):
    """Whether operations take a value as a tensor."""
    return isinstance(value, Tensor) or stands_in(value)


cdef inline bint may_override(object value):
    """Whether a class with `__torch_function__` of its own may do a call with this argument."""
    if type(value) is Tensor or PyFloat_CheckExact(value) or PyLong_CheckExact(value):
        return False
    return watched & watch.OVERRIDES or not isinstance(value, Tensor)


cdef bint any_asks(PyObject* const* args, Py_ssize_t n) noexcept
cdef bint is_read_alone(object value) noexcept
cdef object stand_in(Op op, tuple args, dict kwargs)
cdef object done_for_stand_in(object function, tuple args, dict kwargs)
cdef object stand_in_written(str name, function, tuple args, dict kwargs)
cdef Tensor to_write(str name, str argument, object value)
cpdef object behind(object value)
cpdef object standing(object like, object whole)
cdef Tensor shown_tensor(str name, object value, bint whole)
cpdef bint overrides(object value)
cpdef object overridden(object function, tuple args, dict kwargs)
cdef object overridden_form(object op, str name, tuple args, dict kwargs)
cdef object overridden_like(function, tuple args, object dtype, object layout, object device,
                            object pin_memory, object requires_grad, object memory_format,
                            object generator=*)
