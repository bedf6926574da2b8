"""`group_norm`, and the affine map of channels (scale and shift). Outside autograd.

Tensors are (B, C, *) with vectors of C elements. A gradient is one kernel, which leaves those of
the vectors by each example; they are summed here. Half types are computed in float32.
"""

from tensorlib._core.base.dtypes cimport FLOAT32, FLOAT_KIND, KIND, compute_dtype, dtype_object
from tensorlib._core.base.kernels cimport find_pairs
from tensorlib._core.base.work cimport share
from tensorlib._core.reduce.arrange cimport fold
from tensorlib._core.reduce.schedule cimport RELEASE_GIL, SUM
from tensorlib._core.tensor.lanes cimport gives_lanes, lay_lanes
from tensorlib._core.tensor.tensor cimport Tensor, new_like, new_tensor, same_shape
from tensorlib._core.tiles.copies cimport cast, laid, packed, zero

from tensorlib._core.interpreters.recording import UnsupportedDtype

cdef enum:
    PIECE = 1 << 14      # elements in a piece of work

ctypedef struct Planes:
    Py_ssize_t channels, together, inner     # of an example, of a group; elements of a channel
    double eps

ctypedef void (*forward_fn)(const char* x, const char* w, const char* b, char* y,
                            const Planes* planes, Py_ssize_t begin, Py_ssize_t end) noexcept nogil
ctypedef void (*backward_fn)(const char* g, const char* x, const char* w, char* y, char* dw,
                             char* db, const Planes* planes, Py_ssize_t begin,
                             Py_ssize_t end) noexcept nogil

cdef enum Kind:
    GROUPS
    GROUPS_BACKWARD
    SCALED
    SCALED_BACKWARD
    KINDS

cdef void* loops[KINDS][2]                   # float32 and float64
find_pairs("grouped", ("groups", "groups_backward", "scaled", "scaled_backward"), loops[0])

ctypedef struct Work:
    void* loop
    bint back
    const char* g
    const char* x
    const char* w
    const char* b
    char* y
    char* dw
    char* db
    Planes planes


cdef void run_range(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Work* work = <Work*>context
    if work.back:
        (<backward_fn>work.loop)(work.g, work.x, work.w, work.y, work.dw, work.db, &work.planes,
                                 begin, end)
    else:
        (<forward_fn>work.loop)(work.x, work.w, work.b, work.y, &work.planes, begin, end)


cdef int run(Work* work, Py_ssize_t numel) except -1:
    """All groups of all examples, shared among threads where they are many."""
    cdef Py_ssize_t size = work.planes.together * work.planes.inner
    return share(run_range, work, work.y, numel // size, 1 + PIECE // size, numel < RELEASE_GIL)


cdef int begin(Work* work, str name, Kind kind, Tensor x, Tensor w, Py_ssize_t groups) except -1:
    """Finds the loop and the sizes. Returns the dtype that is computed in. Raises: RuntimeError."""
    cdef int d, dtype
    if KIND[x.type] != FLOAT_KIND:
        raise UnsupportedDtype(f"{name}: takes floating-point dtypes, got {dtype_object(x.type)}")
    if x.ndim_ < 2 or w.ndim_ != 1 or w.dims[0] != x.dims[1]:
        raise RuntimeError(f"{name}: a weight of shape {tuple(w.shape)} does not fit to an input "
                           f"of shape {tuple(x.shape)}")
    if groups < 1 or x.dims[1] % groups:
        raise RuntimeError(f"{name}: {groups} groups of {x.dims[1]} channels")
    dtype = compute_dtype(x.type)
    work.loop = loops[<int>kind][dtype != FLOAT32]
    work.back = kind == GROUPS_BACKWARD or kind == SCALED_BACKWARD
    work.planes.channels, work.planes.together = x.dims[1], x.dims[1] // groups
    work.planes.inner = 1
    for d in range(2, x.ndim_):
        work.planes.inner *= x.dims[d]
    return dtype


cdef int check_alike(str name, Tensor a, Tensor b) except -1:
    if not same_shape(a, b):
        raise RuntimeError(f"{name}: shapes differ: {tuple(a.shape)} and {tuple(b.shape)}")
    return 0


cdef Tensor forward(Work* work, int dtype, Tensor input, Tensor weight, Tensor bias,
                    bint scaled):
    """`scaled`: nothing is summed up, so that the places of images whose channels lie beside each
    other are examples."""
    cdef bint lanes = gives_lanes(input)
    scaled = scaled and lanes
    cdef Tensor x = laid(input, dtype, scaled)
    cdef Tensor w = packed(cast(weight, dtype)), b = packed(cast(bias, dtype))
    cdef Tensor out = new_like(x, dtype)
    if scaled:
        lay_lanes(out)
        work.planes.inner = 1
    if out.numel_:
        work.x, work.w = x.data_pointer, w.data_pointer
        work.b, work.y = b.data_pointer, out.data_pointer
        run(work, x.numel_)
    return laid(out, input.type, lanes)


cdef tuple backward(Work* work, int dtype, Tensor grad, Tensor input, Tensor weight):
    """The gradients of the input, the weight and the bias."""
    cdef Tensor x = packed(cast(input, dtype)), w = packed(cast(weight, dtype))
    cdef Tensor g = packed(cast(grad, dtype)), out = new_like(x, dtype)
    cdef Tensor by_weight = new_tensor(dtype, 2, x.dims), by_bias = new_tensor(dtype, 2, x.dims)
    cdef int first = 0
    if out.numel_:
        work.g, work.x, work.w = g.data_pointer, x.data_pointer, w.data_pointer
        work.y, work.dw, work.db = out.data_pointer, by_weight.data_pointer, by_bias.data_pointer
        run(work, x.numel_)
    else:
        zero(by_weight)
        zero(by_bias)
    return (laid(out, input.type, gives_lanes(input)),
            cast(fold(SUM, by_weight, 1, &first, False, dtype), weight.type),
            cast(fold(SUM, by_bias, 1, &first, False, dtype), weight.type))


def group_affine(Tensor input, Tensor weight, Tensor bias, Py_ssize_t groups, double eps):
    """The elements of each group of channels, normalised, times the weight plus the bias."""
    cdef Work work
    cdef int dtype = begin(&work, "group_affine", GROUPS, input, weight, groups)
    check_alike("group_affine", weight, bias)
    work.planes.eps = eps
    return forward(&work, dtype, input, weight, bias, False)


def group_backward(Tensor grad, Tensor input, Tensor weight, Py_ssize_t groups, double eps):
    cdef Work work
    cdef int dtype = begin(&work, "group_backward", GROUPS_BACKWARD, input, weight, groups)
    check_alike("group_backward", grad, input)
    work.planes.eps = eps
    return backward(&work, dtype, grad, input, weight)


def channel_affine(Tensor input, Tensor weight, Tensor bias):
    """The elements times the weight plus the bias of their channel; channels-last stays so."""
    cdef Work work
    cdef int dtype = begin(&work, "channel_affine", SCALED, input, weight, 1)
    check_alike("channel_affine", weight, bias)
    work.planes.together = 1
    return forward(&work, dtype, input, weight, bias, True)


def channel_backward(Tensor grad, Tensor input, Tensor weight):
    cdef Work work
    cdef int dtype = begin(&work, "channel_backward", SCALED_BACKWARD, input, weight, 1)
    check_alike("channel_backward", grad, input)
    work.planes.together = 1
    return backward(&work, dtype, grad, input, weight)
