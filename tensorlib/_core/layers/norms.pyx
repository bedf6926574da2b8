"""Normalisation of rows, as in `layer_norm`, or of channels, as in `batch_norm`.

Outside autograd.

The weight says what is normalised: of rows it has the shape of their dims, which come last; of
channels it is a vector along dim 1. Half types are computed in float32.
"""

from tensorlib._core.base.dtypes cimport FLOAT32, FLOAT_KIND, KIND, compute_dtype, dtype_object
from tensorlib._core.base.kernels cimport find_pairs
from tensorlib._core.base.pool cimport range_fn
from tensorlib._core.base.work cimport share
from tensorlib._core.reduce.arrange cimport fold
from tensorlib._core.reduce.schedule cimport RELEASE_GIL, SUM
from tensorlib._core.tensor.lanes cimport gives_lanes, lanes_of, lay_lanes
from tensorlib._core.tensor.tensor cimport Tensor, new_like, new_tensor, same_shape
from tensorlib._core.tiles.copies cimport cast, laid, packed, zero

from tensorlib._core.interpreters.recording import UnsupportedDtype

cdef enum:
    PIECE = 1 << 14      # elements in a piece of work
    BESIDE = 64          # channels of one element; a piece has a multiple of these, or of half
    PARTIAL = 64         # rows whose gradients of the weight are added one after the other

ctypedef struct Sizes:
    Py_ssize_t outer, channels, inner
    double eps
    bint centered

ctypedef void (*rows_fn)(const char* x, const char* w, const char* b, char* y, Py_ssize_t rows,
                         Py_ssize_t n, double eps, bint centered) noexcept nogil
ctypedef void (*rows_weight_fn)(const char* g, const char* x, char* y, Py_ssize_t rows,
                                Py_ssize_t n, double eps, bint centered) noexcept nogil
ctypedef void (*channels_fn)(const char* x, const char* w, const char* b, char* y, char* mean,
                             char* var, const Sizes* sizes, Py_ssize_t begin,
                             Py_ssize_t end) noexcept nogil
ctypedef void (*channels_backward_fn)(const char* g, const char* x, const char* w, char* y,
                                      const Sizes* sizes, Py_ssize_t begin,
                                      Py_ssize_t end) noexcept nogil
ctypedef void (*channels_weight_fn)(const char* g, const char* x, char* y, const Sizes* sizes,
                                    Py_ssize_t begin, Py_ssize_t end) noexcept nogil

cdef enum Kind:
    FORWARD
    BACKWARD
    WEIGHT
    KINDS

cdef void* row_loops[KINDS][2]               # float32 and float64
cdef void* channel_loops[KINDS][2]
find_pairs("normalize", ("rows", "rows_backward", "rows_weight"), row_loops[0])
find_pairs("normalize", ("channels", "channels_backward", "channels_weight"), channel_loops[0])

ctypedef struct Work:
    Kind kind
    void* loop
    const char* g
    const char* x
    const char* w
    const char* b
    char* y
    char* mean
    char* var
    Py_ssize_t rows, itemsize
    Sizes sizes


