"""Parameters that are sparse tensors: learnt as dense ones are, at positions that stay."""

import copy
import io
import pickle

import pytest

import tensorlib as tl
from tensorlib import nn
from tensorlib.testing import assert_close

DENSE = tl.tensor([[0.0, 1, 0, 0], [2, 0, 3, 0], [0, 0, 4, 5], [0, 0, 0, 6]], dtype=tl.float64)
FEATURES = tl.arange(8.0, dtype=tl.float64).reshape(4, 2) / 8
MADE = {"coo": DENSE.to_sparse(), "csr": DENSE.to_sparse_csr(), "csc": DENSE.to_sparse_csc(),
        "bsr": DENSE.to_sparse_bsr((1, 1)), "bsc": DENSE.to_sparse_bsc((1, 1))}


@pytest.fixture(params=MADE)
def entries(request):
    return MADE[request.param].clone()


@pytest.mark.parametrize("options", [
    {}, {"momentum": 0.9}, {"momentum": 0.9, "nesterov": True}, {"weight_decay": 0.1},
    {"maximize": True, "momentum": 0.5, "weight_decay": 0.1}], ids=str)
def test_steps_are_those_of_dense_parameters(entries, options):
    sparse, dense = nn.Parameter(entries), nn.Parameter(DENSE.clone())
    for weight in (sparse, dense):
        optimizer = tl.optim.SGD([weight], lr=0.05, **options)
        for _ in range(3):
            optimizer.zero_grad()
            ((weight @ FEATURES) ** 2).sum().backward()
            if weight is dense:
                weight.grad *= DENSE != 0
            optimizer.step()
    assert sparse.layout is entries.layout and sparse.is_leaf and sparse.requires_grad
    assert_close(sparse.detach().to_dense(), dense.detach())
    assert_close(sparse.grad.to_dense(), dense.grad)


def test_modules_keep_them(entries):
    module, other = nn.Module(), nn.Module()
    module.weight, other.weight = nn.Parameter(entries), nn.Parameter(tl.zeros_like(entries))
    assert [name for name, _ in module.named_parameters()] == ["weight"]
    other.load_state_dict(module.state_dict())
    for weight in (other.weight, copy.deepcopy(module).weight):
        assert weight.layout is entries.layout and weight.requires_grad
        assert_close(weight.detach().to_dense(), DENSE)
    module.float()
    assert module.weight.dtype is tl.float32 and module.weight.requires_grad
    assert repr(module.weight).startswith("Parameter containing:\ntensor(")


def test_they_are_kept_in_files(entries):
    weight = nn.Parameter(entries)
    file = io.BytesIO()
    tl.save(weight, file)
    file.seek(0)
    for found in (tl.load(file), pickle.loads(pickle.dumps(weight))):
        assert isinstance(found, nn.Parameter) and found.requires_grad
        assert found.layout is entries.layout
        assert_close(found.detach().to_dense(), DENSE)


def test_optimizers_of_dense_ones_refuse_them(entries):
    weight = nn.Parameter(entries)
    with pytest.raises(ValueError, match="SparseAdam requires dense parameter tensors"):
        tl.optim.SparseAdam([weight])
    (weight @ FEATURES).sum().backward()
    with pytest.raises(RuntimeError, match="Adam does not support sparse gradients"):
        tl.optim.Adam([weight]).step()
