"""Convolutions of small images by a large weight: one product for the columns of many images.

Image by image, a large weight, or its gradient, would be read from memory for each of them. Here
the columns of several images form one matrix, and the weight is read once for them: 4 images of 512
x 7 x 7 by 512 x 512 x 3 x 3 took 16.6 ms one by one on a Zen 4, and 9.7 together. The gradient of
the input goes by parts of the channels, whose columns stay in the caches.
"""

from libc.string cimport memcpy

from tensorlib._core.base.dtypes cimport ITEMSIZE
from tensorlib._core.base.pool cimport range_fn
from tensorlib._core.base.scratch cimport give_scratch, take_scratch
from tensorlib._core.base.shape cimport times
from tensorlib._core.base.work cimport share
from tensorlib._core.products.blas cimport multiply_matrices
from tensorlib._core.products.panel_products cimport add_row
from tensorlib._kernels.layers.windows cimport BEHIND, PADDED, padded_plane, padded_side

cdef enum:
    LARGE = 1 << 18      # elements of a weight from which on this is faster,
    SMALL = 256          # for images of at most so many places
    SMALLER = 64         # for images of at most so many places, gradients need fewer elements:
    LEAST_BACK = 1 << 17             # that of the input
    LEAST_OF_WEIGHT = 1 << 14        # and that of the weight
    WIDE = 256           # columns of one matrix,
    DEEP = 2048          # and of one whose product sums over columns
    BACK = 1 << 20       # bytes of the columns of some channels, for the gradient of the input


