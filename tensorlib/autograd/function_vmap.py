"""`autograd.Function` inside `vmap`.

A Function may define `vmap`. With `generate_vmap_rule = True` its forward, backward and jvp run on
the whole batch, by its proxy. Any other runs example by example.
"""

from tensorlib._core.tensor.tensor import Tensor
from tensorlib.autograd.batch import (
    Batched, Level, VmapInfo, innermost, is_at, one_by_one, seen, batch_of,
)


def run_forward(function, ctx, args):
    """The result of the forward of a Function; `ctx` gets what it saves."""
    if not function._sets_up():
        return function.forward(ctx, *args)
    output = function.forward(*args)
    function.setup_context(ctx, args, output)
    return output


def apply_to_batch(function, args, generated):
    """`function.apply(*args)` with Batched arguments; `generated` is for whole batches."""
    level = innermost(args)
    if not function._has_vmap() and not function.generate_vmap_rule:
        return seen(one_by_one(function.__name__, function.apply, level, args, {}), level)
    dims = tuple([0 if is_at(x, level) else None for x in args])
    values = [x.value if d == 0 else x for x, d in zip(args, dims)]
    if function._has_vmap():
        with level.outside():
            result = function.vmap(VmapInfo(level.size, level.randomness), dims, *values)
        if not isinstance(result, tuple) or len(result) != 2:
            raise RuntimeError(f"{function.__name__}: its vmap must return (outputs, out_dims)")
        return placed(function, *result, level)
    with level.outside():
        output = generated.apply(function, level.size, level.randomness, dims, *values)
    if isinstance(output, tuple):
        return tuple([Batched(x, level) if isinstance(x, Tensor) else x for x in output])
    return Batched(output, level)


def placed(function, outputs, dims, level):
    """The outputs of a Function's own vmap as examples: each has the batch at its dim, or not."""
    if not isinstance(outputs, tuple):
        return outputs if dims is None else Batched(outputs.movedim(dims, 0), level)
    if not isinstance(dims, tuple):
        dims = (dims,) * len(outputs)
    if len(dims) != len(outputs):
        raise RuntimeError(f"{function.__name__}: its vmap returned {len(outputs)} outputs but "
                           f"{len(dims)} out_dims")
    return tuple([placed(function, x, d, level) for x, d in zip(outputs, dims)])


# ---- what the generated rule does: forward, backward and jvp, each under vmap --------------------

def forward(ctx, function, size, randomness, dims, *values):
    """The outputs for all examples. Keeps what the forward of the Function saved."""
    ctx.function, ctx.size, ctx.randomness, ctx.dims = function, size, randomness, dims
    ctx.inner = inner = type(ctx)(ctx.needs_input_grad[4:])
    with Level(size, randomness) as level:
        output = run_forward(function, inner, as_examples(values, dims, level))
        if inner._dirty:
            raise RuntimeError(f"{function.__name__}: vmap: a Function that writes into its inputs "
                               "needs a vmap of its own")
        several = isinstance(output, (tuple, list))
        outputs = tuple(output) if several else (output,)
        physical = [batch_of(x, level) if isinstance(x, Tensor) else x for x in outputs]
        fixed = {id(x) for x in inner._fixed}
        ctx.mark_non_differentiable(*[p for p, x in zip(physical, outputs) if id(x) in fixed])
        ctx.saved_dims = [0 if is_at(x, level) else None for x in inner._to_save]
        ctx.jvp_dims = [0 if is_at(x, level) else None for x in inner._for_forward]
        ctx.save_for_backward(*[x.value if is_at(x, level) else x for x in inner._to_save])
        ctx.save_for_forward(*[x.value if is_at(x, level) else x for x in inner._for_forward])
    ctx.set_materialize_grads(inner.materialize_grads)
    inner._to_save = inner._for_forward = inner._fixed = ()
    return tuple(physical) if several else physical[0]


def backward(ctx, *gs):
    """The gradients of all examples, summed for what these share."""
    function, inner = ctx.function, ctx.inner
    inner.needs_input_grad = ctx.needs_input_grad[4:]
    with Level(ctx.size, ctx.randomness) as level:
        inner._to_save = as_examples(ctx.saved_tensors, ctx.saved_dims, level)
        try:
            grads = function._gradient_rule()(inner, *as_examples(gs, (0,) * len(gs), level))
        finally:
            inner._to_save = ()
        grads = grads if isinstance(grads, tuple) else (grads,)
        if len(grads) != len(ctx.dims):
            raise RuntimeError(
                f"function {function._op.node_name} returned an incorrect number of gradients "
                f"(expected {len(ctx.dims)}, got {len(grads)})")
        return (None,) * 4 + tuple([gathered(g, d, level) for g, d in zip(grads, ctx.dims)])


def jvp(ctx, *tangents):
    """The tangents of the outputs for all examples."""
    inner, tangents = ctx.inner, tangents[4:]
    with Level(ctx.size, ctx.randomness) as level:
        inner._to_save = as_examples(ctx.saved_tensors, ctx.jvp_dims, level)
        try:
            moved = ctx.function.jvp(inner, *as_examples(tangents, ctx.dims, level))
        finally:
            inner._to_save = ()
        moved = moved if isinstance(moved, tuple) else (moved,)
        return tuple([batch_of(t, level) if isinstance(t, Tensor) else t for t in moved])


def as_examples(values, dims, level):
    """Each value as an example of the batch that it is, where its dim says so."""
    return tuple([Batched(x, level) if d == 0 and x is not None else x
                  for x, d in zip(values, dims)])


def gathered(g, dim, level):
    """The gradient of an input from those of the examples: of what they share it is the sum."""
    if not isinstance(g, Tensor):
        return g
    if dim == 0:
        return batch_of(g, level)
    return g.value.sum(0) if is_at(g, level) else g * level.size
