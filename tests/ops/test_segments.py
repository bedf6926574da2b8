"""Sums and other reductions of pieces, and singular values by random vectors."""

import pytest
from cases import each

import tensorlib as tl
from tensorlib.ops.index.segments import MANY


def test_empty_pieces_give_what_a_reduction_begins_with():
    x, lengths = tl.tensor([1., 2., 3., 4.]), tl.tensor([1, 0, 3])
    for reduce, plain, begun in [
            ("sum", [1, 0, 9], [10, 9, 18]), ("prod", [1, 1, 24], [9, 9, 216]),
            ("max", [1, -tl.inf, 4], [9, 9, 9]), ("min", [1, tl.inf, 2], [1, 9, 2])]:
        assert tl.segment_reduce(x, reduce, lengths=lengths).tolist() == plain
        assert tl.segment_reduce(x, reduce, lengths=lengths, initial=9).tolist() == begun
    assert tl.segment_reduce(x, "mean", lengths=lengths)[1].isnan()
    assert tl.segment_reduce(x, "mean", lengths=lengths, initial=9).tolist() == [10, 9, 6]


def test_elements_outside_of_offsets_are_in_no_piece():
    x = tl.tensor([1., 2., 3., 4.], requires_grad=True)
    tl.segment_reduce(x, "sum", offsets=tl.tensor([1, 3])).sum().backward()
    assert x.grad.tolist() == [0, 1, 1, 0]
    assert tl.segment_reduce(x, "sum", lengths=tl.tensor([1, 1]), unsafe=True).tolist() == [1, 2]


@pytest.mark.parametrize("size", [MANY - 1, MANY])
@pytest.mark.parametrize("rows", [(), (2,)])
def test_ends_that_are_counted_are_those_that_are_looked_for(size, rows):
    x = tl.arange(float(size)).expand(*rows, size)
    ends = tl.tensor([0, 3, 3, size - 1]).expand(*rows, 4)
    found = tl.segment_reduce(x, "max", offsets=ends, axis=len(rows), initial=-1)
    assert found.tolist() == tl.tensor([2, -1, size - 2]).expand(*rows, 3).tolist()
    lengths = tl.tensor([3, 0, size - 3]).expand(*rows, 3)
    assert tl.segment_reduce(x * 0 + 1, "sum", lengths=lengths, axis=len(rows)).equal(
        lengths.float())


@each("reduce", ["sum", "mean", "prod", "max", "min"])
@each("shape", [(9,), (9, 1), (9, 3), (2, 9, 3)])
@each("initial", [None, 0.5])
def test_with_a_graph_it_has_the_same_bits(reduce, shape, initial):
    x = tl.randn(shape, generator=tl.Generator().manual_seed(0))
    x.view(-1)[4] = tl.nan
    x.view(-1)[-1] = -0.0
    axis = len(shape) - 2 if len(shape) > 2 else 0
    lengths = tl.tensor([2, 0, 4, 3]).expand(*shape[:axis], 4)
    for where in ({"lengths": lengths}, {"offsets": lengths.cumsum(-1).int()}):
        alone, recorded = (tl.segment_reduce(x.detach().requires_grad_(grad), reduce, axis=axis,
                                             initial=initial, **where) for grad in (False, True))
        assert alone.view(tl.int32).equal(recorded.detach().view(tl.int32))


def test_equal_extremes_of_a_piece_share_the_gradient():
    x = tl.tensor([1., 2., 2., 0.], requires_grad=True)
    tl.segment_reduce(x, "max", lengths=tl.tensor([1, 3])).sum().backward()
    assert x.grad.tolist() == [1, 0.5, 0.5, 0]


@pytest.mark.parametrize("shape", [(9, 7), (7, 9), (2, 9, 7)])
def test_few_vectors_give_a_matrix_of_low_rank(shape):
    *batch, m, n = shape
    generator = tl.Generator().manual_seed(0)
    a, b = (tl.randn(*batch, *sizes, generator=generator, dtype=tl.float64)
            for sizes in ((m, 3), (3, n)))
    x = (a @ b).requires_grad_()
    u, s, v = tl.svd_lowrank(x, q=3)
    tl.testing.assert_close((u * s.unsqueeze(-2)) @ v.mT, x)
    tl.testing.assert_close(s, tl.linalg.svdvals(x)[..., :3])
    grad, = tl.autograd.grad(s.sum(), x)
    tl.testing.assert_close(grad, u @ v.mT)
    without = tl.svd_lowrank(x, q=3, M=x.mean(-2, keepdim=True))[1]
    tl.testing.assert_close(without, tl.pca_lowrank(x, q=3)[1])
    assert tl.svd_lowrank(x, q=99)[1].shape[-1] == 7


def test_what_extremes_begin_with_has_no_share_in_the_gradient():
    for initial, wanted in ((1.0, [0.5, 0.5, 0, 1]), (0.5, [0.5, 0.5, 1, 1]), (3.0, [0] * 4)):
        x = tl.tensor([1., 1., 0.5, 2.], requires_grad=True)
        y = tl.segment_reduce(x, "max", lengths=tl.tensor([2, 1, 1]), initial=initial)
        y.sum().backward()
        assert x.grad.tolist() == wanted
