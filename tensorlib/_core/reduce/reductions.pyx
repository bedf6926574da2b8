"""The reductions of tensors: over which dims, in which dtype, and what an empty one gives.

All of it is outside autograd. Half types are computed in float32. Integers are summed and
multiplied in int64, as in PyTorch.
"""

from libc.stdint cimport int64_t
from libc.string cimport memcpy

from tensorlib._core.base.dtypes cimport (
    BOOL, FLOAT_KIND, INT64, ITEMSIZE, KIND, UINT8, compute_dtype, dtype_id, dtype_object,
)
from tensorlib._core.base cimport watch
from tensorlib._core.base.epochs cimport work_begins, work_ends
from tensorlib._core.base.shape cimport MAX_NDIM, parse_dims, parse_shape, settled, wrap_dim
from tensorlib._core.base.watch cimport watched
from tensorlib._core.base.work cimport run_alone
from tensorlib._core.graph.modes cimport mode
from tensorlib._core.reduce.arrange cimport (
    arrange, check_status, expand_over, fills, fold, fold_to, new_reduced, reduced_dims, reducible,
)
from tensorlib._core.reduce.masks cimport count_nonzero as count_in
from tensorlib._core.reduce.schedule cimport (
    ALL, ANY, ARGMAX, ARGMIN, MAX, MIN, NANSUM, PROD, RELEASE_GIL, SQUARES, SUM, index_run,
    reduced_in, scan_run,
)
from tensorlib._core.reduce.squares cimport divide, finish_squares
from tensorlib._core.reduce.permuted cimport Turned, turn, turn_back
from tensorlib._core.reduce.unsigned cimport signed_order, restored
from tensorlib._core.tensor.tensor cimport (
    Tensor, alias, new_like, new_tensor, requires_grad, same_shape,
)
from tensorlib._core.tiles.copies cimport arranged_copy, cast, packed, zero

from tensorlib._core.base.formats import contiguous_format
from tensorlib._core.interpreters.recording import UnsupportedDtype


# ---- which dims ----------------------------------------------------------------------------------

cdef int chosen_dims(str name, object dim, Tensor x, int* dims) except -1:
    """Writes the dims to reduce, ascending; returns their number. None and () mean all."""
    cdef int d
    if dim is None:
        for d in range(x.ndim_):
            dims[d] = d
        return x.ndim_
    if dim is True or dim is False:
        raise TypeError(f"{name}: dim must be an int or a sequence of ints, got {dim}")
    dim = settled(dim)
    return parse_dims(name, dim, x.ndim_, dims)


cdef int single_dim(str name, object dim, Tensor x, int* dims) except -1:
    """`chosen_dims`, for reductions over one dim or all."""
    if isinstance(dim, (tuple, list)):
        raise TypeError(f"{name}: dim must be one int, got {dim}")
    return chosen_dims(name, dim, x, dims)


cdef int refuse_empty(str name, Tensor x, object dim, int n, const int* dims,
                      object kind) except -1:
    """Raises where an extreme would be chosen from no elements; `kind` if all dims are meant."""
    cdef int k
    if x.numel_:
        return 0
    if dim is None or n == 0:
        raise kind(f"{name}: a tensor with no elements, of shape {tuple(x.shape)}, needs a dim")
    for k in range(n):
        if x.dims[dims[k]] == 0:
            raise IndexError(
                f"{name}: dim {dims[k]} has size 0, so there is nothing to choose from")
    return 0


# ---- sums and products ---------------------------------------------------------------------------

cdef Tensor accumulated(str name, int kind, Tensor x, int n, const int* dims, bint keepdim,
                        object dtype):
    """The sum or product, as `dtype` or (None) as the dtype that PyTorch gives."""
    cdef int result, computed
    cdef Turned turned
    if dtype is not None:
        result = dtype_id(dtype)
    else:
        result = x.type if KIND[x.type] >= FLOAT_KIND else INT64
    computed = compute_dtype(result) if KIND[result] >= FLOAT_KIND else INT64
    if dtype is not None:
        x = cast(x, result)
    x = turn(&turned, x, n, dims)
    x = fold(kind, reducible(kind, x, computed), n, turned.dims, keepdim or turned.is_turned,
             computed)
    return cast(turn_back(&turned, x, keepdim), result)


def sum(Tensor input, dim=None, bint keepdim=False, dtype=None):
    cdef int dims[MAX_NDIM]
    cdef int n = chosen_dims("sum", dim, input, dims)
    return accumulated("sum", SUM, input, n, dims, keepdim, dtype)


