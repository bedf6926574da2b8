"""Running sums are as exact as one rounding allows, in every layout and with any number of threads.
"""

import itertools

import numpy as np
import pytest
from cases import each
import tensorlib as tl

from tensorlib._core.base import pool

SHAPES = [(1, 1, 1), (1, 7, 1), (3, 1000, 1), (40, 9000, 1), (1, 300_001, 1), (2, 5, 3),
          (1, 1000, 7), (2, 100, 513), (1, 40, 3000), (2, 9, 5000), (0, 4, 4), (4, 0, 4), (4, 4, 0)]
EPS = {"float32": 2.0**-24, "float64": 2.0**-53}

pytestmark = pytest.mark.usefixtures("restore_threads")


def bits(x):
    return x.contiguous().numpy().view(np.uint8).tobytes()


@each("dtype", ["float32", "float64"])
@each("shape", SHAPES)
def test_each_sum_is_rounded_once(shape, dtype):
    rng = np.random.default_rng(0)
    x = (rng.standard_normal(shape) * np.exp(rng.standard_normal(shape) * 5)).astype(dtype)
    exact = np.cumsum(x.astype(np.longdouble), 1)
    sizes = np.cumsum(np.abs(x).astype(np.longdouble), 1)
    got = tl.tensor(x).cumsum(1).numpy()
    # the reference itself may err by 2**-64 for each of its additions
    bound = EPS[dtype] * np.abs(exact) * 1.001 + shape[1] * 2.0**-63 * sizes
    assert got.dtype == dtype
    assert (np.abs(got - exact) <= bound).all()


def test_long_sums_of_a_tenth():
    n = 5_000_000
    x = tl.full((n,), 0.1)
    assert x.cumsum(0)[-1].item() == np.float32(n * float(np.float32(0.1)))
    assert tl.full((n,), 0.1, dtype=tl.float64).cumsum(0)[-1].item() == n / 10
    for dtype in (tl.float16, tl.bfloat16):
        tenths = tl.full((200_000,), 0.001, dtype=dtype)
        assert tenths.cumsum(0)[-1].item() == tl.tensor(200_000 * tenths[0].item(), dtype=dtype)


def test_the_gradient_is_as_exact():
    n = 1_000_000
    x = tl.zeros(n, requires_grad=True)
    x.cumsum(0).backward(tl.full((n,), 0.1))
    assert x.grad[0].item() == np.float32(n * float(np.float32(0.1)))


def test_cancelled_sums_keep_their_digits():
    x = tl.tensor([1e16, 1.0, -1e16, 1e-3], dtype=tl.float64)
    rows = x.repeat(5, 1).cumsum(1)             # four together, and one
    for summed in (x.cumsum(0), x.expand(3, 4).T.cumsum(0)[:, 1], rows[2], rows[4]):
        assert summed.tolist() == [1e16, 1e16 + 1, 1.0, 1.001]


@pytest.mark.parametrize("dtype", [tl.float16, tl.float32, tl.float64])
def test_what_is_not_finite(dtype):
    inf, nan, large = float("inf"), float("nan"), np.finfo(str(dtype).split(".")[1]).max
    x = tl.tensor([1, inf, 2, -inf, 3], dtype=dtype)
    rows = x.repeat(5, 1).cumsum(1)
    for summed in (x.cumsum(0), x.expand(3, 5).T.cumsum(0)[:, 1], rows[1], rows[4]):
        np.testing.assert_array_equal(summed.numpy(), [1, inf, inf, nan, nan])
    x = tl.tensor([float(large), float(large), -float(large), nan], dtype=dtype)
    sums = x.cumsum(0).numpy()
    assert sums[1] == inf and np.isnan(sums[3])
    assert sums[2] == (inf if dtype is tl.float64 else large)     # the others are added in float64


def test_integers_wrap_round():
    x = tl.tensor([2**63 - 1, 1, 1])
    expected = [2**63 - 1, -2**63, -2**63 + 1]
    assert x.cumsum(0).tolist() == expected
    assert x.expand(2, 3).T.cumsum(0)[:, 0].tolist() == expected
    assert tl.tensor([200, 100], dtype=tl.uint8).cumsum(0).tolist() == [200, 300]


