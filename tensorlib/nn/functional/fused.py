"""Rules of fused operations, taken from the composed formulas that they replace."""

from inspect import signature
from operator import itemgetter

from tensorlib import bfloat16, float16, func, zeros_like
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.autograd import is_grad_enabled


def stands_for(formula, rows=0):
    """Makes `formula`, of the arguments of an operation, what a batch of it is computed by.

    rows: of how many of the first tensors dims in front are rows by themselves. The operation then
    takes a batch of these as it is where the examples share the other tensors.
    """
    def decorate(function):
        def batching(info, dims, *values, **attributes):
            if rows and all(dim is None for dim in dims[rows:]):
                moved = (x.expand(info.batch_size, *x.shape) if dim is None else x.movedim(dim, 0)
                         for x, dim in zip(values[:rows], dims))
                return function(*moved, *values[rows:], **attributes), 0
            mapped = func.vmap(lambda *xs: formula(*xs, **attributes), dims,
                               randomness=info.randomness)
            return mapped(*values), 0
        function.batching = batching
        return function
    return decorate


def gradients_of(formula, count=1):
    """The gradients of a formula for its first `count` arguments, as a formula of the gradient of
    its result and of its arguments."""
    def gradients(grad, *args, **attributes):
        moving, rest = args[:count], args[count:]
        found = func.vjp(lambda *xs: formula(*xs, *rest, **attributes), *moving)[1](grad)
        return found if count > 1 else found[0]
    return gradients


def in_single(value):
    """A tensor of a half type in float32; others unchanged."""
    if isinstance(value, Tensor) and value.dtype in (bfloat16, float16):
        return value.float()
    return value


def differentiated_by(formula, backward, *kept, constants=0, takes_halves=False):
    """Gives an operation the derivatives of `formula`, of its arguments, which gives its outputs.

    The sweep that nobody differentiates calls `backward` instead: with the gradients of the outputs
    but those in `kept`, which are there for its sake alone, then the operation's tensors, outputs
    and attributes that its parameters name. It returns a gradient for each tensor. Outputs that it
    does not name are not kept. constants: how many of the last tensors have no gradients, such as
    numbers of classes. takes_halves: `backward` computes half types in float32 and rounds once;
    else it gets float32 in their place.
    """
    def decorate(function):
        op = function.op
        count, results = len(op.arguments), len(op.outputs) - len(kept)
        wanted = tuple(signature(backward).parameters)[results:]
        by_output = not set(wanted).isdisjoint(op.outputs)
        named = op.outputs if by_output else ()
        moving = count - constants
        names = (*op.arguments, *named, *op.attributes)
        places = [names.index(name) for name in wanted]
        take = itemgetter(*places) if len(places) > 1 else lambda values: [values[places[0]]]
        single, none = moving == 1, (None,) * constants
        direct = len(op.outputs) == 1 and not by_output and not single and not constants

        def pull(g, *values):
            if direct and not is_grad_enabled():
                return backward(g, *take(values))
            plain = not is_grad_enabled() and (
                len(op.outputs) == 1 or all(x is None for x in g[results:]))
            if takes_halves and not plain:
                g, values = in_single(g), tuple(map(in_single, values))
            tensors, outputs = values[:count], values[count:count + len(named)]
            attributes = values[count + len(named):]
            if len(op.outputs) == 1:                     # its gradient is no tuple
                g = (g,)
            gs = tuple(zeros_like(out) if g_out is None else g_out
                       for g_out, out in zip(g[:results] if plain else g, outputs)
                       ) if by_output else g
            if plain:
                found = backward(*gs, *take(values))
                return (found, *none) if single else (*found, *none)
            gs = (*gs, *map(zeros_like, outputs[len(gs):]))
            return (*func.vjp(lambda *xs: formula(*xs, *tensors[moving:], *attributes),
                              *tensors[:moving])[1](gs if len(gs) > 1 else gs[0]), *none)

        def push(*values):
            tangents, tensors, attributes = (
                values[:count], values[count:2 * count], values[2 * count:])
            return func.jvp(lambda *xs: formula(*xs, *tensors[moving:], *attributes),
                            tensors[:moving], tangents[:moving])[1]

        op.add_rule(None, pull, names=("g", *names), takes_halves=takes_halves)
        op.add_tangent(push, (*(f"d_{x}" for x in op.arguments), *op.arguments, *op.attributes))
        return stands_for(formula)(function)
    return decorate
