"""Forward mode, one operation at a time: the tangent of the output from those of the inputs.

What kind of map an operation is gives its rule. A linear one maps the tangents as it maps the
inputs; a multilinear one is linear in each argument; an element-wise one multiplies each tangent
with the formula of its derivative. Only the rest declare a rule of their own, `@name.jvp`.
"""

import functools

from tensorlib._core.layout import zeros_like
from tensorlib._core.op import find

FACTS = ("shape", "ndim", "dtype")      # what a rule may ask of an argument, as in `input_shape`


def jvp_of(op, args, kwargs, tangents):
    """The output of operation `op` and its tangent, both made of operations that can be recorded.

    `args` are the operation's tensors (or their sequence) and then its attributes, `tangents` a
    tangent or None for each of the tensors. With several outputs the tangent is a tuple too.

    Raises: RuntimeError for an operation without a derivative, NotImplementedError for a function
    that is made of operations, which have rules of their own.

    >>> x = tensorlib.tensor([0.0, 1.0])
    >>> out, tangent = jvp_of(find("square"), (x,), {}, (tensorlib.ones(2),))
    >>> tangent
    tensor([0., 2.])
    """
    if op.linearity == "composite":
        raise NotImplementedError(f"jvp_of: {op.name} is made of operations; differentiate those")
    if not op.differentiable or not op.linearity:
        raise RuntimeError(f"jvp_of: {op.name} has no derivative")
    tensors = tuple(args[0]) if op.variadic else args[: len(op.arguments)]
    if len(tangents) != len(tensors):
        raise ValueError(
            f"jvp_of: {op.name} got {len(tensors)} tensors but {len(tangents)} tangents")
    out = op.function(*args, **kwargs)
    return out, RULES[op.linearity](op, args, kwargs, tensors, tangents, out)


def rule_of(op):
    """The forward-mode rule of an operation, `jvp_of` of it; None where it has none."""
    known = op.differentiable and op.linearity in RULES
    return functools.partial(jvp_of, op) if known else None


def linear_tangent(op, args, kwargs, tensors, tangents, out):
    """The operation applied to the tangents."""
    moved = filled(tensors, tangents)
    attributes = args[len(op.arguments):]
    return op.function(*((moved,) if op.variadic else moved), *attributes, **kwargs)


def multilinear_tangent(op, args, kwargs, tensors, tangents, out):
    """The sum of the operation with one argument after the other replaced by its tangent."""
    terms = [op.function(*args[:i], tangent, *args[i + 1:], **kwargs)
             for i, tangent in enumerate(tangents) if tangent is not None]
    return added(terms, out)


def elementwise_tangent(op, args, kwargs, tensors, tangents, out):
    """The sum of each tangent times the derivative for its argument."""
    terms = []
    for rule, tangent in zip(op.rules, tangents):
        if tangent is None or rule is None:
            continue
        known = {"g": tangent, op.outputs[0]: out, **dict(zip(op.arguments, args))}
        slope = rule.function(*[known[name] for name in rule.names])
        if "g" in rule.names:
            terms.append(slope)
        elif isinstance(slope, (int, float)):
            terms.append(tangent * slope)
        else:
            terms.append(find("zmul").function(tangent, slope))
    return added(terms, out)


def declared_tangent(op, args, kwargs, tensors, tangents, out):
    """What the operation's own forward-mode rule gives."""
    rule = op.tangent_rule
    known = dict(zip(op.attributes, op.defaults))
    known.update(zip(op.arguments + op.attributes, args))
    known.update(kwargs)
    known.update(zip(op.outputs, out if isinstance(out, tuple) else (out,)))
    for name, x, tangent in zip(op.arguments, tensors, filled(tensors, tangents)):
        known[f"d_{name}"] = tangent
        known.update((f"{name}_{fact}", getattr(x, fact)) for fact in FACTS)
    return rule(*[known[name] for name in op.tangent_names])


RULES = {"linear": linear_tangent, "multilinear": multilinear_tangent,
         "deriv": elementwise_tangent, "jvp": declared_tangent}


def filled(tensors, tangents):
    """The tangents, zeros for those that are None."""
    return tuple(zeros_like(x) if tangent is None else tangent
                 for x, tangent in zip(tensors, tangents))


def added(terms, out):
    """The sum of the terms, which broadcast to the shape of the output."""
    if not terms:
        return zeros_like(out)
    total = sum(terms[1:], terms[0])
    return total if total.shape == out.shape else total.expand(out.shape)
