"""Sliding windows over one to three dims: im2col and col2im, max and average pooling.

Outside autograd."""

from tensorlib._core.base.dtypes cimport (
    FLOAT32, FLOAT_KIND, INT64, ITEMSIZE, KIND, compute_dtype, dtype_object,
)
from tensorlib._core.base.kernels cimport find_pairs
from tensorlib._core.base.shape cimport MAX_NDIM, MAX_NUMEL, clipped, count, settled, times
from tensorlib._core.layers.parts_of_planes cimport Work, lanes_of_planes, run, run_parts, taken
from tensorlib._core.tensor.lanes cimport gives_lanes, lay_lanes
from tensorlib._core.tensor.tensor cimport Tensor, new_like, new_tensor, same_shape
from tensorlib._core.tiles.copies cimport cast, laid, packed, zero

from tensorlib._core.interpreters.recording import UnsupportedDtype

cdef enum:
    WIDEST = 1024        # elements of the widest window for which maxima of rows are found first

cdef Py_ssize_t FARTHEST = <Py_ssize_t>1 << 40     # the largest stride, padding or dilation: their
                                                   # sums do not overflow

ctypedef void (*max_fn)(const char* x, char* y, int64_t* at, const Window* w,
                        Py_ssize_t planes) noexcept nogil
ctypedef int (*put_fn)(const char* g, const int64_t* at, char* y, Py_ssize_t planes, Py_ssize_t n,
                       Py_ssize_t size) noexcept nogil
ctypedef void (*lanes_fn)(const char* x, char* y, int64_t* at, const Window* w, Py_ssize_t lanes,
                          Py_ssize_t begin, Py_ssize_t end) noexcept nogil
ctypedef int (*put_lanes_fn)(const char* g, const int64_t* at, char* y, Py_ssize_t n,
                             Py_ssize_t size, Py_ssize_t lanes, Py_ssize_t begin,
                             Py_ssize_t end) noexcept nogil

cdef void* table[LOOPS][2]           # float32 and float64
find_pairs("windows", ("im2col", "col2im", "im2col_images", "col2im_images"), table[<int>IM2COL])
find_pairs("pooling", ("max_pool", "max_rows", "put_places", "avg_pool", "avg_pool_backward"),
           table[<int>MAX_POOL])
find_pairs("pooling_lanes", ("max_lanes", "put_lanes", "mean_lanes", "mean_lanes_backward"),
           table[<int>MAX_LANES])


cdef void* find_window_loop(Loop loop, int dtype) noexcept nogil:
    return table[<int>loop][dtype != FLOAT32]


cdef inline Py_ssize_t size_at(str name, object sizes, int d, Py_ssize_t least) except -1:
    cdef Py_ssize_t size = clipped(sizes[d], NULL)
    if not least <= size <= FARTHEST:
        raise RuntimeError(f"{name}: a size of {sizes[d]} is out of range")
    return size


cdef int fill_window(Window* w, str name, Tensor x, object spatial, object kernel, object stride,
                     object padding, object dilation, object out) except -1:
    """Fills in the sizes of a plane and its windows, of one to three dims; further dims get size 1.

    The arguments are plain ints, as `settled` gives them, so that reading them twice gives the same
    numbers. Raises: RuntimeError for sizes that no window may have.
    """
    cdef int d, at, n = len(spatial), first = 3 - n
    if not (1 <= n <= 3 and n == len(kernel) == len(stride) == len(padding) == len(dilation)
            == len(out)):
        raise RuntimeError(f"{name}: expects as many sizes as there are dims, up to 3")
    w.counts_padding, w.adaptive, w.divisor = True, False, 0
    for d in range(3):
        w.size[d] = w.out[d] = w.kernel[d] = w.stride[d] = w.dilation[d] = w.end[d] = 1
        w.pad[d] = 0
    for d in range(n):
        at = first + d
        w.size[at], w.out[at] = size_at(name, spatial, d, 0), size_at(name, out, d, 0)
        w.kernel[at], w.stride[at] = size_at(name, kernel, d, 1), size_at(name, stride, d, 1)
        w.pad[at], w.dilation[at] = size_at(name, padding, d, 0), size_at(name, dilation, d, 1)
        if times(w.out[at], w.stride[at]) >= FARTHEST or (
                times(w.kernel[at], w.dilation[at]) >= FARTHEST):
            raise RuntimeError(f"{name}: windows lie out of range")
        w.end[at] = w.size[at] + w.pad[at]
    w.apart = times(times(w.size[0], w.size[1]), w.size[2])
    return 0


