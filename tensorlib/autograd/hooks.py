"""Methods of Tensor for its gradient: `register_hook`, `retain_grad` and the like."""

import weakref

from tensorlib._core.graph.attached import (
    add_accumulated_hook, add_hook, add_retaining_hook,
)
from tensorlib._core.interpreters.stack import tell
from tensorlib._core.sweep.sweep import own_node
from tensorlib.ops.publish import attach_checked


def register_hook(self, hook):
    """Calls `hook(grad)` whenever the gradient of this tensor has been computed.

    If it returns a tensor, that replaces the gradient. Hooks run in the order of registration, each
    on the result of the ones before. A hook belongs to the value that its tensor has now, even if
    that is overwritten later. Returns a handle with `remove()`.

    Raises: RuntimeError if the tensor requires no gradient; in the sweep, if what the hook returns
    has another shape or dtype; TypeError if it is not a tensor.

    >>> x = tensorlib.tensor([1.0, 2.0], requires_grad=True)
    >>> handle = x.register_hook(lambda g: g * 10)
    >>> x.sum().backward()
    >>> x.grad
    tensor([10., 10.])
    """
    if not self.requires_grad:
        raise RuntimeError("register_hook: cannot register a hook on a tensor that doesn't require "
                           "gradient")
    own_node(self, True)
    handle = add_hook(self, hook)
    tell("hooked", "register_hook", self, hook, handle)
    return handle


def register_post_accumulate_grad_hook(self, hook):
    """Calls `hook(leaf)` whenever a sweep has accumulated into the `.grad` of this leaf.

    Returns a handle with `remove()`. Raises: RuntimeError unless it is a leaf that requires grad.

    >>> w = tensorlib.tensor([1.0, 2.0], requires_grad=True)
    >>> def step(w):
    ...     with tensorlib.no_grad():
    ...         w -= 0.1 * w.grad
    ...     w.grad = None
    >>> handle = w.register_post_accumulate_grad_hook(step)
    >>> (w * w).sum().backward()
    >>> w
    tensor([0.8000, 1.6000], requires_grad=True)
    """
    if not self.requires_grad:
        raise RuntimeError("register_post_accumulate_grad_hook: cannot register a hook on a tensor "
                           "that doesn't require gradient")
    if not self.is_leaf:
        raise RuntimeError("register_post_accumulate_grad_hook: post accumulate grad hooks cannot "
                           "be registered on non-leaf tensors")
    tell("effect", "register_post_accumulate_grad_hook", self)
    return add_accumulated_hook(self, hook)


def retain_grad(self):
    """Makes `backward` keep the gradient of this tensor, which is not a leaf, in `.grad`.

    It is the gradient of the newest value, if the tensor is overwritten later, after all its hooks.
    Raises: RuntimeError if the tensor requires no gradient.

    >>> x = tensorlib.tensor([1.0, 2.0], requires_grad=True)
    >>> y = x * 2
    >>> y.retain_grad()
    >>> (y * y).sum().backward()
    >>> y.grad
    tensor([4., 8.])
    """
    if not self.requires_grad:
        raise RuntimeError("retain_grad: can't retain_grad on Tensor that has requires_grad=False")
    if not self.is_leaf:
        tell("hooked", "retain_grad", self, None, None)
        own_node(self)
        add_retaining_hook(self, RetainGradHook(self))


class RetainGradHook:
    """The hook of `retain_grad`. It holds its tensor weakly, since that holds the node."""

    def __init__(self, x):
        self.x = weakref.ref(x)

    def __call__(self, g):
        x = self.x()
        if x is not None:
            x.grad = g if x.grad is None else x.grad + g


for _function in (register_hook, register_post_accumulate_grad_hook, retain_grad):
    attach_checked(_function.__name__, _function)
