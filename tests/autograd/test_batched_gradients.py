"""`grad(is_grads_batched=True)`: a gradient for each row of what the sweep begins with."""

import warnings

import pytest

import tensorlib as tl


def made():
    x = tl.linspace(-1, 1, 12, dtype=tl.float64).reshape(3, 4).requires_grad_()
    w = tl.linspace(0, 1, 8, dtype=tl.float64).reshape(4, 2).requires_grad_()
    return x, w, (x @ w).tanh()


def test_rows_are_those_of_single_sweeps():
    x, w, y = made()
    rows = tl.linspace(-2, 2, 30, dtype=tl.float64).reshape(5, 3, 2)
    found = tl.autograd.grad(y, (x, w), rows, retain_graph=True, is_grads_batched=True)
    assert [g.shape for g in found] == [(5, 3, 4), (5, 4, 2)]
    for i, row in enumerate(rows):
        for g, wanted in zip(found, tl.autograd.grad(y, (x, w), row, retain_graph=True)):
            assert tl.equal(g[i], wanted)


def test_a_jacobian_with_a_graph_and_an_input_that_is_not_used():
    x, w, _ = made()
    y = x[0] ** 3
    g, none = tl.autograd.grad(y, (x, w), tl.eye(4, dtype=tl.float64), create_graph=True,
                               allow_unused=True, is_grads_batched=True)
    assert none is None and tl.equal(g[:, 0].diagonal(), 3 * x[0] ** 2)
    assert tl.autograd.grad(g.sum(), x)[0][0].tolist() == (6 * x[0]).tolist()
    with pytest.raises(RuntimeError, match="not have been used"):
        tl.autograd.grad(x.sum(), w, tl.ones(2, dtype=tl.float64), is_grads_batched=True)


def test_the_graph_is_freed_after_the_last_row():
    x, _, y = made()
    tl.autograd.grad(y, x, tl.ones(2, 3, 2, dtype=tl.float64), is_grads_batched=True)
    with pytest.raises(RuntimeError, match="second time"):
        y.sum().backward()


def test_several_outputs():
    x, w, y = made()
    z = x.sum(1)
    a, b = tl.ones(2, 3, 2, dtype=tl.float64), tl.ones(2, 3, dtype=tl.float64)
    found, = tl.autograd.grad((y, z), x, (a, b), retain_graph=True, is_grads_batched=True)
    wanted, = tl.autograd.grad((y, z), x, (a[0], b[0]))
    assert tl.equal(found[1], wanted)
    for wrong in ((a, b[:1]), (a, tl.tensor(1.0)), None):
        with pytest.raises(RuntimeError, match="number of rows"):
            tl.autograd.grad((y, z), x, wrong, is_grads_batched=True)


def test_captured():
    def rows(x, g):
        x = x.detach().requires_grad_()
        return tl.autograd.grad(x ** 3, x, g, is_grads_batched=True)[0] * 2

    compiled = tl.compile(rows)
    for start in range(3):
        x, g = tl.arange(4.0) + start, tl.rand(3, 4)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")      # it may run in parts, and says so
            assert tl.equal(compiled(x, g), rows(x, g))
