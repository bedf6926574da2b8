"""Resampling along a dim, as in `interpolate`: each element is a weighted sum of others.

Outside autograd."""

from libc.stdint cimport int64_t

from tensorlib._core.base.dtypes cimport FLOAT32, FLOAT64, INT64, compute_dtype
from tensorlib._core.base.kernels cimport find_pairs
from tensorlib._core.base.shape cimport MAX_NDIM, settled, wrap_dim
from tensorlib._core.base.work cimport share
from tensorlib._core.tensor.lanes cimport gives_lanes, lanes_of, lay_lanes
from tensorlib._core.tensor.tensor cimport Tensor, new_tensor
from tensorlib._core.tiles.copies cimport laid, packed
from tensorlib._kernels.layers.resample cimport Taps

cdef enum:
    PART = 4096              # products that a thread takes at least

ctypedef void (*resample_fn)(const char* x, char* y, const Taps* taps, Py_ssize_t begin,
                             Py_ssize_t end) noexcept nogil

cdef void* loops[2][2]       # elements and rows; float32 and float64
find_pairs("resample", ("elements", "rows"), loops[0])

ctypedef struct Work:
    Taps taps
    void* loop
    const char* x
    char* y


cdef void run(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Work* work = <Work*>context
    (<resample_fn>work.loop)(work.x, work.y, &work.taps, begin, end)


def resample(Tensor input, dim, Py_ssize_t size, Tensor first, Tensor places, Tensor weights):
    """`input` with `size` elements along a dim: element i is the sum of the elements at
    places[first[i]:first[i + 1]], times their weights.

    Raises: IndexError; RuntimeError for other than floating dtypes, and for taps out of range.
    """
    dim = settled(dim)
    cdef Work work
    cdef Py_ssize_t[MAX_NDIM] dims
    cdef Py_ssize_t outer = 1, rows, d
    cdef int along, dtype = compute_dtype(input.type)
    if dtype != FLOAT32 and dtype != FLOAT64:
        raise RuntimeError(f"interpolate: takes a tensor of a floating dtype, got {input.dtype}")
    cdef bint laid_so = gives_lanes(input)
    cdef Tensor x = laid(input, dtype, laid_so), y
    cdef Py_ssize_t lanes = lanes_of(x)
    if x.ndim_ == 0:
        raise IndexError("interpolate: a tensor without dims has none to resample")
    along = wrap_dim("interpolate", dim, x.ndim_)
    work.taps.n, work.taps.count, work.taps.inner = x.dims[along], size, 1
    check_taps(&work.taps, first, places, weights)
    if lanes and along == 1:
        x, lanes = packed(x), 0
    for d in range(x.ndim_):
        dims[d] = x.dims[d]
        if lanes and d == 1 or d > along:           # the dims that are inside `along` in memory
            work.taps.inner *= x.dims[d]
        elif d < along:
            outer *= x.dims[d]
    dims[along] = size
    y = new_tensor(dtype, x.ndim_, dims)
    if lanes:
        lay_lanes(y)
    if y.numel_ == 0:
        return laid(y, input.type, laid_so)
    rows = outer if work.taps.inner == 1 else outer * size
    work.loop = loops[work.taps.inner > 1][dtype != FLOAT32]
    work.x, work.y = x.data_pointer, y.data_pointer
    share(run, &work, work.y, rows, 1 + PART * rows // (y.numel_ * (1 + places.numel_ // size)),
          False)
    return laid(y, input.type, laid_so)


cdef int check_taps(Taps* taps, Tensor first, Tensor places, Tensor weights) except -1:
    """Sets the addresses of taps, all of which are inside the dim. Raises: RuntimeError."""
    cdef Py_ssize_t i, count = taps.count
    cdef bint fits = first.type == INT64 and places.type == INT64 and weights.type == FLOAT64
    fits = fits and first.ndim_ == places.ndim_ == weights.ndim_ == 1
    fits = fits and first.numel_ == count + 1 and places.numel_ == weights.numel_
    fits = fits and packed(first) is first and packed(places) is places
    fits = fits and packed(weights) is weights
    if fits:
        taps.first, taps.places = <int64_t*>first.data_pointer, <int64_t*>places.data_pointer
        taps.weights = <double*>weights.data_pointer
        fits = taps.first[0] == 0 and taps.first[count] == places.numel_
        for i in range(count):
            fits = fits and taps.first[i] <= taps.first[i + 1]
        for i in range(places.numel_ if fits else 0):
            fits = fits and 0 <= taps.places[i] < taps.n
    if not fits:
        raise RuntimeError(f"interpolate: the taps do not fit to {taps.n} elements and {count}")
    return 0
