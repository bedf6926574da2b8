"""Rules that are wrong: each an error that names the operation and the argument.

And the graph is usable after: mended, the rule gives in a second sweep what it should have given.
"""

import itertools

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib import autograd, func, ops
from tensorlib.testing import assert_close

NUMBERS = itertools.count()


def fresh():
    return f"bad_rule_{next(NUMBERS)}"


def real(*values):
    return tl.tensor(values, dtype=tl.float64, requires_grad=True)


# ---- what a rule may return instead of a gradient ------------------------------------------------
# Each takes the right gradient.

def raising(g):
    raise ZeroDivisionError("mine")


BAD = {
    "too short": (lambda g: g[:2], RuntimeError, r"shape \(2,\)"),
    "too many dims": (lambda g: g.expand(2, 1, 3)[:, :, :2], RuntimeError, r"shape \(2, 1, 2\)"),
    "0-d": (lambda g: g.sum(), RuntimeError, r"shape \(\)"),
    "a number": (lambda g: 3.0, TypeError, "returned float"),
    "an array": (lambda g: g.detach().numpy(), TypeError, r"returned numpy\.ndarray"),
    "a list": (lambda g: g.tolist(), TypeError, "returned list"),
    "a string": (lambda g: "g", TypeError, "returned str"),
    "an exception": (raising, ZeroDivisionError, "mine"),
}


class Rule:
    """Returns what `bad` makes of the gradient until it is mended."""

    def __init__(self, bad):
        self.bad = bad

    def __call__(self, right):
        return self.bad(right) if self.bad else right


