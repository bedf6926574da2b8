"""How tensors are arranged for a reduction: any layout, reduced over any dims, becomes (outer, n,
inner), which the kernels reduce over n. `sizes` are these three and two steps: see schedule.pxd."""

from tensorlib._core.base.dtypes cimport FLOAT_KIND, INT64, ITEMSIZE, KIND, compute_dtype
from tensorlib._core.base.epochs cimport work_begins, work_ends
from tensorlib._core.base.shape cimport MAX_NDIM, parse_dims, sizes_of
from tensorlib._core.base.work cimport run_alone
from tensorlib._core.reduce.schedule cimport (
    ALL, ANY, GAPPED_BYTES, Gaps, MAX, MIN, NO_LOOP, NO_MEMORY, PROD, RELEASE_GIL, SUM,
    added_up, gapped_run, has_gapped, reduce_run, reduced_in, short_row,
)
from tensorlib._core.reduce.squares cimport multiply
from tensorlib._core.tensor.tensor cimport Tensor, new_like, new_tensor, new_view
from tensorlib._core.tiles.copies cimport cast, copy_into, packed_copy
from tensorlib._core.tiles.loops cimport find_gather

cdef enum:
    FEW = 8              # elements: summing fewer first is not worth a pass of its own
    LEAST_IN_ROWS = 8192 # elements: with fewer, a copy without gaps takes less than to analyse them
    LEAST_IN_SLICE = 256 # elements: the least for each of several results, with steps of at most 2


cdef Tensor fold(int kind, Tensor x, int n_reduced, const int* reduced, bint keepdim, int result):
    """`x` reduced over the dims `reduced` (ascending), as a new tensor of dtype `result`.

    `result` is what `reduced_in` gives for the dtype of `x`; ANY and ALL take bools.
    """
    cdef Py_ssize_t sizes[5]
    cdef int last[MAX_NDIM]
    cdef int n_last = last_reduced(x, n_reduced, reduced, last)
    cdef Tensor source, out
    cdef Gaps gaps
    cdef Py_ssize_t times = 1
    if not x.packed and kind != PROD and is_exact(kind, x.type):
        source = taken_once(x, n_reduced, reduced, &times)
        if times != 1:
            out = fold(kind, source, n_reduced, reduced, keepdim, result)
            if kind == SUM:
                multiply(out, times)
            return out
    if not n_last and lies_in_rows(x, n_reduced, reduced, sizes, &gaps):
        if has_gapped(kind, x.type):
            out = new_reduced(x, n_reduced, reduced, keepdim, result)
            return gapped_to(kind, x, sizes, &gaps, out)
        if n_reduced == x.ndim_ and gaps.apart == 1 and is_exact(kind, x.type):
            n_last = last_even(x, gaps.row, last)
    if n_last:                               # in two steps: first over the innermost dims
        x, kind = fold(kind, x, n_last, last, True, reduced_in(kind, x.type)), added_up(kind)
    out = new_reduced(x, n_reduced, reduced, keepdim, result)     # a copy may let others change x
    source = arrange(kind, x, n_reduced, reduced, sizes)
    if out.numel_:
        fold_to(kind, source, NULL, sizes, out)
    return out


cdef Tensor taken_once(Tensor x, int n_reduced, const int* reduced, Py_ssize_t* times):
    """`x` with its expanded reduced dims cut to size 1; times *= the number of repetitions."""
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef int d, k
    for d in range(x.ndim_):
        dims[d] = x.dims[d]
    for k in range(n_reduced):
        d = reduced[k]
        if x.steps[d] == 0 and dims[d] > 1:
            times[0] *= dims[d]
            dims[d] = 1
    return x if times[0] == 1 else new_view(x, x.ndim_, dims, x.steps, x.data_pointer)


cdef bint is_exact(int kind, int dtype) noexcept:
    """Whether a reduction gives the same bits in any order of the elements."""
    return kind in (MAX, MIN, ANY, ALL) or KIND[dtype] < FLOAT_KIND