def nansum(Tensor input, dim=None, bint keepdim=False, dtype=None):
    cdef int dims[MAX_NDIM]
    cdef int n = chosen_dims("nansum", dim, input, dims)
    cdef int result = input.type if dtype is None else dtype_id(dtype)
    return accumulated("nansum", NANSUM if KIND[result] == FLOAT_KIND else SUM, input, n, dims,
                       keepdim, dtype)


def count_nonzero(Tensor input, dim=None):
    cdef Tensor out
    if dim is None and input.packed:
        out = new_tensor(INT64, 0, NULL)
        count_in(input, <int64_t*>out.data_pointer)
        return out
    return sum(input if input.type == BOOL else arranged_copy(input, BOOL), dim)


def prod(Tensor input, dim=None, bint keepdim=False, dtype=None):
    cdef int dims[MAX_NDIM]
    cdef int n = single_dim("prod", dim, input, dims)
    return accumulated("prod", PROD, input, n, dims, keepdim, dtype)


cdef int floating_result(str name, Tensor x, object dtype) except -1:
    cdef int result = inexact_result(name, x, dtype)
    if KIND[result] != FLOAT_KIND:
        raise UnsupportedDtype(f"{name}: not implemented for {dtype_object(result)}")
    return result


cdef int inexact_result(str name, Tensor x, object dtype) except -1:
    """The dtype of the result. Raises RuntimeError unless it is a floating or a complex one."""
    cdef int result = x.type if dtype is None else dtype_id(dtype)
    if KIND[result] < FLOAT_KIND:
        raise UnsupportedDtype(f"{name}: takes floating-point dtypes, got {dtype_object(result)}")
    return result


cdef Py_ssize_t elements(Tensor x, int n, const int* dims) noexcept:
    """How many elements of `x` go into one result."""
    cdef Py_ssize_t product = 1
    cdef int k
    for k in range(n):
        product *= x.dims[dims[k]]
    return product


def mean(Tensor input, dim=None, bint keepdim=False, dtype=None):
    cdef int dims[MAX_NDIM]
    cdef int n = chosen_dims("mean", dim, input, dims)
    cdef int result = inexact_result("mean", input, dtype)
    cdef int computed = compute_dtype(result)
    cdef Turned turned
    cdef Tensor x = reducible(SUM, turn(&turned, input, n, dims), computed)
    cdef Tensor out = fold(SUM, x, n, turned.dims, keepdim or turned.is_turned, computed)
    divide(out, elements(x, n, turned.dims))
    return cast(turn_back(&turned, out, keepdim), result)


def cumsum(Tensor input, dim, dtype=None):
    cdef int along, d, result, computed, status, epoch
    cdef Py_ssize_t sizes[3]
    cdef Tensor source, out
    cdef const char* from_
    cdef char* to
    dim = settled(dim)
    along = wrap_dim("cumsum", dim, input.ndim_)
    result = input.type if KIND[input.type] >= FLOAT_KIND else INT64
    if dtype is not None:
        result = dtype_id(dtype)
    computed = compute_dtype(result) if KIND[result] >= FLOAT_KIND else INT64
    source = packed(cast(input, computed))
    out = new_like(source, computed) if source is input else source
    sizes[0] = sizes[1] = sizes[2] = 1
    for d in range(source.ndim_):        # not of the input, which may have other memory by now
        sizes[1 + (d > along) - (d < along)] *= source.dims[d]
    from_, to = source.data_pointer, out.data_pointer
    epoch = work_begins()
    with nogil:
        status = scan_run(computed, from_, to, sizes[0], sizes[1], sizes[2])
    work_ends(epoch)
    check_status(status, input)
    return cast(out, result)


# ---- variance ------------------------------------------------------------------------------------

cdef Tensor variance(str name, Tensor input, object dim, double correction, bint keepdim,
                     bint root):
    """The variance, or its root, in the dtype of the input. One pass finds the mean, another sums
    the squared distances from it."""
    cdef int dims[MAX_NDIM]
    cdef Py_ssize_t sizes[5]
    cdef int n = chosen_dims(name, dim, input, dims)
    cdef int dtype = compute_dtype(floating_result(name, input, None))
    cdef Turned turned
    cdef Tensor x = reducible(SQUARES, turn(&turned, input, n, dims), dtype)
    cdef Tensor out = new_reduced(x, n, turned.dims, keepdim or turned.is_turned, dtype)
    cdef Tensor center = new_like(out, dtype)
    cdef Tensor source = arrange(SQUARES, x, n, turned.dims, sizes)
    cdef double freedom = sizes[1] - correction
    if out.numel_:
        source = held(source, input)
        fold_to(SUM, source, NULL, sizes, center)
        divide(center, sizes[1])
        fold_to(SQUARES, source, center.data_pointer, sizes, out)
        finish_squares(source, center, sizes, freedom if freedom > 0 else 0.0, root, True, out)
    return cast(turn_back(&turned, out, keepdim), input.type)


