"""Sliding windows over planes: im2col, and back.

A plane is (depth, height, width), contiguous, and `Window` has its sizes and those of the windows.
Every element that is read or written lies in the plane: windows are cut where they leave it.

    void run(const T* x, T* y, const Window* w, Py_ssize_t planes)
"""

from libc.string cimport memcpy, memset

from tensorlib._kernels.vecmath.basics cimport floating
from tensorlib._kernels.layers.windows cimport (
    BEHIND, PADDED, Window, area, inside, padded_plane, padded_side,
)

from tensorlib._kernels import FLOATS, rows_for

cdef enum:
    SPLIT = 8192     # elements of a plane that is split
    COPIED = 16      # elements that are copied at once


# ---- columns -------------------------------------------------------------------------------------

cdef void im2col(const floating* x, floating* y, const Window* w, Py_ssize_t planes) noexcept nogil:
    """y (planes * elements of a window, windows) := the elements of the windows, 0 outside"""
    cdef Py_ssize_t p, a, b, c
    cdef bint same = (w.stride[1] == 1 and w.stride[2] == 1 and w.out[2] == w.size[2])
    if splits(w):
        split_im2col(x, y, w, planes)
        return
    for p in range(planes):
        for a in range(w.kernel[0]):
            for b in range(w.kernel[1]):
                for c in range(w.kernel[2]):
                    gather(x, y, w, a * w.dilation[0] - w.pad[0], b * w.dilation[1] - w.pad[1],
                           c * w.dilation[2] - w.pad[2], same)
                    y += area(w.out)
        x += w.apart


cdef inline void gather(const floating* x, floating* y, const Window* w, Py_ssize_t depth,
                        Py_ssize_t top, Py_ssize_t left, bint same) noexcept nogil:
    """y (windows) := the element at this place of each window"""
    cdef Py_ssize_t i, j, k, z, row, first, begin, end, plane = w.out[1] * w.out[2]
    cdef const floating* source
    inside(w.size[2], w.out[2], w.stride[2], left, &begin, &end)
    for i in range(w.out[0]):
        z = i * w.stride[0] + depth
        if not 0 <= z < w.size[0]:
            memset(y, 0, plane * sizeof(floating))
            y += plane
            continue
        source = x + z * w.size[1] * w.size[2]
        if same:
            shifted(source, y, w, top, left, begin, end)
            y += plane
            continue
        for j in range(w.out[1]):
            row = j * w.stride[1] + top
            if not 0 <= row < w.size[1]:
                memset(y, 0, w.out[2] * sizeof(floating))
            else:
                for k in range(begin):
                    y[k] = 0
                if w.stride[2] == 1:
                    first = row * w.size[2] + begin + left
                    copy_run(source + first, y + begin, end - begin,
                             min(w.size[1] * w.size[2] - first, (w.out[1] - j) * w.out[2] - begin))
                elif w.stride[2] == 2:                # a constant step is vectorised
                    take_steps(source + row * w.size[2] + left, y, begin, end, 2)
                else:
                    take_steps(source + row * w.size[2] + left, y, begin, end, w.stride[2])
                for k in range(end, w.out[2]):
                    y[k] = 0
            y += w.out[2]


cdef inline void take_steps(const floating* x, floating* y, Py_ssize_t begin, Py_ssize_t end,
                            Py_ssize_t step) noexcept nogil:
    """y := every (step)th element of x, in [begin, end) of both"""
    cdef Py_ssize_t k
    for k in range(begin, end):
        y[k] = x[k * step]


cdef inline void copy_run(const floating* x, floating* y, Py_ssize_t n,
                          Py_ssize_t room) noexcept nogil:
    """y := x, n elements; what lies behind them in y, of `room` elements in both, may change

    Rows are short, and a memcpy of any other than a constant size is a call.
    """
    cdef Py_ssize_t k
    if n + COPIED > room:
        if n > 0:
            memcpy(y, x, n * sizeof(floating))
        return
    for k in range(0, n, 16):                # COPIED
        memcpy(y + k, x + k, COPIED * sizeof(floating))


