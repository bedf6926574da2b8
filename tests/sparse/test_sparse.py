"""Sparse tensors: entries, products, softmax, gradients, and what is refused."""

import copy
import pickle

import numpy as np
import pytest

import tensorlib as tl
from tensorlib.sparse import SparseTensor

RNG = np.random.default_rng(0)
INDICES = RNG.integers(0, [[5], [7]], (2, 12))          # some of them twice
VALUES = RNG.normal(size=12)
DENSE = np.zeros((5, 7))
np.add.at(DENSE, tuple(INDICES), VALUES)
RIGHT = RNG.normal(size=(7, 3))


@pytest.fixture
def a():
    return tl.sparse_coo_tensor(INDICES, VALUES, (5, 7))


def assert_same(x, wanted):
    assert np.allclose(x.to_dense().detach().numpy(), wanted)


def test_entries_are_in_order_and_added_up_once_coalesced(a):
    with pytest.raises(RuntimeError, match="uncoalesced"):
        a.indices()
    b = a.coalesce()
    flat = (b.indices()[0] * 7 + b.indices()[1]).tolist()
    assert flat == sorted(set(flat)) and b.is_coalesced() and b.coalesce() is b
    assert_same(a, DENSE)
    assert_same(b, DENSE)
    assert (a._nnz(), a.sparse_dim(), a.dense_dim(), a.shape) == (12, 2, 0, (5, 7))
    assert a.is_sparse and a.layout is tl.sparse_coo and a.device == tl.device("cpu")


def test_forms_of_a_dense_tensor():
    x = tl.tensor(DENSE)
    b = x.to_sparse()
    assert_same(b, DENSE)
    assert tl.equal(b.to_sparse_csr().to_dense(), x)
    pair = tl.tensor([[0.0, 0.0], [1.0, 2.0]]).to_sparse(1)
    assert pair.indices().tolist() == [[1]] and pair.values().tolist() == [[1.0, 2.0]]
    rows = b.to_sparse_csr()
    csr = tl.sparse_csr_tensor(rows.crow_indices(), rows.col_indices(), rows.values(), (5, 7))
    assert_same(csr, DENSE)
    assert tl.equal(csr.values(), b.values())
    assert tl.equal(csr.to_sparse().indices(), b.indices())
    unsorted = tl.tensor([2.0, 3.0, 4.0], requires_grad=True)
    (tl.sparse_csr_tensor([0, 3], [1, 0, 1], unsorted).values() * tl.tensor([1.0, 5.0])
     ).sum().backward()                              # positions in order, and each there once
    assert unsorted.grad.tolist() == [5.0, 1.0, 5.0]
    assert x.to_dense() is x
    turned = tl.tensor(np.ascontiguousarray(DENSE.T)).to_sparse_csr()
    assert_same(tl.sparse_csc_tensor(turned.crow_indices(), turned.col_indices(), turned.values()),
                DENSE)
    with pytest.raises(RuntimeError, match="does not fit to 7 columns"):
        tl.sparse_csc_tensor(turned.crow_indices(), turned.col_indices(), turned.values(), (7, 5))
    begins = tl._convert_indices_from_coo_to_csr(b.indices()[0], 5, out_int32=True)
    assert begins.dtype is tl.int32 and tl.equal(begins.long(), csr.crow_indices())
    for transpose, expected in ((False, b.indices()), (True, b.indices().flip(0))):
        assert tl.equal(expected, tl._convert_indices_from_csr_to_coo(
            csr.crow_indices(), csr.col_indices(), transpose=transpose))
    with pytest.raises(RuntimeError, match="vector of rows"):
        tl._convert_indices_from_coo_to_csr(tl.ones(2, 2, dtype=tl.int64), 5)
    for wrong in (float("inf"), 1.0, True, "1"):
        with pytest.raises(TypeError, match="to_sparse: sparse_dim must be an int"):
            x.to_sparse(wrong)


