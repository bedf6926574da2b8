"""Bicubic `grid_sample` by a kernel, against the formula composed of operations."""

import itertools

import pytest
from cases import each

import tensorlib as tl
from tensorlib.nn.functional.grid_sample import cubic_formula
from tensorlib.testing import assert_close, gradcheck, gradgradcheck

F = tl.nn.functional


def drawn(shape=(2, 3, 5, 7), dtype=tl.float64):
    tl.manual_seed(0)
    places = 1.5 * tl.randn(shape[0], 4, 6, 2, dtype=dtype)
    return tl.randn(*shape, dtype=dtype).requires_grad_(), places.requires_grad_()


@each("padding", ["zeros", "border", "reflection"])
def test_what_is_seen_and_its_gradients_are_those_of_the_formula(padding):
    for dtype, align in itertools.product((tl.float32, tl.float64), (False, True)):
        for shape in ((2, 3, 5, 7), (1, 2, 1, 1), (3, 1, 8, 2)):
            images, places = drawn(shape, dtype)
            close = {"rtol": 1e-3, "atol": 1e-3} if dtype is tl.float32 else {}
            found = F.grid_sample(images, places, "bicubic", padding, align)
            wanted = cubic_formula(images, places, padding, align)
            assert_close(found, wanted, **close)
            g = tl.linspace(-1, 1, found.numel(), dtype=dtype).reshape(found.shape)
            for one, other in zip(*(tl.autograd.grad(out, (images, places), g)
                                    for out in (found, wanted))):
                assert_close(one, other, **close)
            other = images.transpose(2, 3).contiguous().transpose(2, 3)
            assert tl.equal(F.grid_sample(other, places, "bicubic", padding, align), found)
        odd = tl.tensor([[[[float("nan"), 0.0], [float("inf"), 0.2], [1e30, 0.2], [-9.0, -1e30]]]],
                        dtype=dtype)
        assert_close(F.grid_sample(images[:1], odd, "bicubic", padding, align),
                     cubic_formula(images[:1], odd, padding, align), equal_nan=True, **close)


def test_bicubic_places_have_derivatives_of_any_kind():
    images, places = drawn((1, 2, 3, 4))
    places = (places.detach()[:, :1, :3] / 2).requires_grad_()

    def seen(x, at):
        return F.grid_sample(x, at, "bicubic", "border", False)
    assert gradcheck(seen, (images, places))
    assert gradgradcheck(lambda x, at: seen(x, at).square(), (images, places))
    compiled = tl.compile(lambda x, at: tl.autograd.grad(seen(x, at).sum(), (x, at)))
    for _ in range(3):
        wanted = tl.autograd.grad(seen(images, places).sum(), (images, places))
        assert all(map(tl.equal, compiled(images, places), wanted))
    threads, found = tl.get_num_threads(), []
    many = drawn((5, 3, 16, 16))
    for count in (1, 3):
        tl.set_num_threads(count)
        out = seen(*many)
        found.append((out, *tl.autograd.grad(out.sum(), many)))
    tl.set_num_threads(threads)
    assert all(map(tl.equal, *found))


def test_loops_take_images_and_places_that_fit():
    from tensorlib._core.layers import cubic_sample
    x, places = tl.ones(1, 2, 3, 4), tl.zeros(1, 2, 2, 2)
    for wrong in ((x[0], places), (x, places[..., :1]), (x, places.repeat(2, 1, 1, 1)),
                  (x.long(), places), (x[..., :0], places)):
        with pytest.raises(RuntimeError, match="grid_sample"):
            cubic_sample.look_cubic(*wrong, "zeros", False)
    with pytest.raises(RuntimeError, match="grid_sample"):
        cubic_sample.look_cubic(x, places, "lines", False)
    with pytest.raises(RuntimeError, match="grid_sample"):
        cubic_sample.look_cubic_back(x, x, places, "zeros", False)
