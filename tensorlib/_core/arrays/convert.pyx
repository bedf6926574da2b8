"""New tensors of Python's objects: numbers, nested sequences, arrays and buffers.

A nested sequence is walked twice in C: once for its dtype, once to write its elements. Conversion
of an element could run code that shrinks a list that is being read, so lists are copied to tuples,
except for rows of exact Python numbers, whose conversion runs no code. It is outside autograd,
unless tensors among the data are in a graph: see as_numbers.pyx.
"""

cimport numpy as cnp
from cpython.buffer cimport PyObject_CheckBuffer
from cpython.float cimport PyFloat_CheckExact
from cpython.long cimport PyLong_CheckExact
from cpython.object cimport PyObject
from cpython.sequence cimport PySequence_Check
from libc.string cimport memcmp

import numpy as np

from tensorlib._core.arrays.arrays cimport from_ndarray, numpy_id
from tensorlib._core.arrays.as_numbers cimport (
    differentiating, in_graph, is_linked, joined, warn_of_copy, warn_of_number,
)
from tensorlib._core.base.blocks cimport copy_run
from tensorlib._core.base.dtypes cimport (
    BFLOAT16, BOOL, FLOAT16, FLOAT64, INT64, ITEMSIZE, default_float, dtype_id, dtype_object,
    from_numpy_dtype, promote,
)
from tensorlib._core.base.region cimport makes_meta
from tensorlib._core.base.shape cimport MAX_NDIM, items, parse_shape
from tensorlib._core.base.watch cimport watched
from tensorlib._core.interpreters.foreign cimport is_tensor_like, plain_view
from tensorlib._core.interpreters.on_meta cimport data_on
from tensorlib._core.interpreters.stack cimport effect, leaving, made
from tensorlib._core.tensor.meta cimport new_in_mode
from tensorlib._core.tensor.numbers cimport scalar_dtype, write_row
from tensorlib._core.tensor.tensor cimport Tensor, new_tensor
from tensorlib._core.tiles.copies cimport packed_copy

from tensorlib._core.arrays.dlpack import from_dlpack
from tensorlib._core.base.device import META, require_device
from tensorlib._core.base.error_names import type_name
from tensorlib._core.base.shape import Size

cnp.import_array()

cdef extern from "Python.h":
    Py_ssize_t PySequence_Fast_GET_SIZE(object sequence)
    PyObject** PySequence_Fast_ITEMS(object sequence)


class BesideArray(TypeError):
    """A sequence follows an array, so that the array has to be opened."""


# The result of the first walk over a nested sequence.
cdef struct Survey:
    int ndim
    int depth                    # levels that are sequences; deeper dims are those of arrays
    int dtype                    # the promoted dtype; -1 before the first element
    bint linked                  # some are tensors in a graph
    bint batched                 # some are proxies
    Py_ssize_t dims[MAX_NDIM]


# ---- nested sequences -------------------------------------------------------------------------

cdef inline bint is_sequence(object value):
    """Whether a value is a level of a nested sequence. Arrays and tensors are blocks instead."""
    if type(value) is list or type(value) is tuple:
        return True
    if PyFloat_CheckExact(value) or PyLong_CheckExact(value):
        return False
    return (PySequence_Check(value)
            and not isinstance(value, (str, bytes, cnp.ndarray))
            and not cnp.PyArray_CheckScalar(value) and not is_tensor_like(value))


cdef inline bint is_block(object value):
    """Whether a value fills the innermost dims: an ndarray, or a tensor of several elements.

    A tensor of one element is treated as its number, whatever its shape, as in PyTorch.
    """
    if PyFloat_CheckExact(value) or PyLong_CheckExact(value):
        return False
    if isinstance(value, Tensor):
        return (<Tensor>value).ndim_ > 0 and (<Tensor>value).numel_ != 1
    if isinstance(value, cnp.ndarray):
        return cnp.PyArray_NDIM(value) > 0
    return is_tensor_like(value) and value.ndim > 0 and value.numel() != 1


cdef object opened(object data):
    """Nested sequences in which lists stand for the array that is among the first elements."""
    cdef list rows = list(data)
    if rows and (is_sequence(rows[0]) or is_block(rows[0])):
        rows[0] = opened(rows[0])
    return rows


