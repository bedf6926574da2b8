"""What options of functions of networks give: laws between calls, and numbers known beforehand."""

import math

import pytest

import tensorlib as tl
from tensorlib.nn import functional as F
from tensorlib.testing import assert_close

INF = math.inf
LINE = tl.tensor([[[1.0, 2.0, 4.0, 8.0]]])


def assert_values(found, wanted):
    """The same numbers, up to rounding."""
    assert_close(found, tl.tensor(wanted, dtype=found.dtype), atol=2e-6, rtol=2e-6)


# ---- activations and dropout ---------------------------------------------------------------------

@pytest.mark.parametrize("shape, dim", [((), 0), ((3,), 0), ((2, 3), 1), ((2, 3, 2), 0),
                                        ((2, 3, 1, 2), 1), ((1, 2, 1, 1, 2), 1)])
def test_a_softmax_without_dim_takes_the_usual_one_and_warns(shape, dim):
    x = tl.arange(float(math.prod(shape))).reshape(shape)
    for function in (F.softmax, F.softmin, F.log_softmax):
        with pytest.warns(UserWarning, match="include dim=X") as warned:
            found = function(x)
        assert function.__name__ in str(warned[0].message)
        assert_close(found, function(x, dim))


def test_softmin_is_the_softmax_of_the_negative():
    assert_values(F.softmin(tl.tensor([0.0, math.log(3.0)]), 0), [0.75, 0.25])
    assert F.softmin(tl.ones(2), 0, dtype=tl.float64).dtype == tl.float64


def test_relu6_of_integers_keeps_them():
    x = tl.tensor([-1, 0, 6, 7])
    assert F.relu6(x).tolist() == [0, 0, 6, 6] and x.tolist() == [-1, 0, 6, 7]
    assert F.relu6(x, inplace=True) is x and x.tolist() == [0, 0, 6, 6]


@pytest.mark.parametrize("function", [F.dropout1d, F.feature_alpha_dropout])
def test_dropout_of_channels_out_of_training_changes_nothing(function):
    assert function(LINE, 0.5, training=False) is LINE
    assert function(LINE, 0.0, training=True) is LINE


def test_rrelu_in_place_has_the_slopes_and_gradients_of_the_other_form():
    x = tl.tensor([-2.0, 0.0, 4.0], requires_grad=True)
    results = []
    for inplace in (False, True):
        own = x * 1
        found = F.rrelu(own, 0.25, 0.75, inplace=inplace)
        results.append((found.tolist(), *(g.tolist() for g in tl.autograd.grad(found.sum(), x))))
        assert (own.tolist() == found.tolist()) is inplace
    assert results[0] == results[1] == ([-1.0, 0.0, 4.0], [0.5, 0.5, 1.0])


def test_rrelu_draws_slopes_between_its_bounds():
    found = -F.rrelu(-tl.ones(200), 0.25, 0.5, training=True, inplace=True)
    assert 0.25 <= found.min() < 0.3 < 0.45 < found.max() <= 0.5


# ---- attention -----------------------------------------------------------------------------------

def test_attention_of_grouped_heads_is_that_of_repeated_keys():
    tl.manual_seed(1)
    q, k, v = tl.randn(2, 6, 3, 4), tl.randn(2, 2, 5, 4), tl.randn(2, 2, 5, 4)
    repeated = F.scaled_dot_product_attention(
        q, k.repeat_interleave(3, 1), v.repeat_interleave(3, 1))
    assert_close(F.scaled_dot_product_attention(q, k, v, enable_gqa=True), repeated)


def test_attention_with_a_mask_that_is_learned_looks_at_no_keys_at_all():
    q, none = tl.ones(2, 3), tl.ones(0, 3)
    mask = tl.zeros(2, 0, requires_grad=True)
    assert F.scaled_dot_product_attention(q, none, none, mask).tolist() == [[0.0] * 3] * 2


