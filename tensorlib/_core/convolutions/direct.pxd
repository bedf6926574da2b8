"""Direct convolutions: products of the windows of an image with weights, without im2col."""

from tensorlib._kernels.windows cimport Window

ctypedef struct Direct:
    int dtype
    Py_ssize_t itemsize, ins, outs
    Py_ssize_t paired        # channels of bfloat16, two of which are one of `ins`; or 0
    Py_ssize_t taps          # elements of a window, of all planes
    bint lanes               # channels lie beside each other, also those of the result
    bint rounds              # the result is of bfloat16
    bint copies              # the image, with zeros around it

cdef bint direct_fits(Direct* d, const Window* w) noexcept nogil
cdef size_t direct_room(const Direct* d, const Window* w) noexcept nogil
cdef void direct(const Direct* d, const Window* w, const char* x, const char* panels, char* y,
                 Py_ssize_t y_plane, char* scratch) noexcept nogil
cdef bint runs_fit(Direct* d, const Window* w) noexcept nogil
cdef size_t room_of_runs(const Direct* d, const Window* w) noexcept nogil
cdef void by_runs(const Direct* d, const Window* w, const char* x, const char* weight, char* y,
                  Py_ssize_t y_plane, char* scratch) noexcept nogil
