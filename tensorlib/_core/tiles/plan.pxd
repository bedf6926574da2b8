from cpython.object cimport PyObject

from tensorlib._core.base.shape cimport MAX_NDIM
from tensorlib._core.tensor.tensor cimport Tensor
from tensorlib._core.tiles.program cimport MAX_INPUTS, TileLoops

cdef enum:
    # Bytes that a tile of one value takes. With half of them, what a tile costs beside its
    # arithmetic was a fifth of the time; three of twice as many don't fit in the L1 cache.
    BUFFER_BYTES = 8192
    LEAST_BUFFERS = 6        # of a plan, whatever its size
    SHORT_ROW = 64           # rows shorter than this are gathered several to a tile

# A tensor that a program reads or writes, along the dims of the plan.
cdef struct Operand:
    char* data
    int dtype
    bint linear              # contiguous in the order of the plan
    bint scalar              # one element for all
    Py_ssize_t steps[MAX_NDIM]     # bytes

# How a program goes over its operands: in the order of the output's memory, dims merged where all
# operands allow it.
cdef struct Plan:
    const TileLoops* program
    int ndim
    Py_ssize_t tile                    # elements of one tile
    Py_ssize_t dims[MAX_NDIM]
    Operand operands[MAX_INPUTS + 1]   # the output comes last

cdef int make_plan(Plan* plan, PyObject** inputs, Tensor out) except -1

cdef inline char* place(const Operand* operand, int ndim, const Py_ssize_t* index) noexcept nogil:
    cdef char* pointer = operand.data
    cdef int d
    for d in range(ndim):
        pointer += index[d] * operand.steps[d]
    return pointer


cdef bint as_transpositions(Plan* plan) noexcept
cdef void transpose_rows(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil
cdef Py_ssize_t cost(const Plan* plan) noexcept nogil
cdef Py_ssize_t tile_of(const Plan* plan, Py_ssize_t numel) noexcept nogil

cdef inline void advance(const Plan* plan, Py_ssize_t* index, Py_ssize_t count) noexcept nogil:
    """Moves the index on by `count` elements, at most to the start of the next row."""
    cdef int d = plan.ndim - 1
    index[d] += count
    while d > 0 and index[d] == plan.dims[d]:
        index[d] = 0
        d -= 1
        index[d] += 1
