"""Functions that widen half types part by part give what float32 gives, rounded once."""

import pytest
from cases import each

import tensorlib as tl
import tensorlib.nn.functional as F

HALVES = each("dtype", [tl.float16, tl.bfloat16])


def drawn(*shape):
    return tl.randn(shape, generator=tl.Generator().manual_seed(7))


def assert_rounded_once(function, *tensors):
    """`function` of tensors of a half type is the same of these in float32, rounded."""
    found = function(*tensors)
    wanted = function(*(x.float() for x in tensors))
    tl.testing.assert_close(found, wanted.to(found.dtype), rtol=0, atol=0, equal_nan=True)


# Rows of which several make a tile, one fills more than one, and none has elements.
@HALVES
@each("shape", [(40, 300), (3, 9000), (0, 4), (700, 3), (2, 3, 1)])
@each("arrange", [lambda x: x, lambda x: x.mT.contiguous().mT])
def test_rows_are_normalised(dtype, shape, arrange):
    x, w = arrange(drawn(*shape).to(dtype)), drawn(shape[-1]).to(dtype)
    assert_rounded_once(lambda x, w: F.layer_norm(x, x.shape[-1:], w, w), x, w)
    assert_rounded_once(lambda x, w: F.rms_norm(x, x.shape[-1:], w), x, w)


@HALVES
@each("reduction", ["mean", "sum", "none"])
@each("shape", [(60, 5), (3, 5, 4, 6)])
def test_elements_at_classes_are_read_and_given_gradients(dtype, reduction, shape):
    x, w = drawn(*shape).to(dtype).requires_grad_(), drawn(5).abs().to(dtype)
    places = shape[:1] + shape[2:]
    target = (drawn(*places).abs() * 2).long().clamp(max=4)
    target[0] = -100
    assert_rounded_once(lambda x, w: F.nll_loss(x, target, w, reduction=reduction), x.detach(), w)
    wide = x.detach().float().requires_grad_()
    for y in x, wide:
        F.nll_loss(y, target, w.to(y.dtype), reduction=reduction).sum().backward()
    assert tl.equal(x.grad, wide.grad.to(dtype))


@HALVES
@each("p", [1, 2.0, float("inf")])
@each("dim", [0, 1, -1])
def test_vectors_are_divided_by_their_norms(dtype, p, dim):
    x = drawn(70, 5, 30).to(dtype)
    x[:, 0, 0] = 0
    assert_rounded_once(lambda x: F.normalize(x, p, dim), x)
    assert tl.equal(F.normalize(x.requires_grad_(), p, dim), F.normalize(x.detach(), p, dim))


# A table with fewer and with more rows than there are places.
@HALVES
@each("rows", [6, 300])
@each("mode", ["sum", "mean"])
def test_bags_of_rows(dtype, rows, mode):
    table = drawn(rows, 9).to(dtype).requires_grad_()
    places = (drawn(50).abs() * 2).long()
    offsets = tl.tensor([0, 3, 3, 20])
    assert_rounded_once(lambda w: F.embedding_bag(places, w, offsets, mode=mode), table.detach())
    wide = table.detach().float().requires_grad_()
    for y in table, wide:
        F.embedding_bag(places, y, offsets, mode=mode).float().square().sum().backward()
    assert (table.grad.float() - wide.grad).norm() < 0.01 * wide.grad.norm()


@HALVES
@each("place", [-1, 300, 40])
def test_places_out_of_range_of_a_table_are_refused(dtype, place):
    table = tl.ones(40 if place == 40 else 300, 2, dtype=dtype)
    with pytest.raises(IndexError, match=f"embedding_bag: index out of range in self: {place}"):
        F.embedding_bag(tl.tensor([[0, place]]), table)
