"""The functional transforms on every differentiable operation of the registry."""

import numpy as np
import pytest
from catalogue import operations

import tensorlib as tl
from tensorlib import func
from tensorlib._core.base.dtypes import has_gradients
from tensorlib.testing import assert_close, checks
from tensorlib.testing.catalogue import (
    differentiable,
    differentiable_samples,
    outputs,
    values,
)
from tensorlib.testing.checks import random_like


def floating(function):
    """The function with those outputs alone that have gradients, as a tuple."""
    return lambda *inputs: tuple(
        out for out in outputs(function(*inputs)) if has_gradients(out.dtype))


def in_pairs(function, primals):
    """The function and its inputs with pairs of real numbers in the place of complex ones."""
    kinds = [x.is_complex() for x in primals]

    def of_pairs(*inputs):
        results = function(*[tl.view_as_complex(x) if kind else x
                             for kind, x in zip(kinds, inputs)])
        return tuple(tl.view_as_real(out) if out.is_complex() else out for out in results)
    return of_pairs, tuple(tl.view_as_real(x) if x.is_complex() else x for x in primals)


def inner(xs, ys):
    return sum(checks.inner(x, y) for x, y in zip(xs, ys, strict=True))


@operations("tangent", differentiable)
def test_forward_and_reverse_mode_are_transposed(op):
    """<u, J v> = <J' u, v>, and J v is a finite difference."""
    for function, wanted in differentiable_samples(op):
        function = floating(function)
        primals = tuple(x.detach() for x in wanted)
        tangents = tuple(random_like(x, i) for i, x in enumerate(primals))
        out, moved = func.jvp(function, primals, tangents)
        again, pull = func.vjp(function, *primals)
        us = tuple(random_like(x, 7 + i) for i, x in enumerate(out))
        pulled = pull(us if len(us) != 1 else (us[0],))
        assert inner(us, moved) == pytest.approx(inner(pulled, tangents), rel=1e-9, abs=1e-9)
        ahead, behind = (function(*[x + step * t for x, t in zip(primals, tangents)])
                         for step in (1e-6, -1e-6))
        for a, b, c, x, y, t in zip(ahead, behind, out, again, moved, moved):
            assert_close(c, x, equal_nan=True)
            assert t.shape == c.shape and t.dtype == c.dtype
            assert not (c.requires_grad or x.requires_grad or t.requires_grad)
            after, before = values(a), values(b)
            slope = np.subtract(after, before, where=after != before, out=np.zeros_like(after))
            assert_close(values(y), slope / 2e-6, rtol=1e-4, atol=1e-6)


@operations("tangent", differentiable)
def test_jacobians_agree_in_both_modes(op):
    for function, wanted in differentiable_samples(op, largest=12):
        function, primals = in_pairs(floating(function), [x.detach() for x in wanted])
        places = tuple(range(len(primals)))
        by_rows = func.jacrev(function, places)(*primals)
        by_columns = func.jacfwd(function, places)(*primals)
        for rows, columns in zip(by_rows, by_columns, strict=True):
            for a, b in zip(rows, columns, strict=True):
                assert_close(a, b, rtol=1e-9, atol=1e-9)


@operations("tangent", differentiable)
def test_a_tangent_is_differentiated_by_both_modes(op):
    """Forward over forward and reverse over forward mode give one second derivative."""
    for function, wanted in differentiable_samples(op, largest=12):
        function = floating(function)
        primals = tuple(x.detach() for x in wanted)
        tangents = tuple(random_like(x, i) for i, x in enumerate(primals))
        second = tuple(random_like(x, 20 + i) for i, x in enumerate(primals))

        def moved(*xs):
            return func.jvp(function, xs, tangents)[1]

        out, twice = func.jvp(moved, primals, second)
        _, pull = func.vjp(moved, *primals)
        us = tuple(random_like(x, 7 + i) for i, x in enumerate(out))
        pulled = pull(us if len(us) != 1 else (us[0],))
        assert inner(us, twice) == pytest.approx(inner(pulled, second), rel=1e-8, abs=1e-8)


@operations("tangent", differentiable)
def test_transforms_leave_their_inputs_alone(op):
    function, wanted = differentiable_samples(op)[0]
    before = [values(x).copy() for x in wanted]
    function, primals = in_pairs(floating(function), [x.detach() for x in wanted])
    func.jacfwd(function, tuple(range(len(primals))))(*primals)
    for x, old in zip(wanted, before, strict=True):
        assert (values(x) == old).all() and x.grad is None
    assert not any(x.requires_grad for x in primals)
