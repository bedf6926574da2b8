"""Derivatives of every registered operation, to the third order and in forward mode."""

import numpy as np
import pytest
from catalogue import (
    Sample, call, differentiable, differentiable_samples, function_of, leaves, operations,
    outputs, prepared, samples, smooth, values,
)

import tensorlib as tl
from tensorlib._core.op import registry
from tensorlib.autograd.tangent import jvp_of
from tensorlib.testing import assert_close, gradcheck, gradgradcheck, tolerance

inf, nan = float("inf"), float("nan")


def random_like(x, seed=0):
    rng = np.random.default_rng(seed)
    return tl.tensor(rng.uniform(-1, 1, tuple(x.shape))).to(x.dtype)


def gradients(op, tensors, wanted, gs, create_graph=False):
    outs = [out for out in outputs(call(op, tensors)) if out.requires_grad]
    return tl.autograd.grad(outs, wanted, gs, create_graph=create_graph, allow_unused=True)


# ---- reverse mode against finite differences -----------------------------------------------------

@operations("gradient", differentiable)
def test_first_derivatives(op):
    for function, wanted in differentiable_samples(op):
        assert gradcheck(function, wanted, rtol=1e-6, atol=1e-7)


@operations("gradgradient", differentiable)
def test_second_derivatives(op):
    for function, wanted in differentiable_samples(op):
        assert gradgradcheck(function, wanted, rtol=1e-6, atol=1e-6)


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


# ---- the two ways a derivative is evaluated ------------------------------------------------------

@operations("recorded", smooth)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_tile_program_equals_the_formula_on_tensors(op, dtype):
    """An ordinary sweep runs what was traced from the formula, or a fused loop in its place."""
    sample = max(samples(op), key=lambda sample: sample.arrays[0].size)
    for shape in [(1300,), (7, 33)]:
        big = sample.map(lambda i, array: np.resize(array, shape))
        tensors, wanted = leaves(op, big, dtype)
        g = random_like(wanted[0])
        swept = gradients(op, tensors, wanted, [g])
        recorded = gradients(op, tensors, wanted, [g], create_graph=True)
        for a, b in zip(swept, recorded):
            assert_close(a, b, **tolerance(dtype, "gradient"))


def at_edges(op, dtype):
    """A sample of the operation at all pairs of its edges, and 1 more than once."""
    n = len(op.arguments) - len(op.boolean_inputs)
    edges = np.array(np.meshgrid(*[op.testing["edges"]] * n)).reshape(n, -1)
    args = list(edges)
    for place in op.boolean_inputs:
        args.insert(place, np.arange(edges.shape[1]) % 2 == 0)
    return leaves(op, Sample(tuple(args), {}), dtype)


@operations("recorded", smooth)
def test_a_gradient_of_exactly_zero_stays_zero(op):
    """Also where the derivative is infinite or NaN, whichever way it is computed."""
    for dtype in ("float32", "float64"):
        tensors, wanted = at_edges(op, dtype)
        for create_graph in (False, True):
            g = tl.zeros(wanted[0].shape, dtype=wanted[0].dtype)
            for grad in gradients(op, tensors, wanted, [g], create_graph):
                assert (values(grad) == 0).all()


@operations("recorded", smooth)
def test_at_the_edges_both_ways_agree(op):
    tensors, wanted = at_edges(op, "float64")
    g = tl.tensor(np.resize([1.0, -2.0, 0.5], tuple(wanted[0].shape)))
    for a, b in zip(gradients(op, tensors, wanted, [g]),
                    gradients(op, tensors, wanted, [g], create_graph=True)):
        assert_close(a, b, equal_nan=True)


# ---- lower precision -----------------------------------------------------------------------------

@operations("half_gradient", differentiable)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_gradients_in_lower_precision(op, dtype):
    """The inputs are rounded first, so that only what is computed differs."""
    for sample in samples(op):
        tensors, wanted = leaves(op, sample, dtype)
        precise = tensors.map(
            lambda i, x: x.detach().double().requires_grad_() if x.requires_grad else x)
        outs = [out for out in outputs(call(op, tensors)) if out.requires_grad]
        if not outs:
            continue
        gs = [random_like(out) for out in outs if out.requires_grad]
        low = gradients(op, tensors, wanted, gs)
        high = gradients(op, precise, [x for x in precise.arrays if x.requires_grad],
                         [g.double() for g in gs])
        for x, a, b in zip(wanted, low, high):
            if a is None:
                assert b is None or (values(b) == 0).all()
                continue
            assert a.dtype == x.dtype and a.shape == x.shape
            # a derivative such as 1 - out * out starts from an output that was rounded
            rtol = tolerance(dtype, "gradient")["rtol"]
            assert_close(a, b, check_dtype=False, rtol=rtol, atol=rtol)


