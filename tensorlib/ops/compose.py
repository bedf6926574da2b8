"""`compose`: a function of operations as one operation, whose node holds an inner graph."""

import functools
from collections.abc import Callable
from typing import Any

from tensorlib._core.base.error_names import type_name
from tensorlib._core.graph.modes import is_grad_enabled
from tensorlib._core.graph.node import recorded_so_far
from tensorlib._core.graph.op import Op
from tensorlib._core.interpreters.foreign import runs_in_parts
from tensorlib._core.interpreters.stack import offered_as
from tensorlib._core.sweep.python_nodes import (
    captured,
    custom_node,
    is_retained,
    linked_alias,
    payload_of,
    set_history,
    sweep_inside,
    wanted_inputs,
    without_values,
)
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.complete import own_name
from tensorlib.ops.pending import put_operation
from tensorlib.ops.primitive import signature_of, starred

# Links the arguments inside to those outside.
ARGUMENT = Op("argument", "The argument of a composed operation.", ("input",), linearity="linear")
ARGUMENT.add_rule("input", lambda g: g, constant=1)


class InnerGraph:
    """The inputs and outputs of the graph in a node, until it is released.

    They are tensors without values (None where no gradient passes), so that only the saved values
    of the inner nodes are kept alive; `names` are the names of the inputs in the function, None
    for captured ones.
    """

    __slots__ = ("inputs", "names", "outputs")

    def __init__(self, inputs, names, outputs):
        self.inputs = tuple(without_values(x) if x.requires_grad else None for x in inputs)
        self.outputs = tuple(without_values(x) if x.requires_grad else None for x in outputs)
        self.names = names


def compose(name: str, fun: Callable[..., Any]) -> Op:
    """The Op `name` of a function made of operations: recorded as one node, its graph inside.

    Parameters of `fun` without a default, or `*args`, are its tensors; those with one, or by
    keyword only, its attributes. It returns a Tensor or a tuple of Tensors. Tensors that it
    captures get gradients too, and may be shared. Composed operations can be nested.

    The name belongs to the module of `fun`; composed again it is replaced.
    Raises: ValueError for a name that the library has; when called, RuntimeError if `fun` writes to
    one of its tensors, TypeError if it returns something other than Tensors.

    >>> from tensorlib import ops
    >>> layer = ops.compose("tanh_layer", lambda x, w, b: (x @ w + b).tanh())
    >>> x, w = tensorlib.ones(2, 3), tensorlib.zeros(3, 4, requires_grad=True)
    >>> layer(x, w, tensorlib.zeros(4)).sum().backward()
    >>> w.grad[0]
    tensor([2., 2., 2., 2.])
    """
    if not callable(fun):
        raise TypeError(f"compose: fun must be a function, not {type(fun).__name__}")
    arguments, attributes, defaults, variadic = signature_of("compose", name, fun)
    record = Op(own_name(name, fun), fun.__doc__ or "", arguments, attributes, defaults,
                forward=fun, variadic=variadic, linearity="composite",
                family=getattr(fun, "__module__", None) or "")
    put_operation(record)
    record.add_rule(None, inner_gradients, names=("node", "g"))
    function = functools.partial(run, record)
    record.function = starred(
        lambda tensors, **given: function(*tensors, **given)) if variadic else function
    return record


def run(op, *args, **kwargs):
    """Runs a composed operation: as one node with an inner graph or, if needed, as its parts."""
    done = offered_as("composed", op, functools.partial(run, op), args, kwargs)
    if done is not NotImplemented:
        return done
    values = (*args, *kwargs.values())
    if not is_grad_enabled() or runs_in_parts(values):
        result = op.forward(*args, **kwargs)
        tensors_of(op, result)
        return result
    versions = [x._version for x in values if isinstance(x, Tensor)]
    since = recorded_so_far()
    # one for each position: a tensor that is passed twice gets two gradients, summed outside
    linked = [linked_alias(ARGUMENT, x) if isinstance(x, Tensor) and x.requires_grad else x
              for x in values]
    result = op.forward(*linked[:len(args)], **dict(zip(kwargs, linked[len(args):])))
    if [x._version for x in values if isinstance(x, Tensor)] != versions:
        raise RuntimeError(f"{op.name}: it wrote into one of its tensors; a composed operation "
                           "leaves them as they are: use the out-of-place form")
    outputs = tensors_of(op, result)
    roots = tuple(x for x in outputs if x.requires_grad)
    if not roots or runs_in_parts(outputs):
        return result
    names = names_of(op, args, kwargs)
    given = {name: x for name, x in zip(names, linked) if isinstance(x, Tensor)}
    own = tuple(x for x in given.values() if x.requires_grad)
    outside = captured(roots, own, since)
    inside = InnerGraph((*given.values(), *outside), tuple(given), outputs)
    node = custom_node(op, (*[x for x in values if isinstance(x, Tensor)], *outside), (),
                       len(outputs), inside)
    shown = [x.detach() if x.requires_grad else x for x in outputs]
    for slot, (x, inner) in enumerate(zip(shown, outputs)):
        if inner.requires_grad:
            set_history(node, slot, x)
    return type(result)(shown) if isinstance(result, (tuple, list)) else shown[0]


def names_of(op, args, kwargs):
    """The names of the values in the function of a composed operation."""
    if op.variadic:
        return (*[f"{op.arguments[0]}[{i}]" for i in range(len(args))], *kwargs)
    return (*(op.arguments + op.attributes)[:len(args)], *kwargs)


def tensors_of(op, result):
    """The Tensors that a composed operation returned. Raises TypeError for something else."""
    outputs = result if isinstance(result, (tuple, list)) else (result,)
    for x in outputs:
        if not isinstance(x, Tensor):
            raise TypeError(f"{op.name}: a composed operation returns Tensors, got "
                            f"{type_name(x)}")
    return outputs


def inner_gradients(node, g):
    """The gradients of a composed operation's inputs, by a sweep through the graph inside it."""
    inside = payload_of(node)
    if inside.outputs is None:
        raise RuntimeError(
            f"backward: the graph inside {node.name()} was released by the first backward through "
            "it. Trying to backward through the graph a second time needs retain_graph=True in the "
            "first backward")
    roots = [(x, grad) for x, grad in zip(inside.outputs, g if isinstance(g, tuple) else (g,))
             if grad is not None and x is not None]
    wanted = [i for i, is_wanted in enumerate(wanted_inputs(node)) if is_wanted]
    retained = is_retained(node)
    found = sweep_inside(tuple(x for x, _ in roots), tuple(grad for _, grad in roots),
                         tuple(inside.inputs[i] for i in wanted), retained)
    grads = [None] * len(inside.inputs)
    for i, grad in zip(wanted, found):
        grads[i] = grad
    if not retained:
        inside.inputs = inside.outputs = None
    return grads
