"""New tensors of given sizes, or like another tensor: uninitialised or constant."""

from cpython.float cimport PyFloat_Check, PyFloat_CheckExact
from cpython.long cimport PyLong_CheckExact
from cpython.object cimport PyObject
from libc.math cimport isfinite
from libc.string cimport memset

from tensorlib._core.arrays.as_numbers cimport in_graph, is_linked
from tensorlib._core.base.dtypes cimport (
    BOOL, FLOAT64, FLOAT_KIND, INT64, ITEMSIZE, KIND, complex_of, default_float, dtype_id,
    dtype_object,
)
from tensorlib._core.base.pool cimport range_fn
from tensorlib._core.base.region cimport makes_meta
from tensorlib._core.base.shape cimport MAX_NDIM, count, parse_shape
from tensorlib._core.base.watch cimport watched
from tensorlib._core.base.work cimport share
from tensorlib._core.graph.modes cimport mode
from tensorlib._core.interpreters.foreign cimport (
    as_proxy, may_override, overridden_like, representative,
)
from tensorlib._core.interpreters.on_meta cimport new_on, twin_on
from tensorlib._core.interpreters.profile cimport begin_making, end_making, observing
from tensorlib._core.interpreters.stack cimport leaving, made, offered
from tensorlib._core.layout.views cimport in_format
from tensorlib._core.tensor.numbers cimport as_real, element, exact_number, write_row
from tensorlib._core.tensor.tensor cimport Tensor, new_like, requires_grad
from tensorlib._core.tensor.tensor cimport new_tensor as raw_tensor
from tensorlib._core.tiles.copies cimport new_arranged_as
from tensorlib._core.tiles.loops cimport find_cast, find_gather

from tensorlib._core.apply.out_argument import store_out
from tensorlib._core.arrays.convert import tensor
from tensorlib._core.base.device import CPU, META, device as device_type, require_device
from tensorlib._core.base.error_names import type_name
from tensorlib._core.base.formats import RANKS, contiguous_format, preserve_format, strided, made_in
from tensorlib._core.base.storage import OutOfMemoryError
from tensorlib._core.tensor.numbers import OutOfRangeError

cdef enum:
    FILL_GRAIN = 1 << 15         # elements, at most 256 KB, written by a thread at once

# ---- arguments -----------------------------------------------------------------------------------

cdef int chosen_dtype(str name, object dtype, object out, int otherwise) except -1:
    """The requested dtype, else that of `out`, else `otherwise`."""
    if dtype is None:
        return (<Tensor>out).type if isinstance(out, Tensor) else otherwise
    try:
        return dtype_id(dtype)
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None


cdef object offered_new(str name, tuple args, dict options, object layout, object device,
                        object pin_memory, object requires_grad, object like=None,
                        object memory_format=None):
    """The result of a function for new tensors by an interpreter, or NotImplemented.

    It gets `options`, and those of the others that have an effect. Raises: as `check_options`.
    """
    check_options(name, layout, device, pin_memory)
    if device is None and like is None and makes_meta():
        options["device"] = META
    if device is not None and device_type(device).type != getattr(like, "device", CPU).type:
        options["device"] = device
    if requires_grad:
        options["requires_grad"] = True
    if memory_format is not None:
        options["memory_format"] = memory_format
    return offered(None, name, args, options)


cdef int check_options(str name, object layout, object device, object pin_memory) except -1:
    if device is not None:
        require_device(name, device)
    if layout is not None and layout is not strided:
        raise TypeError(f"{name}: layout must be tensorlib.strided, got {layout!r}")
    if pin_memory:
        raise RuntimeError(f"{name}: pin_memory=True needs an accelerator; tensorlib runs on 'cpu'")
    return 0


cdef Tensor allotted(str name, int dtype, int ndim, const Py_ssize_t* dims, object device,
                     Tensor beside=None):
    """An uninitialised tensor on a device, by default that of the tensor `beside`.

    Raises: RuntimeError or OutOfMemoryError for its size.
    """
    if observing:
        begin_making(name)
    count(name, ndim, dims)
    try:
        return new_on(device, beside, dtype, ndim, dims)
    except OutOfMemoryError as error:
        raise OutOfMemoryError(f"{name}: {error}") from None


