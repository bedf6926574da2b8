"""Derivatives of many directions at once: vmap over what vjp, jvp and linearize give; Jacobians."""

import warnings

import numpy as np
import pytest
from test_vmap import TESTED, batched_samples, from_outside, looped, random

import tensorlib as tl
from tensorlib._core.graph.op import registry
from tensorlib.autograd import functional, jacobians
from tensorlib.autograd.batch import Batched
from tensorlib.func import grad, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap
from tensorlib.testing import assert_close
from tests.ops.catalogue import for_each


def pulling(function, x):
    """The function that multiplies with the Jacobian from the left, for one input."""
    pull = vjp(function, x)[1]
    return lambda g: pull(g)[0]


DIFFERENTIABLE = [name for name in TESTED if registry[name].differentiable]


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.fixture(params=["rows together", "one by one"])
def together(request, monkeypatch):
    """Jacobians computed both ways."""
    least = 1 if request.param == "rows together" else 10**9
    monkeypatch.setattr(jacobians, "ROWS_TOGETHER", least)
    monkeypatch.setattr(jacobians, "COLUMNS_TOGETHER", least)
    return least == 1


def directions(like, seed=0):
    """Three directions for each tensor."""
    rng = np.random.default_rng(seed)

    def drawn(x):
        shape = (3, *x.shape)
        real = rng.normal(size=shape)
        return tl.tensor(real + 1j * rng.normal(size=shape) if x.is_complex() else real,
                         dtype=x.dtype)
    return tuple(map(drawn, like))


def moves(x):
    """Whether there are derivatives by a tensor."""
    return x.is_floating_point() or x.is_complex()


def floating_parts(call, batches):
    """A function of the floating arguments of a sample alone, which gives its floating results.

    Complex ones are among both.
    """
    places = [i for i, x in enumerate(batches) if moves(x)]

    def function(*floats):
        given = [x[0] for x in batches]
        for i, x in zip(places, floats):
            given[i] = x
        out = call(*given)
        return tuple(x for x in as_tuple(out) if moves(x))
    return function, tuple(batches[i][0] for i in places)


def as_tuple(x):
    return x if isinstance(x, tuple) else (x,)


def assert_agree(found, wanted):
    assert len(found) == len(wanted)
    for x, y in zip(found, wanted):
        assert x.shape == y.shape and x.dtype == y.dtype
        assert_close(x, y, equal_nan=True)


def differentiable_parts(name):
    """The function and the floating arguments of each sample of an operation that has some."""
    parts = [floating_parts(*sample) for sample in batched_samples(registry[name])]
    found = [(function, inputs) for function, inputs in parts if inputs and function(*inputs)]
    assert found
    return found


# Operations whose derivatives run example by example, with a warning.
@for_each(DIFFERENTIABLE)
def test_many_gradients_of_every_operation(name):
    for function, inputs in differentiable_parts(name):
        out, pull = vjp(function, *inputs)
        gs = directions(out)
        assert_agree(as_tuple(vmap(lambda *g, pull=pull: pull(g))(*gs)),
                     looped(lambda *g, pull=pull: as_tuple(pull(g)), *gs))


@for_each(DIFFERENTIABLE)
def test_many_tangents_of_every_operation(name):
    for function, inputs in differentiable_parts(name):
        _, push = linearize(function, *inputs)
        ts = directions(inputs)
        assert_agree(as_tuple(vmap(push)(*ts)), looped(lambda *t, push=push: push(*t), *ts))


@for_each(DIFFERENTIABLE)
def test_second_derivatives_of_every_operation(name):
    for function, inputs in differentiable_parts(name):
        def slope(*xs, function=function):
            return as_tuple(vjp(function, *xs)[1](tuple(y.cos() for y in function(*xs))))
        out, pull = vjp(slope, *inputs)
        gs = directions(out)
        assert_agree(as_tuple(vmap(lambda *g, pull=pull: pull(g))(*gs)),
                     looped(lambda *g, pull=pull: as_tuple(pull(g)), *gs))


