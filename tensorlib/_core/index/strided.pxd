from libc.stdint cimport int64_t

from tensorlib._core.base.shape cimport MAX_NDIM
from tensorlib._core.tensor.tensor cimport Tensor

# All steps are in bytes. Where a position lies in x is given by indices (if n_indices > 0: the sum
# of index * index_step), by the true bytes of a mask, or else by counting.
cdef struct Walk:
    char* x                          # the side that positions point into
    char* y                          # the other side, visited in order
    Py_ssize_t n                     # the number of positions
    Py_ssize_t y_step                # in y, from one position to the next
    int n_indices
    const int64_t* indices[MAX_NDIM]
    Py_ssize_t index_steps[MAX_NDIM]
    const char* mask
    Py_ssize_t x_step                # in x, for one byte of the mask, or from one count to the next
    int ndim                         # the dims that are walked for each position
    Py_ssize_t dims[MAX_NDIM]
    Py_ssize_t x_steps[MAX_NDIM]
    Py_ssize_t y_steps[MAX_NDIM]
    # `move` sets what one call moves: a run of bytes, contiguous on both sides, or a line of items.
    Py_ssize_t run
    Py_ssize_t line                  # the number of items
    Py_ssize_t line_step, y_line_step
    int dtype

cdef enum Move:
    TAKE, PUT, ADD                   # y := x, x := y, x += y

cdef void start(Walk* walk, char* x, char* y) noexcept
cdef void add_dim(Walk* walk, Py_ssize_t size, Py_ssize_t x_step, Py_ssize_t y_step) noexcept
cdef int move(Walk* walk, Move kind, int dtype) except -1

cdef Tensor expanded(Tensor x, int ndim, const Py_ssize_t* dims)
cdef int require_writable(Tensor x) except -1

# Sets the steps of new memory for elements that an index picks. On entry they are those of the dims
# taken whole, and 0 for the dims of positions: `count` dims from `first` on.
cdef void order_as_read(int ndim, const Py_ssize_t* dims, int first, int count,
                        Py_ssize_t* steps) noexcept