cdef Tensor block_tensor(object block):
    """A tensor over an ndarray, or a copy if its memory can't be shared; a tensor itself."""
    if isinstance(block, Tensor):
        return block
    return array_tensor(block)


cdef Tensor array_tensor(object array):
    if numpy_id(array) < 0:
        from_numpy_dtype(array.dtype.newbyteorder("="), "tensor")    # raises for other dtypes
        array = array.astype(array.dtype.newbyteorder("="))
    elif not array.flags.aligned or any([s % array.itemsize for s in array.strides]):
        array = array.copy()
    return from_ndarray("tensor", array)


cdef int first_shape(object data, Survey* survey) except -1:
    """The shape along the first elements, which all others must match."""
    cdef Py_ssize_t size
    survey.ndim = 0
    survey.dtype = -1
    survey.linked = survey.batched = False
    while is_sequence(data):
        if survey.ndim == MAX_NDIM:
            raise ValueError(f"tensor: sequences nested deeper than {MAX_NDIM} levels")
        size = len(data)
        survey.dims[survey.ndim] = size
        survey.ndim += 1
        if size == 0:
            break
        try:
            data = data[0]
        except KeyError:                         # a mapping
            raise ValueError("tensor: could not determine the shape of an object of type "
                             f"{type_name(data)}") from None
    survey.depth = survey.ndim
    if is_block(data):
        shape = data.shape
        if survey.ndim + len(shape) > MAX_NDIM:
            raise ValueError(f"tensor: sequences nested deeper than {MAX_NDIM} levels")
        for size in shape:
            survey.dims[survey.ndim] = size
            survey.ndim += 1
    return 0


cdef int meet(Survey* survey, int dtype) except -1:
    survey.dtype = dtype if survey.dtype < 0 else promote("tensor", survey.dtype, dtype)
    return 0


cdef int leaf_dtype(object leaf, Survey* survey) except -1:
    """The dtype id of a number, an array or a tensor; records the kind of tensors."""
    if not isinstance(leaf, Tensor) and is_linked(leaf):
        survey.batched = True
        return dtype_id(leaf.dtype)
    if watched and isinstance(leaf, Tensor):
        leaving("tensor", leaf)
    survey.linked = survey.linked or in_graph(leaf)
    return scalar_dtype(leaf)


cdef object frozen(object data, int level, const Survey* survey):
    """A sequence and those nested in it as tuples, except for rows in lists.

    Arrays and tensors beside sequences are opened: their rows or elements stand in their place.
    Raises TypeError or ValueError unless they have the shape of the first elements.
    """
    cdef Py_ssize_t n = survey.dims[level]
    if not is_sequence(data):
        if not getattr(data, "ndim", 0):
            raise TypeError(f"tensor: expected sequence of length {n} at dim {level} "
                            f"(got {type(data).__name__})")
        data = list(data)
    if len(data) != n:
        raise ValueError(
            f"tensor: expected sequence of length {n} at dim {level} (got {len(data)})")
    if level + 1 < survey.depth:
        return tuple([frozen(item, level + 1, survey) for item in held(data, n)])
    return data if type(data) is list and survey.depth == survey.ndim else held(data, n)


cdef tuple held(object data, Py_ssize_t n):
    """A sequence of n elements as a tuple."""
    cdef tuple values = items(data, n)
    if len(values) != n or len(data) != n:
        raise ValueError("tensor: the sequence changed while it was read")
    return values


cdef inline PyObject** row_items(object row, Py_ssize_t n) except? NULL:
    """The elements of a list or a tuple, which must be n."""
    if PySequence_Fast_GET_SIZE(row) != n:
        raise ValueError("tensor: the sequence changed while it was read")
    return PySequence_Fast_ITEMS(row)


