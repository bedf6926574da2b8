from libc.stdint cimport int64_t

from tensorlib._core.tensor.tensor cimport Tensor

cdef enum:
    GRAIN = 1 << 13          # elements that a thread takes at once: some 10 us

# The loop along one line. Each places[i] is one of `size` positions, which lie `along` bytes apart
# in x; from one i to the next x itself moves by `x_step` bytes and y by `y_step`. At a position out
# of range the loop returns False. Other threads may write to the positions at any time: so each is
# read once (volatile), and the number that is checked is the number that is used.
ctypedef bint (*line_loop)(char* x, const volatile int64_t* places, Py_ssize_t place_step,
                      Py_ssize_t size, Py_ssize_t along, Py_ssize_t x_step, char* y,
                      Py_ssize_t y_step, Py_ssize_t n) noexcept nogil

cdef line_loop line_of_gather(int dtype) noexcept
cdef bint walk(line_loop run, Tensor x, int dim, Tensor places, Tensor y, bint writes) except -1
cdef Tensor as_vector(Tensor x)
cdef Tensor wrapped_positions(Tensor x, Py_ssize_t size, Py_ssize_t dim, str name=*)
cpdef int check_positions(str name, index) except -1
cdef line_loop line_of_scatter(int dtype, bint adds) noexcept
cdef int check_index(str name, Tensor x, int dim, Tensor index) except -1
cdef bint in_range(Tensor positions, Py_ssize_t size) noexcept
