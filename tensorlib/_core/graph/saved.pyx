"""The values that nodes keep for their gradients: saved, checked to be what they were, let go."""

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int64_t

from tensorlib._core.base.closed cimport close_type
from tensorlib._core.base.dtypes cimport FLOAT_KIND, KIND, dtype_object
from tensorlib._core.base.shape cimport make_size
from tensorlib._core.base.storage cimport Storage, untracked
from tensorlib._core.graph.modes cimport mode
from tensorlib._core.graph.node cimport Edge, Node, OUTPUT, Saved, edge_dims
from tensorlib._core.tensor.tensor cimport Tensor, alias

from tensorlib._core.graph.anomalies import recorded_at

cdef extern from * nogil:
    int __builtin_popcount(unsigned int bits)


cdef int keep(Node node, int bit, Tensor x) except -1:
    """Saves a value. Bits must come in ascending order."""
    cdef Saved* saved = &node.saved[node.n_saved]
    cdef object value = x
    if untracked(x.storage):
        raise RuntimeError(
            f"{node.op.name}: inference tensors cannot be saved for backward; to work around "
            "you can make a clone() to get a normal tensor and use it in autograd")
    if node.packs:
        value = packed_value(node, x)
    Py_INCREF(value)
    saved.tensor = <PyObject*>value
    saved.version = x.storage.version
    node.n_saved += 1
    node.kept |= <unsigned int>1 << bit
    return 0


# ---- values saved through hooks ------------------------------------------------------------------

@cython.final
cdef class Packed:
    """What stands for a saved value that `pack` made something else of."""
    cdef object content, unpack, shape, unpacked
    cdef int type


close_type(Packed)


cdef Packed packed_value(Node node, Tensor x):
    cdef Packed packed = Packed.__new__(Packed)
    cdef Tensor given = alias(x)
    cdef bint before = mode().grad
    cdef int64_t version = x.storage.version
    pack, packed.unpack = <object>mode().packing
    packed.shape, packed.type = make_size(x.ndim_, x.dims), x.type
    mode().grad = False
    try:
        packed.content = pack(given)
    finally:
        mode().grad = before
    if x.storage.version != version:
        raise RuntimeError(
            f"{node.op.name}: a saved tensor pack hook is modifying its input in place; tensors "
            "provided as input to pack hook can not be modified by in-place operations")
    return packed


cdef Tensor unpacked_value(Node node, Packed packed):
    """The saved value as its hook gives it back: kept until the node has run."""
    cdef Tensor x
    if packed.unpacked is None:
        value = packed.unpack(packed.content)
        if not isinstance(value, Tensor):
            raise TypeError(
                f"backward: output of saved tensor unpack_hook expected to be a Tensor but got "
                f"result of type {type(value).__name__} (a value of {node.op.name})")
        x = <Tensor>value
        if x.type != packed.type or make_size(x.ndim_, x.dims) != packed.shape:
            raise RuntimeError(
                f"backward: unpack_hook returned a tensor of shape {tuple(x.shape)} and {x.dtype} "
                f"for a value of {node.op.name} of shape {tuple(packed.shape)}")
        packed.unpacked = alias(x)
    return <Tensor>packed.unpacked


cdef void forget_unpacked(Node node):
    """Lets go of what the hooks gave back to a node that has run and keeps its values."""
    cdef int i
    for i in range(node.n_saved):
        (<Packed>node.saved[i].tensor).unpacked = None


cdef void note_written(Node node, Storage storage) noexcept:
    """Notes that what a node saved of a storage was written by the node's own operation."""
    cdef int i
    for i in range(0 if node.packs else node.n_saved):
        if (<Tensor>node.saved[i].tensor).storage is storage:
            node.saved[i].version = storage.version


cdef int check_not_released(Node node) except -1:
    if node.released:
        raise RuntimeError(
            f"backward: the values that {node.name()} saved were released by the first backward "
            "through it. To go through the graph a second time, call the first backward with "
            "retain_graph=True")
    return 0


cdef Tensor saved_at(Node node, int i, int bit):
    """The i-th saved value, checked to be what it was. `bit` (or -1) says which it is."""
    cdef Saved* saved = &node.saved[i]
    cdef Tensor x
    if node.packs:
        return unpacked_value(node, <Packed>saved.tensor)
    x = <Tensor>saved.tensor
    if x.storage.version != saved.version:
        which = (f"saved tensor {i}" if bit < 0 else "its output" if bit >= OUTPUT
                 else f"input {bit}")
        raise RuntimeError(
            f"backward: one of the variables needed for gradient computation has been modified by "
            f"an inplace operation: {which} of {node.op.name}, of shape {tuple(x.shape)}, is at "
            f"version {x.storage.version} but was saved at version {saved.version}"
            f"{recorded_at(node)}. Use the out-of-place form of the later operation, or clone() "
            "the value first")
    if 0 <= bit < OUTPUT and not is_laid_out(x, &node.edges[bit]):
        raise RuntimeError(
            f"backward: input {bit} of {node.op.name} is a tensor of shape {tuple(x.shape)} and "
            f"{x.dtype} now: its data was set to other data, of another shape or dtype, after the "
            "operation ran")
    return x


cdef inline bint is_laid_out(Tensor x, Edge* edge) noexcept:
    """Whether a saved input still has the dtype and sizes that the operation ran on."""
    cdef const Py_ssize_t* dims = edge_dims(edge)
    cdef int d
    if x.type != edge.dtype or x.ndim_ != edge.ndim:
        return False
    for d in range(x.ndim_):
        if x.dims[d] != dims[d]:
            return False
    return True


cdef int saved_place(Node node, int bit) noexcept:
    """Where among the saved values the input (by its number) or output (OUTPUT) stands."""
    return __builtin_popcount(node.kept & ((<unsigned int>1 << bit) - 1))


cdef tuple saved_facts(Node node, int bit):
    """Shape and dtype of a saved value, which hold also where it was overwritten."""
    cdef object value = <object>node.saved[saved_place(node, bit)].tensor
    if node.packs:
        return (<Packed>value).shape, dtype_object((<Packed>value).type)
    return (<Tensor>value).shape, (<Tensor>value).dtype


cdef Tensor saved_value(Node node, int bit, bint as_recorded):
    """The saved input (by its number) or output (OUTPUT), checked to be what it was.

    With `as_recorded` the value is linked to the graph as it was when the operation ran, so that
    the gradient can itself be differentiated.
    """
    cdef Tensor x, linked
    cdef Edge* edge
    cdef int i
    check_not_released(node)
    i = saved_place(node, bit)
    x = saved_at(node, i, bit)
    if not as_recorded:
        return x
    if bit >= OUTPUT:
        if KIND[x.type] != FLOAT_KIND:
            return x
        linked = alias(x)
        linked.grad_node = node
        linked.slot = bit - OUTPUT
        return linked
    edge = &node.edges[bit]
    if edge.target != NULL and x.grad_node is not <object>edge.target and not (
            x.accumulator == <void*>edge.target):
        linked = alias(x)
        linked.grad_node = <object>edge.target
        linked.slot = edge.slot
        return linked
    return x
