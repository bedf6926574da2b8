"""Operands of operators: Python numbers and arrays as tensors.

A number becomes a 0-d tensor of the dtype in which it will be computed, marked as a number for
promotion. Recent ones are cached, since loops use the same few numbers: `a * 2.0` then costs as
much as `a + b`. These tensors are never visible to users. Their memory holds a cache line of copies
of the number, which loops over few elements read as an ordinary operand.
"""

from cpython.complex cimport (
    PyComplex_Check, PyComplex_ImagAsDouble, PyComplex_RealAsDouble,
)
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_Check, PyFloat_CheckExact
from cpython.long cimport (
    PyLong_AsLongLongAndOverflow, PyLong_AsUnsignedLongLong, PyLong_Check, PyLong_CheckExact,
)
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdint cimport int64_t, uint64_t
from libc.math cimport isfinite
from libc.string cimport memcpy

import numpy as np

from tensorlib._core.arrays.arrays cimport from_ndarray
from tensorlib._core.base.dtypes cimport (
    BOOL, BOOLEAN_KIND, COMPLEX128, COMPLEX_KIND, FLOAT64, FLOAT_KIND, INT64, ITEMSIZE, KIND,
    UINT64, complex_of, default_float, dtype as DType, dtype_object, is_unsigned, promote,
)
from tensorlib._core.base.locks cimport (
    FREE_THREADED, Lock, drop, get_pointer, hold, set_pointer,
)
from tensorlib._core.base.shape cimport LARGEST, items
from tensorlib._core.base.storage cimport LINE
from tensorlib._core.graph.op cimport BOOLS, NEGATIVES, Op
from tensorlib._core.interpreters.foreign cimport call_proxy, to_write
from tensorlib._core.tensor.meta cimport new_in_mode
from tensorlib._core.tensor.numbers cimport as_real, element, exact_number
from tensorlib._core.tensor.tensor cimport Tensor, new_tensor
from tensorlib._core.tiles.loops cimport find_cast, find_gather

from tensorlib._core.base.error_names import type_name, with_remedy
from tensorlib._core.base.storage import OutOfMemoryError, check_room
from tensorlib._core.tensor.numbers import OutOfRangeError

cdef extern from "Python.h":
    bint PyBool_Check(object value)

cdef enum:
    N_SCALARS = 256

cdef PyObject* scalars[N_SCALARS]         # Tensors, owned
cdef uint64_t scalar_keys[N_SCALARS]
cdef Lock keeping


cdef Tensor scalar_tensor(object value, int dtype):
    """A new 0-d tensor of a Python number. Integers wrap to the range of the dtype."""
    cdef Tensor x = new_in_mode(False, dtype, 0, NULL)    # on `meta` too
    cdef double real
    cdef int64_t whole
    cdef double[2] parts
    cdef int overflow = 0
    if PyComplex_Check(value) and KIND[dtype] == COMPLEX_KIND:
        parts[0], parts[1] = PyComplex_RealAsDouble(value), PyComplex_ImagAsDouble(value)
        find_cast(COMPLEX128, dtype)(parts, x.data_pointer, 1)
        return x
    if PyFloat_Check(value) or KIND[dtype] >= FLOAT_KIND:
        real = as_real(value)
        if dtype == FLOAT64:
            (<double*>x.data_pointer)[0] = real
        else:
            find_cast(FLOAT64, dtype)(&real, x.data_pointer, 1)
        return x
    whole = PyLong_AsLongLongAndOverflow(value, &overflow)
    if overflow:
        if dtype != UINT64 or overflow < 0 or value.bit_length() > 64:
            raise OutOfRangeError(
                f"an int of {value.bit_length()} bits does not fit in "
                + ("uint64" if dtype == UINT64 else "int64"))
        whole = <int64_t>PyLong_AsUnsignedLongLong(value)
    if dtype == INT64:
        (<int64_t*>x.data_pointer)[0] = whole
    else:
        find_cast(INT64, dtype)(&whole, x.data_pointer, 1)
    return x


