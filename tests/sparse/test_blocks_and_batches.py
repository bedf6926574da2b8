"""Layouts of blocks (BSR, BSC), batches of matrices and values with dims: as dense tensors are."""

import copy
import io
import pickle

import numpy as np
import pytest

import tensorlib as tl
from tensorlib.sparse import as_sparse_gradcheck, check_sparse_tensor_invariants
from tensorlib.testing import assert_close

RNG = np.random.default_rng(3)
LAYOUTS = {"csr": tl.sparse_csr, "csc": tl.sparse_csc, "bsr": tl.sparse_bsr, "bsc": tl.sparse_bsc}
FILLED = np.array([[1, 0, 1], [0, 0, 1], [1, 1, 0], [0, 1, 1]], bool)


def dense_of(batch=(), dense=()):
    """A matrix, or a batch of them with as many entries each, of (8, 9) with blocks of (2, 3)."""
    whole = RNG.normal(size=(*batch, 8, 9, *dense))
    filled = FILLED.repeat(2, 0).repeat(3, 1).reshape(8, 9, *[1] * len(dense))
    return tl.tensor(np.where(filled, whole, 0))


@pytest.fixture(params=LAYOUTS)
def kind(request):
    return request.param


def made(x, kind, dense=0):
    block = (2, 3) if kind[0] == "b" else None
    return x.to_sparse(layout=LAYOUTS[kind], blocksize=block, dense_dim=dense)


@pytest.mark.parametrize("batch", [(), (2,), (2, 3)], ids=str)
@pytest.mark.parametrize("dense", [(), (2,)], ids=str)
def test_forms_and_parts(kind, batch, dense):
    x = dense_of(batch, dense)
    a = made(x, kind, len(dense))
    blocked, by_rows = kind[0] == "b", kind[2] == "r"
    lines = (8 if by_rows else 9) // ((2 if by_rows else 3) if blocked else 1)
    count = 7 if blocked else 42
    bounds, others = (a.crow_indices(), a.col_indices()) if by_rows else (
        a.ccol_indices(), a.row_indices())
    assert bounds.shape == (*batch, lines + 1) and others.shape == (*batch, count)
    assert a.values().shape == (*batch, count, *((2, 3) if blocked else ()), *dense)
    assert (a.sparse_dim(), a.dense_dim(), a._nnz()) == (2, len(dense), count)
    assert tl.equal(a.to_dense(), x)
    again = tl.sparse_compressed_tensor(bounds, others, a.values(), a.shape, layout=a.layout)
    assert again.layout is a.layout and tl.equal(again.to_dense(), x)
    for other in LAYOUTS:
        block = (2, 3) if other[0] == "b" else None
        found = a.to_sparse(layout=LAYOUTS[other], blocksize=block)
        assert found.layout is LAYOUTS[other] and tl.equal(found.to_dense(), x)
        assert found.values().shape == made(x, other, len(dense)).values().shape
    coo = a.to_sparse()
    assert coo.layout is tl.sparse_coo and tl.equal(coo.to_dense(), x)


def test_operations_keep_the_layout(kind):
    x, other = dense_of((2,)), dense_of((2,))
    a = made(x, kind)
    for found, wanted in (
            (a * 2, x * 2), (-a, -x), (a.sin(), x.sin()), (a / 4, x / 4), (a * other, x * other),
            (a + made(other, kind), x + other), (a - a, x - x), (a * made(other, kind), x * other),
            (a.float(), x.float()), (a.clone(), x), (tl.zeros_like(a), tl.zeros_like(x)),
            (a[1], x[1]), (a.select(0, -1), x[1])):
        assert found.layout is a.layout and tl.equal(found.to_dense(), wanted)
    assert_close(a.sum(), x.sum())
    for turned in (a.transpose(1, 2), a.mT, a.transpose(-1, -2)):
        assert tl.equal(turned.to_dense(), x.mT) and turned.layout is not a.layout
    with pytest.raises(RuntimeError, match="each among themselves"):
        a.transpose(0, 1)
    with pytest.raises(RuntimeError, match="expected a sparse matrix"):
        a.t()


