"""`out=` of functions whose results are written into it at the end."""

import warnings

import pytest
from cases import each

import tensorlib as tl
from tensorlib.nn import functional as F

X, AT, ONE = tl.tensor([1.26, 2.34, -3.15]), tl.tensor([1]), tl.ones(1)
IMAGE = tl.arange(8.0).reshape(1, 2, 2, 2)

CALLS = {
    "scatter": lambda **k: tl.scatter(X, 0, AT, ONE, **k),
    "scatter of a number": lambda **k: tl.scatter(X, 0, AT, 2.0, **k),
    "scatter_add": lambda **k: tl.scatter_add(X, 0, AT, ONE, **k),
    "scatter_reduce": lambda **k: tl.scatter_reduce(X, 0, AT, ONE, "amin", **k),
    "index_add": lambda **k: tl.index_add(X, 0, AT, ONE, alpha=2, **k),
    "index_copy": lambda **k: tl.index_copy(X, 0, AT, ONE, **k),
    "index_reduce": lambda **k: tl.index_reduce(X, 0, AT, ONE, "prod", **k),
    "slice_scatter": lambda **k: tl.slice_scatter(X, ONE, 0, 1, 2, **k),
    "round to decimals": lambda **k: tl.round(X, decimals=1, **k),
    "round to tens": lambda **k: tl.round(X * 100, decimals=-1, **k),
    "zeta": lambda **k: tl.special.zeta(X[:2], ONE, **k),
    "linear": lambda **k: F.linear(X, tl.ones(2, 3), **k),
    "linear with a bias": lambda **k: F.linear(X, tl.ones(2, 3), tl.ones(2), **k),
    "avg_pool2d": lambda **k: F.avg_pool2d(IMAGE, 2, **k),
    "avg_pool3d": lambda **k: F.avg_pool3d(IMAGE, 2, **k),
    "normalize": lambda **k: F.normalize(X, dim=0, **k)}


@each("key", CALLS)
def test_the_result_is_in_out(key):
    call, wanted = CALLS[key], CALLS[key]()
    for out in (tl.empty(0), tl.empty(wanted.shape)):
        assert call(out=out) is out and out.equal(wanted)
    with pytest.raises(RuntimeError, match="result type .* can't be cast to the desired output"):
        call(out=tl.empty(0, dtype=tl.int64))
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        call(out=tl.empty(wanted.shape, requires_grad=True))


@pytest.mark.parametrize("call, wanted", [
    (lambda x, out: tl.add(x, 1, out=out), [2.0, 3.0, 4.0]),
    (lambda x, out: tl.cumsum(x, 0, out=out), [1.0, 3.0, 6.0])])
def test_out_is_resized_over_its_own_memory_where_that_suffices(call, wanted):
    x, memory = tl.tensor([1.0, 2.0, 3.0]), tl.zeros(6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        out = call(x, memory[1:1])
    assert out.tolist() == wanted and memory.tolist() == [0, *wanted, 0, 0]
    with pytest.warns(UserWarning, match=r"has shape \(1,\) but the result has shape \(3,\)"):
        out = call(x, memory[3:4])
    assert out.tolist() == wanted and memory.tolist() == [0, *wanted[:2], *wanted]
    with pytest.warns(UserWarning, match="it is resized"):
        out = call(x, memory[4:])
    assert out.tolist() == wanted and memory.tolist() == [0, *wanted[:2], *wanted]


def test_an_input_is_not_resized():
    x = tl.ones(3)
    with pytest.raises(RuntimeError, match=r"add: out is an input, of shape \(3,\)"):
        tl.add(x, tl.ones(2, 3), out=x)
    assert x.tolist() == [1.0, 1.0, 1.0]


def test_halves_are_normalized_into_out():
    halves, out = X.half(), tl.empty(3)
    assert F.normalize(halves, dim=0, out=out) is out
    assert tl.allclose(out, F.normalize(X, dim=0), atol=1e-3)
    narrow = tl.empty(3, dtype=tl.float16)
    assert F.normalize(halves, dim=0, out=narrow) is narrow