cdef void run_planes(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Work* work = <Work*>context
    (<window_fn>work.loop)(work.x + begin * work.x_plane, work.y + begin * work.y_plane, work.w,
                           end - begin)


cdef void run_pools(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """The same for pools. Planes of one row that windows cut without a rest are one long row."""
    cdef Work* work = <Work*>context
    cdef Window w = work.w[0]
    if (w.size[0] == w.size[1] == w.kernel[0] == w.kernel[1] == w.out[0] == w.out[1] == 1
            and w.pad[0] == w.pad[1] == w.pad[2] == 0 and not w.adaptive
            and w.out[2] * w.stride[2] == w.size[2]
            and (w.kernel[2] - 1) * w.dilation[2] < w.stride[2]):
        w.size[2], w.out[2] = w.size[2] * (end - begin), w.out[2] * (end - begin)
        w.end[2] = w.size[2]
        (<window_fn>work.loop)(work.x + begin * work.x_plane, work.y + begin * work.y_plane, &w, 1)
    else:
        run_planes(context, begin, end)


cdef void run_max(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Work* work = <Work*>context
    (<max_fn>work.loop)(work.x + begin * work.x_plane, work.y + begin * work.y_plane,
                        work.at + begin * work.n, work.w, end - begin)


cdef void run_put(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Work* work = <Work*>context
    if not (<put_fn>work.loop)(work.x + begin * work.x_plane, work.at + begin * work.n,
                               work.y + begin * work.y_plane, end - begin, work.n, work.w.size[0]):
        work.wrong = True


cdef void run_lanes(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Work* work = <Work*>context
    (<lanes_fn>work.loop)(work.x, work.y, work.at, work.w, work.lanes, begin, end)


cdef void run_put_lanes(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Work* work = <Work*>context
    if not (<put_lanes_fn>work.loop)(work.x, work.at, work.y, work.n, work.w.size[0], work.lanes,
                                     begin, end):
        work.wrong = True


cdef inline bint plane_lanes(Tensor x, int n) noexcept:
    """The same for planes of n dims."""
    return x.ndim_ == n + 2 and gives_lanes(x)


cdef int floating_dtype(str name, Tensor x) except -1:
    if KIND[x.type] != FLOAT_KIND:
        raise UnsupportedDtype(f"{name}: takes floating-point dtypes, got {dtype_object(x.type)}")
    return compute_dtype(x.type)


cdef Tensor planes_in(Tensor x, str name, bint lanes):
    """The planes of a floating dtype as they are, packed or channels-last. Raises: RuntimeError."""
    floating_dtype(name, x)
    return laid(x, x.type, lanes)


cdef Tensor with_planes(str name, Tensor x, int spatial, tuple sizes, int dtype):
    """A new tensor with the dims of `x`, but these sizes for the last, spatial ones."""
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef int d, lead = x.ndim_ - spatial
    for d in range(lead):
        dims[d] = x.dims[d]
    for d in range(len(sizes)):
        dims[lead + d] = sizes[d]
    count(name, lead + len(sizes), dims)
    return new_tensor(dtype, lead + len(sizes), dims)


cdef inline Py_ssize_t area(const Py_ssize_t* sizes) noexcept:
    return sizes[0] * sizes[1] * sizes[2]


cdef tuple spatial_of(str name, Tensor x, int n):
    if x.ndim_ < n:
        raise RuntimeError(f"{name}: expects at least {n} dims, got {x.ndim_}")
    return tuple([x.dims[d] for d in range(x.ndim_ - n, x.ndim_)])


cdef inline Py_ssize_t planes_of(Tensor x, int n) noexcept:
    cdef Py_ssize_t planes = 1
    cdef int d
    for d in range(x.ndim_ - n):
        planes *= x.dims[d]
    return planes


def max_pool(Tensor input, tuple kernel, tuple stride, tuple padding, tuple dilation, tuple planes,
             bint with_places=True):
    """The maxima of windows over the last dims, and their places in the plane as int64."""
    kernel, stride, padding = settled(kernel), settled(stride), settled(padding)
    dilation, planes = settled(dilation), settled(planes)
    cdef Window w
    cdef int n = len(kernel), d
    cdef bint lanes = plane_lanes(input, n)
    cdef Tensor x = planes_in(input, "max_pool", lanes)
    fill_window(&w, "max_pool", x, spatial_of("max_pool", x, n), kernel, stride, padding, dilation,
                planes)
    for d in range(3):         # if the first and the last window see the plane, all do
        if w.out[d] and (w.size[d] == 0 or w.pad[d] > (w.kernel[d] - 1) * w.dilation[d]
                         or (w.out[d] - 1) * w.stride[d] - w.pad[d] >= w.size[d]
                         or not reaches(&w, d)):
            raise RuntimeError("max_pool: a window has no element in the plane")
    return maxima(x, &w, n, planes, input.type, lanes, with_places)


def max_values(Tensor input, tuple kernel, tuple stride, tuple padding, tuple dilation,
               tuple planes):
    """The maxima of windows over the last dims."""
    return max_pool(input, kernel, stride, padding, dilation, planes, False)[0]


def adaptive_max_pool(Tensor input, tuple planes):
    """The maxima of `planes` windows that cover the last dims, and their places in the plane."""
    planes = settled(planes)
    cdef Window w
    cdef int n = len(planes)
    cdef bint lanes = plane_lanes(input, n)
    cdef Tensor x = planes_in(input, "adaptive_max_pool", lanes)
    cdef tuple spatial = spatial_of("adaptive_max_pool", x, n)
    fill_parts(&w, "adaptive_max_pool", x, spatial, planes)
    if area(w.size) == 0 and area(w.out):
        raise RuntimeError("adaptive_max_pool: a window has no element in the plane")
    return maxima(x, &w, n, planes, input.type, lanes, True)


cdef int fill_parts(Window* w, str name, Tensor x, tuple spatial, tuple planes) except -1:
    """Fills in the sizes of a plane, and the number of windows that cover it along each dim."""
    cdef int d
    cdef tuple ones = (1,) * len(planes)
    fill_window(w, name, x, spatial, ones, ones, (0,) * len(planes), ones, planes)
    for d in range(3):
        w.kernel[d] = 2 + w.size[d] // max(<Py_ssize_t>1, w.out[d])      # an upper bound
    w.adaptive = True
    return 0


cdef tuple maxima(Tensor x, const Window* w, int n, tuple planes, int dtype, bint lanes,
                  bint with_places):
    """The maxima of windows as `dtype`, and their places as int64 or None."""
    cdef Work work
    cdef Tensor y, at = None
    cdef bint rows = not with_places and (w.kernel[2] - 1) * w.dilation[2] < <Py_ssize_t>WIDEST
    cdef int computed
    x = taken(&work, x, w, lanes, False)
    work.w, work.n, work.at, computed = w, area(w.out), NULL, compute_dtype(x.type)
    y = with_planes("max_pool", x, n, planes, x.type)
    if with_places or not (rows or work.lanes):
        at = new_like(y, INT64)
        work.at = <int64_t*>at.data_pointer
    work.x, work.y = x.data_pointer, y.data_pointer
    work.x_plane = area(w.size) * ITEMSIZE[computed]
    work.y_plane = work.n * ITEMSIZE[computed]
    if work.lanes:
        lay_lanes(y)
        work.loop = find_window_loop(MAX_LANES, computed)
        run_parts(&work, run_lanes, True, x.dims[0] * w.out[0] * w.out[1],
                  times(w.out[2] * work.lanes, area(w.kernel)))
        if with_places:
            lay_lanes(at)
    elif y.numel_:
        work.loop = find_window_loop(MAX_ROWS if rows else MAX_POOL, computed)
        run_parts(&work, run_pools if rows else run_max, False, planes_of(x, n),
                  times(work.n, area(w.kernel)))
    return laid(y, dtype, lanes), at if at is None else laid(at, INT64, lanes)


cdef bint reaches(const Window* w, int d) noexcept:
    """Whether each window along a dim has an element in the plane, in spite of its dilation."""
    cdef Py_ssize_t window, first, skip
    for window in range(w.out[d]):
        first = window * w.stride[d] - w.pad[d]
        if first >= 0:
            return True                # and so do those after it, up to the last
        skip = (w.dilation[d] - 1 - first) // w.dilation[d]
        if skip >= w.kernel[d] or first + skip * w.dilation[d] >= w.size[d]:
            return False
    return True


def put_places(Tensor input, Tensor places, tuple spatial):
    """Zeros with last dims `spatial`, to which the elements of `input` are added at `places`."""
    spatial = settled(spatial)
    cdef Window w
    cdef Work work
    cdef int dtype = floating_dtype("put_places", input), n = len(spatial)
    cdef bint lanes = plane_lanes(places, n)
    cdef Tensor x = laid(input, dtype, lanes), at = laid(places, INT64, lanes), y
    if not same_shape(x, at):
        raise RuntimeError(f"put_places: elements of shape {tuple(x.shape)}, places of shape "
                           f"{tuple(at.shape)}")
    if x.ndim_ < n:
        raise RuntimeError(f"put_places: expects at least {n} dims, got {x.ndim_}")
    y = with_planes("put_places", x, n, spatial, dtype)
    zero(y)
    if x.numel_ == 0:
        return laid(y, input.type, lanes)
    work.lanes = lanes_of_planes(at, lanes)
    if work.lanes:
        lay_lanes(y)
    else:
        x, at = packed(x), packed(at)
    work.loop, work.w, work.wrong = find_window_loop(
        PUT_LANES if work.lanes else PUT_PLACES, dtype), &w, False
    work.x, work.y, work.at = x.data_pointer, y.data_pointer, <int64_t*>at.data_pointer
    work.n, w.size[0] = x.numel_ // planes_of(x, n), y.numel_ // planes_of(x, n)
    work.x_plane = work.n * (4 if dtype == FLOAT32 else 8)
    work.y_plane = w.size[0] * (4 if dtype == FLOAT32 else 8)
    if work.lanes:
        run(&work, run_put_lanes, x.dims[0], times(work.n, work.lanes))
    else:
        run(&work, run_put, planes_of(x, n), work.n)
    if work.wrong:
        raise IndexError("put_places: a place is out of bounds for a plane of "
                         f"{w.size[0]} elements")
    return laid(y, input.type, lanes)


def avg_pool(Tensor input, tuple spatial, tuple kernel, tuple stride, tuple padding, tuple planes,
             bint counts_padding, Py_ssize_t divisor, bint back):
    """The means of windows over the last dims; with `back` their adjoint, from means to planes."""
    spatial, kernel, stride = settled(spatial), settled(kernel), settled(stride)
    padding, planes = settled(padding), settled(planes)
    cdef Window w
    cdef int n = len(kernel), d
    cdef bint lanes = plane_lanes(input, n)
    cdef Tensor x = planes_in(input, "avg_pool", lanes)
    fill_window(&w, "avg_pool", x, spatial, kernel, stride, padding, (1,) * n, planes)
    if spatial_of("avg_pool", x, n) != (planes if back else spatial):
        raise RuntimeError(f"avg_pool: got {tuple(x.shape)}, expected planes of "
                           f"{planes if back else spatial}")
    for d in range(3):
        if w.out[d] and (w.out[d] - 1) * w.stride[d] - w.pad[d] >= w.size[d] + w.pad[d]:
            raise RuntimeError("avg_pool: a window lies outside of the plane")
    if area(w.size) == 0 and area(w.out):
        raise RuntimeError(f"avg_pool: expected planes with elements, got planes of {spatial}")
    w.counts_padding, w.divisor = counts_padding, divisor
    return means(x, &w, n, spatial if back else planes, input.type, lanes, back)


def adaptive_pool(Tensor input, tuple spatial, tuple planes, bint back):
    """The means of `planes` windows that cover the last dims; with `back` their adjoint."""
    spatial, planes = settled(spatial), settled(planes)
    cdef Window w
    cdef int n = len(planes)
    cdef bint lanes = plane_lanes(input, n)
    cdef Tensor x = planes_in(input, "adaptive_pool", lanes)
    fill_parts(&w, "adaptive_pool", x, spatial, planes)
    if spatial_of("adaptive_pool", x, n) != (planes if back else spatial):
        raise RuntimeError(f"adaptive_pool: got {tuple(x.shape)}, expected planes of "
                           f"{planes if back else spatial}")
    return means(x, &w, n, spatial if back else planes, input.type, lanes, back)


cdef Tensor means(Tensor x, Window* w, int n, tuple sizes, int dtype, bint lanes, bint back):
    """The means of windows, or their adjoint, with last dims `sizes`, as `dtype`."""
    cdef Work work
    cdef Tensor y
    cdef int computed
    cdef Py_ssize_t seen = area(&w.out[0] if back else &w.size[0])
    cdef Py_ssize_t given = area(&w.size[0] if back else &w.out[0])
    x = taken(&work, x, w, lanes, back)
    computed = compute_dtype(x.type)
    y = with_planes("avg_pool", x, n, sizes, x.type)
    work.loop, work.w = find_window_loop(AVG_POOL_BACKWARD if back else AVG_POOL, computed), w
    work.x, work.y, work.n = x.data_pointer, y.data_pointer, area(w.out)
    work.at = NULL
    work.x_plane = max(<Py_ssize_t>1, work.lanes) * seen * ITEMSIZE[computed]
    work.y_plane = max(<Py_ssize_t>1, work.lanes) * given * ITEMSIZE[computed]
    if back:
        zero(y)
    if work.lanes and y.numel_:
        lay_lanes(y)
        work.loop = find_window_loop(MEAN_LANES_BACKWARD if back else MEAN_LANES, computed)
        run_parts(&work, run_lanes, not back, x.dims[0] if back
                  else x.dims[0] * w.out[0] * w.out[1],
                  times(times(work.n if back else w.out[2], work.lanes), area(w.kernel)))
    elif y.numel_ and x.numel_:
        run_parts(&work, run_pools, False, planes_of(x, n), times(work.n, area(w.kernel)))
    return laid(y, dtype, lanes)


def columns(Tensor input, tuple spatial, tuple kernel, tuple stride, tuple padding, tuple dilation,
            tuple planes, bint back):
    """im2col: (*, C, *spatial) -> (*, C * elements of a window, windows); or its adjoint."""
    spatial, kernel, stride = settled(spatial), settled(kernel), settled(stride)
    padding, dilation, planes = settled(padding), settled(dilation), settled(planes)
    cdef Window w
    cdef Work work
    cdef int dtype = floating_dtype("unfold", input), n = len(kernel), lead
    cdef Py_ssize_t window, places
    cdef Tensor x = packed(cast(input, dtype)), y
    fill_window(&w, "unfold", x, spatial, kernel, stride, padding, dilation, planes)
    window = times(times(w.kernel[0], w.kernel[1]), w.kernel[2])
    places = times(times(w.out[0], w.out[1]), w.out[2])
    if places > MAX_NUMEL or window > MAX_NUMEL:
        raise RuntimeError("unfold: the windows have too many elements")
    lead = x.ndim_ - (2 if back else n + 1)
    if lead < 0 or (x.dims[lead] % window or x.dims[lead + 1] != places if back
                    else spatial_of("unfold", x, n) != spatial):
        raise RuntimeError(f"unfold: {tuple(x.shape)} does not fit to planes of {spatial}, with "
                           f"{places} windows of {kernel}")
    if back:
        y = with_planes("unfold", x, 2, (x.dims[lead] // window, *spatial), dtype)
        zero(y)
    else:
        if times(x.dims[lead], window) > MAX_NUMEL:
            raise RuntimeError("unfold: the windows have too many elements")
        y = with_planes("unfold", x, n + 1, (x.dims[lead] * window, places), dtype)
    work.loop, work.w = find_window_loop(COL2IM if back else IM2COL, dtype), &w
    work.x, work.y, work.n = x.data_pointer, y.data_pointer, places
    work.x_plane = (window * places if back else area(w.size)) * (4 if dtype == FLOAT32 else 8)
    work.y_plane = (area(w.size) if back else window * places) * (4 if dtype == FLOAT32 else 8)
    if y.numel_ and x.numel_:
        run(&work, run_planes, planes_of(x, 2) * (x.dims[lead] // window) if back
            else planes_of(x, n), times(places, window))
    return cast(y, input.type)
