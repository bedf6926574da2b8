"""The saved values of the nodes that replace the node of a replayed call."""

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int64_t
from libc.string cimport memcmp

from tensorlib._core.base.dtypes cimport ITEMSIZE
from tensorlib._core.graph.node cimport Node, release_saved
from tensorlib._core.graph.saved cimport Counted, keeps_for_gradients
from tensorlib._core.sweep.state cimport nodes_below
from tensorlib._core.tensor.tensor cimport Tensor, alias, same_shape


def number_of(Node node):
    """The number of a node, which grows with time."""
    return node.sequence


def resave(list made, int64_t since, dict late, set right):
    """Sets the versions of saved values of new nodes that were overwritten after the call.

    made: the results; their nodes with numbers from `since` on are new. late: the versions then, by
    the storage. Returns whether all other saved values are in the storages of `right` values.
    """
    cdef Node node
    cdef Tensor x
    cdef int i
    for node in nodes_below([x.grad_node for x in made if (<Tensor?>x).grad_node is not None], [],
                            since, False)[0]:
        if node.packs:
            return False
        for i in range(node.n_saved):
            x = <Tensor>node.saved[i].tensor
            place = <size_t>x.storage.data
            if place in late:
                node.saved[i].version = late[place]
            elif place not in right and not x.is_scalar:         # Python numbers are always right
                return False
        for value in (<dict>node.attributes).values() if type(node.attributes) is dict else ():
            if type(value) is Counted:           # positions or classes
                place = <size_t>(<Counted>value).tensor.storage.data
                if place in late:
                    (<Counted>value).version = late[place]
                elif place not in right:
                    return False
    return True


def keep_the_same(list nodes, list values):
    """Makes nodes save the tensors that the call's own node saved, instead of recomputed ones, so
    that later writes to them are noticed. values: for each the recomputed tensor, the saved one and
    its version."""
    cdef dict by_storage = {}
    cdef Node node
    cdef Tensor fresh, kept, x
    cdef int i
    for fresh, kept, version in values:
        if fresh is not kept and have_same_layout(fresh, kept):
            by_storage.setdefault(<size_t><PyObject*>fresh.storage, []).append(
                (fresh, kept, version))
    for node in nodes if by_storage else ():
        for i in range(0 if node.packs or node.is_leaf else node.n_saved):
            x = <Tensor>node.saved[i].tensor
            found = the_same(x, by_storage)
            if found is not None:
                Py_INCREF(found[0])
                node.saved[i].tensor = <PyObject*>found[0]
                node.saved[i].version = found[1]
                Py_DECREF(x)
        for value in (<dict>node.attributes).values() if type(node.attributes) is dict else ():
            if type(value) is Counted:
                found = the_same((<Counted>value).tensor, by_storage)
                if found is not None:
                    (<Counted>value).tensor, (<Counted>value).version = found


cdef tuple the_same(Tensor x, dict by_storage):
    """A tensor like `x` over the saved tensor with its elements, and the version of that; or None.
    """
    cdef Tensor fresh, kept, out
    for fresh, kept, version in by_storage.get(<size_t><PyObject*>x.storage, ()):
        if lies_in(x, fresh):
            out = alias(x)
            out.storage = kept.storage
            out.data_pointer = kept.data_pointer + (x.data_pointer - fresh.data_pointer)
            return out, version
    return None


cdef bint have_same_layout(Tensor x, Tensor y) noexcept:
    return x.type == y.type and same_shape(x, y) and (
        memcmp(x.steps, y.steps, x.ndim_ * sizeof(Py_ssize_t)) == 0)


cdef bint lies_in(Tensor x, Tensor whole) noexcept:
    """Whether all elements of `x` are elements of `whole`, which has no gaps or the same layout."""
    cdef Py_ssize_t low = 0, high = 0, n = 1, reach = 0
    cdef int d
    if x.data_pointer == whole.data_pointer and have_same_layout(x, whole):
        return True
    for d in range(whole.ndim_):
        if whole.dims[d] and whole.steps[d] < 0:
            return False
        n *= whole.dims[d]
        reach += (whole.dims[d] - 1) * whole.steps[d]
    if reach != n - 1:
        return False
    for d in range(x.ndim_):
        if x.dims[d] == 0:
            return False
        if x.steps[d] < 0:
            low += (x.dims[d] - 1) * x.steps[d]
        else:
            high += (x.dims[d] - 1) * x.steps[d]
    return (x.data_pointer + low * ITEMSIZE[x.type] >= whole.data_pointer
            and x.data_pointer + (high + 1) * ITEMSIZE[x.type]
            <= whole.data_pointer + n * ITEMSIZE[whole.type])


def let_go(list nodes, list names, gone):
    """Releases the saved values of those nodes that had released theirs in the eager graph.

    nodes: oldest first. names: those of the nodes of the eager graph that saved something; `gone`
    has a bit for each that released it. Returns whether the nodes are the same.
    """
    cdef Node node
    cdef list keeping = [node for node in nodes if keeps_for_gradients(node)]
    if [node.name() for node in keeping] != names:
        return False
    for i, node in enumerate(keeping):
        if gone >> i & 1:
            release_saved(node)
    return True
