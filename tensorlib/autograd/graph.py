"""`tensorlib.autograd.graph`: the nodes of the graph, and hooks on the values they save."""

import functools
from _thread import _local as local   # avoids the import of `threading`
from typing import NamedTuple

from tensorlib._core.base.error_names import type_name
from tensorlib._core.base.explained import explain
from tensorlib._core.base.settings import AttributeSwap, Setting
from tensorlib._core.create.overwrite import _count_write
from tensorlib._core.graph.handles import RemovableHandle
from tensorlib._core.graph.modes import _set_packing
from tensorlib._core.graph.node import Node
from tensorlib._core.interpreters.stack import tell
from tensorlib._core.sweep.graph_reader import gradient_place
from tensorlib._core.sweep.sweep import current_sweep, is_reached, is_running
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.foreign import members

# ---- places of gradients -------------------------------------------------------------------------

class GradientEdge(NamedTuple):
    """Where the gradient of a tensor is computed: a node, and which of its outputs.

    `autograd.grad` takes it among its inputs, in the place of the tensor.
    """

    node: Node
    output_nr: int


def get_gradient_edge(tensor):
    """The `GradientEdge` of a tensor, which may be freed or overwritten afterwards.

    Raises: RuntimeError if the tensor requires no gradient.

    >>> x = tensorlib.tensor(2.0, requires_grad=True)
    >>> y = x * x
    >>> edge = get_gradient_edge(y)
    >>> y = y.exp()
    >>> tensorlib.autograd.grad(y, edge)
    (tensor(54.5982),)
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"get_gradient_edge: expects a Tensor, got {type_name(tensor)}")
    if not tensor.requires_grad:
        raise RuntimeError("get_gradient_edge: it is not possible to get the gradient edge for a "
                           "Tensor that does not require gradients")
    return GradientEdge(*gradient_place(tensor))


def increment_version(tensor):
    """Records writes to tensors that the library does not see: through a pointer or an array.

    So a gradient that needs the old values is an error, as after any in-place operation.

    >>> x = tensorlib.ones(2)
    >>> x.numpy()[0] = 5.0
    >>> increment_version(x)
    >>> x._version
    1
    """
    for x in (tensor,) if isinstance(tensor, Tensor) else tensor:
        _count_write(x)


# ---- hooks on several tensors --------------------------------------------------------------------

class _Handles(RemovableHandle):
    """Removes several hooks together."""

    def __init__(self, handles):
        self.handles = handles

    def remove(self):
        for handle in self.handles:
            handle.remove()


def register_multi_grad_hook(tensors, fn, *, mode="all"):
    """Calls `fn` once in each sweep that reaches some of the tensors.

    With mode "all" it calls `fn(grads)` when the gradients of all tensors that the sweep reaches
    are known, with None for the others. With "any" it calls `fn(grad)` at the first gradient. The
    result of `fn` is ignored. Returns a handle with `remove()`.

    Raises: ValueError for another mode; RuntimeError, with "all", for a tensor that requires no
    gradient.

    >>> a, b = tensorlib.ones(2, requires_grad=True), tensorlib.ones(2, requires_grad=True)
    >>> c, d = a * b, a + b
    >>> handle = register_multi_grad_hook(
    ...     (a, b, c, d), lambda grads: print([g is not None for g in grads]))
    >>> c.sum().backward(retain_graph=True)
    [True, True, True, False]
    >>> c.sum().backward(inputs=[a])
    [True, False, True, False]
    """
    if mode not in ("all", "any"):
        raise ValueError(f"register_multi_grad_hook: expects mode to be one of ('all', 'any') but "
                         f"got {mode!r}")
    tensors = members("register_multi_grad_hook", tensors)
    arrived = {}                                        # gradients, by the number of the sweep

    def arrived_now():
        for sweep in [sweep for sweep in arrived if not is_running(sweep)]:
            del arrived[sweep]
        return arrived.setdefault(current_sweep(), {})

    if mode == "any":
        def first(grad):
            grads = arrived_now()
            if not grads:
                grads[0] = grad
                fn(grad)

        return _Handles([x.register_hook(first) for x in tensors if x.requires_grad])
    nodes = [get_gradient_edge(x).node for x in tensors]

    def arrive(i, grad):
        grads = arrived_now()
        grads[i] = grad
        if len(grads) == sum(map(is_reached, nodes)):
            fn([grads.get(k) for k in range(len(nodes))])

    return _Handles([x.register_hook(functools.partial(arrive, i)) for i, x in enumerate(tensors)])


# ---- saved values --------------------------------------------------------------------------------

class _Refusal(local):
    """Why hooks on saved values are disabled on this thread."""

    message = None


_refusal = _Refusal()


def refuse_where_disabled():
    """Raises RuntimeError under `disable_saved_tensors_hooks`."""
    if _refusal.message is not None:
        raise RuntimeError(_refusal.message)


class saved_tensors_hooks(Setting):
    """Under it values that gradients need are saved as `pack_hook(value)`.

    The sweep gets them back by `unpack_hook(packed)`, which must return a tensor of the same shape
    and dtype. Of nested pairs the innermost applies. `pack_hook` runs under `no_grad`, on the
    detached value, which it must not write to. Later writes to values saved so are not detected.

    Raises: TypeError and RuntimeError, in the sweep, for what is not that tensor.

    >>> log = []
    >>> x = tensorlib.tensor([2.0, 3.0], requires_grad=True)
    >>> def pack(value):
    ...     log.append("pack")
    ...     return value.numpy()
    >>> with saved_tensors_hooks(pack, tensorlib.from_numpy):
    ...     y = x.exp()
    >>> y.sum().backward()
    >>> log, x.grad
    (['pack'], tensor([ 7.3891, 20.0855]))
    """

    def __init__(self, pack_hook, unpack_hook):
        self.hooks = (pack_hook, unpack_hook)

    swaps = (_set_packing,)

    @property
    def values(self):
        refuse_where_disabled()
        tell("effect", "saved_tensors_hooks", None)
        return (self.hooks,)


class disable_saved_tensors_hooks(Setting):
    """Under it, on this thread, entering `saved_tensors_hooks` raises RuntimeError(error_message).

    For code that does not work with such hooks. Checkpoints are made of them.

    >>> with disable_saved_tensors_hooks("no hooks here"), saved_tensors_hooks(abs, abs):
    ...     pass
    Traceback (most recent call last):
    RuntimeError: no hooks here
    """

    def __init__(self, error_message):
        self.values = (error_message,)

    swaps = (AttributeSwap(_refusal, "message"),)


class save_on_cpu:
    """Saves values on the CPU, where all values are: it has no effect."""

    def __init__(self, pin_memory=False, device_type="cuda"):
        self.pin_memory = pin_memory

    def __enter__(self):
        refuse_where_disabled()

    def __exit__(self, *error):
        return None


class allow_mutation_on_saved_tensors(saved_tensors_hooks):
    """Under it copies of values are saved, so that the originals may be overwritten.

    >>> x = tensorlib.ones(2, requires_grad=True)
    >>> with allow_mutation_on_saved_tensors():
    ...     y = x.exp()
    ...     z = y * y
    ...     y *= 0
    >>> z.sum().backward()
    >>> x.grad
    tensor([14.7781, 14.7781])
    """

    def __init__(self):
        super().__init__(Tensor.clone, lambda saved: saved)


__all__ = ["GradientEdge", "Node", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks",
           "get_gradient_edge", "increment_version", "register_multi_grad_hook", "save_on_cpu",
           "saved_tensors_hooks"]

explain(vars(), __all__)
