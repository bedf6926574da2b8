"""Products of bfloat16, which some processors multiply in pairs, beside those of float64."""

import math

import numpy as np
import pytest
from cases import each
from hypothesis import given
from hypothesis import strategies as st

import tensorlib as tl
from tensorlib._core.base import pool
from tensorlib.testing import assert_close

LAYOUTS = {
    "rows": lambda draw, m, n: draw(m, n),
    "columns": lambda draw, m, n: draw(n, m).T,
    "part of rows": lambda draw, m, n: draw(m, n + 3)[:, 1:n + 1],
    "part of columns": lambda draw, m, n: draw(n + 3, m + 5)[2:n + 2, 1:m + 1].T,
    "odd columns": lambda draw, m, n: draw(n, m + m % 2 + 1)[:, :m].T,
    "every second": lambda draw, m, n: draw(m, 2 * n)[:, ::2],
    "backwards": lambda draw, m, n: draw(m, n).flip(0),
    "one row again": lambda draw, m, n: draw(1, n).expand(m, n),
}

pytestmark = pytest.mark.usefixtures("restore_threads")


def drawing(rng):
    return lambda *shape: tl.tensor(rng.standard_normal(shape, np.float32)).bfloat16()


def assert_product(y, a, b):
    """y is a @ b, each sum as good as one of float32, and rounded once."""
    a, b = a.double(), b.double()
    expected, room = a @ b, a.abs() @ b.abs()
    bound = expected.abs() * 2.0 ** -8 + room * (a.shape[-1] * 2.0 ** -24) + 1e-30
    assert y.dtype == tl.bfloat16 and y.shape == expected.shape
    assert ((y.double() - expected).abs() <= bound).all()


@given(st.sampled_from([1, 2, 3, 4, 5, 7, 13, 64, 300]),
       st.sampled_from([1, 2, 31, 32, 33, 255, 256, 257, 520]),
       st.sampled_from([16, 17, 32, 33, 63, 64, 65, 100]),
       st.sampled_from(sorted(LAYOUTS)), st.sampled_from(sorted(LAYOUTS)), st.integers(0, 99))
def test_every_size_and_layout(m, k, n, left, right, seed):
    draw = drawing(np.random.default_rng(seed))
    a, b = LAYOUTS[left](draw, m, k), LAYOUTS[right](draw, k, n)
    assert_product(a @ b, a, b)
    assert_product(tl.nn.functional.linear(a, b.T), a, b)


@each("a, b", [((3, 5, 40, 70), (70, 50)), ((3, 1, 40, 70), (5, 70, 50)), ((40, 70), (4, 70, 50)),
               ((6, 2, 300), (300, 80)), ((6, 1, 300), (6, 300, 80)), ((300,), (300, 200)),
               ((9, 200, 300), (300,)), ((2, 3, 300, 30), (2, 3, 30, 20))])
def test_batches_and_vectors(a, b):
    draw = drawing(np.random.default_rng(1))
    a, b = draw(*a), draw(*b)
    y, expected = a @ b, a.double() @ b.double()
    room = a.double().abs() @ b.double().abs()
    assert y.shape == expected.shape
    assert ((y.double() - expected).abs() <= expected.abs() * 2.0 ** -8 + room * 2.0 ** -15).all()


@each("sizes", [(1, 700, 1300), (3, 600, 900), (70, 300, 500), (600, 700, 260), (1030, 1024, 300)])
def test_bits_do_not_depend_on_threads_or_other_rows(sizes):
    m, k, n = sizes
    draw = drawing(np.random.default_rng(2))
    a, b = draw(m, k), draw(k, n)
    pool.set_num_threads(1)
    alone = a @ b
    pool.set_num_threads(3)
    assert tl.equal(a @ b, alone)
    if m > 12:
        assert tl.equal(a[5:12] @ b, alone[5:12])
        assert tl.equal(a @ b[:, 7:100], alone[:, 7:100])


def test_what_is_no_number_stays_so():
    a, b = tl.ones(40, 40).bfloat16(), tl.ones(40, 41).bfloat16()
    a[3, 5], a[4, 7], a[5, 3], b[39, 40] = math.nan, math.inf, -math.inf, math.inf
    y, expected = a @ b, (a.float() @ b.float()).bfloat16()
    assert tl.equal(y.isnan(), expected.isnan()) and y.isnan()[3].all() and y.isnan()[5, 40]
    assert tl.equal(y.nan_to_num(), expected.nan_to_num())


def test_a_bias_is_added_before_rounding():
    draw = drawing(np.random.default_rng(3))
    x, w, bias = draw(33, 300), draw(65, 300), draw(65)
    y = tl.nn.functional.linear(x, w, bias)
    expected = x.double() @ w.double().T + bias.double()
    room = x.double().abs() @ w.double().abs().T
    assert y.dtype == tl.bfloat16
    assert ((y.double() - expected).abs() <= expected.abs() * 2.0 ** -8 + room * 2.0 ** -15).all()


@each("shape", [(65,), (33, 65), (33, 1), (1, 65), (1,), ()])
@each("dtype", ["bfloat16", "float16"])
def test_addmm_is_linear_with_what_is_added_as_the_bias(shape, dtype):
    draw = drawing(np.random.default_rng(4))
    args = [draw(*size).to(getattr(tl, dtype)).requires_grad_()
            for size in (shape, (33, 300), (300, 65))]
    y = tl.addmm(*args)
    added, a, b = (x.detach().double() for x in args)
    room = a.abs() @ b.abs() + added.abs()
    expected = a @ b + added
    assert y.dtype == args[0].dtype
    assert ((y.double() - expected).abs() <= expected.abs() * 2.0 ** -8 + room * 2.0 ** -15).all()
    assert tl.equal(y, tl.nn.functional.linear(args[1], args[2].T, args[0]))
    y.sum().backward()
    assert [x.grad.shape for x in args] == [x.shape for x in args]
    assert_close(args[0].grad.double(), tl.ones(()).double().expand(shape)
                 * (33 * 65 // added.numel()), rtol=2.0 ** -8, atol=0.0)
    program = tl.compile(tl.addmm)
    with tl.no_grad():
        assert tl.equal(program(*args), y) and tl.equal(program(*args), y)


def test_linear_takes_what_expands_as_a_bias():
    x, w = tl.ones(3, 4), tl.ones(5, 4)
    for shape in [(3, 5), (3, 1), (1, 5), ()]:
        assert tl.equal(tl.nn.functional.linear(x, w, tl.ones(shape)), tl.full((3, 5), 5.0))
    for shape in [(4,), (2, 5), (1, 3, 5)]:
        with pytest.raises(RuntimeError, match="does not fit"):
            tl.nn.functional.linear(x, w, tl.ones(shape))
