"""Transforms of transforms, to the third order, against closed forms and finite differences."""

import itertools
import math

import pytest
from cases import each

import tensorlib as tl
from tensorlib import func
from tensorlib.testing import assert_close, gradcheck, gradgradcheck


def derivative_by_jvp(f):
    return lambda x: func.jvp(f, (x,), (tl.ones_like(x),))[1]


def derivative_by_vjp(f):
    def derivative(x):
        out, pull = func.vjp(f, x)
        return pull(tl.ones_like(out))[0]
    return derivative


def derivative_by_linearize(f):
    return lambda x: func.linearize(f, x)[1](tl.ones_like(x))


DERIVATIVES = {
    "grad": func.grad, "jvp": derivative_by_jvp, "vjp": derivative_by_vjp,
    "linearize": derivative_by_linearize, "jacrev": func.jacrev, "jacfwd": func.jacfwd,
    "elementwise_grad": func.elementwise_grad,
    "value_and_grad": lambda f: lambda x: func.value_and_grad(f)(x)[1],
}


@each("outer, inner", list(itertools.product(DERIVATIVES, repeat=2)))
def test_any_two_give_the_second_derivative(outer, inner):
    x = tl.tensor(0.4, dtype=tl.float64)
    found = DERIVATIVES[outer](DERIVATIVES[inner](lambda x: (2 * x).sin() * x))(x)
    exact = 4 * math.cos(0.8) - 4 * 0.4 * math.sin(0.8)
    assert found.item() == pytest.approx(exact, rel=1e-12)
    assert not found.requires_grad


@each("names", list(itertools.product(["grad", "jvp", "jacrev"], repeat=3)))
def test_any_three_give_the_third_derivative(names):
    f = tl.tanh
    for name in names:
        f = DERIVATIVES[name](f)
    x = tl.tensor(0.4, dtype=tl.float64)
    y = math.tanh(0.4)
    assert f(x).item() == pytest.approx((1 - y * y) * (6 * y * y - 2), rel=1e-12)


def test_the_order_of_derivatives_has_no_end():
    f = tl.sin
    for _ in range(8):
        f = func.grad(f)
    assert f(tl.tensor(0.4, dtype=tl.float64)).item() == pytest.approx(math.sin(0.4), rel=1e-12)


@pytest.mark.parametrize("inner", [func.jacrev, func.jacfwd])
@pytest.mark.parametrize("outer", [func.jacrev, func.jacfwd])
def test_four_ways_to_a_hessian(inner, outer, x):
    def f(x):
        return (x[0] * x[1]).exp() + x.prod() + (x * x).sum().sqrt() + x.logsumexp(0)

    assert_close(outer(inner(f))(x), func.hessian(f)(x), rtol=1e-12, atol=1e-12)


def test_hessian_times_vector_without_the_hessian(x):
    def f(x):
        return (x.sin() * x.exp()).sum() * x.prod()

    v = tl.tensor([1.0, 0.5, -2.0], dtype=tl.float64)
    exact = func.hessian(f)(x) @ v
    for transform in (func.hvp, func.vhp):
        value, product = transform(f, (x,), (v,))
        assert_close(value, f(x))
        assert_close(product, exact)


def test_levels_are_not_confused():
    """d/dx x (d/dy (x + y)) = 1, the classic trap of forward mode with one tag for all."""
    one = tl.tensor(1.0)
    for outer, inner in itertools.product(DERIVATIVES.values(), repeat=2):
        assert outer(lambda x: x * inner(lambda y: x + y)(one))(one).item() == 1.0
        assert outer(lambda x: x * inner(lambda y: x * y * y)(one))(one).item() == 4.0


def test_an_inner_derivative_of_a_constant_is_zero():
    x = tl.tensor(2.0)
    assert func.grad(lambda x: x * func.grad(lambda y: x * 3)(x))(x).item() == 0.0
    assert derivative_by_jvp(derivative_by_jvp(lambda x: tl.ones(())))(x).item() == 0.0


