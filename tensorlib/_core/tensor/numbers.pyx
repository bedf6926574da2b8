"""Elements as Python numbers and back, one or a row at a time."""

cimport numpy as cnp
from cpython.complex cimport (
    PyComplex_Check, PyComplex_CheckExact, PyComplex_FromDoubles, PyComplex_ImagAsDouble,
    PyComplex_RealAsDouble,
)
from cpython.float cimport (
    PyFloat_AS_DOUBLE, PyFloat_AsDouble, PyFloat_Check, PyFloat_CheckExact,
)
from cpython.list cimport PyList_New, PyList_SET_ITEM
from cpython.long cimport (
    PyLong_AsDouble, PyLong_AsUnsignedLongLong, PyLong_Check, PyLong_CheckExact,
)
from cpython.number cimport PyNumber_Index
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport (
    int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t,
)
from libc.string cimport memcpy

from tensorlib._core.base.dtypes cimport (
    BOOL, COMPLEX128, COMPLEX64, FLOAT16, FLOAT32, FLOAT64, INT16, INT32, INT64,
    INT8, ITEMSIZE, UINT16, UINT32, UINT64, UINT8, complex_of, default_float, dtype_object,
    from_numpy_dtype, is_unsigned,
)
from tensorlib._core.base.upcalls cimport upcalls
from tensorlib._core.base.watch cimport watched
from tensorlib._core.tensor.meta cimport elements
from tensorlib._core.tensor.tensor cimport Tensor, alias

import numpy as np

from tensorlib._core.base.error_names import OutOfRangeError
from tensorlib._core.tensor.tensor import attach

cnp.import_array()

cdef extern from "Python.h":
    bint PyBool_Check(object value)
    double PyFloat_Unpack2(const char* data, int little_endian) except? -1.0
    long long PyLong_AsLongLongAndOverflow(object value, int* overflow) except? -1


ctypedef fused real:
    float
    double

ctypedef fused integer:
    uint8_t
    int8_t
    int16_t
    int32_t
    int64_t
    uint16_t
    uint32_t
    uint64_t


# ---- from Python -------------------------------------------------------------------------------

cdef int scalar_dtype(object value) except -1:
    """The dtype id of a leaf of a nested sequence."""
    if PyFloat_CheckExact(value):
        return default_float()
    if value is True or value is False:
        return BOOL
    if PyLong_CheckExact(value):
        return INT64
    if isinstance(value, Tensor):
        return (<Tensor>value).type
    if cnp.PyArray_CheckScalar(value) or isinstance(value, cnp.ndarray):
        return from_numpy_dtype(value.dtype.newbyteorder("="), "tensor")
    if PyFloat_Check(value):
        return default_float()
    if PyLong_Check(value):
        return INT64
    if PyComplex_Check(value):
        return complex_of(default_float())
    if isinstance(value, (str, bytes)):
        raise TypeError(f"tensor: expected numbers, got {type(value).__name__} {value!r:.40}")
    raise RuntimeError(f"tensor: could not infer dtype of {type(value).__name__}")


cdef object exact_number(object value):
    """A number as an exact float, int, bool or complex; None for what is not a number.

    The result is of no subclass, so comparing it or computing with it runs no user code.
    """
    if (PyFloat_CheckExact(value) or PyLong_CheckExact(value) or PyBool_Check(value)
            or PyComplex_CheckExact(value)):
        return value
    if PyFloat_Check(value):
        return PyFloat_AS_DOUBLE(value)
    if PyComplex_Check(value) or isinstance(value, np.complexfloating):
        return complex(value)
    if PyLong_Check(value):
        return PyNumber_Index(value)
    if isinstance(value, np.floating):       # not item(), which returns an np.longdouble unchanged
        return PyFloat_AsDouble(value)
    if isinstance(value, np.integer) and not isinstance(value, np.timedelta64):
        return PyNumber_Index(value)
    return bool(value) if isinstance(value, np.bool_) else None


cdef object as_number(object value):
    """Converts a leaf that is not an exact Python number to one."""
    if isinstance(value, Tensor):
        return element(value)
    found = exact_number(np.ndarray.item(value) if isinstance(value, cnp.ndarray) else value)
    if found is None:
        raise TypeError(f"tensor: expected a number, got {type(value).__name__}")
    return found


cdef double as_real(object value) except? -1.0:
    """A Python number as a C double. Raises OutOfRangeError for an int beyond all doubles, and for
    a complex number with an imaginary part."""
    if PyFloat_Check(value):
        return PyFloat_AS_DOUBLE(value)
    if PyComplex_Check(value):
        return real_part(value)
    try:
        return PyLong_AsDouble(value)
    except OverflowError:
        raise OutOfRangeError(f"an int of {value.bit_length()} bits does not fit in a double") \
            from None