cdef inline Tensor held(Tensor source, Tensor input):
    """`source` as a tensor of our own, which no other thread can give other memory between passes.
    """
    return alias(source) if source is input and source.numel_ >= RELEASE_GIL else source


def var(Tensor input, dim, correction, bint keepdim):
    return variance("var", input, dim, correction, keepdim, False)


def std(Tensor input, dim, correction, bint keepdim):
    return variance("std", input, dim, correction, keepdim, True)


def euclidean_norm(Tensor input, dim, bint keepdim):
    """The square roots of sums of squares."""
    cdef int dims[MAX_NDIM]
    cdef Py_ssize_t sizes[5]
    cdef int n = chosen_dims("norm", dim, input, dims)
    cdef int dtype = compute_dtype(floating_result("norm", input, None))
    cdef Turned turned
    cdef Tensor x = reducible(SQUARES, turn(&turned, input, n, dims), dtype)
    cdef Tensor out = new_reduced(x, n, turned.dims, keepdim or turned.is_turned, dtype)
    cdef Tensor center = new_like(out, dtype)
    cdef Tensor source = held(arrange(SQUARES, x, n, turned.dims, sizes), input)
    if out.numel_:
        zero(center)
        fold_to(SQUARES, source, center.data_pointer, sizes, out)
        finish_squares(source, center, sizes, 1, True, False, out)
    return cast(turn_back(&turned, out, keepdim), input.type)


# ---- extremes ------------------------------------------------------------------------------------

cdef Tensor extreme(str name, int kind, Tensor input, object dim, bint keepdim):
    cdef int dims[MAX_NDIM]
    cdef int n = chosen_dims(name, dim, input, dims)
    cdef Turned turned
    cdef Tensor x = signed_order(input)
    refuse_empty(name, x, dim, n, dims, RuntimeError)
    x = turn(&turned, x, n, dims)
    x = fold(kind, x, n, turned.dims, keepdim or turned.is_turned, reduced_in(kind, x.type))
    return cast(restored(turn_back(&turned, x, keepdim), input.type), input.type)


def amax(Tensor input, dim=None, bint keepdim=False):
    return extreme("amax", MAX, input, dim, keepdim)


def amin(Tensor input, dim=None, bint keepdim=False):
    return extreme("amin", MIN, input, dim, keepdim)


cdef tuple extreme_at(str name, int kind, Tensor input, object dim, bint keepdim):
    """The extreme values and the first place of each, along one dim or among all elements."""
    cdef int dims[MAX_NDIM]
    cdef Py_ssize_t sizes[5]
    cdef int n = single_dim(name, dim, input, dims), status = 0
    cdef int dtype = UINT8 if input.type == BOOL else compute_dtype(input.type)   # 0 and 1 alone
    cdef Tensor x = signed_order(cast(input, dtype)), values, places
    cdef const char* data
    cdef char* to
    cdef int64_t* at
    cdef int epoch
    dtype = x.type
    refuse_empty(name, x, dim, n, dims, IndexError)
    values = new_reduced(x, n, dims, keepdim, dtype)
    places = new_like(values, INT64)
    if dim is None:                        # places count in row-major order
        x = packed(x)
        sizes[0], sizes[1], sizes[2] = 1, x.numel_, 1
        sizes[3], sizes[4] = x.numel_, 1
    else:
        x = arrange(ARGMAX, x, n, dims, sizes)
    if values.numel_:
        data, to, at = x.data_pointer, values.data_pointer, <int64_t*>places.data_pointer
        if sizes[0] * sizes[1] * sizes[2] < RELEASE_GIL:
            status = index_run(kind, dtype, data, to, at, sizes)
        else:
            epoch = work_begins()
            with nogil:
                status = index_run(kind, dtype, data, to, at, sizes)
            work_ends(epoch)
        check_status(status, x)
    return cast(restored(values, input.type), input.type), places


def extreme_along(str name, Tensor input, dim, bint keepdim):
    """The values and places of `max` or `min` along a dim."""
    return extreme_at(name, ARGMAX if name == "max" else ARGMIN, input, dim, keepdim)


cdef Tensor place(str name, int kind, Tensor input, object dim, bint keepdim):
    if input.type == BOOL:
        raise RuntimeError(f"{name}: does not take {input.dtype}")
    return extreme_at(name, kind, input, dim, keepdim)[1]