cdef bint lies_in_rows(Tensor x, int n_reduced, const int* reduced, Py_ssize_t* sizes,
                       Gaps* gaps) noexcept:
    """Whether the elements of each result lie in evenly spaced rows, long enough for a call of a
    loop, and the slices of all results at one distance. Writes the sizes and the gaps."""
    cdef int order[MAX_NDIM]
    cdef bint is_reduced[MAX_NDIM]
    cdef Py_ssize_t expected = -1, slices = -1
    cdef int k, d
    cdef bint inside = True, goes_on
    if x.packed or x.numel_ < LEAST_IN_ROWS:
        return False
    mark(x, n_reduced, reduced, is_reduced)
    by_stride(x, order)
    if not split(x, order, is_reduced, sizes) or sizes[2] != 1:
        return False
    gaps.row, gaps.down, gaps.apart, sizes[3] = 1, 0, 1, sizes[1]
    for k in range(x.ndim_ - 1, -1, -1):
        d = order[k]
        if x.dims[d] == 1:
            continue
        if x.steps[d] < 0:
            return False
        if not is_reduced[d]:
            if slices < 0:
                sizes[3] = slices = x.steps[d]
            if x.steps[d] != slices or slices == 0:      # of equal slices `dense_copy` copies one
                return False
            slices *= x.dims[d]
            continue
        if expected < 0:
            gaps.apart = expected = x.steps[d]
        goes_on = x.steps[d] == expected
        if not (goes_on or inside and (x.steps[d] >= gaps.row * gaps.apart or x.steps[d] == 0)):
            return False
        if not goes_on:
            inside, gaps.down = False, x.steps[d]
        if inside:
            gaps.row *= x.dims[d]
        expected = x.steps[d] * x.dims[d]
    if (inside and gaps.apart == 0 and slices >= 0 and sizes[3] == 1
            and sizes[1] * ITEMSIZE[x.type] < short_row()
            and sizes[0] * ITEMSIZE[x.type] >= GAPPED_BYTES):
        # one repeated element for each result, and these side by side: columns give the same bits
        sizes[0], sizes[2], sizes[3], sizes[4] = 1, sizes[0], 0, 0
        return True
    return ((not inside or gaps.apart != 1) and gaps.row * ITEMSIZE[x.type] >= GAPPED_BYTES
            and (slices < 0 or gaps.apart == 0 or sizes[1] >= LEAST_IN_SLICE and gaps.apart <= 2))


cdef int last_even(Tensor x, Py_ssize_t row, int* last) noexcept:
    """Writes the dims of the rows that `lies_in_rows` found; returns their number."""
    cdef int d, n = 0
    for d in range(x.ndim_):
        if x.dims[d] != 1 and 0 < x.steps[d] < row:
            last[n] = d
            n += 1
    return n


cdef Tensor gapped_to(int kind, Tensor x, const Py_ssize_t* sizes, const Gaps* gaps, Tensor out):
    """`out`, to which `x` was reduced; `lies_in_rows` found these sizes and gaps."""
    cdef int status, epoch = work_begins(), dtype = x.type
    cdef char* from_ = x.data_pointer
    cdef char* to = out.data_pointer
    with nogil:
        status = (gapped_run(kind, dtype, from_, to, sizes, gaps) if sizes[2] == 1
                  else reduce_run(kind, dtype, from_, NULL, to, sizes))
    work_ends(epoch)
    check_status(status, x)
    return out


cdef int last_reduced(Tensor x, int n_reduced, const int* reduced, int* last) noexcept:
    """Writes the innermost reduced dims that are neighbours in memory: of dims 0 and 2 of three,
    dim 2. Returns their number, or 0 where all reduced dims are neighbours.

    To reduce over these first saves a copy. The order of additions is that of the dims in memory,
    so that gaps and negative steps do not change the bits.
    """
    cdef int order[MAX_NDIM]
    cdef bint is_reduced[MAX_NDIM]
    cdef bint is_last[MAX_NDIM]
    cdef int d, k, n = 0, before = -1, kept_between = False
    cdef Py_ssize_t together = 1
    if n_reduced < 2:
        return 0
    mark(x, 0, NULL, is_last)
    mark(x, n_reduced, reduced, is_reduced)
    by_stride(x, order)
    for k in range(x.ndim_ - 1, -1, -1):     # from the innermost in memory outwards
        d = order[k]
        if x.dims[d] == 1:
            continue
        if not is_reduced[d]:
            kept_between = kept_between or together > 1
            if before >= 0 and d > before:
                return 0                     # kept dims in another order: there is a copy anyway
            before = d
        elif kept_between:
            break
        else:
            is_last[d] = True
            together *= x.dims[d]
    else:
        return 0
    if together < FEW:
        return 0
    for d in range(x.ndim_):
        if is_last[d]:
            last[n] = d
            n += 1
    return n


