"""Sparse matrices by rows (CSR) and by columns (CSC): entries, layouts of results, gradients."""

import copy
import pickle

import numpy as np
import pytest

import tensorlib as tl

DENSE = np.array([[0.0, 1, 0], [2, 0, 3], [0, 0, 0], [4, 5, 6]])
RIGHT = np.arange(6.0).reshape(3, 2)
LAYOUTS = {"csr": tl.sparse_csr, "csc": tl.sparse_csc}


@pytest.fixture(params=LAYOUTS)
def kind(request):
    return request.param


@pytest.fixture
def a(kind):
    return tl.tensor(DENSE).to_sparse(layout=LAYOUTS[kind])


def assert_same(x, wanted, layout=tl.strided):
    assert x.layout is layout
    assert np.array_equal(x.to_dense().detach().numpy(), wanted)


def test_entries_lie_in_order_of_rows_or_of_columns():
    rows = tl.tensor(DENSE).to_sparse_csr()
    assert rows.crow_indices().tolist() == [0, 1, 3, 3, 6]
    assert rows.col_indices().tolist() == [1, 0, 2, 0, 1, 2]
    assert rows.values().tolist() == [1, 2, 3, 4, 5, 6]
    columns = tl.tensor(DENSE).to_sparse_csc()
    assert columns.ccol_indices().tolist() == [0, 2, 4, 6]
    assert columns.row_indices().tolist() == [1, 3, 0, 3, 1, 3]
    assert columns.values().tolist() == [2, 4, 1, 5, 3, 6]
    assert rows.is_sparse_csr and not columns.is_sparse_csr
    for x in (rows, columns):
        assert not x.is_sparse and (x._nnz(), x.sparse_dim(), x.dense_dim()) == (6, 2, 0)


def test_parts_of_other_layouts_are_refused(a, kind):
    others = ("ccol_indices", "row_indices") if kind == "csr" else ("crow_indices", "col_indices")
    for name in ("indices", "is_coalesced", "coalesce", *others):
        with pytest.raises(RuntimeError, match=name):
            getattr(a, name)()
    for name in ("crow_indices", "col_indices", "ccol_indices", "row_indices"):
        with pytest.raises(RuntimeError, match=f"{name}: .* got tensorlib.sparse_coo"):
            getattr(a.to_sparse(), name)()


def test_layouts_are_brought_to_each_other(a, kind):
    assert a.to_sparse(layout=a.layout) is a
    for name, layout in {**LAYOUTS, "coo": tl.sparse_coo}.items():
        assert_same(a.to_sparse(layout=layout), DENSE, layout)
        assert_same(getattr(a, f"to_sparse_{name}")(), DENSE, layout)
        assert_same(tl.tensor(DENSE).to_sparse().to_sparse(layout=layout), DENSE, layout)
    with pytest.raises(RuntimeError, match="layout must be"):
        a.to_sparse(layout=tl.strided)
    with pytest.raises(RuntimeError, match="expected a matrix"):
        tl.ones(2).to_sparse_csr()
    assert a.to_sparse(2).layout is tl.sparse_coo
    with pytest.raises(RuntimeError, match="keeps its 2 sparse and 0 dense dims, got 1"):
        a.to_sparse(1)


@pytest.mark.parametrize("dtype", [tl.int32, tl.int64])
def test_matrices_of_bounds_keep_their_values_and_the_dtype_of_positions(dtype):
    values = tl.tensor([1.0, 2.0, 3.0])
    bounds, others = tl.tensor([0, 1, 3], dtype=dtype), tl.tensor([1, 0, 1], dtype=dtype)
    x = tl.sparse_csr_tensor(bounds, others, values, (2, 2))
    assert_same(x, [[0, 1], [2, 3]], tl.sparse_csr)
    assert x.crow_indices().dtype is dtype and (x * 2).col_indices().dtype is dtype
    values[0] = 7
    assert_same(x, [[0, 7], [2, 3]], tl.sparse_csr)
    for layout in LAYOUTS.values():
        y = tl.sparse_compressed_tensor(bounds, others, values, layout=layout)
        assert y.layout is layout
    assert_same(y, [[0, 2], [7, 3]], tl.sparse_csc)
    with pytest.raises(RuntimeError, match="layout must be"):
        tl.sparse_compressed_tensor(bounds, others, values)


