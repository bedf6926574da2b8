"""`grid_sample`, the bilinear or nearest lookup in images at given points, and its gradients.

Outside autograd."""

from tensorlib._core.base.dtypes cimport (
    FLOAT32, FLOAT_KIND, KIND, compute_dtype, dtype_object,
)
from tensorlib._core.base.kernels cimport find_pairs
from tensorlib._core.base.shape cimport times
from tensorlib._core.base.work cimport share
from tensorlib._core.tensor.tensor cimport Tensor, new_like, new_tensor
from tensorlib._core.tiles.copies cimport cast, packed, zero
from tensorlib._kernels.layers.grid cimport Look

cdef enum:
    PART = 1024              # points of an image that a thread samples at least
    MOST = 1 << 29           # elements of an image, so that positions just past it fit an int32

ctypedef void (*look_fn)(const char* x, const char* grid, char* y, const Look* look,
                         Py_ssize_t begin, Py_ssize_t end) noexcept nogil
ctypedef void (*back_fn)(const char* g, const char* x, const char* grid, char* dx, char* dgrid,
                         const Look* look) noexcept nogil

cdef void* loops[2][2]       # forward and back; float32 and float64
find_pairs("grid", ("look", "look_back"), loops[0])

ctypedef struct Work:
    Look look
    void* loop
    const char* g
    const char* x
    const char* grid
    char* y
    char* dgrid
    Py_ssize_t image, seen, spots    # bytes of an image, of its samples, and of its points
    Py_ssize_t parts                 # in which the points of an image are cut


cdef void run_parts(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Work* work = <Work*>context
    cdef Py_ssize_t part, image, first, size = work.look.places // work.parts + 1
    for part in range(begin, end):
        image, first = part // work.parts, part % work.parts * size
        (<look_fn>work.loop)(work.x + image * work.image, work.grid + image * work.spots,
                             work.y + image * work.seen, &work.look, first,
                             min(first + size, work.look.places))


cdef void run_back(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Work* work = <Work*>context
    cdef Py_ssize_t image
    for image in range(begin, end):
        (<back_fn>work.loop)(work.g + image * work.seen, work.x + image * work.image,
                             work.grid + image * work.spots, work.y + image * work.image,
                             work.dgrid + image * work.spots, &work.look)


MODES = {"zeros": 0, "border": 1, "reflection": 2}


cdef int begin(Work* work, Tensor input, Tensor grid, object padding, bint nearest,
               bint align) except -1:
    """Describes the images and points; returns the dtype to compute in. Raises: RuntimeError."""
    cdef int dtype = compute_dtype(input.type)
    cdef Py_ssize_t item = 4 if dtype == FLOAT32 else 8
    cdef bint fits = input.ndim_ == 4 and grid.ndim_ == 4 and padding in MODES
    fits = fits and KIND[input.type] == FLOAT_KIND and KIND[grid.type] == FLOAT_KIND
    fits = fits and grid.dims[0] == input.dims[0] and grid.dims[3] == 2
    if not fits or times(input.dims[2], input.dims[3]) >= MOST or (
            input.dims[2] < 1 or input.dims[3] < 1):
        raise RuntimeError(f"grid_sample: a grid of shape {tuple(grid.shape)} does not fit to an "
                           f"input of shape {tuple(input.shape)} and {dtype_object(input.type)}")
    work.look.channels, work.look.high, work.look.wide = (
        input.dims[1], input.dims[2], input.dims[3])
    work.look.places = grid.dims[1] * grid.dims[2]
    work.look.padding, work.look.nearest, work.look.align = MODES[padding], nearest, align
    work.image = work.look.channels * work.look.high * work.look.wide * item
    work.seen = times(times(work.look.channels, work.look.places), item)
    work.spots = work.look.places * 2 * item
    work.parts = 1 + work.look.places // PART
    return dtype


def look(Tensor input, Tensor grid, padding, bint nearest, bint align):
    """(B, C, H, W) sampled at points (B, h, w, 2): (B, C, h, w). Raises: RuntimeError."""
    cdef Work work
    cdef int dtype = begin(&work, input, grid, padding, nearest, align)
    cdef Py_ssize_t[4] dims
    cdef Py_ssize_t count
    cdef Tensor x = packed(cast(input, dtype)), places = packed(cast(grid, dtype)), y
    dims[0], dims[1], dims[2], dims[3] = x.dims[0], x.dims[1], places.dims[1], places.dims[2]
    y = new_tensor(dtype, 4, dims)
    if y.numel_ == 0:
        return cast(y, input.type)
    work.loop = loops[0][dtype != FLOAT32]
    work.x, work.grid, work.y = x.data_pointer, places.data_pointer, y.data_pointer
    count = x.dims[0] * work.parts
    share(run_parts, &work, work.y, count, 1 + 2 * PART // (work.look.places + 1), False)
    return cast(y, input.type)


def look_back(Tensor grad, Tensor input, Tensor grid, padding, bint nearest, bint align):
    """The gradients of `look` for its images and its points. Raises: RuntimeError."""
    cdef Work work
    cdef int dtype = begin(&work, input, grid, padding, nearest, align)
    cdef Tensor g = packed(cast(grad, dtype)), x = packed(cast(input, dtype))
    cdef Tensor places = packed(cast(grid, dtype)), dx = new_like(x, dtype)
    cdef Tensor dgrid = new_like(places, dtype)
    cdef Py_ssize_t images = x.dims[0]
    if g.ndim_ != 4 or g.dims[0] != images or g.dims[1] != x.dims[1] or (
            g.dims[2] != places.dims[1] or g.dims[3] != places.dims[2]):
        raise RuntimeError(f"grid_sample: a gradient of shape {tuple(grad.shape)} does not fit to "
                           f"a grid of shape {tuple(grid.shape)}")
    zero(dx)
    zero(dgrid)
    if g.numel_:
        work.loop = loops[1][dtype != FLOAT32]
        work.g, work.x, work.grid = g.data_pointer, x.data_pointer, places.data_pointer
        work.y, work.dgrid = dx.data_pointer, dgrid.data_pointer
        share(run_back, &work, work.y, images, 1 + PART // (work.look.places + 1), False)
    return cast(dx, input.type), cast(dgrid, grid.type)
