"""Graphs a million nodes deep or wide: built, swept and freed without recursion."""

import gc
import sys
import threading

import pytest
from process import resident_bytes

import tensorlib as tl
from tensorlib.testing import assert_close

DEPTH = 1_000_000
ENOUGH = 20_000             # for a recursion to overflow a stack of 128 KiB: 7 bytes a node


@pytest.fixture
def small_stack():
    """Runs a function in a thread whose stack a recursion over the graph would overflow."""

    def run(function):
        result = []
        previous = threading.stack_size(128 * 1024)
        try:
            thread = threading.Thread(target=lambda: result.append(function()))
            thread.start()
        finally:
            threading.stack_size(previous)
        thread.join()
        assert result, "the function raised in its thread"
        return result[0]

    return run


def chain(x, depth=DEPTH):
    for _ in range(depth):
        x = x * 1.0000001
    return x


def test_a_deep_chain_is_swept(small_stack):
    def work():
        x = tl.ones(1, dtype=tl.float64, requires_grad=True)
        chain(x).sum().backward()
        return x.grad

    assert_close(small_stack(work), [1.0000001**DEPTH], rtol=1e-9, atol=0.0)


def test_a_deep_chain_is_freed_without_a_sweep(small_stack):
    def work():
        y = chain(tl.ones(1, requires_grad=True))
        del y
        gc.collect()
        return True

    assert small_stack(work)


class Twice(tl.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.kept = x              # not saved, so that it holds the graph by an attribute
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


def hooked(x):
    y = x * 2
    x.register_hook(lambda g: y.detach() and None)
    return y


@pytest.mark.parametrize("step", [
    lambda x: x.tanh(),                             # saves its result
    lambda x: x * x,                                # and its input
    lambda x: x.view(1).expand(2)[:1],              # views
    lambda x: tl.stack([x, x])[0],                  # nodes of several edges
    lambda x: x.exp_(),                             # writes in place
    Twice.apply,
    hooked,
], ids=["result", "input", "view", "stack", "inplace", "function", "hook"])
def test_a_chain_of_any_kind_is_freed_on_a_small_stack(step, small_stack):
    def work():
        x = tl.ones(1, requires_grad=True) * 1
        for _ in range(ENOUGH):
            x = step(x)
        del x
        gc.collect()
        return True

    assert small_stack(work)


def test_a_chain_of_gradients_is_freed_on_a_small_stack(small_stack):
    def work():
        x = tl.ones(1)
        for _ in range(ENOUGH):
            y = tl.ones(1)
            y.grad = x
            x = y
        del x, y
        return True

    assert small_stack(work)


def test_a_gradient_that_someone_else_holds_keeps_its_own():
    x, g, second = tl.ones(1), tl.ones(1), tl.ones(1)
    x.grad, g.grad = g, second
    del x
    assert g.grad is second


def test_a_deep_chain_is_differentiated_twice(small_stack):
    def work():
        x = tl.ones((), dtype=tl.float64, requires_grad=True)
        y = x
        for _ in range(10_000):
            y = (y * y) ** 0.5
        (g,) = tl.autograd.grad(y, x, create_graph=True)
        (second,) = tl.autograd.grad(g, x)
        return g.detach(), second

    first, second = small_stack(work)
    assert_close(first, 1.0, rtol=1e-9, atol=0.0)
    assert_close(second, 0.0, rtol=0.0, atol=1e-6)


def test_a_wide_fan_in_is_summed():
    x = tl.ones(1, dtype=tl.float64, requires_grad=True)
    parts = [x * 2 for _ in range(100_000)]
    tl.cat(parts).sum().backward()
    assert_close(x.grad, [200_000.0])


def test_graphs_that_are_dropped_give_their_memory_back():
    x = tl.ones(1000, requires_grad=True)

    def steps(count):
        for _ in range(count):
            (x * x).tanh().sum().backward()

    steps(2_000)
    before = resident_bytes()
    steps(20_000)  # 20,000 graphs that stayed would hold 160 MB
    assert resident_bytes() - before < 20e6


def test_a_graph_is_freed_by_reference_counts_alone():
    """A cycle between a Tensor and its node would leave memory to the garbage collector."""
    gc.collect()
    gc.disable()
    try:
        x = tl.ones(2, requires_grad=True)
        y = (x * 2).exp()
        y.sum().backward()
        del y
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_nodes_do_not_share_pools_of_memory_with_tensors():
    x = tl.ones(2, requires_grad=True).tanh()
    blocks = [-(-sys.getsizeof(value) // 16) for value in (x.grad_fn, x)]    # as Python allocates
    assert blocks[0] < blocks[1]             # else tensors lie between nodes, and sweeps slow down
