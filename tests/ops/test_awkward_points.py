"""Second derivatives where formulas come to 0 * inf, or lose what two zeros change together."""

import pytest

import tensorlib as tl
from tensorlib.func import hessian


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
    with pytest.raises(RuntimeError, match="several zeros has no second derivative"):
        hessian(product)(x.detach())
