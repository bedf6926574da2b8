"""Channels and groups of them normalised by one kernel, and channels by running statistics."""

import numpy as np
import pytest
from cases import each

import tensorlib as tl
import tensorlib.nn.functional as F
from tensorlib.nn.functional.group_norms import group_affine, group_formula
from tensorlib.nn.functional.norms import (
    channel_affine, channel_formula, channel_norm, channel_norm_formula,
)

# Channels of one element, of some, and of more than a block of the sums; groups of all sizes.
SHAPES = [((3, 6), 2), ((2, 4, 1, 1), 4), ((17, 6), 1), ((2, 6, 5), 3), ((1, 4, 7, 3), 1),
          ((5, 8, 16, 17), 2), ((2, 3, 2049), 3), ((2, 4, 67, 65), 2)]


def inputs(shape, dtype=tl.float32, seed=0):
    rng = np.random.default_rng(seed)
    sizes = shape, shape[1:2], shape[1:2], shape
    return [tl.tensor(rng.uniform(-1, 2, size)).to(dtype).requires_grad_() for size in sizes]


def gradients(function, xs, g):
    out = function(*xs)
    return [out, *tl.autograd.grad(out, xs, g.detach())]


def same_bits(a, b):
    return np.array_equal(a.detach().numpy(), b.detach().numpy())


def assert_agree(function, formula, shape, dtype, tolerance):
    *xs, g = inputs(shape, dtype)
    wide = [x.detach().double().requires_grad_() for x in xs]
    for found, wanted in zip(gradients(function, xs, g), gradients(formula, wide, g.double())):
        assert found.dtype == dtype
        size = max(1.0, wanted.abs().max().item())
        np.testing.assert_allclose(found.double().detach().numpy(), wanted.detach().numpy(),
                                   rtol=tolerance, atol=tolerance * size)


@each("dtype, tolerance", [
    (tl.float64, 1e-12), (tl.float32, 2e-5), (tl.float16, 5e-3), (tl.bfloat16, 5e-2)])
@each("shape, groups", SHAPES)
def test_groups_and_channels_as_their_formulas(shape, groups, dtype, tolerance):
    assert_agree(lambda *xs: group_affine(*xs, groups, 0.1),
                 lambda *xs: group_formula(*xs, groups, 0.1),
                 shape, dtype, tolerance)
    assert_agree(channel_affine, channel_formula, shape, dtype, tolerance)
    assert_agree(lambda *xs: channel_norm(*xs, 0.1), lambda *xs: channel_norm_formula(*xs, 0.1),
                 shape,
                 dtype, tolerance)


def beside(x):
    """x with its channels beside each other."""
    return x.movedim(1, -1).contiguous().movedim(-1, 1)


# Columns that are fewer than a vector has and more than go together, groups of more of them than
# that, and rows that fill no leaf, one and no other, and several pieces.
@each("dtype, tolerance", [(tl.float64, 1e-12), (tl.float32, 2e-5), (tl.bfloat16, 5e-2)])
@each("shape, groups", [((2, 6, 5), 3), ((1, 4, 8, 4), 2), ((3, 67, 3, 11), 1),
                        ((2, 130, 7, 9), 65), ((2, 192, 19, 20), 2), ((1, 12, 75, 80), 6)])
def test_channels_beside_each_other_as_their_formulas(shape, groups, dtype, tolerance):
    for function, formula, options in ((group_affine, group_formula, (groups, 0.1)),
                                       (channel_affine, channel_formula, ()),
                                       (channel_norm, channel_norm_formula, (0.1,))):
        assert_agree(lambda x, *vectors: function(beside(x), *vectors, *options),
                     lambda *xs: formula(*xs, *options), shape, dtype, tolerance)


@each("groups", [1, 2, 6])
@each("x, spread", [
    (tl.full((2, 6, 5, 9), 0.1), 0), (tl.full((2, 6, 5, 9), 3e38), 0),
    (tl.linspace(-1, 1, 540).reshape(2, 6, 5, 9) * 2e38, 1),
    (tl.linspace(-1, 1, 540).reshape(2, 6, 5, 9) + 100, 1)])
def test_columns_whose_sums_overflow_or_leave_nothing(x, spread, groups):
    """Equal elements lie nowhere from their mean; others are as in double."""
    g = tl.linspace(0, 700, 540).sin().reshape(2, 6, 5, 9)
    ones = tl.ones(6), tl.zeros(6)
    for function, options in ((group_affine, (groups, 1e-5)), (channel_norm, (1e-5,))):
        out, *grads = gradients(lambda x, *v: function(beside(x), *v, *options),
                                [t.detach().requires_grad_() for t in (x, *ones)], g)
        assert spread or not out.any()
        wanted = gradients(lambda x, *v: function(x, *v, *options),
                           [t.double().requires_grad_() for t in (x, *ones)], g.double())
        for found, right in zip((out, *grads), wanted):
            tl.testing.assert_close(found.double(), right, rtol=1e-3, atol=5e-3)


@each("dtype", [tl.bfloat16, tl.float16])
@each("shape", [(2, 6, 5, 9), (1, 66, 7, 33)])
def test_equal_elements_of_half_types_lie_nowhere_from_their_mean(shape, dtype):
    x, ones, zeros = tl.full(shape, 1000.1).to(dtype), tl.ones(shape[1]), tl.zeros(shape[1])
    assert not channel_norm(beside(x), ones, zeros, 1e-5).any()
    assert not group_affine(beside(x), ones, zeros, 3, 1e-5).any()


@each("arrange", [
    lambda x: x.transpose(1, 3).contiguous().transpose(1, 3),
    lambda x: tl.stack([x, x], -1)[..., 0],
    lambda x: tl.from_numpy(x.numpy()[:, ::-1].copy()[:, ::-1])])
