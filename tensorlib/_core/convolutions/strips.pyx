"""Results of convolutions cut into strips, whose columns stay in the caches.

Outside autograd. Images are cut into rows, volumes into planes.
"""

from tensorlib._kernels.layers.windows cimport Window


cdef Strips one_strip(const Window* w) noexcept:
    return cut(w, area(w.out))


cdef Strips cut(const Window* w, Py_ssize_t most) noexcept:
    cdef Strips s
    cdef Py_ssize_t each
    s.dim = 0 if w.out[0] > 1 else 1
    s.count, s.high, s.places = 1, w.out[s.dim], area(w.out)
    if s.places <= most or s.dim == 1 and (w.size[0] != 1 or w.kernel[0] != 1 or w.pad[0]):
        return s
    each = s.places // s.high
    s.high = max(<Py_ssize_t>1, most // each)
    s.count = (w.out[s.dim] + s.high - 1) // s.high
    s.high = (w.out[s.dim] + s.count - 1) // s.count
    s.places = s.high * each
    return s


cdef char* strip_of(const Strips* strips, Py_ssize_t strip, char* x, Py_ssize_t itemsize,
                    Window* w) noexcept nogil:
    cdef int d = strips.dim
    cdef Py_ssize_t first = strip * strips.high, top = first * w.stride[d] - w.pad[d], begin, end
    if strips.count == 1:
        return x
    w.out[d] = max(<Py_ssize_t>0, min(strips.high, w.out[d] - first))
    begin = max(<Py_ssize_t>0, min(top, w.size[d]))
    end = top + (w.out[d] - 1) * w.stride[d] + (w.kernel[d] - 1) * w.dilation[d] + 1
    w.size[d] = max(begin, min(end, w.size[d])) - begin
    w.pad[d] = begin - top
    return x + begin * w.size[2] * (w.size[1] if d == 0 else 1) * itemsize
