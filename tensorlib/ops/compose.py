"""`compose`: one operation of a function made of others, with its graph inside one node."""

import functools
from collections.abc import Callable
from typing import Any

from tensorlib._core.custom import (
    captured,
    custom_node,
    is_retained,
    linked_alias,
    payload_of,
    set_history,
    sweep_inside,
    wanted_inputs,
)
from tensorlib._core.node import is_grad_enabled, recorded_so_far
from tensorlib._core.op import Op
from tensorlib._core.tensor import Tensor
from tensorlib.ops.primitive import signature_of

# What links the arguments inside to those outside.
ARGUMENT = Op("argument", "The argument of a composed operation.", ("input",), linearity="linear",
              registered=False)
ARGUMENT.add_rule("input", lambda g: g, constant=1)


class Inside:
    """The graph in a node: its inputs and outputs, until it is released."""

    __slots__ = ("inputs", "outputs")

    def __init__(self, inputs, outputs):
        self.inputs = inputs
        self.outputs = outputs


def compose(name: str, fun: Callable[..., Any]) -> Op:
    """The Op `name` of a function made of operations: recorded as one node, its graph inside.

    Parameters of `fun` without a default are its tensors, those with one its attributes. It returns
    a Tensor or a tuple of Tensors. Tensors that it takes from around it get gradients too, and may
    be shared. Composed operations may be parts of others.

    Raises: ValueError for a name that is taken; RuntimeError, when run, where `fun` writes into one
    of its tensors; TypeError where it returns something else than Tensors.

    >>> from tensorlib import ops
    >>> layer = ops.compose("tanh_layer", lambda x, w, b: (x @ w + b).tanh())
    >>> x, w = tensorlib.ones(2, 3), tensorlib.zeros(3, 4, requires_grad=True)
    >>> layer(x, w, tensorlib.zeros(4)).sum().backward()
    >>> w.grad[0]
    tensor([2., 2., 2., 2.])
    """
    if not callable(fun):
        raise TypeError(f"compose: fun must be a function, not {type(fun).__name__}")
    arguments, attributes, defaults = signature_of("compose", name, fun)
    record = Op(name, fun.__doc__ or "", arguments, attributes, defaults, forward=fun,
                linearity="composite")
    record.add_rule(None, inner_gradients, names=("node", "g"))
    record.function = functools.partial(run, record)
    return record


def run(op, *args, **kwargs):
    """Runs a composed operation, its graph inside one node."""
    if not is_grad_enabled():
        return op.forward(*args, **kwargs)
    given = [x for x in (*args, *kwargs.values()) if isinstance(x, Tensor)]
    versions = [x._version for x in given]
    since = recorded_so_far()
    own = {id(x): linked_alias(ARGUMENT, x) for x in given if x.requires_grad}
    result = op.forward(*[own.get(id(x), x) for x in args],
                        **{key: own.get(id(x), x) for key, x in kwargs.items()})
    if [x._version for x in given] != versions:
        raise RuntimeError(f"{op.name}: it wrote into one of its tensors; a composed operation "
                           "leaves them as they are: use the out-of-place form")
    outputs = result if isinstance(result, (tuple, list)) else (result,)
    for x in outputs:
        if not isinstance(x, Tensor):
            raise TypeError(f"{op.name}: a composed operation returns Tensors, got "
                            f"{type(x).__name__}")
    roots = tuple(x for x in outputs if x.requires_grad)
    if not roots:
        return result
    outside = captured(roots, tuple(own.values()), since)
    inputs = tuple(own.get(id(x), x) for x in given) + outside
    node = custom_node(op, (*given, *outside), (), len(outputs), Inside(inputs, tuple(outputs)))
    shown = [x.detach() if x.requires_grad or id(x) in own else x for x in outputs]
    for slot, (x, inner) in enumerate(zip(shown, outputs)):
        if inner.requires_grad:
            set_history(node, slot, x)
    return type(result)(shown) if isinstance(result, (tuple, list)) else shown[0]


def inner_gradients(node, g):
    """The gradients of a composed operation's inputs, by a sweep through the graph inside it."""
    inside = payload_of(node)
    if inside.outputs is None:
        raise RuntimeError(
            f"backward: the graph inside {node.name()} was released by the first backward through "
            "it. To go through it a second time, call the first backward with retain_graph=True")
    roots = [(x, grad) for x, grad in zip(inside.outputs, g if isinstance(g, tuple) else (g,))
             if grad is not None and x.requires_grad]
    # a tensor that was given twice has two places here, and one gradient
    wanted = {id(inside.inputs[i]): i for i, is_wanted in enumerate(wanted_inputs(node))
              if is_wanted}.values()
    retained = is_retained(node)
    found = sweep_inside(tuple(x for x, _ in roots), tuple(grad for _, grad in roots),
                         tuple(inside.inputs[i] for i in wanted), retained)
    grads = [None] * len(inside.inputs)
    for i, grad in zip(wanted, found):
        grads[i] = grad
    if not retained:
        inside.inputs = inside.outputs = None
    return grads
