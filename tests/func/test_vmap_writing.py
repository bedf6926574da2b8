"""Writing to examples inside vmap: by any key, through masks, in place; against the loop."""

import numpy as np
import pytest
from cases import each
from hypothesis import given
from hypothesis import strategies as st
from test_vmap import assert_equals_loop, random

import tensorlib as tl
from tensorlib.func import grad, vmap
from tensorlib.testing import assert_close

X, Y = random(4, 2, 3), random(4, 2, 3, seed=1)
V = random(4, 3, seed=2)
PLACES, J = (tl.tensor(np.random.default_rng(5).integers(0, 2, shape)) for shape in ((4, 3), (4,)))
SHARED = tl.tensor([1, 0])


def after(write):
    """The function that returns its first argument as `write` leaves a copy of it."""
    def function(x, *others):
        x = x.clone()
        write(x, *others)
        return x
    return function


def assignment(key, value):
    def write(x, *others):
        x[key(*others)] = value(*others)
    return after(write)


@each("key, value", [
    (lambda y, v, i, j: j, lambda y, v, i, j: 0.5),
    (lambda y, v, i, j: j, lambda y, v, i, j: v),
    (lambda y, v, i, j: j, lambda y, v, i, j: v.sum()),
    (lambda y, v, i, j: j, lambda y, v, i, j: X[0, 0]),
    (lambda y, v, i, j: (j, 0), lambda y, v, i, j: v[0]),
    (lambda y, v, i, j: (j, slice(1, None)), lambda y, v, i, j: v[:2]),
    (lambda y, v, i, j: (..., i[:1]), lambda y, v, i, j: y[:, :1]),
    (lambda y, v, i, j: (slice(None), i[:1]), lambda y, v, i, j: v[0]),
    (lambda y, v, i, j: (i[:2], SHARED), lambda y, v, i, j: v[:2]),
    (lambda y, v, i, j: (0, i), lambda y, v, i, j: 7),
    (lambda y, v, i, j: (None, j), lambda y, v, i, j: v),
    (lambda y, v, i, j: SHARED, lambda y, v, i, j: y),
    (lambda y, v, i, j: [1, 0], lambda y, v, i, j: v),
    (lambda y, v, i, j: (slice(None), SHARED), lambda y, v, i, j: y[:, 1:]),
    (lambda y, v, i, j: (slice(None), [2, 0]), lambda y, v, i, j: X[0, :, 1:]),
    (lambda y, v, i, j: (slice(None), slice(1, None)), lambda y, v, i, j: y[:, 1:]),
    (lambda y, v, i, j: np.array([1]), lambda y, v, i, j: [1.0, 2.0, 3.0]),
    (lambda y, v, i, j: True, lambda y, v, i, j: y),
    (lambda y, v, i, j: y > 0, lambda y, v, i, j: 0.5),
    (lambda y, v, i, j: y > 0, lambda y, v, i, j: v.sum()),
    (lambda y, v, i, j: (y > 0)[:, 0], lambda y, v, i, j: v),
    (lambda y, v, i, j: (0, v > 0), lambda y, v, i, j: v[1]),
    (lambda y, v, i, j: (slice(None), v > 0), lambda y, v, i, j: 2),
    (lambda y, v, i, j: X[0] > 0, lambda y, v, i, j: v[0]),
    (lambda y, v, i, j: v.sum() > 0, lambda y, v, i, j: y),
], ids=range(25))
def test_assignment(key, value):
    assert_equals_loop(assignment(key, value), X, Y, V, PLACES, J)


@each("write", [
    lambda x, y, v, i, j: x.__setitem__(j, x[j] + v), lambda x, y, v, i, j: x[0].mul_(v),
    lambda x, y, v, i, j: x.copy_(v), lambda x, y, v, i, j: x.fill_(v[0]),
    lambda x, y, v, i, j: x.t().add_(v.unsqueeze(1)), lambda x, y, v, i, j: x.clamp_(0, 1),
    lambda x, y, v, i, j: [row.add_(k) for k, row in enumerate(x)],
    lambda x, y, v, i, j: x.add_(y, alpha=3), lambda x, y, v, i, j: x.zero_(),
    lambda x, y, v, i, j: x.diagonal().copy_(v[:2]), lambda x, y, v, i, j: x.view(-1)[1:3].exp_(),
], ids=range(11))
def test_in_place(write):
    assert_equals_loop(after(write), X, Y, V, PLACES, J)


@pytest.mark.parametrize("make", [
    tl.zeros_like, tl.ones_like, lambda x: tl.full_like(x, 2.0), lambda x: x.new_zeros(2, 3),
    lambda x: x.new_full((2, 3), 1.0), lambda x: x.new_ones((2, 3)), tl.empty_like])
