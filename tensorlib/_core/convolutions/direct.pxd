"""Direct convolutions: products of the windows of an image with weights, without im2col."""

from tensorlib._kernels.layers.windows cimport Window

ctypedef struct Direct:
    int dtype
    Py_ssize_t itemsize, ins, outs
    Py_ssize_t paired        # the channels of bfloat16, of which two count as one of `ins`; or 0
    Py_ssize_t taps          # elements of a window, in all channels
    bint lanes               # images and results are channels-last
    bint rounds              # the result is of bfloat16
    bint copies              # windows are read from a padded copy of the image

cdef bint direct_fits(Direct* d, const Window* w) noexcept nogil
cdef size_t direct_room(const Direct* d, const Window* w) noexcept nogil
cdef void direct(const Direct* d, const Window* w, const char* x, const char* panels, char* y,
                 Py_ssize_t y_plane, char* scratch) noexcept nogil
cdef bint runs_fit(Direct* d, const Window* w) noexcept nogil
cdef size_t room_of_runs(const Direct* d, const Window* w) noexcept nogil
cdef void by_runs(const Direct* d, const Window* w, const char* x, const char* weight, char* y,
                  Py_ssize_t y_plane, char* scratch) noexcept nogil
