"""Losses of margins between the target classes of a row and its other classes, and their gradients
(`multi_margin_loss`, `multilabel_margin_loss`). Outside autograd.

Each row of targets (B, K) lists classes; if `ends`, the first -1 ends the list. Targets (B,) are
one class each.
"""

from libc.stdint cimport int64_t
from libc.string cimport memset

from tensorlib._core.base.dtypes cimport (
    FLOAT32, FLOAT64, FLOAT_KIND, INT64, KIND, compute_dtype, dtype_object,
)
from tensorlib._core.base.items cimport floating
from tensorlib._core.base.scratch cimport give_scratch, take_scratch
from tensorlib._core.base.shape cimport times
from tensorlib._core.base.work cimport run_once, share
from tensorlib._core.reduce.schedule cimport RELEASE_GIL
from tensorlib._core.tensor.tensor cimport Tensor, new_like, new_tensor
from tensorlib._core.tiles.copies cimport cast, packed

cdef enum:
    PIECE = 1 << 14      # differences in a piece of work
    LANES = 4            # sums side by side

cdef struct Rows:
    const char* x            # (rows, n)
    const int64_t* target    # (rows, listed)
    const char* g            # a number, or one for each row
    double* losses
    double* total            # the sum or mean of all rows, or NULL
    char* dx
    Py_ssize_t rows, n, listed
    double margin, scale     # scale: of the gradients
    bint squared, ends, one_g, is_single, failed
    Py_ssize_t wrong         # a row with a target out of range, or -1


cdef inline floating hinge(floating z, floating skipped, bint squared) noexcept nogil:
    """max(0, z), or its square; NaN stays"""
    cdef floating over = 0 if (z <= 0) | (skipped != 0) else z
    return over * over if squared else over


cdef inline floating slope(floating z, floating skipped, floating g, bint squared) noexcept nogil:
    """The gradient of `hinge`"""
    return (g * (z + z) if squared else g) if (z > 0) & (skipped == 0) else 0


cdef inline double hinges(const floating* x, const floating* skipped, floating shift, floating g,
                          floating* dx, Py_ssize_t n, bint squared) noexcept nogil:
    """The sum of the hinges of shift + x, without skipped elements. If there is dx, the sum of
    their gradients, which are also added to dx."""
    cdef double lanes[LANES]
    cdef double total = 0
    cdef floating value
    cdef Py_ssize_t j, l, whole = n - n % LANES if n >= 2 * LANES else 0
    if whole:
        for l in range(<Py_ssize_t>LANES):
            lanes[l] = 0
        if dx == NULL:
            for j in range(0, whole, 4):       # LANES
                for l in range(<Py_ssize_t>LANES):
                    lanes[l] += hinge(shift + x[j + l], skipped[j + l], squared)
        else:
            for j in range(0, whole, 4):
                for l in range(<Py_ssize_t>LANES):
                    value = slope(shift + x[j + l], skipped[j + l], g, squared)
                    dx[j + l] += value
                    lanes[l] += value
        for l in range(<Py_ssize_t>LANES):
            total += lanes[l]
    for j in range(whole, n):
        if dx == NULL:
            total += hinge(shift + x[j], skipped[j], squared)
        else:
            value = slope(shift + x[j], skipped[j], g, squared)
            dx[j] += value
            total += value
    return total


cdef inline Py_ssize_t list_row(Rows* of, Py_ssize_t row, int64_t* found) noexcept nogil:
    """Copies the classes that a row lists, as another thread may write to them. Returns how many
    they are, or -1 for one out of range."""
    cdef const volatile int64_t* target = of.target + row * of.listed
    cdef Py_ssize_t k
    for k in range(of.listed):
        found[k] = target[k]
        if of.ends and found[k] == -1:
            return k
        if not 0 <= found[k] < of.n:
            of.wrong = row
            return -1
    return of.listed


cdef inline bint go(Rows* of, floating* skipped, int64_t* found, Py_ssize_t row) noexcept nogil:
    """Computes the loss of a row or its gradient; False for a target out of range."""
    cdef const floating* x = <const floating*>of.x + row * of.n
    cdef floating* dx = <floating*>of.dx + row * of.n if of.dx != NULL else NULL
    cdef floating g = 0
    cdef double total = 0
    cdef Py_ssize_t k, count = list_row(of, row, found)
    if of.ends and count >= 0:               # what follows the end of the list does not matter
        for k in range(count + 1, of.listed):
            if not -1 <= (<const volatile int64_t*>of.target)[row * of.listed + k] < of.n:
                of.wrong, count = row, -1
    if count < 0:
        return False
    for k in range(count):
        skipped[found[k]] = 1
    if dx == NULL:
        for k in range(count):
            total += hinges(x, skipped, <floating>of.margin - x[found[k]], g, dx, of.n, of.squared)
        of.losses[row] = total / max(<Py_ssize_t>1, of.n)
    else:
        memset(dx, 0, of.n * sizeof(floating))
        g = <floating>((<const floating*>of.g)[0 if of.one_g else row] * of.scale / of.n)
        if g != 0:
            for k in range(count):
                dx[found[k]] -= <floating>hinges(
                    x, skipped, <floating>of.margin - x[found[k]], g, dx, of.n, of.squared)
    for k in range(count):
        skipped[found[k]] = 0
    return True


