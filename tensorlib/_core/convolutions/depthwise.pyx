"""Depthwise convolutions, whose output channels see one input channel each: sums of shifted rows.

Outside autograd.

A plane is copied into a buffer of zeros, which pads it. There an element of the weight (a tap) is
multiplied by elements of all windows of a row, at one offset: a row of the result is the sum of
rows of the plane, each shifted by the position of a tap and multiplied by it.

With a stride of 2 the copy has phases: the elements at even positions, and those at odd ones. A
tap uses one phase, in which windows are next to each other. The adjoint for the input is the
reverse: the gradient is padded with zeros, and the taps of a phase give that phase of the planes.
"""

from libc.string cimport memset

from tensorlib._core.base.dtypes cimport FLOAT32
from tensorlib._core.base.items cimport floating
from tensorlib._core.base.kernels cimport find_function
from tensorlib._core.base.pool cimport parallel_for
from tensorlib._core.base.scratch cimport give_scratch, take_scratch
from tensorlib._core.base.shape cimport times
from tensorlib._core.base.work cimport run_once
from tensorlib._kernels.layers.windows cimport Window

cdef enum:
    LINE = 16            # elements that kernels may read and write past the end of a row
    CHUNK = 1 << 12      # elements of a phase that are computed at a time, in the L1 cache
    SPREAD = 4           # how many times the size of planes and result the padded copies may have
    SMALL = 1 << 12      # elements that the copies may always have
    NARROW = 4           # elements: shorter rows leave most of a vector unused
    PIECE = 1 << 18      # products in a piece of work

ctypedef void (*products_fn)(const char* x, Py_ssize_t x_row, const Py_ssize_t* taps,
                             const char* w, Py_ssize_t n_taps, char* y, Py_ssize_t y_row,
                             Py_ssize_t rows, Py_ssize_t n, int tall) noexcept nogil
ctypedef void (*dots_fn)(const char* g, const char* x, const Py_ssize_t* taps, Py_ssize_t n_taps,
                         double* totals, Py_ssize_t n) noexcept nogil
ctypedef void (*copy_fn)(const char* x, Py_ssize_t x_row, char* y, Py_ssize_t y_row,
                         Py_ssize_t rows, Py_ssize_t n) noexcept nogil
ctypedef void (*split_fn)(const char* x, Py_ssize_t x_row, char* even, char* odd,
                          Py_ssize_t y_row, Py_ssize_t rows, Py_ssize_t n,
                          bint odd_first) noexcept nogil
ctypedef void (*join_fn)(const char* even, const char* odd, char* x, Py_ssize_t n,
                         bint odd_first) noexcept nogil

ctypedef struct Loops:
    products_fn products
    dots_fn dots
    copy_fn copy
    split_fn split
    join_fn join

cdef Loops loops[2]              # of float32 and float64


cdef int find_loops(Loops* found, str dtype) except -1:
    found.products = <products_fn>find_function("depthwise", "products", dtype)
    found.dots = <dots_fn>find_function("depthwise", "dots", dtype)
    found.copy = <copy_fn>find_function("depthwise", "copy", dtype)
    found.split = <split_fn>find_function("depthwise", "split", dtype)
    found.join = <join_fn>find_function("depthwise", "join", dtype)
    return 0


find_loops(&loops[0], "float32")
find_loops(&loops[1], "float64")


# ---- sizes ---------------------------------------------------------------------------------------