def test_the_second_gradient_of_attention_over_no_keys_is_zero():
    q = tl.ones(2, 3, requires_grad=True)
    none = tl.ones(0, 3, requires_grad=True)
    out = F.scaled_dot_product_attention(q, none, none)
    g, = tl.autograd.grad((out + q).square().sum(), q, create_graph=True)
    assert g.tolist() == [[2.0] * 3] * 2
    assert tl.autograd.grad(g.sum(), q)[0].tolist() == [[2.0] * 3] * 2


def many_heads(x, **options):
    """Attention of two heads that look at x (S, B, 2), whose projections are the identity."""
    weight = tl.eye(2).repeat(3, 1)
    options = {"add_zero_attn": False, "bias_k": None, "bias_v": None, **options}
    return F.multi_head_attention_forward(
        x, x, x, 2, 2, weight, None, dropout_p=0.0, out_proj_weight=tl.eye(2), out_proj_bias=None,
        **options)


X = tl.tensor([[[1.0, 0.0]], [[0.0, 2.0]], [[-1.0, 1.0]]])


def by_head(head, scores_mask=0.0, zero=False):
    """The weights of one head with size 1, from the definition."""
    x = X[:, 0, head]
    scores = x.unsqueeze(1) * x + scores_mask
    return (tl.cat([scores, tl.zeros(3, 1)], 1) if zero else scores).softmax(1)


def test_a_key_of_zeros_takes_its_share_of_attention():
    out, weights = many_heads(X, add_zero_attn=True, average_attn_weights=False)
    for head in range(2):
        wanted = by_head(head, zero=True)
        assert_close(weights[0, head], wanted)
        assert_close(out[:, 0, head], wanted[:, :3] @ X[:, 0, head])


def test_a_mask_does_not_hide_the_key_of_zeros():
    mask = tl.ones(3, 3).triu(1) * -INF
    mask = mask.nan_to_num(0.0, neginf=-INF)
    _, weights = many_heads(X, add_zero_attn=True, attn_mask=mask, average_attn_weights=False)
    for head in range(2):
        assert_close(weights[0, head], by_head(head, mask, zero=True))


def test_a_mask_for_each_head_and_a_padding_without_batch():
    masks = tl.zeros(2, 3, 3)
    masks[1, :, 0] = -INF
    _, weights = many_heads(X[:, 0], attn_mask=masks, average_attn_weights=False,
                            key_padding_mask=tl.tensor([False, False, True]))
    padding = tl.tensor([0.0, 0.0, -INF])
    for head in range(2):
        assert_close(weights[head], by_head(head, masks[head] + padding))


def test_a_learned_key_takes_its_share_of_attention():
    """One more key and value for all examples of a batch, which masks and paddings leave alone."""
    x = tl.cat([X, -2 * X], dim=1)
    key, value = tl.tensor([[[0.5, -1.0]]]), tl.tensor([[[3.0, 7.0]]])
    mask, padding = tl.ones(3, 3).triu(1).bool(), tl.tensor([[False, False, True], [False] * 3])
    out, weights = many_heads(x, bias_k=key, bias_v=value, attn_mask=mask,
                              key_padding_mask=padding, average_attn_weights=False)
    for example in range(2):
        hidden = mask.logical_or(padding[example]).float().nan_to_num() * -1e9
        for head in range(2):
            own = x[:, example, head]
            scores = own.unsqueeze(1) * tl.cat([own, key[0, 0, head:head + 1]])
            scores[:, :3] += hidden
            wanted = scores.softmax(1)
            assert_close(weights[example, head], wanted)
            values = tl.cat([own, value[0, 0, head:head + 1]])
            assert_close(out[:, example, head], wanted @ values)


def test_given_keys_and_values_stand_in_place_of_projected_ones():
    keys, values = tl.tensor([[[0.0], [1.0]], [[1.0], [1.0]]]), tl.tensor([[[3.0], [5.0]],
                                                                       [[1.0], [3.0]]])
    out, weights = many_heads(X, static_k=keys, static_v=values, average_attn_weights=False)
    share = tl.tensor([1.0, 0.0, -1.0]).sigmoid()
    assert_close(weights[0, 0], tl.stack([1 - share, share], 1))
    assert_close(out[:, 0], tl.stack([3 + 2 * share, tl.full((3,), 2.0)], 1))


