"""Derivatives of every registered operation, to the third order and in forward mode."""

from itertools import compress

import numpy as np
import pytest
from catalogue import operations

import tensorlib as tl
from tensorlib._core.graph.op import registry
from tensorlib.autograd.jvp import jvp_of
from tensorlib.testing import assert_close, checks, gradgradcheck
from tensorlib.testing.catalogue import (
    differentiable, differentiable_samples, dtypes_taken, leaves, outputs, precise_dtypes, prepared,
    samples, smooth, tensors_among, values,
)
from tensorlib.testing.checks import at_edges, gradients, random_like

# ---- reverse mode against finite differences -----------------------------------------------------

@operations("gradient", differentiable)
def test_first_derivatives(op):
    checks.check_gradient(op)


@operations("gradgradient", differentiable)
def test_second_derivatives(op):
    checks.check_second_gradient(op)


@operations("third", smooth)
def test_third_derivatives(op):
    for function, wanted in differentiable_samples(op, largest=4):
        outer = [random_like(x, 1) for x in wanted]

        def slope(*inputs):
            out = function(*inputs)
            grads = tl.autograd.grad(out, inputs, random_like(out), create_graph=True)
            return sum((grad * v).reshape(-1).sum_to_size(1) for grad, v in zip(grads, outer))

        if slope(*wanted).requires_grad:
            assert gradgradcheck(slope, wanted, rtol=1e-5, atol=1e-5)
        else:                                    # constant around here, so that it is not recorded
            near = [(x * (1 + 1e-6)).detach().requires_grad_() for x in wanted]
            assert_close(slope(*near), slope(*wanted), rtol=1e-12, atol=1e-12)


# ---- the two ways a derivative is evaluated ------------------------------------------------------

@operations("recorded", smooth)
@pytest.mark.parametrize("width", [0, 1], ids=["single", "double"])
def test_the_tile_program_equals_the_formula_on_tensors(op, width):
    """An ordinary sweep runs what was traced from the formula, or a fused loop in its place."""
    checks.check_formula(op, checks.in_reals(dtypes_taken(op))[width])


@operations("recorded", smooth)
def test_a_gradient_of_exactly_zero_stays_zero(op):
    """Also where the derivative is infinite or NaN, whichever way it is computed."""
    checks.check_strong_zero(op)


@operations("recorded", smooth)
def test_at_the_edges_both_ways_agree(op):
    tensors, wanted = at_edges(op, precise_dtypes(op)[0])
    g = tl.tensor(np.resize([1.0, -2.0, 0.5], tuple(wanted[0].shape))).to(wanted[0].dtype)
    for a, b in zip(gradients(op, tensors, wanted, [g]),
                    gradients(op, tensors, wanted, [g], create_graph=True)):
        assert_close(a, b, equal_nan=True)


# ---- lower precision -----------------------------------------------------------------------------

@operations("half_gradient", differentiable)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_gradients_in_lower_precision(op, dtype):
    """The inputs are rounded first, so that only what is computed differs."""
    if dtype in dtypes_taken(op):
        checks.check_lower_precision(op, dtype)


# ---- forward mode --------------------------------------------------------------------------------

@operations("tangent", lambda op: op.differentiable)
def test_forward_mode(op):
    """The tangent equals a finite difference, and <u, J v> = <J' u, v>."""
    checks.check_tangent(op)


