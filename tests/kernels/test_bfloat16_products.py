"""Products of bfloat16 about the edges of what one instruction takes, a tile or a pair.

How far a result may be from the exact one: half a unit in the last place of bfloat16, 2**-8 of it,
and the sums of float32 before.
"""

import pytest
from cases import each

import tensorlib as tl
from tensorlib.nn import functional as F

EDGES = [3, 4, 15, 16, 17, 31, 33, 64, 70]


def close(y, exact, terms):
    """Whether results are what sums of so many products of float32, rounded, may be."""
    near = exact.abs() * (2**-8 * 1.001) + terms * 2**-22
    return bool(((y.double() - exact).abs() <= near).all())


def drawn(*shape):
    return tl.randint(-8, 9, shape, generator=tl.Generator().manual_seed(sum(shape))).bfloat16() / 4


@each("k", [1, 2, 31, 32, 33, 65, 511, 513, 1100])
def test_any_size_is_the_exact_product_rounded(k):
    for m in EDGES:
        for n in EDGES:
            a, b = drawn(m, k), drawn(n, k)
            exact = a.double() @ b.double().t()
            assert close(a @ b.t(), exact, k), (m, k, n)
            assert close(F.linear(a, b), exact, k), (m, k, n)
            assert close(a @ b.t().contiguous(), exact, k), (m, k, n)


def test_rows_that_are_apart_and_unknown_values_stay_where_they_are():
    for m, k, n in [(5, 33, 40), (40, 95, 65), (33, 600, 33)]:
        a, b = drawn(m, k + 5)[:, 2:k + 2].clone(), drawn(k, n)
        wide = tl.full((m, k + 7), float("nan"), dtype=tl.bfloat16)
        wide[:, 3:k + 3] = a
        expected = a @ b
        assert (wide[:, 3:k + 3] @ b).equal(expected), "what lies beside the rows was read"
        a[m // 2, k - 1] = float("nan")
        unknown = (a @ b).isnan()
        assert unknown[m // 2].all() and unknown.sum() == n
        b[k - 1, n - 1] = float("inf")
        a[:, k - 1] = 1
        assert (a @ b)[:, n - 1].isinf().all() and (a @ b)[:, :n - 1].isfinite().all()


@pytest.mark.parametrize("ins, outs, size", [(16, 16, 9), (33, 40, 12), (64, 20, 7)])
def test_convolutions_are_the_exact_ones_rounded(ins, outs, size):
    x, w = drawn(2, ins, size, size + 1), drawn(outs, ins, 3, 3)
    for stride in (1, 2):
        exact = F.conv2d(x.double(), w.double(), stride=stride, padding=1)
        assert close(F.conv2d(x, w, stride=stride, padding=1), exact, 9 * ins), stride
