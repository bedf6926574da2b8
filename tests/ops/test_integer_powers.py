"""Powers of integers wrap as NumPy's do, whatever the exponents and wherever the result goes."""

import numpy as np
import pytest
from cases import each

import tensorlib as tl

DTYPES = [np.uint8, np.int8, np.int16, np.int32, np.int64]


def drawn(dtype, least, most, n):
    return np.random.default_rng(n).integers(least, most, n, dtype=dtype, endpoint=True)


@pytest.mark.parametrize("dtype", DTYPES)
@each("n", [0, 1, 7, 255, 256, 257, 1000])
def test_powers_wrap(dtype, n):
    limits = np.iinfo(dtype)
    x = drawn(dtype, limits.min, limits.max, n)
    for exponents in (drawn(dtype, 0, limits.max, n), drawn(dtype, 0, 8, n)):
        expected = np.power(x, exponents)
        assert np.array_equal(tl.tensor(x) ** tl.tensor(exponents), expected)
        written = tl.tensor(exponents)
        tl.pow(tl.tensor(x), written, out=written)
        assert np.array_equal(written, expected)
    for number in (0, 1, 2, 3, 6, 100, limits.max):
        assert np.array_equal(tl.tensor(x) ** int(number), np.power(x, dtype(number)))
        assert np.array_equal(tl.tensor(x).pow_(int(number)), np.power(x, dtype(number)))


@pytest.mark.parametrize("dtype", DTYPES[1:])
def test_negative_exponents_are_refused(dtype):
    x = tl.tensor(np.arange(5, dtype=dtype))
    for exponent in (-1, tl.tensor(np.array([1, 2, -1, 3, 4], dtype=dtype))):
        with pytest.raises(RuntimeError, match="negative integer powers"):
            x ** exponent
    assert x.tolist() == [0, 1, 2, 3, 4]
