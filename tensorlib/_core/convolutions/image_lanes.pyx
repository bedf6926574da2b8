"""Convolutions of many small images, in which each lane of a vector belongs to another image.

A row of a small image is shorter than a vector, and copies of such rows take longer than the
products. So some dozens of images are transposed: a row then has one element of all of them. The
windows at one position are a matrix of such rows, which is multiplied in place; a row of zeros
stands for elements outside of the images. 1,024 images of 3 x 8 x 8 by 8 x 3 x 3 x 3 took 3.0 ms
image by image, and take 0.35; gradients of the input 3.5 and 0.55, of the weight 3.2 and 0.7.
4,096 images of 1 x 4 x 4 by 1 x 1 x 2 x 2 took 1.6 ms, and take 0.05.
"""

from libc.string cimport memcpy, memset

from tensorlib._core.base.scratch cimport give_scratch, take_scratch
from tensorlib._core.base.shape cimport times
from tensorlib._core.base.work cimport share
from tensorlib._core.convolutions.joined_columns cimport add_rows
from tensorlib._core.products.blas cimport multiply_matrices
from tensorlib._core.products.panel_products cimport multiply_runs, shortest_run, turn
from tensorlib._kernels.layers.windows cimport Window

cdef enum:
    LEAST_IMAGES = 32
    MOST_PLACES = 64     # of the result; with more, a row of it is about as long as a vector
    PLACES_OF_MANY = 128             # the same for many taps, where channels do not fill a panel
    PLACES_OF_WEIGHT = 48            # the same for gradients of the weight
    FULL_OUTS = 16       # with so many channels and taps panels are full, and columns are as fast
    FULL_TAPS = 100      # unless there are many images
    FULL_IMAGES = 128
    MOST_ROWS = 1 << 15  # of all windows of an image, and of what is transposed
    MOST_WEIGHT = 1 << 15            # elements; joined_columns.pyx is for larger weights
    BLOCK = 64           # images that are transposed together at most,
    BLOCK_BYTES = 1 << 19            # and the bytes that their windows may take
    MOST_SHARES = 16


cdef bint stacked_fits(const Stacked* s, bint weights) noexcept nogil:
    cdef Py_ssize_t least = LEAST_IMAGES, places = PLACES_OF_WEIGHT if weights else MOST_PLACES
    if s.taps >= FULL_TAPS and s.outs >= FULL_OUTS:
        least = FULL_IMAGES // 2 if weights else FULL_IMAGES
    elif s.taps >= FULL_TAPS and not weights:
        places = PLACES_OF_MANY
    return (s.images >= least and s.places <= places and 1 < s.taps
            and shortest_run(s.dtype) <= LEAST_IMAGES // 2
            and times(s.taps, s.places) <= MOST_ROWS and times(s.outs, s.taps) <= MOST_WEIGHT
            and times(s.ins, s.plane) <= MOST_ROWS and times(s.outs, s.places) <= MOST_ROWS)


cdef int set_parts(Stacked* s, Py_ssize_t rows) noexcept nogil:
    """Cuts the images into blocks of nearly equal size; `rows` are needed for each image."""
    cdef Py_ssize_t most = BLOCK_BYTES // (rows * s.itemsize)
    most = max(min(most, <Py_ssize_t>BLOCK), <Py_ssize_t>LEAST_IMAGES)
    s.parts = (s.images + most - 1) // most
    return 0


