"""`vmap` over an `autograd.Function`: its own rule, the generated one, and example by example."""

import warnings

import pytest

import tensorlib as tl
from tensorlib import func
from tensorlib.autograd import Function
from tensorlib.testing import assert_close


class Plain(Function):
    """(x * y * k, x + 1 where its gradient is not asked for); keeps x, y and the product."""

    @staticmethod
    def forward(ctx, x, y, k):
        out, other = x * y * k, x + 1
        ctx.save_for_backward(x, None, y)
        ctx.save_for_forward(out, y)
        ctx.mark_non_differentiable(other)
        ctx.k = k
        return out, other

    @staticmethod
    def backward(ctx, g, h):
        x, nothing, y = ctx.saved_tensors
        assert nothing is None and g.shape == x.shape
        return g * y * ctx.k, (g * x).sum() * ctx.k if ctx.needs_input_grad[1] else None, None

    @staticmethod
    def jvp(ctx, dx, dy, dk):
        out, y = ctx.saved_tensors
        return dx * y * ctx.k + dy * out / y, None


class Generated(Plain):
    generate_vmap_rule = True


class Own(Plain):
    @staticmethod
    def vmap(info, in_dims, x, y, k):
        assert info.batch_size == 4 and info.randomness == "error" and in_dims[2] is None
        x = x if in_dims[0] is None else x.movedim(in_dims[0], -1)
        y = y if in_dims[1] is None else y.movedim(in_dims[1], -1)
        if in_dims[0] is None:
            x = x.unsqueeze(-1)
        return (x * y * k, x.expand((*x.shape[:-1], 4)) + 1), (-1, -1)


X = tl.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0], [-1.0, 0.5, 2.0]],
              dtype=tl.float64)
Y = tl.tensor([2.0, 3.0, 5.0, 7.0], dtype=tl.float64)


@pytest.fixture(params=[Plain, Generated, Own])
def function(request):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield request.param


@pytest.mark.parametrize("x_dim, y_dim", [(0, 0), (0, None), (None, 0), (1, None)])
def test_forward(function, x_dim, y_dim):
    x = X.t() if x_dim == 1 else X if x_dim == 0 else X[0]
    y = Y[0] if y_dim is None else Y
    out, other = func.vmap(lambda x, y: function.apply(x, y, 2.0), (x_dim, y_dim))(x, y)
    rows = X if x_dim is not None else X[:1].expand(4, 3)
    column = Y[:, None] if y_dim == 0 else Y[0]
    assert_close(out, rows * column * 2)
    assert_close(other, rows + 1)


def test_gradients_of_each_example(function):
    def f(x, y):
        return function.apply(x, y, 2.0)[0].sin().sum()

    def plain(x, y):
        return (x * y * 2.0).sin().sum()

    for dims in ((0, 0), (0, None), (None, 0)):
        args = [a if d == 0 else a[0] for a, d in zip((X, Y), dims)]
        found = func.vmap(func.grad(f, (0, 1)), dims)(*args)
        for a, b in zip(found, func.vmap(func.grad(plain, (0, 1)), dims)(*args)):
            assert_close(a, b)


def test_gradients_of_what_the_examples_share_are_summed(function):
    def total(x, y):
        return func.vmap(lambda x: function.apply(x, y, 2.0)[0].sin().sum())(x).sum()

    def plain(x, y):
        return (x * y * 2.0).sin().sum()

    for a, b in zip(func.grad(total, (0, 1))(X, Y[1]), func.grad(plain, (0, 1))(X, Y[1])):
        assert_close(a, b)
    x = X.clone().requires_grad_()
    func.vmap(lambda x: function.apply(x, Y[0], 1.0)[0].sum())(x).sum().backward()
    assert_close(x.grad, Y[0].expand(4, 3))


@pytest.mark.parametrize("function", [Plain, Generated])
@pytest.mark.filterwarnings("ignore:vmap")
def test_second_derivatives_and_forward_mode(function):
    def f(x):
        return function.apply(x, x[1].exp(), 2.0)[0].sin().sum()

    def plain(x):
        return (x * x[1].exp() * 2.0).sin().sum()

    for transform in (func.hessian, func.jacfwd, lambda f: func.jacrev(func.jacrev(f)),
                      lambda f: func.jacrev(func.jacfwd(f))):
        assert_close(func.vmap(transform(f))(X / 9), func.vmap(transform(plain))(X / 9))


@pytest.mark.parametrize("function", [Plain, Generated])
@pytest.mark.filterwarnings("ignore:vmap")
def test_nested_batches(function):
    def each(x, y):
        return function.apply(x, y, 3.0)[0]

    outer = func.vmap(func.vmap(each, (None, 0)), (0, None))
    assert_close(outer(X, Y), X[:, None, :] * Y[:, None] * 3)
    slopes = func.vmap(func.vmap(func.grad(lambda x, y: each(x, y).sum()), (None, 0)), (0, None))
    assert_close(slopes(X, Y), (Y[:, None] * 3).expand(4, 4, 3))


