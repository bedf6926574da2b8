"""Padding, and its adjoint: with a number, or by reflecting, replicating or wrapping round.

Outside autograd. A negative size of padding crops.
"""

from cpython.long cimport PyLong_CheckExact
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc

from tensorlib._core.base.blocks cimport copy_run
from tensorlib._core.base.dtypes cimport FLOAT_KIND, ITEMSIZE, KIND, compute_dtype, dtype_object
from tensorlib._core.base.items cimport floating, item
from tensorlib._core.base.shape cimport MAX_NDIM, count, settled
from tensorlib._core.base.work cimport share
from tensorlib._core.create.creation cimport fill_number
from tensorlib._core.tensor.lanes cimport gives_lanes, lay_lanes
from tensorlib._core.tensor.tensor cimport Tensor, new_tensor, new_view
from tensorlib._core.tiles.copies cimport cast, copy_into, laid, packed, zero

cdef enum:
    GRAIN = 1 << 15          # elements of a piece of work

cdef Py_ssize_t FARTHEST = <Py_ssize_t>1 << 40     # of a size or of padding: no sum overflows


# ---- with a number -------------------------------------------------------------------------------

def on_diagonal(str name, Tensor x, offset):
    """Matrices with the last dim of `x` on a diagonal, and zeros; None for what is to be converted,
    refused, or too large."""
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Py_ssize_t steps[MAX_NDIM]
    cdef Py_ssize_t above, n
    cdef int d, last = x.ndim_ - 1
    cdef Tensor out
    if not PyLong_CheckExact(offset) or not 0 <= last < MAX_NDIM - 1 or (
            not -FARTHEST <= offset <= FARTHEST):
        return None
    above = offset
    n = x.dims[last] + abs(above)
    for d in range(last):
        dims[d] = x.dims[d]
    dims[last] = dims[last + 1] = n
    count(name, x.ndim_ + 1, dims)
    out = new_tensor(x.type, x.ndim_ + 1, dims)
    zero(out)
    for d in range(last):
        steps[d] = out.steps[d]
    steps[last] = n + 1
    if x.numel_:
        copy_into(new_view(out, x.ndim_, x.dims, steps, out.data_pointer + ITEMSIZE[x.type] * (
            above if above > 0 else -above * n)), x)
    return out


def framed(Tensor input, tuple pad, value):
    """`input` with margins of a number, in pairs for the last dim first; negative ones cut off.

    Raises: RuntimeError for margins that do not fit.
    """
    pad = settled(pad)
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Py_ssize_t kept[MAX_NDIM]
    cdef Py_ssize_t from_place = 0, to_place = 0, before, after
    cdef int d, k, ndim = input.ndim_, pairs = len(pad) // 2
    cdef bint fills = False, some = True
    cdef Tensor out
    if len(pad) % 2 or pairs > ndim:
        raise RuntimeError(f"pad: got {len(pad)} margins for {ndim} dims")
    for d in range(ndim):
        before = after = 0
        k = ndim - 1 - d
        if k < pairs:
            for number in pad[2 * k:2 * k + 2]:
                if not -FARTHEST <= number <= FARTHEST:
                    raise RuntimeError(f"pad: a margin of {number} is out of range")
            before, after = pad[2 * k], pad[2 * k + 1]
        dims[d] = input.dims[d] + before + after
        kept[d] = input.dims[d] + min(before, <Py_ssize_t>0) + min(after, <Py_ssize_t>0)
        if dims[d] < 0:
            raise RuntimeError(f"pad: the padding {(before, after)} cuts off more than a dim of "
                               f"size {input.dims[d]} has")
        fills = fills or before > 0 or after > 0
        some = some and kept[d] > 0
    count("pad", ndim, dims)
    out = new_tensor(input.type, ndim, dims)
    if ndim > 3 and gives_lanes(input):
        lay_lanes(out)
    if fills:
        fill_number("pad", out, value)
    if some:
        for d in range(ndim):
            k = ndim - 1 - d
            before = pad[2 * k] if k < pairs else 0
            to_place += max(before, <Py_ssize_t>0) * out.steps[d]
            from_place -= min(before, <Py_ssize_t>0) * input.steps[d]
        copy_into(new_view(out, ndim, kept, out.steps,
                           out.data_pointer + to_place * ITEMSIZE[out.type]),
                  new_view(input, ndim, kept, input.steps,
                           input.data_pointer + from_place * ITEMSIZE[out.type]))
    return out


# ---- with what the plane shows -------------------------------------------------------------------

# Planes of up to three dims; those before these have size 1.
ctypedef struct Bordered:
    char* x                      # the planes
    char* y                      # with margins
    Py_ssize_t size[3]
    Py_ssize_t out[3]
    Py_ssize_t* places[3]        # what each place of `out` shows
    Py_ssize_t first, last       # the places of a row that show a run, which begins at `source`
    Py_ssize_t source
    Py_ssize_t length            # elements at a place: the channels of channels-last images, or 1
    int itemsize