cdef Tensor sized(str name, tuple size, object size_keyword, int dtype, object device,
                  Tensor beside=None):
    """An uninitialised tensor of the sizes given as *args, or by keyword: see `allotted`."""
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef int ndim
    if not size:
        if size_keyword is None:
            raise TypeError(f"{name}: missing the argument 'size'")
        ndim = parse_shape(name, size_keyword, dims)
    elif size_keyword is not None:
        raise TypeError(f"{name}: got 'size' twice")
    else:
        ndim = parse_shape(name, size, dims)
    return allotted(name, dtype, ndim, dims, device, beside)


cpdef object plain_number(str name, str argument, object value):
    """The float, int or bool of a number, a NumPy scalar or a 0-d tensor.

    Raises: TypeError for anything else, RuntimeError for a tensor whose gradient would be lost.
    """
    if isinstance(value, Tensor) and (<Tensor>value).ndim_ == 0:
        if in_graph(value):
            raise RuntimeError(
                f"{name}: {argument} is a tensor that requires grad, and {name} has no gradient "
                f"for it; compute with tensors instead, or give {argument}.item() if no gradient "
                "is wanted")
        if watched:
            leaving(name, value)
        return element(<Tensor>value)
    found = exact_number(value)
    if found is not None:
        return found
    if not isinstance(value, Tensor) and is_linked(value):
        return value.item()                  # raises: it differs between examples
    raise TypeError(f"{name}: {argument} must be a number, not {type(value).__name__}")


cdef bint is_recorded(object value):
    """Whether a tensor filled with a value must be computed from it by operations."""
    if PyFloat_CheckExact(value) or PyLong_CheckExact(value):
        return False
    return is_linked(value) and value.ndim == 0


cdef object spread(str name, object value, shape, dtype, object out):
    """A tensor filled with a 0-d tensor that is in a graph or Batched."""
    if out is not None:
        raise RuntimeError(f"{name}: functions with out=... don't support automatic "
                           "differentiation, but the value to fill with requires grad")
    return (value if dtype is None else value.to(dtype)).expand(shape).clone()


cdef object finish(str name, Tensor x, object out, object requires_grad):
    """The result of a function of this module: `x`, or `out` with the elements of `x`."""
    if out is not None:
        check_out(name, x, out)
        store_out(name, (), x, out)
        x = <Tensor>out
    if requires_grad:
        x.requires_grad = True
    if observing:
        end_making(name, x)
    if watched:
        made(x)
    return x


cdef int check_out(str name, Tensor x, object out) except -1:
    if not isinstance(out, Tensor):
        raise TypeError(f"{name}: out must be a Tensor, not {type_name(out)}")
    if (<Tensor>out).type != x.type:
        raise RuntimeError(
            f"{name}: dtype {dtype_object(x.type)} does not match dtype {out.dtype} of out")
    if mode().grad and requires_grad(<Tensor>out):
        raise RuntimeError(
            f"{name}: functions with out=... don't support automatic differentiation, but out "
            "requires grad")
    return 0


# ---- one value everywhere ------------------------------------------------------------------------

cdef struct Fill:
    char* y
    Bits bits                    # of the value
    int dtype


