"""`glu`, the first half along a dim times the sigmoid of the second, and its gradient.

Outside autograd.

Memory is contiguous and seen as (outer, 2, n), where the two halves of each slice are rows.
"""

from libc.string cimport memcpy

from tensorlib._core.base.dtypes cimport (
    FLOAT32, FLOAT_KIND, ITEMSIZE, KIND, compute_dtype, dtype_object,
)
from tensorlib._core.base.kernels cimport find_pairs
from tensorlib._core.base.shape cimport MAX_NDIM, settled, wrap_dim
from tensorlib._core.base.work cimport share
from tensorlib._core.layout.views cimport permuted
from tensorlib._core.reduce.schedule cimport RELEASE_GIL
from tensorlib._core.tensor.tensor cimport Tensor, new_like, new_tensor
from tensorlib._core.tiles.copies cimport cast, packed

from tensorlib._core.interpreters.recording import UnsupportedDtype

cdef enum:
    PIECE = 1 << 13          # elements of a row that are done at a time

ctypedef void (*gated_fn)(const char* a, const char* b, char* y, Py_ssize_t n) noexcept nogil
ctypedef void (*backward_fn)(const char* g, const char* a, const char* b, char* da, char* db,
                             Py_ssize_t n) noexcept nogil

cdef void* forward[2]        # float32 and float64
cdef void* backward[2]
find_pairs("gated", ("gated",), forward)
find_pairs("gated", ("gated_backward",), backward)

ctypedef struct Work:
    void* loop
    const char* g
    const char* x
    char* y                  # backward: in the layout of x
    Py_ssize_t outer, n, pieces, itemsize


cdef void run_pieces(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Computes the pieces [begin, end) of all rows."""
    cdef Work* work = <Work*>context
    cdef Py_ssize_t half = work.n * work.itemsize, k, row, first, n, at, pair
    for k in range(begin, end):
        row, first = k // work.pieces, k % work.pieces * PIECE
        n = min(<Py_ssize_t>PIECE, work.n - first)
        at = row * half + first * work.itemsize
        pair = at + row * half
        if work.g == NULL:
            (<gated_fn>work.loop)(work.x + pair, work.x + pair + half, work.y + at, n)
        else:
            (<backward_fn>work.loop)(work.g + at, work.x + pair, work.x + pair + half,
                                     work.y + pair, work.y + pair + half, n)


cdef int run(Work* work, Py_ssize_t numel) except -1:
    cdef Py_ssize_t units, grain
    work.pieces = (work.n + PIECE - 1) // PIECE
    units, grain = work.outer * work.pieces, 1 + PIECE // work.n
    return share(run_pieces, work, work.y, units, grain, numel < RELEASE_GIL)


cdef int begin(Work* work, Tensor x, object dim, Py_ssize_t* dims) except -1:
    """Finds the sizes, and those of the result. Returns the dtype that is computed in."""
    cdef int along, d, dtype
    dim = settled(dim)
    dtype = compute_dtype(x.type)
    if KIND[x.type] != FLOAT_KIND:
        raise UnsupportedDtype(f"glu: takes floating-point dtypes, got {dtype_object(x.type)}")
    if x.ndim_ == 0:
        raise RuntimeError("glu: does not take tensors without dims")
    along = wrap_dim("glu", dim, x.ndim_)
    if x.dims[along] % 2:
        raise RuntimeError(f"glu: the size of dim {dim} must be even, got {x.dims[along]}")
    memcpy(dims, x.dims, x.ndim_ * sizeof(Py_ssize_t))
    dims[along] //= 2
    work.outer, work.n, work.itemsize = 1, 1, ITEMSIZE[dtype]
    for d in range(x.ndim_):
        if d < along:
            work.outer *= dims[d]
        else:
            work.n *= dims[d]
    return dtype


def gated_halves(Tensor input, dim):
    """`glu`; the dims of the result are in the order of the input's in memory."""
    cdef int order[MAX_NDIM]
    cdef int back[MAX_NDIM]
    cdef int d, k, along
    cdef bint turned = True
    if input.packed or input.ndim_ < 2:
        return halves(input, dim)
    dim = settled(dim)
    for d in range(input.ndim_):
        k = d
        while k > 0 and input.steps[order[k - 1]] < input.steps[d]:
            order[k] = order[k - 1]
            k -= 1
        order[k] = d
        turned = turned and input.steps[d] > 0
    if not turned:
        return halves(input, dim)
    along = wrap_dim("glu", dim, input.ndim_)
    for d in range(input.ndim_):
        back[order[d]] = d
    return permuted(halves(permuted(input, order), back[along]), back)


cdef Tensor halves(Tensor input, object dim):
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Work work
    cdef int dtype = begin(&work, input, dim, dims)
    cdef Tensor x = packed(cast(input, dtype)), out = new_tensor(dtype, x.ndim_, dims)
    work.loop, work.g = forward[dtype != FLOAT32], NULL
    work.x, work.y = x.data_pointer, out.data_pointer
    if out.numel_:
        run(&work, x.numel_)
    return cast(out, input.type)


def gated_backward(Tensor grad, Tensor input, dim):
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Work work
    cdef int d, dtype = begin(&work, input, dim, dims)
    cdef Tensor x = packed(cast(input, dtype)), g = packed(cast(grad, dtype))
    cdef Tensor out = new_like(x, dtype)
    if g.ndim_ != x.ndim_:
        raise RuntimeError(f"glu: a gradient of shape {tuple(grad.shape)} for {tuple(x.shape)}")
    for d in range(g.ndim_):
        if g.dims[d] != dims[d]:
            raise RuntimeError(f"glu: a gradient of shape {tuple(grad.shape)} for {tuple(x.shape)}")
    work.loop, work.g = backward[dtype != FLOAT32], g.data_pointer
    work.x, work.y = x.data_pointer, out.data_pointer
    if g.numel_:
        run(&work, x.numel_)
    return cast(out, input.type)