def test_transforms_inside_an_ordinary_graph(x):
    """Results are differentiable by what requires a gradient: inputs and captured tensors."""
    w = tl.tensor([1.0, 2.0, -1.5], dtype=tl.float64, requires_grad=True)
    y = x.clone().requires_grad_()

    def slopes(x, w):
        return func.grad(lambda x: (x.sin() * w * w).sum())(x)

    def moved(x, w):
        return func.jvp(lambda x: x.sin() * w * w, (x,), (w.exp(),))[1]

    def pulled(x, w):
        return func.vjp(lambda x: x.sin() * w * w, x)[1](w.exp())[0]

    for function in (slopes, moved, pulled):
        assert gradcheck(function, (y, w)) and gradgradcheck(function, (y, w))
        assert function(x, w).requires_grad and not function(x, w.detach()).requires_grad
    with tl.no_grad():
        assert not slopes(y, w).requires_grad
    assert y.grad is None and w.grad is None


def test_linearize_runs_the_function_once(x):
    calls = []

    def f(x):
        calls.append(x)
        return (x.tanh() * x, x.sum())

    out, push = func.linearize(f, x)
    assert_close(out[0], x.tanh() * x)
    jacobian = func.jacfwd(lambda x: x.tanh() * x)(x)
    for v in tl.eye(3, dtype=tl.float64):
        moved = push(v)
        assert_close(moved[0], jacobian @ v)
        assert_close(moved[1], v.sum())
    assert len(calls) == 1


def test_vjp_sweeps_again_and_again(x):
    _, pull = func.vjp(lambda x: x.exp().cumsum(0), x)
    rows = tl.stack([pull(row)[0] for row in tl.eye(3, dtype=tl.float64)])
    assert_close(rows, func.jacrev(lambda x: x.exp().cumsum(0))(x))


def test_python_control_flow_on_values(x):
    def f(x):
        y = x
        while y.abs().sum().item() < 10:
            y = y * 2 if y[0].item() > 0 else -y
        return (y * x).sum()

    assert_close(func.grad(f)(x), 16 * x)
    assert_close(func.jacfwd(f)(x), 16 * x)


def test_writes_in_place_to_tensors_of_its_own(x):
    def f(x):
        y = tl.zeros(4, dtype=tl.float64)
        y[0] = x[0] * x[1]
        y[1:] = x.exp()
        part = y[:2]
        part.mul_(x[2])
        y += y * 0.5
        z = x.clone()
        z[z > 0] *= 3
        z.sin_()
        return (y, z.t() * 2, z[[0, 2, 0]])

    by_rows, by_columns = func.jacrev(f)(x), func.jacfwd(f)(x)
    for k, (a, b) in enumerate(zip(by_rows, by_columns)):
        assert_close(a, b)
        assert gradcheck(lambda x: f(x)[k], (x.clone().requires_grad_(),))


def test_detach_and_no_grad_cut_both_modes(x):
    def f(x):
        with tl.no_grad():
            y = x * 5
        return x.detach() * x + y

    assert_close(func.elementwise_grad(f)(x), x)
    assert_close(func.jvp(f, (x,), (tl.ones_like(x),))[1], x)


def test_mixed_dtypes_keep_those_of_inputs_and_outputs():
    a, b = tl.ones(2, dtype=tl.float32), tl.full((2,), 3.0, dtype=tl.float64)
    out, moved = func.jvp(lambda a, b: (a * b, a.half(), a.sum()), (a, b), (a, b))
    assert [t.dtype for t in moved] == [x.dtype for x in out] == [tl.float64, tl.float16,
                                                                 tl.float32]
    slopes = func.grad(lambda a, b: (a * b).sum(), (0, 1))(a, b)
    assert [g.dtype for g in slopes] == [tl.float32, tl.float64]


def test_forward_mode_through_a_long_chain():
    def f(x):
        for _ in range(20_000):
            x = x * 1.0001
        return x

    x = tl.ones((), dtype=tl.float64)
    out, moved = func.jvp(f, (x,), (x,))
    assert_close(out, moved)


def test_a_view_of_a_sum_moves_with_a_tangent_of_other_strides():
    """The tangent of what was broadcast is a view of one row, which `view` itself would refuse."""
    table = tl.ones(2, 3, dtype=tl.float64)
    x = tl.tensor([0.1, 0.2, 0.3], dtype=tl.float64)
    for f in (lambda x: (x.sin() + table).view(6), lambda x: (x.sin() + table).view(-1)):
        _, moved = func.jvp(f, (x,), (tl.ones_like(x),))
        assert_close(moved, tl.cat([x.cos(), x.cos()]))
        assert_close(func.jacfwd(f)(x), func.jacrev(f)(x))
