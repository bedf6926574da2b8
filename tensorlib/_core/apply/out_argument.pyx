"""The `out=` argument: results that are written to a tensor of the caller."""

from cpython.object cimport PyObject

from tensorlib._core.apply.elementwise cimport apply_into, has_dims
from tensorlib._core.apply.inplace cimport check_writable
from tensorlib._core.arrays.operands cimport as_tensors
from tensorlib._core.base.dtypes cimport ITEMSIZE, KIND
from tensorlib._core.base.shape cimport MAX_NDIM, broadcast, sizes_of
from tensorlib._core.base.storage cimport holds
from tensorlib._core.graph.modes cimport mode
from tensorlib._core.graph.op cimport Op
from tensorlib._core.tensor.tensor cimport Tensor, new_tensor, new_view, replace, requires_grad
from tensorlib._core.tiles.copies cimport copy_into, may_overlap, packed_copy
from tensorlib._core.tiles.program cimport MAX_INPUTS

from tensorlib._core.base.error_names import type_name
from tensorlib._core.base.warned import warn_of

cdef object apply_out(Op op, tuple args, object out):
    """out := op(*args) for an element-wise operation."""
    cdef PyObject* given[MAX_INPUTS]
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Py_ssize_t joined[MAX_NDIM]
    cdef int i, d, ndim = 0
    cdef list tensors = as_tensors(op, args)
    cdef Tensor x
    if not isinstance(out, Tensor):
        raise TypeError(f"{op.name}: out must be a Tensor, not {type_name(out)}")
    for i in range(op.n_args):
        x = <Tensor>tensors[i]
        given[i] = <PyObject*>x
        ndim = broadcast(op.name, ndim, dims, x.ndim_, x.dims, joined)
        for d in range(ndim):
            dims[d] = joined[d]
    x = target_for(op.name, tensors, out, ndim, dims)
    apply_into(op, given, x)
    if x is not out:
        replace(out, x)
    return out


cdef Tensor target_for(str name, list tensors, Tensor out, int ndim, const Py_ssize_t* dims):
    """`out`, after it was checked; for one of another shape the tensor that it is to become.

    That uses the memory of `out` if it is large enough, as in PyTorch: `out=buffer[:0]` fills the
    buffer.
    """
    cdef Tensor x, made
    for x in tensors:
        if mode().grad and (requires_grad(x) or requires_grad(out)):
            raise RuntimeError(
                f"{name}: functions with out=... don't support automatic differentiation, but one "
                "of the arguments requires grad")
    check_writable(name, out, False)
    if out.ndim_ == ndim and has_dims(out, dims):
        return out
    for x in tensors:
        if x is out:
            raise RuntimeError(
                f"{name}: out is an input, of shape {tuple(out.shape)}, but the result has shape "
                f"{sizes_of(ndim, dims)}")
    if out.numel_:
        warn_of(
            f"{name}: out has shape {tuple(out.shape)} but the result has shape "
            f"{sizes_of(ndim, dims)}: it is resized, which is deprecated; pass an empty tensor to "
            "have it resized")
    made = new_tensor(out.type, ndim, dims)
    if made.numel_ and holds(out.storage, out.data_pointer, 0, made.numel_ - 1, ITEMSIZE[out.type]):
        return new_view(out, ndim, dims, made.steps, out.data_pointer)
    return made


def store_out(str name, tuple inputs, Tensor result, out):
    """Puts a result into `out`, for the operations that are not element-wise."""
    store_outs(name, inputs, (result,), (out,))
    return out


def store_outs(str name, tuple inputs, tuple results, tuple outs):
    """Puts each result into its `out`; if one of them can't be, none is."""
    cdef list tensors = [x for x in inputs if isinstance(x, Tensor)], stores = []
    cdef Tensor result, source, target, out
    for result, given in zip(results, outs):
        if not isinstance(given, Tensor):
            raise TypeError(f"{name}: out must be a Tensor, not {type_name(given)}")
        out = given
        target = target_for(name, tensors, out, result.ndim_, result.dims)
        if KIND[result.type] > KIND[out.type]:
            raise RuntimeError(f"{name}: result type {result.dtype} can't be cast to the desired "
                               f"output type {out.dtype}")
        source = packed_copy(result, result.type) if may_overlap(result, target) else result
        stores.append((source, target, out))
    for source, target, out in stores:
        copy_into(target, source)
        target.storage.version += 1
        if target is not out:
            replace(out, target)