# ---- in each other -------------------------------------------------------------------------------

def f(x):
    return (x.sin() * x.sum()).exp()[:2] + x[1:] @ x[1:]


def test_in_nested_batches():
    x, g = random(3), random(4, 5, 2, seed=1)
    pull = pulling(f, x)
    assert_close(vmap(vmap(pull))(g), tl.stack([vmap(pull)(row) for row in g]))
    push = linearize(f, x)[1]
    t = random(4, 5, 3, seed=2)
    assert_close(vmap(vmap(push))(t), tl.stack([vmap(push)(row) for row in t]))


def test_of_an_outer_batch():
    xs, g = random(4, 3), random(5, 2, seed=1)
    both = vmap(lambda x: vmap(pulling(f, x))(g))(xs)
    assert_close(both, tl.stack([tl.stack([pulling(f, x)(row) for row in g]) for x in xs]))
    t = random(5, 3, seed=2)
    both = vmap(lambda x: vmap(lambda t: jvp(f, (x,), (t,))[1])(t))(xs)
    assert_close(both, tl.stack([tl.stack([jvp(f, (x,), (row,))[1] for row in t]) for x in xs]))


def test_can_be_differentiated():
    x, g = random(3), random(4, 2, seed=1)
    found = grad(lambda x: (vmap(pulling(f, x))(g) ** 2).sum())(x)
    wanted = grad(lambda x: sum((pulling(f, x)(row) ** 2).sum() for row in g))(x)
    assert_close(found, wanted)
    leaf = x.clone().requires_grad_()
    vmap(pulling(f, leaf))(g).sum().backward()
    assert_close(leaf.grad, grad(lambda x: sum(pulling(f, x)(row).sum() for row in g))(x))


def test_views_and_writes():
    def written(x):
        y = x.clone()
        y[0] = x[1] * 2
        y.view(2, 2)[:, 1] *= x[2]
        y[tl.tensor([3, 0])] += y[:2].exp()
        return y.t().sum(0, keepdim=True) * y
    x, g = random(4), random(5, 4, seed=1)
    pull = pulling(written, x)
    assert_close(vmap(pull)(g), tl.stack([pull(row) for row in g]))
    push = linearize(written, x)[1]
    assert_close(vmap(push)(g), tl.stack([push(row) for row in g]))


def test_outputs_that_depend_on_nothing_have_no_gradient():
    pull = vjp(lambda x, y: (x * 2, tl.ones(2)), random(2), random(3))[1]
    a, b = vmap(lambda g: pull((g, g)))(random(4, 2))
    assert_close(a, random(4, 2) * 2)
    assert_close(b, tl.zeros(4, 3, dtype=tl.float64))


def test_an_input_that_is_an_output():
    pull = pulling(lambda x: (x, x * 3), random(2))
    g = random(4, 2)
    assert_close(vmap(lambda g: pull((g, g)))(g), g * 4)


def test_dtypes_of_inputs():
    x, g = tl.rand(3), tl.rand(4, 3, dtype=tl.float64)
    found = vmap(pulling(lambda x: x.double() * 2, x))(g)
    assert found.dtype == tl.float32
    assert_close(found, (g * 2).float())


# ---- rules from outside --------------------------------------------------------------------------

def test_rules_from_outside_run_one_by_one(monkeypatch):
    monkeypatch.setattr("tensorlib.autograd.batch.rules._warned", set())
    x, g = random(4), random(3, 4, seed=1)
    pull = pulling(lambda x: from_outside()(x.exp()), x)
    with pytest.warns(UserWarning, match="vjp through an operation from outside"):
        found = vmap(pull)(g)
    assert_close(found, tl.stack([pull(row) for row in g]))
    push = linearize(lambda x: from_outside()(x.exp()), x)[1]
    with pytest.warns(UserWarning, match="jvp through an operation from outside"):
        found = vmap(push)(g)
    assert_close(found, tl.stack([push(row) for row in g]))