cdef double real_part(object value) except? -1.0:
    """The real part of a complex number. Raises OutOfRangeError unless the imaginary one is 0."""
    if PyComplex_ImagAsDouble(value) != 0:
        raise OutOfRangeError(f"tensor: {value} has an imaginary part, which no real dtype holds")
    return PyComplex_RealAsDouble(value)


cdef double as_double(object value) except? -1.0:
    if PyFloat_Check(value):
        return PyFloat_AS_DOUBLE(value)
    if PyLong_Check(value):
        return PyLong_AsDouble(value)
    if PyComplex_Check(value):
        return real_part(value)
    if cnp.PyArray_CheckScalar(value) and not isinstance(value, np.complexfloating):
        return PyFloat_AsDouble(value)
    return as_double(as_number(value))


cdef int64_t as_int64(object value, int id, int64_t low, int64_t high) except? -1:
    """A number cut to an integer. Raises OutOfRangeError beyond [low, high]."""
    cdef int overflow = 0
    cdef double real_value
    cdef int64_t found
    if PyFloat_Check(value):
        real_value = PyFloat_AS_DOUBLE(value)
        # 2**63 is exact as a double, `high` may not be; NaN fails every comparison
        if not (real_value > <double>low - 1.0 or real_value == <double>low) \
                or not real_value < <double>high + 1.0:
            overflow = 1
        else:
            found = <int64_t>real_value
    elif PyLong_Check(value):
        found = PyLong_AsLongLongAndOverflow(value, &overflow)
        overflow |= found < low or found > high
    elif PyComplex_Check(value):
        return as_int64(real_part(value), id, low, high)
    else:
        return as_int64(as_number(value), id, low, high)
    if overflow:
        # str() of an int of thousands of digits raises
        if PyLong_Check(value) and value.bit_length() > 64:
            value = f"an int of {value.bit_length()} bits"
        raise OutOfRangeError(
            f"tensor: {value} does not fit in {dtype_object(id)}, which holds {low} to {high}")
    return found


cdef uint64_t as_uint64(object value) except? 1:
    """A number cut to an integer from 0 to 2**64 - 1. Raises OutOfRangeError."""
    cdef double real
    if PyFloat_Check(value):
        real = PyFloat_AS_DOUBLE(value)
        if 9223372036854775808.0 <= real < 18446744073709551616.0:
            return <uint64_t>real
    elif PyComplex_Check(value):
        return as_uint64(real_part(value))
    elif not PyLong_Check(value):
        return as_uint64(as_number(value))
    elif value.bit_length() == 64 and value > 0:
        return PyLong_AsUnsignedLongLong(value)
    try:
        return <uint64_t>as_int64(value, UINT64, 0, <int64_t>(<uint64_t>-1 >> 1))
    except OutOfRangeError as error:
        raise OutOfRangeError(str(error).replace(str(2**63 - 1), str(2**64 - 1))) from None


# ---- rows of leaves ----------------------------------------------------------------------------
# Of a row that is not held (a list, which code that a leaf runs could shrink) only Python's own
# numbers are read: False at the first other leaf.

cdef inline bint is_plain(object value):
    return (PyFloat_CheckExact(value) or PyLong_CheckExact(value) or PyBool_Check(value)
            or PyComplex_CheckExact(value))


cdef bint write_reals(real* out, PyObject** values, Py_ssize_t n, bint held) except -1:
    cdef Py_ssize_t i
    for i in range(n):
        if PyFloat_CheckExact(<object>values[i]):
            out[i] = <real>PyFloat_AS_DOUBLE(<object>values[i])
        elif held or is_plain(<object>values[i]):
            out[i] = <real>as_double(<object>values[i])
        else:
            return False
    return True


cdef bint write_complex(real* out, PyObject** values, Py_ssize_t n, bint held) except -1:
    cdef Py_ssize_t i
    cdef object value
    for i in range(n):
        value = <object>values[i]
        if not is_plain(value):
            if not held:
                return False
            value = as_number(value)
        if PyComplex_Check(value):
            out[2 * i] = <real>PyComplex_RealAsDouble(value)
            out[2 * i + 1] = <real>PyComplex_ImagAsDouble(value)
        else:
            out[2 * i], out[2 * i + 1] = <real>as_double(value), 0
    return True


cdef bint write_integers(integer* out, PyObject** values, Py_ssize_t n, int id,
                         bint held) except -1:
    cdef int64_t high = (<uint64_t>-1 >> (65 - 8 * sizeof(integer))), low = -high - 1
    cdef Py_ssize_t i
    if is_unsigned(id) and integer is not uint64_t:  # which is read apart
        low, high = 0, 2 * high + 1
    for i in range(n):
        if not (held or is_plain(<object>values[i])):
            return False
        if integer is uint64_t:
            out[i] = as_uint64(<object>values[i])
        else:
            out[i] = <integer>as_int64(<object>values[i], id, low, high)
    return True


