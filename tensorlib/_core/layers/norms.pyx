"""Normalisation of rows, as in `layer_norm`. Outside autograd.

The last dims are normalised, and the weight has their shape. Half types are computed in float32,
forward some rows at a time in scratch memory.
"""

from tensorlib._core.base.dtypes cimport (
    FLOAT32, FLOAT_KIND, ITEMSIZE, KIND, compute_dtype, dtype_object,
)
from tensorlib._core.base.kernels cimport find_pairs
from tensorlib._core.base.scratch cimport give_scratch, take_scratch
from tensorlib._core.base.work cimport share
from tensorlib._core.reduce.arrange cimport fold
from tensorlib._core.reduce.schedule cimport RELEASE_GIL, SUM
from tensorlib._core.tensor.tensor cimport Tensor, new_like, new_tensor, same_shape
from tensorlib._core.tiles.copies cimport cast, packed, zero
from tensorlib._core.tiles.loops cimport cast_loop, find_cast

from tensorlib._core.interpreters.recording import UnsupportedDtype

cdef enum:
    PIECE = 1 << 14      # elements in a piece of work
    TILE = 1 << 12       # elements of half types that are widened together, at least a row
    LONGEST = 1 << 20    # elements of the longest row that is
    PARTIAL = 64         # rows that have one sum for the gradient of the weight

ctypedef void (*rows_fn)(const char* x, const char* w, const char* b, char* y, Py_ssize_t rows,
                         Py_ssize_t n, double eps, bint centered) noexcept nogil
ctypedef void (*rows_weight_fn)(const char* g, const char* x, char* y, Py_ssize_t rows,
                                Py_ssize_t n, double eps, bint centered) noexcept nogil

cdef enum Kind:
    FORWARD
    BACKWARD
    WEIGHT
    KINDS

cdef void* row_loops[KINDS][2]               # float32 and float64
find_pairs("normalize", ("rows", "rows_backward", "rows_weight"), row_loops[0])

ctypedef struct Work:
    Kind kind
    void* loop
    const char* g
    const char* x
    const char* w
    const char* b
    char* y
    Py_ssize_t rows, n, itemsize
    double eps
    bint centered
    cast_loop widen      # of half types that are widened some rows at a time, or NULL
    cast_loop narrow
    bint failed


