"""Products of matrices that are parts of larger ones: what lies beside them is never seen."""

import numpy as np
import pytest
from cases import each

import tensorlib as tl

SIDES = 1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 48


def part_of(values, gap, turned, spoilt):
    """`values` as a part of a matrix with `spoilt` around it, with dense columns or rows."""
    values = values.T if turned else values
    whole = np.full((values.shape[0] + 2, values.shape[1] + gap), spoilt, values.dtype)
    begin = gap // 2
    whole[1:-1, begin:begin + values.shape[1]] = values
    part = tl.from_numpy(whole)[1:-1, begin:begin + values.shape[1]]
    return part.t() if turned else part


@each("dtype", ["float32", "float64"])
@each("turned", [False, True])
@each("n", SIDES)
def test_gaps_do_not_matter(n, turned, dtype):
    random = np.random.default_rng(n)
    for k in SIDES:
        for m in (4, 7, 12, 19):
            a, b = (random.normal(size=size).astype(dtype) for size in ((m, k), (k, n)))
            wanted = tl.tensor(a) @ tl.tensor(b)
            np.testing.assert_allclose(
                wanted.numpy(), a.astype("float64") @ b.astype("float64"),
                atol=64 * np.finfo(dtype).eps * k, rtol=0)
            for gap in (0, 1, 5, 40):
                for spoilt in (np.nan, np.inf):
                    found = tl.tensor(a) @ part_of(b, gap, turned, spoilt)
                    assert tl.equal(found, wanted), (m, k, gap)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_products_of_vectors_and_matrices(dtype):
    random = np.random.default_rng(3)
    for m in (0, 1, 3, 20, 100):
        for k in (0, 1, 8, 20, 130):
            x = (random.normal(size=(m, k)) * 8).astype(dtype)
            v, w = ((random.normal(size=size) * 8).astype(dtype) for size in (k, m))
            wide = np.repeat(x, 2, 1)
            for matrix in (tl.tensor(x), tl.tensor(x.T.copy()).t(), tl.from_numpy(wide)[:, ::2],
                           tl.tensor(x[::-1].copy()).flip(0)):
                for vector, other in ((v, w), (np.repeat(v, 3), np.repeat(w, 3))):
                    right = tl.from_numpy(vector)[::len(vector) // k if k else 1]
                    left = tl.from_numpy(other)[::len(other) // m if m else 1]
                    scale = 64 * np.finfo("float32").eps * 64 * max(m, k)
                    np.testing.assert_allclose((matrix @ right).numpy(), x @ v, atol=scale)
                    np.testing.assert_allclose((left @ matrix).numpy(), w @ x, atol=scale)
                    np.testing.assert_allclose((matrix.t() @ left).numpy(), x.T @ w, atol=scale)