def test_layouts_give_the_same_bits(arrange):
    x, w, b, g = (t.detach() for t in inputs((3, 4, 5, 6)))
    backwards = tl.from_numpy(w.numpy()[::-1].copy()[::-1])
    for function in (lambda *xs: group_affine(*xs, 2, 1e-5), channel_affine):
        wanted = gradients(function, [t.clone().requires_grad_() for t in (x, w, b)], g)
        found = gradients(function, [
            t.detach().requires_grad_() for t in (arrange(x), backwards, b)], arrange(g))
        assert all(map(same_bits, found, wanted))


@each("arrange", [lambda x: x, beside])
@each("shape, groups", [((8, 16, 32, 32), 4), ((4096, 24), 6)])
def test_threads_give_the_same_bits(shape, groups, arrange):
    *xs, g = inputs(shape)
    xs[0] = arrange(xs[0].detach()).requires_grad_()
    found, before = [], tl.get_num_threads()
    try:
        for n_threads in (1, 2, 3):
            tl.set_num_threads(n_threads)
            found.append(gradients(lambda *xs: group_affine(*xs, groups, 1e-5), xs, g)
                         + gradients(lambda *xs: channel_norm(*xs, 1e-5), xs, g)
                         + gradients(channel_affine, xs, g))
    finally:
        tl.set_num_threads(before)
    assert all(all(map(same_bits, found[0], other)) for other in found[1:])


@each("bad", [float("nan"), float("inf")])
def test_what_is_not_finite_stays_in_its_group(bad):
    x, w, b, _ = (t.detach() for t in inputs((2, 4, 3)))
    x[1, 2, 0] = bad
    found = F.group_norm(x, 2, w, b).isfinite()
    assert found[0].all() and found[1, :2].all() and not found[1, 2:].any()
    assert F.batch_norm(x, w, b + 2, w, b).isfinite().sum() == x.numel() - 1


@each("shape", [(0, 4, 3), (2, 4, 0), (2, 0, 3)])
def test_nothing_gives_gradients_of_zero(shape):
    *xs, g = inputs(shape)
    groups = 2 if shape[1] else 1
    for function in (lambda *xs: group_affine(*xs, groups, 0.1), channel_affine,
                     lambda *xs: channel_norm(*xs, 0.1)):
        out, *grads = gradients(function, xs, g)
        assert [t.shape for t in (out, *grads)] == [t.shape for t in (xs[0], *xs)]
        assert all(not t.abs().sum() for t in grads)


@each("dtype", [tl.bfloat16, tl.float16])
@each("shape", [(3, 6), (2, 4, 1, 1), (5, 3, 7), (3, 1, 5), (4, 8, 6, 5),
                (2, 2, 300, 240), (0, 3, 2), (1, 2, 9)])
@each("arrange", [
    lambda x: x, lambda x: x.mT.contiguous().mT, lambda x: x.flip(0),
    lambda x: x.contiguous(memory_format=tl.channels_last) if x.ndim == 4 else x.contiguous()])
@each("bad", [None, float("nan"), float("inf")])
def test_half_types_are_float32_rounded_once(dtype, shape, arrange, bad):
    x, w, b, g = (y.detach() for y in inputs(shape, dtype))
    if bad is not None and x.numel():
        x[-1, -1] = bad
    xs, g = (arrange(x), w.float(), b.float()), arrange(g)

    for function, *options in ((channel_norm, 1e-3), (group_affine, 1, 1e-3), (channel_affine,)):
        def found(*xs, function=function, options=options):
            xs = [y.requires_grad_() for y in xs]
            return gradients(lambda *xs: function(*xs, *options), xs, g.to(xs[0].dtype))

        out, by_x, by_w, by_b = found(*xs)
        wanted, wide_x, wide_w, wide_b = found(xs[0].detach().float(), *xs[1:])
        assert out.dtype == by_x.dtype == dtype and by_w.dtype == by_b.dtype == tl.float32
        tl.testing.assert_close([out, by_x, by_w, by_b],
                                [wanted.to(dtype), wide_x.to(dtype), wide_w, wide_b],
                                rtol=0, atol=0, equal_nan=True)


def test_vectors_in_a_wider_dtype_than_the_input():
    x = tl.randn(2, 4, 3).half().requires_grad_()
    w, b = tl.rand(4, requires_grad=True), tl.rand(4, requires_grad=True)
    out = F.group_norm(x, 2, w, b)
    out.float().sum().backward()
    assert out.dtype == x.grad.dtype == tl.float16 and w.grad.dtype == b.grad.dtype == tl.float32


def test_gradients_are_differentiated():
    *xs, _ = inputs((2, 4, 3), tl.float64)
    assert tl.testing.gradgradcheck(lambda *xs: group_affine(*xs, 2, 0.1), xs)
    assert tl.testing.gradgradcheck(channel_affine, xs)
    assert tl.testing.gradgradcheck(lambda *xs: channel_norm(*xs, 0.1), xs)


@each("call, message", [
    (lambda x: group_affine(x, tl.ones(3), tl.ones(3), 2, 0.1), "does not fit"),
    (lambda x: group_affine(x, tl.ones(4), tl.ones(3), 2, 0.1), "shapes differ"),
    (lambda x: group_affine(x, tl.ones(4), tl.ones(4), 3, 0.1), "3 groups of 4 channels"),
    (lambda x: group_affine(x, tl.ones(4), tl.ones(4), 0, 0.1), "0 groups"),
    (lambda x: channel_affine(x[0, 0], tl.ones(4), tl.ones(4)), "does not fit"),
    (lambda x: channel_affine(x.int(), tl.ones(4), tl.ones(4)), "floating-point")])
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(RuntimeError, match=message):
        call(tl.ones(2, 4, 3))
