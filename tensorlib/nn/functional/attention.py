"""`scaled_dot_product_attention`: softmax(queries @ keys.mT) @ values, by tiles."""

import math

import numpy as np

from tensorlib import where
from tensorlib._core.apply.halves import are_cast
from tensorlib._core.interpreters.foreign import needs_formula
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.nn.functional.attention_tiles import by_tiles, scores_of
from tensorlib.nn.functional.dropout import dropout
from tensorlib.nn.functional.elementwise_losses import require_floating
from tensorlib.nn.functional.checks import check_optional
from tensorlib.ops.declare import composite
from tensorlib.ops.samples import calls, real, refusals


def attended(q, k, v, mask=None, dropout_p=0.0, is_causal=False, scale=None):
    """The reference of `scaled_dot_product_attention`."""
    scores = q @ k.swapaxes(-1, -2) * (1 / np.sqrt(q.shape[-1]) if scale is None else scale)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    if is_causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    p = np.exp(scores - scores.max(-1, keepdims=True))
    return p / p.sum(-1, keepdims=True) @ v


MASK = np.array([[True, False, True], [False, True, True]])


@composite(public=False, method=False, takes="floating", tolerance="product", reference=attended,
           samples=calls((real(2, 2), real(3, 2), real(3, 1)),
                         (real(2, 2), real(3, 2), real(3, 1), MASK),
                         (real(3, 2), real(3, 2), real(3, 2), {"is_causal": True, "scale": 0.7})),
           errors=refusals((RuntimeError, (2, 3), np.ones((2, 4)), np.ones((2, 4))),
                           (RuntimeError, (2, 3), np.ones((4, 3)), np.ones((2, 3))),
                           (RuntimeError, (3,), np.ones((2, 3)), np.ones((2, 3)))),
           rounds_once=False)
def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask=None,
                                 dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    """softmax(scale * query @ key.mT + mask) @ value, without holding the matrix of scores.

    attn_mask: False, or -inf, at keys that a query must not attend to; is_causal: nor to later
    ones. A query that attends to nothing gives zeros. scale: by default 1 / sqrt(E). enable_gqa:
    fewer heads of keys and values, each for several of queries. With dropout the matrix is held.
    Shapes: (*, L, E), (*, S, E), (*, S, V) -> (*, L, V), with broadcasting; mask (*, L, S).
    Raises: RuntimeError for sizes or dtypes that do not fit.
    Source: Dao et al., "FlashAttention", NeurIPS 2022.
    """
    name = "scaled_dot_product_attention"
    require_floating(name, query)
    if attn_mask is not None:
        check_optional(name, attn_mask=attn_mask)
    asked, known, held = query.shape, key.shape, value.shape
    if len(asked) < 2 or len(known) < 2 or len(held) < 2:
        raise RuntimeError(f"{name}: expects query, key and value of at least 2 dims")
    if not query.dtype is key.dtype is value.dtype and not are_cast(query, key, value):
        raise RuntimeError(f"{name}: expected query, key and value to have the same dtype, got "
                           f"{query.dtype}, {key.dtype} and {value.dtype}")
    if asked[-1] != known[-1] or known[-2] != held[-2]:
        raise RuntimeError(f"{name}: sizes do not fit: {tuple(asked)}, {tuple(known)} and "
                           f"{tuple(held)}")
    if is_causal and attn_mask is not None:
        raise RuntimeError(f"{name}: explicit attn_mask should not be set when is_causal=True")
    if enable_gqa:
        key, value = of_groups(name, query, key), of_groups(name, query, value)
    scale = 1 / math.sqrt(max(1, asked[-1])) if scale is None else float(scale)
    mask = None if attn_mask is None else additive(attn_mask, query.dtype)
    if dropout_p or mask is not None and (needs_formula((mask,)) or mask.requires_grad):
        weights = softmax_or_zeros(scores_of(query, key, mask, is_causal, scale))
        return dropout(weights, dropout_p) @ value
    return by_tiles(name, query, key, value, mask, bool(is_causal), scale)


def softmax_or_zeros(scores):
    """The softmax of rows, 0 in those that hold nothing but -inf."""
    if not scores.shape[-1]:
        return scores
    nothing = scores.detach().amax(-1, keepdim=True) == -math.inf
    return where(nothing, 0.0, where(nothing, 0.0, scores).softmax(-1))


def additive(mask, dtype):
    """A mask as what is added to scores."""
    return where(mask, 0.0, -math.inf).to(dtype) if mask.dtype.name == "bool" else mask.to(dtype)


def of_groups(name, query, x):
    """Keys or values with each head repeated for the queries that share it."""
    if min(query.ndim, x.ndim) < 3 or not x.shape[-3] or query.shape[-3] % x.shape[-3]:
        raise RuntimeError(f"{name}: the heads of query must be a multiple of those of key and "
                           f"value, got {tuple(query.shape)} and {tuple(x.shape)}")
    times = query.shape[-3] // x.shape[-3]
    shape = (*x.shape[:-2], times, *x.shape[-2:])
    return x.unsqueeze(-3).expand(shape).reshape((*x.shape[:-3], -1, *x.shape[-2:]))
