"""Compiled functions that several threads call at once, capture and replay alike."""

import gc
import sys

import pytest
from together import together

import tensorlib as tl
from tensorlib import nn

CALLS = 60


@pytest.fixture(autouse=True)
def often():
    """Threads take turns often."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def test_calls_of_all_kinds():
    w = tl.randn(8, 8)
    given = [tl.randn(n + 1, 8) for n in range(6)]
    wanted = [(x @ w).tanh().sum(0) for x in given]
    compiled = tl.compile(lambda x: (x @ w).tanh().sum(0))

    def call(k, i):
        assert tl.equal(compiled(given[(i + k) % 6]), wanted[(i + k) % 6])

    together(call)


def test_gradients_by_a_leaf_that_all_share():
    w = tl.randn(8, 8, requires_grad=True)
    given = [tl.randn(n + 1, 8) for n in range(4)]
    wanted = [tl.autograd.grad((x @ w).tanh().sum(), w)[0] for x in given]
    compiled = tl.compile(lambda x: (x @ w).tanh().sum())

    def call(k, i):
        assert tl.equal(tl.autograd.grad(compiled(given[k]), w)[0], wanted[k])

    together(call)


def test_backward_into_a_module_that_all_share():
    module = nn.Linear(3, 2)
    compiled = tl.compile(module)

    def call(k, i):
        compiled(tl.ones(1, 3)).sum().backward()

    together(call)
    assert module.bias.grad.tolist() == [4.0 * CALLS] * 2


def test_steps_with_optimisers_that_each_thread_makes():
    def call(k, i):
        w = tl.zeros(3, requires_grad=True)
        optimizer = tl.optim.SGD([w], lr=0.1)

        @tl.compile
        def step(x):
            optimizer.zero_grad()
            ((w * x - 1) ** 2).sum().backward()
            optimizer.step()

        for _ in range(3):
            step(tl.ones(3))
        assert tl.allclose(w, tl.full((3,), 1 - 0.8**3))

    together(call)


def test_branches_and_loops():
    branch = tl.compile(lambda x: tl.cond(x.sum() > 0, lambda: x * 2, lambda: x - 1))
    loop = tl.compile(lambda x: tl.while_loop(
        lambda n, a: n < 3, lambda n, a: (n + 1, a * 1.5), (tl.tensor(0), x))[1])
    given = [tl.full((k + 1,), (-1.0) ** k) for k in range(4)]

    def call(k, i):
        x = given[k]
        assert tl.equal(branch(x), x * 2 if k % 2 == 0 else x - 1)
        assert tl.equal(loop(x), x * 1.5 * 1.5 * 1.5)

    together(call)


def test_a_new_function_while_others_are_called():
    made = [tl.compile(lambda x: x * 2)]

    def call(k, i):
        if i % 10 == k:
            made[0] = tl.compile(lambda x: x * 2)
        assert made[0](tl.ones(2)).tolist() == [2.0, 2.0]

    together(call)


def test_garbage_is_collected_after_captures_that_overlapped():
    assert gc.isenabled()
    together(lambda k, i: tl.compile(lambda x: x * 2 + i)(tl.ones(2)))
    assert gc.isenabled()