cdef Tensor reducible(int kind, Tensor x, int computed):
    """`x` in the dtype in which it is reduced, or as it is where the loops cast its elements."""
    return x if reduced_in(kind, x.type) == computed else cast(x, computed)


cdef int fold_to(int kind, Tensor x, const char* center, const Py_ssize_t* sizes,
                 Tensor out) except -1:
    """out := x, which lies in memory as the sizes say, reduced over n

    center: what SQUARES takes distances from, else NULL.
    """
    cdef int status, epoch, dtype = x.type
    cdef const char* from_ = x.data_pointer
    cdef char* to = out.data_pointer
    if sizes[0] * sizes[1] * sizes[2] < RELEASE_GIL:
        status = reduce_run(kind, dtype, from_, center, to, sizes)
    else:
        epoch = work_begins()
        with nogil:
            status = reduce_run(kind, dtype, from_, center, to, sizes)
        work_ends(epoch)
    return check_status(status, x)


cdef int check_status(int status, Tensor x) except -1:
    """Raises: RuntimeError where there is no loop for the dtype of `x`, MemoryError."""
    if status == NO_LOOP:
        raise RuntimeError(f"not implemented for {x.dtype}")
    if status == NO_MEMORY:
        raise MemoryError("no memory for the partial results of a reduction")
    return 0


cdef Tensor new_reduced(Tensor x, int n_reduced, const int* reduced, bint keepdim, int dtype):
    """An uninitialised tensor of the shape of `x` without the reduced dims (or with 1 in them)."""
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef int d, k = 0, ndim = 0
    for d in range(x.ndim_):
        if k < n_reduced and reduced[k] == d:
            k += 1
            if keepdim:
                dims[ndim] = 1
                ndim += 1
        else:
            dims[ndim] = x.dims[d]
            ndim += 1
    return new_tensor(dtype, ndim, dims)


cdef Tensor arrange(int kind, Tensor x, int n_reduced, const int* reduced, Py_ssize_t* sizes):
    """A tensor with the elements of `x` in memory as (outer, n, inner); writes the sizes.

    It is `x` itself if, with the dims sorted by stride, the reduced ones are neighbours, the kept
    ones are in order, and there are only such gaps as the kernels take. Otherwise it is a copy: a
    dense one if that is enough, or else one with the reduced dims last. Expanded slices or rows
    are copied once and get a step of 0. So gaps, negative steps and expanded dims change neither
    the order of additions nor the bits of a result.
    """
    cdef int order[MAX_NDIM]
    cdef bint is_reduced[MAX_NDIM]
    mark(x, n_reduced, reduced, is_reduced)
    by_stride(x, order)
    if not split(x, order, is_reduced, sizes):
        return reduced_last(x, n_reduced, reduced, sizes)
    if evenly_spaced(kind, x, order, is_reduced, sizes):
        return x
    return dense_copy(kind, x, order, is_reduced, sizes)


cdef Tensor dense_copy(int kind, Tensor x, const int* order, const bint* is_reduced,
                       Py_ssize_t* sizes):
    """A copy without gaps, with the dims in an order that `split` accepted; writes the two steps.
    Where the kernels take a step of 0, equal slices, or equal rows, are copied just once."""
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef bint repeated[2]
    cdef int k, d, part = 0
    cdef Tensor dense
    repeated[0] = x.numel_ > 0 and reduced_in(kind, x.type) == x.type
    repeated[1] = repeated[0] and sizes[2] * ITEMSIZE[x.type] >= GAPPED_BYTES
    for k in range(x.ndim_):
        d = order[k]
        part = part_of(part, x.dims[d], is_reduced[d])
        if part < 2 and x.dims[d] != 1:
            repeated[part] = repeated[part] and x.steps[d] == 0
    part = 0
    for k in range(x.ndim_):
        d = order[k]
        part = part_of(part, x.dims[d], is_reduced[d])
        dims[d] = 1 if part < 2 and repeated[part] else x.dims[d]
    x = new_view(x, x.ndim_, dims, x.steps, x.data_pointer)
    dense = without_gaps(x, order)
    copy_into(dense, x)
    sizes[4] = 0 if repeated[1] else sizes[2]
    sizes[3] = 0 if repeated[0] else sizes[2] if repeated[1] else sizes[1] * sizes[2]
    return dense


