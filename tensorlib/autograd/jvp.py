"""The forward-mode rule of one operation as a function: what `Op.tangent` is."""

import functools

from tensorlib._core.tensor.tensor import Tensor
from tensorlib.autograd.tangent import RULES, check_derivative, tangent_of
from tensorlib.autograd.transform import Recording
from tensorlib.ops.calls import Call
from tensorlib.ops.declare import resolved, run_resolved


def jvp_of(op, args, kwargs, tangents):
    """The output of operation `op` and its tangent, both made of operations that can be recorded.

    `args` are the operation's tensors (or their sequence) and then its attributes, `tangents` a
    tangent or None for each of the tensors. With several outputs the tangent is a tuple too.
    Composed operations are differentiated by the rules of their parts.

    Raises: RuntimeError for an operation without a derivative or rule.

    >>> x = tensorlib.tensor([0.0, 1.0])
    >>> out, tangent = jvp_of(find("square"), (x,), {}, (tensorlib.ones(2),))
    >>> tangent
    tensor([0., 2.])
    """
    op, inputs, attributes = resolved(op, args, kwargs)
    tensors = inputs[0] if op.variadic else inputs
    if len(tangents) != len(tensors):
        raise ValueError(
            f"jvp_of: {op.name} got {len(tensors)} tensors but {len(tangents)} tangents")
    if op.linearity == "composite":
        return jvp_of_parts(op, list(tensors), attributes, tangents)
    check_derivative(op)
    out = run_resolved(op, inputs, attributes)
    outputs = (out,) if isinstance(out, Tensor) else tuple(out)
    return out, tangent_of(op, Call(op, inputs, outputs, attributes), tangents)


def jvp_of_parts(op, tensors, attributes, tangents):
    """`jvp_of` for composed operations."""
    moving = [i for i, tangent in enumerate(tangents) if tangent is not None]
    with Recording([tensors[i] for i in moving], forward_mode=True) as recording:
        for i, x in zip(moving, recording.inputs):
            tensors[i] = x
        out = run_resolved(op, [tensors] if op.variadic else tensors, attributes)
    several = not isinstance(out, Tensor)
    outputs = recording.finish(list(out) if several else [out])
    moved = recording.push(recording.path(), [tangents[i] for i in moving])
    return (tuple(outputs), tuple(moved)) if several else (outputs[0], moved[0])


def rule_of(op):
    """The forward-mode rule of an operation, `jvp_of` of it; None where it has none."""
    known = op.differentiable and (op.linearity in RULES or op.linearity == "composite")
    return functools.partial(jvp_of, op) if known else None