# ---- convolutions and pooling --------------------------------------------------------------------

def test_padding_in_words():
    w = tl.tensor([[[1.0, 10.0]]])
    for word, padding in (("valid", 0), ((1,), 1)):
        assert F.conv1d(LINE, w, padding=word).tolist() == F.conv1d(
            LINE, w, padding=padding).tolist()
    assert F.conv1d(LINE, w, padding="valid").tolist() == [[[21.0, 42.0, 84.0]]]
    assert F.conv1d(LINE, w, padding="same").tolist() == [[[21.0, 42.0, 84.0, 8.0]]]


@pytest.mark.parametrize("n", [1, 2, 3])
def test_adaptive_maxima_to_no_elements(n):
    x, functions = tl.ones(2, 3, *(4,) * n), {
        1: F.adaptive_max_pool1d, 2: F.adaptive_max_pool2d, 3: F.adaptive_max_pool3d}
    sizes = (0,) * n
    found, places = functions[n](x, sizes, return_indices=True)
    assert found.shape == places.shape == functions[n](x, sizes).shape == (2, 3, *sizes)
    assert (found.dtype, places.dtype) == (tl.float32, tl.int64)


def test_adaptive_maxima_of_volumes_know_their_places():
    x = tl.tensor([[3.0, 1.0, 4.0, 1.5], [9.0, 2.0, 6.0, 5.0]]).reshape(1, 2, 2, 2)
    found, places = F.adaptive_max_pool3d(x, (1, 1, 2), return_indices=True)
    assert (found.tolist(), places.tolist()) == ([[[[9.0, 5.0]]]] and (
        [[[[9.0, 5.0]]]], [[[[4, 7]]]]))
    assert x.flatten()[places.flatten()].tolist() == found.flatten().tolist()


def test_fractional_windows_of_a_ratio():
    x = tl.arange(25.0).reshape(1, 1, 5, 5)
    draws = tl.full((1, 1, 2), 0.5)
    ratio, size = ({"output_ratio": r, "output_size": s, "_random_samples": draws} for r, s in (
        ((0.4, 0.6), None), (None, (2, 3))))
    assert F.fractional_max_pool2d(x, 2, **ratio).tolist() == F.fractional_max_pool2d(
        x, 2, **size).tolist()
    one = F.fractional_max_pool2d(x, (3, 2), output_size=1, _random_samples=draws)
    assert one.tolist() == [[[[24.0]]]]                 # a single window lies at the end


def test_unpooling_to_a_size_that_is_asked_for():
    pooled, places = F.max_pool1d(tl.tensor([[[1.0, 3.0, 5.0, 2.0, 4.0]]]), 2, return_indices=True)
    assert F.max_unpool1d(pooled, places, 2).tolist() == [[[0.0, 3.0, 5.0, 0.0]]]
    for size in ((5,), (1, 1, 5), tl.Size((5,))):
        assert F.max_unpool1d(pooled, places, 2, output_size=size).tolist() == [
            [[0.0, 3.0, 5.0, 0.0, 0.0]]]
    assert F.max_unpool1d(pooled, places, 2, output_size=(3,)).tolist() == [[[0.0, 3.0, 5.0]]]


def test_means_with_a_divisor_of_ones_own():
    assert F.avg_pool2d(LINE, (1, 2), divisor_override=1).tolist() == [[[3.0, 12.0]]]
    assert F.avg_pool2d(LINE, (1, 2), divisor_override=4).tolist() == [[[0.75, 3.0]]]


def test_normalising_groups_of_no_elements():
    x = tl.ones(0, 4, 3, requires_grad=True)
    found = F.group_norm(x, 2)
    assert found.shape == (0, 4, 3) and found is not x
    assert tl.autograd.grad(found.sum(), x)[0].shape == (0, 4, 3)


# ---- images of other sizes -----------------------------------------------------------------------

