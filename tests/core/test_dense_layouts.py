"""Element-wise operations on tensors whose elements are one run of memory, in any order of dims,
and comparisons of whole tensors: what the loops see is the memory as it lies."""

import itertools

import numpy as np
import pytest
from cases import each

import tensorlib as tl

ORDERS = list(itertools.permutations(range(3)))
CALLS = {
    "add": lambda x: x + 1, "rsub": lambda x: 2 - x, "clamp": lambda x: x.clamp(-0.5, 0.5),
    "both": lambda x: x * x + x, "where": lambda x: x.where(x > 0, 0.5),
    "addcmul": lambda x: tl.addcmul(x, x, x, value=2), "compare": lambda x: x > 0.25,
    "mixed dtypes": lambda x: x + x.double(), "add_": lambda x: x.clone().add_(1),
    "mul_": lambda x: x.clone().mul_(x), "clamp_": lambda x: x.clone().clamp_(0.2, 0.5),
}


def laid_out():
    """Tensors of three dims by their strides: dense in each order, with gaps, turned, repeated."""
    tl.manual_seed(0)
    whole = tl.randn(4, 3, 5)
    for order in ORDERS:
        yield whole.permute(order)
    yield whole[:, :1].permute(2, 1, 0)
    yield whole[:, :, ::2].permute(2, 0, 1)
    yield whole.flip(0).permute(2, 0, 1)
    yield whole[:1].expand(4, 3, 5).permute(1, 2, 0)
    yield whole.as_strided((2, 2, 2), (1, 1, 5))
    yield whole.as_strided((1, 4, 3), (0, 3, 1)).permute(1, 0, 2)
    yield whole[:0].permute(2, 1, 0)


@each("name", CALLS)
def test_a_layout_changes_no_element(name):
    for x in laid_out():
        found, wanted = CALLS[name](x), CALLS[name](x.contiguous())
        assert found.shape == wanted.shape and found.tolist() == wanted.tolist(), x.stride()


@each("order", ORDERS)
def test_a_result_lies_as_its_operands(order):
    x = tl.randn(4, 3, 5).permute(order)
    assert (x + 1).stride() == (x * x).stride() == x.neg().stride() == x.stride()
    assert (x + x.contiguous()).stride() == x.stride()           # as the first one
    assert (x.contiguous() + x).stride() == x.contiguous().stride()


def test_writes_over_dense_views_stay_within_them():
    whole = tl.zeros(6, 4)
    whole[1:3].t().add_(1).mul_(2)
    whole[4:].t().add_(whole[4:].t().clone() + 3)
    assert whole.tolist() == [[0.0] * 4, [2.0] * 4, [2.0] * 4, [0.0] * 4, [3.0] * 4, [3.0] * 4]
    square = tl.arange(9.0).reshape(3, 3)
    square.add_(square.t())                      # which is read as it was before
    assert square.tolist() == [[0.0, 4, 8], [4, 8, 12], [8, 12, 16]]


@each("dtype", [tl.float32, tl.float64, tl.float16, tl.bfloat16, tl.int64,
                tl.uint8, tl.bool, tl.complex64])
def test_equal_looks_at_every_element(dtype):
    for n in (1, 17, 5000):
        x = (tl.arange(n) % 2).to(dtype)
        y = x.clone()
        assert tl.equal(x, y) and tl.equal(x, x) and x.equal(y[None][0])
        assert not tl.equal(x, y[None]) and not tl.equal(x, y[:-1])
        for place in {0, n // 2, n - 1}:
            y = x.clone()
            y[place] = 1 - y[place].int()
            assert not tl.equal(x, y) and not tl.equal(y, x)


def test_equal_compares_numbers_and_not_bytes():
    x = tl.tensor([0.0, 1.0])
    assert tl.equal(x, tl.tensor([-0.0, 1.0])) and tl.equal(x, x.double())
    nan = tl.tensor([np.nan])
    assert not tl.equal(nan, nan) and not tl.equal(nan.double(), nan.double())
    assert tl.equal(tl.ones(0, 3), tl.ones(0, 3)) and not tl.equal(tl.ones(0, 3), tl.ones(3, 0))
    assert tl.equal(x.clone().requires_grad_(), x) and tl.equal(x[::2], tl.zeros(1))
    with pytest.raises(RuntimeError, match="meta"):
        tl.equal(tl.ones(2, device="meta"), tl.ones(2, device="meta"))


@pytest.mark.parametrize("cut", [lambda x: x.chunk(3, 1), lambda x: x.split([1, 0, 4], 1),
                                 lambda x: x.unbind(1), lambda x: x.split(2, 2)])
def test_pieces_are_views_that_share_memory_and_versions(cut):
    x = tl.arange(60.0).reshape(3, 5, 4).transpose(0, 2).contiguous().transpose(0, 2)
    pieces, wanted = cut(x), cut(x.clone().contiguous())
    assert [p.tolist() for p in pieces] == [p.tolist() for p in wanted]
    before = x._version
    pieces[-1].zero_()
    assert x._version > before and not pieces[-1].any() and pieces[-1]._base is x._base
    if len(pieces) > 1:
        w = x.clone().requires_grad_() * 1
        with pytest.raises(RuntimeError, match="in.?place"):
            cut(w)[0].add_(1)
