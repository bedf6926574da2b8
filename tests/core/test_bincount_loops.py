"""How often integers of each dtype occur, for few and for many counters."""

import numpy as np
import pytest
import tensorlib as tl
from cases import each


@each("dtype, most", [("uint8", 255), ("int8", 127), ("int16", 3000), ("int32", 3000),
                      ("int64", 3000), ("int64", 9), ("int32", 1023), ("int32", 1024),
                      ("uint16", 3000)])
def test_each_integer_is_counted(dtype, most):
    for n in (0, 1, 2, 7, 1000, 300_001):
        x = np.random.default_rng(n).integers(0, most, n, endpoint=True).astype(dtype)
        for y in (tl.tensor(x), tl.tensor(np.repeat(x, 2))[::2]):
            for least in (0, 5000):
                found = y.bincount(minlength=least)
                np.testing.assert_array_equal(found.numpy(), np.bincount(x, minlength=least))
                assert found.dtype == tl.int64
        weights = np.arange(n) % 7
        np.testing.assert_array_equal(tl.tensor(x).bincount(tl.tensor(weights)).numpy(),
                                      np.bincount(x, weights))


@each("dtype", ["int8", "int16", "int32", "int64"])
def test_one_negative_integer_is_refused(dtype):
    for n in (1, 100, 300_001):
        x = tl.ones(n, dtype=getattr(tl, dtype))
        x[n // 2] = -3
        with pytest.raises(RuntimeError, match="non-negative integers, got -3"):
            x.bincount()
