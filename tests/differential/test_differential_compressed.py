"""Sparse matrices by rows and by columns beside PyTorch's: layouts, parts and what is shown."""

import pytest
from cases import each

import tensorlib as tl

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")

DENSE = [[0.0, 1, 0], [2, 0, 3], [0, 0, 0], [4, 5, 6]]
CALLS = {
    "same": lambda t, a: a, "t": lambda t, a: a.t(), "mT": lambda t, a: a.mT,
    "sum of two": lambda t, a: a + a, "multiple": lambda t, a: a * 2, "neg": lambda t, a: -a,
    "sin": lambda t, a: a.sin(), "relu": lambda t, a: a.relu(), "isnan": lambda t, a: a.isnan(),
    "to": lambda t, a: a.to(t.float64), "bool": lambda t, a: a.bool(),
    "clone": lambda t, a: a.clone(), "zeros": lambda t, a: t.zeros_like(a),
    "ones": lambda t, a: t.ones_like(a), "mul_": lambda t, a: a.mul_(3),
    "neg_": lambda t, a: a.neg_(), "zero_": lambda t, a: a.zero_(),
    "copy_": lambda t, a: a.copy_(a * 2), "row": lambda t, a: a[3], "column": lambda t, a: a[:, 1],
    "element": lambda t, a: a[3, 1], "rows": lambda t, a: a.to_sparse_csr(),
    "columns": lambda t, a: a.to_sparse_csc(), "entries": lambda t, a: a.to_sparse(),
    "dense": lambda t, a: a + t.tensor(DENSE), "matrix": lambda t, a: a @ t.ones(3, 2),
    "vector": lambda t, a: a @ t.ones(3), "mask": lambda t, a: t.ones(4, 3).sparse_mask(a),
    "linear": lambda t, a: t.nn.functional.linear(t.ones(2, 3), a),
    "sum": lambda t, a: a.sum(), "addmm": lambda t, a: t.addmm(t.ones(4, 2), a, t.ones(3, 2)),
}
OF_ROWS = {
    "sparse": lambda t, a: a @ t.eye(3).to_sparse_csr(),
    "products": lambda t, a: a * a, "products with dense": lambda t, a: a * t.tensor(DENSE),
    "sums": lambda t, a: a.sum(1, keepdim=True),
    "sums of columns": lambda t, a: a.sum(0, keepdim=True),
    "sampled": lambda t, a: t.sparse.sampled_addmm(a, t.ones(4, 2), t.ones(2, 3)),
}


@each("layout, call", [
    *(("csr", call) for call in {**CALLS, **OF_ROWS}), *(("csc", call) for call in CALLS)])
def test_parts_and_layouts_are_pytorchs(layout, call):
    ours, theirs = ({**CALLS, **OF_ROWS}[call](t, getattr(t.tensor(DENSE), f"to_sparse_{layout}")())
                    for t in (tl, torch))
    shown = " ".join(repr(ours).replace("tensorlib.", "torch.").split())
    assert shown == " ".join(repr(theirs).split())
    assert repr(ours.requires_grad) == repr(theirs.requires_grad)
