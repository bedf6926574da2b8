from libc.stdint cimport int64_t

from tensorlib._core.base.shape cimport MAX_NDIM
from tensorlib._core.tensor.tensor cimport Tensor

cdef struct Walk:
    char* x                          # the side that positions point into
    char* y                          # the other side, visited in order
    Py_ssize_t n                     # positions
    Py_ssize_t y_step                # bytes on y's side from one position to the next
    int n_indices                    # a position is the sum of index * index_step, or ...
    const int64_t* indices[MAX_NDIM]
    Py_ssize_t index_steps[MAX_NDIM]
    const char* mask                 # ... the next true byte of a mask, or the next in order;
    Py_ssize_t x_step                # bytes in x for one byte of the mask, for one in order
    int ndim                         # dims walked for each position
    Py_ssize_t dims[MAX_NDIM]
    Py_ssize_t x_steps[MAX_NDIM]     # bytes
    Py_ssize_t y_steps[MAX_NDIM]
    Py_ssize_t run                   # bytes moved at once, contiguous on both sides; or ...
    Py_ssize_t line                  # ... items, in x and in y so many bytes apart
    Py_ssize_t line_step, y_line_step
    int dtype

cdef enum Move:
    TAKE, PUT, ADD                   # y := x, x := y, x += y

cdef void start(Walk* walk, char* x, char* y) noexcept
cdef void add_dim(Walk* walk, Py_ssize_t size, Py_ssize_t x_step, Py_ssize_t y_step) noexcept
cdef int move(Walk* walk, Move kind, int dtype) except -1

cdef Tensor expanded(Tensor x, int ndim, const Py_ssize_t* dims)
cdef int require_writable(Tensor x) except -1

# steps := those of new memory for elements that are picked from where whole dims have these steps,
# and those of positions, `count` from `first` on, have 0.
cdef void order_as_read(int ndim, const Py_ssize_t* dims, int first, int count,
                        Py_ssize_t* steps) noexcept
