"""`unfold` and `as_strided`: views whose elements may overlap. Outside autograd."""

from cpython.long cimport PyLong_CheckExact

from tensorlib._core.base.dtypes cimport ITEMSIZE
from tensorlib._core.base.shape cimport MAX_NDIM, count, parse_shape, reach, settled, wrap_dim
from tensorlib._core.base.storage cimport holds
from tensorlib._core.base.watch cimport watched
from tensorlib._core.layout.views cimport view_of
from tensorlib._core.tensor.tensor cimport Tensor, over_storage


def unfold(Tensor x, dim, Py_ssize_t size, Py_ssize_t step):
    """A view of all windows of `size` elements along `dim`, `step` apart; the last dim is theirs.

    Raises: IndexError, RuntimeError.
    """
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Py_ssize_t steps[MAX_NDIM]
    cdef int along, d
    cdef Py_ssize_t length
    dim = settled(dim)
    along = wrap_dim("unfold", dim, x.ndim_)
    length = x.dims[along] if x.ndim_ else 1
    if size < 0 or size > length:
        raise RuntimeError(f"unfold: size must be from 0 to {length}, the size of dim {dim}, got "
                           f"{size}")
    if step <= 0:
        raise RuntimeError(f"unfold: step must be at least 1, got {step}")
    if x.ndim_ == MAX_NDIM:
        raise RuntimeError(f"unfold: at most {MAX_NDIM} dims are supported")
    for d in range(x.ndim_):
        dims[d], steps[d] = x.dims[d], x.steps[d]
    dims[x.ndim_] = size
    steps[x.ndim_] = x.steps[along] if x.ndim_ else 1
    if x.ndim_:
        dims[along] = (length - size) // step + 1
        steps[along] = x.steps[along] * step if dims[along] > 1 else x.steps[along]
    return view_of(x, x.ndim_ + 1, dims, steps, x.data_pointer)


def as_strided(Tensor x, sizes, strides, offset):
    """The elements of the storage of `x` at these strides from `offset` on, as a view.

    Raises: RuntimeError for sizes, strides and offsets that are negative or lead out of the
    storage, TypeError.
    """
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Py_ssize_t steps[MAX_NDIM]
    cdef Py_ssize_t first[1]
    cdef Py_ssize_t low = 0, high = 0, room, itemsize = ITEMSIZE[x.type], d
    cdef int ndim = parse_shape("as_strided", sizes, dims)
    cdef bint fits
    parse_shape("as_strided", (offset,), first)
    if parse_shape("as_strided", strides, steps) != ndim:
        raise RuntimeError("as_strided: sizes and strides must be of one length, got "
                           f"{tuple(sizes)} and {tuple(strides)}")
    room = count("as_strided", ndim, dims)
    fits = 0 <= first[0] <= x.storage.nbytes // itemsize
    for d in range(ndim):
        fits = fits and steps[d] >= 0 and (room == 0 or reach(&low, &high, dims[d], steps[d]))
    if fits and room:
        fits = holds(x.storage, x.storage.data + first[0] * itemsize, low, high, itemsize)
    if not fits:
        raise RuntimeError(
            f"as_strided: sizes {tuple(sizes)}, strides {tuple(strides)} and offset {offset} are "
            f"negative or out of bounds for a storage of {x.storage.nbytes // itemsize} elements")
    return view_of(x, ndim, dims, steps, x.storage.data + first[0] * itemsize)


def are_plain_ints(values):
    """Whether a value is a tuple of ints."""
    if type(values) is not tuple:
        return False
    for each in <tuple>values:
        if not PyLong_CheckExact(each):
            return False
    return True


def extent(str name, tuple size, tuple stride):
    """How many elements sizes and strides reach over. Raises: RuntimeError."""
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Py_ssize_t steps[MAX_NDIM]
    cdef Py_ssize_t low = 0, high = 0
    cdef int d, ndim = parse_shape(name, size, dims)
    cdef bint fits = True
    if parse_shape(name, stride, steps) != ndim:
        raise RuntimeError(f"{name}: sizes and strides must be of one length, got {size} and "
                           f"{stride}")
    for d in range(ndim):
        if dims[d] < 0 or steps[d] < 0:
            raise RuntimeError(f"{name}: sizes and strides must not be negative, got {size} and "
                               f"{stride}")
    if count(name, ndim, dims) == 0:
        return 0
    for d in range(ndim):
        fits = fits and reach(&low, &high, dims[d], steps[d])
    if not fits:
        raise RuntimeError(f"{name}: sizes {size} and strides {stride} are too large")
    return high + 1


def strided_over(Tensor x, tuple size, tuple stride):
    """A tensor of these sizes and strides over the memory of `x`, which is no view of it.

    Raises: RuntimeError for sizes and strides that lead out of the memory.
    """
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Py_ssize_t steps[MAX_NDIM]
    cdef int ndim = parse_shape("empty_strided", size, dims)
    if parse_shape("empty_strided", stride, steps) != ndim:
        raise RuntimeError(f"empty_strided: sizes and strides differ: {size} and {stride}")
    count("empty_strided", ndim, dims)
    return over_storage(x.storage, x.data_pointer, x.type, ndim, dims, steps)


def strided_view(Tensor x, tuple place):
    """`as_strided` at an offset that counts from the first element of `x`."""
    sizes, strides, further, _ = place
    return as_strided(x, sizes, strides, first_of(x) + further)


cdef inline Py_ssize_t first_of(Tensor x) noexcept:
    """The place of the first element in the storage."""
    return (x.data_pointer - x.storage.data) // ITEMSIZE[x.type]


def place_of(input, size, stride, storage_offset):
    """What `strided_view` takes for these arguments of `as_strided`.

    None where an interpreter has to see the call, and for arguments other than plain ints.
    """
    cdef Tensor x
    cdef tuple sizes, strides
    if watched or not isinstance(input, Tensor):
        return None
    sizes, strides = plain_ints(size), plain_ints(stride)
    if sizes is None or strides is None:
        return None
    x = input
    if storage_offset is None:
        storage_offset = 0
    elif PyLong_CheckExact(storage_offset):
        storage_offset -= first_of(x)
    else:
        return None
    return sizes, strides, storage_offset, tuple([x.steps[d] for d in range(x.ndim_)])


cdef tuple plain_ints(object given):
    """A tuple or a list of ints as a tuple; None for anything else."""
    cdef tuple numbers
    if type(given) is tuple:
        numbers = given
    elif type(given) is list:
        numbers = tuple(<list>given)
    else:
        return None
    for number in numbers:
        if not PyLong_CheckExact(number):
            return None
    return numbers