@operations("tangent", lambda op: op.differentiable and (len(op.arguments) > 1 or op.variadic))
def test_tangents_of_single_inputs_add_up(op):
    for sample in samples(op):
        tensors, _ = leaves(op, sample)
        args, kwargs = prepared(op, tensors)
        flat = tensors_among(op, args)
        tangents = [random_like(x, i) if x.requires_grad else None for i, x in enumerate(flat)]
        out, together = jvp_of(op, args, kwargs, tangents)
        real = [x.dtype.is_floating_point for x in outputs(out)]      # places have no tangent
        totals = [0.0] * sum(real)
        for place in range(len(flat)):
            alone = [t if i == place else None for i, t in enumerate(tangents)]
            _, moved = jvp_of(op, args, kwargs, alone)
            moved = list(compress(outputs(moved), real))
            for one, like in zip(moved, compress(outputs(out), real), strict=True):
                assert one.shape == like.shape and one.dtype == like.dtype
            totals = [total + values(one) for total, one in zip(totals, moved)]
        for total, one in zip(totals, compress(outputs(together), real), strict=True):
            assert_close(total, values(one), rtol=1e-12, atol=1e-12)


@operations("tangent", lambda op: op.differentiable)
def test_where_no_input_moves_the_tangent_is_zero(op):
    tensors, _ = leaves(op, samples(op)[0])
    args, kwargs = prepared(op, tensors)
    flat = tensors_among(op, args)
    outs, moved = jvp_of(op, args, kwargs, [None] * len(flat))
    for out, tangent in zip(outputs(outs), outputs(moved), strict=True):
        if tangent is not None:                  # places have none
            assert tangent.shape == out.shape and (values(tangent) == 0).all()


def test_forward_mode_says_what_it_cannot_do():
    x = tl.ones(2)
    with pytest.raises(RuntimeError, match="eq has no derivative"):
        jvp_of(registry["eq"], (x, x), {}, (x, x))
    with pytest.raises(ValueError, match="2 tensors but 1 tangents"):
        jvp_of(registry["mul"], (x, x), {}, (x,))


def test_a_tangent_can_be_differentiated():
    """Forward over reverse: the second derivative of x^3 is 6 x."""
    x = tl.tensor([0.5, -2.0], dtype=tl.float64, requires_grad=True)
    cube = registry["pow"]
    _, tangent = jvp_of(cube, (x, tl.tensor(3.0, dtype=tl.float64)), {}, (tl.ones_like(x), None))
    (second,) = tl.autograd.grad(tangent, [x], tl.ones_like(x))
    assert_close(second, 6 * x.detach())


@pytest.mark.parametrize("dtype", ["int64", "float32"])
def test_a_tangent_is_as_exact_as_its_dtype_beside_others(dtype):
    """Also 1 / other, where `other` is of integers or of another floating dtype."""
    x = tl.tensor([1.0, 2.0, 4.0], dtype=tl.float64, requires_grad=True)
    other = tl.tensor([3, 7, 9], dtype=getattr(tl, dtype))
    direction = tl.tensor([0.3, 0.7, 0.11], dtype=tl.float64)
    _, moved = jvp_of(registry["div"], (x, other), {}, (direction, None))
    assert_close(moved, direction / other.double(), rtol=1e-15, atol=0.0)
    slope, = tl.autograd.grad((x / other).sum(), [x], create_graph=True)
    assert_close(slope, 1 / other.double(), rtol=1e-15, atol=0.0)


# ---- writes into results -------------------------------------------------------------------------

@operations("gradient", differentiable)
def test_what_a_result_is_a_view_of_has_a_history(op):
    """A write into the result goes by way of that."""
    for function, wanted in differentiable_samples(op):
        for y in outputs(function(*wanted)):
            if isinstance(y, tl.Tensor) and y.grad_fn is not None and y._base is not None:
                assert y._base.requires_grad


@pytest.mark.parametrize("f", [
    lambda x: x.repeat(2, 1), lambda x: x.tile(2), lambda x: x[:1].repeat(3, 1)])
def test_a_write_into_a_part_of_a_result_keeps_its_gradient(f):
    x = tl.randn(3, 3, requires_grad=True)
    (wanted,) = tl.autograd.grad(f(x).sum(), x)
    y = f(x)
    y.view(-1)[:1].add_(1)
    (found,) = tl.autograd.grad(y.sum(), x)
    assert found.equal(wanted)