def test_what_is_made_of_an_example_can_be_written(make):
    def f(x):
        z = make(x)
        z.fill_(1.0)
        z += x
        z[0] = x[1]
        return z
    assert_equals_loop(f, X)
    assert_equals_loop(lambda x: vmap(f)(x), random(3, 4, 2, 3))


SCATTERED = {
    "scatter": (random(4, 3, 2), 0, (1, 2), (2, 2)),
    "scatter_add": (random(4, 3, 2), -1, (3, 1), (3, 2)),
    "index_copy": (random(4, 3, 2), 0, (2,), (2, 2)),
    "index_add": (random(4, 3, 2), 1, (2,), (3, 2)),
    "scatter of one": (random(4), 0, (), ()), "index_add of one": (random(4), 0, (1,), (1,)),
}


@each("name", SCATTERED)
@each("dims", [(0, 0, 0), (0, None, 0), (0, 0, None), (None, 0, None),
               (None, None, 0), (0, None, None), (None, 0, 0)])
def test_scattering_along_a_dim(name, dims):
    x, dim, index, source = SCATTERED[name]
    rng = np.random.default_rng(4)
    top = 1 if x.ndim == 1 else 2
    i = [rng.permutation(top)[:index[0]] for _ in range(4)] if len(index) == 1 else (
        rng.integers(0, top, (4, *index)))
    given = x, tl.tensor(np.array(i)), random(4, *source, seed=1)
    function = getattr(tl, name.split()[0])
    assert_equals_loop(lambda x, i, s: function(x, dim, i, s),
                       *[y[0] if d is None else y for y, d in zip(given, dims)], in_dims=dims)
    if dims[0] == 0:
        assert_equals_loop(lambda x, i, s: getattr(x.clone(), function.__name__ + "_")(dim, i, s),
                           *[y[0] if d is None else y for y, d in zip(given, dims)], in_dims=dims)
        assert_equals_loop(grad(lambda x, i, s: function(x.exp(), dim, i, s).sin().sum(), 0),
                           *[y[0] if d is None else y for y, d in zip(given, dims)], in_dims=dims)


@each("value", [2.0, None])
@each("dims", [(0, 0, 0), (None, 0, None), (0, None, None), (0, None, 0)])
def test_index_fill(value, dims):
    def f(x, i, v):
        return x.index_fill(1, i, v if value is None else value)
    given = random(4, 3, 2), J.unsqueeze(1), V[:, 0]
    given = [y[0] if d is None else y for y, d in zip(given, dims)]
    assert_equals_loop(f, *given, in_dims=dims)


@given(st.data())
def test_any_positions_and_dims(data):
    shape = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    x, batch = tl.tensor(rng.normal(size=(3, *shape))), data.draw(st.integers(0, len(shape)))
    count = data.draw(st.integers(1, len(shape)))
    rank = data.draw(st.integers(0, 2))
    sizes = tuple(data.draw(st.lists(st.integers(1, 2), min_size=rank, max_size=rank)))
    picks = [tl.tensor(rng.integers(
        -min(shape), min(shape), (3, *sizes) if data.draw(st.booleans()) else sizes))
        for _ in range(count)]
    dims = [0 if p.ndim > rank else None for p in picks]
    slices = sorted(data.draw(st.sets(st.integers(0, count), max_size=1)), reverse=True)

    def key(given):
        parts = list(given)
        for place in slices if len(shape) > count else ():
            parts.insert(place, slice(None))
        return tuple(parts[:len(shape)])

    def read(x, *given):
        return x[key(given)]

    def write(x, *given):
        x = x.clone()
        x[key(given)] = x.sum() if count % 2 else x[key(given)] * 2 + 1
        return x

    moved = x.movedim(0, batch)
    for f in (read, write):
        assert_equals_loop(f, moved, *picks, in_dims=(batch, *dims))


def test_gradients_of_examples_that_are_written():
    def loss(x, y, v, i, j):
        x = x.clone()
        x[j] = v * x[0].exp()
        x[y > 0] = x.sum()
        x[:, i[:1]] *= 2
        return x.sin().sum()
    assert_equals_loop(grad(loss, 0), X, Y, V, PLACES, J)
    assert_equals_loop(grad(loss, 2), X, Y, V, PLACES, J)


