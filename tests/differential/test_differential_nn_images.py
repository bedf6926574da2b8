"""`nn.functional` of images beside PyTorch's: adaptive pools, other sizes, other places."""

import numpy as np
import pytest
from cases import each

import tensorlib as tl

torch = pytest.importorskip("torch")

from test_differential_nn import assert_agree, real, assert_both_refuse  # noqa: E402


@each("name, shape, size", [
    ("adaptive_avg_pool1d", (2, 3, 7), 3), ("adaptive_avg_pool2d", (2, 3, 7, 6), (3, 2)),
    ("adaptive_avg_pool2d", (3, 7, 6), 1), ("adaptive_avg_pool2d", (3, 3, 2), (None, 4)),
    ("adaptive_avg_pool3d", (1, 2, 3, 4, 5), 2), ("adaptive_max_pool1d", (2, 3, 7), 3),
    ("adaptive_max_pool2d", (2, 3, 7, 6), (3, 4)), ("adaptive_max_pool3d", (1, 2, 3, 4, 5), 2)])
def test_adaptive_pools(name, shape, size):
    assert_agree(lambda F, x: getattr(F, name)(x, size), real(*shape))
    if "max" in name:
        assert_agree(lambda F, x: getattr(F, name)(x, size, return_indices=True), real(*shape),
                     differentiable=False)


def test_pools_of_powers():
    assert_agree(lambda F, x: F.lp_pool1d(x, 2.0, 3, 2), real(2, 3, 9))
    assert_agree(lambda F, x: F.lp_pool2d(x, 3.0, 2, ceil_mode=True), real(2, 3, 6, 7, low=0.1))


def test_channels_and_places():
    assert_agree(lambda F, x: F.pixel_shuffle(x, 2), real(2, 8, 3, 2))
    assert_agree(lambda F, x: F.pixel_unshuffle(x, 2), real(2, 2, 6, 4))
    assert_agree(lambda F, x: F.channel_shuffle(x, 2), real(2, 6, 3))
    assert_both_refuse(lambda F, x: F.pixel_shuffle(x, 3), real(2, 8, 3, 2))


SIZES = [
    ((2, 3, 5), {"size": 7}), ((2, 3, 5), {"scale_factor": 1.7}),
    ((2, 3, 4, 5), {"scale_factor": 2, "mode": "bilinear", "align_corners": True}),
    ((2, 3, 4, 5), {"scale_factor": 0.6, "mode": "bilinear"}),
    ((2, 3, 4, 5), {"size": (7, 3), "mode": "nearest-exact"}),
    ((2, 3, 4, 5), {"size": (7, 3), "mode": "bicubic"}),
    ((2, 3, 4, 5), {"size": (7, 3), "mode": "area"}),
    ((1, 2, 3, 4, 5), {"size": (2, 6, 5), "mode": "trilinear"}),
    ((2, 3, 5), {"scale_factor": 2.5, "mode": "linear", "recompute_scale_factor": True}),
]


@each("shape, options", SIZES, ids=repr)
def test_other_sizes(shape, options):
    assert_agree(lambda F, x: F.interpolate(x, **options), real(*shape))


@each("align", [True, False])
@each("mode", ["bilinear", "bicubic"])
@each("given", [{"size": (2, 9)}, {"size": (7, 3)}, {"scale_factor": 0.37}])
def test_sizes_without_aliases(mode, align, given):
    assert_agree(lambda F,
                 x: F.interpolate(x, mode=mode, align_corners=align, antialias=True, **given),
                 real(1, 3, 6, 11))


BYTES = np.random.default_rng(0).integers(0, 256, (2, 3, 8, 12), np.uint8)


@each("mode", ["nearest", "nearest-exact", "bilinear"])
@each("given", [
    {"size": (7, 9)}, {"size": (32, 12)}, {"size": (3, 4)}, {"scale_factor": 1.05},
    {"scale_factor": 2.04}, {"scale_factor": 0.4}], ids=repr)
def test_sizes_of_images_of_bytes(mode, given):
    options = [{}] if mode != "bilinear" else [
        {"antialias": wide, "align_corners": align} for wide in (False, True)
        for align in (False, True)]
    for chosen in options:
        assert_agree(lambda F, x: F.interpolate(x, mode=mode, **given, **chosen), BYTES,
                     differentiable=False)


def test_cubic_sizes_of_images_of_bytes():
    assert_agree(lambda F, x: F.interpolate(x, (17, 5), mode="bicubic", antialias=True), BYTES,
                 differentiable=False)
    # without antialias PyTorch has the weights in float32, and some of them one step apart
    found, wanted = (L.nn.functional.interpolate(
        L.tensor(BYTES), (17, 24), mode="bicubic").numpy().astype(int) for L in (tl, torch))
    assert np.abs(found - wanted).max() <= 2 and (found != wanted).mean() < 0.05