cdef void run(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Rows* of = <Rows*>context
    cdef size_t size = of.n * sizeof(double)
    cdef char* scratch = take_scratch(size + of.listed * sizeof(int64_t) + 8)
    cdef int64_t* found = <int64_t*>(scratch + size)
    cdef Py_ssize_t row
    if scratch == NULL:
        of.failed = True
        return
    memset(scratch, 0, size)
    for row in range(begin, end):
        if not (go[float](of, <float*>scratch, found, row) if of.is_single
                else go[double](of, <double*>scratch, found, row)):
            break
    give_scratch(scratch, size + of.listed * sizeof(int64_t) + 8)


cdef int run_all(Rows* of, Tensor x, Tensor places, const void* memory, int p, double margin,
                 bint ends) except -1:
    of.x, of.target = x.data_pointer, <int64_t*>places.data_pointer
    of.rows, of.n = x.dims[0], x.dims[1]
    of.listed = places.dims[1] if places.ndim_ == 2 else 1
    of.margin, of.squared, of.ends, of.is_single = margin, p == 2, ends, x.type == FLOAT32
    of.failed, of.wrong = False, -1
    share(run, of, memory, of.rows, 1 + PIECE // (1 + times(of.n, of.listed)),
          x.numel_ < RELEASE_GIL)
    if of.failed:
        raise MemoryError("class_margins: no memory for a row")
    if of.wrong >= 0 and ends:
        raise RuntimeError("multilabel_margin_loss: a target is out of range for "
                           f"{of.n} classes")
    if of.wrong >= 0:
        raise IndexError(f"multi_margin_loss: a target is out of bounds for {of.n} classes")
    return 0


cdef int check(Tensor input, Tensor target, str reduction) except -1:
    if KIND[input.type] != FLOAT_KIND or input.ndim_ != 2 or not (
            1 <= target.ndim_ <= 2 and target.dims[0] == input.dims[0]):
        raise RuntimeError("class_margins: expects rows of a floating dtype and a row of classes "
                           f"for each, got {dtype_object(input.type)} of shape "
                           f"{tuple(input.shape)} and targets of shape {tuple(target.shape)}")
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"class_margins: {reduction!r} is not a valid value for reduction")
    return 0


cdef void add_up(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """total := the sum or mean of the losses; on one thread, so that the bits are the same"""
    cdef Rows* of = <Rows*>context
    cdef Py_ssize_t row
    of.total[0] = 0
    for row in range(of.rows):
        of.total[0] += of.losses[row]
    of.total[0] *= of.scale


def class_margins(Tensor input, Tensor target, int p, double margin, bint ends, str reduction):
    """For each row x the sum of max(0, margin - x[t] + x[j])**p over the listed classes t and all
    other classes j, divided by the number of classes; or the sum or mean of these."""
    cdef Rows of
    cdef Tensor x, places, losses, out
    cdef Py_ssize_t[1] dims
    check(input, target, reduction)
    x, places = packed(cast(input, compute_dtype(input.type))), packed(cast(target, INT64))
    dims[0] = x.dims[0]
    losses = new_tensor(FLOAT64, 1, dims)
    of.losses, of.dx, of.g = <double*>losses.data_pointer, NULL, NULL
    run_all(&of, x, places, of.losses, p, margin, ends)
    if reduction == "none":
        return cast(losses, input.type)
    out = new_tensor(FLOAT64, 0, NULL)
    of.total = <double*>out.data_pointer
    of.scale = 1.0 / of.rows if reduction == "mean" else 1
    run_once(add_up, &of, of.total, of.rows < RELEASE_GIL)
    return cast(out, input.type)


def class_margins_backward(Tensor grad, Tensor input, Tensor target, int p, double margin,
                           bint ends, str reduction):
    """The gradient of `class_margins`."""
    cdef Rows of
    cdef Tensor g, x, places, dx
    check(input, target, reduction)
    of.one_g = reduction != "none"
    if grad.ndim_ != (0 if of.one_g else 1) or not of.one_g and grad.dims[0] != input.dims[0]:
        raise RuntimeError(f"class_margins: a gradient of shape {tuple(grad.shape)} for rows of "
                           f"shape {tuple(input.shape)}")
    x, places = packed(cast(input, compute_dtype(input.type))), packed(cast(target, INT64))
    g, dx = packed(cast(grad, x.type)), new_like(x, x.type)
    of.g, of.losses, of.dx = g.data_pointer, NULL, dx.data_pointer
    of.scale = 1.0 / max(<Py_ssize_t>1, x.dims[0]) if reduction == "mean" else 1
    run_all(&of, x, places, of.dx, p, margin, ends)
    return cast(dx, input.type)
