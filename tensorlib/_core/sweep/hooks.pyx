"""The hooks that a sweep runs at a node.

The hooks of a node are a dict of (kind, output, function) in the order of registration. They are
called from a copy of its values, so that a hook may register and remove others: a hook that was
removed during the sweep of its node still runs in it, as in PyTorch.
"""

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF

from tensorlib._core.graph.attached cimport (
    ACCUMULATED, AFTER, BEFORE, HookKind, ON_TENSOR, RETAINS,
)
from tensorlib._core.graph.node cimport Node
from tensorlib._core.sweep.state cimport grad_at, grad_place, grads_of
from tensorlib._core.tensor.tensor cimport Tensor, same_shape

from tensorlib._core.base.error_names import type_name


cdef list hooks_of(Node node, HookKind kind):
    return [(slot, hook) for k, slot, hook in list(node.hooks.values()) if k == kind]


cdef str name_of(hook):
    return repr(getattr(hook, "__name__", type(hook).__name__))


cdef Tensor checked(object value, Tensor g, object hook):
    """The result of a hook, which must have the shape and dtype of the gradient `g`."""
    if not isinstance(value, Tensor):
        raise TypeError(f"backward: hook {name_of(hook)}: expected a Tensor or None, but hook "
                        f"returned {type_name(value)}")
    if g is not None and not same_shape(value, g):
        raise RuntimeError(f"backward: hook {name_of(hook)} has changed the size of value: "
                           f"{tuple(g.shape)} to {tuple(value.shape)}")
    if g is not None and (<Tensor>value).type != g.type:
        raise RuntimeError(f"backward: hook {name_of(hook)} has changed the type of value: "
                           f"{g.dtype} to {value.dtype}")
    return value


cdef tuple as_many(object given, Py_ssize_t n, object hook):
    """The result of a hook of a node, as one gradient for each that it got."""
    cdef tuple values = (given,) if isinstance(given, Tensor) else tuple(given)
    if len(values) != n:
        raise RuntimeError(f"backward: hook {name_of(hook)} has returned an incorrect number of "
                           f"values: got {len(values)}, but expected {n}")
    return values


cdef int replace_grad(Node node, int slot, object value, object hook) except -1:
    """Replaces a gradient that arrived by the result of a hook, unless that is None."""
    cdef PyObject** place = grad_place(node, slot)
    cdef PyObject* old = place[0]
    if value is not None:
        Py_INCREF(checked(value, grad_at(node, slot), hook))
        place[0] = <PyObject*>value
        Py_XDECREF(old)
    return 0


cdef int run_tensor_hooks(Node node) except -1:
    """Calls the hooks of tensors, whose results replace the gradient; those of retain_grad last."""
    for kind in (ON_TENSOR, RETAINS):
        for slot, hook in hooks_of(node, kind):
            g = grad_at(node, slot)
            if g is not None:
                replace_grad(node, slot, hook(g), hook)
    return 0


cdef int run_before_hooks(Node node) except -1:
    """Calls the hooks that run before the node, with a gradient or None for each output."""
    for _, hook in hooks_of(node, BEFORE):
        changed = hook(grads_of(node))
        if changed is not None:
            for slot, value in enumerate(as_many(changed, node.n_outputs, hook)):
                replace_grad(node, slot, value, hook)
    return 0


cdef int run_accumulated_hooks(Node node) except -1:
    """Calls the hooks of a leaf whose `.grad` was computed."""
    for _, hook in hooks_of(node, ACCUMULATED):
        hook(node.variable)
    return 0


cdef list run_after_hooks(Node node, list grads, object g):
    """The gradients of the inputs after the hooks that run after the node and may replace them."""
    cdef tuple arrived = g if isinstance(g, tuple) else (g,)
    for _, hook in hooks_of(node, AFTER):
        changed = hook(tuple(grads), arrived)
        if changed is not None:
            grads = [value if value is None else checked(value, old, hook) for value, old in
                     zip(as_many(changed, len(grads), hook), grads)]
    return grads