def test_only_the_loop_warns():
    class Slow(Plain):
        pass

    with pytest.warns(UserWarning, match="Slow has no batching rule"):
        func.vmap(lambda x: Slow.apply(x, Y[0], 1.0)[0])(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        func.vmap(lambda x: Generated.apply(x, Y[0], 1.0)[0])(X)


def test_one_output_and_one_gradient():
    class Double(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(output)

        @staticmethod
        def backward(ctx, g):
            (out,) = ctx.saved_tensors
            return g * 2 + 0 * out

    assert_close(func.vmap(Double.apply)(X), X * 2)
    assert_close(func.vmap(func.grad(lambda x: Double.apply(x).sum()))(X), tl.full_like(X, 2.0))


@pytest.mark.parametrize("members, message", [
    ({"generate_vmap_rule": True, "backward": lambda ctx, g, h: g},
     r"BadBackward returned an incorrect number of gradients \(expected 3, got 1\)"),
    ({"vmap": lambda info, in_dims, x, y, k: x},
     r"Bad: its vmap must return \(outputs, out_dims\)"),
    ({"vmap": lambda info, in_dims, x, y, k: ((x, x), (0, 0, 0))},
     "Bad: its vmap returned 2 outputs but 3 out_dims"),
])
def test_bad_rules(members, message):
    Bad = type("Bad", (Plain,), {name: staticmethod(rule) if callable(rule) else rule
                                 for name, rule in members.items()})
    with pytest.raises(RuntimeError, match=message):
        func.vmap(func.grad(lambda x: Bad.apply(x, Y[0], 1.0)[0].sum()))(X)


def test_a_generated_rule_does_not_write_into_its_inputs():
    class Dirty(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

    with pytest.raises(RuntimeError, match="Dirty: vmap: a Function that writes into its inputs"):
        func.vmap(lambda x: Dirty.apply(x.clone()))(X)


# ---- Functions that use transforms themselves ----------------------------------------------------

class Sine(Function):
    """sin(x), of which the forward, the backward and the jvp are each computed by a transform."""

    @staticmethod
    def forward(x):
        return func.vjp(lambda x: -x.cos(), x)[1](tl.ones_like(x))[0]

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return g * func.grad(lambda x: x.sin().sum())(x)

    @staticmethod
    def jvp(ctx, dx):
        x, = ctx.saved_tensors
        return func.jvp(tl.sin, (x,), (dx,))[1]


class GeneratedSine(Sine):
    generate_vmap_rule = True


class OwnSine(Sine):
    """With a vmap that takes a transform of the whole batch."""

    @staticmethod
    def vmap(info, dims, x):
        return Sine.apply(x), dims


@pytest.mark.filterwarnings("ignore:vmap. Sine has no batching rule")
@pytest.mark.parametrize("sine", [Sine, GeneratedSine, OwnSine], ids=lambda kind: kind.__name__)
def test_transforms_inside_of_a_function_see_whole_batches(sine, x):
    rows = tl.stack([x, x * 2])

    def total(x):
        return (sine.apply(x) * x).sum()

    def known(x):
        return (x.sin() * x).sum()

    assert_close(func.vmap(sine.apply)(rows), rows.sin())
    for transform in (func.grad, func.jacrev, func.jacfwd):
        assert_close(func.vmap(transform(total))(rows), func.vmap(transform(known))(rows))
    assert_close(func.vmap(func.jacrev(sine.apply))(rows),
                 tl.stack([tl.diag(row.cos()) for row in rows]))
    assert_close(func.vmap(func.vmap(func.grad(total)))(rows.unsqueeze(-1)),
                 (rows.sin() + rows * rows.cos()).unsqueeze(-1))
    assert_close(func.grad(lambda x: func.vmap(total)(x).sum())(rows),
                 rows.sin() + rows * rows.cos())


class Noise(Function):
    """x plus numbers that are drawn."""

    @staticmethod
    def forward(ctx, x):
        return x + tl.rand(2)

    @staticmethod
    def backward(ctx, g):
        return g


@pytest.mark.filterwarnings("ignore:vmap. Noise has no batching rule")
def test_a_function_that_runs_example_by_example_draws_for_each():
    tl.manual_seed(0)
    found = func.vmap(Noise.apply, randomness="different")(tl.zeros(3, 2))
    assert found.shape == (3, 2) and len(set(found.flatten().tolist())) == 6
    with pytest.raises(RuntimeError, match="randomness"):
        func.vmap(Noise.apply)(tl.zeros(3, 2))


def test_a_gradient_that_is_an_example_of_a_batch_is_refused():
    kept = []

    class Leaking(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return kept[0]

    func.vmap(lambda x: kept.append(x) or x)(tl.ones(3, 2))
    x = tl.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="Leaking.* returned an example of a batch"):
        Leaking.apply(x).sum().backward()
    assert x.grad is None
