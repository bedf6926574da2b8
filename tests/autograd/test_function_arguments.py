"""The arguments of `Function.apply`: keywords and defaults in their places."""

import functools

import pytest
from cases import each
from tensors import leaf

import tensorlib as tl
from tensorlib import func
from tensorlib.autograd import Function
from tensorlib.autograd.function import InplaceFunction
from tensorlib.testing import gradcheck, gradgradcheck

X = tl.tensor([1.0, -2.0, 3.0], dtype=tl.float64)


class Cube(Function):
    """k * x**3 + c: with `setup_context`, whose inputs have the defaults."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x, k=2.0, c=0.5):
        return k * x ** 3 + c

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, ctx.k, c = inputs
        ctx.inputs = ctx.k, c, ctx.needs_input_grad
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * ctx.k * x ** 2, None, None

    @staticmethod
    def jvp(ctx, x_tangent, k_tangent, c_tangent):
        assert k_tangent is c_tangent is None
        (x,) = ctx.saved_tensors
        return x_tangent * 3 * ctx.k * x ** 2


class OldCube(Function):
    """The same with a forward that takes `ctx`."""

    @staticmethod
    def forward(ctx, x, k=2.0, c=0.5):
        ctx.k, ctx.n = k, len(ctx.needs_input_grad)
        ctx.save_for_backward(x)
        return k * x ** 3 + c

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * ctx.k * x ** 2, *[None] * (ctx.n - 1)


CALLS = {
    "defaults": (lambda f, x: f.apply(x), 2.0, 0.5),
    "one default": (lambda f, x: f.apply(x, 4.0), 4.0, 0.5),
    "a keyword": (lambda f, x: f.apply(x, k=4.0), 4.0, 0.5),
    "keywords alone": (lambda f, x: f.apply(c=1.0, k=3.0, x=x), 3.0, 1.0)}


@each("mine", [Cube, OldCube])
@each("key", CALLS)
def test_keywords_and_defaults(mine, key):
    call, k, c = CALLS[key]
    run = functools.partial(call, mine)
    wanted, slope = k * X ** 3 + c, 3 * k * X ** 2
    assert run(X).equal(wanted) and func.grad(lambda x: run(x).sum())(X).equal(slope)
    assert func.vmap(run)(X).equal(wanted)
    assert func.vmap(func.grad(run))(X).equal(slope)
    assert gradcheck(run, (X.clone().requires_grad_(),))
    assert gradgradcheck(run, (X.clone().requires_grad_(),))


def by_keyword(x):
    return Cube.apply(x, k=4.0) * 2


def old_by_keyword(x):
    return OldCube.apply(x, k=4.0) * 2


@pytest.mark.filterwarnings("error")
@each("function", [by_keyword, old_by_keyword])
def test_captured(function):
    compiled, step = tl.compile(function), tl.compile(func.grad(lambda x: function(x).sum()))
    for _ in range(3):
        assert compiled(X).equal(function(X)) and step(X).equal(24 * X ** 2)


@pytest.mark.parametrize("key", CALLS)
def test_setup_context_gets_all_inputs(key):
    call, k, c = CALLS[key]
    assert call(Cube, X.clone().requires_grad_()).grad_fn.inputs == (k, c, (True, False, False))
    value, moved = func.jvp(lambda x: call(Cube, x), (X,), (tl.ones_like(X),))
    assert value.equal(k * X ** 3 + c) and moved.equal(3 * k * X ** 2)


def test_a_vmap_of_its_own_gets_the_defaults():
    class Own(Function):
        @staticmethod
        def forward(x, k=2.0):
            return x * k

        @staticmethod
        def vmap(info, in_dims, x, k):
            seen.append((in_dims, k))
            return x * k, in_dims[0]

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

    seen = []
    assert func.vmap(Own.apply)(X).equal(X * 2)
    assert func.vmap(lambda x: Own.apply(x, k=3.0))(X).equal(X * 3)
    assert seen == [((0, None), 2.0), ((0, None), 3.0)]


def test_a_tensor_by_keyword_has_a_gradient():
    class Product(Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return g * y, g * x

    x, y = X.clone().requires_grad_(), (X + 1).requires_grad_()
    Product.apply(y=y, x=x).sum().backward()
    assert x.grad.equal(y.detach()) and y.grad.equal(x.detach())


def test_a_decorated_forward_has_the_parameters_of_what_it_wraps():
    def decorated(forward):
        @functools.wraps(forward)
        def run(*args, **kwargs):
            return forward(*args, **kwargs)
        return run

    class Decorated(Function):
        forward = staticmethod(decorated(Cube.forward))
        setup_context, backward = Cube.setup_context, Cube.backward

    y = Decorated.apply(X.clone().requires_grad_(), c=1.0)
    assert y.equal(2 * X ** 3 + 1) and y.grad_fn.inputs[:2] == (2.0, 1.0)


@each("mine", [Cube, OldCube])
@each("call, message", [
    (lambda f: f.apply(X, z=1), "unexpected keyword argument 'z'"),
    (lambda f: f.apply(X, x=X), "multiple values for argument 'x'"),
    (lambda f: f.apply(k=1.0), "missing required argument 'x'"),
    (lambda f: f.apply(), "missing 1 required positional argument: 'x'")],
    ids=["unknown", "twice", "too few by keyword", "too few"])
def test_wrong_arguments(mine, call, message):
    with pytest.raises(TypeError, match=message):
        call(mine)


def test_a_keyword_only_parameter_has_no_place():
    class Only(Function):
        @staticmethod
        def forward(ctx, x, *, k=2.0):
            return x * k

    assert Only.apply(X).equal(X * 2)
    with pytest.raises(TypeError, match="unexpected keyword argument 'k'"):
        Only.apply(X, k=3.0)


def test_the_older_name_of_functions_has_a_flag():
    class Doubled(InplaceFunction):
        @staticmethod
        def forward(ctx, x, inplace=False):
            if inplace:
                ctx.mark_dirty(x)
            return x.mul_(2) if inplace else x * 2

        @staticmethod
        def backward(ctx, g):
            return 2 * g, None

    x = leaf(3.0)
    y = x * 1
    assert Doubled.apply(y, True) is y and Doubled.apply(x).tolist() == [6.0]
    y.backward()
    assert x.grad.tolist() == [2.0]
    with pytest.warns(DeprecationWarning):
        assert Doubled(inplace=True).inplace and not Doubled().inplace
