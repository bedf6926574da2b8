"""Complex tangents, powers and quotients beside those in long double, by their error in length."""

import numpy as np
import pytest
from cases import each

import tensorlib as tl

rng = np.random.default_rng(3)


def numbers(n, spread=3.0):
    """Numbers of all angles, of lengths around 1."""
    return np.exp2(rng.uniform(-spread, spread, n)) * np.exp(1j * rng.uniform(-np.pi, np.pi, n))


NEAR_POLES = np.pi * (rng.integers(-9, 9, 500) + 0.5) + 1e-5 * numbers(500)
Z, W = np.concatenate((numbers(1000), 1 + 1e-6 * numbers(500))), 40 * numbers(1500, 1.0)


@each("dtype", [np.complex64, np.complex128])
@each("name, numpys, arguments", [
    ("tan", np.tan, (np.concatenate((Z, NEAR_POLES)),)),
    ("tanh", np.tanh, (np.concatenate((8 * Z, 1j * NEAR_POLES)),)),
    ("pow", np.power, (Z, W)), ("div", np.divide, (Z, W)),
    ("sqrt", np.sqrt, (np.concatenate((Z, numbers(500, 90.0))),)), ("abs", np.abs, (Z,)),
    ("reciprocal", lambda z: 1 / z, (Z,)),
    ("pow", np.power, (Z, rng.choice([-3, -2, -1, 2, 3, 4, 0.5], len(Z)) + 0j)),
], ids=["tan", "tanh", "pow", "div", "sqrt", "abs", "reciprocal", "whole powers"])
def test_errors_stay_within_4_units_of_the_last_place(name, numpys, arguments, dtype):
    if np.finfo(np.longdouble).nmant < 63:
        pytest.skip("long double is no wider than double here")
    arguments = [x.astype(dtype) for x in arguments]
    exact = numpys(*(x.astype(np.clongdouble) for x in arguments))
    size = np.abs(exact)
    found = getattr(tl, name)(*map(tl.from_numpy, arguments)).numpy()
    kept = (size > np.finfo(dtype).tiny) & (size < np.finfo(dtype).max)
    units = np.ldexp(np.longdouble(1), np.frexp(size)[1] - np.finfo(dtype).nmant - 1)
    assert kept.mean() > 0.5 and (np.abs(found - exact) / units)[kept].max() <= 4


def test_tangents_of_large_infinite_and_zero_parts():
    """As C's: 1 and a zero far out, signed zeros at 0, poles finite."""
    inf = float("inf")
    z = tl.tensor([complex(30, 2), complex(-1e300, -1), complex(inf, 1), complex(-0.0, 0.0),
                   complex(0, np.pi / 2), complex(1, inf)], dtype=tl.complex128)
    found = z.tanh().numpy()
    with np.errstate(all="ignore"):
        wanted = np.tanh(z.numpy())
    np.testing.assert_allclose(found, wanted, rtol=1e-14)
    assert (np.signbit(found.real) == np.signbit(wanted.real))[:4].all()
    assert (np.signbit(found.imag) == np.signbit(wanted.imag))[:4].all()
    np.testing.assert_allclose((1j * z[:5]).tan().numpy(), 1j * found[:5], rtol=1e-14)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_a_number_has_the_same_power_wherever_it_lies(dtype):
    z = Z.astype(dtype)
    z[::50] = [0, np.inf, complex(np.nan, 1), 1e30, 1e-30, 1e38j] * (len(z) // 300)
    x = tl.from_numpy(z)
    assert (x ** 2).isclose(x * x, rtol=0, atol=0, equal_nan=True).all()
    for exponent in (-100, -3, -2, -1, 0, 0.5, 2, 3, 5, 64, 2.5):
        power = x ** exponent
        exponents = tl.full_like(x, exponent)
        same = [x ** exponents, tl.stack([x, x], 1)[:, 1] ** exponent]
        exponents[::3] = 1.25
        mixed = x ** exponents
        mixed[::3] = power[::3]
        for other in (*same, mixed):
            assert tl.view_as_real(other).isclose(
                tl.view_as_real(power), rtol=0, atol=0, equal_nan=True).all(), exponent


def test_products_of_rows():
    for dtype, rtol in ((np.complex64, 1e-5), (np.complex128, 1e-13)):
        for n in (0, 1, 2, 8, 15, 16, 17, 32, 33, 200):
            z = np.exp(0.1 * numbers(3 * n)).reshape(3, n).astype(dtype)
            found = tl.from_numpy(z).prod(1).numpy()
            assert np.allclose(found, z.astype(np.complex128).prod(1), rtol=rtol)
            assert np.allclose(tl.from_numpy(z.T.copy()).prod(0).numpy(), found, rtol=rtol)


def test_zeros_have_no_sign_where_the_standard_gives_none():
    for re in (0.0, -0.0):
        assert not tl.view_as_real(tl.sgn(tl.tensor(complex(re, -0.0)))).signbit().any()
        assert not tl.view_as_real(tl.expm1(tl.tensor(complex(re, 0.0)))).signbit().any()


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_comparisons_look_at_both_parts(dtype):
    parts = 0.0, -0.0, 1.0, np.nan, np.inf
    every = np.array([complex(re, im) for re in parts for im in parts], dtype)
    a, b = (np.ascontiguousarray(part).ravel() for part in np.meshgrid(every, every))
    for name, wanted in {"eq": np.equal, "ne": np.not_equal, "logical_and": np.logical_and}.items():
        found = getattr(tl, name)(tl.from_numpy(a), tl.from_numpy(b))
        assert np.array_equal(found.numpy(), wanted(a, b)), name
    assert np.array_equal(tl.logical_not(tl.from_numpy(every)).numpy(), np.logical_not(every))
