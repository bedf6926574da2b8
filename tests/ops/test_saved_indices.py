"""Positions that a graph keeps: nobody else writes to them, and an expanded index stays small."""

from cases import each

import tensorlib as tl

WRITES = {
    "gather": lambda x, index: x.gather(0, index),
    "scatter_add": lambda x, index: tl.zeros(5, 3).scatter_add(0, index, x[:4]),
    "scatter": lambda x, index: tl.zeros(5, 3).scatter(0, index, x[:4]),
    "index_add": lambda x, index: tl.zeros(5, 3).index_add(0, index[:, 0], x[:4]),
}


@each("name", sorted(WRITES))
@each("expanded", [True, False])
def test_an_index_that_is_written_afterwards_changes_no_gradient(name, expanded):
    gradients = []
    for written in (False, True):
        x = tl.arange(15.0).reshape(5, 3).requires_grad_()
        places = tl.tensor([0, 2, -1, 2])
        index = places[:, None].expand(4, 3) if expanded else places[:, None].repeat(1, 3)
        if name == "scatter":
            index = index.abs()
        loss = (WRITES[name](x, index) * tl.arange(12.0 if name == "gather" else 15.0).reshape(
            -1, 3)).sum()
        if written:
            (places if expanded else index).fill_(1)
        loss.backward()
        gradients.append(x.grad)
    assert tl.equal(*gradients)


def test_an_expanded_index_is_kept_without_its_repetitions():
    index = tl.arange(2000)[:, None].expand(2000, 1000)
    own = tl.ops.registry["own_positions"].function(index)
    assert tl.equal(own, index) and own.untyped_storage().nbytes() == 2000 * 8


@each("shape", [(0, 3), (3, 0), (1, 3), (3, 1), ()])
def test_positions_of_any_shape_are_kept(shape):
    index = tl.zeros((), dtype=tl.int32).expand(shape)
    own = tl.ops.registry["own_positions"].function(index)
    assert own.shape == index.shape and own.dtype == index.dtype
    assert own.numel() == 0 or own.data_ptr() != index.data_ptr()