cdef void run_half_rows(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Forward on rows [begin, end) of a half type, of which some at a time become float32"""
    cdef Work* work = <Work*>context
    cdef Py_ssize_t n = work.n, here, together = min(end - begin, max(1, TILE // n))
    cdef size_t nbytes = 2 * together * n * sizeof(float)
    cdef char* x = take_scratch(nbytes)
    cdef char* y = x + together * n * sizeof(float)
    if x == NULL:
        work.failed = True
        return
    while begin < end:
        here = min(together, end - begin)
        work.widen(work.x + 2 * begin * n, x, here * n)
        (<rows_fn>work.loop)(x, work.w, work.b, y, here, n, work.eps, work.centered)
        work.narrow(y, work.y + 2 * begin * n, here * n)
        begin += here
    give_scratch(x, nbytes)


cdef void run_rows(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Work* work = <Work*>context
    cdef Py_ssize_t n = work.n, offset = begin * n * work.itemsize
    if work.kind == FORWARD:
        (<rows_fn>work.loop)(work.x + offset, work.w, work.b, work.y + offset, end - begin, n,
                             work.eps, work.centered)
    else:
        (<rows_fn>work.loop)(work.g + offset, work.x + offset, work.w, work.y + offset,
                             end - begin, n, work.eps, work.centered)


cdef void run_partials(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Computes the pieces [begin, end), of PARTIAL rows and with their own sums each."""
    cdef Work* work = <Work*>context
    cdef Py_ssize_t n = work.n, piece, first, offset
    for piece in range(begin, end):
        first = piece * PARTIAL
        offset = first * n * work.itemsize
        (<rows_weight_fn>work.loop)(
            work.g + offset, work.x + offset, work.y + piece * n * work.itemsize,
            min(<Py_ssize_t>PARTIAL, work.rows - first), n, work.eps, work.centered)


cdef int run(Work* work, Py_ssize_t pieces, Py_ssize_t numel) except -1:
    cdef Py_ssize_t grain = 1 + PIECE // max(<Py_ssize_t>1, work.n)
    if work.kind == WEIGHT:
        return share(run_partials, work, work.y, pieces, 1 + grain // PARTIAL,
                     numel < RELEASE_GIL)
    share(run_rows if work.widen == NULL else run_half_rows, work, work.y, pieces, grain,
          numel < RELEASE_GIL)
    if work.failed:
        raise MemoryError("affine_norm: no memory for rows")
    return 0


cdef int begin(Work* work, str name, Kind kind, Tensor x, int ndim, const Py_ssize_t* dims,
               double eps, bint centered) except -1:
    """Describes `x` for the kernels, normalised over last dims of these sizes.

    Returns the dtype that is computed in. Raises: RuntimeError.
    """
    cdef int d, lead = x.ndim_ - ndim
    cdef bint fits = lead >= 0
    cdef int dtype
    if KIND[x.type] != FLOAT_KIND:
        raise UnsupportedDtype(f"{name}: takes floating-point dtypes, got {dtype_object(x.type)}")
    dtype = compute_dtype(x.type)
    work.n = work.rows = 1
    for d in range(x.ndim_ if fits else 0):
        if d < lead:
            work.rows *= x.dims[d]
        else:
            fits = fits and x.dims[d] == dims[d - lead]
            work.n *= x.dims[d]
    if not fits:
        raise RuntimeError(f"{name}: a weight of shape {tuple([dims[d] for d in range(ndim)])} "
                           f"does not fit to an input of shape {tuple(x.shape)}")
    work.kind, work.eps, work.centered = kind, eps, centered
    work.itemsize = 4 if dtype == FLOAT32 else 8
    work.loop = row_loops[<int>kind][dtype != FLOAT32]
    work.widen, work.narrow, work.failed = NULL, NULL, False
    if kind == FORWARD and ITEMSIZE[x.type] == 2 and work.n <= <Py_ssize_t>LONGEST:
        work.widen, work.narrow = find_cast(x.type, FLOAT32), find_cast(FLOAT32, x.type)
    return dtype


cdef int check_alike(str name, Tensor a, Tensor b) except -1:
    if not same_shape(a, b):
        raise RuntimeError(f"{name}: shapes differ: {tuple(a.shape)} and {tuple(b.shape)}")
    return 0


def affine_norm(Tensor input, Tensor weight, Tensor bias, double eps, bint centered):
    """The normalised elements times the weight plus the bias."""
    cdef Work work
    cdef int dtype = begin(&work, "affine_norm", FORWARD, input, weight.ndim_, weight.dims, eps,
                           centered)
    cdef Tensor x = packed(cast(input, dtype) if work.widen == NULL else input)
    cdef Tensor w = packed(cast(weight, dtype)), b = packed(cast(bias, dtype))
    cdef Tensor out = new_like(x, x.type)
    check_alike("affine_norm", weight, bias)
    if out.numel_:
        work.x, work.w = x.data_pointer, w.data_pointer
        work.b, work.y = b.data_pointer, out.data_pointer
        run(&work, work.rows, x.numel_)
    return cast(out, input.type)


def norm_backward(Tensor grad, Tensor input, Tensor weight, double eps, bint centered):
    cdef Work work
    cdef int dtype = begin(&work, "norm_backward", BACKWARD, input, weight.ndim_, weight.dims, eps,
                           centered)
    cdef Tensor x = packed(cast(input, dtype)), w = packed(cast(weight, dtype))
    cdef Tensor g = packed(cast(grad, dtype)), out = new_like(x, dtype)
    check_alike("norm_backward", grad, input)
    if out.numel_:
        work.g, work.x = g.data_pointer, x.data_pointer
        work.w, work.y = w.data_pointer, out.data_pointer
        run(&work, work.rows, x.numel_)
    return cast(out, input.type)


def norm_weight_backward(Tensor grad, Tensor input, int ndim, double eps, bint centered):
    cdef Work work
    cdef int dtype, first = 0
    cdef Py_ssize_t pieces
    cdef Py_ssize_t dims[2]
    cdef Tensor x, g, out, partials
    if not 0 <= ndim <= input.ndim_:
        raise RuntimeError(f"norm_weight_backward: {ndim} dims of {input.ndim_}")
    cdef const Py_ssize_t* sizes = input.dims + (input.ndim_ - ndim)
    dtype = begin(&work, "norm_weight_backward", WEIGHT, input, ndim, sizes, eps, centered)
    check_alike("norm_weight_backward", grad, input)
    x, g = packed(cast(input, dtype)), packed(cast(grad, dtype))
    out = new_tensor(dtype, ndim, sizes)
    if x.numel_ == 0:
        zero(out)
        return cast(out, input.type)
    work.g, work.x, work.y = g.data_pointer, x.data_pointer, out.data_pointer
    pieces = (work.rows + PARTIAL - 1) // PARTIAL
    if pieces == 1:
        run(&work, 1, x.numel_)
        return cast(out, input.type)
    dims[0], dims[1] = pieces, work.n
    partials = new_tensor(dtype, 2, dims)
    work.y = partials.data_pointer
    run(&work, pieces, x.numel_)
    partials = fold(SUM, partials, 1, &first, False, dtype)
    return cast(partials.view(tuple([sizes[d] for d in range(ndim)])), input.type)
