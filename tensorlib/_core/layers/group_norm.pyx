"""Normalisation of channels, as in `batch_norm`, and of groups of them, as in `group_norm`, and the
affine map of channels (scale and shift). Outside autograd.

Tensors are (B, C, *) with vectors of C elements. Channels that lie beside each other, or have one
element each, are columns of a matrix: of one of all examples, or for groups of one of each example
(`column_norm.pyx`). Other gradients are one kernel, which leaves those of the vectors by each
example; they are summed here. Half types are computed in float32 in scratch memory, planes of
channels one by one and groups tile by tile.
"""

from tensorlib._core.base.dtypes cimport (
    FLOAT32, FLOAT64, FLOAT_KIND, ITEMSIZE, KIND, compute_dtype, dtype_object,
)
from tensorlib._core.base.kernels cimport find_pairs
from tensorlib._core.base.scratch cimport give_scratch, take_scratch
from tensorlib._core.base.work cimport share
from tensorlib._core.layers.column_norm cimport (
    are_columns, columns_backward, new_result, normal_columns,
)
from tensorlib._core.reduce.arrange cimport fold
from tensorlib._core.reduce.schedule cimport RELEASE_GIL, SUM
from tensorlib._core.tensor.lanes cimport gives_lanes, lanes_of
from tensorlib._core.tensor.tensor cimport Tensor, new_like, new_tensor, same_shape
from tensorlib._core.tiles.copies cimport cast, laid, packed, zero
from tensorlib._core.tiles.loops cimport cast_loop, find_cast

from tensorlib._core.interpreters.recording import UnsupportedDtype

cdef enum:
    PIECE = 1 << 14      # elements in a piece of work
    CHANNEL = 1 << 17    # elements of one of half types that is widened by itself
    TILE = 1 << 11       # of half types that are widened together, at least one group

ctypedef struct Planes:
    Py_ssize_t channels, together, inner     # of an example, of a group; the elements of a channel
    double eps

ctypedef struct Sizes:
    Py_ssize_t outer, channels, inner
    double eps

ctypedef void (*forward_fn)(const char* x, const char* w, const char* b, char* y,
                            const Planes* planes, Py_ssize_t begin, Py_ssize_t end) noexcept nogil
ctypedef void (*backward_fn)(const char* g, const char* x, const char* w, char* y, char* dw,
                             char* db, const Planes* planes, Py_ssize_t begin,
                             Py_ssize_t end) noexcept nogil

ctypedef void (*channels_fn)(const char* x, const char* w, const char* b, char* y, char* mean,
                             char* var, const Sizes* sizes, Py_ssize_t begin,
                             Py_ssize_t end) noexcept nogil
ctypedef void (*channels_backward_fn)(const char* g, const char* x, const char* w, char* y,
                                      char* dw, char* db, const Sizes* sizes, Py_ssize_t begin,
                                      Py_ssize_t end) noexcept nogil

cdef enum Kind:
    GROUPS
    GROUPS_BACKWARD
    SCALED
    SCALED_BACKWARD
    KINDS

cdef void* loops[KINDS][2]                   # float32 and float64
find_pairs("grouped", ("groups", "groups_backward", "scaled", "scaled_backward"), loops[0])

cdef enum Step:
    CHANNELS
    CHANNELS_BACKWARD
    STEPS

cdef void* steps[STEPS][2]
find_pairs("normalize", ("channels", "channels_backward"), steps[0])

ctypedef struct Work:
    void* loop
    bint back
    bint scaled          # has no statistics, so that a part of a channel is computed by itself
    cast_loop widen      # of half types that are computed tile by tile, or NULL
    cast_loop narrow
    bint failed
    const char* g
    const char* x
    const char* w
    const char* b
    char* y
    char* dw
    char* db
    Planes planes


