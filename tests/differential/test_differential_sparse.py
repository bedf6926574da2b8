"""Sparse tensors against PyTorch: entries, products with their gradients, softmax, optimisers."""

import warnings

import numpy as np
import pytest
from cases import each
from peer import disagreement, run

import tensorlib as tl

torch = pytest.importorskip("torch")

RNG = np.random.default_rng(0)
INDICES, VALUES = RNG.integers(0, [[5], [7]], (2, 12)), RNG.normal(size=12)
RIGHT, TABLE = RNG.normal(size=(7, 3)), RNG.normal(size=(6, 3))

CALLS = {
    "mm": lambda t, a, x: t.sparse.mm(a, x), "spmm": lambda t, a, x: t.spmm(a, x),
    "@": lambda t, a, x: a @ x, "vector": lambda t, a, x: t.matmul(a, x[:, 0]),
    "reflected": lambda t, a, x: x.t() @ a.t(), "batch": lambda t, a, x: x.t()[None] @ a.t(),
    "dense": lambda t, a, x: a.to_dense(),
    "values": lambda t, a, x: a.coalesce().values(),
    "softmax": lambda t, a, x: t.sparse.softmax(a.coalesce(), 1).to_dense(),
    "log_softmax": lambda t, a, x: t.sparse.log_softmax(a.coalesce(), 0).to_dense(),
    "sum": lambda t, a, x: t.sparse.sum(a, 1).to_dense(),
    "add": lambda t, a, x: (a + a).to_dense(), "scaled": lambda t, a, x: (a * 2 / 3).to_dense(),
    "sparse": lambda t, a, x: t.sparse.mm(a, a.t()).to_dense(),
}


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@each("key", CALLS)
def test_values_and_gradients(key):
    found = []
    for t in (tl, torch):
        values, x = (t.tensor(v, requires_grad=True) for v in (VALUES, RIGHT))
        out = CALLS[key](t, t.sparse_coo_tensor(t.tensor(INDICES), values, (5, 7)), x)
        (out * out).sum().backward()
        found.append([out, values.grad] + [x.grad] * (x.grad is not None))
    assert len(found[0]) == len(found[1])
    for mine, other in zip(*found):
        np.testing.assert_allclose(mine.detach().numpy(), other.detach().numpy(), atol=1e-12)


@pytest.mark.parametrize("name, options", [
    ("SparseAdam", {"lr": 0.1}), ("SparseAdam", {"lr": 0.1, "maximize": True}),
    ("SGD", {"lr": 0.1}), ("Adagrad", {"lr": 0.1, "lr_decay": 0.2})])
def test_steps_on_sparse_gradients(name, options):
    found = []
    for t in (tl, torch):
        layer = t.nn.Embedding.from_pretrained(t.tensor(TABLE), freeze=False, sparse=True)
        optimizer = getattr(t.optim, name)(layer.parameters(), **options)
        for step in range(4):
            optimizer.zero_grad()
            (layer(t.tensor([[1, 1], [3, step]])) ** 2).sum().backward()
            optimizer.step()
        found.append(layer.weight.detach().numpy())
    np.testing.assert_allclose(*found, rtol=1e-10)


@pytest.mark.parametrize("sparse_dim", [1, 2])
def test_steps_on_gradients_of_elements(sparse_dim):
    found = []
    for t in (tl, torch):
        p = t.nn.Parameter(t.tensor(TABLE))
        optimizer = t.optim.SparseAdam([p], lr=0.1, maximize=True)
        for step in range(3):
            p.grad = ((p.detach() + step) * (p.detach() > step / 9)).to_sparse(sparse_dim)
            optimizer.step()
        found.append(p.detach().numpy())
    np.testing.assert_allclose(*found, rtol=1e-10)


# ---- layouts of matrices -------------------------------------------------------------------------

DENSE = np.arange(24.0).reshape(4, 6) * np.array([[1, 0, 1], [0, 1, 0]]).repeat(2, 0).repeat(2, 1)
FORMS = {"csr": {}, "csc": {}, "bsr": {"blocksize": (2, 2)}, "bsc": {"blocksize": (2, 2)}}
BATCHES = {"one": DENSE, "batch": np.stack([DENSE, DENSE[:, ::-1] + (DENSE[:, ::-1] > 0)])}

MATRIX_CALLS = {
    "itself": lambda t, a: a, "multiple": lambda t, a: a * 2.5, "neg": lambda t, a: -a,
    "sum of two": lambda t, a: a + a, "transpose": lambda t, a: a.transpose(-2, -1),
    "function": lambda t, a: a.sqrt(), "coo": lambda t, a: a.to_sparse(),
    "zeros": lambda t, a: t.zeros_like(a), "clone": lambda t, a: a.clone(),
    "dtype": lambda t, a: a.to(t.float64), "dense": lambda t, a: a.to_dense(),
    "total": lambda t, a: a.sum(), "angle": lambda t, a: a.angle(),
}


