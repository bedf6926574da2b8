"""A view's place in its base, by which the view or the base is made anew. Outside autograd.

`place` is (sizes, strides, offset of the view, strides, offset of the base), in elements of the
storage. If a copy of the base has the strides of the base, a view of it is taken or written to.
Otherwise its values are first arranged as in the storage, in a buffer that spans all of them.
"""

from tensorlib._core.base.dtypes cimport ITEMSIZE
from tensorlib._core.base.shape cimport MAX_NDIM, items, parse_shape
from tensorlib._core.layout.views cimport view_of
from tensorlib._core.reduce.arrange cimport sum_to
from tensorlib._core.tensor.tensor cimport Tensor, new_tensor, new_view, same_shape
from tensorlib._core.tiles.copies cimport arranged_copy, copy_into, packed, zero

from tensorlib._core.base.storage import OutOfMemoryError

cdef object MAX_SPAN = 1 << 59            # elements: their bytes still fit a Py_ssize_t


cdef Tensor strided_part(Tensor buffer, Py_ssize_t first, sizes, strides, Py_ssize_t offset):
    """The buffer's elements at these strides; `first` is the storage element it begins with.

    Raises: RuntimeError where these lie outside of the buffer.
    """
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Py_ssize_t steps[MAX_NDIM]
    cdef int d, ndim = parse_shape("as_strided", items(sizes, MAX_NDIM), dims)
    low, high = span(sizes, strides, offset)
    if not (first <= low and high < first + buffer.numel_ or high < low):
        raise RuntimeError(f"as_strided: sizes {tuple(sizes)}, strides {tuple(strides)} and offset "
                           f"{offset} lie outside of the tensor")
    for d in range(ndim):
        steps[d] = strides[d]
    if high < low:
        offset = first
    return new_view(buffer, ndim, dims, steps,
                    buffer.data_pointer + (offset - first) * ITEMSIZE[buffer.type])


cdef tuple span(sizes, strides, offset):
    """The first and the last storage element; (offset, offset - 1) for a tensor of no elements."""
    low = high = offset
    for size, stride in zip(sizes, strides, strict=True):
        if size == 0:
            return offset, offset - 1
        if size < 0:
            raise RuntimeError(f"as_strided: sizes must be 0 or more, got {tuple(sizes)}")
        if stride > 0:
            high += (size - 1) * stride
        else:
            low += (size - 1) * stride
    return low, high


cdef tuple buffer_for(Tensor like, shape, strides, Py_ssize_t offset):
    """A zeroed buffer for a base of this shape and these strides, and its first storage element."""
    cdef Py_ssize_t low, high, length
    cdef Tensor buffer
    low, high = span(shape, strides, offset)
    if high - low >= MAX_SPAN:
        raise OutOfMemoryError(f"as_strided: strides {tuple(strides)} span too many elements")
    length = high - low + 1
    buffer = new_tensor(like.type, 1, &length)
    zero(buffer)
    return buffer, low


cdef bint is_laid_out(Tensor x, strides) except -1:
    """Whether a tensor has these strides, apart from dims of size 1."""
    cdef int d
    if len(strides) != x.ndim_:
        return False
    for d in range(x.ndim_):
        if x.dims[d] != 1 and x.steps[d] != strides[d]:
            return False
    return x.numel_ != 0


cdef Tensor part_of(Tensor x, sizes, strides, Py_ssize_t offset):
    """The view of `x` that begins `offset` elements after it. Raises: RuntimeError."""
    cdef Py_ssize_t itemsize = ITEMSIZE[x.type], low, high
    cdef Py_ssize_t first = (x.storage.data - x.data_pointer) // itemsize
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Py_ssize_t steps[MAX_NDIM]
    cdef int d, ndim = parse_shape("as_strided", items(sizes, MAX_NDIM), dims)
    low, high = span(sizes, strides, offset)
    if low <= high and not first <= low <= high < first + x.storage.nbytes // itemsize:
        raise RuntimeError(f"as_strided: sizes {tuple(sizes)}, strides {tuple(strides)} and offset "
                           f"{offset} lie outside of the tensor")
    for d in range(ndim):
        steps[d] = strides[d]
    return view_of(x, ndim, dims, steps,
                   x.data_pointer + (offset if low <= high else 0) * itemsize)


cdef int check_part(Tensor part, Tensor value) except -1:
    """Raises: RuntimeError for a value that is not of a view's sizes."""
    if not same_shape(part, value):
        raise RuntimeError(f"view_scatter: a value of shape {tuple(value.shape)} can't be put in "
                           f"the place of a view of {tuple(part.shape)}")
    return 0


def take_view(Tensor x, place):
    """The elements of `x`, a copy of a base, at a view's place; a view if `x` has its strides."""
    sizes, strides, offset, base_strides, base_offset = place
    if is_laid_out(x, base_strides):
        return part_of(x, sizes, strides, offset - base_offset)
    buffer, first = buffer_for(x, x.shape, base_strides, base_offset)
    copy_into(strided_part(buffer, first, x.shape, base_strides, base_offset), x)
    return packed(strided_part(buffer, first, sizes, strides, offset))


def spread_view(Tensor g, shape, place):
    """Zeros of a base's shape with `g` added at a view's place."""
    cdef Py_ssize_t summed[MAX_NDIM]
    cdef int d
    sizes, strides, offset, base_strides, base_offset = place
    if tuple(g.shape) != tuple(sizes):
        raise RuntimeError(f"spread_view: a gradient of shape {tuple(g.shape)} is not that of a "
                           f"view of {tuple(sizes)}")
    buffer, first = buffer_for(g, shape, base_strides, base_offset)
    for d in range(g.ndim_):                 # elements that an expanded view shows many times
        summed[d] = 1 if strides[d] == 0 else g.dims[d]
    g = sum_to("spread_view", g, g.ndim_, summed)
    copy_into(strided_part(buffer, first, g.shape, strides, offset), g)
    return packed(strided_part(buffer, first, shape, base_strides, base_offset))


def scatter_view(Tensor x, Tensor value, place):
    """`x`, a copy of a base, with `value` written at a view's place."""
    cdef Tensor out
    sizes, strides, offset, base_strides, base_offset = place
    if is_laid_out(x, base_strides):
        out = arranged_copy(x, x.type)
        if is_laid_out(out, base_strides):
            part = part_of(out, sizes, strides, offset - base_offset)
            check_part(part, value)
            copy_into(part, value)
            return out
    buffer, first = buffer_for(x, x.shape, base_strides, base_offset)
    whole = strided_part(buffer, first, x.shape, base_strides, base_offset)
    copy_into(whole, x)
    part = strided_part(buffer, first, sizes, strides, offset)
    check_part(part, value)
    copy_into(part, value)
    return packed(whole)