class Squared(tl.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * x * y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return 2 * x * y * g, x * x * g


def test_functions_of_users_run_one_by_one(monkeypatch):
    monkeypatch.setattr("tensorlib.autograd.batch.rules._warned", set())
    xs, y = random(3, 4), random(4, seed=1)
    with pytest.warns(UserWarning, match="Squared has no batching rule") as caught:
        found = vmap(Squared.apply, (0, None))(xs, y)
    assert_close(found, xs * xs * y)
    assert "test_vmap_derivatives" in caught[0].filename       # the user's line
    assert_close(vmap(grad(lambda x: Squared.apply(x, y).sum()))(xs), 2 * xs * y)
    assert_close(vmap(jacrev(lambda x: Squared.apply(x, y)))(xs)[1], tl.eye(4) * 2 * xs[1] * y)
    nested = vmap(vmap(Squared.apply, (None, 0)), (0, None))(xs, xs)
    assert_close(nested[2, 1], xs[2] * xs[2] * xs[1])


def test_composed_operations_run_their_parts():
    name = "vmap_layer"
    layer = (tl.ops.registry[name] if name in tl.ops.registry else
             tl.ops.compose(name, lambda x, w: (w @ x).tanh()))
    xs, w = random(3, 4), random(2, 4, seed=1)
    assert_close(vmap(layer, (0, None))(xs, w), (xs @ w.T).tanh())
    check = lambda w, x: layer(x, w).sum()                               # noqa: E731
    assert_close(vmap(grad(check), (None, 0))(w, xs),
                 tl.stack([grad(check)(w, x) for x in xs]))
    assert_close(vmap(linearize(lambda x: layer(x, w), xs[0])[1])(xs),
                 tl.stack([jvp(lambda x: layer(x, w), (xs[0],), (x,))[1] for x in xs]))


def test_checkpoints_keep_their_values():
    xs = random(3, 4)
    f = lambda x: tl.autograd.checkpoint(lambda y: y.sin() * y, x).sum()  # noqa: E731
    assert_close(vmap(grad(f))(xs), tl.stack([grad(f)(x) for x in xs]))
    assert_close(jacrev(lambda x: tl.autograd.checkpoint(tl.sin, x))(xs.flatten()),
                 tl.eye(12) * xs.flatten().cos())


def test_jacobians_through_them_are_silent(together):
    x = random(4)
    wanted = tl.tensor(np.diag(np.exp(x.numpy()))[::-1].copy())
    assert_close(jacrev(lambda x: from_outside()(x.exp()))(x), wanted)
    assert_close(jacfwd(lambda x: from_outside()(x.exp()))(x), wanted)


def test_hooks_see_each_gradient(together):
    seen = []

    def hooked(x):
        y = x * 2
        y.register_hook(lambda g: seen.append(g.shape))
        return y
    assert_close(jacrev(hooked)(random(3)), tl.eye(3, dtype=tl.float64) * 2)
    assert seen == [(3,)] * 3


# ---- Jacobians -----------------------------------------------------------------------------------

@pytest.mark.parametrize("transform", [jacrev, jacfwd])
def test_jacobians_are_finite_differences(transform, together):
    def g(x, y):
        return {"a": (x @ y).sin(), "b": (x.sum(0) * y[:, 0].exp(), tl.ones(2, dtype=tl.float64))}
    inputs = random(2, 3), random(3, 2, seed=1)
    found = transform(g, (0, 1))(*inputs)
    assert_close(found["b"][1][1], tl.zeros(2, 3, 2, dtype=tl.float64))
    for k, x in enumerate(inputs):
        for i in range(x.numel()):
            def at(step, k=k, i=i):
                moved = [x.clone() for x in inputs]
                moved[k].view(-1)[i] += step
                return g(*moved)
            ahead, behind = at(1e-6), at(-1e-6)
            for block, y, z in ((found["a"], ahead["a"], behind["a"]),
                                (found["b"][0], ahead["b"][0], behind["b"][0])):
                column = block[k].reshape(*y.shape, -1)[..., i]
                assert_close(column, (y - z) / 2e-6, atol=1e-7, rtol=1e-6)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (2, 3)])