@each("dtype", [tl.int32, tl.int64, tl.float16, tl.float32, tl.float64])
def test_bits_do_not_depend_on_layout(dtype):
    x = (tl.randn(6, 30, 4, generator=tl.Generator().manual_seed(0)) * 1000).to(dtype)
    for dim, order in itertools.product(range(3), itertools.permutations(range(3))):
        expected = bits(x.cumsum(dim))
        back = [order.index(d) for d in range(3)]
        wide = tl.zeros([2 * n + 1 for n in x.shape], dtype=dtype)
        wide[1::2, 1::2, 1::2] = x
        for other in (x.permute(order).contiguous().permute(back), wide[1::2, 1::2, 1::2],
                      x.flip(0, 1, 2).contiguous()[::-1, ::-1, ::-1]):
            assert bits(other.cumsum(dim)) == expected
    row = x[:, :, 1].contiguous()
    assert bits(x.cumsum(1)[:, :, 1]) == bits(row.cumsum(1))


@each("dtype", [tl.int64, tl.float32, tl.float64])
@each("shape", SHAPES)
def test_bits_do_not_depend_on_threads(shape, dtype):
    x = (tl.randn(shape, generator=tl.Generator().manual_seed(0)) * 1000).to(dtype)
    results = set()
    for threads in (1, 2, 3):
        pool.set_num_threads(threads)
        results.add(bits(x.cumsum(1)))
    assert len(results) == 1


def test_in_place_and_into_out():
    x = tl.randn(30, 40, dtype=tl.float64)
    expected = x.cumsum(1)
    out = tl.empty(40, 30, dtype=tl.float64).T
    assert tl.cumsum(x, 1, out=out) is out and bits(out) == bits(expected)
    before = bits(x)
    y = x.clone()
    y.cumsum_(1)
    assert bits(y) == bits(expected) and bits(x) == before


@pytest.mark.parametrize("shape, dim", [((300, 90), 1), ((300, 90), 0), ((7, 60, 600), 1)])
def test_two_threads_scan_blocks_of_columns_as_one_does(shape, dim, two_threads):
    x = tl.rand(shape) + 0.5
    scans = (lambda: x.cumprod(dim), lambda: x.logcumsumexp(dim), lambda: x.cummax(dim).indices,
             lambda: x.cummin(dim).values)
    shared = [scan() for scan in scans]
    tl.set_num_threads(1)
    alone = [scan() for scan in scans]
    tl.set_num_threads(2)
    assert all(tl.equal(x, y) for x, y in zip(shared, alone))
    np.testing.assert_allclose(shared[0].numpy(), np.cumprod(x.double().numpy(), dim), 1e-5)
    np.testing.assert_array_equal(shared[3].numpy(), np.minimum.accumulate(x.numpy(), dim))


def test_running_sums_of_integers_wrap_around_in_rows_of_any_length():
    for n in range(40):
        whole = np.random.default_rng(n).integers(-2 ** 63, 2 ** 63 - 1, (3, n))
        assert (tl.from_numpy(whole).cumsum(1).numpy() == whole.cumsum(1)).all()
        assert (tl.from_numpy(whole).T.cumsum(0).numpy() == whole.T.cumsum(0)).all()


@each("dtype", ["float32", "float64"])
@each("special", ["none", "far", "below", "above", "nan", "nothing"])
@each("shape", [(3, 1300, 1), (2, 700, 3), (1, 40, 300)])
def test_logarithms_of_running_sums_in_blocks(shape, special, dtype):
    x = np.random.default_rng(0).normal(size=shape).astype(dtype)
    changed = x[:, 5:9]
    changed[...] = {"far": 700.0, "above": np.inf, "nan": np.nan}.get(special, changed)
    if special == "far":
        x[:, :3], x[:, -2:] = -500, 1000
    if special == "below":
        x[:, :6], x[:, 600:602] = -np.inf, -np.inf
    if special == "nothing":
        x[:, :, -1] = -np.inf
    found = tl.tensor(x).logcumsumexp(1).numpy()
    with np.errstate(invalid="ignore"):
        wanted = np.logaddexp.accumulate(x.astype(np.float64), 1)
    tolerance = 1e-6 if dtype == "float32" else 1e-13
    assert np.allclose(found, wanted, rtol=tolerance, atol=tolerance, equal_nan=True)


@each("rows", [1, 4, 7, 9])
def test_products_of_integers_wrap_in_each_row(rows):
    x = np.random.default_rng(rows).integers(-9, 10, (rows, 40))
    x[x == 0] = 3
    wanted = np.cumprod(x, 1)
    for dim, given in ((1, tl.from_numpy(x)), (0, tl.from_numpy(x.T.copy()))):
        found = given.cumprod(dim)
        assert ((found if dim else found.t()).numpy() == wanted).all()
