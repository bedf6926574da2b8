"""Tensors with margins of a number, or with parts cut off: raw, outside the graph."""

from tensorlib._core.base.dtypes cimport ITEMSIZE
from tensorlib._core.base.shape cimport MAX_NDIM, count, settled
from tensorlib._core.create.creation cimport fill_number
from tensorlib._core.tensor.tensor cimport Tensor, new_tensor, new_view
from tensorlib._core.tiles.copies cimport copy_into

cdef Py_ssize_t FARTHEST = <Py_ssize_t>1 << 40     # of a margin: no sum overflows


def framed(Tensor input, tuple pad, value):
    """`input` with margins of a number, in pairs for the last dim first; negative ones cut off.

    Raises: RuntimeError for margins that do not fit.
    """
    pad = settled(pad)
    cdef Py_ssize_t dims[MAX_NDIM]
    cdef Py_ssize_t kept[MAX_NDIM]
    cdef Py_ssize_t from_place = 0, to_place = 0, before, after
    cdef int d, k, ndim = input.ndim_, pairs = len(pad) // 2
    cdef bint fills = False, some = True
    cdef Tensor out
    if len(pad) % 2 or pairs > ndim:
        raise RuntimeError(f"pad: got {len(pad)} margins for {ndim} dims")
    for d in range(ndim):
        before = after = 0
        k = ndim - 1 - d
        if k < pairs:
            for number in pad[2 * k:2 * k + 2]:
                if not -FARTHEST <= number <= FARTHEST:
                    raise RuntimeError(f"pad: a margin of {number} is out of range")
            before, after = pad[2 * k], pad[2 * k + 1]
        dims[d] = input.dims[d] + before + after
        kept[d] = input.dims[d] + min(before, <Py_ssize_t>0) + min(after, <Py_ssize_t>0)
        if dims[d] < 0:
            raise RuntimeError(f"pad: the padding {(before, after)} cuts off more than a dim of "
                               f"size {input.dims[d]} has")
        fills = fills or before > 0 or after > 0
        some = some and kept[d] > 0
    count("pad", ndim, dims)
    out = new_tensor(input.type, ndim, dims)
    if fills:
        fill_number("pad", out, value)
    if some:
        for d in range(ndim):
            k = ndim - 1 - d
            before = pad[2 * k] if k < pairs else 0
            to_place += max(before, <Py_ssize_t>0) * out.steps[d]
            from_place -= min(before, <Py_ssize_t>0) * input.steps[d]
        copy_into(new_view(out, ndim, kept, out.steps,
                           out.data_pointer + to_place * ITEMSIZE[out.type]),
                  new_view(input, ndim, kept, input.steps,
                           input.data_pointer + from_place * ITEMSIZE[out.type]))
    return out