# ---- forward mode --------------------------------------------------------------------------------

def has_tangent(op):
    return op.differentiable and op.linearity != "composite"


@operations("tangent", has_tangent)
def test_forward_mode(op):
    """The tangent equals a finite difference, and <u, J v> = <J' u, v>."""
    for sample in samples(op):
        tensors, wanted = leaves(op, sample)
        if not any(out.requires_grad for out in outputs(call(op, tensors))):
            continue
        args, kwargs = prepared(op, tensors)
        flat = args[0] if op.variadic else args[:len(op.arguments)]
        tangents = [random_like(x, i) if x.requires_grad else None for i, x in enumerate(flat)]
        outs, moved = jvp_of(op, args, kwargs, tangents)
        moving = [(out, t) for out, t in zip(outputs(outs), outputs(moved)) if out.requires_grad]
        check_differences(op, tensors, wanted, [t for t in tangents if t is not None], moving)
        us = [random_like(out, 9) for out, _ in moving]
        grads = tl.autograd.grad([out for out, _ in moving], wanted, us, allow_unused=True)
        forward = sum((values(u) * values(t)).sum() for u, (_, t) in zip(us, moving))
        reverse = sum((values(g) * values(t)).sum() for g, t in zip(
            grads, [t for t in tangents if t is not None]) if g is not None)
        assert forward == pytest.approx(reverse, rel=1e-9, abs=1e-9)


def check_differences(op, tensors, wanted, tangents, moving, eps=1e-6):
    function = function_of(op, tensors, wanted)
    with tl.no_grad():
        there, back = (
            outputs(function(*[x + step * t for x, t in zip(wanted, tangents)]))
            for step in (eps, -eps))
        ahead, behind = (
            [out for out in found if out.dtype.is_floating_point] for found in (there, back))
    for (out, tangent), after, before in zip(moving, ahead, behind, strict=True):
        assert tangent.shape == out.shape and tangent.dtype == out.dtype
        after, before = values(after), values(before)
        moved = np.subtract(after, before, where=after != before, out=np.zeros_like(after))
        assert_close(values(tangent), moved / (2 * eps), rtol=1e-4, atol=1e-6)


@operations("tangent", lambda op: has_tangent(op) and (len(op.arguments) > 1 or op.variadic))
def test_tangents_of_single_inputs_add_up(op):
    for sample in samples(op):
        tensors, _ = leaves(op, sample)
        args, kwargs = prepared(op, tensors)
        flat = args[0] if op.variadic else args[:len(op.arguments)]
        tangents = [random_like(x, i) if x.requires_grad else None for i, x in enumerate(flat)]
        out, together = jvp_of(op, args, kwargs, tangents)
        total = 0.0
        for place in range(len(flat)):
            alone = [t if i == place else None for i, t in enumerate(tangents)]
            _, moved = jvp_of(op, args, kwargs, alone)
            assert moved.shape == out.shape and moved.dtype == out.dtype
            total = total + values(moved)
        assert_close(total, values(together), rtol=1e-12, atol=1e-12)


@operations("tangent", has_tangent)
def test_where_no_input_moves_the_tangent_is_zero(op):
    tensors, _ = leaves(op, samples(op)[0])
    args, kwargs = prepared(op, tensors)
    flat = args[0] if op.variadic else args[:len(op.arguments)]
    outs, moved = jvp_of(op, args, kwargs, [None] * len(flat))
    for out, tangent in zip(outputs(outs), outputs(moved), strict=True):
        if tangent is not None:                  # places have none
            assert tangent.shape == out.shape and (values(tangent) == 0).all()


def test_forward_mode_says_what_it_cannot_do():
    x = tl.ones(2)
    with pytest.raises(RuntimeError, match="eq has no derivative"):
        jvp_of(registry["eq"], (x, x), {}, (x, x))
    with pytest.raises(NotImplementedError, match="stack is made of operations"):
        jvp_of(registry["stack"], ((x, x),), {}, (x, x))
    with pytest.raises(ValueError, match="2 tensors but 1 tangents"):
        jvp_of(registry["mul"], (x, x), {}, (x,))


def test_a_tangent_can_be_differentiated():
    """Forward over reverse: the second derivative of x^3 is 6 x."""
    x = tl.tensor([0.5, -2.0], dtype=tl.float64, requires_grad=True)
    cube = registry["pow"]
    _, tangent = jvp_of(cube, (x, tl.tensor(3.0, dtype=tl.float64)), {}, (tl.ones_like(x), None))
    (second,) = tl.autograd.grad(tangent, [x], tl.ones_like(x))
    assert_close(second, 6 * x.detach())
