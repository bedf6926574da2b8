"""Zero is strong: an incoming gradient of exactly zero stays zero, whatever the derivative is.

PyTorch gives NaN in all of these, since it multiplies zero by an infinite or undefined derivative.
"""

import pytest
from cases import each
from tensors import leaf

import tensorlib as tl
from tensorlib.testing import assert_close

INF, NAN = float("inf"), float("nan")


def test_the_branch_that_where_did_not_take_gives_no_nan():
    x = leaf(4.0, 0.0, -1.0)
    tl.where(x > 0, x.sqrt(), x).sum().backward()
    assert_close(x.grad, [0.25, 1.0, 1.0])


@pytest.mark.parametrize(
    "safe, unsafe",
    [
        (lambda x: x, lambda x: x.log()),
        (lambda x: x * 2, lambda x: x.reciprocal()),
        (lambda x: x, lambda x: 1 / x),
        (lambda x: x, lambda x: x**-0.5),
        (lambda x: x, lambda x: x.rsqrt()),
        (lambda x: x, lambda x: x.asin() * (2 * x + 1e300).asin()),
        (lambda x: x, lambda x: (x / 0.0).tanh() * (x - NAN)),
    ],
)
def test_where_keeps_out_every_undefined_derivative(safe, unsafe):
    x = leaf(0.0, -3.0)
    tl.where(x > 0, unsafe(x), safe(x)).sum().backward()
    plain = leaf(0.0, -3.0)
    safe(plain).sum().backward()
    assert_close(x.grad, plain.grad)


@each(
    "fn, points",
    [
        (lambda x: x.sqrt(), [0.0, -1.0, NAN]),
        (lambda x: x.log(), [0.0, -1.0, NAN]),
        (lambda x: x.log1p(), [-1.0, -2.0, NAN]),
        (lambda x: x.reciprocal(), [0.0, NAN]),
        (lambda x: x.rsqrt(), [0.0, -1.0]),
        (lambda x: x.exp(), [INF, 1e4, NAN]),
        (lambda x: x.sinh(), [INF, 1e4]),
        (lambda x: x.tan(), [INF, NAN]),
        (lambda x: x.sin(), [INF, NAN]),
        (lambda x: x.tanh(), [NAN]),
        (lambda x: x.sigmoid(), [NAN]),
        (lambda x: x.asin(), [1.0, 2.0]),
        (lambda x: x.acos(), [-1.0, 2.0]),
        (lambda x: x**0.5, [0.0, -1.0]),
        (lambda x: x * INF, [1.0, 0.0]),
        (lambda x: x * NAN, [1.0]),
        (lambda x: x / 0.0, [1.0]),
        (lambda x: x.square(), [INF, NAN]),
    ],
)
def test_an_incoming_zero_stays_zero(fn, points):
    x = leaf(*points)
    fn(x).backward(tl.zeros(len(points), dtype=tl.float64))
    assert_close(x.grad, [0.0] * len(points))


@pytest.mark.parametrize(
    "fn", [lambda a, b: a * b, lambda a, b: a / b, lambda a, b: a**b, lambda a, b: tl.atan2(a, b)]
)
def test_an_incoming_zero_stays_zero_in_both_operands(fn):
    a, b = leaf(INF, 0.0, NAN), leaf(0.0, 0.0, NAN)
    fn(a, b).backward(tl.zeros(3, dtype=tl.float64))
    assert_close([a.grad, b.grad], [[0.0] * 3] * 2)


def test_zero_is_strong_in_a_graph_of_the_gradient_too():
    x = leaf(4.0, 0.0)
    y = tl.where(x > 0, x.sqrt(), x * x)
    (g,) = tl.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = tl.autograd.grad(g.sum(), x)
    assert_close(g, [0.25, 0.0])
    assert_close(second, [-0.25 * 4.0**-1.5, 2.0])


def test_what_is_not_zero_still_tells_the_truth():
    x = leaf(0.0, NAN)
    x.sqrt().sum().backward()
    assert_close(x.grad, [INF, NAN], equal_nan=True)