cdef void fill_range(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Fill* fill = <Fill*>context
    cdef Py_ssize_t itemsize = ITEMSIZE[fill.dtype]
    cdef char* y = fill.y + begin * itemsize
    if fill.bits.low == 0 and fill.bits.high == 0:
        memset(y, 0, (end - begin) * itemsize)
    else:
        find_gather(fill.dtype)(<char*>&fill.bits, 0, y, end - begin)


cdef int run_over(range_fn run, void* context, Tensor x, Py_ssize_t grain) except -1:
    """Writes the elements of `x`, from half a grain on in parallel and without the GIL."""
    return share(run, context, x.data_pointer, x.numel_, grain, x.numel_ < grain // 2)


cdef int fill_bits(Tensor x, Bits bits) except -1:
    """Every element of a tensor without gaps := these bits."""
    cdef Fill fill
    fill.y, fill.bits, fill.dtype = x.data_pointer, bits, x.type
    return run_over(fill_range, &fill, x, FILL_GRAIN)


cdef int zero(Tensor x) except -1:
    """Every element of a tensor without gaps := 0."""
    return fill_bits(x, Bits(0, 0))


cdef int number_bits(str name, object value, int dtype, Bits* bits) except -1:
    """The bits of a Python number as an element, with zeros above them.

    Raises: OutOfRangeError.
    """
    cdef PyObject* values[1]
    cdef double real, back
    bits[0] = Bits(0, 0)
    if KIND[dtype] != FLOAT_KIND:
        values[0] = <PyObject*>value
        try:
            write_row(<char*>bits, dtype, values, 1, True)
        except OutOfRangeError as error:
            raise OutOfRangeError(f"{name}{str(error).removeprefix('tensor')}") from None
        return 0
    try:
        real = as_real(value)
    except OutOfRangeError as error:
        if isinstance(value, complex):
            raise OutOfRangeError(f"{name}{str(error).removeprefix('tensor')}") from None
        raise OutOfRangeError(f"{name}: an int of {value.bit_length()} bits does not fit in "
                              f"{dtype_object(dtype)}") from None
    find_cast(FLOAT64, dtype)(&real, bits, 1)
    if isfinite(real):
        find_cast(dtype, FLOAT64)(bits, &back, 1)
        if not isfinite(back):
            raise OutOfRangeError(f"{name}: {value} does not fit in {dtype_object(dtype)}")
    return 0


cdef int fill_number(str name, Tensor x, object value) except -1:
    """Every element of a tensor without gaps := a Python number."""
    cdef Bits bits
    number_bits(name, value, x.type, &bits)
    return fill_bits(x, bits)


cdef object constant(str name, Tensor x, object out, object requires_grad, object value):
    """`x` filled with a number, or `out` filled so."""
    fill_number(name, x, value)
    return finish(name, x, out, requires_grad)


def empty(*sizes, size=None, out=None, dtype=None, layout=None, device=None, pin_memory=False,
          requires_grad=False, memory_format=None):
    """A tensor whose elements are whatever the memory holds.

    Shapes: the sizes given, one by one or as a sequence.
    Raises: RuntimeError for sizes that are negative or too large, TypeError for what are not ints,
    OutOfMemoryError.
    """
    if layout is not None and layout is not strided:
        return made_in("empty", sizes, size, dtype, layout, device, requires_grad)
    check_options("empty", layout, device, pin_memory)
    x = sized("empty", sizes, size, chosen_dtype("empty", dtype, out, default_float()), device)
    return finish("empty", formatted("empty", x, memory_format), out, requires_grad)


def zeros(*sizes, size=None, out=None, dtype=None, layout=None, device=None, pin_memory=False,
          requires_grad=False):
    """A tensor of zeros.

    Shapes: the sizes given, one by one or as a sequence.
    Raises: RuntimeError for sizes that are negative or too large, TypeError for what are not ints,
    OutOfMemoryError.

    >>> tensorlib.zeros(2, 3)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    if layout is not None and layout is not strided:
        return made_in("zeros", sizes, size, dtype, layout, device, requires_grad)
    check_options("zeros", layout, device, pin_memory)
    x = sized("zeros", sizes, size, chosen_dtype("zeros", dtype, out, default_float()), device)
    zero(x)
    return finish("zeros", x, out, requires_grad)


def ones(*sizes, size=None, out=None, dtype=None, layout=None, device=None, pin_memory=False,
         requires_grad=False):
    """A tensor of ones.

    Shapes: the sizes given, one by one or as a sequence.
    Raises: RuntimeError for sizes that are negative or too large, TypeError for what are not ints,
    OutOfMemoryError.
    """
    check_options("ones", layout, device, pin_memory)
    x = sized("ones", sizes, size, chosen_dtype("ones", dtype, out, default_float()), device)
    return constant("ones", x, out, requires_grad, 1)


def full(size, fill_value, *, out=None, dtype=None, layout=None, device=None, pin_memory=False,
         requires_grad=False):
    """A tensor whose elements are all `fill_value`, of its dtype unless one is given.

    Shapes: the sizes given. Gradient: to a tensor `fill_value` the sum.
    Raises: RuntimeError for sizes that are negative or too large, TypeError for what is not a
    number, OutOfRangeError for a value that the dtype can't hold.

    >>> tensorlib.full((2, 2), 7)
    tensor([[7, 7],
            [7, 7]])
    """
    check_options("full", layout, device, pin_memory)
    if is_recorded(fill_value):
        return spread("full", fill_value, size, dtype, out)
    value = plain_number("full", "fill_value", fill_value)
    x = sized("full", (), size, chosen_dtype("full", dtype, out, number_dtype(value)), device)
    return constant("full", x, out, requires_grad, value)


cdef int number_dtype(object value) noexcept:
    """The default dtype of a Python number."""
    if PyFloat_Check(value):
        return default_float()
    if isinstance(value, complex):
        return complex_of(default_float())
    return BOOL if isinstance(value, bool) else INT64


def scalar_tensor(s, *, dtype=None, layout=None, device=None, pin_memory=False,
                  requires_grad=False):
    """A 0-d tensor of a number, of the default dtype unless one is given.

    Gradient: to a tensor `s`.
    Raises: TypeError for what is not a number, OutOfRangeError for one that the dtype can't hold.
    """
    check_options("scalar_tensor", layout, device, pin_memory)
    if is_recorded(s):
        dtype = dtype_object(default_float()) if dtype is None else dtype
        return spread("scalar_tensor", s, (), dtype, None)
    value = plain_number("scalar_tensor", "s", s)
    x = allotted("scalar_tensor", chosen_dtype("scalar_tensor", dtype, None, default_float()), 0,
                 NULL, device)
    return constant("scalar_tensor", x, None, requires_grad, value)


def filling(str name, value, dtype):
    """A number as a 0-d tensor, which the function `name` will write to tensors of this dtype.

    Raises: TypeError for what is not a number, OutOfRangeError for one that the dtype can't hold.
    """
    return constant(name, raw_tensor(dtype_id(dtype), 0, NULL), None, False,
                    plain_number(name, "value", value))


# ---- as another tensor ---------------------------------------------------------------------------

cdef Tensor alike(str name, object input, object dtype, object layout, object device,
                  object pin_memory, object memory_format, bint whole=False):
    """An uninitialised tensor like `input`, which may be a proxy: see `representative`."""
    cdef Tensor x = representative(name, input, whole)
    cdef int id
    if observing:
        begin_making(name)
    id = chosen_dtype(name, dtype, None, x.type)
    check_options(name, layout, device, pin_memory)
    x = twin_on(device, x)
    if memory_format is None or memory_format is preserve_format:
        return new_arranged_as(x, id)
    return formatted(name, new_like(x, id), memory_format)


cdef Tensor formatted(str name, Tensor x, object memory_format):
    """A new tensor in the memory format that was asked for. Raises: RuntimeError for another."""
    if memory_format is None or memory_format is contiguous_format:
        return x
    if memory_format not in RANKS:
        raise RuntimeError(f"{name}: memory_format must be contiguous_format, channels_last or "
                           f"channels_last_3d, got {memory_format!r}")
    return in_format(name, x, memory_format)


def empty_like(input, *, dtype=None, layout=None, device=None, pin_memory=False,
               requires_grad=False, memory_format=None):
    """A tensor of the sizes and the dtype of `input`, whose elements are whatever the memory holds.

    Shapes: (*) -> (*). Raises: TypeError for what is not a tensor, RuntimeError.
    """
    if may_override(input):
        done = overridden_like(empty_like, (input,), dtype, layout, device, pin_memory,
                               requires_grad, memory_format)
        if done is not NotImplemented:
            return done
    x = alike("empty_like", input, dtype, layout, device, pin_memory, memory_format, True)
    return as_proxy(input, finish("empty_like", x, None, requires_grad))


def zeros_like(input, *, dtype=None, layout=None, device=None, pin_memory=False,
               requires_grad=False, memory_format=None):
    """A tensor of zeros, of the sizes and the dtype of `input`.

    Shapes: (*) -> (*). Raises: TypeError for what is not a tensor, RuntimeError.
    """
    if may_override(input):
        done = overridden_like(zeros_like, (input,), dtype, layout, device, pin_memory,
                               requires_grad, memory_format)
        if done is not NotImplemented:
            return done
    x = alike("zeros_like", input, dtype, layout, device, pin_memory, memory_format, True)
    zero(x)
    return as_proxy(input, finish("zeros_like", x, None, requires_grad))


def ones_like(input, *, dtype=None, layout=None, device=None, pin_memory=False,
              requires_grad=False, memory_format=None):
    """A tensor of ones, of the sizes and the dtype of `input`.

    Shapes: (*) -> (*). Raises: TypeError for what is not a tensor, RuntimeError.
    """
    if may_override(input):
        done = overridden_like(ones_like, (input,), dtype, layout, device, pin_memory,
                               requires_grad, memory_format)
        if done is not NotImplemented:
            return done
    x = alike("ones_like", input, dtype, layout, device, pin_memory, memory_format, True)
    return as_proxy(input, constant("ones_like", x, None, requires_grad, 1))


def full_like(input, fill_value, *, dtype=None, layout=None, device=None, pin_memory=False,
              requires_grad=False, memory_format=None):
    """A tensor whose elements are all `fill_value`, of the sizes and the dtype of `input`.

    Shapes: (*) -> (*). Gradient: to a tensor `fill_value` the sum.
    Raises: TypeError for what is neither a tensor nor a number, OutOfRangeError for a value
    that the dtype can't hold.
    """
    if may_override(input):
        done = overridden_like(full_like, (input, fill_value), dtype, layout, device, pin_memory,
                               requires_grad, memory_format)
        if done is not NotImplemented:
            return done
    if is_recorded(fill_value):
        x = zeros_like(input, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory,
                       memory_format=memory_format)
        return spread("full_like", fill_value, x.shape, x.dtype, None) if isinstance(
            x, Tensor) else x.fill_(fill_value)
    x = alike("full_like", input, dtype, layout, device, pin_memory, memory_format, True)
    value = plain_number("full_like", "fill_value", fill_value)
    return as_proxy(input, constant("full_like", x, None, requires_grad, value))


def new_empty(Tensor self, *sizes, size=None, dtype=None, layout=None, device=None,
              pin_memory=False, requires_grad=False):
    """As `empty`, of the dtype of this tensor."""
    check_options("new_empty", layout, device, pin_memory)
    x = sized("new_empty", sizes, size, chosen_dtype("new_empty", dtype, self, 0), device, self)
    return finish("new_empty", x, None, requires_grad)


def new_zeros(Tensor self, *sizes, size=None, dtype=None, layout=None, device=None,
              pin_memory=False, requires_grad=False):
    """As `zeros`, of the dtype of this tensor."""
    check_options("new_zeros", layout, device, pin_memory)
    x = sized("new_zeros", sizes, size, chosen_dtype("new_zeros", dtype, self, 0), device, self)
    zero(x)
    return finish("new_zeros", x, None, requires_grad)


def new_ones(Tensor self, *sizes, size=None, dtype=None, layout=None, device=None,
             pin_memory=False, requires_grad=False):
    """As `ones`, of the dtype of this tensor."""
    check_options("new_ones", layout, device, pin_memory)
    x = sized("new_ones", sizes, size, chosen_dtype("new_ones", dtype, self, 0), device, self)
    return constant("new_ones", x, None, requires_grad, 1)


def new_full(Tensor self, size, fill_value, *, dtype=None, layout=None, device=None,
             pin_memory=False, requires_grad=False):
    """As `full`, of the dtype of this tensor."""
    check_options("new_full", layout, device, pin_memory)
    if is_recorded(fill_value):
        return spread("new_full", fill_value, size, self.dtype if dtype is None else dtype, None)
    x = sized("new_full", (), size, chosen_dtype("new_full", dtype, self, 0), device, self)
    value = plain_number("new_full", "fill_value", fill_value)
    return constant("new_full", x, None, requires_grad, value)


def new_tensor(Tensor self, data, *, dtype=None, layout=None, device=None, pin_memory=False,
               requires_grad=False):
    """As `tensor`, of the dtype of this tensor."""
    check_options("new_tensor", layout, device, pin_memory)
    return tensor(data, dtype=self.dtype if dtype is None else dtype,
                  device=self.device if device is None else device, requires_grad=requires_grad)
