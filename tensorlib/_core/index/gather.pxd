from libc.stdint cimport int64_t

from tensorlib._core.tensor.tensor cimport Tensor

cdef enum:
    GRAIN = 1 << 13          # elements that a thread picks at once: some 10 us

# One line of the walk: places[i] names one of `size` positions `along` bytes apart in x; x itself
# goes on by `x_step`, `y` by `y_step` bytes. False, and no further, at a position that is not
# there: others may write at any time where the places lie, so each is read once (volatile), and
# what is checked is what is used.
ctypedef bint (*line)(char* x, const volatile int64_t* places, Py_ssize_t place_step,
                      Py_ssize_t size, Py_ssize_t along, Py_ssize_t x_step, char* y,
                      Py_ssize_t y_step, Py_ssize_t n) noexcept nogil

cdef line line_of_gather(int dtype) noexcept
cdef bint walk(line run, Tensor x, int dim, Tensor places, Tensor y, bint adds) except -1
cdef Tensor as_vector(Tensor x)
cdef Tensor wrapped(Tensor x, Py_ssize_t size, Py_ssize_t dim, str name=*)
cpdef int check_positions(str name, index) except -1
cdef line line_of_scatter(int dtype, bint adds) noexcept
cdef int check_index(str name, Tensor x, int dim, Tensor index) except -1
cdef bint in_range(Tensor positions, Py_ssize_t size) noexcept