def test_jacobians_of_every_shape(shape, together):
    x = random(*shape)
    eye = tl.eye(x.numel(), dtype=tl.float64).reshape(shape * 2)
    for transform in (jacrev, jacfwd):
        assert_close(transform(lambda x: x * 2)(x), eye * 2)
    assert_close(functional.jacobian(lambda x: x * 2, x), eye * 2)
    assert_close(functional.jacobian(lambda x: x * 2, x, vectorize=True,
                                     strategy="forward-mode"), eye * 2)


def test_second_order(together):
    x = random(3)
    h = lambda x: (x.exp() * x.sum()).prod()                             # noqa: E731
    wanted = tl.stack([grad(lambda x, i=i: grad(h)(x)[i])(x) for i in range(3)])
    for second in (hessian(h), jacrev(jacrev(h)), jacrev(jacfwd(h)), jacfwd(jacfwd(h)),
                   lambda x: functional.hessian(h, x),
                   lambda x: functional.hessian(h, x, outer_jacobian_strategy="forward-mode")):
        assert_close(second(x), wanted)
    xs = random(4, 3, seed=3)
    assert_close(vmap(hessian(h))(xs), tl.stack([hessian(h)(x) for x in xs]))
    assert_close(vmap(jacrev(jacrev(h)))(xs), tl.stack([hessian(h)(x) for x in xs]))
    third = jacfwd(jacrev(grad(h)))(x)
    assert_close(third, tl.stack([jacrev(grad(lambda x, i=i: grad(h)(x)[i]))(x)
                                  for i in range(3)]))


def test_results_have_a_graph(together):
    x = random(3).requires_grad_()
    (jacrev(f)(x) ** 2).sum().backward()
    first, x.grad = x.grad, None
    (functional.jacobian(f, x, create_graph=True) ** 2).sum().backward()
    assert_close(first, x.grad)
    assert_close(first, grad(lambda x: (jacfwd(f)(x) ** 2).sum())(x.detach()))
    assert not functional.jacobian(f, x).requires_grad


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_chunks_of_rows(size, together):
    x = random(7)
    assert_close(jacrev(lambda x: x.exp() * x.sum(), chunk_size=size)(x),
                 jacfwd(lambda x: x.exp() * x.sum())(x))


@pytest.mark.parametrize("transform", [jacrev, jacfwd])
def test_chunks_where_values_inside_are_wide(transform, monkeypatch):
    monkeypatch.setattr(jacobians, "ELEMENTS_TOGETHER", 1)
    monkeypatch.setattr(jacobians, "ROWS_TOGETHER", 3)
    x = random(7)
    assert_close(transform(lambda x: x.exp() * x.sum())(x),
                 x.exp().unsqueeze(1).expand(7, 7) + tl.eye(7) * (x.exp() * x.sum()))


def test_a_chunk_has_rows():
    with pytest.raises(ValueError, match="chunk_size"):
        jacrev(f, chunk_size=0)(random(3))


def test_the_number_of_operations_does_not_grow_with_the_rows(monkeypatch):
    calls = []
    run = Batched.__tensor_call__
    monkeypatch.setattr(Batched, "__tensor_call__", lambda *args: calls.append(args) or run(*args))

    def count(n):
        calls.clear()
        w = random(n, n)
        for transform in (jacrev, jacfwd):
            transform(lambda x: tl.cat([(w @ x).tanh(), x.exp()]))(random(n))
        return len(calls)
    assert count(20) == count(200) > 0