@each("call, error, message", [
    (lambda x, j: X[0].clone().__setitem__(j, 1.0), RuntimeError, "all examples of a batch share"),
    (lambda x, j: X[0].clone().__setitem__(0, x), RuntimeError, "all examples of a batch share"),
    (lambda x, j: X[0].clone().copy_(x), RuntimeError, "all examples of a batch share"),
    (lambda x, j: x.clone().__setitem__(x > 0, x), RuntimeError, "no fixed shape"),
    (lambda x, j: x.clone().__setitem__(x[0] > 0, 1.0), IndexError, "mask of shape"),
    (lambda x, j: x[x > 0], RuntimeError, "no fixed shape"),
    (lambda x, j: tl.nonzero(x), RuntimeError, "shape of the result would differ"),
    (lambda x, j: tl.where(x > 0), RuntimeError, "shape of the result would differ"),
    (lambda x, j: x.masked_select(x > 0), RuntimeError, "no fixed shape"),
    (lambda x, j: x[:j], TypeError, "item"),
    (lambda x, j: range(j), RuntimeError, "item"),
    (lambda x, j: j.clone().add_(0.5), RuntimeError, "can't be cast"),
    (lambda x, j: x.clone().fill_(x), RuntimeError, "0-d"),
    (lambda x, j: x.expand(2, 2, 3).add_(1), RuntimeError, "single memory location"),
], ids=range(14))
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        vmap(lambda x, j: call(x, j))(X, J)
    assert_close(vmap(tl.sin)(X), X.sin())


@each("accumulate", [False, True])
@each("call, args", [
    (lambda a, i, add: a.index_put((i,), a[:2], add), (X, J.reshape(4, 1).expand(4, 2))),
    (lambda a, i, add: a.index_put((i, i + 1), a[0, 0], add), (X, J.reshape(4, 1))),
    (lambda i, add: X[0].index_put((-1 - i,), X[0, 0], add), (J.reshape(4, 1),)),
    (lambda a, add: a.index_put((SHARED,), a, add), (X,)),
])
def test_index_put_at_positions_of_each_example(call, args, accumulate):
    found = vmap(lambda *xs: call(*xs, accumulate))(*args)
    for i, one in enumerate(found):
        assert_close(one, call(*[x[i] for x in args], accumulate))


def test_index_put_in_a_batch_refuses_what_is_no_position():
    for bad in (2, -3):
        with pytest.raises(IndexError, match=f"index {bad} is out of bounds for a dim of size 2"):
            vmap(lambda i: X[0].index_put((i,), X[0, 0]))(J.reshape(4, 1) * 0 + bad)
    with pytest.raises(RuntimeError, match="use where"):
        vmap(lambda m: X[0].index_put((m,), X[0, 0]))(X[:, :, 0] > 0)


@each("change, shape", [
    (lambda y: y.squeeze_(0), (3,)), (lambda y: y.unsqueeze_(-1), (1, 3, 1)),
    (lambda y: y.transpose_(0, 1), (3, 1)), (lambda y: y.t_(), (3, 1))])
def test_an_example_takes_on_another_layout_in_place(change, shape):
    def f(x):
        y = x * 1.0
        assert change(y) is y and y.shape == shape
        return y.mul_(x.sum())

    xs = tl.arange(6.0).reshape(2, 1, 3)
    assert vmap(f)(xs).tolist() == [f(x).tolist() for x in xs]
    slope = grad(lambda x: f(x).square().sum())
    assert vmap(slope)(xs).tolist() == [slope(x).tolist() for x in xs]


@each("write", [
    tl.nn.ReLU(inplace=True), tl.nn.SiLU(inplace=True), tl.nn.LeakyReLU(0.1, inplace=True),
    tl.nn.Hardtanh(-0.5, 0.25, inplace=True), tl.nn.functional.relu_, tl.relu_, tl.Tensor.relu_,
    lambda y: y.relu_(), lambda y: tl.Tensor.add_(y, y, alpha=2),
    lambda y: tl.Tensor.addmm_(y, y, tl.ones(3, 3))], ids=range(10))
def test_functions_that_write_are_given_examples(write):
    def f(x):
        y = x * 1.0
        assert write(y) is y
        return y

    found = vmap(f)(X)
    for one, x in zip(found, X):
        assert_close(one, f(x))
    slopes = vmap(grad(lambda x: f(x).square().sum()))(X)
    for one, x in zip(slopes, X):
        assert_close(one, grad(lambda x: f(x).square().sum())(x))


@each("name", ["cauchy_", "exponential_", "log_normal_"])
@pytest.mark.parametrize("randomness", ["same", "different"])
def test_examples_are_filled_with_numbers_drawn(name, randomness):
    found = vmap(lambda x: getattr(x * 1.0, name)(), randomness=randomness)(X)
    assert found.isfinite().all() and found.unique().numel() > 4
    assert tl.equal(found[0], found[1]) == (randomness == "same")
