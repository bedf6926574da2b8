"""Keeping and watching gradients of single tensors."""

import weakref

from tensorlib._core.node import add_hook, mark_retained
from tensorlib._core.tensor import attach


class RemovableHandle:
    """What registering a hook returns; `remove()` takes the hook off again."""

    def __init__(self, hooks, key):
        self.hooks = hooks
        self.key = key

    def remove(self):
        """Takes the hook off. Doing so twice is no error."""
        self.hooks.pop(self.key, None)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.remove()


def register_hook(self, hook):
    """Calls `hook(grad)` whenever the gradient of this tensor has been computed.

    A tensor that it returns takes the gradient's place. Returns a handle with `remove()`.
    Raises: RuntimeError if the tensor requires no gradient.
    """
    if not self.requires_grad:
        raise RuntimeError("register_hook: cannot register a hook on a tensor that doesn't require "
                           "gradient")
    return RemovableHandle(*add_hook(self, hook))


def retain_grad(self):
    """Makes `backward` keep the gradient of this tensor, which is no leaf, in `.grad`.

    Raises: RuntimeError if the tensor requires no gradient.
    """
    if not self.requires_grad:
        raise RuntimeError("retain_grad: can't retain_grad on Tensor that has requires_grad=False")
    if not self.is_leaf and mark_retained(self):
        add_hook(self, Keep(self))


class Keep:
    """The hook of `retain_grad`. It holds its tensor weakly, since that holds the node."""

    def __init__(self, x):
        self.x = weakref.ref(x)

    def __call__(self, g):
        x = self.x()
        if x is not None:
            x.grad = g if x.grad is None else x.grad + g


attach("register_hook", register_hook)
attach("retain_grad", retain_grad)