def test_sums_and_multiples(a):
    assert_same(a + a, 2 * DENSE)
    assert_same(a - a, 0 * DENSE)
    assert_same(3 * a / 2, 1.5 * DENSE)
    assert_same(-a, -DENSE)
    assert_same(tl.tensor(DENSE) + a, 2 * DENSE)
    assert_same(a * tl.tensor(DENSE), DENSE * DENSE)
    assert_same(a * a, DENSE * DENSE)
    assert_same(tl.zeros_like(a), 0 * DENSE)
    assert_same(a.abs(), np.abs(DENSE))
    assert_same(tl.sparse.sum(a, 1), DENSE.sum(1))
    assert np.isclose(a.sum().item(), DENSE.sum())


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64"])
def test_products_in_every_dtype(dtype):
    of = tl.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [1, 2, 3], (2, 3), dtype=getattr(tl, dtype))
    x = tl.tensor([[1, 2], [3, 4], [5, 6]], dtype=getattr(tl, dtype))
    wanted = [[5, 6], [17, 22]]
    for found in (of @ x, tl.mm(of, x), tl.sparse.mm(of, x), tl.spmm(of, x), (x.t() @ of.t()).t()):
        assert found.tolist() == wanted and found.dtype == x.dtype
    assert (of @ x[:, 0]).tolist() == [5, 17]
    assert (of @ of.t()).to_dense().tolist() == [[1, 3], [3, 13]]
    assert tl.addmm(tl.ones(2, 2, dtype=x.dtype), of, x, alpha=2).tolist() == [[11, 13], [35, 45]]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("width", [1, 3, 4, 8, 13, 32, 63, 70])
def test_products_of_rows_of_many_entries(width, dtype):
    """Entries that share a row are added together, in their order, wherever they stand."""
    rng = np.random.default_rng(width)
    rows = np.repeat([3, 0, 3, 2], [70, 1, 5, 130])
    columns = rng.integers(0, 9, rows.size)
    values = rng.integers(-5, 6, rows.size).astype(dtype)
    x = rng.integers(-5, 6, (9, width)).astype(dtype)
    wanted = np.zeros((4, width), dtype)
    np.add.at(wanted, rows, values[:, None] * x[columns])
    of = tl.sparse_coo_tensor(np.stack([rows, columns]), values, (4, 9))
    assert ((of @ tl.from_numpy(x)).numpy() == wanted).all()


def test_products_of_a_batch():
    from tensorlib.testing import gradcheck
    indices = tl.tensor([[0, 0, 2, 2], [1, 1, 0, 2], [3, 0, 1, 1]])
    values = tl.tensor([1.0, 2.0, 3.0, 4.0], dtype=tl.float64, requires_grad=True)
    x = tl.randn(3, 4, 5, dtype=tl.float64, requires_grad=True)

    def function(values, x):
        return tl.bmm(tl.sparse_coo_tensor(indices, values, (3, 3, 4)), x)
    a = tl.sparse_coo_tensor(indices, values.detach(), (3, 3, 4))
    assert tl.allclose(function(values, x), a.to_dense() @ x)
    assert gradcheck(function, (values, x))
    for other, error in ((x[:2], RuntimeError), (x[0], RuntimeError), (a, TypeError)):
        with pytest.raises(error, match="bmm"):
            a.bmm(other)


def test_new_makes_one_of_the_same_dtype(a):
    assert a.new().shape == (0,) and a.new().dtype == a.dtype
    made = a.new(tl.tensor([[1], [0]]), tl.tensor([5.0]), (2, 2))
    assert made.dtype == a.dtype and made.to_dense().tolist() == [[0, 0], [5, 0]]


def test_dense_matrices_have_the_sparse_product_too():
    x = tl.ones(2, 2)
    assert tl.spmm(x, x).tolist() == tl.sparse.mm(x, x).tolist() == [[2.0, 2.0], [2.0, 2.0]]


def test_gradients_of_products():
    from tensorlib.testing import gradcheck, gradgradcheck
    values = tl.tensor(VALUES, requires_grad=True)
    x = tl.tensor(RIGHT, requires_grad=True)

    def function(values, x):
        return tl.sparse_coo_tensor(INDICES, values, (5, 7)) @ x
    assert gradcheck(function, (values, x)) and gradgradcheck(function, (values, x))
    a = tl.sparse_coo_tensor(INDICES, VALUES, (5, 7), requires_grad=True)
    (a @ x).sum().backward()
    assert isinstance(a.grad, SparseTensor) and a.grad._nnz() < a._nnz()
    assert tl.equal(a.grad.coalesce().indices(), a.coalesce().indices())
    assert np.allclose(a.grad.values().numpy(), RIGHT.sum(1)[a.grad.indices()[1].numpy()])