@pytest.mark.parametrize("make", [
    lambda a: a + a, lambda a: a - a, lambda a: a * a, lambda a: a * 2, lambda a: a / 2,
    lambda a: 2 * a, lambda a: -a, lambda a: a.sin(), lambda a: a.relu(), lambda a: a.pow(2),
    lambda a: a.clone(), lambda a: a.detach(), lambda a: tl.zeros_like(a),
    lambda a: a.conj(), lambda a: a.float(), lambda a: a.sum(1, keepdim=True),
    lambda a: tl.cat([a, a]), lambda a: a.narrow(0, 1, 2),
    lambda a: a.index_select(1, tl.tensor([2, 0])),
], ids=range(19))
def test_a_sparse_result_has_the_layout_of_its_argument(make, a):
    x = tl.tensor(DENSE)
    assert_same(make(a), make(x).numpy(), a.layout)


def test_a_transposed_matrix_lies_by_the_other_dim(a, kind):
    other = LAYOUTS["csc" if kind == "csr" else "csr"]
    for turned in (a.t(), a.T, a.mT, a.transpose(0, 1), a.permute(1, 0), a.adjoint()):
        assert_same(turned, DENSE.T, other)
        assert turned.values() is a.values() or turned.values().data_ptr() == a.values().data_ptr()
    assert a.permute(0, 1) is a


def test_products(a):
    right, square = tl.tensor(RIGHT), tl.eye(3, dtype=tl.float64)
    for found in (a @ right, tl.mm(a, right), tl.sparse.mm(a, right), (right.t() @ a.t()).t(),
                  tl.addmm(tl.zeros(4, 2, dtype=tl.float64), a, right),
                  tl.nn.functional.linear(right.t(), a).t()):
        assert_same(found, DENSE @ RIGHT)
    assert_same(a @ right[:, 1], DENSE @ RIGHT[:, 1])
    for other in (square.to_sparse(), square.to_sparse_csr(), square.to_sparse_csc()):
        assert_same(a @ other, DENSE, a.layout)
    assert_same(tl.sparse.sampled_addmm(a, tl.ones(4, 2, dtype=tl.float64), right.t()),
                DENSE + (RIGHT.sum(1) * (DENSE != 0)), a.layout)


def test_elements_at_the_positions_of_a_matrix(a):
    x = tl.tensor(DENSE)
    assert_same(a * x, DENSE * DENSE, a.layout)
    assert_same((x + 1).sparse_mask(a), (DENSE + 1) * (DENSE != 0), a.layout)
    assert_same(tl.ones_like(a), DENSE != 0, a.layout)
    assert_same(a + x, DENSE * 2)
    assert a.sum().item() == 21 and a.any().item() and a.norm().item() == x.norm().item()
    assert_same(a[1], DENSE[1], tl.sparse_coo)
    assert_same(a[:, 1], DENSE[:, 1], tl.sparse_coo)
    assert a[3, 2].item() == 6


@pytest.mark.parametrize("other", [tl.sparse_coo, tl.sparse_csr, tl.sparse_csc], ids=str)
def test_sums_and_products_of_matrices_with_other_positions(a, other):
    y = np.array([[0.0, 0, 7], [2, 9, 0], [0, 0, 0], [0, 0, 8]])
    b = tl.tensor(y).to_sparse(layout=other)
    assert_same(a + b, DENSE + y, a.layout)
    assert_same(a - b, DENSE - y, a.layout)
    assert_same(b + a, DENSE + y, other)
    assert_same(a * b, DENSE * y, a.layout)
    assert (a + b)._nnz() == 8 and (a * b)._nnz() == 2
    assert_same(a + tl.zeros_like(a), DENSE, a.layout)
    assert (a.float() + b).dtype is (b.float() + a).dtype is tl.float64
    with pytest.raises(RuntimeError, match="one shape"):
        a + b.t()
    with pytest.raises(RuntimeError, match="one shape"):
        a * b.t()


