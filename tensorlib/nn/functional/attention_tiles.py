"""Attention by tiles as a node of the graph: one kernel forward, one for all three gradients."""

import math

from tensorlib._core.base.shape import broadcast_shapes
from tensorlib._core.products import attention as kernels
from tensorlib.autograd import is_grad_enabled
from tensorlib.autograd.function import Function
from tensorlib.nn.functional.attention import weights_of


class Attention(Function):
    """Attention of (heads, L, E), (heads, S, E), (heads, S, V) by one kernel, and its gradient."""

    @staticmethod
    def forward(ctx, query, key, value, mask, causal, scale):
        ctx.save_for_backward(query, key, value)
        ctx.save_for_forward(query, key, value)
        query, key, value = (x.detach().contiguous() for x in (query, key, value))
        out, logs = kernels.attention(query, key, value, mask, causal, scale)
        ctx.options, ctx.mask = (causal, scale), mask
        ctx.out, ctx.logs = out.detach(), logs
        return out

    @staticmethod
    def backward(ctx, g):
        (query, key, value), (causal, scale) = ctx.saved_tensors, ctx.options
        if not is_grad_enabled():
            grads = kernels.attention_backward(
                g.contiguous(), *(x.contiguous() for x in (query, key, value)), ctx.out, ctx.logs,
                ctx.mask, causal, scale)
            return *grads, None, None, None
        p = weights_of(query, key, ctx.mask, causal, scale)
        slope = g @ value.mT
        slope = p * (slope - (slope * p).sum(-1, keepdim=True)) * scale
        return slope @ key, slope.mT @ query, p.mT @ g, None, None, None

    @staticmethod
    def jvp(ctx, d_query, d_key, d_value, *_):
        (query, key, value), (causal, scale) = ctx.saved_tensors, ctx.options
        p = weights_of(query, key, ctx.mask, causal, scale)
        moved = 0
        if d_query is not None:
            moved = moved + d_query @ key.mT * scale
        if d_key is not None:
            moved = moved + query @ d_key.mT * scale
        moved = p * (moved - (p * moved).sum(-1, keepdim=True))
        out = moved @ value
        return out if d_value is None else out + p @ d_value


def by_tiles(name, query, key, value, mask, causal, scale):
    """Attention by the kernel: all dims before the last two are heads."""
    lead = ()
    for x in (query, key, value, *(() if mask is None else (mask,))):
        lead = broadcast_shapes(name, lead, x.shape[:-2])
    heads = math.prod(lead)
    dtype = query.dtype
    wide = [x.float() if dtype.name in ("float16", "bfloat16") else x for x in (query, key, value)]
    rows = [x.expand((*lead, *x.shape[-2:])).reshape((heads, *x.shape[-2:])) for x in wide]
    if mask is not None:
        sizes = (*lead, query.shape[-2], key.shape[-2])
        broadcast_shapes(name, mask.shape, sizes)
        mask = mask.to(rows[0].dtype).detach().expand(sizes).reshape((heads, *sizes[-2:]))
    out = Attention.apply(*rows, mask, causal, scale)
    return out.reshape((*lead, *out.shape[-2:])).to(dtype)
