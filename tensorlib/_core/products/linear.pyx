"""`linear`: input @ weight.mT + bias, outside autograd."""

from cpython.object cimport PyObject

from tensorlib._core.base.dtypes cimport compute_dtype
from tensorlib._core.base.shape cimport MAX_NDIM, count
from tensorlib._core.products.product cimport product, product_adds, wide_product
from tensorlib._core.tensor.tensor cimport Tensor, new_like, new_tensor, new_view
from tensorlib._core.tiles.program cimport TileProgram
from tensorlib._core.tiles.run cimport run_program

cdef TileProgram addition = TileProgram(2, [("add", (0, 1))])


cdef Tensor transposed(Tensor x):
    cdef Py_ssize_t[2] dims = [x.dims[1], x.dims[0]]
    cdef Py_ssize_t[2] steps = [x.steps[1], x.steps[0]]
    return new_view(x, 2, dims, steps, x.data_pointer)


cdef bint broadcasts_to(Tensor x, Tensor out) noexcept:
    """Whether a tensor is broadcast to the shape of another one."""
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
            f"to a weight of shape {tuple(weight.shape)}")
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
