"""softmax, log_softmax and logsumexp of tensors, by rows or by columns. Outside autograd.

Half types are computed in float32. For complex numbers there is only logsumexp.
"""

from cpython.object cimport PyObject
from libc.string cimport memcpy

from tensorlib._core.base.dtypes cimport (
    COMPLEX_KIND, FLOAT_KIND, ITEMSIZE, KIND, compute_dtype, default_float, dtype_object,
)
from tensorlib._core.base.epochs cimport work_begins, work_ends
from tensorlib._core.base.shape cimport MAX_NDIM, settled, wrap_dim
from tensorlib._core.base.upcalls cimport REAL_PART, TO, registered
from tensorlib._core.reduce.arrange cimport arrange, fold, new_reduced, reduced_last
from tensorlib._core.reduce.by_cast cimport BLOCK
from tensorlib._core.reduce.column_softmax cimport columns_run, fits_columns
from tensorlib._core.reduce.reductions cimport chosen_dims, floating_result
from tensorlib._core.reduce.schedule cimport (
    LOGSUMEXP, LOG_SOFTMAX, LOG_SOFTMAX_BACKWARD, MAX, RELEASE_GIL, SOFTMAX, SOFTMAX_BACKWARD, SUM,
    rows_run,
)
from tensorlib._core.tensor.tensor cimport Tensor, alias, new_like, same_shape
from tensorlib._core.tiles.copies cimport cast, packed
from tensorlib._core.tiles.program cimport TileProgram
from tensorlib._core.tiles.run cimport run_program


cdef enum:
    LONG = 32                # elements of a contiguous run along the dim that needs no copy
    SIDE_BY_SIDE = 16        # columns that are worth the loops for columns
    MOST_ROWS = 16384        # of a tile, so that its scratch memory stays small


def logsumexp(Tensor input, dim, bint keepdim=False):
    cdef int dims[MAX_NDIM]
    cdef Py_ssize_t sizes[5]
    cdef int n = chosen_dims("logsumexp", dim, input, dims)
    if KIND[input.type] == COMPLEX_KIND:
        return complex_log_of_sums(input, n, dims, keepdim)
    cdef int result = input.type if KIND[input.type] == FLOAT_KIND else default_float()
    cdef Tensor x = cast(input, compute_dtype(result))
    cdef Tensor out = new_reduced(x, n, dims, keepdim, x.type)
    cdef Tensor source = arrange(SUM, x, n, dims, sizes)
    if sizes[2] >= SIDE_BY_SIDE and 0 < sizes[0] * sizes[1] and sizes[1] <= MOST_ROWS:
        run_columns(LOGSUMEXP, alias(source), None, out, sizes, x.type)
    elif out.numel_:
        if sizes[2] != 1 or sizes[0] != 1 and sizes[3] != sizes[1]:
            source = reduced_last(x, n, dims, sizes)
        run_rows(LOGSUMEXP, source, None, out, sizes[0], sizes[1])
    return cast(out, result)


cdef Tensor complex_log_of_sums(Tensor x, int n, const int* dims, bint keepdim):
    """logsumexp of complex numbers, shifted by the largest real part unless that is infinite."""
    cdef Tensor real, shift, total, out = new_reduced(x, n, dims, keepdim, x.type)
    x = alias(x)
    if x.numel_ == 0:
        return apply(logarithm, out, fold(SUM, x, n, dims, keepdim, x.type), None)
    real = registered(REAL_PART)(x.detach())
    shift = fold(MAX, real, n, dims, True, real.type)
    shift = cast(apply(finite_or_zero, new_like(shift, shift.type), shift, None), x.type)
    total = apply(difference, new_like(x, x.type), x, shift)
    total = fold(SUM, apply(exponential, total, total, None), n, dims, True, x.type)
    total = apply(addition, new_like(total, x.type), apply(logarithm, total, total, None), shift)
    memcpy(out.data_pointer, total.data_pointer, out.numel_ * ITEMSIZE[x.type])
    return out