cdef inline Py_ssize_t place_of(int mode, Py_ssize_t at, Py_ssize_t size, Py_ssize_t before,
                                Py_ssize_t after) noexcept nogil:
    """What a place shows that lies `at` a place of the plane, or outside of it."""
    cdef Py_ssize_t first = max(<Py_ssize_t>0, -before)
    cdef Py_ssize_t kept = max(size - first - max(<Py_ssize_t>0, -after), <Py_ssize_t>1)
    if mode == 0:                # reflect
        return size - 1 - magnitude(size - 1 - magnitude(at))
    if mode == 1:                # replicate
        return max(<Py_ssize_t>0, min(at, size - 1))
    at = (at - first) % kept     # circular
    return first + at + (kept if at < 0 else 0)


cdef inline Py_ssize_t magnitude(Py_ssize_t x) noexcept nogil:
    return -x if x < 0 else x


cdef void show(Bordered* b, Py_ssize_t begin, Py_ssize_t end, item unused) noexcept nogil:
    """Rows [begin, end) of y := what they show"""
    cdef Py_ssize_t row, k, width = b.out[2], j = begin % b.out[1], i = begin // b.out[1]
    cdef Py_ssize_t plane = i // b.out[0]
    cdef Py_ssize_t* places = b.places[2]
    cdef const item* x
    cdef item* y
    i %= b.out[0]
    for row in range(begin, end):
        x = <const item*>b.x + b.size[2] * (b.places[1][j] + b.size[1] * (
            b.places[0][i] + b.size[0] * plane))
        y = <item*>b.y + row * width
        j += 1
        if j == b.out[1]:
            j = 0
            i += 1
            if i == b.out[0]:
                i = 0
                plane += 1
        for k in range(b.first):
            y[k] = x[places[k]]
        copy_run(<const char*>(x + b.source), <char*>(y + b.first),
                 (b.last - b.first) * sizeof(item))
        for k in range(b.last, width):
            y[k] = x[places[k]]