def test_cubic_convolution():
    # by the kernel of Keys with a = -0.75 at distances 1.25, 0.25, 0.75 and 1.75
    weights = tl.tensor([-0.10546875, 0.87890625, 0.26171875, -0.03515625])
    line = LINE.unsqueeze(2)
    found = F.interpolate(line, (1, 8), mode="bicubic")[0, 0, 0]
    assert_values(found[3].reshape(1), [float(LINE[0, 0] @ weights)])
    assert_values(found[4].reshape(1), [float(LINE[0, 0] @ weights.flip(0))])
    assert_values(found[0].reshape(1), [float(tl.tensor([1.0, 1.0, 1.0, 2.0]) @ weights.flip(0))])
    same = F.interpolate(line, (1, 4), mode="bicubic", align_corners=True)
    assert_values(same[0, 0, 0], [1.0, 2.0, 4.0, 8.0])
    wide = F.interpolate(line, (1, 7), mode="bicubic", align_corners=True)[0, 0, 0]
    assert_values(wide[::2], [1.0, 2.0, 4.0, 8.0])
    assert_values(wide[3:4], [-0.09375 * (1 + 8) + 0.59375 * (2 + 4)])


def test_images_of_bytes_are_rounded_after_the_width_and_after_the_height():
    image = tl.tensor([[[[0, 3], [2, 255]]]], dtype=tl.uint8)
    found = F.interpolate(image, (3, 3), mode="bilinear", align_corners=True)
    # by hand: the rows get 1.5 and 128.5, which round to 2 and 129, and then the columns 65.5
    assert found.dtype is tl.uint8
    assert found.tolist() == [[[[0, 2, 3], [1, 66, 129], [2, 129, 255]]]]
    steep = tl.tensor([[[[0, 255, 255, 0]]]], dtype=tl.uint8)
    assert F.interpolate(steep, (1, 8), mode="bicubic")[0, 0, 0].tolist() == F.interpolate(
        steep.float(), (1, 8), mode="bicubic")[0, 0, 0].round().clamp(0, 255).tolist()
    assert F.interpolate(steep, (1, 2)).tolist() == [[[[0, 255]]]]
    assert F.interpolate(steep[0], 2, mode="nearest-exact").tolist() == [[[255, 0]]]
    for mode in ("area", "bilinear"):
        with pytest.raises(RuntimeError, match="interpolate: takes floating-point dtypes, got"):
            F.interpolate(steep if mode == "area" else steep[0], 2, mode=mode)


def test_areas_are_adaptive_means():
    assert F.interpolate(LINE, 2, mode="area").tolist() == [[[1.5, 6.0]]]
    assert F.interpolate(LINE, 3, mode="area").tolist() == [[[1.5, 3.0, 6.0]]]


def test_a_factor_may_be_computed_anew_from_the_sizes():
    def resized(again):
        return F.interpolate(LINE, scale_factor=1.4, mode="linear",
                             recompute_scale_factor=again)[0, 0]
    assert_values(resized(None), [1.0, 1.5714285, 2.5714285, 4.0, 6.8571427])
    assert_values(resized(True), F.interpolate(LINE, 5, mode="linear")[0, 0].tolist())
    assert_values(resized(True), [1.0, 1.7, 3.0, 5.2, 8.0])


def test_the_old_name_of_interpolate_warns():
    with pytest.warns(UserWarning, match="`nn.functional.upsample` is deprecated"):
        found = F.upsample(LINE, 7, mode="linear", align_corners=True)
    assert found.tolist() == [[[1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0]]]


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_a_volume_of_one_slice_is_looked_at_like_an_image(mode):
    image = tl.arange(6.0).reshape(1, 1, 2, 3)
    grid = tl.tensor([[-0.6, 0.3], [0.9, 1.4], [0.1, -0.2]]).reshape(1, 1, 3, 2)
    deep = tl.cat([grid, tl.zeros(1, 1, 3, 1)], -1).unsqueeze(1)
    for padding in ("zeros", "border", "reflection"):
        for corners in (False, True):
            options = (mode, padding, corners)
            assert_close(F.grid_sample(image.unsqueeze(2), deep, *options).squeeze(2),
                         F.grid_sample(image, grid, *options))


# ---- rows of tables ------------------------------------------------------------------------------