cdef void find_rows(const Stacked* s) noexcept nogil:
    """rows (places, taps) := the row of the transposed input that each tap of each window reads"""
    cdef const Window* w = s.window
    cdef Py_ssize_t* to = s.rows
    cdef Py_ssize_t[3] at, tap, seen
    cdef Py_ssize_t place, p, i
    cdef bint inside
    cdef int d
    for place in range(s.places):
        at[2] = place % w.out[2]
        at[1] = place // w.out[2] % w.out[1]
        at[0] = place // w.out[2] // w.out[1]
        for p in range(s.ins):
            for i in range(s.taps // s.ins):
                tap[2] = i % w.kernel[2]
                tap[1] = i // w.kernel[2] % w.kernel[1]
                tap[0] = i // w.kernel[2] // w.kernel[1]
                inside = True
                for d in range(3):
                    seen[d] = at[d] * w.stride[d] - w.pad[d] + tap[d] * w.dilation[d]
                    inside = inside and 0 <= seen[d] < w.size[d]
                to[0] = s.ins * s.plane        # the row of zeros
                if inside:
                    to[0] = p * s.plane + (seen[0] * w.size[1] + seen[1]) * w.size[2] + seen[2]
                to += 1


cdef inline void turn_in(const Stacked* s, const char* planes, Py_ssize_t channels,
                         Py_ssize_t plane, Py_ssize_t group, Py_ssize_t first, Py_ssize_t count,
                         char* turned) noexcept nogil:
    """turned (channels * plane, count) := the planes of a group for `count` images"""
    cdef Py_ssize_t each = channels * plane, image = s.groups * each
    turn(s.dtype, planes + (first * image + group * each) * s.itemsize, image, turned, count,
         count, each)


cdef void run_outputs(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Computes [begin, end) of the results, each for a block of images and a group."""
    cdef Stacked* s = <Stacked*>context
    cdef Py_ssize_t seen = s.ins * s.plane, made = s.outs * s.places, taps = s.taps
    cdef Py_ssize_t most = (s.images + s.parts - 1) // s.parts, part, group, first, count, i, place
    cdef size_t nbytes = s.places * taps * sizeof(Py_ssize_t) + (
        seen + 1 + made) * most * s.itemsize
    cdef Py_ssize_t* steps = <Py_ssize_t*>take_scratch(nbytes)
    cdef char* x
    cdef char* y
    if steps == NULL:
        s.failed = True
        return
    x = <char*>(steps + s.places * taps)
    y = x + (seen + 1) * most * s.itemsize
    for part in range(begin, end):
        group, part = part % s.groups, part // s.groups
        first = part * s.images // s.parts
        count = (part + 1) * s.images // s.parts - first
        turn_in(s, s.x, s.ins, s.plane, group, first, count, x)
        memset(x + seen * count * s.itemsize, 0, count * s.itemsize)
        for i in range(s.places * taps):
            steps[i] = s.rows[i] * count
        for place in range(s.places):
            multiply_runs(s.dtype, x, steps + place * taps,
                          s.weight + group * s.outs * taps * s.itemsize,
                          y + place * count * s.itemsize, s.places * count, s.outs, taps, count)
        turn(s.dtype, y, count,
             s.g + (first * s.groups + group) * made * s.itemsize, s.groups * made, made, count)
    give_scratch(<char*>steps, nbytes)


cdef void run_weights(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Computes [begin, end) of the gradients of the weight, each for a share and a group."""
    cdef Stacked* s = <Stacked*>context
    cdef Py_ssize_t seen = s.ins * s.plane, made = s.outs * s.places, taps = s.taps, size
    cdef Py_ssize_t most = (s.images + s.parts - 1) // s.parts, weight = s.outs * taps, tap
    cdef Py_ssize_t number, group, part, last, first, count, wide, row
    cdef bint begun
    cdef size_t nbytes = ((seen + 1 + made + taps * s.places) * most + weight) * s.itemsize
    cdef char* x = take_scratch(nbytes)
    cdef char* g
    cdef char* columns
    cdef char* more
    cdef char* y
    if x == NULL:
        s.failed = True
        return
    g = x + (seen + 1) * most * s.itemsize
    columns = g + made * most * s.itemsize
    more = columns + taps * s.places * most * s.itemsize
    for number in range(begin, end):
        group = number % s.groups
        part, last = (number // s.groups * s.parts // s.shares,
                      (number // s.groups + 1) * s.parts // s.shares)
        y = s.weight + number * weight * s.itemsize     # (shares, groups, ...)
        begun = False
        while part < last:
            first = part * s.images // s.parts
            count = (part + 1) * s.images // s.parts - first
            size, wide = count * s.itemsize, s.places * count
            turn_in(s, s.x, s.ins, s.plane, group, first, count, x)
            turn_in(s, s.g, s.outs, s.places, group, first, count, g)
            memset(x + seen * size, 0, size)
            for row in range(s.places):
                for tap in range(taps):
                    memcpy(columns + (tap * s.places + row) * size,
                           x + s.rows[row * taps + tap] * size, size)
            multiply_matrices(s.dtype, g, wide, 1, columns, 1, wide, more if begun else y, taps,
                              s.outs, wide, taps)
            if begun:
                add_rows(s.dtype, more, y, weight, 1, weight)
            begun = True
            part += 1
    give_scratch(x, nbytes)


cdef int run(Stacked* s, bint weights) except -1:
    cdef size_t nbytes = s.places * s.taps * sizeof(Py_ssize_t)
    s.failed, s.rows = False, <Py_ssize_t*>take_scratch(nbytes)
    if s.rows == NULL:
        raise MemoryError("convolution: no memory for the places of windows")
    find_rows(s)
    try:
        share(run_weights if weights else run_outputs, s, s.weight if weights else s.g,
              (s.shares if weights else s.parts) * s.groups, 1, False)
    finally:
        give_scratch(<char*>s.rows, nbytes)
    if s.failed:
        raise MemoryError("convolution: no memory for the windows of some images")
    return 0


cdef int stacked_outputs(Stacked* s) except -1:
    set_parts(s, s.ins * s.plane + s.outs * s.places)
    return run(s, False)


cdef Py_ssize_t shares_of_weight(Stacked* s) noexcept:
    set_parts(s, s.ins * s.plane + (s.outs + s.taps) * s.places)
    s.shares = min(s.parts, <Py_ssize_t>MOST_SHARES)
    return s.shares


cdef int stacked_weights(Stacked* s) except -1:
    return run(s, True)