cdef void show_lanes(Bordered* b, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """`show`, where several elements are at a place."""
    cdef Py_ssize_t row, k, i, plane, nbytes = b.length * b.itemsize
    cdef const char* x
    cdef char* y = b.y + begin * b.out[2] * nbytes
    for row in range(begin, end):
        i, plane = row // b.out[1] % b.out[0], row // b.out[1] // b.out[0]
        x = b.x + nbytes * b.size[2] * (b.places[1][row % b.out[1]] + b.size[1] * (
            b.places[0][i] + b.size[0] * plane))
        for k in range(b.first):
            copy_run(x + b.places[2][k] * nbytes, y + k * nbytes, nbytes)
        copy_run(x + b.source * nbytes, y + b.first * nbytes, (b.last - b.first) * nbytes)
        for k in range(b.last, b.out[2]):
            copy_run(x + b.places[2][k] * nbytes, y + k * nbytes, nbytes)
        y += b.out[2] * nbytes


cdef void show_rows(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Bordered* b = <Bordered*>context
    if b.length != 1:
        show_lanes(b, begin, end)
    elif b.itemsize == 1:
        show(b, begin, end, <uint8_t>0)
    elif b.itemsize == 2:
        show(b, begin, end, <uint16_t>0)
    elif b.itemsize == 4:
        show(b, begin, end, <uint32_t>0)
    else:
        show(b, begin, end, <uint64_t>0)


cdef void add(Bordered* b, Py_ssize_t begin, Py_ssize_t end, floating unused) noexcept nogil:
    """Planes [begin, end) of x += each place of y where it shows"""
    cdef Py_ssize_t plane, i, j, k, width = b.out[2] * b.length
    cdef Py_ssize_t run = (b.last - b.first) * b.length
    cdef Py_ssize_t* places = b.places[2]
    cdef const floating* y = <const floating*>b.y + begin * b.out[0] * b.out[1] * width
    cdef floating* x
    for plane in range(begin, end):
        for i in range(b.out[0]):
            for j in range(b.out[1]):
                x = <floating*>b.x + b.length * b.size[2] * (b.places[1][j] + b.size[1] * (
                    b.places[0][i] + b.size[0] * plane))
                add_margin(x, y, places, b.length, 0, b.first)
                for k in range(run):
                    x[b.source * b.length + k] += y[b.first * b.length + k]
                add_margin(x, y, places, b.length, b.last, b.out[2])
                y += width


cdef inline void add_margin(floating* x, const floating* y, const Py_ssize_t* places,
                            Py_ssize_t length, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    """x += places [first, last) of a row of y, where they show"""
    cdef Py_ssize_t k, c
    for k in range(first, last):
        for c in range(length):
            x[places[k] * length + c] += y[k * length + c]


cdef void add_planes(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Bordered* b = <Bordered*>context
    if b.itemsize == 4:
        add(b, begin, end, <float>0)
    else:
        add(b, begin, end, <double>0)


cdef int fill(Bordered* b, int mode, tuple spatial, tuple margins, Py_ssize_t* buffer) except -1:
    """Takes the sizes, and finds what each place shows. Raises: RuntimeError."""
    cdef Py_ssize_t before = 0, after = 0, at, k
    cdef int d, n = len(spatial)
    for d in range(3):
        before = after = 0
        b.places[d] = buffer
        if d >= 3 - n:
            k = 2 * (2 - d)
            before, after = margins[k], margins[k + 1]
        for k in range(b.out[d]):
            at = place_of(mode, k - before, b.size[d], before, after)
            if not 0 <= at < b.size[d]:
                raise RuntimeError(f"pad: margins of {before} and {after} don't fit a dim of size "
                                   f"{b.size[d]}")
            buffer[k] = at
        buffer += b.out[d]
    b.first = min(max(before, <Py_ssize_t>0), b.out[2])
    b.last = max(b.first, b.out[2] - max(after, <Py_ssize_t>0))
    b.source = max(-before, <Py_ssize_t>0)
    return 0


cdef int take_sizes(Bordered* b, object mode, tuple spatial, tuple margins) except -1:
    """The sizes without margins and with them, and the mode. Raises: RuntimeError."""
    cdef int d, n = len(spatial)
    if not 1 <= n <= 3 or len(margins) != 2 * n or mode not in MODES:
        raise RuntimeError(f"pad: got sizes {spatial}, margins {margins} and mode {mode!r}")
    for d in range(3):
        b.size[d] = b.out[d] = 1
    for d in range(n):
        for value in (spatial[d], *margins[2 * d:2 * d + 2]):
            if not -FARTHEST <= value <= FARTHEST:
                raise RuntimeError(f"pad: a size of {value} is out of range")
        b.size[3 - n + d] = spatial[d]
        b.out[3 - n + d] = spatial[d] + margins[2 * (n - 1 - d)] + margins[2 * (n - 1 - d) + 1]
        if b.size[3 - n + d] < 0 or b.out[3 - n + d] < 0:
            raise RuntimeError(f"pad: margins of {margins} don't fit sizes of {spatial}")
    return MODES[mode]


MODES = {"reflect": 0, "replicate": 1, "circular": 2}


def bordered(Tensor input, tuple spatial, tuple margins, mode, bint back):
    """Planes of sizes `spatial`, the last dims, with margins, in pairs for the last dim first; with
    `back` the sums of what shows each element. Raises: RuntimeError."""
    spatial, margins = settled(spatial), settled(margins)
    cdef Bordered b
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Py_ssize_t planes = 1, rows
    cdef Py_ssize_t* buffer
    cdef int d, n = len(spatial), kind = take_sizes(&b, mode, spatial, margins)
    cdef int lead = input.ndim_ - n, dtype = input.type
    cdef bint fits = lead >= 0
    cdef bint lanes = lead == 2 and n > 1 and kind != MODES["circular"] and gives_lanes(input)
    cdef Tensor x, y
    for d in range(n if fits else 0):
        fits &= input.dims[lead + d] == (&b.out[0] if back else &b.size[0])[3 - n + d]
    if not fits:
        raise RuntimeError(f"pad: got {tuple(input.shape)}, expected planes of {spatial}, "
                           f"{'with' if back else 'without'} margins of {margins}")
    if back:
        if KIND[dtype] != FLOAT_KIND:
            raise RuntimeError(f"pad: no gradient of {dtype_object(dtype)}")
        dtype = compute_dtype(dtype)
    x = laid(input, dtype, True) if lanes else packed(cast(input, dtype))
    for d in range(lead):
        dims[d] = x.dims[d]
        planes *= 1 if lanes and d == 1 else x.dims[d]
    for d in range(n):
        dims[lead + d] = (&b.size[0] if back else &b.out[0])[3 - n + d]
    count("pad", input.ndim_, dims)
    y = new_tensor(dtype, input.ndim_, dims)
    if lanes:
        lay_lanes(y)
    if back:
        zero(y)
    if x.numel_ == 0 or y.numel_ == 0:
        return laid(y, input.type, lanes)
    b.itemsize, b.length = ITEMSIZE[dtype], x.dims[1] if lanes else 1
    b.x, b.y = (y.data_pointer, x.data_pointer) if back else (x.data_pointer, y.data_pointer)
    rows = planes * b.out[0] * b.out[1]
    buffer = <Py_ssize_t*>malloc((b.out[0] + b.out[1] + b.out[2]) * sizeof(Py_ssize_t))
    if buffer == NULL:
        raise MemoryError("pad: no memory for the places of margins")
    try:
        fill(&b, kind, spatial, margins, buffer)
        if back:
            share(add_planes, &b, b.y, planes, 1 + GRAIN // (x.numel_ // planes), False)
        else:
            share(show_rows, &b, b.y, rows, 1 + GRAIN // (b.out[2] * b.length), False)
    finally:
        free(buffer)
    return laid(y, input.type, lanes)
