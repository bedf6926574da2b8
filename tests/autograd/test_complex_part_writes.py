"""Writes in place into the parts of complex numbers, and into pairs that are seen as such: both the
numbers and what else shows them get the history of the write."""

import warnings

import numpy as np
import pytest
from cases import each

import tensorlib as tl

SHAPE = (3, 2)


def written_real(z, pairs, u):
    y = z * z
    y.real.mul_(u)
    return tl.view_as_real(y * y).sum()


def written_part_of_imag(z, pairs, u):
    y = z * 1
    y.imag[1:] = u[1:] * 2
    return (y.abs() ** 2).sum() + y.real.sum()


def other_views(z, pairs, u):
    y = z * z
    a, b, v = y.real, y.imag, tl.view_as_real(y)
    a += u
    b *= 2
    return (a * b).sum() + (v ** 2).sum() + (y * y).real.sum()


def pairs_as_numbers(z, pairs, u):
    y = pairs * 1
    k = tl.view_as_complex(y)
    k *= 1 + 2j
    return (y * y).sum() + (k * k).imag.sum()


def numbers_of_written_pairs(z, pairs, u):
    y = pairs * 2
    k = tl.view_as_complex(y)
    y[..., 0] = u
    return (k * k).real.sum() + (k.real * u).sum()


def view_of_a_part(z, pairs, u):
    y = (z * z).real.mT[..., :2]
    y += u[:2].mT
    return (y ** 2).sum()


def written_numbers(z, pairs, u):
    y = z * 1
    a = y.imag
    y *= 2 + 1j
    y[0] = 1j
    return (a * a * u).sum()


FUNCTIONS = [written_real, written_part_of_imag, other_views, pairs_as_numbers,
             numbers_of_written_pairs, view_of_a_part, written_numbers]


def inputs(seed=0):
    draw = np.random.default_rng(seed).standard_normal
    return [tl.tensor(x).requires_grad_() for x in (
        draw(SHAPE) + 1j * draw(SHAPE), draw((*SHAPE, 2)), draw(SHAPE))]


@each("function", FUNCTIONS)
def test_derivatives(function):
    assert tl.autograd.gradcheck(function, inputs())


@each("function", FUNCTIONS)
def test_captured(function):
    compiled = tl.compile(function)
    for seed in range(3):
        given, again = inputs(seed), inputs(seed)
        wanted = function(*given)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")     # what is not captured says so
            found = compiled(*again)
        assert found.item() == wanted.item()
        wanted.backward()
        found.backward()
        for x, y in zip(given, again):           # sums over several views may be in another order
            assert (x.grad is None) == (y.grad is None)
            assert x.grad is None or tl.allclose(x.grad, y.grad, rtol=1e-13, atol=1e-13)


def read_part(z, pairs):
    y = z * 2
    k = y.real
    y.mul_(1 + 2j)
    return k * 1


def read_numbers(z, pairs):
    y = z * 2
    y.imag.mul_(3)
    return y * 1


def read_pairs_as_numbers(z, pairs):
    y = pairs * 2
    k = tl.view_as_complex(y)
    y[..., 0] = 1.0
    return k * 1


def read_pairs(z, pairs):
    y = pairs * 2
    tl.view_as_complex(y)[1:].mul_(2j)
    return y * 1


@pytest.mark.parametrize("function", [read_part, read_numbers, read_pairs_as_numbers, read_pairs])
def test_captured_without_a_graph(function):
    z, pairs, _ = (x.detach() for x in inputs())
    compiled = tl.compile(function)
    for _ in range(3):
        assert tl.equal(compiled(z, pairs), function(z, pairs))
        z, pairs = z + 1, pairs + 1


def test_a_part_that_was_made_in_no_grad_mode():
    y = tl.ones(2, dtype=tl.complex64)
    with tl.no_grad():
        a = y.real
    y.requires_grad_()
    with pytest.raises(RuntimeError, match="no_grad mode|leaf Variable"):
        a.add_(1)
