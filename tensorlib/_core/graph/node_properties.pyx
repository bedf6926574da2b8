"""The public attributes of nodes, and `Tensor.grad_fn`; the type itself has what sweeps need."""

from libc.stdint cimport int64_t

from functools import partial

from tensorlib._core.base.closed cimport attach_to
from tensorlib._core.base.dtypes cimport dtype_object
from tensorlib._core.base.shape cimport make_size
from tensorlib._core.base.upcalls cimport effect
from tensorlib._core.graph.attached cimport AFTER, BEFORE, hook_node, track_all
from tensorlib._core.graph.node cimport Node, OUTPUT, classed, edge_dims, track
from tensorlib._core.graph.saved cimport check_not_released
from tensorlib._core.tensor.tensor cimport Tensor, alias, track_tensor

from tensorlib._core.graph.handles import Notes
from tensorlib._core.tensor.tensor import attach


def name(Node self):
    """The name of the backward operation, such as `TanhBackward0`."""
    return self.op.node_name


def operation(Node self):
    """The name of the operation that was recorded, such as `tanh`."""
    return self.op.name


def input_layouts(Node self):
    """For each input: its dtype and shape."""
    cdef int i
    return tuple([
        (dtype_object(self.edges[i].dtype),
         make_size(self.edges[i].ndim, edge_dims(&self.edges[i])))
        for i in range(self.n_edges)])


def next_functions(Node self):
    """For each input: the node that its gradient goes to (or None) and which of its outputs."""
    cdef int i
    return tuple([
        (classed(<Node>self.edges[i].target) if self.edges[i].target != NULL else None,
         self.edges[i].slot)
        for i in range(self.n_edges)])


def variable(Node self):
    """The leaf that an AccumulateGrad node accumulates into."""
    if not self.is_leaf:
        raise AttributeError("variable")        # with the words of `Node.__getattr__`
    return <object>self.saved[0].tensor


def metadata(Node self):
    """A dict for the user's own data."""
    track(self)
    if type(self.notes) is not Notes:
        self.notes = Notes(self.notes or {}, partial(note, self.sequence))
    return self.notes


def saved_values(Node self):
    """The tensors kept for the gradient, by their names in the operation, outside the graph.

    Empty once a sweep has released them.
    """
    cdef int i
    if self.is_leaf:
        return {}
    return {name: alias(<Tensor>self.saved[i].tensor)
            for i, name in enumerate(saved_names(self))
            if isinstance(<object>self.saved[i].tensor, Tensor)}


def _kept_value(Node self, str name):
    """The tensor saved under a name, unpacked by the hooks, or None.

    Raises: RuntimeError once a sweep has released the values.
    """
    check_not_released(self)
    cdef list names = saved_names(self)
    if name not in names:
        return None
    value = <object>self.saved[names.index(name)].tensor
    return alias(value) if isinstance(value, Tensor) else value.given_back()


def saved_bytes(Node self):
    """Bytes of the tensors that this node keeps for its gradient."""
    return sum([x.nbytes for x in self.saved_values.values()])


def register_hook(Node self, hook):
    """Calls `hook(grad_inputs, grad_outputs)` after this node has run in a sweep.

    If it returns a tuple, that replaces the gradients of the inputs.
    Returns a handle with `remove()`.

    >>> x = tensorlib.tensor(2.0, requires_grad=True)
    >>> y = x * x
    >>> handle = y.grad_fn.register_hook(lambda to_inputs, of_outputs: print(of_outputs))
    >>> y.backward()
    (tensor(1.),)
    """
    effect("register_hook", None)
    return hook_node(self, AFTER, 0, hook)


def register_prehook(Node self, hook):
    """Calls `hook(grad_outputs)` before this node runs in a sweep.

    If it returns a tuple, that replaces the gradients of the outputs.
    Returns a handle with `remove()`.
    """
    effect("register_prehook", None)
    return hook_node(self, BEFORE, 0, hook)


def grad_fn(Tensor self):
    """The node of the operation that made this tensor, or None for a leaf."""
    track_tensor(self)               # a hook may be set on the node that refers to the tensor
    return classed(self.grad_node)


cdef list saved_names(Node node):
    """The names of the saved values in the operation, such as `input`; else their numbers."""
    cdef int bit
    cdef list names = [
        node.op.outputs[bit - OUTPUT] if bit >= OUTPUT else
        f"{node.op.arguments[0]}[{bit}]" if node.op.variadic else node.op.arguments[bit]
        for bit in range(32) if node.kept >> bit & 1]
    return names if len(names) == node.n_saved else [str(bit) for bit in range(node.n_saved)]


def note(int64_t since, held):
    """Tracks what is recorded at a node of this sequence number."""
    track_all(held, since)


for method in (name, register_hook, register_prehook, _kept_value):
    attach_to(Node, method.__name__, method)
for getter in (operation, input_layouts, next_functions, variable, metadata, saved_values,
               saved_bytes):
    attach_to(Node, getter.__name__, property(getter, doc=getter.__doc__))
attach(grad_fn.__name__, property(grad_fn, doc=grad_fn.__doc__))