cdef inline void shifted(const floating* x, floating* y, const Window* w, Py_ssize_t top,
                         Py_ssize_t left, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """`gather` where windows are as wide as the plane: it moves as a whole, then its sides are 0"""
    cdef Py_ssize_t width = w.size[2], first, last, j, k
    first = min(w.out[1], max(<Py_ssize_t>0, -top))
    last = max(first, min(w.out[1], w.size[1] - top))
    memset(y, 0, first * width * sizeof(floating))
    memset(y + last * width, 0, (w.out[1] - last) * width * sizeof(floating))
    if end <= begin or last <= first:
        memset(y + first * width, 0, (last - first) * width * sizeof(floating))
        return
    memcpy(y + first * width + begin, x + (first + top) * width + begin + left,
           ((last - first - 1) * width + end - begin) * sizeof(floating))
    for j in range(first, last):
        for k in range(begin):
            y[j * width + k] = 0
        for k in range(end, width):
            y[j * width + k] = 0


cdef inline bint splits(const Window* w) noexcept nogil:
    """Whether windows lie 2 to 4 elements apart, in a plane that can be split for them.

    Element by element, the columns of such windows took as long as the product with a weight of 64
    rows. Of a plane in parts, each of every second (third, fourth) element, runs are copied.
    """
    cdef Py_ssize_t step = w.stride[2]
    return (w.size[0] == 1 and w.kernel[0] == 1 and w.out[0] == 1 and w.pad[0] == 0
            and w.stride[1] == step and 2 <= step <= 4 and w.kernel[1] * w.kernel[2] >= step * step
            and w.size[1] <= SPLIT and w.size[2] <= SPLIT and w.out[2] <= SPLIT
            and step * step * split_rows(w) * split_width(w) <= SPLIT)


cdef inline Py_ssize_t split_rows(const Window* w) noexcept nogil:
    return (w.size[1] + w.stride[1] - 1) // w.stride[1]


cdef inline Py_ssize_t split_width(const Window* w) noexcept nogil:
    """Of the parts of a plane: as wide as the windows are many, if that is enough, for `shifted`"""
    return max(w.out[2], (w.size[2] + w.stride[2] - 1) // w.stride[2])


cdef void split_im2col(const floating* x, floating* y, const Window* w,
                       Py_ssize_t planes) noexcept nogil:
    """`im2col` from planes that are split into parts"""
    cdef floating parts[SPLIT]
    cdef Window part = w[0]
    cdef Py_ssize_t p, b, c, top, left, row, col, step = w.stride[2]
    part.size[1], part.size[2] = split_rows(w), split_width(w)
    part.stride[1] = part.stride[2] = 1
    # parts that are smaller end with zeros, which windows have behind the plane
    memset(parts, 0, step * step * part.size[1] * part.size[2] * sizeof(floating))
    for p in range(planes):
        if step == 2:                        # a constant step is vectorised
            split(x, parts, w, &part, 2)
        elif step == 3:
            split(x, parts, w, &part, 3)
        else:
            split(x, parts, w, &part, 4)
        for b in range(w.kernel[1]):
            top = b * w.dilation[1] - w.pad[1]
            row = part_of(top, step)
            for c in range(w.kernel[2]):
                left = c * w.dilation[2] - w.pad[2]
                col = part_of(left, step)
                gather(parts + (row * step + col) * part.size[1] * part.size[2], y, &part, 0,
                       (top - row) // step, (left - col) // step, part.size[2] == part.out[2])
                y += w.out[1] * w.out[2]
        x += w.apart


cdef inline void split(const floating* x, floating* parts, const Window* w, const Window* part,
                       Py_ssize_t step) noexcept nogil:
    """parts (step, step, rows, width) := x, by its rows and by their elements modulo step"""
    cdef Py_ssize_t i, k, l, whole = w.size[2] // step, area = part.size[1] * part.size[2]
    cdef floating* run
    for i in range(w.size[1]):
        run = parts + i % step * step * area + i // step * part.size[2]
        for k in range(whole):
            for l in range(step):
                run[l * area + k] = x[k * step + l]
        for l in range(w.size[2] - whole * step):
            run[l * area + whole] = x[whole * step + l]
        x += w.size[2]


cdef inline Py_ssize_t part_of(Py_ssize_t place, Py_ssize_t step) noexcept nogil:
    """place modulo step, of a place that may lie before the plane"""
    return place % step if place >= 0 else (step - -place % step) % step


cdef void split_col2im(const floating* x, floating* y, const Window* w,
                       Py_ssize_t planes) noexcept nogil:
    """`col2im` to planes that are split into parts, to which runs are added"""
    cdef floating parts[SPLIT]
    cdef Window part = w[0]
    cdef Py_ssize_t p, b, c, j, top, left, row, col, begin, end, step = w.stride[2]
    cdef floating* target
    part.size[1], part.size[2] = split_rows(w), split_width(w)
    for p in range(planes):
        memset(parts, 0, step * step * part.size[1] * part.size[2] * sizeof(floating))
        for b in range(w.kernel[1]):
            top = b * w.dilation[1] - w.pad[1]
            row = part_of(top, step)
            top = (top - row) // step
            for c in range(w.kernel[2]):
                left = c * w.dilation[2] - w.pad[2]
                col = part_of(left, step)
                left = (left - col) // step
                target = parts + (row * step + col) * part.size[1] * part.size[2] + left
                inside(part.size[2], w.out[2], 1, left, &begin, &end)
                for j in range(max(<Py_ssize_t>0, -top), min(w.out[1], part.size[1] - top)):
                    add_run(x + j * w.out[2], target + (j + top) * part.size[2], begin, end, 1, 0)
                x += w.out[1] * w.out[2]
        if step == 2:                        # a constant step is vectorised
            merge(parts, y, w, &part, 2)
        else:
            merge(parts, y, w, &part, step)
        y += area(w.size)


cdef inline void merge(const floating* parts, floating* y, const Window* w, const Window* part,
                       Py_ssize_t step) noexcept nogil:
    """y += the elements of parts, as `split` made them"""
    cdef Py_ssize_t i, k, l, whole = w.size[2] // step, area = part.size[1] * part.size[2]
    cdef const floating* run
    for i in range(w.size[1]):
        run = parts + i % step * step * area + i // step * part.size[2]
        for k in range(whole):
            for l in range(step):
                y[k * step + l] += run[l * area + k]
        for l in range(w.size[2] - whole * step):
            y[whole * step + l] += run[l * area + whole]
        y += w.size[2]


cdef void col2im(const floating* x, floating* y, const Window* w, Py_ssize_t planes) noexcept nogil:
    """y (planes) += the columns x, each element at its place in the plane"""
    cdef Py_ssize_t p, a, b, c, i, j, k, z, row, begin, end
    cdef floating* target
    if splits(w):
        split_col2im(x, y, w, planes)
        return
    for p in range(planes):
        for a in range(w.kernel[0]):
            for b in range(w.kernel[1]):
                for c in range(w.kernel[2]):
                    inside(w.size[2], w.out[2], w.stride[2], c * w.dilation[2] - w.pad[2],
                           &begin, &end)
                    for i in range(w.out[0]):
                        z = i * w.stride[0] + a * w.dilation[0] - w.pad[0]
                        for j in range(w.out[1]):
                            row = j * w.stride[1] + b * w.dilation[1] - w.pad[1]
                            if 0 <= z < w.size[0] and 0 <= row < w.size[1]:
                                target = y + (z * w.size[1] + row) * w.size[2]
                                add_run(x, target, begin, end, w.stride[2],
                                        c * w.dilation[2] - w.pad[2])
                            x += w.out[2]
        y += area(w.size)


cdef inline void add_run(const floating* x, floating* y, Py_ssize_t begin, Py_ssize_t end,
                         Py_ssize_t stride, Py_ssize_t first) noexcept nogil:
    cdef Py_ssize_t k
    if stride == 1:
        for k in range(begin, end):
            y[k + first] += x[k]
    else:
        for k in range(begin, end):
            y[k * stride + first] += x[k]


# ---- columns of images beside each other ---------------------------------------------------------
# Planes of a few elements, which are padded first: rows of windows are then copied as they come.

cdef void im2col_images(const floating* x, floating* y, const Window* w,
                        Py_ssize_t planes) noexcept nogil:
    """y (planes * elements of a window, images * windows) := the elements of the windows; what lies
    behind y, BEHIND elements, may change"""
    cdef floating padded[PADDED + BEHIND]
    cdef Py_ssize_t each = padded_plane(w), wide = padded_side(w, 2), p, b, c, image, j
    cdef const floating* source
    memset(padded, 0, (w.images * each + BEHIND) * sizeof(floating))
    for p in range(planes):
        for image in range(w.images):
            pad_plane(x + image * w.image_apart, padded + image * each, w, False)
        for b in range(w.kernel[1]):
            for c in range(w.kernel[2]):
                source = padded + padded_place(w, b * w.dilation[1], c * w.dilation[2])
                for image in range(w.images):
                    for j in range(w.out[1]):
                        copy_ahead(source + image * each + j * wide, y, w.out[2])
                        y += w.out[2]
        x += w.apart


cdef void col2im_images(floating* x, floating* y, const Window* w,
                        Py_ssize_t planes) noexcept nogil:
    """y := the columns x of images beside each other, each element added at its place"""
    cdef floating padded[PADDED + BEHIND]
    cdef Py_ssize_t each = padded_plane(w), wide = padded_side(w, 2), p, b, c, image, j, k
    cdef floating* target
    for p in range(planes):
        memset(padded, 0, w.images * each * sizeof(floating))
        for b in range(w.kernel[1]):
            for c in range(w.kernel[2]):
                target = padded + padded_place(w, b * w.dilation[1], c * w.dilation[2])
                for image in range(w.images):
                    for j in range(w.out[1]):
                        for k in range(w.out[2]):
                            target[image * each + j * wide + k] += x[k]
                        x += w.out[2]
        for image in range(w.images):
            pad_plane(padded + image * each, y + image * w.image_apart, w, True)
        y += w.apart


cdef inline Py_ssize_t padded_place(const Window* w, Py_ssize_t row, Py_ssize_t col) noexcept nogil:
    """Where the element of a padded plane lies in its parts: those of every (stride)th element"""
    cdef Py_ssize_t wide = padded_side(w, 2)
    cdef Py_ssize_t part = row % w.stride[1] * w.stride[2] + col % w.stride[2]
    return (part * padded_side(w, 1) + row // w.stride[1]) * wide + col // w.stride[2]


cdef inline void pad_plane(const floating* x, floating* y, const Window* w,
                           bint back) noexcept nogil:
    """y, a padded plane in parts := x, of which windows see all that fits; or, `back`, the other
    way, with zeros where no window is"""
    cdef Py_ssize_t step = w.stride[2], wide = padded_side(w, 2), i, j, k, first, inner
    cdef Py_ssize_t high = padded_side(w, 1) * w.stride[1]
    for i in range(w.size[1]):
        for first in range(min(step, w.size[2])):
            k = padded_place(w, i + w.pad[1], first + w.pad[2])
            inner = wide - (first + w.pad[2]) // step if i + w.pad[1] < high else 0
            inner = max(<Py_ssize_t>0, min(inner, (w.size[2] - first + step - 1) // step))
            if back:
                for j in range(inner):
                    y[first + j * step] = x[k + j]
                for j in range(inner, (w.size[2] - first + step - 1) // step):
                    y[first + j * step] = 0
            else:
                for j in range(inner):
                    y[k + j] = x[first + j * step]
        if back:
            y += w.size[2]
        else:
            x += w.size[2]


cdef inline void copy_ahead(const floating* x, floating* y, Py_ssize_t n) noexcept nogil:
    """y := x, n elements, and whatever follows up to BEHIND of them"""
    cdef Py_ssize_t k
    for k in range(0, n, 16):                # BEHIND
        memcpy(y + k, x + k, BEHIND * sizeof(floating))


def table():
    """(name, input dtypes, output dtype, address) of every loop"""
    return rows_for(FLOATS, [
        ("im2col", <size_t>&im2col[float], <size_t>&im2col[double]),
        ("col2im", <size_t>&col2im[float], <size_t>&col2im[double]),
        ("im2col_images", <size_t>&im2col_images[float], <size_t>&im2col_images[double]),
        ("col2im_images", <size_t>&col2im_images[float], <size_t>&col2im_images[double]),
    ])
