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


# ---- grad under vmap -----------------------------------------------------------------------------

def examples(outputs, inputs, *rows, **options):
    """The gradients for each row of what a sweep begins with, by vmap."""
    return tl.vmap(lambda *row: tl.autograd.grad(
        outputs, inputs, row[0] if len(row) == 1 else row, **options))(*rows)


def test_under_vmap_a_gradient_may_be_an_example():
    x, w, y = made()
    rows = tl.linspace(-2, 2, 30, dtype=tl.float64).reshape(5, 3, 2)
    found = examples(y, (x, w), rows)
    for g, wanted in zip(found, tl.autograd.grad(y, (x, w), rows, is_grads_batched=True)):
        tl.testing.assert_close(g, wanted)


def test_under_vmap_gradients_may_be_examples_beside_others():
    x, w, y = made()
    z, rows = x.sum(), tl.ones(2, 3, 2)
    found, none = tl.vmap(lambda row: tl.autograd.grad(
        (y, z), (x, tl.ones(1, requires_grad=True)), [row, None], allow_unused=True))(rows)
    wanted, = tl.autograd.grad((y, z), x, (rows[0].double(), None))
    assert none is None and found.dtype is tl.float64
    tl.testing.assert_close(found, tl.stack([wanted, wanted]))


def test_under_vmap_gradients_can_be_differentiated_and_vmap_be_nested():
    x = tl.tensor([0.5, -1.0], dtype=tl.float64, requires_grad=True)
    y, rows = x**3, tl.eye(2, dtype=tl.float64)
    g, = tl.autograd.grad(y, x, tl.ones(2, dtype=tl.float64), create_graph=True)
    found, = examples(g, x, rows)
    tl.testing.assert_close(found.diagonal(), 6 * x.detach())
    found, = tl.vmap(lambda row: tl.vmap(lambda c: tl.autograd.grad(
        y, x, c * row, create_graph=True))(tl.tensor([1.0, 2.0])))(rows)
    tl.testing.assert_close(found[1, 1], tl.stack([0 * x[0], 6 * x[1] ** 2]))
    found.sum().backward()
    tl.testing.assert_close(x.grad, 18 * x.detach())


def test_under_vmap_rules_from_outside_see_each_gradient(monkeypatch):
    monkeypatch.setattr("tensorlib.autograd.batch.rules._warned", set())
    x = tl.ones(2, requires_grad=True)
    seen = []
    y = x * 2
    y.register_hook(lambda g: seen.append(g.tolist()))
    with pytest.warns(UserWarning, match="autograd.grad through an operation from outside"):
        found, = examples(y, x, tl.eye(2))
    assert seen == [[1.0, 0.0], [0.0, 1.0]] and found.tolist() == [[2.0, 0.0], [0.0, 2.0]]


@pytest.mark.parametrize("call, message", [
    (lambda x, y, g: tl.autograd.grad(y, x, g[0]), "gradients of shapes .*tensors of shapes"),
    (lambda x, y, g: tl.autograd.grad((y, y), x, [g]), "gradients of shapes .*tensors of shapes"),
    (lambda x, y, g: tl.autograd.grad((y, y), x, [g, None]), "only for scalar outputs"),
    (lambda x, y, g: tl.autograd.grad(g, x, g), "Tensors"),
    (lambda x, y, g: tl.autograd.grad(y.detach(), x, g), "does not require grad"),
])
def test_under_vmap_gradients_that_are_no_gradients(call, message):
    x, _, y = made()
    with pytest.raises((RuntimeError, TypeError), match=message):
        tl.vmap(lambda g: call(x, y, g))(tl.ones(2, 3, 2, dtype=tl.float64))


def test_under_vmap_in_a_capture_the_function_runs_eagerly():
    @tl.compile
    def jacobian(x):
        y = x**2
        return tl.vmap(lambda row: tl.autograd.grad(y, x, row)[0])(tl.eye(2))

    with pytest.warns(RuntimeWarning, match="autograd.grad of a batch of gradients can't be"):
        jacobian(tl.ones(2, requires_grad=True))
    for _ in range(2):
        assert jacobian(tl.ones(2, requires_grad=True)).tolist() == [[2.0, 0.0], [0.0, 2.0]]