def test_nearest_elements_where_a_factor_gives_the_same_size_or_twice_as_much():
    for factor in (1.05, 2.04, (1.05, 2.04)):
        assert_agree(lambda F, x: F.interpolate(x, scale_factor=factor), real(2, 3, 8, 12))
    # of lines it takes the factor, but its gradient is that of a copy
    assert_agree(lambda F, x: F.interpolate(x, scale_factor=1.05), real(2, 3, 12),
                 differentiable=False)
    assert_agree(lambda F, x: F.interpolate(x.byte(), scale_factor=2.04),
                 real(1, 2, 4, 4, 12, low=0),
                 differentiable=False)


def test_other_sizes_that_are_refused():
    assert_both_refuse(lambda F, x: F.interpolate(x.byte(), 2, mode="area"), real(1, 1, 4, 4))
    assert_both_refuse(lambda F, x: F.interpolate(x.byte(), 2, mode="linear"), real(1, 1, 4))
    assert_both_refuse(lambda F, x: F.interpolate(x.int(), 2), real(1, 1, 4, 4))
    assert_both_refuse(lambda F, x: F.interpolate(x, 2, mode="nearest", antialias=True),
                       real(1, 1, 4, 4))
    assert_both_refuse(lambda F, x: F.interpolate(x, 2, mode="linear", antialias=True),
                       real(1, 1, 4))
    assert_both_refuse(lambda F, x: F.interpolate(x), real(1, 1, 4))
    assert_both_refuse(lambda F, x: F.interpolate(x, 2, mode="bilinear"), real(1, 1, 4))
    assert_both_refuse(lambda F, x: F.interpolate(x, (2, 2)), real(1, 1, 4))


@each("align", [True, False])
@each("padding", ["zeros", "border", "reflection"])
@each("mode", ["bilinear", "nearest", "bicubic"])
def test_other_places(mode, padding, align):
    def call(F, x, grid):
        return F.grid_sample(x, grid, mode, padding, align)
    assert_agree(call, real(2, 3, 4, 5), real(2, 3, 2, 2, low=-1.4, high=1.4),
                 differentiable=mode != "nearest")
    if mode == "bicubic":
        return assert_both_refuse(call, real(1, 2, 3, 4, 5), real(1, 2, 3, 2, 3))
    assert_agree(call, real(1, 2, 3, 4, 5), real(1, 2, 3, 2, 3, low=-1.4, high=1.4),
                 differentiable=False)


@pytest.mark.parametrize("align", [True, False])
def test_affine_grids(align):
    assert_agree(lambda F, t: F.affine_grid(t, (2, 1, 4, 5), align), real(2, 2, 3))
    assert_agree(lambda F, t: F.affine_grid(t, (2, 1, 1, 4, 5), align), real(2, 3, 4))


# ---- attention -----------------------------------------------------------------------------------

ATTENTIONS = {
    "plain": ((2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 6), {}),
    "causal": ((2, 70, 8), (2, 150, 8), (2, 150, 4), {"is_causal": True}),
    "many": ((1, 2, 130, 8), (1, 2, 300, 8), (1, 2, 300, 8), {"scale": 0.3}),
    "shared": ((2, 6, 5, 4), (2, 2, 5, 4), (2, 2, 5, 4), {"enable_gqa": True}),
}


@each("name", ATTENTIONS)
def test_attention(name):
    *shapes, options = ATTENTIONS[name]
    assert_agree(lambda F, *x: F.scaled_dot_product_attention(*x, **options),
                 *(real(*shape, seed=i) for i, shape in enumerate(shapes)))


def test_attention_with_masks():
    q, k, v = real(2, 3, 65, 4), real(2, 3, 140, 4, seed=1), real(2, 3, 140, 4, seed=2)
    seen = real(2, 1, 65, 140, seed=3) > 0
    seen[0, 0, 3] = False                        # a row that looks at nothing
    assert_agree(lambda F, q, k, v, m: F.scaled_dot_product_attention(q, k, v, m), q, k, v, seen)
    assert_agree(lambda F, q, k, v, m: F.scaled_dot_product_attention(q, k, v, m.detach()), q, k, v,
                 real(1, 140))
    assert_agree(lambda F, q, k, v, m: F.scaled_dot_product_attention(q, k, v, m), q, k, v,
                 real(1, 3, 1, 140))
    assert_both_refuse(lambda F, q, k, v: F.scaled_dot_product_attention(q, k, v), real(3, 4),
                       real(3, 5),
                       real(3, 5))