cdef bint depthwise_fits(Depthwise* d) noexcept:
    """Whether the padded copies are not much larger than the planes; sets their sizes."""
    cdef const Window* w = d.window
    cdef Py_ssize_t grid, plane = 1, places = 1
    cdef int i
    d.itemsize = 4 if d.dtype == FLOAT32 else 8
    d.taps = d.phase = d.phases = 1
    if d.groups < 2 or d.kind == ADJOINT_OF_INPUT and d.outs > 1:
        return False
    for i in range(3):
        if w.stride[i] > 2:
            return False
        d.high[i] = w.out[i] + (w.kernel[i] - 1) * w.dilation[i] // w.stride[i]
        d.phase = times(d.phase, d.high[i])
        d.phases *= w.stride[i]
        d.taps = times(d.taps, w.kernel[i])
        plane, places = times(plane, w.size[i]), times(places, w.out[i])
    grid = times(d.phase, d.phases)
    if grid > SMALL and (grid // SPREAD > plane + places or w.out[2] < NARROW):
        return False
    d.lead = 0
    if d.kind == ADJOINT_OF_INPUT:
        for i in range(3):
            d.lead = d.lead * d.high[i] + d.high[i] - w.out[i]
    d.rows = max(<Py_ssize_t>1, CHUNK // d.high[2])
    d.tall = 0
    if w.kernel[0] == 1 and w.stride[1] == 1 and w.dilation[1] == 1:
        d.tall = w.kernel[1]
    return True


cdef inline Py_ssize_t phase_of(const Window* w, Py_ssize_t i, Py_ssize_t j,
                                Py_ssize_t k) noexcept nogil:
    """The phase of a place, counted from the first one that windows see."""
    return (i % w.stride[0] * w.stride[1] + j % w.stride[1]) * w.stride[2] + k % w.stride[2]


cdef void find_taps(Depthwise* d) noexcept nogil:
    """Sets `shift`: for each tap the offset from a place in the result to the one it reads in its
    phase of the planes; for the adjoint of the input, from a place in a phase to the result."""
    cdef const Window* w = d.window
    cdef bint back = d.kind == ADJOINT_OF_INPUT
    cdef Py_ssize_t i, j, k, row, n = 0, phase, own, at
    for phase in range(d.phases if back else 1):
        d.start[phase] = n
        for i in range(w.kernel[0]):
            for row in range(w.kernel[1]):
                j = w.kernel[1] - 1 - row if back else row       # so that rows look ever lower
                for k in range(w.kernel[2]):
                    own = phase_of(w, i * w.dilation[0], j * w.dilation[1], k * w.dilation[2])
                    if back and own != phase:
                        continue
                    at = ((i * w.dilation[0] // w.stride[0] * d.high[1]
                           + j * w.dilation[1] // w.stride[1]) * d.high[2]
                          + k * w.dilation[2] // w.stride[2])
                    d.order[n] = (i * w.kernel[1] + j) * w.kernel[2] + k
                    d.shift[n] = d.lead - at if back else own * d.phase + at
                    n += 1
        d.start[phase + 1] = n


# ---- copies --------------------------------------------------------------------------------------

cdef inline const Loops* loops_of(const Depthwise* d) noexcept nogil:
    return &loops[d.itemsize == 8]


cdef inline Py_ssize_t seen(const Depthwise* d, int i) noexcept nogil:
    """How many elements of a dim of a plane lie between the first and the last that windows see."""
    cdef const Window* w = d.window
    return min(w.size[i], d.high[i] * w.stride[i] - w.pad[i])


cdef void put_plane(const Depthwise* d, const char* x, char* grid) noexcept nogil:
    """Copies the phases of a plane into `grid`, whose zeros around them are there already."""
    cdef const Window* w = d.window
    cdef Py_ssize_t i, b, first, at, rows, size = d.itemsize, row = w.size[2]
    cdef const char* from_
    cdef char* to
    for i in range(seen(d, 0)):
        for b in range(w.stride[1]):                 # the rows of a phase
            first = (b + w.pad[1]) % w.stride[1]     # as far apart as the stride, 1 or 2
            at = ((i + w.pad[0]) // w.stride[0] * d.high[1]
                  + (first + w.pad[1]) // w.stride[1]) * d.high[2] + w.pad[2] // w.stride[2]
            from_ = x + (i * w.size[1] + first) * row * size
            to = grid + (phase_of(w, i + w.pad[0], b, 0) * d.phase + at) * size
            rows = (seen(d, 1) - first + w.stride[1] - 1) // w.stride[1]
            if w.stride[2] == 1:
                loops_of(d).copy(from_, w.stride[1] * row, to, d.high[2], rows, seen(d, 2))
            else:
                loops_of(d).split(from_, w.stride[1] * row, to, to + d.phase * size, d.high[2],
                                  rows, seen(d, 2), w.pad[2] % 2)


cdef void put_result(const Depthwise* d, const char* g, char* grid) noexcept nogil:
    """Copies a plane of the result into `grid`, whose zeros are there already."""
    cdef const Window* w = d.window
    cdef Py_ssize_t i
    for i in range(w.out[0]):
        loops_of(d).copy(g, w.out[2], grid + i * d.high[1] * d.high[2] * d.itemsize, d.high[2],
                         w.out[1], w.out[2])
        g += w.out[1] * w.out[2] * d.itemsize


# ---- planes --------------------------------------------------------------------------------------

ctypedef struct Workspace:
    char* grid           # the phases of a plane, or a result among zeros
    char* part           # some rows of what is computed; for the weight, a result among zeros
    char* factors        # a weight in the order of the taps
    double* totals       # the sums of the adjoint for the weight
    size_t nbytes        # of the whole workspace, which begins with `totals`


cdef bint take_workspace(const Depthwise* d, Workspace* space) noexcept nogil:
    """Takes memory for one plane, zeroed where planes are not written; False if there is none."""
    cdef bint of_weight = d.kind == ADJOINT_OF_WEIGHT
    cdef Py_ssize_t grid = d.phases * d.phase + LINE
    cdef Py_ssize_t part = d.phase if of_weight else max(
        2 * d.rows * d.high[2], 2 * (max(d.window.size[2], d.window.out[2]) + LINE))
    cdef size_t totals = d.taps * d.outs * sizeof(double) if of_weight else 0
    cdef char* block
    if d.kind == ADJOINT_OF_INPUT:
        grid = d.lead + d.phase + LINE
    space.nbytes = totals + (grid + part + LINE + d.taps) * d.itemsize
    block = take_scratch(space.nbytes)
    if block == NULL:
        return False
    memset(block, 0, space.nbytes)
    space.totals = <double*>block
    space.grid = block + totals
    space.part = space.grid + grid * d.itemsize
    space.factors = space.part + (part + LINE) * d.itemsize
    return True


cdef void set_factors(const Depthwise* d, const Workspace* space,
                      const char* weight) noexcept nogil:
    cdef Py_ssize_t k
    for k in range(d.taps):
        if d.itemsize == 4:
            (<float*>space.factors)[k] = (<const float*>weight)[d.order[k]]
        else:
            (<double*>space.factors)[k] = (<const double*>weight)[d.order[k]]


cdef void sum_rows(const Depthwise* d, const Workspace* space, Py_ssize_t phase, const char* x,
                   char* y, Py_ssize_t y_row, Py_ssize_t rows, Py_ssize_t n) noexcept nogil:
    """y := the sums of rows of `grid` from x on, shifted by the taps of a phase"""
    cdef Py_ssize_t first = d.start[phase]
    loops_of(d).products(x, d.high[2], d.shift + first, space.factors + first * d.itemsize,
                         d.start[phase + 1] - first, y, y_row, rows, n, d.tall)


cdef void sum_plane(const Depthwise* d, const Workspace* space, const char* x, char* y,
                    const Py_ssize_t* sizes) noexcept nogil:
    """y (*sizes) := sums of rows from x on. The last rows go through a buffer, as the kernel would
    write past their end."""
    cdef Py_ssize_t n = sizes[2], size = d.itemsize, i
    cdef Py_ssize_t wide = (n + LINE - 1) // LINE * LINE
    cdef Py_ssize_t last = (wide - n + n - 1) // n
    if 2 * last >= sizes[1]:             # with so few rows, all go through the buffer
        last = sizes[1]
    for i in range(sizes[0]):
        if sizes[1] > last:
            sum_rows(d, space, 0, x, y, n, sizes[1] - last, n)
        x += (sizes[1] - last) * d.high[2] * size
        y += (sizes[1] - last) * n * size
        sum_rows(d, space, 0, x, space.part, wide, last, n)
        loops_of(d).copy(space.part, wide, y, n, last, n)
        x += (d.high[1] - sizes[1] + last) * d.high[2] * size
        y += last * n * size


cdef void to_output(const Depthwise* d, const Workspace* space, Py_ssize_t plane) noexcept nogil:
    """Computes the planes of the result for one plane of the input."""
    cdef const Window* w = d.window
    cdef Py_ssize_t size = w.size[0] * w.size[1] * w.size[2] * d.itemsize
    cdef Py_ssize_t places = w.out[0] * w.out[1] * w.out[2] * d.itemsize, i
    put_plane(d, d.x + plane * size, space.grid)
    for i in range(d.outs):
        set_factors(d, space, d.weight
                    + (plane % d.groups * d.outs + i) * d.taps * d.itemsize)
        sum_plane(d, space, space.grid, d.g + (plane * d.outs + i) * places, w.out)


cdef bint covers(const Depthwise* d) noexcept nogil:
    """Whether the windows together see each element."""
    cdef const Window* w = d.window
    cdef int i
    for i in range(3):
        if w.stride[i] != 1 or d.high[i] - w.pad[i] < w.size[i]:
            return False
    return True


cdef void take_rows(const Depthwise* d, const Workspace* space, Py_ssize_t phase, Py_ssize_t begin,
                    Py_ssize_t end, char* x) noexcept nogil:
    """Copies the rows [begin, end) of a phase, or of the two phases that share rows, to a plane."""
    cdef const Window* w = d.window
    cdef Py_ssize_t row, i, j, other = d.rows * d.high[2] * d.itemsize
    cdef Py_ssize_t a = phase // (w.stride[1] * w.stride[2]), b = phase // w.stride[2] % w.stride[1]
    cdef const char* part
    cdef char* to
    for row in range(begin, end):
        i = row // d.high[1] * w.stride[0] + a - w.pad[0]
        j = row % d.high[1] * w.stride[1] + b - w.pad[1]
        if not (0 <= i < w.size[0] and 0 <= j < w.size[1]):
            continue
        part = space.part + ((row - begin) * d.high[2] + w.pad[2] // w.stride[2]) * d.itemsize
        to = x + (i * w.size[1] + j) * w.size[2] * d.itemsize
        if w.stride[2] == 1:
            loops_of(d).copy(part, 0, to, 0, 1, seen(d, 2))
        else:
            loops_of(d).join(part, part + other, to, seen(d, 2), w.pad[2] % 2)


cdef void to_phase(const Depthwise* d, const Workspace* space, Py_ssize_t phase,
                   char* x) noexcept nogil:
    """Computes a phase of a plane, or the two that share rows, some rows at a time."""
    cdef Py_ssize_t begin = 0, end, rows = d.phase // d.high[2], other = d.rows * d.high[2]
    cdef const char* at
    while begin < rows:
        end = min(begin + d.rows, rows)
        at = space.grid + begin * d.high[2] * d.itemsize
        sum_rows(d, space, phase, at, space.part, d.high[2], end - begin, d.high[2])
        if d.window.stride[2] == 2:
            sum_rows(d, space, phase + 1, at, space.part + other * d.itemsize, d.high[2],
                     end - begin, d.high[2])
        take_rows(d, space, phase, begin, end, x)
        begin = end


cdef void to_input(const Depthwise* d, const Workspace* space, Py_ssize_t plane) noexcept nogil:
    """Computes the gradient for one plane of the input."""
    cdef const Window* w = d.window
    cdef Py_ssize_t size = w.size[0] * w.size[1] * w.size[2], phase = 0
    cdef Py_ssize_t places = w.out[0] * w.out[1] * w.out[2]
    cdef char* x = d.x + plane * size * d.itemsize
    put_result(d, d.g + plane * places * d.itemsize, space.grid + d.lead * d.itemsize)
    set_factors(d, space, d.weight + plane % d.groups * d.taps * d.itemsize)
    if covers(d):
        sum_plane(d, space, space.grid + ((w.pad[0] * d.high[1] + w.pad[1]) * d.high[2] + w.pad[2])
                  * d.itemsize, x, w.size)
        return
    memset(x, 0, size * d.itemsize)
    while phase < d.phases:
        to_phase(d, space, phase, x)
        phase += w.stride[2]


cdef void to_weight(const Depthwise* d, const Workspace* space, Py_ssize_t channel) noexcept nogil:
    """Computes the gradient of the weight of one channel, over all images in order."""
    cdef const Window* w = d.window
    cdef Py_ssize_t size = w.size[0] * w.size[1] * w.size[2], image, i, plane
    cdef Py_ssize_t places = w.out[0] * w.out[1] * w.out[2]
    cdef Py_ssize_t n = ((w.out[0] - 1) * d.high[1] + w.out[1] - 1) * d.high[2] + w.out[2]
    cdef char* weight = d.weight + channel * d.outs * d.taps * d.itemsize
    memset(space.totals, 0, d.outs * d.taps * sizeof(double))
    for image in range(d.images):
        plane = image * d.groups + channel
        put_plane(d, d.x + plane * size * d.itemsize, space.grid)
        for i in range(d.outs):
            put_result(d, d.g + (plane * d.outs + i) * places * d.itemsize, space.part)
            loops_of(d).dots(space.part, space.grid, d.shift, d.taps, space.totals + i * d.taps, n)
    for i in range(d.outs * d.taps):
        if d.itemsize == 4:
            (<float*>weight)[i] = <float>space.totals[i]
        else:
            (<double*>weight)[i] = space.totals[i]


cdef void run_planes(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Computes the planes [begin, end), or for the weight the channels [begin, end)."""
    cdef Depthwise* d = <Depthwise*>context
    cdef Workspace space
    cdef Py_ssize_t i
    if not take_workspace(d, &space):
        d.failed = True
        return
    for i in range(begin, end):
        if d.kind == OUTPUT:
            to_output(d, &space, i)
        elif d.kind == ADJOINT_OF_INPUT:
            to_input(d, &space, i)
        else:
            to_weight(d, &space, i)
    give_scratch(<char*>space.totals, space.nbytes)


# ---- all of them ---------------------------------------------------------------------------------

cdef bint all_finite(const char* x, Py_ssize_t n, int itemsize) noexcept nogil:
    """Whether no element is infinite or NaN, so that its products with padding are zero."""
    if itemsize == 4:
        return finite_run(<const float*>x, n)
    return finite_run(<const double*>x, n)


cdef inline bint finite_run(const floating* x, Py_ssize_t n) noexcept nogil:
    cdef floating[8] parts       # one sum would wait for each addition: a tenth of the speed
    cdef Py_ssize_t i, j, whole = n - n % 8
    for j in range(8):
        parts[j] = 0
    for i in range(0, whole, 8):
        for j in range(8):
            parts[j] += 0 * x[i + j]
    for i in range(whole, n):
        parts[0] += 0 * x[i]
    return ((parts[0] + parts[1]) + (parts[2] + parts[3])) + (
        (parts[4] + parts[5]) + (parts[6] + parts[7])) == 0


cdef void run_pass(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Computes all planes, unless padding would be multiplied by something that is not finite."""
    cdef Depthwise* d = <Depthwise*>context
    cdef Py_ssize_t parts = d.groups * (1 if d.kind == ADJOINT_OF_WEIGHT else d.images)
    cdef Py_ssize_t cost = times(times(d.taps, d.phase), d.outs)
    cdef Py_ssize_t weights = d.groups * d.outs * d.taps
    cdef size_t nbytes = (2 * d.taps + d.phases + 1) * sizeof(Py_ssize_t)
    if d.kind == ADJOINT_OF_WEIGHT:
        cost = times(cost, d.images)
    elif d.kind == ADJOINT_OF_INPUT and not all_finite(d.weight, weights, d.itemsize):
        d.infinite = True
        return
    d.order = <Py_ssize_t*>take_scratch(nbytes)
    if d.order == NULL:
        d.failed = True
        return
    d.shift, d.start = d.order + d.taps, d.order + 2 * d.taps
    find_taps(d)
    parallel_for(run_planes, d, parts, 1 + PIECE // max(<Py_ssize_t>1, cost))
    give_scratch(<char*>d.order, nbytes)
    d.infinite = d.kind == ADJOINT_OF_WEIGHT and not all_finite(d.weight, weights, d.itemsize)


cdef bint depthwise(Depthwise* d) except -1:
    """Computes what `kind` says, and returns True; or False, with no result, where padding would be
    multiplied by something that is not finite."""
    d.failed = d.infinite = False
    run_once(run_pass, d, d.weight, False)
    if d.failed:
        raise MemoryError("convolution: no memory for the planes of an image")
    return not d.infinite