TABLE = [[1.0, -1.0], [2.0, 0.0], [4.0, 3.0]]
FLAT, OFFSETS = tl.tensor([2, 0, 0, 1, 2]), tl.tensor([0, 3, 3])
ROW = {"sum": [[6.0, 1.0], [0.0, 0.0], [6.0, 3.0]], "mean": [[2.0, 1 / 3], [0.0, 0.0], [3.0, 1.5]],
       "max": [[4.0, 3.0], [0.0, 0.0], [4.0, 3.0]]}


@pytest.mark.parametrize("mode", ROW)
def test_bags_that_begin_at_offsets(mode):
    assert_values(F.embedding_bag(FLAT, tl.tensor(TABLE), OFFSETS, mode=mode), ROW[mode])
    ends = tl.tensor([0, 3, 3, 5])
    options = {"mode": mode, "include_last_offset": True}
    assert_values(F.embedding_bag(FLAT, tl.tensor(TABLE), ends, **options), ROW[mode])
    assert_values(F.embedding_bag(FLAT, tl.tensor(TABLE), ends[:3], **options), ROW[mode][:2])


PADDED = {"sum": [[2.0, -2.0], [0.0, 0.0], [2.0, 0.0]],
          "mean": [[1.0, -1.0], [0.0, 0.0], [2.0, 0.0]],
          "max": [[1.0, -1.0], [0.0, 0.0], [2.0, 0.0]]}


@pytest.mark.parametrize("mode", PADDED)
@pytest.mark.parametrize("place", [2, -1])
def test_a_row_of_padding_is_left_out_of_bags(mode, place):
    weight = tl.tensor(TABLE, requires_grad=True)
    found = F.embedding_bag(FLAT, weight, OFFSETS, mode=mode, padding_idx=place)
    assert_values(found, PADDED[mode])
    found.sum().backward()
    assert weight.grad[2].tolist() == [0.0, 0.0]


def test_a_factor_for_each_index_of_bags():
    factors = tl.tensor([1.0, 2.0, 0.5, 3.0, 10.0], requires_grad=True)
    found = F.embedding_bag(FLAT, tl.tensor(TABLE), OFFSETS, mode="sum",
                            per_sample_weights=factors)
    assert found.tolist() == [[6.5, 0.5], [0.0, 0.0], [46.0, 30.0]]
    found.sum().backward()
    assert factors.grad.tolist() == [7.0, 0.0, 0.0, 2.0, 7.0]


@pytest.mark.parametrize("function", ["embedding", "embedding_bag"])
def test_gradients_divided_by_the_number_of_uses(function):
    weight, places = tl.tensor(TABLE, requires_grad=True), tl.tensor([[2, 0], [0, 0]])
    options = {"mode": "sum"} if function == "embedding_bag" else {}
    found = getattr(F, function)(places, weight, scale_grad_by_freq=True, **options)
    assert_close(found, getattr(F, function)(places, weight, **options))
    factors = tl.tensor([[1.0], [4.0]]) if options else tl.tensor([[[1.0], [4.0]], [[1.0], [7.0]]])
    (found * factors).sum().backward()
    wanted = [(1 + 4 + 4) / 3, 0.0, 1.0] if options else [(4 + 1 + 7) / 3, 0.0, 1.0]
    assert weight.grad.tolist() == [[x, x] for x in wanted]


def test_the_longest_rows_of_bags_are_shortened():
    weight = tl.tensor(TABLE)
    found = F.embedding_bag(tl.tensor([[2, 1]]), weight, max_norm=2.5, mode="sum")
    assert_values(weight, [[1.0, -1.0], [2.0, 0.0], [2.0, 1.5]])
    assert_values(found, [[4.0, 1.5]])
    F.embedding_bag(tl.tensor([[0]]), weight, max_norm=1.0, norm_type=1)
    assert_values(weight[0], [0.5, -0.5])


def test_no_bags_at_all():
    for mode in ROW:
        found = F.embedding_bag(FLAT[:0], tl.tensor(TABLE), OFFSETS[:0], mode=mode)
        assert found.shape == (0, 2)