cdef void run_range(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Work* work = <Work*>context
    run_loop(work, work.g, work.x, work.w, work.b, work.y, &work.planes, begin, end)


cdef inline void run_loop(const Work* work, const char* g, const char* x, const char* w,
                          const char* b, char* y, const Planes* planes, Py_ssize_t begin,
                          Py_ssize_t end) noexcept nogil:
    if work.back:
        (<backward_fn>work.loop)(g, x, w, y, work.dw, work.db, planes, begin, end)
    else:
        (<forward_fn>work.loop)(x, w, b, y, planes, begin, end)


cdef void run_half_tiles(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Groups [begin, end) of a half type, of which a tile becomes float32 in scratch memory"""
    cdef Work* work = <Work*>context
    cdef Planes part = work.planes
    cdef Py_ssize_t size = part.together * part.inner, here, at, n, channel, moved
    cdef Py_ssize_t together = max(1, TILE // size)
    cdef bint split = work.scaled and not work.back and size > TILE
    cdef Py_ssize_t longest = TILE if split else together * size
    cdef size_t nbytes = 3 * longest * sizeof(float)
    cdef char* y = take_scratch(nbytes)
    cdef char* x = y + longest * sizeof(float)
    cdef char* g = x + longest * sizeof(float)
    if y == NULL:
        work.failed = True
        return
    if split:
        part.channels = 1
    while begin < end:
        here = min(together, end - begin)
        at, channel = begin * size, begin % work.planes.channels * sizeof(float)
        while at < (begin + here) * size:
            n = min(longest, (begin + here) * size - at)
            work.widen(work.x + 2 * at, x, n)
            if work.back:
                work.widen(work.g + 2 * at, g, n)
            if split:
                part.inner = n
                run_loop(work, g, x, work.w + channel, work.b + channel, y, &part, 0, 1)
            else:              # the loop counts from the first group of all
                moved = at * <Py_ssize_t>sizeof(float)
                run_loop(work, g - moved, x - moved, work.w, work.b, y - moved, &part, begin,
                         begin + here)
            work.narrow(y, work.y + 2 * at, n)
            at += n
        begin += here
    give_scratch(y, nbytes)


cdef int run(Work* work, Py_ssize_t numel, str name) except -1:
    """Runs the loop on all groups of all examples, on several threads if there is enough work."""
    cdef Py_ssize_t size = work.planes.together * work.planes.inner
    work.failed = False
    share(run_range if work.widen == NULL else run_half_tiles, work, work.y, numel // size,
          1 + PIECE // size, numel < RELEASE_GIL)
    if work.failed:
        raise MemoryError(f"{name}: no memory for a group")
    return 0


cdef Tensor groups_of(Work* work, Tensor x, int dtype, bint lanes):
    """Of half types that are widened tile by tile as they are, else in the dtype of the
    computation"""
    work.widen, work.narrow = NULL, NULL
    if ITEMSIZE[x.type] == 2 and (work.scaled and not work.back or
                                  work.planes.together * work.planes.inner <= CHANNEL):
        work.widen, work.narrow = find_cast(x.type, FLOAT32), find_cast(FLOAT32, x.type)
        return x
    return laid(x, dtype, lanes)


cdef int check_vector(str name, Tensor x, Tensor w) except -1:
    """Returns the dtype that is computed in. Raises: RuntimeError."""
    if KIND[x.type] != FLOAT_KIND:
        raise UnsupportedDtype(f"{name}: takes floating-point dtypes, got {dtype_object(x.type)}")
    if x.ndim_ < 2 or w.ndim_ != 1 or w.dims[0] != x.dims[1]:
        raise RuntimeError(f"{name}: a weight of shape {tuple(w.shape)} does not fit to an input "
                           f"of shape {tuple(x.shape)}")
    return compute_dtype(x.type)


cdef int begin(Work* work, str name, Kind kind, Tensor x, Tensor w, Py_ssize_t groups) except -1:
    """Finds the loop and the sizes. Returns the dtype that is computed in. Raises: RuntimeError."""
    cdef int d, dtype = check_vector(name, x, w)
    if groups < 1 or x.dims[1] % groups:
        raise RuntimeError(f"{name}: {groups} groups of {x.dims[1]} channels")
    work.loop = loops[<int>kind][dtype != FLOAT32]
    work.back = kind == GROUPS_BACKWARD or kind == SCALED_BACKWARD
    work.scaled = kind == SCALED or kind == SCALED_BACKWARD
    work.planes.channels, work.planes.together = x.dims[1], x.dims[1] // groups
    work.planes.inner = 1
    for d in range(2, x.ndim_):
        work.planes.inner *= x.dims[d]
    return dtype


cdef int check_alike(str name, Tensor a, Tensor b) except -1:
    if not same_shape(a, b):
        raise RuntimeError(f"{name}: shapes differ: {tuple(a.shape)} and {tuple(b.shape)}")
    return 0


# ---- batch norm ----------------------------------------------------------------------------------

ctypedef struct Channels:
    bint back
    void* loop
    const char* g
    const char* x
    const char* w
    const char* b
    char* y
    char* mean
    char* var
    Sizes sizes
    cast_loop widen      # of half types that are computed channel by channel, or NULL
    cast_loop narrow
    bint failed


cdef void run_halves(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Channels [begin, end) of a half type, of which each becomes float32 in scratch memory"""
    cdef Channels* c = <Channels*>context
    cdef Sizes one = c.sizes
    cdef Py_ssize_t size = c.sizes.outer * c.sizes.inner, vector, channel
    cdef size_t nbytes = (3 if c.back else 2) * size * sizeof(float)
    cdef char* y = take_scratch(nbytes)
    cdef char* x = y + size * sizeof(float)
    cdef char* g = x + size * sizeof(float)
    if y == NULL:
        c.failed = True
        return
    one.channels = 1
    for channel in range(begin, end):
        vector = channel * sizeof(float)
        move_channel(c, c.widen, c.x, x, channel, False)
        if c.back:
            move_channel(c, c.widen, c.g, g, channel, False)
            (<channels_backward_fn>c.loop)(g, x, c.w + vector, y, c.mean + vector, c.var + vector,
                                           &one, 0, 1)
        else:
            (<channels_fn>c.loop)(x, c.w + vector, c.b + vector, y, c.mean + vector,
                                  c.var + vector, &one, 0, 1)
        move_channel(c, c.narrow, c.y, y, channel, True)
    give_scratch(y, nbytes)


cdef inline void move_channel(const Channels* c, cast_loop loop, const char* planes, char* run,
                              Py_ssize_t channel, bint back) noexcept nogil:
    """run := the elements of a channel; or, `back`, its planes := these"""
    cdef Py_ssize_t i, n = c.sizes.inner
    cdef char* plane = <char*>planes + channel * n * 2
    for i in range(c.sizes.outer):
        loop(run if back else plane, plane if back else run, n)
        plane += c.sizes.channels * n * 2
        run += n * sizeof(float)


cdef void run_channels(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Channels* c = <Channels*>context
    if c.back:
        (<channels_backward_fn>c.loop)(c.g, c.x, c.w, c.y, c.mean, c.var, &c.sizes, begin, end)
    else:
        (<channels_fn>c.loop)(c.x, c.w, c.b, c.y, c.mean, c.var, &c.sizes, begin, end)


cdef int run_planes(Channels* c, bint back, Tensor x, double eps) except -1:
    cdef Py_ssize_t size = x.numel_ // x.dims[1]
    c.sizes.outer, c.sizes.channels, c.sizes.inner = x.dims[0], x.dims[1], size // x.dims[0]
    if x.dims[1] == 1:
        c.sizes.outer, c.sizes.inner = 1, size
    c.back, c.sizes.eps, c.x = back, eps, x.data_pointer
    c.loop = steps[<int>(CHANNELS_BACKWARD if back else CHANNELS)][x.type == FLOAT64]
    c.widen, c.narrow, c.failed = NULL, NULL, False
    if ITEMSIZE[x.type] == 2:
        c.widen, c.narrow = find_cast(x.type, FLOAT32), find_cast(FLOAT32, x.type)
    share(run_channels if c.widen == NULL else run_halves, c, c.y, x.dims[1], 1 + PIECE // size,
          x.numel_ < RELEASE_GIL)
    if c.failed:
        raise MemoryError("channel_norm: no memory for a channel")


cdef Tensor planes_of(Tensor x, int dtype, bint lanes):
    """As they are where channels or pieces of rows are widened, else in the dtype of the
    computation"""
    x = laid(x, x.type, lanes)
    return x if are_columns(x) or x.numel_ <= CHANNEL * x.dims[1] else laid(x, dtype, lanes)


def channel_norm(Tensor input, Tensor weight, Tensor bias, double eps, Tensor mean or None=None,
                 Tensor var or None=None):
    """The elements of each channel, normalised, times the weight plus the bias.

    `mean` and `var` are written; they are contiguous, in the dtype in which this is computed.
    """
    cdef Channels c
    cdef int dtype = check_vector("channel_norm", input, weight)
    cdef bint lanes = gives_lanes(input)
    cdef Tensor x = planes_of(input, dtype, lanes), w = packed(cast(weight, dtype))
    cdef Tensor b = packed(cast(bias, dtype)), out
    check_alike("channel_norm", weight, bias)
    mean = new_like(w, dtype) if mean is None else mean
    var = new_like(w, dtype) if var is None else var
    for given in (mean, var):
        if (<Tensor>given).type != dtype or not (<Tensor>given).packed:
            raise RuntimeError("channel_norm: the statistics go into other tensors")
        check_alike("channel_norm", given, w)
    if x.numel_ and are_columns(x):
        out = normal_columns(x, w, b, 1, x.dims[1], eps, mean, var)
        return laid(out, input.type, lanes)
    out = new_result(x, lanes)
    if out.numel_:
        c.w, c.b, c.y = w.data_pointer, b.data_pointer, out.data_pointer
        c.mean, c.var = mean.data_pointer, var.data_pointer
        run_planes(&c, False, x, eps)
    return laid(out, input.type, lanes)


def channel_norm_backward(Tensor grad, Tensor input, Tensor weight, double eps):
    cdef Channels c
    cdef int dtype = check_vector("channel_norm_backward", input, weight)
    cdef bint lanes = gives_lanes(input)
    cdef Tensor x = planes_of(input, dtype, lanes), g = laid(grad, x.type, lanes)
    cdef Tensor w = packed(cast(weight, dtype)), out, by_weight, by_bias
    check_alike("channel_norm_backward", grad, input)
    if x.numel_ and are_columns(x):
        out, by_weight, by_bias = columns_backward(False, g, x, w, 1, x.dims[1], eps)
    else:
        out = new_result(x, lanes)
        by_weight, by_bias = new_like(w, dtype), new_like(w, dtype)
        if x.numel_:
            c.g, c.w, c.y = g.data_pointer, w.data_pointer, out.data_pointer
            c.mean, c.var = by_weight.data_pointer, by_bias.data_pointer
            run_planes(&c, True, x, eps)
        else:
            zero(by_weight)
            zero(by_bias)
    return (laid(out, input.type, lanes), cast(by_weight, weight.type),
            cast(by_bias, weight.type))


# ---- groups and the affine map -------------------------------------------------------------------

cdef Tensor forward(Work* work, int dtype, Tensor input, Tensor weight, Tensor bias, str name):
    """Runs a forward loop. Without statistics the places of channels-last images count as
    examples."""
    cdef bint lanes = gives_lanes(input)
    cdef Tensor x = laid(input, input.type, lanes), out
    cdef Tensor w = packed(cast(weight, dtype)), b = packed(cast(bias, dtype))
    if lanes_of(x) and not work.scaled:
        return normal_columns(x, w, b, x.dims[0], x.dims[1] // work.planes.together,
                              work.planes.eps, None, None)
    if lanes_of(x):
        work.planes.inner = 1
    x = groups_of(work, x, dtype, lanes)
    out = new_result(x, lanes)
    if out.numel_:
        work.x, work.w = x.data_pointer, w.data_pointer
        work.b, work.y = b.data_pointer, out.data_pointer
        run(work, x.numel_, name)
    return laid(out, input.type, lanes)


cdef tuple backward(Work* work, int dtype, Tensor grad, Tensor input, Tensor weight, str name):
    """The gradients of the input, the weight and the bias."""
    cdef bint lanes = gives_lanes(input)
    cdef Tensor x = laid(input, input.type, lanes), w = packed(cast(weight, dtype))
    cdef Tensor g = laid(grad, x.type, lanes), out, by_weight, by_bias
    cdef Py_ssize_t groups = x.dims[1] // work.planes.together
    cdef int first = 0
    if x.numel_ and (are_columns(x) if work.scaled else lanes_of(x) > 0):
        out, by_weight, by_bias = columns_backward(
            work.scaled, g, x, w, 1 if work.scaled else x.dims[0], groups, work.planes.eps)
        return out, cast(by_weight, weight.type), cast(by_bias, weight.type)
    x = groups_of(work, x, dtype, lanes)
    g = laid(g, x.type, lanes)
    out = new_result(x, lanes)
    by_weight, by_bias = new_tensor(dtype, 2, x.dims), new_tensor(dtype, 2, x.dims)
    if out.numel_:
        work.g, work.x, work.w = g.data_pointer, x.data_pointer, w.data_pointer
        work.y, work.dw, work.db = out.data_pointer, by_weight.data_pointer, by_bias.data_pointer
        run(work, x.numel_, name)
    else:
        zero(by_weight)
        zero(by_bias)
    return (laid(out, input.type, lanes),
            cast(fold(SUM, by_weight, 1, &first, False, dtype), weight.type),
            cast(fold(SUM, by_bias, 1, &first, False, dtype), weight.type))


def group_affine(Tensor input, Tensor weight, Tensor bias, Py_ssize_t groups, double eps):
    """The elements of each group of channels, normalised, times the weight plus the bias."""
    cdef Work work
    cdef int dtype = begin(&work, "group_affine", GROUPS, input, weight, groups)
    check_alike("group_affine", weight, bias)
    work.planes.eps = eps
    return forward(&work, dtype, input, weight, bias, "group_affine")


def group_backward(Tensor grad, Tensor input, Tensor weight, Py_ssize_t groups, double eps):
    cdef Work work
    cdef int dtype = begin(&work, "group_backward", GROUPS_BACKWARD, input, weight, groups)
    check_alike("group_backward", grad, input)
    work.planes.eps = eps
    return backward(&work, dtype, grad, input, weight, "group_backward")


def channel_affine(Tensor input, Tensor weight, Tensor bias):
    """The elements times the weight plus the bias of their channel, in the layout of the input."""
    cdef Work work
    cdef int dtype = begin(&work, "channel_affine", SCALED, input, weight, 1)
    check_alike("channel_affine", weight, bias)
    work.planes.together = 1
    return forward(&work, dtype, input, weight, bias, "channel_affine")


def channel_backward(Tensor grad, Tensor input, Tensor weight):
    cdef Work work
    cdef int dtype = begin(&work, "channel_backward", SCALED_BACKWARD, input, weight, 1)
    check_alike("channel_backward", grad, input)
    work.planes.together = 1
    return backward(&work, dtype, grad, input, weight, "channel_backward")