cdef void run_rows(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Work* work = <Work*>context
    cdef Py_ssize_t n = work.sizes.inner, offset = begin * n * work.itemsize
    if work.kind == FORWARD:
        (<rows_fn>work.loop)(work.x + offset, work.w, work.b, work.y + offset, end - begin, n,
                             work.sizes.eps, work.sizes.centered)
    else:
        (<rows_fn>work.loop)(work.g + offset, work.x + offset, work.w, work.y + offset,
                             end - begin, n, work.sizes.eps, work.sizes.centered)


cdef void run_partials(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Pieces of PARTIAL rows, each with sums of its own."""
    cdef Work* work = <Work*>context
    cdef Py_ssize_t n = work.sizes.inner, piece, first, offset
    for piece in range(begin, end):
        first = piece * PARTIAL
        offset = first * n * work.itemsize
        (<rows_weight_fn>work.loop)(
            work.g + offset, work.x + offset, work.y + piece * n * work.itemsize,
            min(<Py_ssize_t>PARTIAL, work.rows - first), n, work.sizes.eps, work.sizes.centered)


cdef void run_channels(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Work* work = <Work*>context
    if work.kind == FORWARD:
        (<channels_fn>work.loop)(work.x, work.w, work.b, work.y, work.mean, work.var, &work.sizes,
                                 begin, end)
    elif work.kind == BACKWARD:
        (<channels_backward_fn>work.loop)(work.g, work.x, work.w, work.y, &work.sizes, begin, end)
    else:
        (<channels_weight_fn>work.loop)(work.g, work.x, work.y, &work.sizes, begin, end)


cdef int run(Work* work, Py_ssize_t pieces, bint by_channels, Py_ssize_t numel) except -1:
    cdef Py_ssize_t grain, least
    cdef range_fn each = run_rows
    if by_channels:
        each = run_channels
        grain = 1 + PIECE // max(<Py_ssize_t>1, work.sizes.outer * work.sizes.inner)
        if work.sizes.inner == 1:        # columns, of which vectors take several
            least = BESIDE if work.sizes.channels >= 2 * BESIDE else BESIDE // 2
            grain = (grain + least - 1) // least * least
    else:
        grain = 1 + PIECE // max(<Py_ssize_t>1, work.sizes.inner)
        if work.kind == WEIGHT:
            each = run_partials
            grain = 1 + grain // PARTIAL
    return share(each, work, work.y, pieces, grain, numel < RELEASE_GIL)


cdef int begin(Work* work, str name, Kind kind, Tensor x, int ndim, const Py_ssize_t* dims,
               double eps, bint centered, bint channels) except -1:
    """Sets what the kernels need to know of `x`, normalised over dims (or channels) of such sizes.

    Returns the dtype that is computed in. Raises: RuntimeError.
    """
    cdef int d, lead = x.ndim_ - ndim
    cdef bint fits = (ndim == 1 and x.ndim_ >= 2 if channels else lead >= 0)
    cdef int dtype
    if KIND[x.type] != FLOAT_KIND:
        raise UnsupportedDtype(f"{name}: takes floating-point dtypes, got {dtype_object(x.type)}")
    dtype = compute_dtype(x.type)
    work.sizes.outer = work.sizes.channels = work.sizes.inner = work.rows = 1
    if fits and channels:
        fits = x.dims[1] == dims[0]
        work.sizes.outer, work.sizes.channels = x.dims[0], x.dims[1]
        for d in range(2, x.ndim_):
            work.sizes.inner *= x.dims[d]
    elif fits:
        for d in range(x.ndim_):
            if d < lead:
                work.rows *= x.dims[d]
            else:
                fits = fits and x.dims[d] == dims[d - lead]
                work.sizes.inner *= x.dims[d]
    if not fits:
        raise RuntimeError(f"{name}: a weight of shape {tuple([dims[d] for d in range(ndim)])} "
                           f"does not fit to an input of shape {tuple(x.shape)}")
    work.kind, work.sizes.eps, work.sizes.centered = kind, eps, centered
    work.itemsize = 4 if dtype == FLOAT32 else 8
    work.loop = channel_loops[<int>kind][dtype != FLOAT32] if channels else (
        row_loops[<int>kind][dtype != FLOAT32])
    return dtype


cdef Tensor new_result(Work* work, Tensor x, bint lanes):
    """What comes of `x`, laid out as it; where its channels lie beside each other, each place of an
    image is to the loops an example of its own."""
    cdef Tensor out = new_like(x, x.type)
    if lanes:
        join_places(work, x)
        lay_lanes(out)
    return out


cdef inline void join_places(Work* work, Tensor x) noexcept:
    if lanes_of(x):
        work.sizes.outer, work.sizes.inner = work.sizes.outer * work.sizes.inner, 1


cdef int check_alike(str name, Tensor a, Tensor b) except -1:
    if not same_shape(a, b):
        raise RuntimeError(f"{name}: shapes differ: {tuple(a.shape)} and {tuple(b.shape)}")
    return 0


def affine_norm(Tensor input, Tensor weight, Tensor bias, double eps, bint centered,
                bint channels, Tensor mean or None=None, Tensor var or None=None):
    """The normalised elements times the weight plus the bias.

    `mean` and `var`, of channels, are filled; they are contiguous and of the dtype computed in.
    """
    cdef Work work
    cdef int dtype = begin(&work, "affine_norm", FORWARD, input, weight.ndim_, weight.dims, eps,
                           centered, channels)
    cdef bint lanes = channels and gives_lanes(input)
    cdef Tensor x = laid(input, dtype, lanes), w = packed(cast(weight, dtype))
    cdef Tensor b = packed(cast(bias, dtype)), out = new_result(&work, x, lanes)
    check_alike("affine_norm", weight, bias)
    if channels:
        mean = new_like(w, dtype) if mean is None else mean
        var = new_like(w, dtype) if var is None else var
        for given in (mean, var):
            if (<Tensor>given).type != dtype or not (<Tensor>given).packed:
                raise RuntimeError("affine_norm: the statistics go into other tensors")
            check_alike("affine_norm", given, w)
        work.mean, work.var = mean.data_pointer, var.data_pointer
    if out.numel_ == 0:
        return cast(out, input.type)
    work.x, work.w = x.data_pointer, w.data_pointer
    work.b, work.y = b.data_pointer, out.data_pointer
    run(&work, work.sizes.channels if channels else work.rows, channels, x.numel_)
    return laid(out, input.type, lanes)


def norm_backward(Tensor grad, Tensor input, Tensor weight, double eps, bint centered,
                  bint channels):
    cdef Work work
    cdef int dtype = begin(&work, "norm_backward", BACKWARD, input, weight.ndim_, weight.dims, eps,
                           centered, channels)
    cdef bint lanes = channels and gives_lanes(input)
    cdef Tensor x = laid(input, dtype, lanes), w = packed(cast(weight, dtype))
    cdef Tensor g = laid(grad, dtype, lanes), out = new_result(&work, x, lanes)
    check_alike("norm_backward", grad, input)
    if out.numel_ == 0:
        return cast(out, input.type)
    work.g, work.x = g.data_pointer, x.data_pointer
    work.w, work.y = w.data_pointer, out.data_pointer
    run(&work, work.sizes.channels if channels else work.rows, channels, x.numel_)
    return laid(out, input.type, lanes)


def norm_weight_backward(Tensor grad, Tensor input, int ndim, double eps, bint centered,
                         bint channels):
    cdef Work work
    cdef int dtype, first = 0
    cdef Py_ssize_t pieces
    cdef Py_ssize_t dims[2]
    cdef Tensor x, g, out, partials
    cdef bint lanes = channels and gives_lanes(input)
    if not 0 <= ndim <= input.ndim_ or channels and input.ndim_ < 2:
        raise RuntimeError(f"norm_weight_backward: {ndim} dims of {input.ndim_}")
    cdef const Py_ssize_t* sizes = input.dims + (1 if channels else input.ndim_ - ndim)
    dtype = begin(&work, "norm_weight_backward", WEIGHT, input, 1 if channels else ndim, sizes,
                  eps, centered, channels)
    check_alike("norm_weight_backward", grad, input)
    x, g = laid(input, dtype, lanes), laid(grad, dtype, lanes)
    if lanes:
        join_places(&work, x)
    out = new_tensor(dtype, 1 if channels else ndim, sizes)
    if x.numel_ == 0:
        zero(out)
        return cast(out, input.type)
    work.g, work.x, work.y = g.data_pointer, x.data_pointer, out.data_pointer
    if channels:
        run(&work, work.sizes.channels, True, x.numel_)
        return cast(out, input.type)
    pieces = (work.rows + PARTIAL - 1) // PARTIAL
    if pieces == 1:
        run(&work, 1, False, x.numel_)
        return cast(out, input.type)
    dims[0], dims[1] = pieces, work.sizes.inner
    partials = new_tensor(dtype, 2, dims)
    work.y = partials.data_pointer
    run(&work, pieces, False, x.numel_)
    partials = fold(SUM, partials, 1, &first, False, dtype)
    return cast(partials.view(tuple([sizes[d] for d in range(ndim)])), input.type)
