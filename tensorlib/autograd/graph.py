"""The recorded graph from the user's side: its nodes, and hooks on the values they save."""

from tensorlib._core.node import Node, _set_packing


class saved_tensors_hooks:
    """Under it values that gradients need are saved as `pack_hook(value)`.

    The sweep gets them back by `unpack_hook(packed)`, which must give a tensor of the same shape
    and dtype. Of nested pairs the innermost counts. `pack_hook` runs under `no_grad`, on the value
    outside of its graph, which it must not write into. That a value was overwritten later is not
    noticed for those saved so.

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
        self.before = []

    def __enter__(self):
        self.before.append(_set_packing(self.hooks))

    def __exit__(self, *error):
        _set_packing(self.before.pop())


__all__ = ["Node", "saved_tensors_hooks"]
