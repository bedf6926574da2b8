"""Attention by tiles as one operation: a kernel forward, and one for all three gradients."""

import math

import numpy as np

from tensorlib import arange, where
from tensorlib._core.base.shape import broadcast_shapes
from tensorlib._core.layers import attention as kernels
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.nn.functional.fused import differentiated_by, stands_for
from tensorlib.ops.declare import op
from tensorlib.ops.references import gradients
from tensorlib.ops.samples import with_gradients

# For heads (*, L, E), (*, S, E) and (*, S, V), with a mask (*, L, S), or None, that is added to the
# scores. causal: a query attends to no later key.


def scores_of(query, key, mask, causal, scale):
    """The scores to which softmax is applied."""
    scores = query @ key.mT * scale
    if mask is not None:
        scores = scores + mask
    if causal:
        seen = arange(query.shape[-2]).unsqueeze(1) >= arange(key.shape[-2])
        scores = where(seen, scores, -math.inf)
    return scores


def attention_formula(query, key, value, mask, causal, scale):
    """`attention` by operations of their own; queries that attend to nothing give zeros."""
    scores = scores_of(query, key, mask, causal, scale)
    if not scores.shape[-1]:
        return scores @ value, scores.sum(-1) - math.inf
    top = scores.detach().amax(-1, keepdim=True)
    top = where(top == -math.inf, 0.0, top)
    parts = (scores - top).exp()
    sums = parts.sum(-1, keepdim=True)
    return (parts / where(sums == 0, 1.0, sums)) @ value, (sums.log() + top).squeeze(-1)


def backward_formula(grad, query, key, value, out, logs, mask, causal, scale):
    """`attention_backward` by operations of their own."""
    scores, shift = scores_of(query, key, mask, causal, scale), logs.unsqueeze(-1)
    p = where(shift == -math.inf, 0.0, (scores - shift).exp())
    slope = p * (grad @ value.mT - (grad * out).sum(-1, keepdim=True)) * scale
    return slope @ key, slope.mT @ query, p.mT @ grad


# ---- the references ------------------------------------------------------------------------------

def softmax_of(q, k, causal, scale):
    """The softmax of the scores and the logarithms of its sums, in NumPy."""
    scores = q @ k.swapaxes(-1, -2) * scale
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    sums = np.exp(scores).sum(-1, keepdims=True)
    return np.exp(scores) / np.where(sums == 0, 1, sums), np.log(sums)[..., 0]


def attention_reference(q, k, v, mask, causal, scale):
    """The reference of `attention` without a mask."""
    p, logs = softmax_of(q, k, causal, scale)
    return p @ v, logs


def backward_reference(g, q, k, v, out, logs, *options):
    """The reference of `attention_backward`."""
    return gradients(lambda *args: attention_reference(*args)[0], 3)(g, q, k, v, *options)


def heads(rng):
    """Samples of `attention`."""
    for n, queries, keys, width, causal in ((2, 2, 3, 2, False), (1, 3, 3, 2, True)):
        shapes = (n, queries, width), (n, keys, width), (n, keys, 2)
        yield (*(rng.uniform(-2, 2, shape) for shape in shapes), None, causal, 0.7), {}


# ---- the operations ------------------------------------------------------------------------------

def multiplications_back(inputs, result):
    """The scores anew, and two products for the gradient of each of the two."""
    query, key, value = inputs[1:4]
    return math.prod(query[:-1]) * key[-2] * (3 * query[-1] + 2 * value[-1])


@stands_for(backward_formula)
@op(public=False, method=False, dtypes=("float32", "float64"), tolerance="product",
    differentiable=False, outputs=("g_query", "g_key", "g_value"), reference=backward_reference,
    samples=with_gradients(heads, attention_reference, 3), kernel=kernels.attention_backward,
    multiplications=multiplications_back)
def attention_backward(grad: Tensor, query: Tensor, key: Tensor, value: Tensor, out: Tensor,
                       logs: Tensor, mask, causal, scale):
    """The gradients of `attention` for its tensors, by one kernel."""


def multiplications(inputs, result):
    """Queries times keys, and the probabilities times values."""
    query, key, value = inputs[:3]
    return math.prod(query[:-1]) * key[-2] * (query[-1] + value[-1])


@differentiated_by(attention_formula, attention_backward, "logs")
@op(public=False, method=False, dtypes=("float32", "float64"), tolerance="product",
    outputs=("out", "logs"), reference=attention_reference, samples=heads,
    kernel=kernels.attention, multiplications=multiplications)
def attention(query: Tensor, key: Tensor, value: Tensor, mask, causal, scale):
    """softmax(scale * query @ key.mT + mask) @ value, and the logarithms of the softmax's sums.

    The matrix of scores is never held: a tile of it is, at a time.
    Shapes: (*, L, E), (*, S, E), (*, S, V), with a mask (*, L, S) or None -> (*, L, V), (*, L).
    Raises: RuntimeError for sizes that do not fit.
    Source: Dao et al., "FlashAttention", NeurIPS 2022.
    """


def by_tiles(name, query, key, value, mask, causal, scale):
    """Attention by the kernel: all dims before the last two are heads, which broadcast."""
    dtype = query.dtype
    is_half = dtype.itemsize == 2
    if is_half:
        query, key, value = query.float(), key.float(), value.float()
    leads = tuple(query.shape)[:-2], tuple(key.shape)[:-2], tuple(value.shape)[:-2]
    if mask is not None or not leads[0] == leads[1] == leads[2]:
        query, key, value, mask = with_one_lead(name, query, key, value, mask)
    out = attention(query, key, value, mask, causal, scale)[0]
    return out.to(dtype) if is_half and out.dtype.name == "float32" else out   # else by autocast


def with_one_lead(name, query, key, value, mask):
    """The same with the heads of all. Raises: RuntimeError for sizes that do not broadcast."""
    given = (query, key, value) if mask is None else (query, key, value, mask)
    lead = tuple(query.shape)[:-2]
    for x in given:
        if tuple(x.shape)[:-2] != lead:
            lead = broadcast_shapes(name, lead, tuple(x.shape)[:-2])
    query, key, value = [x if tuple(x.shape)[:-2] == lead else x.expand((*lead, *x.shape[-2:]))
                         for x in (query, key, value)]
    if mask is not None:
        sizes = (*lead, query.shape[-2], key.shape[-2])
        if tuple(mask.shape) != sizes:
            broadcast_shapes(name, mask.shape, sizes)
            mask = mask.expand(sizes)
        mask = mask.to(query.dtype)
    return query, key, value, mask
