"""Multi-head attention with its projections: what `nn.MultiheadAttention` computes."""

import numpy as np

from tensorlib import cat, zeros
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.nn.functional.attention import additive, scaled_dot_product_attention
from tensorlib.nn.functional.dropout import dropout
from tensorlib.nn.functional.linear import linear
from tensorlib.ops.declare import composite

NAME = "multi_head_attention_forward"


def require(holds, message, error=AssertionError):
    """Raises `error`, with the operation's name, unless something holds."""
    if not holds:
        raise error(f"{NAME}: {message}")


# ---- arguments -----------------------------------------------------------------------------------

def check_inputs(query, key, value, embed_dim, num_heads, separate):
    """Raises AssertionError for dims and sizes that do not fit."""
    of_query, of_key, of_value = query.shape, key.shape, value.shape
    ndim = len(of_query)
    if (ndim in (2, 3) and of_query[-1] == embed_dim and embed_dim % num_heads == 0
            and (of_key == of_value or separate and of_key[:-1] == of_value[:-1])
            and ndim == len(of_key) and (ndim == 2 or of_query[1] == of_key[1])):
        return                           # the common case, without building messages
    require(ndim in (2, 3), "query should be unbatched 2D or batched 3D tensor but received "
                            f"{ndim}-D query tensor")
    require(ndim == key.ndim == value.ndim,
            f"For a query of {ndim} dims, expected `key` and `value` to be {ndim}-D but found "
            f"{key.ndim}-D and {value.ndim}-D tensors respectively")
    require(of_query[-1] == embed_dim,
            f"was expecting embedding dimension of {embed_dim}, but got {of_query[-1]}")
    require(embed_dim % num_heads == 0,
            f"embed_dim {embed_dim} not divisible by num_heads {num_heads}")
    shared = -1 if separate else None             # dims that keys and values have in common
    require(of_key[:shared] == of_value[:shared],
            f"key shape {tuple(of_key)} does not match value shape {tuple(of_value)}")
    require(ndim == 2 or of_query[1] == of_key[1],
            f"a query of {of_query[1:-1]} examples, but a key of {of_key[1:-1]}")


def check_mask(what, mask):
    """Raises AssertionError for a mask that is neither bool nor floating."""
    require(mask is None or mask.dtype.name == "bool" or mask.is_floating_point(),
            mask is not None and f"only bool and floating types of {what} are supported, got "
                                 f"{mask.dtype}")


def hidden(mask, dtype):
    """A mask, which is True or -inf at what is hidden, as what is added to scores."""
    return additive(~mask if mask.dtype.name == "bool" else mask, dtype)


def scores_mask(attn_mask, padding, batch, heads, queries, keys, dtype):
    """Both masks as one of (B, H, L, S), or what broadcasts to that; None where there are none."""
    mask = None
    if attn_mask is not None:
        wanted = (queries, keys) if attn_mask.ndim == 2 else (batch * heads, queries, keys)
        require(attn_mask.ndim in (2, 3), "attn_mask must have 2 or 3 dims, got "
                                          f"{attn_mask.ndim}")
        require(tuple(attn_mask.shape) == wanted,
                f"The shape of the {attn_mask.ndim}D attn_mask is {tuple(attn_mask.shape)}, but "
                f"should be {wanted}.", RuntimeError)
        mask = hidden(attn_mask, dtype)
        if mask.ndim == 3:
            mask = mask.reshape(batch, heads, queries, keys)
    if padding is not None:
        require(tuple(padding.shape) == (batch, keys),
                f"expected a key_padding_mask of shape {(batch, keys)}, got "
                f"{tuple(padding.shape)}")
        padding = hidden(padding, dtype).reshape(batch, 1, 1, keys)
        mask = padding if mask is None else mask + padding
    return mask


# ---- projections ---------------------------------------------------------------------------------

def projected(query, key, value, weight, bias):
    """Queries, keys and values by one weight, in as few products as they are tensors."""
    size = query.shape[-1]
    if query is key is value:
        return linear(query, weight, bias).chunk(3, -1)
    of_query, of_keys = weight[:size], weight[size:]
    b_query, b_keys = (None, None) if bias is None else (bias[:size], bias[size:])
    if key is value:
        return linear(query, of_query, b_query), *linear(key, of_keys, b_keys).chunk(2, -1)
    weights = of_query, *of_keys.chunk(2)
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    return tuple(map(linear, (query, key, value), weights, biases))


def lies_by_batch(x):
    """Whether (L, B, E) lies in memory as (B, L, E): its projections and heads do then, too. Of a
    variable of a program nothing is known."""
    return hasattr(x, "stride") and x.stride(0) < x.stride(1)


def turned(query, key, value):
    """(L, B, E) as (B, L, E), and back; of the same tensors the same one."""
    of_query = query.transpose(0, 1)
    of_key = of_query if key is query else key.transpose(0, 1)
    return of_query, of_key, of_key if value is key else value.transpose(0, 1)


