"""`out=` of functions whose results are written into it at the end."""

import pytest

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


@pytest.mark.parametrize("key", CALLS)
def test_the_result_is_in_out(key):
    call, wanted = CALLS[key], CALLS[key]()
    for out in (tl.empty(0), tl.empty(wanted.shape)):
        assert call(out=out) is out and out.equal(wanted)
    with pytest.raises(RuntimeError, match="result type .* can't be cast to the desired output"):
        call(out=tl.empty(0, dtype=tl.int64))
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        call(out=tl.empty(wanted.shape, requires_grad=True))


def test_halves_are_normalized_into_out():
    halves, out = X.half(), tl.empty(3)
    assert F.normalize(halves, dim=0, out=out) is out
    assert tl.allclose(out, F.normalize(X, dim=0), atol=1e-3)
    narrow = tl.empty(3, dtype=tl.float16)
    assert F.normalize(halves, dim=0, out=narrow) is narrow
