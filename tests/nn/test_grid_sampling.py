"""`grid_sample` of images: the kernel against the formula it stands for, in all of its modes."""

from itertools import product

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib.nn import functional as F
from tensorlib.nn.functional.grid_sample import look_back, look_formula
from tensorlib.testing import assert_close, gradcheck, gradgradcheck

KINDS = list(product(("zeros", "border", "reflection"), (False, True), (False, True)))


def drawn(sizes=(3, 5, 17, 23), places=(31, 29), reach=1.6, dtype="float64"):
    rng = np.random.default_rng(0)
    x = rng.standard_normal(sizes).astype(dtype)
    grid = rng.uniform(-reach, reach, (sizes[0], *places, 2)).astype(dtype)
    return tl.from_numpy(x), tl.from_numpy(grid)


def sampled(x, grid, padding, nearest, align):
    return F.grid_sample(x, grid, "nearest" if nearest else "bilinear", padding, align)


@each("dtype", ["float32", "float64"])
@each("padding, nearest, align", KINDS)
def test_it_sees_what_the_formula_says_and_so_do_its_gradients(padding, nearest, align, dtype):
    near = 1e-3 if dtype == "float32" else 1e-9
    for sizes, places in (((3, 5, 17, 23), (31, 29)), ((2, 1, 1, 4), (3, 150)), ((1, 2, 9, 1), (
            40, 40)), ((1, 2, 2, 2), (1, 7)), ((2, 3, 4, 4), (0, 3)), ((2, 0, 4, 4), (2, 3))):
        x, grid = drawn(sizes, places, dtype=dtype)
        found = []
        for function in (sampled, look_formula):
            arguments = (padding, nearest, align)
            a, b = x.clone().requires_grad_(), grid.clone().requires_grad_()
            out = function(a, b, *arguments)
            g = tl.from_numpy(np.random.default_rng(1).standard_normal(
                tuple(out.shape)).astype(dtype))
            out.backward(g)
            found.append((out.detach(), a.grad, tl.zeros_like(b) if b.grad is None else b.grad))
        for ours, wanted in zip(*found):
            assert_close(ours, wanted, rtol=near, atol=near)


@each("padding, nearest, align", KINDS)
def test_derivatives_of_both_orders(padding, nearest, align):
    x, grid = (z.requires_grad_() for z in drawn((1, 2, 3, 3), (2, 2)))
    def function(a, b):
        return sampled(a, b, padding, nearest, align)
    assert gradcheck(function, (x, grid))
    if not nearest:
        assert gradgradcheck(function, (x, grid))


def test_layouts_batches_and_threads_see_the_same():
    x, grid = drawn((4, 3, 40, 50), (60, 70), dtype="float32")
    before, found = tl.get_num_threads(), []
    try:
        for n_threads in (1, 2):
            tl.set_num_threads(n_threads)
            a, b = x.clone().requires_grad_(), grid.clone().requires_grad_()
            out = F.grid_sample(a, b, align_corners=False)
            (out * out).sum().backward()
            found.append([out.detach(), a.grad, b.grad])
    finally:
        tl.set_num_threads(before)
    for one, two in zip(*found):
        np.testing.assert_array_equal(one.numpy(), two.numpy())
    turned = F.grid_sample(x.transpose(2, 3).contiguous().transpose(2, 3), grid.flip(3).flip(3),
                           align_corners=False)
    np.testing.assert_array_equal(turned.numpy(), found[0][0].numpy())
    mapped = tl.func.vmap(lambda a, b: F.grid_sample(a[None], b[None], align_corners=False)[0])(
        x, grid)
    assert_close(mapped, found[0][0], rtol=1e-4, atol=1e-4)