cdef int run_rows(int kind, Tensor x, Tensor g, Tensor out, Py_ssize_t rows,
                  Py_ssize_t n) except -1:
    """out := what the kind says of the rows of `x`; with `g` the gradient, where `x` is the result.
    """
    cdef const char* from_ = x.data_pointer
    cdef const char* grad = NULL if g is None else g.data_pointer
    cdef char* to = out.data_pointer
    cdef int dtype = x.type, epoch
    if x.numel_ < RELEASE_GIL:
        rows_run(kind, dtype, grad, from_, to, rows, n)
        return 0
    epoch = work_begins()
    with nogil:
        rows_run(kind, dtype, grad, from_, to, rows, n)
    return work_ends(epoch)


cdef bint near_columns(Tensor x, int along) noexcept:
    """Whether columns along a dim other than the last lie side by side in memory, or each in a long
    run. Others are read up to four times as slowly as a contiguous copy of them."""
    return x.steps[x.ndim_ - 1] == 1 or x.steps[along] == 1 and x.dims[along] >= LONG


cdef Tensor by_rows(str name, int kind, int back_kind, Tensor input, Tensor grad, object dim,
                    int result):
    """softmax or log_softmax of `input`; with `grad` the gradient, where `input` is the result."""
    cdef int along, dtype = compute_dtype(result)
    if grad is not None and (not same_shape(grad, input) or KIND[result] != FLOAT_KIND):
        raise RuntimeError(
            f"{name}_backward: expects a floating result and a gradient of its shape, got "
            f"{dtype_object(result)} of {tuple(input.shape)} and {tuple(grad.shape)}")
    cdef Tensor x, y
    cdef Py_ssize_t n, outer
    cdef int d
    dim = settled(dim)
    along = wrap_dim(name, dim, input.ndim_)
    n = input.dims[along] if input.ndim_ else 1
    if along < input.ndim_ - 1:
        outer = 1
        for d in range(along):
            outer *= input.dims[d]
        if input.type == result and (grad is None or grad.type == result) and (
                input.numel_ and fits_columns(input.numel_ // outer, n)):
            return by_tiles(kind if grad is None else back_kind, alias(packed(input)),
                            None if grad is None else alias(packed(grad)), outer, n, dtype)
        x = cast(input, dtype)
        x = alias(x if near_columns(x, along) else packed(x))
        return cast(by_columns(kind, x, None if grad is None else alias(cast(grad, dtype)), along),
                    result)
    if 0 < n <= BLOCK and input.type == result and (grad is None or grad.type == result):
        dtype = result                       # `rows_run` casts half types itself
    x = packed(cast(input, dtype))
    y = new_like(x, dtype)
    if y.numel_ and grad is None:
        run_rows(kind, x, None, y, x.numel_ // n, n)
    elif y.numel_:
        run_rows(back_kind, x, packed(cast(grad, dtype)), y, x.numel_ // n, n)
    return cast(y, result)


cdef Tensor by_tiles(int kind, Tensor x, Tensor g, Py_ssize_t outer, Py_ssize_t n, int computed):
    """What `by_rows` gives, for contiguous tensors of shape (outer, n, ...)."""
    cdef Tensor y = new_like(x, x.type)
    cdef Py_ssize_t inner = x.numel_ // outer // n
    cdef Py_ssize_t* sizes = [outer, n, inner, n * inner, inner]
    run_columns(kind, x, g, y, sizes, computed)
    return y


cdef int run_columns(int kind, Tensor x, Tensor g, Tensor y, const Py_ssize_t* sizes,
                     int computed) except -1:
    """y := what the kind says of the columns of `x`; the sizes are those that `arrange` writes."""
    cdef const char* from_ = x.data_pointer
    cdef const char* grad = NULL if g is None else g.data_pointer
    cdef char* to = y.data_pointer
    cdef int epoch, failed, dtype = x.type
    epoch = work_begins()
    with nogil:
        failed = columns_run(kind, dtype, computed, from_, grad, to, sizes[0], sizes[1], sizes[2],
                             sizes[3], sizes[4])
    work_ends(epoch)
    if failed:
        raise MemoryError(
            f"{'logsumexp' if kind == LOGSUMEXP else 'softmax'}: no memory for columns")
    return 0


# Along other dims than the last, large slices take one step after the other, each over the whole
# tensor. To copy them with the dims exchanged, so as to have rows, took more than twice as long for
# 1000 x 1000 float32, and programs of two steps took 1.5 times as long for 256 x 256.
cdef TileProgram difference = TileProgram(2, [("sub", (0, 1))])
cdef TileProgram product = TileProgram(2, [("mul", (0, 1))])
cdef TileProgram quotient = TileProgram(2, [("div", (0, 1))])
cdef TileProgram exponential = TileProgram(1, [("exp", (0,))])
cdef TileProgram logarithm = TileProgram(1, [("log", (0,))])
cdef TileProgram addition = TileProgram(2, [("add", (0, 1))])
cdef TileProgram finite_or_zero = TileProgram(
    1, [("sub", (0, 0)), ("eq", (2, 1)), ("where", (3, 0, 1))], [0.0])


cdef Tensor by_columns(int kind, Tensor x, Tensor g, int dim):
    """What `by_rows` gives, along a dim that is not the last.

    x, g: tensors of our own, since another thread could give a caller's tensor other memory between
    two steps.
    """
    cdef Tensor y = new_like(x, x.type), exps, total
    if y.numel_ == 0:
        return y
    if g is not None:
        if kind == SOFTMAX:
            total = fold(SUM, apply(product, y, g, x), 1, &dim, True, x.type)
            return apply(product, y, apply(difference, y, g, total), x)
        total = fold(SUM, g, 1, &dim, True, x.type)
        apply(product, y, apply(exponential, y, x, None), total)
        return apply(difference, y, g, y)
    apply(difference, y, x, fold(MAX, x, 1, &dim, True, x.type))
    exps = y if kind == SOFTMAX else new_like(x, x.type)
    total = fold(SUM, apply(exponential, exps, y, None), 1, &dim, True, x.type)
    if kind == SOFTMAX:
        return apply(quotient, y, y, total)
    return apply(difference, y, y, apply(logarithm, total, total, None))


cdef Tensor apply(TileProgram program, Tensor out, Tensor a, Tensor b):
    """out := program(a, b), or program(a)."""
    cdef PyObject* inputs[2]
    inputs[0], inputs[1] = <PyObject*>a, <PyObject*>b
    run_program(program.at(out.type), inputs, out)
    return out


cdef Tensor real_parts(Tensor x, int result):
    """`x`, or the real parts of complex numbers in this dtype, with the warning that `to` gives."""
    if KIND[x.type] != COMPLEX_KIND:
        return x
    return registered(TO)(x.detach(), dtype_object(result))


def softmax(Tensor input, dim, dtype=None):
    cdef int result = floating_result("softmax", input, dtype)
    return by_rows("softmax", SOFTMAX, SOFTMAX_BACKWARD, real_parts(input, result), None, dim,
                   result)


def log_softmax(Tensor input, dim, dtype=None):
    cdef int result = floating_result("log_softmax", input, dtype)
    return by_rows("log_softmax", LOG_SOFTMAX, LOG_SOFTMAX_BACKWARD, real_parts(input, result),
                   None, dim, result)


def softmax_backward(Tensor grad, Tensor result, dim):
    return by_rows("softmax", SOFTMAX, SOFTMAX_BACKWARD, result, grad, dim, result.type)


def log_softmax_backward(Tensor grad, Tensor result, dim):
    return by_rows("log_softmax", LOG_SOFTMAX, LOG_SOFTMAX_BACKWARD, result, grad, dim, result.type)