def test_gradients_of_sums_with_other_positions(kind):
    x = tl.tensor(DENSE, requires_grad=True)
    y = tl.tensor(DENSE.T[[0, 1, 2, 0]][:, :3].copy(), requires_grad=True)
    layout = LAYOUTS[kind]
    weights = tl.arange(12.0, dtype=tl.float64).reshape(4, 3)
    ((x.to_sparse(layout=layout) + y.to_sparse(layout=layout)) * weights).sum().backward()
    for z in (x, y):
        assert tl.equal(z.grad, weights * (z.detach() != 0))


def test_matrices_are_written_in_place(a):
    twice = a.clone()
    assert twice.mul_(2) is twice
    assert_same(twice, DENSE * 2, a.layout)
    assert_same(twice.copy_(a.to_sparse()), DENSE, a.layout)
    assert_same(twice.add_(a), DENSE * 2, a.layout)
    assert_same(twice.neg_(), DENSE * -2, a.layout)
    assert_same(twice.zero_(), DENSE * 0, a.layout)
    assert_same(a, DENSE, a.layout)
    assert_same(tl.ones(4, 3, dtype=tl.float64).add_(a), DENSE + 1)
    with pytest.raises(TypeError, match="copy_"):
        twice.copy_(tl.ones(4, 3, dtype=tl.float64))


def test_gradients_flow_to_values_and_to_dense_tensors(kind):
    x = tl.tensor(DENSE, requires_grad=True)
    a, right = x.to_sparse(layout=LAYOUTS[kind]), tl.tensor(RIGHT, requires_grad=True)
    (a.t().sin().t() @ right).sum().backward()
    assert np.allclose(x.grad.numpy(), np.cos(DENSE) * RIGHT.sum(1) * (DENSE != 0))
    assert np.allclose(right.grad.numpy(), np.sin(DENSE).sum(0)[:, None].repeat(2, 1))
    leaf = a.detach().requires_grad_()
    (leaf @ tl.tensor(RIGHT)).sum().backward()
    assert_same(leaf.grad, RIGHT.sum(1) * (DENSE != 0), LAYOUTS[kind])


def test_copies_and_pickles(a):
    for made in (copy.deepcopy(a), copy.copy(a), pickle.loads(pickle.dumps(a))):
        assert_same(made, DENSE, a.layout)
        assert type(made) is type(a)


def test_a_matrix_is_shown_by_its_parts():
    x = tl.sparse_csr_tensor([0, 1, 3], [1, 0, 1], [1.0, 2.0, 3.0], (2, 2))
    assert repr(x) == (
        "tensor(crow_indices=tensor([0, 1, 3]),\n"
        "       col_indices=tensor([1, 0, 1]),\n"
        "       values=tensor([1., 2., 3.]), size=(2, 2), nnz=3,\n"
        "       layout=tensorlib.sparse_csr)")
    assert repr(x.double().requires_grad_().to_sparse_csc()).endswith(
        "nnz=3,\n       dtype=tensorlib.float64, layout=tensorlib.sparse_csc,\n"
        "       grad_fn=<GetitemBackward0>)")
    assert repr(tl.zeros(2, 2, dtype=tl.float64).to_sparse()) == (
        "tensor(indices=tensor([], size=(2, 0)),\n"
        "       values=tensor([], size=(0,)),\n"
        "       size=(2, 2), nnz=0, dtype=tensorlib.float64,\n"
        "       layout=tensorlib.sparse_coo)")


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0), (1, 1)])
def test_matrices_without_entries(shape, kind):
    x = tl.zeros(shape).to_sparse(layout=LAYOUTS[kind])
    assert_same(x, np.zeros(shape), LAYOUTS[kind])
    assert_same(x.t(), np.zeros(shape[::-1]), tl.sparse_csc if kind == "csr" else tl.sparse_csr)
    assert_same(x @ tl.ones(shape[1], 2), np.zeros((shape[0], 2)))
    assert_same(x + x, np.zeros(shape), LAYOUTS[kind])
