"""Arguments that PyTorch's functions take."""

import pytest
from cases import each

import tensorlib as tl

X = tl.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def test_memory_format():
    turned = X.t()
    for convert in (turned.clone, turned.contiguous, turned.double, turned.int, turned.long,
                    turned.bool, turned.half, lambda memory_format: turned.to(
                        tl.float64, memory_format=memory_format)):
        found = convert(memory_format=tl.contiguous_format)
        assert found.is_contiguous(memory_format=tl.contiguous_format)
        assert found.float().tolist() == (turned if found.dtype is not tl.bool else turned > 0
                                          ).float().tolist()
    assert not turned.clone(memory_format=tl.preserve_format).is_contiguous()
    with pytest.raises(RuntimeError, match="clone: memory_format must be"):
        X.clone(memory_format=3)


def test_round_to_decimals():
    x = tl.tensor([1.2345, -9.875, 1234.5])
    assert x.round(decimals=2).tolist() == pytest.approx([1.23, -9.88, 1234.5])
    assert x.round(decimals=-2).tolist() == [0, 0, 1200]
    assert x.clone().round_(decimals=1).tolist() == pytest.approx([1.2, -9.9, 1234.5])
    assert x.round(decimals=0).tolist() == x.round().tolist()
    with pytest.raises(RuntimeError, match="round: takes decimals for floating"):
        x.int().round(decimals=1)
    with pytest.raises(TypeError, match="round: input must be a Tensor, not int"):
        tl.round(2, decimals=1)
    for decimals in (1.0, object, 10**400):
        with pytest.raises(TypeError, match="round: decimals must be a small int"):
            x.round(decimals=decimals)


def test_scatter_with_a_value_and_a_reduction():
    x, places = tl.ones(4), tl.tensor([0, 2, 2])
    assert x.scatter(0, places, value=5.0).tolist() == [5, 1, 5, 1]
    assert x.scatter(0, places, tl.tensor([2.0, 3.0, 4.0]), reduce="add").tolist() == [3, 1, 8, 1]
    assert x.scatter(0, places, tl.tensor([2.0, 3.0, 4.0]), reduce="multiply").tolist() == [
        2, 1, 12, 1]
    assert x.clone().scatter_(0, places, 3.0, reduce="multiply").tolist() == [3, 1, 9, 1]
    assert x.scatter(0, places, value=2, reduce="add").tolist() == [3, 1, 5, 1]
    y = tl.ones(3, requires_grad=True)
    x.scatter(0, places, y, reduce="add").sum().backward()
    assert y.grad.tolist() == [1, 1, 1]
    with pytest.raises(RuntimeError, match="scatter: reduce='multiply' has no gradient"):
        x.scatter(0, places, y, reduce="multiply")
    with pytest.raises(RuntimeError, match="scatter: reduce must be"):
        x.scatter(0, places, 1.0, reduce="mean")
    with pytest.raises(TypeError, match="scatter: takes either src or value"):
        x.scatter(0, places)


def test_repeat_interleave_checks_its_output_size():
    assert X.repeat_interleave(tl.tensor([1, 2]), 0, output_size=3).shape == (3, 3)
    with pytest.raises(RuntimeError, match="repeat_interleave: output_size is 4"):
        X.repeat_interleave(tl.tensor([1, 2]), 0, output_size=4)


def test_names_of_arguments():
    assert X.flip(dims=(0,))[0].tolist() == [4, 5, 6]
    assert X[:1].expand(size=(2, 3)).shape == X.view(size=(2, 3)).shape == (2, 3)
    assert X.swapaxes(axis0=0, axis1=1).shape == X.clone().swapaxes_(axis0=0, axis1=1).shape
    assert [len(x) for x in X[0].split(split_size=2)] == [2, 1]
    assert [len(x) for x in X[0].tensor_split(indices=(1,))] == [1, 2]
    assert [len(x) for x in X[0].hsplit(sections=3)] == [1, 1, 1]
    assert X.mm(mat2=X.t()).shape == (2, 2) and X.mv(vec=X[0]).shape == (2,)
    for sparse_grad in (False, True):
        assert X.gather(1, tl.tensor([[0]]), sparse_grad=sparse_grad).item() == 1
    assert X.to(other=tl.ones(1, dtype=tl.int64)).dtype is tl.int64
    assert tl.tril_indices(2, 2, pin_memory=False).shape == (2, 3)


@each("call", [
    lambda out: tl.gather(X, 1, tl.tensor([[0], [1]]), out=out),
    lambda out: tl.index_select(X, 1, tl.tensor([0]), out=out),
    lambda out: tl.masked_select(X, X > 2, out=out),
    lambda out: tl.take_along_dim(X, tl.tensor([[0]]), 1, out=out),
    lambda out: tl.addcmul(X, X, X, out=out), lambda out: tl.addcdiv(X, X, X, out=out),
    lambda out: tl.lerp(X, X * 2, 0.5, out=out), lambda out: tl.diag(X[0], out=out)])
def test_results_go_into_out(call):
    out = tl.empty(0)
    assert call(out) is out and out.tolist() == call(None).tolist()
