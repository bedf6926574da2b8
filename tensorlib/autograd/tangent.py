"""Forward mode, one operation at a time: the tangent of the output from those of the inputs.

The kind of map that an operation is determines its rule. A linear one maps the tangents as it maps
the inputs; a multilinear one is linear in each argument; an element-wise one multiplies each
tangent with the formula of its derivative. Only the rest declare a rule of their own, `@name.jvp`.

A rule gets the values of the call from a source: a node, which saved them (forward.py), or a
`Call`.
"""

from tensorlib._core.create.creation import zeros
from tensorlib._core.sweep import graph_reader, rules
from tensorlib.ops.primitive import NoForwardRule, Primitive


def tangent_of(op, source, tangents):
    """The tangent of the result of a call of `op`: a Tensor, or a tuple for several results.

    `tangents` are a tensor or None for each input. Raises RuntimeError as `check_derivative`.
    """
    check_derivative(op)
    return RULES[op.linearity](op, source, tangents)


def check_derivative(op):
    """Raises RuntimeError for an operation that forward mode cannot pass."""
    if not op.differentiable:
        raise RuntimeError(f"jvp: {op.name} has no derivative")
    if op.linearity not in RULES:
        remedy = "give it one by ops.defjvp" if isinstance(op.function, Primitive) else (
            f"declare it linear or multilinear, or add @{op.name.rpartition('.')[2]}.jvp")
        raise NoForwardRule(f"jvp: {op.name} has no forward-mode rule; {remedy}")


def linear_tangent(op, source, tangents):
    """The operation applied to the tangents."""
    moved = filled(source, tangents)
    return fitted(op.function(*((moved,) if op.variadic else moved),
                              **graph_reader.attributes(source)), source)


def multilinear_tangent(op, source, tangents):
    """The sum of the operation with one argument after the other replaced by its tangent."""
    places, attributes = range(len(tangents)), graph_reader.attributes(source)
    return added([op.function(*[tangent if k == i else graph_reader.kept_input(source, k)
                                for k in places], **attributes)
                  for i, tangent in enumerate(tangents) if tangent is not None], source)


def elementwise_tangent(op, source, tangents):
    """The sum of each tangent times the derivative for its argument."""
    return added([rules.push_tangent(source, op, i, tangent) for i, tangent in enumerate(tangents)
                  if tangent is not None and op.rules[i] is not None], source)


def declared_tangent(op, source, tangents):
    """By the operation's own forward-mode rule."""
    return rules.tangent(source, op, filled(source, tangents))


def function_tangent(op, node, tangents):
    """By the `jvp` of an `autograd.Function`: a tuple, with None for no tangent."""
    return op.tangent_rule.function(node, tangents)


RULES = {"linear": linear_tangent, "multilinear": multilinear_tangent,
         "deriv": elementwise_tangent, "jvp": declared_tangent, "function": function_tangent}


def filled(source, tangents):
    """The tangents, with zeros for those that are None."""
    return tuple(no_change(*graph_reader.input_facts(source, i)) if tangent is None else tangent
                 for i, tangent in enumerate(tangents))


def no_change(shape, dtype):
    """The tangent of what does not depend on the inputs."""
    return zeros(shape, dtype=dtype)


def added(terms, source):
    """The sum of the terms, brought to the shape and dtype of the output."""
    if not terms:
        return no_change(*graph_reader.output_facts(source, 0))
    return fitted(sum(terms[1:], terms[0]), source)


def fitted(tangent, source):
    """A tangent in the shape and dtype of the output, where these come from other arguments."""
    shape, dtype = graph_reader.output_facts(source, 0)
    tangent = tangent if tangent.shape == shape else tangent.expand(shape)
    if tangent.dtype.is_complex and not dtype.is_complex:        # the change of a real function
        tangent = tangent.real
    return tangent if tangent.dtype == dtype else tangent.to(dtype)