def parts(x):
    """The name of the layout and what the entries are, as NumPy's arrays."""
    names = {"coo": ("_indices", "_values"), "csr": ("crow_indices", "col_indices", "values"),
             "csc": ("ccol_indices", "row_indices", "values")}
    layout = str(x.layout).split(".")[1].removeprefix("sparse_")
    if layout == "strided":
        return [layout, x.numpy()]
    names["bsr"], names["bsc"] = names["csr"], names["csc"]
    return [layout, tuple(x.shape),
            *(getattr(x, name)().detach().numpy() for name in names[layout])]


@each("of", BATCHES)
@each("form", FORMS)
@each("key", MATRIX_CALLS)
def test_matrices_have_the_same_parts_and_texts(key, form, of):
    found = []
    for t in (tl, torch):
        a = t.tensor(BATCHES[of], dtype=t.float32).to_sparse(
            layout=getattr(t, f"sparse_{form}"), **FORMS[form])
        try:
            x = MATRIX_CALLS[key](t, a)
        except (RuntimeError, NotImplementedError):
            if t is tl:
                raise
            continue                                  # PyTorch has it for fewer layouts
        text = repr(x).replace(t.__name__ + ".", "")    # whose length decides where lines break
        found.append([*parts(x), " ".join(text.split())])
    if len(found) == 2:
        for mine, other in zip(*found):
            np.testing.assert_array_equal(mine, other)


@pytest.mark.parametrize("form", ["csr", "csc", "bsr"])
def test_products_of_matrices(form):
    found = []
    for t in (tl, torch):
        a = t.tensor(DENSE).to_sparse(layout=getattr(t, f"sparse_{form}"), **FORMS[form])
        x = t.tensor(np.arange(12.0).reshape(6, 2))
        outs = [a @ x, a @ x[:, 0], t.sparse.mm(a, x), t.addmm(t.ones(4, 2, dtype=x.dtype), a, x)]
        if form == "csr":
            outs += [t.sparse.mm(a, x, r) for r in ("sum", "mean", "amax", "amin")]
            outs += [t.sparse.sampled_addmm(a, t.tensor(DENSE), t.eye(6, dtype=x.dtype)).to_dense(),
                     *(a.sum(d, keepdim=True).to_dense() for d in (0, 1, (0, 1)))]
        found.append(outs)
    for mine, other in zip(*found):
        np.testing.assert_array_equal(mine.numpy(), other.numpy())


@each("layout", ["sparse_coo", "sparse_csr"])
@each("options", [{}, {"momentum": 0.9}, {"momentum": 0.9, "nesterov": True},
                  {"weight_decay": 0.1}], ids=str)
def test_steps_of_sparse_parameters(layout, options):
    found = []
    for t in (tl, torch):
        weight = t.nn.Parameter(t.tensor(DENSE / 24).to_sparse(layout=getattr(t, layout)))
        optimizer = t.optim.SGD([weight], lr=0.1, **options)
        for _ in range(3):
            optimizer.zero_grad()
            (t.sparse.mm(weight, t.ones(6, 2, dtype=t.float64)) ** 2).sum().backward()
            optimizer.step()
        found.append(weight.detach().to_dense().numpy())
    np.testing.assert_allclose(*found, rtol=1e-12)


def test_gradients_of_leaves_whose_positions_are_there_twice():
    found = []
    for t in (tl, torch):
        a = t.sparse_coo_tensor(t.tensor(INDICES), t.tensor(VALUES), (5, 7)).requires_grad_()
        (t.sparse.mm(a, t.tensor(RIGHT)) ** 2).sum().backward()
        found.append(a.grad.to_dense().numpy())
    np.testing.assert_allclose(*found)


ENTRIES = [[0.0, -2.0, 0.0], [3.0, 0.0, -0.5]]


@each("layout", ["sparse_coo", "sparse_csr"])
@each("call", [
    lambda t, x: t.positive(x).to_dense(), lambda t, x: t.signbit(x).to_dense(),
    lambda t, x: t.angle(x.to_sparse_csr()).to_dense(),
    lambda t, x: t.angle((x * 1j).to_sparse_csr()).to_dense(),
    lambda t, x: t.conj_physical(x * 1j).to_dense(),
    lambda t, x: (x * 1j).to_sparse_csr().conj_physical_().to_dense(),
    lambda t, x: t.addmv(t.ones(2, dtype=t.float64), x.to_sparse_csr(),
      t.tensor([1.0, 2.0, 3.0], dtype=t.float64), beta=2, alpha=3),
    lambda t, x: t.vstack([x.to_sparse(), x.to_sparse()]).to_dense(),
    lambda t, x: t.hstack([x.to_sparse(), x.to_sparse()]).to_dense(),
    lambda t, x: t.vstack([x.to_sparse()[0], x.to_sparse()[1]]).to_dense(),
    lambda t, x: t.hstack([x.to_sparse()[0], x.to_sparse()[1]]).to_dense(),
    lambda t, x: t.numel(x), lambda t, x: t.is_complex(x), lambda t, x: t.is_floating_point(x),
    lambda t, x: t.is_signed(x), lambda t, x: x.stride(), lambda t, x: x.is_contiguous()])
def test_functions_of_entries(call, layout):
    mine, theirs = (
        run(lambda t: call(t, t.tensor(ENTRIES, dtype=t.float64).to_sparse(
            layout=getattr(t, layout))), t) for t in (tl, torch))
    assert not disagreement(mine, theirs), (mine, theirs)
