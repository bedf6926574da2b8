"""Results of convolutions cut into strips, whose columns stay in the caches."""

from tensorlib._kernels.layers.windows cimport Window

ctypedef struct Strips:
    int dim                     # the one of the three that is cut
    Py_ssize_t count            # of the strips of an image
    Py_ssize_t high             # rows, or planes, of a strip; the last strip may have fewer
    Py_ssize_t places           # of a strip

cdef inline Py_ssize_t area(const Py_ssize_t* sizes) noexcept nogil:
    return sizes[0] * sizes[1] * sizes[2]

# Cuts a result into strips of at most `most` places. The cuts depend on the sizes alone.
cdef Strips one_strip(const Window* w) noexcept
cdef Strips cut(const Window* w, Py_ssize_t most) noexcept

# Returns where the part of the planes of `x` begins that a strip sees; w := the strip's windows.
cdef char* strip_of(const Strips* strips, Py_ssize_t strip, char* x, Py_ssize_t itemsize,
                    Window* w) noexcept nogil
