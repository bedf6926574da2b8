"""Cross entropy of rows of logits with a class for each, and its gradient. Outside autograd."""

from libc.math cimport NAN
from libc.stdint cimport int64_t

from tensorlib._core.base.dtypes cimport (
    FLOAT32, FLOAT_KIND, INT64, KIND, compute_dtype, dtype_object,
)
from tensorlib._core.base.work cimport run_once, share
from tensorlib._core.reduce.schedule cimport RELEASE_GIL
from tensorlib._core.tensor.tensor cimport Tensor, new_like, new_tensor, same_shape
from tensorlib._core.tiles.copies cimport cast, packed

from tensorlib import _kernels

cdef enum:
    PIECE = 1 << 14      # elements in a piece of work
    LANES = 4            # sums beside each other

ctypedef Py_ssize_t (*forward_fn)(const char* x, const int64_t* target, int64_t ignored, char* y,
                                  Py_ssize_t rows, Py_ssize_t n) noexcept nogil
ctypedef Py_ssize_t (*backward_fn)(const char* g, const char* x, const int64_t* target,
                                   int64_t ignored, char* y, Py_ssize_t rows,
                                   Py_ssize_t n) noexcept nogil

cdef forward_fn forwards[2]                  # float32 and float64
cdef backward_fn backwards[2]

ctypedef struct Work:
    forward_fn forward
    backward_fn backward
    const char* g
    const char* x
    const int64_t* target
    int64_t ignored
    char* y
    Py_ssize_t n, itemsize
    Py_ssize_t wrong                         # a row with a target that is no class, or -1


cdef int fill() except -1:
    cdef size_t address
    for name, _, dtype, address in _kernels.load("nll").table():
        if name == "nll":
            forwards[dtype == "float64"] = <forward_fn>address
        else:
            backwards[dtype == "float64"] = <backward_fn>address
    return 0


fill()


cdef void run_rows(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Work* work = <Work*>context
    cdef Py_ssize_t offset = begin * work.n * work.itemsize, wrong
    cdef const char* x = work.x + offset
    if work.backward == NULL:
        wrong = work.forward(x, work.target + begin, work.ignored, work.y + begin * work.itemsize,
                             end - begin, work.n)
    else:
        wrong = work.backward(work.g + begin * work.itemsize, x, work.target + begin, work.ignored,
                              work.y + offset, end - begin, work.n)
    if wrong >= 0:
        work.wrong = begin + wrong


cdef Tensor run(str name, Tensor grad, Tensor input, Tensor target, int64_t ignored):
    cdef Work work
    cdef Tensor x, places, g, out
    cdef Py_ssize_t rows
    cdef int dtype
    if KIND[input.type] != FLOAT_KIND or input.ndim_ != 2 or target.ndim_ != 1 or (
            target.dims[0] != input.dims[0]):
        raise RuntimeError(f"{name}: expects rows of a floating dtype and a target for each, got "
                           f"{dtype_object(input.type)} of shape {tuple(input.shape)} and targets "
                           f"of shape {tuple(target.shape)}")
    if grad is not None and not same_shape(grad, target):
        raise RuntimeError(f"{name}: a gradient of shape {tuple(grad.shape)} for rows of shape "
                           f"{tuple(input.shape)}")
    dtype = compute_dtype(input.type)
    x, places, rows = packed(cast(input, dtype)), packed(cast(target, INT64)), input.dims[0]
    out = new_tensor(dtype, 1, x.dims) if grad is None else new_like(x, dtype)
    work.forward, work.backward = forwards[dtype != FLOAT32], NULL
    if grad is not None:
        g = packed(cast(grad, dtype))
        work.backward, work.g = backwards[dtype != FLOAT32], g.data_pointer
    work.x, work.target, work.ignored = x.data_pointer, <int64_t*>places.data_pointer, ignored
    work.y, work.n, work.itemsize = out.data_pointer, x.dims[1], 4 if dtype == FLOAT32 else 8
    work.wrong = -1
    share(run_rows, &work, work.y, rows, 1 + PIECE // max(<Py_ssize_t>1, work.n),
          x.numel_ < RELEASE_GIL)
    if work.wrong >= 0:
        raise IndexError(f"{name}: the target of row {work.wrong} is out of bounds for "
                         f"{work.n} classes")
    return cast(out, input.type)


def nll_of_logits(Tensor input, Tensor target, int64_t ignored):
    return run("cross_entropy", None, input, target, ignored)


def nll_of_logits_backward(Tensor grad, Tensor input, Tensor target, int64_t ignored):
    return run("cross_entropy", grad, input, target, ignored)


# ---- of logarithms of probabilities --------------------------------------------------------------

def nll_of_logs(Tensor input, Tensor target, int64_t ignored, bint mean):
    """The sum, or mean, of -x[target] over the rows x whose target is not `ignored`."""
    cdef Rows of
    cdef Tensor x, places, out
    if KIND[input.type] != FLOAT_KIND or input.ndim_ != 2 or target.ndim_ != 1 or (
            target.dims[0] != input.dims[0]):
        raise RuntimeError(f"nll_loss: expects rows of a floating dtype and a target for each, got "
                           f"{dtype_object(input.type)} of shape {tuple(input.shape)} and targets "
                           f"of shape {tuple(target.shape)}")
    x, places = cast(input, compute_dtype(input.type)), packed(cast(target, INT64))
    out = new_tensor(x.type, 0, NULL)
    of.x, of.target, of.ignored = x.data_pointer, <int64_t*>places.data_pointer, ignored
    of.y, of.rows, of.n, of.wrong = out.data_pointer, x.dims[0], x.dims[1], -1
    of.row, of.column, of.is_single = x.steps[0], x.steps[1], x.type == FLOAT32
    of.mean = mean
    run_once(add_rows, &of, of.y, of.rows < RELEASE_GIL)
    if of.wrong >= 0:
        raise IndexError(f"nll_loss: the target of row {of.wrong} is out of bounds for {of.n} "
                         "classes")
    return cast(out, input.type)


cdef struct Rows:
    const char* x
    const int64_t* target
    char* y
    int64_t ignored
    Py_ssize_t rows, n, row, column          # the last two in elements
    Py_ssize_t wrong                         # a row with a target that is no class, or -1
    bint is_single, mean


cdef void add_rows(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """The sum runs in LANES lanes of float64, so that only what comes out is rounded."""
    cdef Rows* of = <Rows*>context
    cdef double[LANES] sums
    cdef double total = 0, value
    cdef Py_ssize_t i, at, kept = 0
    cdef int64_t place
    for i in range(<Py_ssize_t>LANES):
        sums[i] = 0
    for i in range(of.rows):
        place = (<const volatile int64_t*>of.target)[i]      # others may write there
        if place == of.ignored:
            continue
        if not 0 <= place < of.n:
            of.wrong = i
            return
        at = i * of.row + place * of.column
        value = (<const float*>of.x)[at] if of.is_single else (<const double*>of.x)[at]
        sums[i % <Py_ssize_t>LANES] -= value
        kept += 1
    for i in range(<Py_ssize_t>LANES):
        total += sums[i]
    if of.mean:
        total = total / kept if kept else NAN
    if of.is_single:
        (<float*>of.y)[0] = <float>total
    else:
        (<double*>of.y)[0] = total