cdef int look(object data, int level, Survey* survey) except -1:
    """Gathers the dtype of all leaves from `level` on, and checks the shape of arrays."""
    cdef PyObject** values
    cdef Py_ssize_t i, n = survey.dims[level]
    cdef bint reals = False, integers = False, bools = False
    cdef object last = None          # the type of the last NumPy scalar
    values = row_items(data, n)
    if level + 1 < survey.depth:
        for i in range(n):
            look(<object>values[i], level + 1, survey)
        return 0
    if survey.depth < survey.ndim:
        for i in range(n):
            look_block(<object>values[i], survey)
        return 0
    for i in range(n):
        if PyFloat_CheckExact(<object>values[i]):
            reals = True
        elif <object>values[i] is True or <object>values[i] is False:
            bools = True
        elif PyLong_CheckExact(<object>values[i]):
            integers = True
        elif type(data) is list:
            return look(held(data, n), level, survey)
        elif type(<object>values[i]) is last:
            continue
        elif is_sequence(<object>values[i]) or is_block(<object>values[i]):
            raise TypeError(
                f"tensor: expected a number at dim {level + 1}, like the first element, "
                f"got {type(<object>values[i]).__name__}")
        else:
            meet(survey, leaf_dtype(<object>values[i], survey))
            if isinstance(<object>values[i], np.generic):
                last = type(<object>values[i])
    if reals:
        meet(survey, default_float())
    if integers:
        meet(survey, INT64)
    if bools:
        meet(survey, BOOL)
    return 0


cdef int look_block(object block, Survey* survey) except -1:
    cdef int d, id
    if type(block) is cnp.ndarray and cnp.PyArray_NDIM(block) == survey.ndim - survey.depth:
        id = numpy_id(block)
        if id >= 0 and memcmp(cnp.PyArray_DIMS(block), &survey.dims[survey.depth],
                              (survey.ndim - survey.depth) * sizeof(Py_ssize_t)) == 0:
            meet(survey, id)
            return 0
    if not is_block(block):
        raise (BesideArray if is_sequence(block) else TypeError)(
            f"tensor: expected an array at dim {survey.depth}, like the first element, "
            f"got {type(block).__name__}")
    shape = block.shape
    if len(shape) != survey.ndim - survey.depth:
        raise ValueError(
            f"tensor: expected an array of {survey.ndim - survey.depth} dims at dim "
            f"{survey.depth} (got {len(shape)})")
    for d in range(survey.depth, survey.ndim):
        if shape[d - survey.depth] != survey.dims[d]:
            raise ValueError(
                f"tensor: expected sequence of length {survey.dims[d]} at dim {d} "
                f"(got {shape[d - survey.depth]})")
    meet(survey, leaf_dtype(block, survey))
    return 0


cdef char* write(object data, int level, Survey* survey, Tensor x, char* out) except NULL:
    """Writes the elements from `level` on to `out`; returns where the next ones go."""
    cdef Py_ssize_t i, n = survey.dims[level], itemsize = ITEMSIZE[x.type]
    cdef PyObject** values = row_items(data, n)
    if level + 1 < survey.depth:
        for i in range(n):
            out = write(<object>values[i], level + 1, survey, x, out)
    elif survey.depth < survey.ndim:
        for i in range(n):
            out = write_block(<object>values[i], survey, x, out)
    else:
        if not write_row(out, x.type, values, n, type(data) is not list):
            data = held(data, n)
            write_row(out, x.type, row_items(data, n), n, True)
        out += n * itemsize
    return out


cdef char* write_block(object block, Survey* survey, Tensor x, char* out) except NULL:
    cdef Py_ssize_t nbytes = ITEMSIZE[x.type]
    cdef Tensor source
    cdef int d
    for d in range(survey.depth, survey.ndim):
        nbytes *= survey.dims[d]
    if (type(block) is cnp.ndarray and numpy_id(block) == x.type
            and cnp.PyArray_IS_C_CONTIGUOUS(block) and cnp.PyArray_NBYTES(block) == nbytes):
        copy_run(<const char*>cnp.PyArray_DATA(block), out, nbytes)
        return out + nbytes
    source = block_tensor(block)
    if source.type != x.type or not source.packed:
        source = packed_copy(source, x.type)
    if source.numel_ * ITEMSIZE[x.type] != nbytes:
        raise ValueError("tensor: an array changed while it was read")
    copy_run(source.data_pointer, out, nbytes)
    return out + nbytes


