"""`index_select`: the slices of a tensor at the positions of a vector. Outside autograd."""

from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t, uint8_t

from tensorlib._core.base.blocks cimport copy_run
from tensorlib._core.base.dtypes cimport INT64, ITEMSIZE
from tensorlib._core.base.items cimport complex128_t, item
from tensorlib._core.base.shape cimport MAX_NDIM, count
from tensorlib._core.base.storage cimport LINE
from tensorlib._core.base.work cimport run_once, share
from tensorlib._core.index.gather cimport (
    GRAIN, as_vector, check_positions, line_of_gather, walk, wrapped_positions,
)
from tensorlib._core.tensor.tensor cimport Tensor, new_tensor, new_view
from tensorlib._core.tiles.copies cimport copy_into, packed


cdef enum:
    ROWS = 16                # rows that are done together if they share cache lines
    TOGETHER = 2             # rows that are done together if they don't
    FEW = 16                 # slices that are copied one by one, not with all the others

cdef struct Slices:
    const char* x
    const int64_t* places            # checked positions, which nobody else can write to
    char* y                          # (outer, count), runs
    Py_ssize_t outer, count
    Py_ssize_t run, size             # bytes of a slice's contiguous run, and of an element
    Py_ssize_t outer_step, step      # of x, in bytes


cdef inline void take_items(const item* x, const Slices* job, item* y, Py_ssize_t begin,
                            Py_ssize_t end, Py_ssize_t rows) noexcept nogil:
    """y[r, i] := x[r, places[i]] for one row or two, whose elements are contiguous

    By fours: four rows at once, one position after the other, took half as long again.
    """
    cdef const int64_t* places = job.places
    cdef const item* second = <const item*>(<const char*>x + job.outer_step)
    cdef item* below = y + job.count
    cdef Py_ssize_t i = begin, a, b, c, d
    if rows == 1:
        second, below = x, y
    while i + 4 <= end:
        a, b, c, d = places[i], places[i + 1], places[i + 2], places[i + 3]
        y[i], y[i + 1], y[i + 2], y[i + 3] = x[a], x[b], x[c], x[d]
        if rows > 1:
            below[i], below[i + 1], below[i + 2], below[i + 3] = (
                second[a], second[b], second[c], second[d])
        i += 4
    while i < end:
        a = places[i]
        y[i], below[i] = x[a], second[a]
        i += 1


cdef void take_strided(const item* x, const Slices* job, item* y, Py_ssize_t begin,
                       Py_ssize_t end, Py_ssize_t rows) noexcept nogil:
    """y[r, i] := x[r, places[i]] for some rows, whose elements are apart"""
    cdef const char* at
    cdef Py_ssize_t i, r
    for i in range(begin, end):
        at = <const char*>x + job.places[i] * job.step
        for r in range(rows):
            y[r * job.count + i] = (<const item*>(at + r * job.outer_step))[0]


