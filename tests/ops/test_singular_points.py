"""Points where a plain formula loses what is there: 0 * inf, several zeros, infinite neighbours."""

from math import inf, nan

import pytest
from cases import each

import tensorlib as tl
from tensorlib.func import hessian
from tensorlib.testing import assert_close


@pytest.mark.parametrize("apart", [0.0, 1.0, 1000.0, -1000.0])
def test_the_curvature_of_logaddexp(apart):
    found = hessian(lambda x: tl.logaddexp(x[0], x[1]))(tl.tensor([0.0, apart]))
    share = tl.tensor(apart).sigmoid()
    curve = (share * (1 - share)).item()
    assert found.tolist() == [[pytest.approx(curve), pytest.approx(-curve)],
                              [pytest.approx(-curve), pytest.approx(curve)]]


def product(x):
    return tl.ones(1).scatter_reduce(0, tl.tensor([0] * len(x)), x, "prod").sum()


def test_products_of_scattered_factors_with_zeros():
    x = tl.tensor([1.0, 0.0, 3.0])
    assert hessian(product)(x).tolist() == [[0, 3, 0], [3, 0, 1], [0, 1, 0]]
    x = tl.tensor([1.0, 0.0, 0.0], requires_grad=True)
    product(x).backward()
    assert x.grad.tolist() == [0, 0, 0]
    assert hessian(product)(x.detach()).tolist() == [[0, 0, 0], [0, 0, 1], [0, 1, 0]]


@each("place", [[0, 1, 0, 0], [1, 1, 1, 1], [0, 0, 0, 1]])
@each("zeros", [(), (0,), (0, 3), (0, 1, 2, 3)])
def test_second_derivatives_of_scattered_products_are_those_of_products(place, zeros):
    def scattered(x):
        return x[4:].scatter_reduce(0, tl.tensor(place), x[:4], "prod").sum()

    def multiplied(x):
        return sum(tl.stack([x[4 + i], *[x[j] for j in range(4) if place[j] == i]]).prod()
                   for i in range(2))

    x = tl.tensor([2.0, 3.0, 5.0, 7.0, 0.0, 11.0])
    x[list(zeros)] = 0.0
    assert_close(hessian(scattered)(x), hessian(multiplied)(x))


# ---- neighbours of what is infinite, and results that are copies ---------------------------------

def test_an_infinite_element_stays_out_of_windows_that_do_not_have_it():
    x = tl.tensor([[[1.0, 2.0, 3.0, inf, 5.0]]])
    assert tl.nn.functional.adaptive_avg_pool1d(x, 3).tolist() == [[[1.5, inf, inf]]]
    larger = tl.nn.functional.interpolate(x, 10, mode="linear")[0, 0]
    assert larger[:5].isfinite().all() and larger.isinf().any()


def test_slopes_between_neighbours_leave_out_the_element_itself():
    (slope,) = tl.gradient(tl.tensor([0.0, 1.0, inf, 3.0, 4.0]))
    assert slope[2].item() == 1.0


def test_what_is_repeated_is_a_copy():
    x = tl.zeros(2, 3)
    for y in (x.repeat(2, 1, 1), x.tile((2, 1, 1)), x.repeat(1, 1)):
        y[0] = 1.0
        assert y.is_contiguous() and x.sum().item() == 0.0


def test_gradients_of_symmetric_decompositions_are_symmetric():
    x = tl.rand(4, 4, dtype=tl.float64)
    x = (x + x.T).requires_grad_()
    values, vectors = tl.linalg.eigh(x)
    (vectors.abs() * tl.rand(4, 4, dtype=tl.float64)).sum().backward()
    assert (x.grad - x.grad.T).abs().max().item() < 1e-12


def test_places_are_int64_whatever_the_indices_are():
    rows, columns = tl.unravel_index(tl.tensor([5], dtype=tl.int8), (2, 3))
    assert (rows.dtype, rows.item(), columns.item()) == (tl.int64, 1, 2)
    with pytest.raises(TypeError, match="unravel_index"):
        tl.unravel_index(tl.tensor([5.0]), (2, 3))


def test_mantissas_and_running_sums_of_what_is_not_finite():
    """The exponent of an infinity is 0, and one element is the sum of itself, whatever it is."""
    for value in (inf, -inf, nan, 0.0, 3.0, -1e300):
        x = tl.tensor(value, dtype=tl.float64, requires_grad=True)
        part = x.frexp().mantissa
        slope, = tl.autograd.grad(part, x)
        assert slope.item() == 0.5 ** x.frexp().exponent.item()
        assert tl.autograd.grad(x.logcumsumexp(0), x)[0].item() == 1


# ---- a NaN is not lost on the way back -----------------------------------------------------------

F = tl.nn.functional


@each("dtype", [tl.float32, tl.float64, tl.float16, tl.bfloat16], ids=str)
@each("f, slope", [
    (F.relu, 1.0), (F.relu6, 1.0), (F.hardtanh, 1.0), (F.hardswish, 1.0),
    (lambda x: F.leaky_relu(x, 0.25), 0.25), (lambda x: F.prelu(x, x.new_tensor([0.25])), 0.25),
    (lambda x: F.relu(x * 1, inplace=True), 1.0)])
def test_rectifiers_pass_on_the_gradient_of_a_nan(f, slope, dtype):
    x = tl.tensor([nan, -0.5, 0.5, nan, -9.0], dtype=dtype, requires_grad=True)
    (grad,) = tl.autograd.grad(f(x).sum(), x)
    assert grad[[0, 3]].tolist() == [slope] * 2
    (composed,) = tl.autograd.grad(f(x).sum(), x, create_graph=True)
    assert composed.equal(grad)
    _, tangent = tl.func.jvp(f, (x.detach(),), (tl.ones_like(x),))
    assert tangent.equal(grad)


def test_a_loss_that_is_nan_has_gradients_that_are():
    x = tl.tensor([-1.0, 2.0], requires_grad=True)
    F.relu(x.sqrt()).sum().backward()
    assert x.grad.isnan().tolist() == [True, False]