def function_with(rule):
    """A `Function` of two arguments whose rule for the second may be bad."""
    class Product(autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return g * y, rule(g * x)

    return Product.apply, "Product", ("'inputs[1]'", "all its arguments")


def primitive_with(rule):
    def product(x, y):
        return x * y

    product.__name__ = fresh()
    made = ops.primitive(product)
    ops.defvjp(made, lambda g, ans, x, y: g * y, lambda g, ans, x, y: rule(g * x))
    return made, product.__name__, ("'y'",)


def declared_with(rule):
    """By the decorator that the library itself uses."""
    def product(x: tl.Tensor, y: tl.Tensor):
        """x * y."""
        return x * y

    product.__name__ = fresh()
    made = ops.op()(product)
    made.vjp("x")(lambda g, y: g * y)
    made.vjp("y")(lambda g, x: rule(g * x))
    return made, product.__name__, ("'y'",)


def composed_with(rule):
    """An operation made of a bad one: the error names the part."""
    part, name, whose = primitive_with(rule)
    return ops.compose(fresh(), lambda x, y: part(x, y) * 1), name, whose


MAKERS = [function_with, primitive_with, declared_with, composed_with]


@each("make", MAKERS, ids=lambda make: make.__name__)
@each("bad", BAD)
def test_a_rule_that_returns_no_gradient(make, bad):
    returned, error, text = BAD[bad]
    rule = Rule(returned)
    operation, name, whose = make(rule)
    x, y = real(1.0, 2.0, 3.0), real(4.0, 5.0, 6.0)
    above = x * 2
    loss = operation(above, y).sum()
    with pytest.raises(error, match=text) as caught:
        loss.backward(retain_graph=True)
    said = " ".join([str(caught.value), *getattr(caught.value, "__notes__", ())])
    assert name in said and any(words in said for words in whose)
    assert y.grad is None
    rule.bad = None
    x.grad = None
    loss.backward()
    assert_close(x.grad, 2 * y.detach())
    assert_close(y.grad, above.detach())


def test_a_backward_operation_names_the_rule_that_returns_no_gradient():
    operation, name, _ = primitive_with(Rule(lambda g: 3.0))
    back = ops.build_grad_op(ops.call(operation, real(1.0, 2.0), real(3.0, 4.0)))
    with pytest.raises(TypeError, match=f"rule of .*{name} returned float.*'y'"):
        back(tl.ones(2, dtype=tl.float64))


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_a_gradient_of_another_dtype_is_cast(make):
    for dtype in (tl.float32, tl.float16, tl.int64):
        operation, _, _ = make(Rule(lambda g, dtype=dtype: g.to(dtype)))
        y = real(4.0, 5.0)
        operation(real(1.0, 2.0), y).sum().backward()
        assert y.grad.dtype == tl.float64 and y.grad.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("returned, text", [
    (lambda g: (g,), "expected 2, got 1"), (lambda g: g, "expected 2, got 1"),
    (lambda g: (g, g, g), "expected 2, got 3"), (lambda g: (), "expected 2, got 0"),
])
def test_a_function_that_returns_another_number_of_gradients(returned, text):
    broken = [True]

    class Sum(autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x + y

        @staticmethod
        def backward(ctx, g):
            return returned(g) if broken else (g, g)

    x, y = real(1.0), real(2.0)
    loss = Sum.apply(x, y).sum()
    with pytest.raises(RuntimeError, match=f"SumBackward returned an incorrect number .*{text}"):
        loss.backward(retain_graph=True)
    broken.clear()
    loss.backward()
    assert x.grad.item() == y.grad.item() == 1.0


# ---- forward-mode rules --------------------------------------------------------------------------

@each("bad", [name for name in BAD if name != "too many dims"])
def test_a_forward_mode_rule_that_returns_no_tangent(bad):
    returned, error, text = BAD[bad]
    rule = Rule(returned)

    def product(x, y):
        return x * y

    product.__name__ = fresh()
    made = ops.primitive(product)
    ops.defjvp(made, lambda g, ans, x, y: g * y, lambda g, ans, x, y: rule(g * x))
    x, y = tl.tensor([1.0, 2.0, 3.0]), tl.tensor([4.0, 5.0, 6.0])
    with pytest.raises(error, match=text) as caught:
        func.jvp(made, (x, y), (x, y))
    said = " ".join([str(caught.value), *getattr(caught.value, "__notes__", ())])
    assert product.__name__ in said and "'y'" in said
    rule.bad = None
    assert_close(func.jvp(made, (x, y), (x, y))[1], 2 * x * y)
    rule.bad = lambda g: g.double()
    assert_close(func.jvp(made, (x, y), (x, y))[1], 2 * x * y)


# ---- sweeps that make no sense -------------------------------------------------------------------

@pytest.mark.parametrize("call, text", [
    (lambda y: y.backward(), r"backward: .*scalar outputs.*\(2,\)"),
    (lambda y: autograd.backward([y.sum(), y]), r"scalar outputs.*\(2,\)"),
    (lambda y: autograd.grad(y, y), r"scalar outputs.*\(2,\)"),
    (lambda y: y.backward(tl.ones(3)), r"Mismatch in shape.*\(3,\).*\(2,\)"),
    (lambda y: y.backward(tl.ones(2, dtype=tl.complex64)), r"Mismatch in dtype.*complex64.*float"),
    (lambda y: (y * 1j).backward(tl.ones(2)), r"Mismatch in dtype.*float32.*complex"),
    (lambda y: func.grad(lambda x: x * 2)(y), r"grad: .*scalar.*\(2,\)"),
    (lambda y: func.hessian(lambda x: x.int())(y), "floating-point"),
    (lambda y: autograd.functional.hessian(lambda x: x * 2, y), r"hessian: .*(scalar|single)"),
])
def test_gradients_of_what_is_no_scalar(call, text):
    x = real(1.0, 2.0)
    y = x * x
    with pytest.raises(RuntimeError, match=text):
        call(y)
    y.sum().backward()
    assert_close(x.grad, 2 * x.detach())


@pytest.mark.parametrize("transform", [
    lambda f, x: func.grad(f)(x), lambda f, x: func.jvp(f, (x,), (x,)),
    lambda f, x: func.vjp(f, x), lambda f, x: func.hessian(f)(x),
    lambda f, x: autograd.functional.jacobian(f, x),
])
def test_a_side_effect_on_a_captured_tensor_leaves_its_graph_as_it_was(transform):
    captured = real(1.0, 2.0) * 3
    other = captured.exp()

    def f(x):
        captured.mul_(x)
        return (x * captured).sum()

    with pytest.raises(RuntimeError, match="mul_: in place on a tensor .*outside"):
        transform(f, tl.tensor([1.0, 2.0], dtype=tl.float64))
    (g,) = autograd.grad(other.sum(), captured)
    assert_close(g, other.detach())


# ---- cycles --------------------------------------------------------------------------------------

def assert_usable(x, loss):
    """The graph of a sum of squares still gives its gradient."""
    x.grad = None
    loss.backward(retain_graph=True)
    assert_close(x.grad, 2 * x.detach())


def test_links_of_the_graph_cannot_be_set():
    x = real(1.0, 2.0)
    y = x * x
    for owner, name in ((y, "grad_fn"), (y.grad_fn, "next_functions"), (y, "is_leaf")):
        with pytest.raises(AttributeError):
            setattr(owner, name, getattr(owner, name))
    assert_usable(x, y.sum())


def test_a_sweep_inside_of_itself_ends():
    """A hook that sweeps through its own place, a rule that sweeps through its own node."""
    x = real(1.0, 2.0)
    y = x * x
    loss = y.sum()
    with y.register_hook(lambda g: loss.backward(retain_graph=True)), pytest.raises(RecursionError):
        loss.backward(retain_graph=True)
    assert_usable(x, loss)
    results = []

    class Cycle(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            if results:
                results[0].backward()
            return g * 2

    results.append(Cycle.apply(x).sum())
    with pytest.raises(RecursionError) as caught:
        results[0].backward()
    (note,) = caught.value.__notes__
    assert "rule of Cycle" in note
    assert_usable(x, loss)
    result = results.pop()
    assert autograd.grad(result, x)[0].tolist() == [2.0, 2.0]


def test_operations_made_of_themselves_end():
    x = real(1.0, 2.0)
    loss = (x * x).sum()
    own = []
    own.append(ops.compose(fresh(), lambda x: own[0](x) + x))
    with pytest.raises(RecursionError):
        own[0](x)

    class Own(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return Own.apply(x)

    with pytest.raises(RecursionError):
        Own.apply(x)
    assert tl.is_grad_enabled()
    assert_usable(x, loss)


@pytest.mark.parametrize("name, call", [
    ("grad", lambda loop, x: func.grad(lambda loop: loop[0].sum())(loop)),
    ("vjp: the function's outputs", lambda loop, x: func.vjp(lambda x: loop, x)),
    ("jvp", lambda loop, x: func.jvp(lambda loop: loop[0], (loop,), (loop,))),
    ("vmap: the container of arguments", lambda loop, x: func.vmap(lambda loop: x)(loop)),
    ("vmap: the container of results", lambda loop, x: func.vmap(lambda x: loop)(x)),
    ("grad: what comes with", lambda loop, x: func.grad(
        lambda x: (x.sum(), loop), has_aux=True)(x)),
])
def test_containers_that_contain_themselves(name, call):
    x = tl.ones(2)
    loop = [x]
    loop.append({"again": loop})
    with pytest.raises(RecursionError, match=f"{name}.* must not contain itself"):
        call(loop, x)
    assert tl.is_grad_enabled()
    assert np.array_equal(func.grad(lambda x: x.sum())(x).numpy(), np.ones(2))