cdef object from_sequence(object data, int id):
    cdef Survey survey
    cdef list leaves
    cdef int d
    cdef Tensor x
    cdef int stored
    first_shape(data, &survey)
    data = frozen(data, 0, &survey)
    try:
        look(data, 0, &survey)
    except BesideArray:
        return from_sequence(opened(data), id)
    if id < 0:
        id = default_float() if survey.dtype < 0 else survey.dtype
    if survey.batched or survey.linked and differentiating():
        leaves = []
        gather(data, 0, &survey, leaves)
        return joined(leaves, tuple([survey.dims[d] for d in range(survey.ndim)]),
                      dtype_object(id), tensor)
    if survey.linked:
        warn_of_number()
    # half types are rounded once, from float64
    stored = FLOAT64 if id == FLOAT16 or id == BFLOAT16 else id
    x = new_in_mode(False, stored, survey.ndim, survey.dims)    # data are kept on `meta` too
    if x.numel_:
        write(data, 0, &survey, x, x.data_pointer)
    return x if stored == id else packed_copy(x, id)


cdef int gather(object data, int level, const Survey* survey, list leaves) except -1:
    """Adds the leaves from `level` on to a list, in order."""
    if level == survey.depth:
        leaves.append(data)
        return 0
    for item in held(data, survey.dims[level]):
        gather(item, level + 1, survey, leaves)
    return 0


cdef Tensor from_scalar(object value, int id):
    cdef PyObject* values[1]
    cdef Tensor x
    cdef int stored
    if id < 0:
        id = scalar_dtype(value)
    else:
        scalar_dtype(value)
    stored = FLOAT64 if id == FLOAT16 or id == BFLOAT16 else id
    x = new_in_mode(False, stored, 0, NULL)
    values[0] = <PyObject*>value
    write_row(x.data_pointer, stored, values, 1, True)
    return x if stored == id else packed_copy(x, id)


cdef object from_data(object data, int dtype_or_minus1, str name="tensor"):
    """A new tensor of numbers, nested sequences, arrays, tensors or buffers; nothing is shared.

    Arrays, tensors and buffers keep their dtype unless one is given. In a function that is
    differentiated it is recorded as a function of the tensors in `data`; with Batched values it is
    Batched too. Raises TypeError, ValueError, RuntimeError or OutOfRangeError.
    """
    cdef Tensor x
    if PyFloat_CheckExact(data) or PyLong_CheckExact(data):
        return from_scalar(data, dtype_or_minus1)
    if type(data) is list or type(data) is tuple:
        return from_sequence(data, dtype_or_minus1)
    if is_linked(data) and (differentiating() or not isinstance(data, Tensor)):
        return (data if dtype_or_minus1 < 0 else data.to(dtype_object(dtype_or_minus1))).clone()
    if watched and isinstance(data, Tensor):
        leaving(name, data)
    if in_graph(data):
        warn_of_copy(name)
    x = existing(data)
    if x is not None:
        return packed_copy(x, x.type if dtype_or_minus1 < 0 else dtype_or_minus1)
    if is_sequence(data):
        return from_sequence(data, dtype_or_minus1)
    return from_scalar(data, dtype_or_minus1)


cdef object constructed(object data, int dtype_or_minus1):
    """The tensor for `Tensor(*data)`: of sizes, or of one sequence, array, tensor or buffer.

    As in PyTorch it is a view of a tensor, with its place in the graph, and shares the memory of an
    array of the default dtype; where a dtype is given, elements are copied.

    Raises: as `from_data`, RuntimeError for a lost gradient, TypeError for one number.
    """
    cdef int dtype = default_float() if dtype_or_minus1 < 0 else dtype_or_minus1
    cdef Tensor shared
    cdef Py_ssize_t[MAX_NDIM] dims
    cdef object x = data[0] if len(data) == 1 else ()
    if len(data) > 1 or type(x) is int or type(x) is Size:
        return new_tensor(dtype, parse_shape("Tensor", x if type(x) is Size else data, dims), dims)
    if isinstance(x, (bool, float, np.generic)):
        raise TypeError(f"Tensor: takes sizes, or a sequence, an array or a tensor, got {x!r}; "
                        "tensorlib.tensor makes a tensor of one number")
    if dtype_or_minus1 < 0 and isinstance(x, Tensor):
        effect("Tensor", <Tensor>x)
        return plain_view(x)
    if dtype_or_minus1 < 0 and type(x) is np.ndarray and (<object>x).flags.writeable:
        shared = existing(x)
        if shared.type == dtype:
            return shared
    x = from_data(x, dtype, "Tensor")
    if is_linked(x):
        raise RuntimeError("Tensor: made of tensors of the function that is differentiated, it "
                           "would lose their gradient; call tensorlib.tensor instead")
    return x