cdef Tensor number(object value, int dtype):
    """The marked 0-d tensor of a Python number, from the cache if it is there."""
    cdef Tensor x
    cdef double real
    cdef uint64_t key
    cdef int place
    if not PyFloat_Check(value):
        return repeated(value, dtype)
    real = PyFloat_AS_DOUBLE(value)
    memcpy(&key, &real, 8)
    place = <int>(((key * <uint64_t>0x9E3779B97F4A7C15) >> 52) + dtype) & (N_SCALARS - 1)
    if get_pointer(&scalars[place]) != NULL and scalar_keys[place] == key and (
            <Tensor>scalars[place]).type == dtype:
        return <Tensor>scalars[place]
    x = repeated(value, dtype)
    if FREE_THREADED:
        keep_for_good(place, key, x)
        return x
    Py_INCREF(x)
    Py_XDECREF(scalars[place])
    scalars[place] = <PyObject*>x
    scalar_keys[place] = key
    return x


cdef void keep_for_good(int place, uint64_t key, Tensor x) noexcept:
    """Caches a number in an empty slot only: another thread may be about to use a cached one."""
    hold(&keeping)
    if scalars[place] == NULL:
        Py_INCREF(x)
        scalar_keys[place] = key
        set_pointer(&scalars[place], <PyObject*>x)
    drop(&keeping)


