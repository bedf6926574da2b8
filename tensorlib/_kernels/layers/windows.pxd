"""The sizes of sliding windows: of a plane and of the result, in up to three dims."""

ctypedef struct Window:
    Py_ssize_t size[3]            # of a plane
    Py_ssize_t out[3]             # how many windows
    Py_ssize_t kernel[3]          # elements of a window
    Py_ssize_t stride[3]
    Py_ssize_t pad[3]             # before the plane
    Py_ssize_t dilation[3]
    Py_ssize_t end[3]             # where the padding after the plane ends, for means
    bint counts_padding           # of means
    bint adaptive                 # of means: windows cover the plane, and differ in size
    Py_ssize_t divisor            # of means; 0 for the number of elements
    Py_ssize_t apart              # elements from one plane to the next, for columns
    Py_ssize_t images             # whose columns lie beside each other
    Py_ssize_t image_apart        # elements from a plane to that of the next image


cdef inline Py_ssize_t area(const Py_ssize_t* sizes) noexcept nogil:
    return sizes[0] * sizes[1] * sizes[2]


cdef enum:
    PADDED = 1 << 13     # elements that planes of images beside each other take at most
    BEHIND = 16          # elements behind their columns that may be written


cdef inline Py_ssize_t padded_side(const Window* w, int d) noexcept nogil:
    """How many elements each of the parts has along a dim, into which a padded plane is split by
    the stride"""
    return w.out[d] + (w.kernel[d] - 1) * w.dilation[d] // w.stride[d]


cdef inline Py_ssize_t padded_plane(const Window* w) noexcept nogil:
    return padded_side(w, 1) * w.stride[1] * padded_side(w, 2) * w.stride[2]


cdef inline void inside(Py_ssize_t size, Py_ssize_t out, Py_ssize_t stride, Py_ssize_t first,
                        Py_ssize_t* begin, Py_ssize_t* end) noexcept nogil:
    """The windows whose element, `first` of window 0, lies in [0, size)"""
    begin[0] = 0 if first >= 0 else min(out, (stride - 1 - first) // stride)
    end[0] = 0 if first >= size else min(out, (size - 1 - first) // stride + 1)
    end[0] = max(begin[0], end[0])


cdef inline Py_ssize_t first_inside(const Window* w, int d, Py_ssize_t window) noexcept nogil:
    """The place along a dim of the first element of a window that lies in the plane"""
    cdef Py_ssize_t first = window * w.stride[d] - w.pad[d]
    return first if first >= 0 else (first + (w.dilation[d] - 1 - first) // w.dilation[d]
                                     * w.dilation[d])


cdef inline Py_ssize_t cut(const Window* w, int d, Py_ssize_t window, Py_ssize_t* begin,
                           Py_ssize_t* end) noexcept nogil:
    """Where a window lies in the plane along a dim, and how many elements count"""
    cdef Py_ssize_t first = window * w.stride[d] - w.pad[d]
    cdef Py_ssize_t last = min(first + w.kernel[d], w.end[d])
    if w.adaptive:
        first = window * w.size[d] // w.out[d]
        last = ((window + 1) * w.size[d] + w.out[d] - 1) // w.out[d]
    begin[0], end[0] = max(first, <Py_ssize_t>0), min(last, w.size[d])
    end[0] = max(begin[0], end[0])
    return last - first if w.counts_padding else end[0] - begin[0]
