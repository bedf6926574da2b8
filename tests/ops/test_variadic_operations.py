"""Operations from outside that take any number of tensors, and attributes by keyword only."""

import itertools

import pytest

import tensorlib as tl
from tensorlib import func, ops
from tensorlib.testing import assert_close, gradcheck, gradgradcheck

numbers = itertools.count()


def leaves(*firsts):
    return [tl.tensor([first, 2.0], dtype=tl.float64, requires_grad=True) for first in firsts]


@pytest.fixture
def product():
    """A primitive: the product of all, times a scale."""
    def product_of(*xs, scale):
        out = xs[0] * scale
        for x in xs[1:]:
            out = out * x
        return out
    product_of.__name__ = f"product_of_{next(numbers)}"
    made = ops.primitive(product_of)
    ops.defvjp(made, lambda g, ans, *xs, scale: tuple(g * ans / x for x in xs))
    return made


@pytest.fixture
def mean():
    """A composed operation: the mean of all, times a scale."""
    return ops.compose(f"mean_of_{next(numbers)}", lambda *xs, scale=1.0: sum(xs) * scale / len(xs))


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_gradients(product, mean, n):
    xs = leaves(*range(1, n + 1))
    for function in (lambda *xs: product(*xs, scale=3.0), lambda *xs: product(xs, scale=3.0),
                     lambda *xs: mean(*xs), lambda *xs: mean(list(xs), scale=2.0)):
        assert gradcheck(function, xs) and gradgradcheck(function, xs)


def test_a_picture_numbers_the_tensors(mean):
    picture = tl.graph.dot(mean(*leaves(1.0, 2.0, 3.0)))
    assert "xs[0]" in picture and "xs[2]" in picture


def test_only_some_require_grad(product):
    (x,), y = leaves(3.0), tl.tensor([5.0, 7.0], dtype=tl.float64)
    (g,) = tl.autograd.grad(product(y, x, y, scale=1.0).sum(), x)
    assert_close(g, y * y)


def test_calls_as_records(product, mean):
    x, y = leaves(1.0, 3.0)
    for op, needs, slopes in ((product, ("xs", "out", "grad_out"), (2 * y, 2 * x)),
                              (mean, ("xs", "grad_out"), (tl.ones_like(x), tl.ones_like(x)))):
        call = ops.call(getattr(op, "op", op), [x, y], scale=2.0)
        assert call.attributes == {"scale": 2.0} and call.op.arguments == ("xs",)
        back = ops.build_grad_op(call)
        assert back.needs == needs
        ((dx, dy),) = back(tl.ones(2, dtype=tl.float64))
        assert_close((dx, dy), slopes)


def test_what_a_rule_needs_is_kept_and_checked(product):
    x, y = (z * 1 for z in leaves(1.0, 3.0))
    out = product(x, y, scale=1.0)
    assert set(out.grad_fn.saved_values) == {"xs[0]", "xs[1]", "out"}
    y.mul_(2)
    with pytest.raises(RuntimeError, match="inplace operation: input 1 of .*product_of"):
        out.sum().backward()


def test_forward_mode_passes_what_is_composed(product, mean):
    x, y = (z.detach() for z in leaves(1.0, 3.0))
    assert_close(func.jvp(mean, (x, y), (x, y))[1], (x + y) / 2)
    with pytest.raises(RuntimeError, match="product_of_.* has no forward-mode rule"):
        func.jvp(lambda *xs: product(*xs, scale=1.0), (x, y), (x, y))
    with pytest.raises(ValueError, match="defjvp: .*product_of_.* any number"):
        ops.defjvp(product, lambda g, ans, *xs: g)


def test_a_mistake_names_the_operation(product, mean):
    x, y = leaves(1.0, 3.0)
    with pytest.raises(TypeError, match="product_of.* 'scale'"):
        product(x, y)
    with pytest.raises(TypeError, match=r"product_of.*expected a Tensor at xs\[1\], got str"):
        product(x, "y", scale=1.0)
    with pytest.raises(RuntimeError, match="product_of_.*at most 24 of them; got 25"):
        product(*leaves(*range(1, 26)), scale=1.0)
    with pytest.raises(ValueError, match="product_of_.* gradients of all"):
        ops.defvjp(product, None)
    ops.defvjp(product, lambda g, ans, *xs, scale: (g,))
    with pytest.raises(RuntimeError, match="product_of_.* 1 gradients; it has 2 inputs"):
        product(x, y, scale=1.0).sum().backward()


@pytest.mark.parametrize("fun", [lambda x, *xs: x, lambda x=1, *xs: x])
def test_other_parameters_beside_them_are_by_keyword(fun):
    with pytest.raises(ValueError, match=r"compose: never takes any number of tensors, \*xs"):
        ops.compose("never", fun)


def test_an_attribute_by_keyword_without_a_default():
    shifted = ops.compose(f"shifted_{next(numbers)}", lambda x, *, by: x + by)
    (x,) = leaves(1.0)
    assert shifted.attributes == ("by",) and shifted(x, by=2.0).tolist() == [3.0, 4.0]
    with pytest.raises(TypeError, match="'by'"):
        shifted(x)


def test_a_forward_mode_rule_of_many_tensors():
    def total(a, b, c, d, e, f, k, x, y):
        return a + b + c + d + e + f + k + x * y

    total.__name__ = f"total_{next(numbers)}"
    made = ops.primitive(total)
    ops.defjvp(made, *[lambda g, *_: g] * 7, lambda g, ans, *xs: g * xs[8],
               lambda g, ans, *xs: g * xs[7])
    values = [x.detach() for x in leaves(*range(9))]
    _, moved = func.jvp(made, tuple(values), tuple(tl.ones_like(x) for x in values))
    assert_close(moved, 7 + values[7] + values[8])