cdef bint joined_fits(const Joined* j) noexcept nogil:
    cdef const Window* w = &j.window
    cdef Py_ssize_t least = LARGE
    if j.places <= SMALLER and j.kind != JOINED_OUTPUT:
        least = LEAST_BACK if j.kind == JOINED_INPUT else LEAST_OF_WEIGHT
    return (j.images > 1 and j.places <= SMALL
            and times(times(j.outs, j.ins), j.elements) >= least
            and w.size[0] == 1 and w.kernel[0] == 1 and w.out[0] == 1 and w.pad[0] == 0
            and w.pad[1] <= SMALL and w.pad[2] <= SMALL
            and times(padded_side(w, 1) * w.stride[1], padded_side(w, 2) * w.stride[2]) <= (
                PADDED // 2))


cdef int run_joined(Joined* j) except -1:
    cdef Py_ssize_t most = WIDE if j.kind != JOINED_WEIGHT else DEEP, parts = 1, columns
    cdef range_fn each = run_outputs
    most = min(PADDED // padded_plane(&j.window), max(<Py_ssize_t>1, most // j.places))
    j.together, j.channels, j.failed = min(j.images, most), j.ins, False
    j.window.image_apart = j.groups * j.ins * j.plane
    if j.kind == JOINED_OUTPUT:
        parts = (j.images + j.together - 1) // j.together
    else:
        columns = times(j.elements * j.itemsize, j.together * j.places)
        j.channels = min(j.ins, max(<Py_ssize_t>1, BACK // columns))
        parts = (j.ins + j.channels - 1) // j.channels
        each = run_weights if j.kind == JOINED_WEIGHT else run_inputs
    share(each, j, j.g, parts * j.groups, 1, False)
    if j.failed:
        raise MemoryError("convolution: no memory for the columns of some images")
    return 0


cdef char* take_room(const Joined* j, Py_ssize_t others, size_t* nbytes) noexcept nogil:
    """Memory for the columns of `channels` of `together` images, and for `others` more elements."""
    cdef Py_ssize_t columns = j.channels * j.elements * j.together * j.places + BEHIND
    nbytes[0] = (columns + others) * j.itemsize
    return take_scratch(nbytes[0])


cdef inline char* behind_columns(const Joined* j, char* columns) noexcept nogil:
    return columns + (j.channels * j.elements * j.together * j.places + BEHIND) * j.itemsize


cdef inline char* x_of(const Joined* j, Py_ssize_t image, Py_ssize_t group,
                       Py_ssize_t channel) noexcept nogil:
    return j.x + ((image * j.groups + group) * j.ins + channel) * j.plane * j.itemsize


cdef void move_planes(const Joined* j, char* together, Py_ssize_t first, Py_ssize_t images,
                      Py_ssize_t group, bint out) noexcept nogil:
    """together (outs, images * places) := planes of g for some images; or, `out`, the reverse"""
    cdef Py_ssize_t image, plane, nbytes = j.places * j.itemsize
    cdef char* apart
    for image in range(images):
        apart = j.g + ((first + image) * j.groups + group) * j.outs * nbytes
        for plane in range(j.outs):
            if out:
                memcpy(apart + plane * nbytes, together + (plane * images + image) * nbytes, nbytes)
            else:
                memcpy(together + (plane * images + image) * nbytes, apart + plane * nbytes, nbytes)


cdef void run_outputs(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Computes [begin, end) of the results, each for some images and a group."""
    cdef Joined* j = <Joined*>context
    cdef Py_ssize_t rows = j.ins * j.elements, part, group, first, width
    cdef Window w = j.window
    cdef size_t nbytes
    cdef char* columns = take_room(j, j.outs * j.together * j.places, &nbytes)
    cdef char* y
    if columns == NULL:
        j.failed = True
        return
    y = behind_columns(j, columns)
    for part in range(begin, end):
        group, first = part % j.groups, part // j.groups * j.together
        w.images = min(j.together, j.images - first)
        width = w.images * j.places
        j.im2col(x_of(j, first, group, 0), columns, &w, j.ins)
        multiply_matrices(j.dtype, j.weight + group * j.outs * rows * j.itemsize, rows, 1,
                          columns, width, 1, y, width, j.outs, rows, width)
        move_planes(j, y, first, w.images, group, True)
    give_scratch(columns, nbytes)


cdef void run_inputs(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Computes [begin, end) of the gradients of the input, each for some channels of all images."""
    cdef Joined* j = <Joined*>context
    cdef Py_ssize_t rows = j.ins * j.elements, part, group, channel, count, first, width
    cdef Window w = j.window
    cdef size_t nbytes
    cdef char* columns = take_room(j, j.outs * j.together * j.places, &nbytes)
    cdef char* g
    if columns == NULL:
        j.failed = True
        return
    g = behind_columns(j, columns)
    for part in range(begin, end):
        group, channel = part % j.groups, part // j.groups * j.channels
        count = min(j.channels, j.ins - channel)
        first = 0
        while first < j.images:
            w.images = min(j.together, j.images - first)
            width = w.images * j.places
            move_planes(j, g, first, w.images, group, False)
            multiply_matrices(
                j.dtype, j.weight + (group * j.outs * rows + channel * j.elements) * j.itemsize, 1,
                rows, g, width, 1, columns, width, count * j.elements, j.outs, width)
            j.col2im(columns, x_of(j, first, group, channel), &w, count)
            first += w.images
    give_scratch(columns, nbytes)


cdef void run_weights(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Computes [begin, end) of the gradients of the weight, each for some input channels."""
    cdef Joined* j = <Joined*>context
    cdef Py_ssize_t rows = j.ins * j.elements, part, group, channel, count, first, width
    cdef Py_ssize_t sums = j.outs * j.channels * j.elements if j.images > j.together else 0
    cdef Window w = j.window
    cdef size_t nbytes
    cdef char* columns = take_room(j, j.outs * j.together * j.places + sums, &nbytes)
    cdef char* g
    cdef char* y
    cdef char* more
    if columns == NULL:
        j.failed = True
        return
    g = behind_columns(j, columns)
    more = g + j.outs * j.together * j.places * j.itemsize
    for part in range(begin, end):
        group, channel = part % j.groups, part // j.groups * j.channels
        count = min(j.channels, j.ins - channel) * j.elements
        y = j.weight + (group * j.outs * rows + channel * j.elements) * j.itemsize
        first = 0
        while first < j.images:
            w.images = min(j.together, j.images - first)
            width = w.images * j.places
            move_planes(j, g, first, w.images, group, False)
            j.im2col(x_of(j, first, group, channel), columns, &w, count // j.elements)
            multiply_matrices(j.dtype, g, width, 1, columns, 1, width, y if first == 0 else more,
                              rows if first == 0 else count, j.outs, width, count)
            if first > 0:
                add_rows(j.dtype, more, y, rows, j.outs, count)
            first += w.images
    give_scratch(columns, nbytes)


cdef void add_rows(int dtype, const char* more, char* y, Py_ssize_t y_row, Py_ssize_t m,
                   Py_ssize_t n) noexcept nogil:
    """y += more: m rows of n elements each, of which those of `more` have no gaps"""
    cdef Py_ssize_t row, size = ITEMSIZE[dtype]
    for row in range(m):
        add_row(more + row * n * size, size, y + row * y_row * size, 0, 1, n)