def test_what_a_leaf_was_made_of_gets_no_gradients():
    values = tl.ones(2)
    for a in (tl.sparse_coo_tensor([[0, 1], [1, 0]], values, (2, 2)),
              tl.sparse_csr_tensor([0, 1, 2], [1, 0], values)):
        a.requires_grad_()
        (a @ tl.ones(2, 2)).sum().backward()
        assert a.is_leaf and a.grad.values().tolist() == [2, 2]
        assert not values.requires_grad and values.grad is None
        values[0] = 3                                  # they are the same memory
        assert a.requires_grad_(False)._values()[0].item() == 3 and not a.requires_grad
        values[0] = 1


def test_softmax_is_over_entries():
    a = tl.sparse_coo_tensor([[0, 0, 1], [0, 2, 1]], [1.0, 1.0, 5.0], (2, 3))
    assert tl.sparse.softmax(a, 1).to_dense().tolist() == [[0.5, 0, 0.5], [0, 1, 0]]
    logs = tl.sparse.log_softmax(a, -1)
    assert np.allclose(logs.values().numpy(), [np.log(0.5), np.log(0.5), 0])


def test_elements_at_the_positions_of_a_mask():
    x = tl.arange(6.0).reshape(2, 3).requires_grad_()
    for coalesced in (False, True):
        mask = tl.sparse_coo_tensor([[0, 1], [1, 2]], [7.0, 7.0], (2, 3), is_coalesced=coalesced)
        found = x.sparse_mask(mask)
        assert found._values().tolist() == [1.0, 5.0] and found.is_coalesced() is coalesced
    found._values().sum().backward()
    assert x.grad.tolist() == [[0, 1, 0], [0, 0, 1]]
    rows = tl.sparse_coo_tensor([[1]], [[1.0, 1.0]], (2, 2))
    assert tl.ones(2, 2).sparse_mask(rows).to_dense().tolist() == [[0, 0], [1, 1]]
    with pytest.raises(TypeError, match="must be a sparse tensor, got Tensor"):
        x.sparse_mask(x)
    assert mask.sparse_mask(mask.coalesce()).to_dense().equal(mask.to_dense())
    with pytest.raises(RuntimeError, match="shapes must be the same"):
        x.sparse_mask(rows)


def test_positions_are_taken_to_be_in_order_if_it_is_said():
    a = tl.sparse_coo_tensor([[0, 1], [0, 2]], [1.0, 2.0], (2, 3))
    with pytest.raises(RuntimeError, match="uncoalesced"):
        a.values()
    assert a._coalesced_(True) is a and a.values().tolist() == [1.0, 2.0]
    assert not a._coalesced_(False).is_coalesced()


def test_positions_are_checked():
    for indices, values, size in (([[-1], [0]], [1.0], None), ([[5], [0]], [1.0], (5, 7)),
                                  ([[0, 1]], [1.0], None), ([[0]], [1.0], (2, 2))):
        with pytest.raises(RuntimeError, match="sparse_coo_tensor"):
            tl.sparse_coo_tensor(indices, values, size)
    with pytest.raises(RuntimeError, match="ascend"):
        tl.sparse_csr_tensor([0, 3, 2], [0, 1], [1.0, 2.0])
    with pytest.raises(RuntimeError, match="sparse_csr_tensor: size .* does not fit"):
        tl.sparse_csr_tensor([0, 1], [9], [1.0], (1, 2))
    with pytest.raises(TypeError, match="integers"):
        tl.sparse_coo_tensor([[0.5]], [1.0])
    from tensorlib.ops import registry
    with pytest.raises(IndexError, match="outside"):
        registry["sparse_product"].function(
            tl.ones(1), tl.ones(2, 2), tl.tensor([7]), tl.tensor([0]), 2)


@pytest.mark.parametrize("call", [
    lambda a: a.exp(), lambda a: a[[0, 1], [1, 0]], lambda a: a.reshape(-1),
    lambda a: tl.cat([a, a.to_dense()]), lambda a: a ** -1, lambda a: a.norm(dim=1),
    lambda a: a + 1, lambda a: a.numpy(), lambda a: a.tolist(),
    lambda a: np.asarray(a), lambda a: a.zero_().exp_(), lambda a: tl.ones(5, 7).mul_(a),
    lambda a: tl.nn.functional.softplus(a)])
def test_what_is_not_there_says_so_and_names_to_dense(a, call):
    with pytest.raises(TypeError, match="not supported for (dense and )?sparse"):
        call(a)


@pytest.mark.parametrize("function", [
    tl.sparse.sum, lambda x: tl.sparse.softmax(x, 0), lambda x: tl.sparse.log_softmax(x, 0)])
def test_functions_of_sparse_tensors_refuse_dense_ones(function):
    with pytest.raises(RuntimeError, match="sparse.*: expected a sparse tensor, got Tensor"):
        function(tl.ones(2, 2))