def argmax(Tensor input, dim=None, bint keepdim=False):
    return place("argmax", ARGMAX, input, dim, keepdim)


def argmin(Tensor input, dim=None, bint keepdim=False):
    return place("argmin", ARGMIN, input, dim, keepdim)


def put_along(Tensor x, Tensor places, dim, Py_ssize_t size):
    """Zeros of `size` along `dim`, with each element of `x` at its own one of `places`."""
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Put put
    cdef Tensor source, where_to, out
    cdef int along, d
    dim = settled(dim)
    along = wrap_dim("put_along", dim, x.ndim_)
    source, where_to = packed(x), packed(cast(places, INT64))
    if not same_shape(source, where_to):
        raise RuntimeError(f"put_along: elements {tuple(x.shape)}, places {tuple(places.shape)}")
    put.outer = put.inner = 1
    for d in range(x.ndim_):
        dims[d] = size if d == along else x.dims[d]
        if d < along:
            put.outer *= x.dims[d]
        elif d > along:
            put.inner *= x.dims[d]
    if x.dims[along] != 1 if x.ndim_ else size != 1:
        raise RuntimeError(f"put_along: elements of shape {tuple(x.shape)} can't be put along dim "
                           f"{dim} of size {size}: they have one for each place")
    out = new_tensor(x.type, x.ndim_, dims)
    zero(out)
    put.at, put.x, put.y = <int64_t*>where_to.data_pointer, source.data_pointer, out.data_pointer
    put.size, put.width, put.failed = size, ITEMSIZE[x.type], False
    run_alone(put_all, &put, put.y, put.outer)
    if put.failed:
        raise IndexError(f"put_along: place {put.wrong} is out of bounds for size {size}; the "
                         "places were written after they were found")
    return out


cdef struct Put:
    const volatile int64_t* at           # read once each, as another thread may write to them
    const char* x
    char* y
    Py_ssize_t outer, inner, size, width
    Py_ssize_t wrong                     # the place out of range, if one was found
    bint failed


cdef void put_all(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """y[o, at, j] := x[o, j], up to the first place that is out of range"""
    cdef Put* put = <Put*>context
    cdef Py_ssize_t o, j, place, width = put.width
    for o in range(begin, end):
        for j in range(put.inner):
            place = put.at[o * put.inner + j]
            if not 0 <= place < put.size:
                put.wrong, put.failed = place, True
                return
            memcpy(put.y + ((o * put.size + place) * put.inner + j) * width,
                   put.x + (o * put.inner + j) * width, width)


# ---- any and all ---------------------------------------------------------------------------------

cdef Tensor truth(str name, int kind, Tensor x, object dim, bint keepdim):
    """any or all. As in PyTorch, uint8 gives uint8, and without dims elements stay as they are."""
    cdef int dims[MAX_NDIM]
    cdef int n = 0
    if not (isinstance(dim, (tuple, list)) and len(dim) == 0):
        n = chosen_dims(name, dim, x, dims)
    return fold(kind, x if x.type == BOOL else arranged_copy(x, BOOL), n, dims, keepdim,
                UINT8 if x.type == UINT8 else BOOL)


def any(Tensor input, dim=None, bint keepdim=False):
    return truth("any", ANY, input, dim, keepdim)


def all(Tensor input, dim=None, bint keepdim=False):
    return truth("all", ALL, input, dim, keepdim)


# ---- gradients -----------------------------------------------------------------------------------

def expand_reduced(object g, input_shape, dim, bint keepdim):
    """`g`, of the shape of a result, expanded to the shape that was reduced: a sum's gradient."""
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef int reduced[MAX_NDIM]
    cdef int ndim = parse_shape("sum", input_shape, dims), d, n
    cdef bint filled = False
    n = reduced_dims(dim, ndim, reduced)
    if isinstance(g, Tensor) and not (mode().grad and requires_grad(<Tensor>g)):
        if not watched & watch.INTERPRETERS:             # else these note the operations
            return expand_over(<Tensor>g, ndim, dims, n, reduced, keepdim)
        filled = fills(ndim, dims, n)
    for d in range(n):
        dims[reduced[d]] = 1
    if not keepdim:
        g = g.reshape([dims[d] for d in range(ndim)])
    g = g.expand(input_shape)
    return g.clone(memory_format=contiguous_format) if filled else g


def grad_of_mean(g, input_shape, dim, bint keepdim):
    """The gradient of a sum, divided by the number of elements in each mean."""
    cdef Py_ssize_t total = 1, means = g.numel()
    for size in input_shape:
        total *= size
    return expand_reduced(g / (total // means) if total and means else g, input_shape, dim,
                          keepdim)
