"""Saved values of nodes: stored, checked against their version, released."""

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF

from tensorlib._core.base.dtypes cimport FLOAT_KIND, KIND
from tensorlib._core.base.storage cimport Storage, untracked
from tensorlib._core.graph.modes cimport mode
from tensorlib._core.graph.node cimport Edge, Node, OUTPUT, Saved, edge_dims
from tensorlib._core.graph.op cimport Op, Rule
from tensorlib._core.tensor.tensor cimport Tensor, alias

from tensorlib._core.graph.anomalies import recorded_at
from tensorlib._core.graph.packing import AS_IS, Packed

cdef extern from * nogil:
    int __builtin_popcount(unsigned int bits)


cdef int keep(Node node, int bit, Tensor x) except -1:
    """Saves a value; to be called in ascending order of `bit`."""
    cdef Saved* saved = &node.saved[node.n_saved]
    cdef object value = x
    if untracked(x.storage):
        raise RuntimeError(
            f"{node.op.name}: inference tensors cannot be saved for backward; to work around "
            "you can make a clone() to get a normal tensor and use it in autograd")
    if node.packs:
        value = Packed(node.op.name, alias(x),
                       AS_IS if x.is_scalar else <object>mode().packing)
    Py_INCREF(value)
    saved.tensor = <PyObject*>value
    saved.version = x.storage.version
    node.n_saved += 1
    node.kept |= <unsigned int>1 << bit
    return 0


cdef void forget_unpacked(Node node):
    """Releases the unpacked values of a node that has run and keeps its saved values."""
    cdef int i
    for i in range(node.n_saved):
        (<object>node.saved[i].tensor).unpacked = None


cdef void note_written(Node node, Storage storage) noexcept:
    """Updates the versions of saved values that the node's own operation has written."""
    cdef int i
    for i in range(0 if node.packs else node.n_saved):
        if (<Tensor>node.saved[i].tensor).storage is storage:
            node.saved[i].version = storage.version


cdef str released(name):
    """The error message for a node, by its name, whose saved values were released."""
    return (f"backward: the values that {name} saved were released by the first backward "
            "through it. Trying to backward through the graph a second time needs "
            "retain_graph=True in the first backward")


cdef int check_not_released(Node node) except -1:
    if node.released:
        raise RuntimeError(released(node.name()))
    return 0


cdef bint keeps_for_gradients(Node node) noexcept:
    """Whether the gradients of an operation need the saved values of its node, released or not:
    in forward mode nodes keep more than that."""
    cdef unsigned int mask = 0
    cdef object rule
    cdef int i
    if node.is_leaf or not (node.n_saved or node.released):
        return False
    if not node.kept:                    # known by their order, of a node that a function made
        return True
    for i in range(node.n_edges):
        if node.edges[i].target != NULL:
            rule = (<Op>node.op).rules[0 if (<Op>node.op).variadic else i]
            if rule is not None:
                mask |= (<Rule>rule).mask
    return node.kept & mask != 0


cdef Tensor saved_at(Node node, int i, int bit):
    """The i-th saved value, after its version is checked. `bit` (or -1) says which it is."""
    cdef Saved* saved = &node.saved[i]
    cdef Tensor x
    if node.packs:
        return <Tensor?>(<object>saved.tensor).value()
    x = <Tensor>saved.tensor
    if x.storage.version != saved.version:
        which = (f"saved tensor {i}" if bit < 0 else "its output" if bit >= OUTPUT
                 else f"input {bit}")
        raise RuntimeError(modified(f"{which} of {node.op.name}", x, saved.version,
                                    recorded_at(node)))
    if 0 <= bit < OUTPUT and not is_laid_out(x, &node.edges[bit]):
        raise RuntimeError(
            f"backward: input {bit} of {node.op.name} is a tensor of shape {tuple(x.shape)} and "
            f"{x.dtype} now: its data was set to other data, of another shape or dtype, after the "
            "operation ran")
    return x


cdef str modified(str which, Tensor x, int64_t version, str where=""):
    """The error message for a saved value that was written in place."""
    return ("backward: one of the variables needed for gradient computation has been modified by "
            f"an inplace operation: {which}, of shape {tuple(x.shape)}, is at version "
            f"{x.storage.version} but was saved at version {version}{where}. Use the out-of-place "
            "form of the later operation, or clone() the value first")


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
    """The index among the saved values of an input (by its number) or output (OUTPUT)."""
    return __builtin_popcount(node.kept & ((<unsigned int>1 << bit) - 1))


cdef tuple saved_facts(Node node, int bit):
    """Shape and dtype of a saved value, which may have been overwritten."""
    cdef object value = <object>node.saved[saved_place(node, bit)].tensor
    return value.shape, value.dtype


cdef Tensor saved_value(Node node, int bit, bint as_recorded):
    """The saved input (by its number) or output (OUTPUT), after its version is checked.

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
        if KIND[x.type] < FLOAT_KIND:
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


# ---- attributes ----------------------------------------------------------------------------------

cdef class Counted:
    """An attribute that is a tensor of positions or classes, and the version that was used."""


cdef object counted(object x):
    """An attribute in the form in which a node keeps it."""
    cdef Counted kept
    if type(x) is not Tensor or KIND[(<Tensor>x).type] >= FLOAT_KIND:
        return x
    kept = Counted.__new__(Counted)
    kept.tensor, kept.version = x, (<Tensor>x).storage.version
    return kept


cdef object as_counted(Node node, str name, object x, bint checked):
    """An attribute of a node. Raises: RuntimeError if it was written in place since, where that is
    to be checked."""
    cdef Counted kept
    if type(x) is not Counted:
        return x
    kept = x
    if checked and kept.tensor.storage.version != kept.version:
        raise RuntimeError(modified(f"{name} of {node.op.name}", kept.tensor, kept.version,
                                    recorded_at(node)))
    return kept.tensor
