"""Gradients that meet at a tensor are added in the order of the eager sweep, to the bit."""

from contextlib import nullcontext

import pytest
from beside_eager import seen
from cases import each

import tensorlib as tl
from tensorlib import nn

FUNCTIONS = {
    "products": lambda x: x.sin() * x.exp() + x.cos(),
    "cell": lambda x: ((x @ x.t()).tanh() @ x).tanh() @ x.t(),
    "attention": lambda x: nn.functional.scaled_dot_product_attention(x[None], x[None], x[None]),
    "parts": lambda x: x[0] * x[1] + x[:, 0].sum() * x[2],
    "written": lambda x: (lambda y: (y.add_(x), y[0].mul_(2), y * x)[2])(x * 2),
    "branch": lambda x: tl.cond(x.sum() > 0, lambda: x.sin() * x.cos(), lambda: x * x) + x.exp(),
    "loop": lambda x: tl.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x + y.sin()),
                                    (tl.tensor(0), x))[1] + x * x,
    "scan": lambda x: tl.scan(lambda c, r: (c * r.exp() + c, c * c), x[0] * 2, x)[1] * x,
}


@each("name", FUNCTIONS)
def test_a_tensor_that_is_used_in_a_compiled_function_and_around_it(name):
    function = FUNCTIONS[name]
    compiled = tl.compile(function, fullgraph=True)
    for k in range(4):
        found = []
        for f in (function, compiled):
            leaf = tl.randn(3, 3, generator=tl.Generator().manual_seed(k)).requires_grad_()
            x = leaf if k % 2 else leaf * 1.5
            y = f(x)
            (((y * y).sum() * x).exp() * x + f(x).sum() * x / 3).sum().backward()
            found.append(seen(leaf.grad))
        assert found[0] == found[1], name


@each("name", FUNCTIONS)
def test_gradients_of_gradients_through_a_compiled_call_have_the_bits_of_the_eager_ones(name):
    function = FUNCTIONS[name]
    compiled = tl.compile(function, fullgraph=True)
    for k in range(3):
        found = []
        for f in (function, compiled):
            x = (tl.randn(3, 3, generator=tl.Generator().manual_seed(k)) / 2).requires_grad_()
            y = f(x)
            loss = ((y * y).sum() * x).sum() + (f(x * 2) * x.exp()).sum()
            tl.autograd.grad(loss, x, retain_graph=True)
            first, = tl.autograd.grad(loss, x, create_graph=True)
            second, = tl.autograd.grad((first * first).sum() + y.sum(), x, create_graph=True)
            third, = tl.autograd.grad((second.sin() * x).sum(), x)
            found.append([seen(g) for g in (first, second, third)])
        assert found[0] == found[1], name


def test_hooks_on_what_a_compiled_call_gave_are_called_by_sweeps_with_a_graph():
    f = tl.compile(lambda x: x.sin() * x)
    for _ in range(3):
        found = []
        for function in (lambda x: x.sin() * x, f):
            x = tl.linspace(0, 1, 5).requires_grad_()
            y = function(x)
            handle = y.register_hook(lambda g: g * 3)
            y.retain_grad()
            first, = tl.autograd.grad(y.exp().sum(), x, create_graph=True)
            handle.remove()
            second, = tl.autograd.grad(first.sum() + (y * y).sum(), x)
            found.append([seen(first), seen(second), y.grad is None])
        assert found[0] == found[1]


def test_a_call_that_a_sweep_with_a_graph_does_not_run_may_have_written_arguments():
    f = tl.compile(lambda x, y: (x * y).sin())
    for _ in range(3):
        x, y = tl.ones(3, requires_grad=True), tl.ones(3)
        out = f(x, y)
        y.add_(1)
        z = tl.ones(3, requires_grad=True)
        assert tl.autograd.grad((out.detach() * z * z + out).sum(), z, create_graph=True)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            tl.autograd.grad(out.sum(), x, create_graph=True)


