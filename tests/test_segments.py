"""Reductions of segments, beside loops over them."""

import numpy as np
import pytest

import tensorlib as tl
from tensorlib.testing import assert_close, gradcheck

REDUCTIONS = {"sum": (np.sum, 0), "mean": (np.mean, np.nan), "prod": (np.prod, 1),
              "max": (np.max, -np.inf), "min": (np.min, np.inf)}
CASES = [((5,), [0, 1, 2, 2]), ((5,), [2, 0, 3, 0]), ((5, 3), [0, 1, 2, 2]), ((0, 2), [0, 0]),
         ((2, 5), [[2, 0, 3], [0, 1, 4]]), ((2, 5, 3), [[2, 0, 3], [5, 0, 0]])]


def looped(x, reduce, lengths):
    """What `segment_reduce` gives, of arrays."""
    if lengths.ndim > 1:
        return np.stack([looped(*each) for each in zip(x, [reduce] * len(x), lengths)])
    function, of_nothing = REDUCTIONS[reduce]
    parts = np.split(x, lengths.cumsum())[:len(lengths)]
    return np.stack([function(part, 0) if len(part) else np.full(x.shape[1:], float(of_nothing))
                     for part in parts])


@pytest.mark.parametrize("reduce", REDUCTIONS)
@pytest.mark.parametrize("shape, lengths", CASES)
def test_segments_by_lengths_and_by_offsets(reduce, shape, lengths):
    x, lengths = np.random.default_rng(0).normal(size=shape), np.array(lengths)
    data, axis, expected = tl.tensor(x), lengths.ndim - 1, tl.tensor(looped(x, reduce, lengths))
    found = tl.segment_reduce(data, reduce, lengths=tl.tensor(lengths), axis=axis)
    assert_close(found, expected, equal_nan=True)
    offsets = np.concatenate([lengths[..., :1] * 0, lengths.cumsum(-1)], -1)
    found = tl.segment_reduce(data, reduce, offsets=tl.tensor(offsets), axis=axis - data.ndim)
    assert_close(found, expected, equal_nan=True)
    if data.numel():
        assert gradcheck(lambda x: tl.segment_reduce(
            x, reduce, lengths=tl.tensor(lengths), axis=axis, initial=0.5), data.requires_grad_())


def test_what_is_in_no_segment_is_left_out():
    x = tl.arange(6.0)
    assert_close(tl.segment_reduce(x, "sum", offsets=tl.tensor([1, 2, 4])), tl.tensor([1.0, 5.0]))
    assert_close(tl.segment_reduce(x, "sum", lengths=tl.tensor([1, 3]), unsafe=True),
                 tl.tensor([0.0, 6.0]))


@pytest.mark.parametrize("call, error", [
    (lambda x, n: tl.segment_reduce(x, "sum"), RuntimeError),
    (lambda x, n: tl.segment_reduce(x, "median", lengths=n), RuntimeError),
    (lambda x, n: tl.segment_reduce(x, "sum", lengths=n - 1), RuntimeError),
    (lambda x, n: tl.segment_reduce(x, "sum", lengths=tl.tensor([4, -1])), RuntimeError),
    (lambda x, n: tl.segment_reduce(x, "sum", lengths=n, axis=1), RuntimeError),
    (lambda x, n: tl.segment_reduce(x, "sum", lengths=n[None], axis=1), RuntimeError),
    (lambda x, n: tl.segment_reduce(x, "sum", indices=n), NotImplementedError),
])
def test_what_is_refused(call, error):
    with pytest.raises(error, match="segment_reduce"):
        call(tl.ones(3), tl.tensor([1, 2]))


def test_beside_pytorch():
    torch = pytest.importorskip("torch")
    for (shape, lengths), reduce, initial in [(case, reduce, initial) for case in CASES
                                              for reduce in REDUCTIONS for initial in (None, 2)]:
        x, found = np.random.default_rng(0).normal(size=shape), []
        if not x.size:
            continue
        for lib in (tl, torch):
            data, n = lib.tensor(x, requires_grad=True), lib.tensor(lengths)
            y = lib.segment_reduce(data, reduce, lengths=n, axis=n.ndim - 1, initial=initial)
            finite = lib.where(y.isfinite(), y, lib.zeros_like(y))
            g, = lib.autograd.grad(finite.square().sum(), data)
            found.append((y.detach().numpy(), g.numpy()))
        for ours, theirs in zip(*found):
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, err_msg=f"{reduce} {lengths}")