def in_heads(x, heads, by_batch):
    """(L, B, E), or (B, L, E), as (B, H, L, E / H)"""
    first, second, size = x.shape
    split = x.reshape(first, second, heads, size // heads)
    return split.transpose(1, 2) if by_batch else split.permute(1, 2, 0, 3)


def from_heads(x, batch, queries, size, by_batch):
    """The same back."""
    if by_batch:
        return x.transpose(1, 2).reshape(batch, queries, size)
    return x.permute(2, 0, 1, 3).reshape(queries, batch, size)


# ---- the attention -------------------------------------------------------------------------------

def attended(q, k, v, added, attn_mask, key_padding_mask, need_weights, is_causal, p):
    """The attention of each head, and its weights or None.

    added: how many keys come after those that the masks are for.
    """
    if is_causal and key_padding_mask is None and not need_weights and not added:
        return scaled_dot_product_attention(q, k, v, None, p, True), None
    batch, heads, queries, size = q.shape
    mask = scores_mask(attn_mask, key_padding_mask, batch, heads, queries, k.shape[2] - added,
                       q.dtype)
    if mask is not None and added:
        mask = cat([mask, zeros((*mask.shape[:-1], added), dtype=mask.dtype)], -1)
    if not need_weights:
        return scaled_dot_product_attention(q, k, v, mask, p), None
    scores = (q * size ** -0.5) @ k.mT
    weights = dropout((scores if mask is None else scores + mask).softmax(-1), p)
    return weights @ v, weights


# ---- the function --------------------------------------------------------------------------------

def one_head(q, k, v, embed_dim, num_heads, weight, *rest):
    """The reference of `multi_head_attention_forward`: one head, no biases."""
    out = rest[-2]
    q, k, v = (x[:, 0] @ w.T for x, w in zip((q, k, v), np.split(weight, 3)))
    p = np.exp(q @ k.T / np.sqrt(embed_dim))
    p /= p.sum(-1, keepdims=True)
    return (p @ v @ out.T)[:, None], p[None]


def one_head_samples(rng):
    """A sample of `multi_head_attention_forward`."""
    q, k, v = rng.uniform(-1, 1, (3, 2, 1, 2))
    yield (q, k, v, 2, 1, rng.uniform(-1, 1, (6, 2)), None, None, None, False, 0.0,
           rng.uniform(-1, 1, (2, 2)), None), {}


@composite(tensors=("query", "key", "value", "in_proj_weight", "out_proj_weight"), public=False,
           method=False, takes="floating", tolerance="product",
           outputs=("attn_output", "attn_output_weights"), reference=one_head,
           samples=one_head_samples)
def multi_head_attention_forward(
        query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check, num_heads, in_proj_weight,
        in_proj_bias, bias_k, bias_v, add_zero_attn, dropout_p, out_proj_weight, out_proj_bias,
        training=True, key_padding_mask=None, need_weights=True, attn_mask=None,
        use_separate_proj_weight=False, q_proj_weight=None, k_proj_weight=None, v_proj_weight=None,
        static_k=None, static_v=None, average_attn_weights=True, is_causal=False):
    """Attention of several heads, projected before and after, and its weights or None.

    Masks are True, or -inf, at keys that a query must not attend to. bias_k, bias_v: one more key
    and value; add_zero_attn: one more of zeros. static_k, static_v: projected ones of
    (B * H, S, E / H). is_causal: says that `attn_mask` is causal, and spares reading it.
    need_weights: also gives softmax(scores), averaged over heads or, without
    `average_attn_weights`, of each.
    Shapes: (L, B, E), (S, B, K), (S, B, V) -> (L, B, E), (B, L, S) or (B, H, L, S); without B, too.
    Raises: AssertionError, RuntimeError for sizes, dims or dtypes of masks that do not fit.
    Source: Vaswani et al., "Attention Is All You Need", NeurIPS 2017.
    """
    check_inputs(query, key, value, embed_dim_to_check, num_heads, use_separate_proj_weight)
    check_mask("key_padding_mask", key_padding_mask)
    check_mask("attn_mask", attn_mask)
    require(not is_causal or attn_mask is not None,
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module "
            "method `generate_square_subsequent_mask` to create this mask.", RuntimeError)
    batched = query.ndim == 3
    if not batched:
        same = key is query, value is key
        query = query.unsqueeze(1)
        key = query if same[0] else key.unsqueeze(1)
        value = key if same[1] else value.unsqueeze(1)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    queries, batch, size = query.shape
    by_batch = bias_k is None and all(map(lies_by_batch, (query, key, value)))
    if by_batch:
        query, key, value = turned(query, key, value)
    if use_separate_proj_weight:
        biases = (None,) * 3 if in_proj_bias is None else in_proj_bias.chunk(3)
        q, k, v = map(linear, (query, key, value), (q_proj_weight, k_proj_weight, v_proj_weight),
                      biases)
    else:
        q, k, v = projected(query, key, value, in_proj_weight, in_proj_bias)
    added = 0
    if bias_k is not None and bias_v is not None:
        k, v = (cat([x, b.expand(1, batch, size)]) for x, b in ((k, bias_k), (v, bias_v)))
        added += 1
    q, k, v = (in_heads(x, num_heads, by_batch) for x in (q, k, v))
    k, v = (x if given is None else static(given, batch, num_heads, size)
            for x, given in ((k, static_k), (v, static_v)))
    if add_zero_attn:
        k, v = (cat([x, zeros((*x.shape[:2], 1, x.shape[3]), dtype=x.dtype)], 2) for x in (k, v))
        added += 1
    out, weights = attended(q, k, v, added, attn_mask, key_padding_mask, need_weights, is_causal,
                            dropout_p if training else 0.0)
    out = linear(from_heads(out, batch, queries, size, by_batch), out_proj_weight, out_proj_bias)
    if by_batch:
        out = out.transpose(0, 1)
    if weights is not None and average_attn_weights:
        weights = weights.mean(1)
    if batched:
        return out, weights
    return out.squeeze(1), None if weights is None else weights.squeeze(0)


def static(x, batch, heads, size):
    """Projected keys or values (B * H, S, E / H) as (B, H, S, E / H). Raises: AssertionError."""
    wanted = (batch * heads, x.shape[1] if x.ndim == 3 else None, size // heads)
    require(tuple(x.shape) == wanted,
            f"expecting static keys and values of shape {(wanted[0], 'S', wanted[2])}, got "
            f"{tuple(x.shape)}")
    return x.reshape(batch, heads, *x.shape[1:])