cdef Tensor repeated(object value, int dtype):
    """A marked 0-d tensor whose memory holds a cache line of copies of the number."""
    cdef Tensor x = scalar_tensor(value, dtype)
    find_gather(dtype)(x.data_pointer, 0, x.data_pointer, LINE // ITEMSIZE[dtype])
    x.is_scalar = True
    x.storage.version = 0          # cached ones are used outside of inference mode too
    return x


cdef Tensor operand(Op op, int i, object value, Tensor partner):
    """Argument `i` of an operator, beside the tensor `partner` (or None), as a tensor.

    None for a type that can't be converted to a tensor.
    """
    cdef int dtype
    if isinstance(value, Tensor):
        return <Tensor>value
    if PyFloat_Check(value):
        dtype = default_float()
        if partner is not None and KIND[partner.type] >= FLOAT_KIND:
            dtype = number_dtype(op, i, partner.type)
        return number(value, dtype)
    if PyBool_Check(value) or PyLong_Check(value):
        dtype = BOOL if PyBool_Check(value) else INT64
        if partner is not None and not (dtype == BOOL and op.guard == BOOLS):
            if KIND[partner.type] >= FLOAT_KIND:
                return number(as_real(value), number_dtype(op, i, partner.type))
            if KIND[partner.type] >= KIND[dtype] and not (op.to_float or op.guard == NEGATIVES):
                dtype = partner.type         # numbers wrap there, as in PyTorch
                if op.boolean_inputs:        # except numbers that become elements unchanged
                    require_fits(op.name, value, dtype)
        return number(value, dtype)
    if PyComplex_Check(value):
        return number(value, complex_of(default_float() if partner is None else partner.type))
    if isinstance(value, np.generic):
        value = exact_number(value)
        return None if value is None else operand(op, i, value, partner)
    if isinstance(value, np.ndarray):
        return from_ndarray("operand" if op is None else op.name, value)
    return None


cdef int require_fits(str name, object value, int dtype) except -1:
    """Raises OutOfRangeError for an int that an integer dtype can't hold."""
    if element(scalar_tensor(value, dtype)) != value:
        raise OutOfRangeError(f"{name}: {value} does not fit in {dtype_object(dtype)}")
    return 0


cpdef int require_factor(str name, str argument, object value, DType dtype) except -1:
    """Raises OutOfRangeError for a factor that overflows the dtype in which it is used. Negative
    ones wrap in unsigned dtypes; inf and NaN are allowed."""
    cdef int id = dtype.id, overflows = 0
    cdef bint fits = True
    if PyFloat_CheckExact(value):                     # first the range that any dtype can hold
        if -65504 <= <double>value <= 65504:
            return 0
    elif PyLong_CheckExact(value):
        if -128 <= PyLong_AsLongLongAndOverflow(value, &overflows) <= 127 and not overflows:
            return 0
    if KIND[id] == BOOLEAN_KIND or id == FLOAT64 or id == COMPLEX128:
        return 0
    if KIND[id] >= FLOAT_KIND:
        fits = not isinstance(value, (int, float)) or not isfinite(as_real(value)) or isfinite(
            as_real(abs(element(scalar_tensor(value, id)))))
    elif id != INT64 and isinstance(value, int):      # beyond 64 bits it raises elsewhere
        if is_unsigned(id):
            value = abs(value)
        fits = element(scalar_tensor(value, id)) == value
    if not fits:
        raise OutOfRangeError(f"{name}: {argument}: value cannot be converted to type {dtype.name} "
                              f"without overflow, got {value}")
    return 0


# ---- arguments in general ------------------------------------------------------------------------

cdef tuple tuple_of(Op op, object tensors):
    if isinstance(tensors, Tensor) and (<Tensor>tensors).ndim_:
        check_room(op.name, (<Tensor>tensors).dims[0], Tensor.__basicsize__)
    try:
        return items(tensors, LARGEST)
    except MemoryError as error:
        raise OutOfMemoryError(f"{op.name}: no memory for so many tensors") from error
    except TypeError:
        raise TypeError(f"{op.name}: {op.arguments[0]} must be a sequence of Tensors, not "
                        f"{type_name(tensors)}") from None


cdef bint all_tensors(tuple tensors):
    for x in tensors:
        if not isinstance(x, Tensor):
            return False
    return True


cdef object refused(Op op, tuple args, dict kwargs):
    """The result of a call with arguments other than tensors by one of these.

    Raises: TypeError for the first invalid argument, if none of them handles the call.
    """
    cdef list wrong
    done = call_proxy(op, args, kwargs)
    if done is not NotImplemented:
        return done
    if op.variadic:
        wrong = [i for i, x in enumerate(args[0]) if not isinstance(x, Tensor)]
        raise TypeError(f"{op.name}: expected a Tensor at {op.arguments[0]}[{wrong[0]}], got "
                        f"{type_name(args[0][wrong[0]])}")
    wrong = [pair for pair in zip(op.arguments, args) if not isinstance(pair[1], Tensor)]
    wrong = [pair for pair in wrong if operand(op, 0, pair[1], None) is None] or wrong
    name, value = wrong[0]
    raise TypeError(f"{op.name}: {name} must be a Tensor{or_number(op)}, not {with_remedy(value)}")


cdef str or_number(Op op):
    """Beside another tensor, an element-wise operation takes a number."""
    return " or a number" if op.elementwise and op.n_args > 1 else ""


cdef tuple convert_arguments(Op op, tuple args):
    cdef list converted = list(args)
    cdef Tensor x
    for i in range(op.n_args):
        x = operand(op, i, args[i], None)
        if x is None:
            raise TypeError(f"{op.name}: {op.arguments[i]} must be a Tensor, not "
                            f"{with_remedy(args[i])}")
        converted[i] = x
    return tuple(converted)


# ---- arguments of element-wise operations --------------------------------------------------------

cdef list as_tensors(Op op, tuple args):
    """The arguments of an operation that writes to a tensor, as tensors."""
    cdef list tensors = operands_of(op, args)
    if tensors is None:
        for name, value in zip(op.arguments, args):
            if operand(op, 0, value, None) is None:
                to_write(op.name, f"{name} must be a Tensor{or_number(op)}", value)
    return tensors


cdef list operands_of(Op op, tuple args):
    """The arguments of an element-wise operation as tensors; numbers take the dtype of the tensors.

    None where an argument can't be one.
    """
    cdef Tensor partner = None, x
    cdef list tensors = []
    for i, value in enumerate(args):
        if isinstance(value, Tensor) and i not in op.boolean_inputs:
            partner = stronger(op, partner, <Tensor>value)
    for i, value in enumerate(args):
        x = operand(op, i, value, None if i in op.boolean_inputs else partner)
        if x is None:
            return None
        tensors.append(x)
    return tensors


cdef Tensor stronger(Op op, Tensor a, Tensor b):
    """The one of two tensors whose dtype is the promoted one or, if neither has it, a tensor on
    `meta` that has; None is the weakest."""
    cdef Py_ssize_t nothing = 0
    cdef int both
    if a is None:
        return b
    if a.type == b.type:
        return a
    if KIND[a.type] == KIND[b.type] and (a.ndim_ == 0) != (b.ndim_ == 0):
        return a if a.ndim_ else b
    both = promote(op.name, a.type, b.type)
    if both == a.type or both == b.type:
        return a if both == a.type else b
    return new_tensor(both, 1 if a.ndim_ or b.ndim_ else 0, &nothing)


cdef object array_operand(Op op, object x):
    """An array as a tensor; None for a number, which has no matrix product."""
    return x if isinstance(x, Tensor) else operand(op, 0, x, None) if hasattr(x, "ndim") else None
