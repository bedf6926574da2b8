"""Boolean masks: contiguous bool tensors, `nonzero`, filling through a mask, and `equal`."""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

from tensorlib._core.base.dtypes cimport (
    BOOL, COMPLEX_KIND, FLOAT32, FLOAT64, FLOAT_KIND, INT64, ITEMSIZE, KIND,
)
from tensorlib._core.base.epochs cimport work_begins, work_ends
from tensorlib._core.base.items cimport floating
from tensorlib._core.base.shape cimport MAX_NDIM
from tensorlib._core.base.work cimport run_alone, run_once
from tensorlib._core.interpreters.foreign cimport is_read_alone
from tensorlib._core.tensor.meta cimport elements
from tensorlib._core.tensor.tensor cimport Tensor, new_like, new_tensor, new_view, same_shape
from tensorlib._core.tiles.copies cimport cast, packed
from tensorlib._core.tiles.loops cimport find_cast


cdef enum:
    BLOCK = 4096             # elements tested at once by `count_nonzero`

ctypedef fused bits:
    uint8_t
    uint16_t
    uint32_t
    uint64_t


cdef void test(const bits* x, char* y, Py_ssize_t n, bits kept) noexcept nogil:
    """y := whether any of the bits `kept` is set in x"""
    cdef Py_ssize_t i
    for i in range(n):
        y[i] = (x[i] & kept) != 0


cdef Tensor nonzero_mask(Tensor x):
    """A packed bool tensor that says which elements are not zero. NaN is not zero."""
    cdef Tensor source = packed(x), out
    cdef Test job
    if KIND[x.type] == COMPLEX_KIND:
        return cast(source, BOOL)
    job.itemsize = ITEMSIZE[x.type]
    # -0.0 is zero: the sign bit does not count
    job.kept = ~<uint64_t>0
    if KIND[x.type] == FLOAT_KIND:
        job.kept = ~(<uint64_t>1 << (8 * job.itemsize - 1))
    out = new_like(x, BOOL)
    job.x, job.y = source.data_pointer, out.data_pointer
    run_alone(test_all, &job, job.y, x.numel_)
    return out


cdef struct Test:
    const char* x
    char* y
    Py_ssize_t itemsize
    uint64_t kept


cdef void test_all(void* context, Py_ssize_t begin, Py_ssize_t n) noexcept nogil:
    cdef Test* job = <Test*>context
    if job.itemsize == 1:
        test(<uint8_t*>job.x, job.y, n, <uint8_t>job.kept)
    elif job.itemsize == 2:
        test(<uint16_t*>job.x, job.y, n, <uint16_t>job.kept)
    elif job.itemsize == 4:
        test(<uint32_t*>job.x, job.y, n, <uint32_t>job.kept)
    else:
        test(<uint64_t*>job.x, job.y, n, job.kept)


cdef int write_true_places(Tensor mask, int64_t* out, Py_ssize_t next_place,
                           Py_ssize_t next_dim) except -1:
    """Writes the coordinates of the ones of a packed mask of at least one dim, in order."""
    cdef Py_ssize_t place[MAX_NDIM]
    cdef Py_ssize_t i, row, rows, width
    cdef const Py_ssize_t* dims = mask.dims
    cdef const char* data = mask.data_pointer
    cdef int last = mask.ndim_ - 1, d, epoch
    if mask.numel_ == 0:
        return 0
    width = dims[last]
    rows = mask.numel_ // width
    for d in range(last):
        place[d] = 0
    epoch = work_begins()
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
    return work_ends(epoch)


cdef list true_positions(Tensor mask):
    """For each dim of a packed mask the positions of its ones; a 0-d mask counts as 1-d."""
    cdef Py_ssize_t n = number_true(mask), one = 1, step = 1
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
    cdef Tensor mask = nonzero_mask(x), out
    cdef Py_ssize_t dims[2]
    dims[0], dims[1] = number_true(mask), x.ndim_
    out = new_tensor(INT64, 2, dims)
    if x.ndim_:
        write_true_places(mask, <int64_t*>out.data_pointer, x.ndim_, 1)
    return out


cdef Py_ssize_t number_true(Tensor mask) except -1:
    """How many elements of a packed mask are not zero. Raises: NoData where there are none."""
    cdef str name = "a mask or nonzero (the shape of what it picks depends on the values)"
    return count_true(elements(name, mask), mask.numel_)


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


cdef int count_nonzero(Tensor x, int64_t* count) except -1:
    """count := how many elements of a contiguous tensor are not zero. NaN is not zero."""
    cdef Count job
    if x.type == BOOL:
        x = nonzero_mask(x)                      # bools in borrowed memory may be other than 0 or 1
    job.x, job.dtype, job.n, job.count = x.data_pointer, x.type, x.numel_, count
    return run_once(count_all, &job, count, False)


cdef struct Count:
    const char* x
    int dtype
    Py_ssize_t n
    int64_t* count


cdef void count_all(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Count* job = <Count*>context
    cdef char mask[BLOCK]
    cdef Py_ssize_t done = 0, n
    cdef int64_t count = 0
    while done < job.n:
        n = min(<Py_ssize_t>BLOCK, job.n - done)
        find_cast(job.dtype, BOOL)(job.x + done * ITEMSIZE[job.dtype], mask, n)
        count += count_true(mask, n)
        done += n
    job.count[0] = count


# ---- equal ---------------------------------------------------------------------------------------

cdef struct Pair:
    const char* a
    const char* b
    Py_ssize_t n
    int dtype
    bint equal


cdef bint are_equal(const floating* a, const floating* b, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i, k
    cdef int differ = 0
    for i in range(0, n, 4096):               # BLOCK, as a literal: the sign must be known
        for k in range(i, min(n, i + BLOCK)):
            differ |= a[k] != b[k]
        if differ:
            return False
    return True


cdef void compare(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Pair* job = <Pair*>context
    if job.dtype == FLOAT32:
        job.equal = are_equal(<const float*>job.a, <const float*>job.b, job.n)
    elif job.dtype == FLOAT64:
        job.equal = are_equal(<const double*>job.a, <const double*>job.b, job.n)
    else:
        job.equal = memcmp(job.a, job.b, job.n * ITEMSIZE[job.dtype]) == 0


def all_equal(a, b):
    """Whether two tensors have the same shape and elements; it stops at the first that differ.

    None where operations must find out: for proxies, for different or half dtypes, for tensors with
    gaps, and where something observes operations.
    """
    if not (is_read_alone(a) and is_read_alone(b)):
        return None
    cdef Tensor x = <Tensor>a, y = <Tensor>b
    cdef Pair job
    if x.type != y.type or not (x.packed and y.packed) or (
            KIND[x.type] == COMPLEX_KIND
            or KIND[x.type] == FLOAT_KIND and ITEMSIZE[x.type] < sizeof(float)):
        return None
    if not same_shape(x, y):
        return False
    job.a, job.b, job.n, job.dtype = x.data_pointer, y.data_pointer, x.numel_, x.type
    job.equal = True
    if job.a != job.b or KIND[x.type] == FLOAT_KIND:     # where NaN is not equal to itself
        run_once(compare, &job, job.a, job.n <= BLOCK)
    return job.equal
