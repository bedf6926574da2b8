"""`nn.attention.flex_attention` and `bias`: scores and masks that are functions of places."""

import math

import pytest

import tensorlib as tl
from tensorlib.nn.attention import bias
from tensorlib.nn.attention.flex_attention import (
    and_masks, create_block_mask, create_mask, flex_attention, noop_mask, or_masks)
from tensorlib.nn.functional import scaled_dot_product_attention
from tensorlib.testing import assert_close, gradcheck


def drawn(*shape):
    tl.manual_seed(0)
    return [tl.randn(shape, dtype=tl.float64, requires_grad=True) for _ in range(3)]


def test_without_functions_it_is_plain_attention():
    q, k, v = drawn(2, 3, 5, 4)
    assert_close(flex_attention(q, k, v), scaled_dot_product_attention(q, k, v))
    assert_close(flex_attention(q, k, v, scale=0.3),
                 scaled_dot_product_attention(q, k, v, scale=0.3))
    few = [x[:, :1] for x in (k, v)]
    assert_close(flex_attention(q, *few, enable_gqa=True),
                 scaled_dot_product_attention(q, *[x.expand(2, 3, 5, 4) for x in few]))


def test_scores_are_changed_one_by_one():
    q, k, v = drawn(2, 3, 5, 4)
    slopes, table = tl.tensor([0.1, 0.5, 1.0]), tl.rand(5, 5, dtype=tl.float64)

    def score_mod(score, b, h, i, j):
        return score * 2 + slopes[h] * (j - i) + table[i, j] + b

    places = tl.arange(5)
    added = slopes[:, None, None] * (places[None] - places[:, None]) + table
    scores = q @ k.mT / 2 * 2 + added
    assert_close(flex_attention(q, k, v, score_mod), scores.softmax(-1) @ v)
    out, sums = flex_attention(q, k, v, score_mod, return_lse=True)
    assert_close(sums, scores.logsumexp(-1) + tl.arange(2.0)[:, None, None])
    assert gradcheck(lambda *x: flex_attention(*x, score_mod), (q, k, v))


def test_masks_and_what_sees_nothing():
    q, k, v = drawn(1, 2, 5, 4)
    near = create_block_mask(lambda b, h, i, j: (i > j) & (i - j < 3), None, None, 5, 5,
                             BLOCK_SIZE=2)
    shown = near.shown[0, 0]
    assert near.shape == (1, 1, 5, 5) and shown.tolist() == [
        [0 < i - j < 3 for j in range(5)] for i in range(5)]
    out, sums = flex_attention(q, k, v, block_mask=near, return_lse=True)
    assert out[:, :, 0].abs().max() == 0 and (sums[:, :, 0] == -math.inf).all()
    assert_close(out[:, :, 1:], scaled_dot_product_attention(
        q[:, :, 1:], k, v, attn_mask=shown[1:]))
    assert gradcheck(lambda *x: flex_attention(*x, block_mask=near), (q, k, v))
    assert near.to_dense()[0, 0].tolist() == [[1, 0, 0], [1, 1, 0], [0, 1, 0]]
    assert near.sparsity() == pytest.approx(100 * 5 / 9) and "55.56%" in repr(near)


def test_masks_are_combined():
    def causal(b, h, i, j):
        return i >= j

    def own_batch(b, h, i, j):
        return b == h

    whole = create_mask(and_masks(causal, own_batch), 2, 2, 3, 3)
    assert whole.shape == (2, 2, 3, 3)
    assert whole[0, 0].tolist() == tl.ones(3, 3, dtype=tl.bool).tril().tolist()
    assert not whole[0, 1].any()
    either = create_mask(or_masks(causal, own_batch), 2, 2, 3, 3)
    assert either[1, 1].all() and tl.equal(either[0, 1], whole[0, 0])
    assert create_mask(noop_mask, None, None, 2, 2).all()


def test_causal_masks_of_other_sizes():
    assert bias.causal_upper_left(2, 4).tolist() == [[1, 0, 0, 0], [1, 1, 0, 0]]
    assert bias.causal_lower_right(4, 2).tolist() == [[0, 0], [0, 0], [1, 0], [1, 1]]


@pytest.mark.parametrize("call, error, message", [
    (lambda x: flex_attention(x[0], x, x), ValueError, "expects tensors of 4 dims"),
    (lambda x: flex_attention(x, x[:, :1], x[:, :1]), ValueError, "enable_gqa=True takes"),
    (lambda x: flex_attention(x, x[..., :1], x), ValueError, "do not fit"),
    (lambda x: flex_attention(x, x, x, block_mask=create_block_mask(noop_mask, None, None, 1, 3)),
     ValueError, "block_mask of shape .1, 1, 1, 3. does not fit scores of shape .1, 2, 3, 3."),
    (lambda x: flex_attention(x, x, x, block_mask=create_block_mask(noop_mask, None, None, 4, 4)),
     ValueError, "block_mask of shape .1, 1, 4, 4. does not fit"),
    (lambda x: and_masks(noop_mask, 3), RuntimeError, "all inputs must be functions"),
    (lambda x: bias.causal_lower_right(3), ValueError, "takes two sizes"),
])
def test_what_does_not_fit(call, error, message):
    with pytest.raises(error, match=message):
        call(tl.ones(1, 2, 3, 4))