def test_a_part_that_uses_a_weight_several_times_is_replayed():
    w = tl.linspace(0.1, 0.9, 50).requires_grad_()

    def step(x):
        y = (x * w).sin() * w
        print(end="")
        return (y * w).exp() * w

    compiled = tl.compile(step)
    for k in range(3):
        found = []
        for f in (step, compiled):
            w.grad = None
            (f(tl.full((50,), k / 3)) * w).sum().backward()
            found.append(seen(w.grad))
        assert found[0] == found[1]
    parts = [part for way in compiled._entries for part in way.parts.parts]
    assert parts and all(way.replay for part in parts for way in part._entries)


@pytest.mark.parametrize("inside", [False, True])
def test_what_only_one_branch_uses_has_no_gradient_where_the_other_is_taken(inside):
    v, w = (tl.ones(2, requires_grad=True) for _ in range(2))

    def branches(x):
        return tl.cond(x.sum() > 0, lambda: x * v, lambda: x * w).sum()

    def step(x):
        v.grad = w.grad = None
        branches(x).backward()

    f = tl.compile(step if inside else branches)
    for k in range(3):
        with pytest.warns(RuntimeWarning, match="whether .* has a gradient depends") if (
                k == 0) else nullcontext():
            if inside:
                f(tl.ones(2))
            else:
                v.grad = w.grad = None
                f(tl.ones(2)).backward()
        assert v.grad.tolist() == [1.0, 1.0] and w.grad is None


def test_a_loop_that_takes_no_step_gives_no_gradient():
    w = tl.full((2,), 2.0, requires_grad=True)
    f = tl.compile(lambda x, n: tl.while_loop(
        lambda i, y: i < n, lambda i, y: (i + 1, y * w), (tl.tensor(0), x))[1], fullgraph=True)
    for n in (2, 3, 0, 1, 0):
        w.grad, x = None, tl.ones(2, requires_grad=True)
        f(x, tl.tensor(n)).sum().backward()
        assert (w.grad is None) == (n == 0) and x.grad.tolist() == [2.0 ** n] * 2


def test_gradients_of_parts_of_complex_numbers_are_conjugated():
    for part in (lambda x: x.imag * 2, lambda x: x.real, lambda x: (x * x.conj()).real + x.imag,
                 lambda x: tl.view_as_real(x)[..., 1], lambda x: x.abs(), lambda x: x.angle(),
                 lambda x: tl.complex(x.imag, x.real).imag):
        compiled = tl.compile(part, fullgraph=True)
        for k in range(3):
            x = tl.randn(3, dtype=tl.complex64, generator=tl.Generator().manual_seed(k))
            x.requires_grad_()
            wanted, found = (tl.autograd.grad(f(x).sum(), x)[0] for f in (part, compiled))
            assert seen(wanted) == seen(found)


def test_whether_two_arguments_are_one_list_is_not_taken_from_the_captured_call():
    f = tl.compile(lambda p, q, x: x if p is q else -x)
    one, x = [1.0], tl.ones(1)
    with pytest.warns(RuntimeWarning, match="is the one that is an argument"):
        assert [f(one, y, x).item() for y in (one, [1.0], one, [1.0])] == [1, -1, 1, -1]


@pytest.mark.parametrize("dtype", [tl.bfloat16, tl.float16, tl.float32])
def test_signs_of_nan_and_zero_are_those_of_the_eager_call(dtype):
    x = tl.tensor([float("nan"), 0.0, -0.0, 1.0, float("-inf")]).to(dtype)
    for f in (lambda x: -x, lambda x: -(-x), lambda x: (-x).clone(), lambda x: (-x).relu(),
              lambda x: (-x).float(), lambda x: abs(-x) * 2, lambda x: -x + x):
        compiled = tl.compile(f, fullgraph=True)
        for _ in range(3):
            wanted, found = (y.view(tl.int16 if y.dtype is not tl.float32 else tl.int32).tolist()
                             for y in (f(x), compiled(x)))
            assert wanted == found


def test_a_search_for_anomalies_names_the_operation():
    f = tl.compile(lambda x: (x - x).sqrt() / (x - x))
    for _ in range(3):
        f(tl.ones(3, requires_grad=True))
    with tl.autograd.set_detect_anomaly(True), pytest.warns(UserWarning, match="DivBackward0"):
        loss = f(tl.ones(3, requires_grad=True)).sum()
        with pytest.raises(RuntimeError, match="nan"):
            loss.backward()
