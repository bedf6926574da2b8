"""Parts of sparse tensors, those beside each other, and writes in place: beside dense ones."""

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib import nn
from tensorlib._core.products import sparse
from tensorlib.sparse.functions import ON_VALUES
from tensorlib.testing import assert_close

RNG = np.random.default_rng(1)
INDICES = RNG.integers(0, [[4], [5], [3]], (3, 20))     # some of them twice
VALUES = RNG.normal(size=(20, 2))
SHAPE = (4, 5, 3, 2)                                    # three sparse dims and a dense one


@pytest.fixture
def a():
    return tl.sparse_coo_tensor(INDICES, VALUES, SHAPE)


CALLS = {
    "row": lambda x: x[1], "last row": lambda x: x[-1, 2], "one": lambda x: x[1, 2, 0],
    "element": lambda x: x[1, 2, 0, 1], "dense dim": lambda x: x[..., 1],
    "slice": lambda x: x[:, 1:4], "second ellipsis": lambda x: x[..., 1, ...],
    "unbind": lambda x: tl.stack(x.unbind(1)), "unbind dense": lambda x: tl.stack(x.unbind(-1)),
    "step": lambda x: x[:, ::-2], "empty": lambda x: x[2:2], "new dims": lambda x: x[None, :, None],
    "new last dim": lambda x: x[..., None], "rows": lambda x: x[tl.tensor([3, 0, 0, -1])],
    "mask": lambda x: x[:, tl.tensor([True, False, True, False, True])],
    "select": lambda x: x.select(3, 0), "narrow": lambda x: x.narrow(1, -3, 3),
    "index_select": lambda x: x.index_select(3, tl.tensor([1, 1, 0])),
    "permute": lambda x: x.permute(2, 0, 1, 3), "transpose": lambda x: x.transpose(0, -2),
    "swapaxes": lambda x: x.swapaxes(0, 1), "movedim": lambda x: x.movedim((0, 3), (1, 3)),
    "moveaxis": lambda x: tl.moveaxis(x, -2, 0), "conj": lambda x: x.conj().resolve_conj(),
    "adjoint": lambda x: x[..., 1].adjoint(),
    "resolve_neg": lambda x: x.conj_physical().resolve_neg(),
    "unsqueeze": lambda x: x.unsqueeze(-1), "cat": lambda x: tl.cat([x, x * 2]),
    "cat of another dim": lambda x: tl.cat([x, x], 2),
    "cat of a dense dim": lambda x: tl.cat([x, x], -1),
    "stack": lambda x: tl.stack([x, x], 1), "stack last": lambda x: tl.stack([x, x], -1),
    "norm": lambda x: x.norm(), "any": lambda x: x.any(), "pow": lambda x: x ** 2,
    "floor": lambda x: x.floor(), "isnan": lambda x: x.isnan(), "erf": lambda x: x.erf(),
    "long": lambda x: (x * 4).long(), "add_": lambda x: x.clone().add_(x),
    "mul_": lambda x: x.clone().mul_(3), "div_": lambda x: x.clone().div_(2),
}


@each("name", CALLS)
def test_a_part_is_that_of_the_dense_tensor(a, name):
    found, wanted = CALLS[name](a), CALLS[name](a.to_dense())
    assert found.shape == wanted.shape and found.dtype == wanted.dtype
    dense = found.to_dense() if found.is_sparse else found
    assert np.allclose(dense.numpy(), wanted.numpy())


def test_gradients_of_parts_reach_the_values():
    values = tl.tensor(VALUES, requires_grad=True)
    a = tl.sparse_coo_tensor(INDICES, values, SHAPE)
    (tl.cat([a[1], a[1:3].transpose(0, 2)[0].transpose(0, 1)[:, :2].transpose(0, 1)][:1])
     .to_dense() * 2).sum().backward()
    assert np.allclose(values.grad.numpy(), 2.0 * (INDICES[0] == 1)[:, None])


@pytest.mark.parametrize("call, error", [
    (lambda a: a[4], IndexError), (lambda a: a[0, 0, 0, 0, 0], IndexError),
    (lambda a: a.index_select(0, tl.tensor([4])), IndexError),
    (lambda a: a.narrow(0, 3, 2), RuntimeError), (lambda a: a.select(4, 0), IndexError),
    (lambda a: a.permute(3, 0, 1, 2), RuntimeError),
    (lambda a: tl.cat([a, a[:, :2]]), RuntimeError),
    (lambda a: a.add_(a.to_dense()), RuntimeError), (lambda a: tl.stack([a, 1]), TypeError)])