def test_products_and_their_gradients(kind):
    x, right = dense_of(), tl.tensor(RNG.normal(size=(9, 4)))
    a = made(x, kind).requires_grad_()
    for product in (lambda a, y: a @ y, tl.mm, tl.sparse.mm, lambda a, y: (y.t() @ a.t()).t(),
                    lambda a, y: tl.addmm(tl.ones(8, 4, dtype=tl.float64), a, y, alpha=2)):
        assert_close(product(a.detach(), right), product(x, right))
        assert as_sparse_gradcheck(tl.autograd.gradcheck)(product, (a, right.requires_grad_()))
        right = right.detach()
    assert_close(a.detach() @ right[:, 1], x @ right[:, 1])
    assert_close(tl.addmv(tl.ones(8, dtype=tl.float64), a.detach(), right[:, 1], beta=3),
                 x @ right[:, 1] + 3)
    batch = dense_of((2,))
    assert_close(made(batch, kind) @ right.expand(2, 9, 4), batch @ right)


def test_gradients_reach_dense_tensors(kind):
    x = dense_of().requires_grad_()
    (made(x, kind) * 3).to_dense().sum().backward()
    assert tl.equal(x.grad, (x != 0) * 3.0)


@pytest.mark.parametrize("reduce", ["mean", "amax", "amin"])
def test_rows_of_products_may_be_reduced(kind, reduce):
    x, right = dense_of(), tl.tensor(RNG.normal(size=(9, 4)))
    terms = (x.unsqueeze(2) * right).numpy()
    number = {"mean": np.nanmean, "amax": np.nanmax, "amin": np.nanmin}[reduce]
    wanted = number(np.where((x != 0).numpy()[..., None], terms, np.nan), 1)
    assert_close(tl.sparse.mm(made(x, kind), right, reduce), tl.tensor(wanted))
    with pytest.raises(TypeError, match="got 'prod'"):
        tl.sparse.mm(made(x, kind), right, "prod")


def test_texts_and_files(kind):
    a = made(dense_of((2,), (1,)), kind, 1)
    file = io.BytesIO()
    tl.save(a, file)
    file.seek(0)
    for found in (tl.load(file), pickle.loads(pickle.dumps(a)), copy.deepcopy(a)):
        assert found.layout is a.layout and found.shape == a.shape
        assert tl.equal(found.to_dense(), a.to_dense())
    assert repr(a).endswith(f"layout=tensorlib.sparse_{kind})")


@pytest.mark.parametrize("dim", [0, 1, (0, 1)])
def test_sums_over_dims(kind, dim):
    x = dense_of()
    x[:2] = 0                                          # rows without entries
    found = made(x, kind).sum(dim, keepdim=True)
    assert_close(found.to_dense(), x.sum(dim, keepdim=True))
    if kind[0] == "c":
        assert found.layout is LAYOUTS[kind]


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (2, 0), (2, 3)], ids=str)
def test_matrices_without_entries(kind, shape):
    x = tl.zeros(shape)
    block = (1, 1) if kind[0] == "b" else None
    a = x.to_sparse(layout=LAYOUTS[kind], blocksize=block)
    assert a._nnz() == 0 and tl.equal(a.to_dense(), x)
    assert tl.equal((a * 2).to_sparse().to_sparse(layout=a.layout, blocksize=block).to_dense(), x)
    assert (a @ tl.zeros(shape[1], 2)).shape == (shape[0], 2)


def test_what_does_not_fit_is_refused():
    x = dense_of()
    for call, text in (
            (lambda: x.to_sparse_bsr((3, 3)), "must be divisible by given blocksize"),
            (lambda: x.to_sparse_bsc((0, 3)), "two sizes above 0"),
            (lambda: x.to_sparse(layout=tl.sparse_csr, blocksize=(2, 3)), "takes no blocksize"),
            (lambda: tl.stack([x, x * 0]).to_sparse_csr(), "same number of entries"),
            (lambda: x.to_sparse_csr(dense_dim=1), "expected a matrix or a batch"),
            (lambda: tl.sparse_bsr_tensor([0, 1], [0], [1.0]), "expected bounds"),
            (lambda: tl.sparse_bsr_tensor([0, 1], [1], tl.ones(1, 2, 2), (2, 3)), "does not fit"),
            (lambda: tl.sparse_csr_tensor([[0, 1], [0, 2]], [[0], [0]], tl.ones(2, 1)), "ascend")):
        with pytest.raises(RuntimeError, match=text):
            call()