def test_copies_and_pickles(a):
    for b in (copy.deepcopy(a), pickle.loads(pickle.dumps(a)), a.clone(), a.detach()):
        assert isinstance(b, SparseTensor)
        assert_same(b, DENSE)
    assert "nnz=12, dtype=tensorlib.float64,\n       layout=tensorlib.sparse_coo" in repr(a)
    lines = repr(tl.eye(30).to_sparse()).splitlines()      # elements lie below each other
    assert lines[0].startswith("tensor(indices=tensor([[ 0,") and lines[1].find("14,") == 24
    assert lines[6].startswith("       values=tensor([1.,") and lines[7].find("1.,") == 22


def test_scipys_matrices():
    scipy_sparse = pytest.importorskip("scipy.sparse")
    matrix = scipy_sparse.csr_matrix(DENSE)
    a = tl.sparse.from_scipy(matrix)
    assert_same(a, DENSE)
    assert np.allclose(tl.sparse.to_scipy(a).tocsr().toarray(), DENSE)


def test_a_module_keeps_sparse_buffers():
    module = tl.nn.Linear(2, 2)
    module.register_buffer("adjacency", tl.eye(2).to_sparse())
    assert module.double().adjacency.dtype == tl.float64
    assert module.adjacency.is_sparse


# ---- embeddings ----------------------------------------------------------------------------------

def table(**options):
    return tl.nn.Embedding.from_pretrained(tl.arange(12.0).reshape(4, 3), freeze=False, **options)


def test_a_sparse_embedding_has_the_gradient_of_a_dense_one():
    indices = tl.tensor([[1, 1], [3, 0]])
    for options in ({}, {"padding_idx": 3}):
        grads = []
        for sparse in (False, True):
            layer = table(sparse=sparse, **options)
            for _ in range(2):
                (layer(indices) ** 2).sum().backward()
            grads.append(layer.weight.grad)
        assert grads[1].is_sparse and not grads[0].is_sparse
        assert tl.equal(grads[0], grads[1].to_dense())


def test_sparse_and_dense_gradients_of_one_table_are_added():
    for first in (True, False):
        layer = table(sparse=True)
        for sparse in (first, not first):
            (layer(tl.tensor([1])) if sparse else layer.weight).sum().backward()
        assert layer.weight.grad.tolist() == [[1] * 3, [2] * 3, [1] * 3, [1] * 3]