@each("padding, nearest, align", KINDS)
def test_places_that_are_no_numbers_or_far_away_touch_nothing_else(padding, nearest, align):
    x, grid = drawn((1, 2, 5, 6), (2, 4), 0.9)
    wanted = sampled(x, grid, padding, nearest, align)
    odd = grid.clone()
    odd[0, 0] = tl.tensor([[float("nan"), 0.1], [float("inf"), -1e30], [1e300, float("nan")],
                           [-float("inf"), 3e9]], dtype=tl.float64)
    found = sampled(x, odd, padding, nearest, align)
    np.testing.assert_array_equal(found[:, :, 1].numpy(), wanted[:, :, 1].numpy())
    look_back(tl.ones_like(found), x, odd, padding, nearest, align)


@each("nearest", [False, True])
@each("sizes", [(0, 1), (0, 0), (2, 0)], ids=str)
@each("n", [2, 3])
def test_no_images_give_none(n, sizes, nearest):
    x = tl.zeros(*sizes, *(3,) * n, requires_grad=True)
    out = F.grid_sample(x, tl.zeros(sizes[0], *(2,) * n, n), "nearest" if nearest else "bilinear",
                        align_corners=False)
    assert out.shape == (*sizes, *(2,) * n)
    out.sum().backward()
    assert x.grad.shape == x.shape


def test_what_does_not_fit_is_refused():
    x, grid = drawn()
    for arguments in ((x[:1], x, grid), (x, x[:2], grid), (x, x, grid[..., :1]), (x, x[0], grid)):
        with pytest.raises(RuntimeError, match="does not fit"):
            look_back(*arguments, "zeros", False, False)
    with pytest.raises(RuntimeError, match="does not fit"):
        look_back(sampled(x, grid, "zeros", False, False), x, grid, "mirror", False, False)
    assert F.grid_sample(x.to("meta"), grid.to("meta"), align_corners=False).shape == (3, 5, 31, 29)


def test_places_that_are_not_numbers_and_very_wide_images():
    nan = float("nan")
    x = tl.arange(12.0).reshape(1, 1, 3, 4) + 1
    grid = tl.tensor([[[[nan, 0.0], [0.0, nan]]]])
    for kind, padding in product(("bilinear", "nearest"), ("border", "reflection")):
        out = F.grid_sample(x, grid, kind, padding, True)
        assert out[0, 0, 0, 0] == 5             # the first of its row; PyTorch, too
    out = F.grid_sample(x, grid, "bilinear", "zeros", True)
    assert out.isnan().all()                    # PyTorch, too: nothing times what is no number
    wide = tl.zeros(1, 1, 1, 2**24 + 3)         # no float32 is that number
    wide[..., -1] = 1
    ends = tl.tensor([[[[1.0, 0.0], [-1.0, 0.0], [2.0, 0.0]]]])
    assert F.grid_sample(wide, ends, "nearest", "zeros", True).sum() <= 1


@each("padding", ["zeros", "border", "reflection"])
@each("n", [2, 3])
def test_the_slope_at_an_element_itself_is_that_towards_the_next(n, padding):
    """By the kernel, and by the formula, which has the gradients of volumes and of gradients."""
    x = tl.from_numpy(np.random.default_rng(0).standard_normal((1, 2, *(3,) * n)))
    at = tl.tensor([[0.0, 0.0, 0.0], [0.0, -0.5, 0.25]], dtype=tl.float64)[:, :n]
    grid, step = at.reshape(1, *(1,) * (n - 1), 2, n), 1e-6

    def total(grid, look=lambda grid: F.grid_sample(x, grid, "bilinear", padding, True)):
        return (look(grid) * tl.arange(1.0, 5.0).reshape(1, 2, *(1,) * (n - 1), 2)).sum()

    slope = tl.func.grad(total)(grid)
    for place in np.ndindex(*grid.shape):
        moved = grid.clone()
        moved[place] += step
        np.testing.assert_allclose(((total(moved) - total(grid)) / step).item(),
                                   slope[place].item(), rtol=1e-5, atol=1e-8)
    by_formula = tl.func.grad(lambda grid: total(grid, lambda grid: look_formula(
        x, grid, padding, False, True)))(grid)
    assert_close(by_formula, slope)
