"""Random programs against finite differences, and forward against reverse mode on them."""

from contextlib import contextmanager
from math import isfinite

import pytest
from hypothesis import assume, given
from program_steps import CUTS, HOOKS
from programs import DIRECTIONS, LEAVES, Machine, Step, programs, weighted_sum

import tensorlib as tl
from tensorlib import func
from tensorlib.testing import assert_close

POINT = tuple(tl.tensor(values, dtype=tl.float64) for values in LEAVES)
ALONG = tuple(tl.tensor(values, dtype=tl.float64) for values in DIRECTIONS)
ACROSS = tuple(x.cos() for x in ALONG)


def running(program):
    """The program as a function of its leaves: a weighted sum of all that it made."""
    def function(*leaves):
        machine = Machine(tl, leaves)
        machine.run(program)
        return weighted_sum(machine)
    return function


def slope(function, h=1e-5):
    """The derivative of `function` along the directions, by a difference of order four."""
    def at(step):
        leaves = [(x + step * v).requires_grad_() for x, v in zip(POINT, ALONG)]
        return function(*leaves).item()
    return (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)


@contextmanager
def overwritten_values_refused():
    """A program that wrote over a value which its gradient needs was refused: nothing to check."""
    try:
        yield
    except RuntimeError as error:
        assume("modified by an inplace operation" not in str(error))
        raise


def dot(gradients, directions):
    return sum((g * v).sum().item() for g, v in zip(gradients, directions) if g is not None)


@given(programs(without=HOOKS | CUTS))
@overwritten_values_refused()
def test_gradients_equal_finite_differences(program):
    function = running(program)
    leaves = [x.clone().requires_grad_() for x in POINT]
    out = function(*leaves)
    assume(isfinite(out.item()))                    # no mean of nothing
    found = tl.autograd.grad(out, leaves, retain_graph=True, allow_unused=True)
    assert dot(found, ALONG) == pytest.approx(slope(function), rel=1e-6, abs=1e-6)
    out.backward()
    for leaf, g in zip(leaves, found):
        assert_close(leaf.grad, g) if g is not None else None


@given(programs(without=HOOKS))
@overwritten_values_refused()
def test_both_modes_agree(program):
    function = running(program)
    out, moved = func.jvp(function, POINT, ALONG)
    again, pull = func.vjp(function, *POINT)
    assert_close(out, again, equal_nan=True)
    by_x, by_y = pull(tl.ones((), dtype=tl.float64))
    assert moved.item() == pytest.approx(
        dot((by_x, by_y), ALONG), rel=1e-8, abs=1e-9, nan_ok=True)
    leaves = [x.clone().requires_grad_() for x in POINT]
    found = tl.autograd.grad(function(*leaves), leaves, materialize_grads=True)
    assert_close(found[0], by_x, equal_nan=True)
    assert_close(found[1], by_y, equal_nan=True)


@given(programs(max_steps=7, without=HOOKS))
@overwritten_values_refused()
def test_second_derivatives_agree(program):
    function = running(program)
    _, forward = func.hvp(function, POINT, ALONG)
    _, reverse = func.vhp(function, POINT, ALONG)
    if not any(step.name in CUTS for step in program):        # else the Hessian is not symmetric
        for a, b in zip(forward, reverse):
            assert_close(a, b, rtol=1e-8, atol=1e-9, equal_nan=True)

    def along(x, y):
        return func.jvp(function, (x, y), ALONG)[1]

    _, twice = func.jvp(along, POINT, ACROSS)
    assert twice.item() == pytest.approx(
        dot(func.grad(along, (0, 1))(*POINT), ACROSS), rel=1e-8, abs=1e-8, nan_ok=True)


def test_what_a_step_refuses_leaves_no_trace():
    """Steps that write into leaves are refused; the rest of the program is as it would be."""
    rest = [Step("sin", 0, 0, 0.5), Step("mul_", 2, 1, 0.5)]
    refused = [Step("zero_", 0, 0, 0.5), Step("assign_row", 1, 0, 0.5)]
    machine = Machine(tl, [x.clone().requires_grad_() for x in POINT])
    machine.run([*refused, *rest])
    assert [name for _, name, _ in machine.refused] == ["zero_", "assign_row"]
    assert_close(running([*refused, *rest])(*machine.leaves), running(rest)(*machine.leaves))
