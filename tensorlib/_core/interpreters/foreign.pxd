from cpython.float cimport PyFloat_CheckExact
from cpython.long cimport PyLong_CheckExact
from cpython.object cimport PyObject, PyTypeObject, Py_TYPE

from tensorlib._core.base cimport watch
from tensorlib._core.base.region cimport in_region, makes_meta
from tensorlib._core.base.watch cimport watched
from tensorlib._core.graph.op cimport Op

from tensorlib._core.tensor.tensor cimport Tensor

cpdef bint is_proxy(object value)


cdef inline bint is_tensor_like(object value):
    """Whether a value is a Tensor or a proxy."""
    return isinstance(value, Tensor) or is_proxy(value)


cdef inline bint may_override(object value):
    """Whether the class of this argument may override calls by its `__torch_function__`."""
    if type(value) is Tensor or PyFloat_CheckExact(value) or PyLong_CheckExact(value):
        return False
    return watched & watch.OVERRIDES or not isinstance(value, Tensor)


cdef PyTypeObject* usual_subclass        # of Tensor that does not override: Parameter


cdef inline bint runs_plain(object x) noexcept:
    """Whether a call with this tensor is not intercepted, though the process has seen overriding
    classes or tensors on `meta`: it is neither, and nothing else observes calls."""
    return (watched & ~(watch.OVERRIDES | watch.META) == 0
            and (Py_TYPE(x) == <PyTypeObject*>Tensor or Py_TYPE(x) == usual_subclass)
            and not in_region((<Tensor>x).storage.data) and not makes_meta())


cdef inline bint all_run_plain(PyObject* const* tensors, int n) noexcept:
    """Whether `runs_plain` holds for each tensor."""
    cdef int i
    for i in range(n):
        if not runs_plain(<object>tensors[i]):
            return False
    return True


cdef Tensor plain_view(Tensor x)
cdef bint call_runs_plain(tuple args, dict kwargs) except -1
cdef bint any_asks(PyObject* const* args, Py_ssize_t n) noexcept
cdef bint is_read_alone(object value) noexcept
cdef object call_proxy(Op op, tuple args, dict kwargs)
cdef object call_composite_proxy(object function, tuple args, dict kwargs)
cdef object call_proxy_in_place(str name, function, tuple args, dict kwargs)
cdef Tensor to_write(str name, str argument, object value)
cpdef object proxied(object value)
cpdef object as_proxy(object like, object whole)
cdef Tensor representative(str name, object value, bint whole)
cpdef bint overrides(object value)
cpdef object overridden(object function, tuple args, dict kwargs)
cdef object overridden_form(object op, str name, tuple args, dict kwargs)
cdef object overridden_like(function, tuple args, object dtype, object layout, object device,
                            object pin_memory, object requires_grad, object memory_format,
                            object generator=*)
