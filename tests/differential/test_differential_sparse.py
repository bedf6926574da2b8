"""Sparse tensors against PyTorch: entries, products with their gradients, softmax, optimisers."""

import warnings

import numpy as np
import pytest
from cases import each

import tensorlib as tl

torch = pytest.importorskip("torch")

RNG = np.random.default_rng(0)
INDICES, VALUES = RNG.integers(0, [[5], [7]], (2, 12)), RNG.normal(size=12)
RIGHT, TABLE = RNG.normal(size=(7, 3)), RNG.normal(size=(6, 3))

CALLS = {
    "mm": lambda t, a, x: t.sparse.mm(a, x), "spmm": lambda t, a, x: t.spmm(a, x),
    "@": lambda t, a, x: a @ x, "vector": lambda t, a, x: t.matmul(a, x[:, 0]),
    "reflected": lambda t, a, x: x.t() @ a.t(), "dense": lambda t, a, x: a.to_dense(),
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