def test_sparse_adam_leaves_other_rows_alone():
    layer = table(sparse=True)
    before = layer.weight.detach().clone()
    optimizer = tl.optim.SparseAdam(layer.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        layer(tl.tensor([1, 1])).sum().backward()
        optimizer.step()
    changed = (layer.weight != before).any(1)
    assert changed.tolist() == [False, True, False, False]
    assert np.allclose(layer.weight[1].tolist(), (before[1] - 0.2).tolist(), atol=1e-4)


def test_optimisers_of_dense_gradients_name_sparse_adam():
    layer = table(sparse=True)
    layer(tl.tensor([1])).sum().backward()
    for kind in (tl.optim.Adam, tl.optim.RMSprop, tl.optim.Rprop):
        with pytest.raises(RuntimeError, match="SparseAdam"):
            kind(layer.parameters()).step()
    dense = table()
    dense(tl.tensor([1])).sum().backward()
    with pytest.raises(RuntimeError, match="dense gradients"):
        tl.optim.SparseAdam(dense.parameters()).step()


def test_adagrad_takes_sparse_gradients():
    layer, dense = table(sparse=True), table()
    options = {"lr": 0.5, "lr_decay": 0.1, "maximize": True, "initial_accumulator_value": 0.25}
    made = [tl.optim.Adagrad(each.parameters(), **options) for each in (layer, dense)]
    for rows in ([0, 0, 2], [2, 1, 1]):
        for each, optimizer in zip((layer, dense), made):
            optimizer.zero_grad()
            each(tl.tensor(rows)).square().sum().backward()
            optimizer.step()
    assert np.allclose(layer.weight.tolist(), dense.weight.tolist())
    states = [optimizer.state_dict()["state"][0] for optimizer in made]
    assert states[0]["step"] == states[1]["step"] == 2
    assert np.allclose(states[0]["sum"].tolist(), states[1]["sum"].tolist())
    with pytest.raises(RuntimeError, match="weight_decay"):
        tl.optim.Adagrad(layer.parameters(), weight_decay=0.1).step()


def test_plain_descent_takes_sparse_gradients():
    layer, dense = table(sparse=True), table()
    for each in (layer, dense):
        optimizer = tl.optim.SGD(each.parameters(), lr=0.5)
        each(tl.tensor([0, 0, 2])).sum().backward()
        optimizer.step()
    assert tl.equal(layer.weight, dense.weight)


@pytest.mark.parametrize("options", [
    {}, {"nesterov": True}, {"dampening": 0.5}, {"maximize": True},
    {"nesterov": True, "maximize": True}])
def test_momentum_of_sparse_gradients_is_that_of_dense_ones(options):
    layers = table(sparse=True), table()
    made = [tl.optim.SGD(each.parameters(), lr=0.1, momentum=0.9, **options) for each in layers]
    for rows in ([0, 0, 2], [1, 2], [3, 3]):
        for each, optimizer in zip(layers, made):
            optimizer.zero_grad()
            each(tl.tensor(rows)).square().sum().backward()
            optimizer.step()
        assert np.allclose(layers[0].weight.tolist(), layers[1].weight.tolist(), rtol=1e-5)
    loaded = tl.optim.SGD(layers[0].parameters(), lr=0.1, momentum=0.9)
    loaded.load_state_dict(made[0].state_dict())
    total = loaded.state[layers[0].weight]["momentum_buffer"]
    assert total.is_sparse and np.allclose(
        total.to_dense().tolist(), made[1].state[layers[1].weight]["momentum_buffer"].tolist())


def test_a_momentum_is_of_sparse_gradients_or_of_dense_ones():
    for first in (True, False):
        layer = table(sparse=True)
        optimizer = tl.optim.SGD(layer.parameters(), lr=0.1, momentum=0.9)
        for sparse in (first, not first):
            optimizer.zero_grad()
            (layer(tl.tensor([1])) if sparse else layer.weight).sum().backward()
            before = layer.weight.tolist()
            if sparse is first:
                optimizer.step()
        with pytest.raises((RuntimeError, TypeError), match="dense"):
            optimizer.step()
        assert layer.weight.tolist() == before
    with pytest.raises(RuntimeError, match="weight_decay"):
        tl.optim.SGD(layer.parameters(), lr=0.1, weight_decay=0.1).step()


@pytest.mark.parametrize("args, shown", [
    ((tl.ones(2, 3), 1), "2 dims and int"), (([1], tl.ones(2)), "list and 1 dims"),
    ((tl.ones(2), tl.ones(2)), "1 dims and 1 dims")])
def test_factors_that_are_no_matrices_are_refused_by_what_they_are(args, shown):
    with pytest.raises(TypeError, match=f"takes two matrices and reduce='sum', got {shown} and"):
        tl.sparse.mm(*args)


def test_matrices_of_a_batch_are_transposed():
    dense = tl.arange(12.0).reshape(2, 3, 2).relu()
    assert tl.equal(dense.to_sparse_coo().mT.to_dense(), dense.mT)
    assert tl.equal(dense[1].to_sparse().mT.to_dense(), dense[1].mT)


WRITING = [name for name in dir(tl.Tensor) if name[-1] == "_" and name[0] != "_"]


@pytest.mark.parametrize("layout", [tl.sparse_coo, tl.sparse_csr], ids=str)
@pytest.mark.parametrize("name", WRITING)
def test_what_writes_in_place_writes_or_is_refused(name, layout):
    x = tl.tensor([[0.0, 0.5], [0.25, 0.0]])
    for args in ((), (1,), (0.5,), (0, 1), (x,), (x.to_sparse(),)):
        a, dense = x.to_sparse(layout=layout), x.clone()
        try:
            found = getattr(a, name)(*args)
        except (TypeError, RuntimeError, NotImplementedError, AttributeError, IndexError):
            assert tl.equal(a.to_dense(), x)
            continue
        getattr(dense, name)(*[y.to_dense() if isinstance(y, tl.Tensor) else y for y in args])
        assert found is a and tl.equal(a.to_dense(), dense), args
        assert found.layout is layout


@pytest.mark.parametrize("name", [x for x in WRITING if x not in ("add_", "sub_", "subtract_")])
def test_a_dense_tensor_is_not_written_from_a_sparse_one(name):
    x = tl.ones(2, 2)
    with pytest.raises((TypeError, RuntimeError)):
        getattr(x, name)(tl.eye(2).to_sparse())
    assert tl.equal(x, tl.ones(2, 2))
