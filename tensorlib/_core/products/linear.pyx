"""`linear`, input @ weight.mT + bias; and x @ x.mT, which is symmetric. Outside autograd."""

from cpython.object cimport PyObject

from tensorlib._core.base.dtypes cimport FLOAT32, FLOAT64, compute_dtype
from tensorlib._core.base.shape cimport MAX_NDIM, count, times
from tensorlib._core.base.work cimport run_once
from tensorlib._core.products.blas cimport multiply_matrices
from tensorlib._core.products.product cimport product, product_adds, wide_product
from tensorlib._core.products.triangles cimport RELEASE_GIL, complete, size_of
from tensorlib._core.tensor.tensor cimport Tensor, new_like, new_tensor, new_view
from tensorlib._core.tiles.copies cimport packed
from tensorlib._core.tiles.program cimport TileProgram
from tensorlib._core.tiles.run cimport run_program

from tensorlib._core.base.shape import in_pytorchs_words

cdef TileProgram addition = TileProgram(2, [("add", (0, 1))])


cdef Tensor transposed(Tensor x):
    cdef Py_ssize_t[2] dims = [x.dims[1], x.dims[0]]
    cdef Py_ssize_t[2] steps = [x.steps[1], x.steps[0]]
    return new_view(x, 2, dims, steps, x.data_pointer)


cdef bint broadcasts_to(Tensor x, Tensor out) noexcept:
    """Whether a tensor can be broadcast to the shape of another one."""
    cdef int d
    for d in range(1, x.ndim_ + 1):
        if d > out.ndim_ or x.dims[x.ndim_ - d] not in (1, out.dims[out.ndim_ - d]):
            return False
    return True


def linear(Tensor input, Tensor weight, Tensor bias or None=None):
    cdef PyObject* inputs[2]
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Tensor out, total
    cdef int d, dtype = compute_dtype(input.type)
    if weight.ndim_ > 2 or weight.ndim_ == 0 or input.ndim_ == 0:
        raise RuntimeError("linear: expects an input with dims and a weight of 1 or 2 dims, got "
                           f"shapes {tuple(input.shape)} and {tuple(weight.shape)}")
    if input.type != weight.type or bias is not None and bias.type != input.type:
        raise RuntimeError(
            f"linear: dtypes differ: an input of {input.dtype}, a weight of {weight.dtype}"
            + ("" if bias is None else f", a bias of {bias.dtype}")
            + f"; convert the input: input.to({weight.dtype})"
            + (f", or the model: model.to({input.dtype})" if input.dtype.is_floating_point else ""))
    if input.dims[input.ndim_ - 1] != weight.dims[weight.ndim_ - 1]:
        raise RuntimeError(
            f"linear: expects {weight.dims[weight.ndim_ - 1]} features, got "
            f"{input.dims[input.ndim_ - 1]}: an input of shape {tuple(input.shape)} does not fit "
            f"to a weight of shape {tuple(weight.shape)}"
            + in_pytorchs_words(input.shape, weight.shape[::-1]))
    if weight.ndim_ == 2:
        weight = transposed(weight)
    if bias is not None and bias.ndim_ == 1 and bias.type == dtype and weight.ndim_ == 2:
        for d in range(input.ndim_ - 1):
            dims[d] = input.dims[d]
        dims[input.ndim_ - 1] = weight.dims[1]
        count("linear", input.ndim_, dims)
        out = new_tensor(dtype, input.ndim_, dims)
        if product_adds(input, weight, bias, out):
            return out
    if bias is None:
        return product("linear", input, weight)
    if input.type == dtype:
        out = product("linear", input, weight)
    else:                                   # a bias is added before half types are rounded
        out = wide_product("linear", input, weight)
    if not broadcasts_to(bias, out):
        raise RuntimeError(f"linear: a bias of shape {tuple(bias.shape)} does not fit to a result "
                           f"of shape {tuple(out.shape)}")
    inputs[0], inputs[1] = <PyObject*>out, <PyObject*>bias
    total = out if bias.type == dtype else new_like(out, bias.type)
    run_program(addition.at(dtype), inputs, total)
    return total


def wide_linear(Tensor input, Tensor weight):
    """input @ weight.mT of matrices, in the dtype in which it is computed."""
    if input.ndim_ != 2 or weight.ndim_ != 2 or input.type != weight.type or (
            input.dims[1] != weight.dims[1]):
        raise RuntimeError(
            f"wide_linear: expected two matrices of one dtype with rows of one length, got shapes "
            f"{tuple(input.shape)} and {tuple(weight.shape)} and {input.dtype} and {weight.dtype}")
    return wide_product("wide_linear", input, transposed(weight))


# ---- products of a matrix with its transpose -----------------------------------------------------
# Each block of rows is multiplied by itself and the blocks above it; the other half, on the other
# side of the diagonal, is copied. 256 x 256 of float64 takes 0.65 of the time of a full product.

cdef enum:
    ROWS = 64                # the rows of a block are a multiple of this,
    BLOCKS = 8               # and an eighth of all rows

ctypedef struct Gram:
    int dtype
    char* x                  # (m, k) of each
    char* y                  # (m, m)
    Py_ssize_t batch, m, k


cdef void run_gram(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """y := x @ x.T"""
    cdef Gram* w = <Gram*>context
    cdef Py_ssize_t i, j, m, size = size_of(w.dtype)
    cdef Py_ssize_t most = (1 + (w.m - 1) // (ROWS * BLOCKS)) * ROWS
    cdef char* x
    cdef char* y
    for i in range(w.batch):
        x, y, j = w.x + i * w.m * w.k * size, w.y + i * w.m * w.m * size, 0
        while j < w.m:
            m = min(most, w.m - j)
            multiply_matrices(w.dtype, x + j * w.k * size, w.k, 1, x, 1, w.k, y + j * w.m * size,
                              w.m, m, w.k, j + m)
            complete(w.dtype, y, w.m, j, m)
            j += m


def gram(Tensor x not None):
    """x @ x.mT for matrices of float32 and float64. Raises: RuntimeError for others."""
    cdef Py_ssize_t[MAX_NDIM] dims
    cdef Tensor y
    cdef Gram w
    cdef int d
    if x.type != FLOAT32 and x.type != FLOAT64 or x.ndim_ < 2:
        raise RuntimeError("gram_matrix: expected matrices of float32 or float64, got shape "
                           f"{tuple(x.shape)} and {x.dtype}")
    x = packed(x)
    for d in range(x.ndim_):
        dims[d] = x.dims[d]
    w.m, w.k, w.dtype = x.dims[x.ndim_ - 2], x.dims[x.ndim_ - 1], x.type
    dims[x.ndim_ - 1] = w.m
    y = new_tensor(x.type, x.ndim_, dims)
    if y.numel_ == 0:
        return y
    w.x, w.y, w.batch = x.data_pointer, y.data_pointer, y.numel_ // (w.m * w.m)
    run_once(run_gram, &w, w.y, times(y.numel_, w.k) < RELEASE_GIL)
    return y
