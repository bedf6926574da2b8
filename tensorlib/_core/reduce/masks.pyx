"""Boolean masks: contiguous bool tensors, `nonzero`, and filling through a mask."""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from tensorlib._core.base.dtypes cimport BOOL, FLOAT_KIND, INT64, ITEMSIZE, KIND
from tensorlib._core.base.region cimport in_region
from tensorlib._core.base.shape cimport MAX_NDIM
from tensorlib._core.base.storage cimport work_begins, work_ends
from tensorlib._core.tensor.tensor cimport Tensor, new_tensor, new_view
from tensorlib._core.tiles.copies cimport packed
from tensorlib._core.tiles.loops cimport find_cast

from tensorlib._core.tensor.meta import refuse_reading

cdef enum:
    BLOCK = 4096             # elements tested at once by `count_nonzero`

ctypedef fused bits:
    uint8_t
    uint16_t
    uint32_t
    uint64_t


cdef void test(const bits* x, char* y, Py_ssize_t n, bits kept) noexcept nogil:
    """y := any kept bit of x is set"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = (x[i] & kept) != 0


cdef Tensor nonzero_mask(Tensor x):
    """A packed bool tensor: which elements are not zero. NaN is not zero."""
    cdef Tensor source = packed(x), out
    cdef Py_ssize_t itemsize = ITEMSIZE[x.type]
    # the sign bit of a floating zero does not count
    cdef uint64_t kept = ~<uint64_t>0
    if KIND[x.type] == FLOAT_KIND:
        kept = ~(<uint64_t>1 << (8 * itemsize - 1))
    out = new_tensor(BOOL, x.ndim_, x.dims)
    if in_region(out.data_pointer):
        return out
    if itemsize == 1:
        test(<uint8_t*>source.data_pointer, out.data_pointer, x.numel_, <uint8_t>kept)
    elif itemsize == 2:
        test(<uint16_t*>source.data_pointer, out.data_pointer, x.numel_, <uint16_t>kept)
    elif itemsize == 4:
        test(<uint32_t*>source.data_pointer, out.data_pointer, x.numel_, <uint32_t>kept)
    else:
        test(<uint64_t*>source.data_pointer, out.data_pointer, x.numel_, kept)
    return out


cdef int write_true_places(Tensor mask, int64_t* out, Py_ssize_t next_place,
                           Py_ssize_t next_dim) except -1:
    """Writes the coordinates of the ones of a packed mask of at least one dim, in order."""
    cdef Py_ssize_t place[MAX_NDIM]
    cdef Py_ssize_t i, row, rows, width
    cdef const Py_ssize_t* dims = mask.dims
    cdef const char* data = mask.data_pointer
    cdef int last = mask.ndim_ - 1, d, era
    if mask.numel_ == 0:
        return 0
    width = dims[last]
    rows = mask.numel_ // width
    for d in range(last):
        place[d] = 0
    era = work_begins()
    with nogil:
        for row in range(rows):
            for i in range(width):
                if data[i]:
                    for d in range(last):
                        out[d * next_dim] = place[d]
                    out[last * next_dim] = i
                    out += next_place
            data += width
            d = last - 1
            while d >= 0:
                place[d] += 1
                if place[d] < dims[d]:
                    break
                place[d] = 0
                d -= 1
    return work_ends(era)


cdef list true_positions(Tensor mask):
    """For each dim of a packed mask the positions of its ones; a 0-d mask counts as 1-d."""
    refuse_reading("nonzero (the shape of what it gives depends on the values)", mask)
    cdef Py_ssize_t n = count_true(mask.data_pointer, mask.numel_), one = 1, step = 1
    cdef int d
    cdef Py_ssize_t dims[2]
    cdef Tensor all_places
    if mask.ndim_ == 0:
        mask = new_view(mask, 1, &one, &step, mask.data_pointer)
    dims[0], dims[1] = mask.ndim_, n
    all_places = new_tensor(INT64, 2, dims)
    write_true_places(mask, <int64_t*>all_places.data_pointer, 1, n)
    return [new_view(all_places, 1, &n, &step, all_places.data_pointer + d * n * ITEMSIZE[INT64])
            for d in range(mask.ndim_)]


cpdef Tensor nonzero(Tensor x):
    """The coordinates of the elements that are not zero, one row each, as int64."""
    refuse_reading("nonzero (the shape of what it gives depends on the values)", x)
    cdef Tensor mask = nonzero_mask(x), out
    cdef Py_ssize_t dims[2]
    dims[0], dims[1] = count_true(mask.data_pointer, mask.numel_), x.ndim_
    out = new_tensor(INT64, 2, dims)
    if x.ndim_:
        write_true_places(mask, <int64_t*>out.data_pointer, x.ndim_, 1)
    return out


cdef Py_ssize_t count_true(const char* mask, Py_ssize_t n) noexcept nogil:
    """How many bytes are 1: eight at a time, in words whose bytes cannot overflow."""
    cdef Py_ssize_t count = 0, words, i
    cdef uint64_t word, total, pairs = 0x00FF00FF00FF00FF
    while n >= 8:
        words = min(n // 8, <Py_ssize_t>255)
        total = 0
        for i in range(words):
            memcpy(&word, mask + 8 * i, 8)
            total += word
        total = (total & pairs) + (total >> 8 & pairs)
        count += <Py_ssize_t>((total * <uint64_t>0x0001000100010001) >> 48)
        mask += 8 * words
        n -= 8 * words
    for i in range(n):
        count += mask[i]
    return count


cdef Py_ssize_t count_nonzero(Tensor x) except -1:
    """How many elements of a contiguous tensor are not zero. NaN is not zero."""
    cdef char mask[BLOCK]
    cdef Py_ssize_t done = 0, count = 0, n, numel, itemsize = ITEMSIZE[x.type]
    cdef const char* data
    cdef int dtype = x.type, era
    if dtype == BOOL:
        x = nonzero_mask(x)                      # bytes of borrowed memory may be any
    data, numel = x.data_pointer, x.numel_
    era = work_begins()
    with nogil:
        while done < numel:
            n = min(<Py_ssize_t>BLOCK, numel - done)
            find_cast(dtype, BOOL)(data + done * itemsize, mask, n)
            count += count_true(mask, n)
            done += n
    work_ends(era)
    return count


cdef void blend(bits* x, const char* mask, bits* value, Py_ssize_t n) noexcept nogil:
    """x := value where mask"""
    cdef bits chosen = value[0]
    cdef Py_ssize_t i
    for i in range(n):
        x[i] = chosen if mask[i] else x[i]


cdef int fill_where(Tensor x, const char* mask, const char* value) except -1:
    """Sets the elements of a packed `x` whose byte of the mask is true to the element `value`."""
    cdef Py_ssize_t itemsize = ITEMSIZE[x.type], n = x.numel_
    cdef char* data = x.data_pointer
    cdef int era
    if in_region(data):
        return 0
    era = work_begins()
    with nogil:
        if itemsize == 1:
            blend(<uint8_t*>data, mask, <uint8_t*>value, n)
        elif itemsize == 2:
            blend(<uint16_t*>data, mask, <uint16_t*>value, n)
        elif itemsize == 4:
            blend(<uint32_t*>data, mask, <uint32_t*>value, n)
        else:
            blend(<uint64_t*>data, mask, <uint64_t*>value, n)
    return work_ends(era)
