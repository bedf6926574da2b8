"""Forward mode, one operation at a time: the tangent of the output from those of the inputs.

What kind of map an operation is gives its rule. A linear one maps the tangents as it maps the
inputs; a multilinear one is linear in each argument; an element-wise one multiplies each tangent
with the formula of its derivative. Only the rest declare a rule of their own, `@name.jvp`.

A rule sees one run of an operation: `Call`, which holds arguments and results, or `NodeCall`, what
a node kept of them (forward.py).
"""

from tensorlib._core.graph.op import find
from tensorlib._core.layout.views import zeros, zeros_like
from tensorlib._core.tensor.tensor import Tensor


class Call:
    """One run of an operation: its tensors, its attributes and what it gave."""

    def __init__(self, op, args, kwargs):
        tensors = len(op.arguments)
        self.op = op
        self.inputs = tuple(args[0]) if op.variadic else tuple(args[:tensors])
        self.attributes = {**dict(zip(op.attributes, args[tensors:])), **kwargs}
        out = op.function(*((self.inputs,) if op.variadic else self.inputs), **self.attributes)
        self.outputs = (out,) if isinstance(out, Tensor) else tuple(out)
        self.result = out

    def input(self, i):
        """Input `i`."""
        return self.inputs[i]

    def output(self, k):
        """Output `k`."""
        return self.outputs[k]

    def input_facts(self, i):
        """Shape and dtype of input `i`."""
        return self.inputs[i].shape, self.inputs[i].dtype

    def output_facts(self, k):
        """Shape and dtype of output `k`."""
        return self.outputs[k].shape, self.outputs[k].dtype

    def zeros(self, i):
        """Zeros like input `i`."""
        return zeros_like(self.inputs[i])


def tangent_of(call, tangents):
    """The tangent of what a call gave: a Tensor, or a tuple where the operation gives several."""
    return RULES[call.op.linearity](call, tangents)


def check_derivative(op):
    """Raises RuntimeError for an operation that forward mode cannot pass."""
    if not op.differentiable:
        raise RuntimeError(f"jvp: {op.name} has no derivative")
    if op.linearity not in RULES:
        raise RuntimeError(
            f"jvp: {op.name} has no forward-mode rule; declare it linear or multilinear, or add "
            f"@{op.name}.jvp")


def linear_tangent(call, tangents):
    """The operation applied to the tangents."""
    moved = filled(call, tangents)
    op = call.op
    return fitted(op.function(*((moved,) if op.variadic else moved), **call.attributes), call)


def multilinear_tangent(call, tangents):
    """The sum of the operation with one argument after the other replaced by its tangent."""
    op, places = call.op, range(len(tangents))
    return added(
        [op.function(*[tangent if k == i else call.input(k) for k in places], **call.attributes)
         for i, tangent in enumerate(tangents) if tangent is not None], call)


def elementwise_tangent(call, tangents):
    """The sum of each tangent times the derivative for its argument."""
    terms = []
    for rule, tangent in zip(call.op.rules, tangents):
        if tangent is None or rule is None:
            continue
        slope = rule.function(*[
            tangent if name == "g" else valued(call, name) for name in rule.names])
        if "g" in rule.names:
            terms.append(slope)
        elif isinstance(slope, (int, float)):
            terms.append(tangent * slope)
        else:
            terms.append(find("zmul").function(tangent, slope))
    return added(terms, call)


def declared_tangent(call, tangents):
    """What the operation's own forward-mode rule gives."""
    op, rule = call.op, call.op.tangent_rule
    known = {**dict(zip(op.attributes, op.defaults)), **call.attributes}
    known.update(zip([f"d_{name}" for name in op.arguments], filled(call, tangents)))
    return rule(*[
        known[name] if name in known else valued(call, name) for name in op.tangent_names])


def function_tangent(call, tangents):
    """What the user's `jvp` of an `autograd.Function` gives: a tuple, with None for no tangent."""
    return call.op.tangent_rule(call, tangents)


RULES = {"linear": linear_tangent, "multilinear": multilinear_tangent,
         "deriv": elementwise_tangent, "jvp": declared_tangent, "function": function_tangent}


def valued(call, name):
    """What a parameter of a rule stands for: an output, an argument, or a fact of an argument."""
    op = call.op
    if name in op.outputs:
        return call.output(op.outputs.index(name))
    if name in op.arguments:
        return call.input(op.arguments.index(name))
    owner, _, what = name.rpartition("_")
    shape, dtype = call.input_facts(op.arguments.index(owner))
    return {"shape": shape, "ndim": len(shape), "dtype": dtype}[what]


def filled(call, tangents):
    """The tangents, zeros for those that are None."""
    return tuple(call.zeros(i) if tangent is None else tangent
                 for i, tangent in enumerate(tangents))


def added(terms, call):
    """The sum of the terms, brought to the shape and dtype of the output."""
    if not terms:
        return zeros(*call.output_facts(0))
    return fitted(sum(terms[1:], terms[0]), call)


def fitted(tangent, call):
    """A tangent in the shape and dtype of the output, where these come from other arguments."""
    shape, dtype = call.output_facts(0)
    tangent = tangent if tangent.shape == shape else tangent.expand(shape)
    return tangent if tangent.dtype == dtype else tangent.to(dtype)
