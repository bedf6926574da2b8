"""Random numbers inside vmap: one draw for all examples, or one for each."""

import numpy as np
import pytest
from cases import each
from test_vmap import random

import tensorlib as tl
from tensorlib.func import vmap
from tensorlib.testing import assert_close

X = random(3, 4).sigmoid()

DRAWS = {
    "rand": lambda x: tl.rand(4),
    "randn": lambda x: tl.randn(2, 3, dtype=tl.float64),
    "rand_like": lambda x: tl.rand_like(x),
    "randn_like": lambda x: tl.randn_like(x, dtype=tl.float32),
    "rand_like of a shared tensor": lambda x: tl.rand_like(X),
    "randint": lambda x: tl.randint(0, 10**9, (5,)),
    "randint_like": lambda x: tl.randint_like(x, 10**6),
    "randperm": lambda x: tl.randperm(20),
    "bernoulli": lambda x: tl.bernoulli(tl.full((64,), 0.5)),
    "bernoulli with p": lambda x: tl.bernoulli(tl.zeros(64), 0.5),
    "normal of a size": lambda x: tl.normal(1.0, 2.0, (4,)),
    "normal of a shared mean": lambda x: tl.normal(X[0], 2.0),
    "multinomial": lambda x: tl.multinomial(tl.ones(20), 9),
    "multinomial of rows": lambda x: tl.multinomial(tl.ones(3, 20), 9, replacement=True),
    "normal_": lambda x: x.clone().normal_(),
    "uniform_": lambda x: tl.zeros_like(x).uniform_(1, 2),
    "random_": lambda x: x.new_empty(4).random_(0, 10**6),
    "bernoulli_": lambda x: x.new_empty(64).bernoulli_(0.5),
}
OF_EXAMPLES = {
    "bernoulli": lambda x: tl.bernoulli(x.expand(16, 4)),
    "normal": lambda x: tl.normal(x, 1.0),
    "multinomial": lambda x: tl.multinomial(x.expand(16, 4).flatten(), 9),
    "normal of both": lambda x: tl.normal(1.0, x),
    "bernoulli_": lambda x: x.new_empty(16, 4).bernoulli_(x),
}


@each("name", [*DRAWS, *OF_EXAMPLES])
def test_different_for_each_example(name):
    draw = {**OF_EXAMPLES, **DRAWS}[name]
    tl.manual_seed(3)
    out = vmap(draw, randomness="different")(X)
    one = draw(X[0])
    assert out.shape == (3, *one.shape) and out.dtype == one.dtype
    rows = [x.tolist() for x in out]
    assert rows[0] != rows[1] != rows[2] != rows[0]
    tl.manual_seed(3)
    assert_close(vmap(draw, randomness="different")(X), out)


@each("name", DRAWS)
def test_the_same_for_all_examples(name):
    out = vmap(DRAWS[name], randomness="same")(X)
    assert_close(out[0], out[1])
    assert_close(out[0], out[2])
    assert len(set(out[0].flatten().tolist())) > 1


@each("name", DRAWS)
def test_an_error_by_default(name):
    with pytest.raises(RuntimeError, match="random operation while in randomness error mode"):
        vmap(DRAWS[name])(X)
    assert tl.rand(2).shape == (2,)


def test_permutations_are_permutations():
    out = vmap(lambda x: tl.randperm(9), randomness="different")(X)
    assert all(sorted(row.tolist()) == list(range(9)) for row in out)
    assert vmap(lambda x: tl.randperm(0), randomness="different")(X).shape == (3, 0)


def test_numbers_follow_their_law():
    x = tl.full((2000,), 0.25, dtype=tl.float64)
    out = vmap(lambda p: tl.bernoulli(p), randomness="different")(x)
    assert abs(out.mean().item() - 0.25) < 0.05
    out = vmap(lambda m: tl.normal(m, 3.0), randomness="different")(x)
    assert abs(out.mean().item() - 0.25) < 0.3 and abs(out.std().item() - 3) < 0.2


@pytest.mark.parametrize("outer", ["same", "different"])
@pytest.mark.parametrize("inner", ["same", "different"])
def test_nested(outer, inner):
    f = vmap(lambda x: tl.rand(4), randomness=inner)
    out = vmap(f, randomness=outer)(random(3, 2, 4)).numpy()
    assert out.shape == (3, 2, 4)
    assert (np.ptp(out, axis=0) == 0).all() == (outer == "same")
    assert (np.ptp(out, axis=1) == 0).all() == (inner == "same")


@pytest.mark.parametrize("outer, inner", [("error", "same"), ("same", "error")])
def test_one_that_refuses_is_enough(outer, inner):
    f = vmap(lambda x: tl.rand(4), randomness=inner)
    with pytest.raises(RuntimeError, match="randomness error mode"):
        vmap(f, randomness=outer)(random(3, 2, 4))


@pytest.mark.parametrize("mode", ["same", "different"])
def test_chunks(mode):
    out = vmap(lambda x: tl.rand(4), randomness=mode, chunk_size=1)(X)
    assert bool((out[0] == out[1]).all()) == (mode == "same")


def test_a_shared_tensor_takes_no_draws_of_each():
    for draw in (tl.Tensor.normal_, tl.Tensor.uniform_, tl.Tensor.random_, tl.Tensor.bernoulli_):
        with pytest.raises(RuntimeError, match="would draw the same for all"):
            vmap(lambda x, draw=draw: draw(tl.zeros(4)), randomness="different")(X)


def test_dropout_of_each_example():
    def f(x):
        return x * (tl.rand_like(x) < 0.5) * 2
    out = vmap(f, randomness="different")(tl.ones(3, 50))
    assert set(out.flatten().tolist()) == {0.0, 2.0} and not bool((out[0] == out[1]).all())


def test_probabilities_of_each_example():
    p = tl.eye(4)
    out = vmap(lambda p: tl.multinomial(p, 3, replacement=True), randomness="different")(p)
    assert out.tolist() == [[i] * 3 for i in range(4)]
    with pytest.raises(RuntimeError, match="take randomness='different'"):
        vmap(lambda p: tl.multinomial(p, 3, replacement=True), randomness="same")(p)


def test_probabilities_are_checked():
    with pytest.raises(RuntimeError, match=r"probabilities must be in \[0, 1\]"):
        vmap(tl.bernoulli, randomness="different")(X + 1)
    with pytest.raises(RuntimeError, match="0 or more"):
        vmap(lambda s: tl.normal(0.0, s), randomness="different")(-X)


def test_generators_are_taken():
    draw = lambda x: tl.rand(3, generator=g)                             # noqa: E731
    g = tl.Generator().manual_seed(5)
    first = vmap(draw, randomness="different")(X)
    g.manual_seed(5)
    assert_close(vmap(draw, randomness="different")(X), first)