cdef bint write_bools(char* out, PyObject** values, Py_ssize_t n, bint held) except -1:
    cdef Py_ssize_t i
    for i in range(n):
        if <object>values[i] is True or <object>values[i] is False:
            out[i] = <object>values[i] is True
        elif held or is_plain(<object>values[i]):
            out[i] = bool(as_number(<object>values[i]))
        else:
            return False
    return True


cdef bint write_row(char* out, int id, PyObject** values, Py_ssize_t n, bint held) except -1:
    """Writes n leaves as elements of a dtype that is not a half type; False for one to be held."""
    if id == FLOAT32:
        return write_reals(<float*>out, values, n, held)
    if id == FLOAT64:
        return write_reals(<double*>out, values, n, held)
    if id == INT64:
        return write_integers(<int64_t*>out, values, n, id, held)
    if id == BOOL:
        return write_bools(out, values, n, held)
    if id == INT32:
        return write_integers(<int32_t*>out, values, n, id, held)
    if id == INT16:
        return write_integers(<int16_t*>out, values, n, id, held)
    if id == INT8:
        return write_integers(<int8_t*>out, values, n, id, held)
    if id == UINT16:
        return write_integers(<uint16_t*>out, values, n, id, held)
    if id == UINT32:
        return write_integers(<uint32_t*>out, values, n, id, held)
    if id == UINT64:
        return write_integers(<uint64_t*>out, values, n, id, held)
    if id == COMPLEX64:
        return write_complex(<float*>out, values, n, held)
    if id == COMPLEX128:
        return write_complex(<double*>out, values, n, held)
    return write_integers(<uint8_t*>out, values, n, id, held)


# ---- to Python --------------------------------------------------------------------------------

cdef double read_bfloat16(const char* data) noexcept:
    cdef uint32_t bits = <uint32_t>(<const uint16_t*>data)[0] << 16
    cdef float value
    memcpy(&value, &bits, sizeof(float))
    return value


cdef object read(int id, const char* data):
    """One element as a Python number."""
    if id == FLOAT32:
        return (<const float*>data)[0]
    if id == FLOAT64:
        return (<const double*>data)[0]
    if id == INT64:
        return (<const int64_t*>data)[0]
    if id == BOOL:
        return data[0] != 0
    if id == INT32:
        return (<const int32_t*>data)[0]
    if id == UINT8:
        return (<const uint8_t*>data)[0]
    if id == INT8:
        return (<const int8_t*>data)[0]
    if id == INT16:
        return (<const int16_t*>data)[0]
    if id == FLOAT16:
        return PyFloat_Unpack2(data, True)
    if id == UINT16:
        return (<const uint16_t*>data)[0]
    if id == UINT32:
        return (<const uint32_t*>data)[0]
    if id == UINT64:
        return (<const uint64_t*>data)[0]
    if id == COMPLEX64:
        return PyComplex_FromDoubles((<const float*>data)[0], (<const float*>data)[1])
    if id == COMPLEX128:
        return PyComplex_FromDoubles((<const double*>data)[0], (<const double*>data)[1])
    return read_bfloat16(data)


cdef list read_list(Tensor x, int dim, const char* data):
    cdef Py_ssize_t i, size = x.dims[dim], step = x.steps[dim] * ITEMSIZE[x.type]
    cdef list out = PyList_New(size)
    cdef object value
    for i in range(size):
        value = (read(x.type, data) if dim == x.ndim_ - 1 else read_list(x, dim + 1, data))
        Py_INCREF(value)
        PyList_SET_ITEM(out, i, value)
        data += step
    return out


cdef object element(Tensor x):
    """The one element as a Python number. Raises RuntimeError."""
    if x.numel_ != 1:
        raise RuntimeError(
            f"item: a Tensor with {x.numel_} elements cannot be converted to Scalar")
    return read(x.type, elements("Tensor.item()", x))


cdef object item_of(Tensor x):
    """`element` for callers in Python."""
    if watched:
        upcalls.leaving("item", x)
    return element(x)


def item(Tensor self):
    """The one element as a Python number. Raises: RuntimeError if there are more or none."""
    return item_of(self)


def tolist(Tensor self):
    """The elements as nested lists of Python numbers; a number for a 0-d tensor."""
    if watched:
        upcalls.leaving("tolist", self)
    if self.ndim_ == 0:
        return element(self)
    self = alias(self)           # where a list is made the collector may run, and with it any code
    return read_list(self, 0, elements("Tensor.tolist()", self))


def __complex__(Tensor self):
    """The one element as a Python complex."""
    return complex(item_of(self)) if self.type >= COMPLEX64 else complex(float(self))


attach("item", item)
attach("tolist", tolist)
attach("__complex__", __complex__)