cdef Tensor existing(object data):
    """A tensor over the memory of an array, a tensor, a buffer or a DLPack producer, or None."""
    if type(data) is list or type(data) is tuple:
        return None
    if isinstance(data, Tensor):
        return data
    if hasattr(data, "__array__"):
        return array_tensor(np.asarray(data))
    if PyObject_CheckBuffer(data) and not isinstance(data, bytes):
        return array_tensor(np.asarray(memoryview(data)))
    return from_dlpack(data) if hasattr(data, "__dlpack__") else None


def tensor(data, *, dtype=None, device=None, bint requires_grad=False):
    """A new tensor that copies a number, nested sequence, array, buffer or tensor.

    Python's floats become the default dtype, ints int64, bools bool; arrays keep their dtype.
    Shapes: those of the nested sequence or the array; () for a number.
    Gradient: none, with a warning if `data` has tensors that require one. Inside of a transform
    such as `func.grad` it goes to these.
    Raises: ValueError for ragged sequences, TypeError and RuntimeError for what is not a number.

    >>> tensorlib.tensor([[1, 2.5], [3, 4]])
    tensor([[1.0000, 2.5000],
            [3.0000, 4.0000]])
    """
    if device is not None:
        require_device("tensor", device)
    x = from_data(data, -1 if dtype is None else dtype_id(dtype))
    if isinstance(x, Tensor):
        x = data_on(device, <Tensor>x)
    if requires_grad:
        x.requires_grad = True
    if watched:
        made(x)
    return x


def asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=None):
    """A tensor of `obj` that shares its memory where it can.

    Shared are tensors, NumPy arrays and buffers of the dtype asked for; `copy=True` always copies,
    `copy=False` never. Raises: ValueError if `copy=False` and a copy is needed, and for ragged
    sequences; TypeError and RuntimeError for what is not a number.

    >>> a = np.ones(2)
    >>> tensorlib.asarray(a).data_ptr() == a.ctypes.data
    True
    """
    cdef int id = -1 if dtype is None else dtype_id(dtype)
    cdef bint shared
    require_device("asarray", device)
    if is_linked(obj) and not isinstance(obj, Tensor):
        x = as_tensor(obj, dtype)
        return x.clone() if copy and x is obj else x
    x = existing(memoryview(obj) if isinstance(obj, bytes) else obj)
    shared = x is not None and (id < 0 or (<Tensor>x).type == id)
    if copy is False and not shared:
        raise ValueError(
            f"asarray: can't share the memory of {type(obj).__name__}"
            + (f" as {dtype}" if x is not None else ""))
    if not shared or copy:
        x = (obj if id < 0 else obj.to(dtype_object(id))).clone() if in_graph(obj) else (
            from_data(obj, id, "asarray"))
    if isinstance(x, Tensor):
        x = data_on(device, <Tensor>x)
    if watched:
        made(x)
    if requires_grad is False and x.requires_grad:
        x = x.detach()
    if requires_grad:
        x.requires_grad = True
    return x


def as_tensor(data, dtype=None, device=None):
    """`data` as a tensor: itself if it is one of that dtype, else as `asarray`.

    A tensor that changes dtype stays in its graph. Raises: as `asarray`.
    """
    if is_tensor_like(data):
        require_device("as_tensor", device)
        if device is not None or makes_meta():
            data = data.to(META if device is None else device)
        return data if dtype is None else data.to(dtype)
    return asarray(data, dtype=dtype, device=device)