cdef void copy_slices(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """y := the runs at all positions of rows [begin, end); of a single row those at positions
    [begin, end)"""
    cdef const Slices* job = <const Slices*>context
    cdef const int64_t* places = job.places
    cdef Py_ssize_t i, run = job.run, step = job.step, first = 0, last = 1, rows = 1
    if job.outer > 1:
        first, last = begin, end
        begin, end = 0, job.count
    cdef const char* x = job.x + first * job.outer_step
    cdef char* y = job.y + first * job.count * run
    if step == run <= 16 and run & (run - 1) == 0:
        rows = TOGETHER
    elif run == job.size and -LINE < job.outer_step < LINE:
        rows = ROWS
    while first < last:
        rows = min(rows, last - first)
        if run == step == 1:
            take_items(<const uint8_t*>x, job, <uint8_t*>y, begin, end, rows)
        elif run == step == 2:
            take_items(<const uint16_t*>x, job, <uint16_t*>y, begin, end, rows)
        elif run == step == 4:
            take_items(<const uint32_t*>x, job, <uint32_t*>y, begin, end, rows)
        elif run == step == 8:
            take_items(<const uint64_t*>x, job, <uint64_t*>y, begin, end, rows)
        elif run == step == 16:
            take_items(<const complex128_t*>x, job, <complex128_t*>y, begin, end, rows)
        elif run != job.size:
            for i in range(begin, end):
                copy_run(x + places[i] * step, y + i * run, run)
        elif run == 1:
            take_strided(<const uint8_t*>x, job, <uint8_t*>y, begin, end, rows)
        elif run == 2:
            take_strided(<const uint16_t*>x, job, <uint16_t*>y, begin, end, rows)
        elif run == 4:
            take_strided(<const uint32_t*>x, job, <uint32_t*>y, begin, end, rows)
        elif run == 8:
            take_strided(<const uint64_t*>x, job, <uint64_t*>y, begin, end, rows)
        else:
            take_strided(<const complex128_t*>x, job, <complex128_t*>y, begin, end, rows)
        x += rows * job.outer_step
        y += rows * job.count * run
        first += rows


cdef bint has_slices(Tensor x, int dim, Py_ssize_t* outer_step) noexcept:
    """Whether each slice along a dim is contiguous, and the dims before it can be walked as one.

    Sets `outer_step` to the step of these, in elements; 0 if there is only one slice.
    """
    cdef Py_ssize_t run = 1, further = 0
    cdef bint first = True
    cdef int d
    outer_step[0] = 0
    for d in range(x.ndim_ - 1, dim, -1):
        if x.dims[d] != 1 and x.steps[d] != run:
            return False
        run *= x.dims[d]
    for d in range(dim - 1, -1, -1):
        if x.dims[d] == 1:           # the step of a single element does not matter
            continue
        if first:
            outer_step[0] = x.steps[d]
        elif x.steps[d] != further:
            return False
        first, further = False, x.steps[d] * x.dims[d]
    return x.ndim_ > 1


cdef struct Few:
    const int64_t* places
    Py_ssize_t count
    int64_t[16] found        # FEW of them; 0 without memory, where nothing runs


cdef void read_places(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Few* few = <Few*>context
    cdef Py_ssize_t k
    for k in range(few.count):
        few.found[k] = few.places[k]


cdef Tensor each_slice(Tensor x, Py_ssize_t dim, Tensor places):
    """The slices at a few positions, one after the other: most of `x` is not read."""
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Py_ssize_t k, from_place, to_place, item = ITEMSIZE[x.type]
    cdef Few few
    cdef Tensor out
    cdef int d
    for d in range(x.ndim_):
        dims[d] = x.dims[d]
    dims[dim] = places.numel_
    count("index_select", x.ndim_, dims)
    out = new_tensor(x.type, x.ndim_, dims)
    few.places, few.count = <const int64_t*>places.data_pointer, places.numel_
    for k in range(few.count):
        few.found[k] = 0
    run_once(read_places, &few, places.data_pointer, True)
    dims[dim] = 1
    for k in range(few.count if out.numel_ else 0):
        from_place = few.found[k] * x.steps[dim] * item
        to_place = k * out.steps[dim] * item
        copy_into(new_view(out, x.ndim_, dims, out.steps, out.data_pointer + to_place),
                  new_view(x, x.ndim_, dims, x.steps, x.data_pointer + from_place))
    return out


cdef bint fill_slices(Tensor x, int dim, Tensor places, Tensor out) except -1:
    """out := the slices of `x` at checked positions, which nobody else can write to. False if these
    slices are not as `has_slices` has them."""
    cdef Py_ssize_t outer = 1, run = ITEMSIZE[x.type], outer_step
    cdef Slices job
    cdef int d
    if not has_slices(x, dim, &outer_step) and x.ndim_ > 1:
        return False
    for d in range(x.ndim_):
        if d < dim:
            outer *= x.dims[d]
        elif d > dim:
            run *= x.dims[d]
    if out.numel_ == 0:
        return True
    job.x, job.places = x.data_pointer, <const int64_t*>places.data_pointer
    job.y, job.outer, job.count, job.run = out.data_pointer, outer, places.numel_, run
    job.step, job.size = x.steps[dim] * ITEMSIZE[x.type], ITEMSIZE[x.type]
    job.outer_step = outer_step * ITEMSIZE[x.type]
    share(copy_slices, &job, job.y, outer if outer > 1 else job.count,
          1 + GRAIN // ((job.count if outer > 1 else 1) * (1 + run // 32)), False)
    return True


def take_slices(Tensor input, Py_ssize_t dim, Tensor index):
    """The slices of `input` at the positions of a vector. Raises: IndexError, RuntimeError."""
    cdef Tensor x = as_vector(input), places, out
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Py_ssize_t outer_step
    cdef int d
    if not 0 <= dim < x.ndim_:
        raise IndexError(f"index_select: dim {dim} is none of {x.ndim_} dims")
    if index.ndim_ != 1:
        raise IndexError(f"index_select: index is supposed to be a vector, got {index.ndim_} dims")
    check_positions("index_select", index)
    if not has_slices(x, dim, &outer_step):
        if x.ndim_ > 1 and index.numel_ <= min(<Py_ssize_t>FEW, x.dims[dim] // 2):
            return each_slice(x, dim, wrapped_positions(index, x.dims[dim], dim, "index_select"))
        x = packed(x)
        has_slices(x, dim, &outer_step)
    if x.ndim_ == 1 and index.type == INT64:
        out = new_tensor(input.type, 1, index.dims)
        if walk(line_of_gather(input.type), x, 0, index, out, False):
            return out
    places = wrapped_positions(index, x.dims[dim], dim, "index_select")      # a copy of its own
    for d in range(x.ndim_):
        dims[d] = x.dims[d]
    dims[dim] = places.numel_
    count("index_select", x.ndim_, dims)
    out = new_tensor(input.type, x.ndim_, dims)
    fill_slices(x, dim, places, out)
    return out