cdef inline int part_of(int before, Py_ssize_t size, bint reduced) noexcept nogil:
    """Which part a dim belongs to (0 outer, 1 n, 2 inner) that comes after one of part `before`."""
    if size == 1:
        return before
    return 1 if reduced else 2 if before > 0 else 0


cdef Tensor reduced_last(Tensor x, int n_reduced, const int* reduced, Py_ssize_t* sizes):
    """A contiguous copy of `x` with the reduced dims after the others."""
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Py_ssize_t steps[MAX_NDIM]
    cdef int d, place, k = 0, kept = 0
    sizes[0] = sizes[1] = sizes[2] = 1
    for d in range(x.ndim_):
        if k < n_reduced and reduced[k] == d:
            place = x.ndim_ - n_reduced + k
            sizes[1] *= x.dims[d]
            k += 1
        else:
            place = kept
            sizes[0] *= x.dims[d]
            kept += 1
        dims[place], steps[place] = x.dims[d], x.steps[d]
    sizes[3], sizes[4] = sizes[1], 1
    return packed_copy(new_view(x, x.ndim_, dims, steps, x.data_pointer), x.type)


cdef void mark(Tensor x, int n_reduced, const int* reduced, bint* is_reduced) noexcept:
    """is_reduced[d] := whether dim d is reduced"""
    cdef int k
    for k in range(x.ndim_):
        is_reduced[k] = False
    for k in range(n_reduced):
        is_reduced[reduced[k]] = True


cdef void by_stride(Tensor x, int* order) noexcept:
    """order := the dims by magnitude of stride, the largest first; equal ones keep their order

    No dim moves past an expanded one (stride 0), so that it is summed as in a contiguous tensor.
    Dims of size 1 may stand anywhere.
    """
    cdef int d, place, before
    for d in range(x.ndim_):
        place = d
        while not x.packed and place > 0 and x.dims[d] != 1:
            before = order[place - 1]
            if x.dims[before] != 1 and (x.steps[before] == 0
                                        or abs(x.steps[before]) >= abs(x.steps[d])):
                break
            order[place] = before
            place -= 1
        order[place] = d


cdef Tensor without_gaps(Tensor x, const int* order):
    """A new tensor of the shape of `x`, with its dims in this order in memory, outermost first."""
    cdef Py_ssize_t steps[MAX_NDIM]
    cdef Py_ssize_t step = 1
    cdef int k
    cdef Tensor out
    for k in range(x.ndim_ - 1, -1, -1):
        steps[order[k]] = step
        step *= x.dims[order[k]]
    out = new_like(x, x.type)
    return new_view(out, x.ndim_, x.dims, steps, out.data_pointer)


cdef bint split(Tensor x, const int* order, const bint* is_reduced, Py_ssize_t* sizes) noexcept:
    """Whether this order has kept, then reduced, then kept dims, and the kept ones ascending.
    Writes the sizes outer, n and inner."""
    cdef int k, d, part = 0, last_kept = -1
    sizes[0] = sizes[1] = sizes[2] = 1
    for k in range(x.ndim_):
        d = order[k]
        if x.dims[d] == 1:
            continue
        if is_reduced[d]:
            if part == 2:
                return False
            part = 1
        else:
            if d < last_kept:
                return False
            last_kept = d
            if part == 1:
                part = 2
        sizes[part] *= x.dims[d]
    return True