def test_what_does_not_fit_is_refused_and_changes_nothing(a, call, error):
    before = a.to_dense()
    with pytest.raises(error):
        call(a)
    assert tl.equal(a.to_dense(), before)


def test_a_leaf_is_not_written_in_place():
    a = tl.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (3,), requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        a.mul_(2)
    with tl.no_grad():
        assert a.mul_(2) is a and a.to_dense().tolist() == [2.0, 4.0, 0.0]


def test_a_size_alone_makes_zeros():
    for made in (tl.sparse_coo_tensor(size=(2, 3)), tl.sparse_coo_tensor((2, 3)),
                 tl.sparse.FloatTensor(2, 3), tl.sparse.FloatTensor((2, 3))):
        assert made.shape == (2, 3) and made.dtype == tl.float32 and made._nnz() == 0
    made = tl.sparse.DoubleTensor(tl.tensor([[0, 2]]), tl.ones(2), (3,))
    assert made.to_dense().tolist() == [1.0, 0.0, 1.0] and made.dtype == tl.float64
    with pytest.raises(TypeError, match="or a size"):
        tl.sparse_coo_tensor(3)


def test_a_product_is_where_both_have_entries(a):
    b = tl.sparse_coo_tensor((INDICES + 1) % [[4], [5], [3]], VALUES, SHAPE)
    for x, y in ((a, b), (b, a), (a, tl.zeros_like(a)), (tl.zeros_like(a), a)):
        assert np.allclose((x * y).to_dense().numpy(), x.to_dense().numpy() * y.to_dense().numpy())
    assert (a * tl.zeros_like(a))._nnz() == 0 and (a * a)._nnz() == a.coalesce()._nnz()
    values = tl.tensor(VALUES, requires_grad=True)
    (tl.sparse_coo_tensor(INDICES, values, SHAPE) * b).to_dense().sum().backward()
    assert np.allclose(values.grad.numpy(), b.to_dense()[tuple(tl.tensor(INDICES))].numpy())
    with pytest.raises(TypeError, match="mul is not supported for sparse and sparse"):
        a * a.to_dense().to_sparse()
    with pytest.raises(RuntimeError, match="shape"):
        a * a[:2]


@pytest.mark.parametrize("write", [
    lambda x, a: x.add_(a), lambda x, a: x.add_(a, alpha=-2), lambda x, a: x.sub_(a, alpha=3),
    lambda x, a: x.sub_(a), lambda x, a: x.add_(a.float())])
