"""Attention of several heads and transformers without a peer: laws, derivatives, batches."""

import copy

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib import nn
from tensorlib.autograd import gradcheck, gradgradcheck
from tensorlib.func import functional_call, vmap
from tensorlib.nn import functional as F
from tensorlib.nn.functional.attention_tiles import attention, attention_backward
from tensorlib.testing import assert_close


def numbers(*shape, seed=0):
    return tl.tensor(np.random.default_rng(seed).normal(size=shape))


def made(name, *args, **options):
    tl.manual_seed(0)
    return getattr(nn, name)(*args, dtype=tl.float64, **options)


def test_with_and_without_weights():
    module, q, k = made("MultiheadAttention", 4, 2), numbers(3, 2, 4), numbers(5, 2, 4, seed=1)
    mask = numbers(3, 5, seed=2) > 0.5
    with_weights, weights = module(q, k, k, attn_mask=mask)
    assert_close(module(q, k, k, attn_mask=mask, need_weights=False)[0], with_weights)
    assert_close(weights.sum(-1), tl.ones(2, 3, dtype=tl.float64))


def test_a_causal_encoder_looks_at_nothing_later():
    layer = nn.TransformerEncoderLayer(4, 2, 8, 0.0, batch_first=True, dtype=tl.float64)
    model, x = nn.TransformerEncoder(layer, 2), numbers(2, 5, 4)
    mask = nn.Transformer.generate_square_subsequent_mask(5, dtype=tl.float64)
    whole = model(x, mask)
    assert_close(whole, model(x, mask, is_causal=True))
    for count in range(1, 5):
        part = model(x[:, :count], mask[:count, :count])
        assert_close(part, whole[:, :count])


@pytest.mark.parametrize("options", [{}, {"add_bias_kv": True}, {"kdim": 3, "vdim": 2}], ids=repr)
def test_derivatives(options):
    module = made("MultiheadAttention", 2, 1, **options)
    names = [name for name, _ in module.named_parameters()]
    given = [numbers(n, 1, size, seed=n) for n, size in (
        (2, 2), (3, options.get("kdim", 2)), (3, options.get("vdim", 2)))]
    tensors = [x.requires_grad_() for x in given] + list(module.parameters())

    def function(*xs):
        return functional_call(module, dict(zip(names, xs[3:])), xs[:3])
    assert gradcheck(function, tensors, check_forward_ad=True)
    assert gradgradcheck(function, tensors)


@pytest.mark.filterwarnings("error")
def test_attention_under_vmap():
    q, k = numbers(4, 2, 3, 2), numbers(4, 2, 5, 2, seed=1)
    found = vmap(F.scaled_dot_product_attention)(q, k, k)
    assert_close(found, F.scaled_dot_product_attention(q, k, k))
    mask = numbers(4, 3, 5, seed=2) > 0
    masked = vmap(lambda q, k, m: F.scaled_dot_product_attention(q, k, k, attn_mask=m))(q, k, mask)
    assert_close(masked, F.scaled_dot_product_attention(q, k, k, attn_mask=mask.unsqueeze(1)))
    module = made("MultiheadAttention", 2, 1)
    rows = vmap(lambda x: module(x, x, x)[0])(q[:, 0])
    assert_close(rows, tl.stack([module(x, x, x)[0] for x in q[:, 0]]))


@each("dtype", [tl.float32, tl.float64], ids=str)
@each("causal", [False, True])
@each("queries, keys", [(1, 1), (3, 200), (130, 70), (64, 128)])
def test_tiles_are_the_whole(queries, keys, causal, dtype):
    """More queries and keys than a tile has, with a mask that hides whole tiles and a row."""
    q, k, v = numbers(2, queries, 3), numbers(2, keys, 3, seed=1), numbers(2, keys, 5, seed=2)
    hidden = numbers(2, queries, keys, seed=3) > 0.5
    hidden[0, 0] = True
    hidden[1, :, :keys // 2] = True
    mask = tl.where(hidden, -float("inf"), 0.0).to(dtype)
    q, k, v = (x.to(dtype).requires_grad_() for x in (q, k, v))
    out, logs = attention(q, k, v, mask, causal, 0.5)
    scores = q @ k.mT * 0.5 + mask
    if causal:
        scores = scores.masked_fill(tl.ones(queries, keys).tril() == 0, -float("inf"))
    nothing = (scores == -float("inf")).all(-1, keepdim=True)
    wanted = tl.where(nothing, 0.0, tl.where(nothing, 0.0, scores).softmax(-1)) @ v
    assert_close(out, wanted)
    assert_close(logs, scores.logsumexp(-1))
    g = numbers(*out.shape, seed=4).to(dtype)
    for ours, theirs in zip(tl.autograd.grad(out, (q, k, v), g),
                            tl.autograd.grad(wanted, (q, k, v), g)):
        assert_close(ours, theirs)


def test_heads_may_be_any_dims():
    q = numbers(2, 3, 4, 5).requires_grad_()
    out, logs = attention(q, q, q, None, True, 0.3)
    whole, sums = (x.unflatten(0, (2, 3)) for x in attention(*(q.flatten(0, 1),) * 3, None, True,
                                                             0.3))
    assert_close(out, whole)
    assert_close(logs, sums)
    alone = attention(q[0, 0], q[0, 0], q[0, 0], None, True, 0.3)[0]
    assert_close(alone, out[0, 0])


def test_a_sequence_may_have_no_keys_and_no_queries():
    none, some = tl.zeros(2, 0, 4), tl.ones(2, 3, 4)
    assert F.scaled_dot_product_attention(some, none, none).tolist() == tl.zeros(2, 3, 4).tolist()
    assert F.scaled_dot_product_attention(none, some, some).shape == (2, 0, 4)


BAD = [((2, 3), (2, 4), (2, 3)), ((2, 3), (2, 3), (3, 3)), ((3,), (3,), (3,)),
       ((2, 2, 3), (1, 2, 3), (2, 2, 3))]


@pytest.mark.parametrize("shapes", BAD, ids=repr)
def test_sizes_that_do_not_fit(shapes):
    q, k, v = (tl.ones(shape) for shape in shapes)
    with pytest.raises(RuntimeError, match="attention"):
        attention(q, k, v, None, False, 1.0)
    with pytest.raises(RuntimeError, match="attention"):
        attention_backward(q, q, k, v, q, q, None, False, 1.0)


def test_other_bad_input():
    x = tl.ones(2, 3, 4)
    with pytest.raises(RuntimeError, match="mask"):
        attention(x, x, x, tl.ones(2, 3, 4), False, 1.0)
    with pytest.raises(RuntimeError):
        attention(x, x.double(), x, None, False, 1.0)
    out, logs = attention(x, x, x, None, False, 1.0)
    with pytest.raises(RuntimeError, match="fit"):
        attention_backward(out[:, :2], x, x, x, out, logs, None, False, 1.0)
    with pytest.raises(RuntimeError, match="fit"):
        attention_backward(out, x, x, x, out, logs[:1], None, False, 1.0)


def test_transformers_are_copied():
    model = nn.Transformer(4, 2, 1, 1, 8, 0.0, dtype=tl.float64)
    source, target = numbers(3, 2, 4), numbers(5, 2, 4, seed=1)
    assert_close(copy.deepcopy(model)(source, target), model(source, target))
    assert all(p.ndim < 2 or p.abs().max() > 0 for p in model.parameters())
