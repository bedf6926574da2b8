"""Complex tangents, powers and quotients beside those in long double, by their error in length."""

import numpy as np
import pytest

import tensorlib as tl

rng = np.random.default_rng(3)


def numbers(n, spread=3.0):
    """Numbers of all angles, of lengths around 1."""
    return np.exp2(rng.uniform(-spread, spread, n)) * np.exp(1j * rng.uniform(-np.pi, np.pi, n))


NEAR_POLES = np.pi * (rng.integers(-9, 9, 500) + 0.5) + 1e-5 * numbers(500)
Z, W = np.concatenate((numbers(1000), 1 + 1e-6 * numbers(500))), 40 * numbers(1500, 1.0)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("name, numpys, arguments", [
    ("tan", np.tan, (np.concatenate((Z, NEAR_POLES)),)),
    ("tanh", np.tanh, (np.concatenate((8 * Z, 1j * NEAR_POLES)),)),
    ("pow", np.power, (Z, W)), ("div", np.divide, (Z, W)),
], ids=["tan", "tanh", "pow", "div"])
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