def test_a_dense_tensor_takes_the_sum_with_a_sparse_one_in_place(a, write):
    x, wanted = tl.ones(SHAPE, dtype=tl.float64), tl.ones(SHAPE, dtype=tl.float64)
    assert write(x, a) is x
    assert np.allclose(x.numpy(), write(wanted, a.to_dense()).numpy())
    for wrong in (tl.ones(4, 5, 3, 3), tl.ones(SHAPE, dtype=tl.int64)):
        with pytest.raises(RuntimeError):
            write(wrong, a)
    weight = tl.ones(SHAPE, dtype=tl.float64, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        write(weight, a)


def test_zeros_like_keeps_the_shape_and_takes_a_dtype(a):
    zeros = tl.zeros_like(a, dtype=tl.float32)
    assert zeros.is_sparse and zeros.shape == SHAPE and zeros.dtype == tl.float32
    assert zeros._nnz() == 0 and zeros.sparse_dim() == 3
    with pytest.raises(TypeError, match="memory_format"):
        tl.zeros_like(a, memory_format=tl.contiguous_format)


# ---- at the positions of both --------------------------------------------------------------------

A = tl.tensor([[0, 1.0, 0, 2], [3, 0, 0, 0], [0, 0, 4, 5]])
B = tl.tensor([[0, 2.0, 1, 0], [0, 0, 0, 0], [6, 0, 3, 7]])


@pytest.mark.parametrize("b", [B, A, tl.zeros(3, 4)], ids=["some", "all", "none"])
def test_products_of_sparse_tensors_are_at_the_positions_of_both(b):
    x, y = A.to_sparse().requires_grad_(), b.to_sparse().requires_grad_()
    found = x * y
    assert found.to_dense().equal(A * b) and found._nnz() == (A * b != 0).sum()
    found.to_dense().sum().backward()
    assert x.grad.to_dense().equal(b * (A != 0)) and y.grad.to_dense().equal(A * (b != 0))
    twice = tl.sparse_coo_tensor([[0, 0], [1, 1]], [1.0, 2.0], (3, 4))
    assert (twice * A.to_sparse()).to_dense().equal(twice.to_dense() * A)


@pytest.mark.parametrize("other", [tl.arange(4.0), tl.arange(3.0).unsqueeze(1), tl.tensor([2.0])])
def test_a_dense_factor_is_broadcast(other):
    assert (A.to_sparse() * other).to_dense().equal(A * other)
    assert (other * A.to_sparse()).to_dense().equal(A * other)


@pytest.mark.parametrize("error, call", [
    (RuntimeError, lambda: A.to_sparse() * tl.ones(3)),
    (RuntimeError, lambda: A.to_sparse() * B.t().to_sparse()),
    (TypeError, lambda: A.to_sparse() * B.to_sparse(1)),
    (RuntimeError, lambda: tl.sparse.sampled_addmm(A.to_sparse(), tl.ones(3, 2), tl.ones(3, 4))),
    (TypeError, lambda: tl.sparse.sampled_addmm(A, tl.ones(3, 2), tl.ones(2, 4))),
    (RuntimeError, lambda: tl.sparse.spdiags(tl.ones(2, 3), tl.tensor([1, 1]), (3, 3)))])
def test_what_does_not_fit_is_refused(error, call):
    with pytest.raises(error):
        call()


def test_a_sparse_tensor_at_the_positions_of_another():
    x = A.to_sparse().requires_grad_()
    found = x.sparse_mask(B.to_sparse())
    assert found.indices().equal(B.to_sparse().indices())
    assert found.to_dense().equal(A * (B != 0))
    found.to_dense().sum().backward()
    assert x.grad.to_dense().equal(((A != 0) & (B != 0)).float())


def test_a_product_is_sampled_at_positions():
    x, left, right = A.to_sparse().requires_grad_(), tl.rand(3, 2), tl.rand(2, 4)
    found = tl.sparse.sampled_addmm(x, left.requires_grad_(), right, beta=2, alpha=3)
    assert_close(found.to_dense(), 2 * A + 3 * (left @ right) * (A != 0))
    found.to_dense().sum().backward()
    assert_close(left.grad, 3 * (A != 0).float() @ right.t())
    assert x.grad.values().tolist() == [2] * 5


def test_sparse_tensors_of_no_entries_and_of_diagonals():
    for make in (tl.zeros_like, tl.empty_like):
        found = make(A.to_sparse(), dtype=tl.float64)
        assert found.is_sparse and found._nnz() == 0 and found.dtype is tl.float64
        assert found.to_dense().equal(tl.zeros(3, 4).double())
    found = tl.sparse.spdiags(tl.arange(1.0, 9).reshape(2, 4), tl.tensor([0, -1]), (3, 4))
    assert found.to_dense().tolist() == [[1, 0, 0, 0], [5, 2, 0, 0], [0, 6, 3, 0]]


@each("value", [3.0, 0.0])
def test_a_tensor_of_no_dims_is_sparse_by_its_one_value(value):
    x = tl.tensor(value, requires_grad=True)
    y = x.to_sparse()
    assert y.shape == () and y._nnz() == (value != 0) and y.sparse_dim() == y.dense_dim() == 0
    assert (y + y).to_dense().item() == (y * 2).coalesce().to_dense().item() == 2 * value
    y.to_dense().backward()
    assert x.grad.item() == (value != 0)
    meeting = tl.sparse_coo_tensor(tl.zeros(0, 2, dtype=tl.int64), tl.tensor([1.0, 2.0]), ())
    assert meeting.coalesce().values().tolist() == [3.0] and meeting.to_dense().item() == 3


def test_dense_tensors_say_that_they_have_no_positions():
    x = tl.ones(2, 3)
    assert x.sparse_dim() == 0 and x.dense_dim() == 2
    for name in ("coalesce", "is_coalesced", "indices", "values", "crow_indices", "col_indices",
                 "ccol_indices", "row_indices"):
        with pytest.raises(RuntimeError, match=f"^{name}: expected a sparse tensor, got a dense"):
            getattr(x, name)()
    with pytest.raises(RuntimeError, match="to_sparse: sparse_dim must be from 1 to 2, got 0"):
        x.to_sparse(0)


@each("shape, count", [((6, 5, 4), 12), ((40, 30, 50), 300), ((20, 7, 100_000), 60),
                       ((3, 2, 4), 0)])
def test_products_of_two_sparse_matrices(shape, count):
    m, k, n = shape
    rng = np.random.default_rng(count)
    factors = []
    for sizes in ((m, k), (k, n)):
        places = np.stack([rng.integers(0, size, count) for size in sizes])
        factors.append(tl.sparse_coo_tensor(places, rng.uniform(-1, 1, count), sizes))
    a, b = factors
    wanted = a.to_dense() @ b.to_dense()
    found = a @ b
    assert found.is_coalesced()
    places = found.indices()[0] * n + found.indices()[1]
    assert bool((places[1:] > places[:-1]).all())
    for product in (found, a.to_sparse_csr() @ b.to_sparse_csc()):
        assert_close(product.to_dense(), wanted)


def test_meetings_refuse_positions_outside():
    inside, outside = tl.tensor([[0, 1], [1, 0]]), tl.tensor([[0, 1], [1, 2]])
    for a, b in ((outside, inside), (inside, outside)):
        with pytest.raises(IndexError, match="outside of"):
            sparse.meetings(a, b, 2, 2, 2)
    for a, b in ((inside.int(), inside), (inside, inside[0])):
        with pytest.raises(RuntimeError, match="meetings"):
            sparse.meetings(a, b, 2, 2, 2)
    one = tl.ones(2)
    for places in ((outside, inside, inside), (inside, outside, inside), (inside, inside, outside)):
        for part in range(3):
            with pytest.raises(IndexError, match="outside of"):
                sparse.met_sums(one, one, *places, 2, 2, part)
    with pytest.raises(RuntimeError, match="met_sums: expected values"):
        sparse.met_sums(one, tl.ones(3), inside, inside, inside, 2, 2, 2)


@each("dtype", ["int8", "uint8", "int64", "float16", "bfloat16", "float64", "complex64"])
def test_products_of_sparse_matrices_of_all_dtypes(dtype):
    rng = np.random.default_rng(0)
    a, b = (tl.tensor(rng.integers(0, 4, shape) * rng.integers(0, 2, shape)).to(getattr(tl, dtype))
            for shape in ((9, 70), (70, 130)))
    found = a.to_sparse() @ b.to_sparse_csr()
    assert found.dtype is a.dtype
    assert tl.equal(found.to_dense(), a @ b)


@each("shape", [(2, 3), (5, 2, 3), (0, 2, 3), (4, 1, 2, 3), (2, 0, 3)])
def test_dense_batches_times_a_sparse_matrix(shape):
    a = tl.tensor([[0.0, 2.0, 0.0, 1.0], [3.0, 0.0, 0.0, 0.0], [0.0, 0.0, -1.0, 5.0]])
    x = tl.tensor(np.random.default_rng(2).normal(size=shape).astype("float32")).requires_grad_()
    wanted = x @ a
    gradient = tl.autograd.grad(wanted.sum(), x)[0]
    for matrix in (a.to_sparse(), a.to_sparse_csr(), a.to_sparse_csc()):
        found = x @ matrix
        assert_close(found, wanted)
        assert_close(tl.autograd.grad(found.sum(), x)[0], gradient)
        assert_close(tl.nn.functional.linear(x, matrix.t()), wanted)
    with pytest.raises(RuntimeError, match="matmul: sizes do not fit"):
        x[..., :2] @ a.to_sparse()


@each("dtype", ["float64", "complex128"])
def test_gradients_of_products_of_sparse_matrices(dtype):
    rng = np.random.default_rng(0)
    for shapes in (((3, 4), (4, 5)), ((2, 3), (3, 2000)), ((1, 1), (1, 1))):
        a, b = (tl.tensor(rng.uniform(1, 2, shape) * (rng.uniform(0, 1, shape) < 0.6)).to(
            getattr(tl, dtype)).requires_grad_() for shape in shapes)
        gradients = []
        for x, y in ((a.to_sparse(), b.to_sparse()), (a, b)):
            out = x @ y
            out = (out.to_dense() if out.is_sparse else out).abs().square().sum()
            gradients.append(tl.autograd.grad(out, (a, b)))
        for x, found, wanted in zip((a, b), *gradients):
            assert_close(found, wanted * (x.detach() != 0))


@each("sparse", [A.to_sparse(), A.to_sparse_csr()])
def test_buffers_may_be_sparse(sparse):
    with pytest.raises(TypeError, match="takes a dense tensor, got one of tensorlib.sparse_c"):
        nn.Buffer(sparse)
    layer = nn.Linear(4, 3, bias=False)
    del layer.weight
    layer.register_buffer("weight", sparse)
    assert_close(layer(tl.ones(2, 4)), tl.ones(2, 4) @ A.t())
    assert layer.state_dict()["weight"].layout is sparse.layout


@each("name", [name for name in ON_VALUES if hasattr(tl.Tensor, f"{name}_")])
def test_functions_of_values_write_over_sparse_tensors(name):
    for x in ((A / 9).to_sparse(), (A / 9).to_sparse_csr()):
        want, out = getattr(tl, name)(A / 9), tl.zeros_like(x)
        assert getattr(tl, name)(x, out=out) is out
        assert getattr(x, name + "_")() is x
        assert x.to_dense().equal(want) and out.to_dense().equal(want)