def test_places_out_of_order_are_put_in_order_or_refused(kind):
    values = tl.tensor([[[1.0]], [[2.0]]]) if kind[0] == "b" else tl.tensor([1.0, 2.0])

    def make(**options):
        return tl.sparse_compressed_tensor([0, 2], [1, 0], values, layout=LAYOUTS[kind], **options)

    assert make().values().flatten().tolist() == [2, 1]
    with pytest.raises(RuntimeError, match="must ascend"):
        make(check_invariants=True)
    with check_sparse_tensor_invariants():
        assert check_sparse_tensor_invariants.is_enabled()
        with pytest.raises(RuntimeError, match="must ascend"):
            make()
        make(check_invariants=False)
    check_sparse_tensor_invariants(enable=True)(
        lambda: pytest.raises(RuntimeError, make))()
    check_sparse_tensor_invariants.enable()
    try:
        with check_sparse_tensor_invariants(False):
            make()
        assert check_sparse_tensor_invariants.is_enabled()
    finally:
        check_sparse_tensor_invariants.disable()
    with pytest.raises(TypeError, match="enable must be a bool"):
        check_sparse_tensor_invariants("yes")
    entered = check_sparse_tensor_invariants()
    with entered, pytest.raises(RuntimeError, match="entered already"):
        entered.__enter__()


def test_positions_of_int32_stay_so(kind):
    bounds, others = tl.tensor([0, 1, 2], dtype=tl.int32), tl.tensor([1, 0], dtype=tl.int32)
    values = tl.ones(2, 1, 1) if kind[0] == "b" else tl.ones(2)
    a = tl.sparse_compressed_tensor(bounds, others, values, layout=LAYOUTS[kind])
    for x in (a, a * 2, a.to_sparse_csr(), a.to_sparse_bsr((1, 1))):
        parts = (x.crow_indices, x.col_indices) if x.layout in (
            tl.sparse_csr, tl.sparse_bsr) else (x.ccol_indices, x.row_indices)
        assert all(part().dtype is tl.int32 for part in parts)


def test_zeros_of_a_layout():
    for layout in (tl.sparse_coo, tl.sparse_csr, tl.sparse_csc):
        for x in (tl.zeros(2, 3, layout=layout), tl.empty((2, 3), layout=layout, dtype=tl.float64)):
            assert x.layout is layout and x._nnz() == 0 and tl.equal(
                x.to_dense(), tl.zeros(2, 3, dtype=x.dtype))
    for layout in (tl.sparse_bsr, "coo"):
        with pytest.raises(TypeError, match="layout must be"):
            tl.zeros(2, 3, layout=layout)


def test_gradients_given_to_sparse_results(kind):
    x, weights = dense_of(), tl.tensor(RNG.normal(size=(8, 9)))
    for gradient in (weights, made(weights * (x != 0), kind)):
        a = made(x, kind).requires_grad_()
        (a * a).backward(gradient)
        assert_close(a.grad.to_dense(), 2 * x * weights)
    with pytest.raises(RuntimeError, match="expected a gradient of shape"):
        a.backward(weights[1:])


@pytest.mark.parametrize("shape", [(1, 0, 2), (1, 2, 0), (1, 0, 0)])
def test_blocks_have_elements(shape):
    with pytest.raises(RuntimeError, match="sparse_bsr_tensor: blocks must have elements"):
        tl.sparse_bsr_tensor([0, 1], [0], tl.zeros(shape), (0, 0))


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr"])
def test_a_product_is_not_broadcast_to_what_it_is_added_to(layout):
    a, x = tl.ones(1, 3).to_sparse(layout=getattr(tl, layout)), tl.ones(3, 3)
    with pytest.raises(RuntimeError, match="expand"):
        tl.addmm(x, a, x)
    with pytest.raises(RuntimeError, match="addmm: expected a product of 2 dims"):
        tl.addmm(x, a, tl.ones(3))
    with pytest.raises(RuntimeError, match="expand"):
        tl.addmv(tl.ones(3), a, tl.ones(3))
    assert tl.addmm(tl.tensor(1.0), a, x).tolist() == [[4, 4, 4]]