cdef bint evenly_spaced(int kind, Tensor x, const int* order, const bint* is_reduced,
                        Py_ssize_t* sizes) noexcept:
    """Whether `x`, with the dims in an order that `split` accepted, lies in steps that the kernels
    take; writes the two steps."""
    cdef Py_ssize_t steps[3]
    cdef Py_ssize_t expected = 0
    cdef int k, d, part, last = -1
    cdef bint reduced_before = False         # whether a reduced dim comes before the one at hand
    steps[2], steps[1], steps[0] = 1, sizes[2], sizes[1] * sizes[2]
    for k in range(x.ndim_):
        reduced_before = reduced_before or (is_reduced[order[k]] and x.dims[order[k]] != 1)
    for k in range(x.ndim_ - 1, -1, -1):
        d = order[k]
        if x.dims[d] == 1:
            continue
        if is_reduced[d]:
            part, reduced_before = 1, False
        else:
            part = 2 if reduced_before else 0
        if part != last:
            last, expected = part, x.steps[d]
            if expected < steps[part] and (part == 2 or expected != 0):
                return False
            steps[part] = expected
        if x.steps[d] != expected:
            return False
        expected *= x.dims[d]
    sizes[3], sizes[4] = steps[0], steps[1]
    if steps[2] != 1 or (sizes[2] == 1 and sizes[4] != 1):
        return False
    if sizes[4] != sizes[2] and sizes[2] * ITEMSIZE[x.type] < GAPPED_BYTES:
        return False
    return reduced_in(kind, x.type) == x.type or (sizes[4] == sizes[2]
                                                  and sizes[3] == sizes[1] * sizes[2])


cdef Tensor sum_to(str name, Tensor g, int ndim, const Py_ssize_t* dims):
    """`g` summed over the dims along which a tensor of sizes `dims` was broadcast to it."""
    cdef int reduced[MAX_NDIM]
    cdef Py_ssize_t steps[MAX_NDIM]
    cdef Py_ssize_t step = 1
    cdef int n = 0, d, extra = g.ndim_ - ndim
    cdef int computed = compute_dtype(g.type) if KIND[g.type] >= FLOAT_KIND else INT64
    cdef Tensor summed
    for d in range(g.ndim_):
        if d < extra or (dims[d - extra] == 1 and g.dims[d] != 1):
            reduced[n] = d
            n += 1
        elif g.dims[d] != dims[d - extra]:
            extra = -1
            break
    if extra < 0:
        raise RuntimeError(
            f"backward: the gradient rule of {name} returned shape {tuple(g.shape)}, which doesn't "
            f"reduce to the input's {sizes_of(ndim, dims)}")
    if n == 0:
        return new_view(g, ndim, dims, g.steps, g.data_pointer)
    summed = cast(fold(SUM, reducible(SUM, g, computed), n, reduced, False, computed), g.type)
    for d in range(ndim - 1, -1, -1):
        steps[d] = step
        step *= dims[d]
    return new_view(summed, ndim, dims, steps, summed.data_pointer)


# ---- from a result back to the shape that was reduced --------------------------------------------

cdef int reduced_dims(object dim, int ndim, int* reduced) except -1:
    """Writes the dims that a reduction over `dim` went over (None: all); returns their number."""
    cdef int d
    if dim is not None:
        return parse_dims("backward", dim, ndim, reduced)
    for d in range(ndim):
        reduced[d] = d
    return ndim


cdef Tensor expand_over(Tensor g, int ndim, const Py_ssize_t* dims, int n_reduced,
                        const int* reduced, bint keepdim):
    """`g`, of the shape of a reduction's result, expanded to the shape that was reduced.

    This is the gradient of a sum. It is a view, but for few elements of one value a contiguous
    tensor, on which the operations that follow are faster.
    """
    cdef Py_ssize_t steps[MAX_NDIM]
    cdef int d, k = 0, place = 0
    cdef bint fits = g.ndim_ == (ndim if keepdim else ndim - n_reduced)
    cdef Repeated copy
    cdef Tensor out
    for d in range(ndim if fits else 0):
        if k < n_reduced and reduced[k] == d:
            steps[d] = 0
            k += 1
            place += keepdim
        else:
            steps[d] = g.steps[place]
            fits = fits and g.dims[place] == dims[d]
            place += 1
    if not fits:
        raise RuntimeError(
            f"backward: a gradient of shape {tuple(g.shape)} is not that of a reduction of "
            f"{sizes_of(ndim, dims)} over {n_reduced} dims")
    if fills(ndim, dims, n_reduced):
        out = new_tensor(g.type, ndim, dims)
        copy.one, copy.y, copy.dtype = g.data_pointer, out.data_pointer, g.type
        run_alone(repeat_one, &copy, copy.y, out.numel_)
        return out
    return new_view(g, ndim, dims, steps, g.data_pointer)


cdef struct Repeated:
    const char* one
    char* y
    int dtype


cdef void repeat_one(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Repeated* copy = <Repeated*>context
    find_gather(copy.dtype)(copy.one, 0, copy.y, end)
