"""Loops of softmax, log_softmax, logsumexp and their gradients, beside extended precision."""

import ctypes

import numpy as np
import pytest
import tensorlib as tl
from capi import c_function
from cases import each

from tensorlib._core.base import pool
from tensorlib._core.reduce import schedule

KINDS = ("softmax", "log_softmax", "logsumexp", "softmax_backward", "log_softmax_backward")
DTYPES = {"float32": 11, "float64": 12}
SIZE = ctypes.c_ssize_t
rows_run = c_function(schedule, "rows_run", ctypes.c_int, ctypes.c_int, ctypes.c_int,
                      ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, SIZE, SIZE)
SHAPES = [(1, 1), (5, 2), (300, 10), (3, 64), (2, 1000), (2, 2048), (3, 2049), (2, 10_000),
          (500, 100), (0, 5)]
TOLERANCE = {"float32": {"rtol": 1e-5, "atol": 1e-6}, "float64": {"rtol": 1e-13, "atol": 1e-14}}


def forward(kind, x):
    y = np.full(x.shape[:1] if kind == "logsumexp" else x.shape, 7, x.dtype)
    assert rows_run(KINDS.index(kind), DTYPES[x.dtype.name], None, x.ctypes.data,
                    y.ctypes.data, *x.shape) == 0
    return y


def backward(kind, g, out):
    y = np.empty_like(g)
    assert rows_run(KINDS.index(kind), DTYPES[g.dtype.name], g.ctypes.data, out.ctypes.data,
                    y.ctypes.data, *g.shape) == 0
    return y


def references(x):
    """softmax, log_softmax and logsumexp in extended precision."""
    x = x.astype("longdouble")
    top = x.max(1, keepdims=True)
    lse = top + np.log(np.exp(x - top).sum(1, keepdims=True))
    return np.exp(x - lse), x - lse, lse[:, 0]


@each("shape", SHAPES)
@each("dtype", DTYPES)
@each("spread", [1, 80])
def test_forward_and_backward(shape, dtype, spread):
    rng = np.random.default_rng(0)
    x = (rng.standard_normal(shape) * spread).astype(dtype)
    g = rng.standard_normal(shape).astype(dtype)
    for kind, wanted in zip(KINDS, references(x), strict=False):
        np.testing.assert_allclose(forward(kind, x), wanted, **TOLERANCE[dtype])
    out, logs, wide = forward("softmax", x), forward("log_softmax", x), g.astype("longdouble")
    np.testing.assert_allclose(backward("softmax_backward", g, out),
                               (wide - (wide * out).sum(1, keepdims=True)) * out,
                               **TOLERANCE[dtype])
    np.testing.assert_allclose(
        backward("log_softmax_backward", g, logs),
        wide - np.exp(logs.astype("longdouble")) * wide.sum(1, keepdims=True),
        rtol=10 * TOLERANCE[dtype]["rtol"], atol=10 * TOLERANCE[dtype]["atol"])


@each("dtype", DTYPES)
@each("n", [3, 100, 5000])
def test_edges(dtype, n):
    inf, nan = np.inf, np.nan
    x = np.zeros((6, n), dtype)
    x[0] = -inf
    x[1, 1] = inf
    x[2, 1] = nan
    x[3, 1] = -inf
    x[4] = 1e30
    x[5, 1] = 1e4
    soft, logs, lse = (forward(kind, x) for kind in KINDS[:3])
    assert np.isnan(soft[:3]).all() and np.isnan(logs[:3]).all()
    assert lse[0] == -inf and lse[1] == inf and np.isnan(lse[2])
    assert soft[3, 1] == 0 and logs[3, 1] == -inf
    np.testing.assert_allclose(soft[3, 0], 1 / (n - 1), rtol=1e-6)
    np.testing.assert_allclose(soft[4], 1 / n, rtol=1e-6)
    assert soft[5, 1] == 1 and soft[5, 0] == 0 and lse[5] == 1e4


@pytest.mark.parametrize("dtype", DTYPES)
def test_bits_do_not_depend_on_threads(dtype):
    before = pool.get_num_threads()
    x = np.random.default_rng(1).standard_normal((700, 300)).astype(dtype)
    results = set()
    for threads in (1, 2, 5):
        pool.set_num_threads(threads)
        results.add(tuple(forward(kind, x).tobytes() for kind in KINDS[:3]))
    pool.set_num_threads(before)
    assert len(results) == 1


@each("n", [32, 50, 64, 100, 1000])
def test_bits_of_rows_do_not_depend_on_those_beside_them(n):
    x = tl.randn(70, n, generator=tl.Generator().manual_seed(1))
    for function in (tl.softmax, tl.log_softmax, tl.logsumexp):
        together = function(x, -1)
        assert all(tl.equal(function(row, -1), found) for row, found in zip(x, together))


def test_empty_rows():
    assert (forward("logsumexp", np.empty((3, 0), "float32")) == -np.inf).all()
    assert forward("softmax", np.empty((3, 0), "float32")).shape == (3, 0)
