"""Functions of shapes, positions, masks and sizes beside PyTorch: values, shapes, dtypes, errors.

Most of it are edges: tensors without dims or elements, indices of other dtypes, sizes that do not
fit. `peer.py` excuses what differs on purpose.
"""

import numpy as np
import pytest
from cases import each
from peer import disagreement, excused, run

import tensorlib as tl

torch = pytest.importorskip("torch")

INDICES = {
    "bool": lambda L: L.tensor([True, False, True]), "int32": lambda L: L.tensor([0, 1]).int(),
    "uint8": lambda L: L.tensor([0, 1], dtype=L.uint8), "float": lambda L: L.tensor([0.0, 1.0]),
    "int64": lambda L: L.tensor([0, 2]), "0-d": lambda L: L.tensor(1),
    "empty": lambda L: L.zeros(0, dtype=L.int64), "far": lambda L: L.tensor([0, 9]),
    "matrix": lambda L: L.zeros(2, 2, dtype=L.int64),
}
BY_INDEX = {
    "index_select": lambda L, x, i: x.index_select(0, i),
    "index_fill": lambda L, x, i: x.index_fill(0, i, 1.0),
    "index_copy": lambda L, x, i: x.index_copy(0, i, L.ones(max(i.numel(), i.ndim == 0), 4)),
    "index_add": lambda L, x, i: x.index_add(0, i, L.ones(i.numel(), 4)),
    "gather": lambda L, x, i: x[0].gather(0, i),
    "scatter": lambda L, x, i: x[0].scatter(0, i, 1.0),
    "scatter_add": lambda L, x, i: x[0].scatter_add(0, i, L.ones(i.shape)),
    "take_along_dim": lambda L, x, i: L.take_along_dim(x[0], i, 0),
    "take_along_dim of all": lambda L, x, i: L.take_along_dim(x, i),
}
OTHERS = {
    "index_select": (
        lambda L, x, s: s.index_select(0, L.tensor([0, 0])),
        lambda L, x, s: s.index_select(0, L.tensor([0])),
        lambda L, x, s: s.index_select(0, L.tensor(0)),
        lambda L, x, s: s.index_select(0, L.zeros(0, dtype=L.int64)),
        lambda L, x, s: s.index_select(1, L.tensor([0])),
        lambda L, x, s: s.index_select(0, L.tensor([1])),
        lambda L, x, s: x[0].index_select(0, L.tensor(1)),
    ),
    "nonzero": (
        lambda L, x, s: s.nonzero(), lambda L, x, s: (s * 0).nonzero(), lambda L, x, s: x.nonzero(),
        lambda L, x, s: s.nonzero(as_tuple=True), lambda L, x, s: (s * 0).nonzero(as_tuple=True),
        lambda L, x, s: x.nonzero(as_tuple=True),
    ),
    "masked_select": (
        lambda L, x, s: x.masked_select(L.ones(3, 4, dtype=L.int64)),
        lambda L, x, s: x.masked_select(L.ones(3, 4, dtype=L.uint8)),
        lambda L, x, s: x.masked_select(L.ones(5, dtype=L.bool)),
        lambda L, x, s: x.masked_select(L.tensor([True, False, True, False])),
        lambda L, x, s: x[0].masked_select(x > 5), lambda L, x, s: s.masked_select(s > 1),
    ),
    "masked_fill": (
        *(lambda L, x, s, value=value, dtype=dtype: L.zeros(4, dtype=getattr(L, dtype)).masked_fill(
            L.ones(4, dtype=L.bool), L.tensor(value[0]) if isinstance(value, list) else value)
          for dtype, value in (
              ("int64", 2.5), ("uint8", 300), ("uint8", -300), ("int8", 200), ("uint8", [300]),
              ("int64", [2.5]), ("float16", 1e6), ("float32", 1e300), ("int64", float("inf")),
              ("bool", 5), ("bool", 0.5), ("bool", [5]), ("float32", float("nan")),
              ("float32", "a"), ("float32", None))),
        lambda L, x, s: x.masked_fill(L.ones(3, 4, dtype=L.int64), 1),
        lambda L, x, s: x.masked_fill(x > 4, L.tensor([1.0])),
        lambda L, x, s: x[0].masked_fill(L.ones(3, 4, dtype=L.bool), 1),
        lambda L, x, s: x.masked_fill(L.ones(5, dtype=L.bool), 1),
        lambda L, x, s: x[0].clone().masked_fill_(L.ones(3, 4, dtype=L.bool), 1),
        lambda L, x, s: L.zeros(4, dtype=L.int64).masked_fill_(L.ones(4, dtype=L.bool), 2.5),
    ),
    "take_along_dim": (
        lambda L, x, s: L.take_along_dim(x, L.tensor([[0], [1], [2]]), 1),
        lambda L, x, s: L.take_along_dim(x, L.tensor([[0, 1, 2, 0]]), 0),
        lambda L, x, s: L.take_along_dim(x[:1], L.zeros(5, 4, dtype=L.int64), 1),
        lambda L, x, s: L.take_along_dim(x, L.tensor([0]), 1),
        lambda L, x, s: L.take_along_dim(x, L.tensor([[5, 11]])),
        lambda L, x, s: L.take_along_dim(x, L.zeros(2, 2, dtype=L.int64), 1),
    ),
    "gather": (
        lambda L, x, s: s.gather(0, L.tensor([0, 0])), lambda L, x, s: s.gather(0, L.tensor(0)),
        lambda L, x, s: s.gather(0, L.tensor([[0]])), lambda L, x, s: x[0].gather(0, L.tensor([])),
    ),
    "roll": (
        lambda L, x, s: s.roll(1), lambda L, x, s: x.roll(1.5), lambda L, x, s: x.roll((1, 2)),
        lambda L, x, s: x.roll(1, 2), lambda L, x, s: x.roll((), ()), lambda L, x, s: x.roll(1, ()),
        lambda L, x, s: x.roll((1, -1), (0, 1)),
    ),
    "flip": (
        lambda L, x, s: s.flip(0), lambda L, x, s: s.flip(0, 0), lambda L, x, s: x.flip(2),
        lambda L, x, s: x.flip(()), lambda L, x, s: x.flip(dims=(0, -1)),
        lambda L, x, s: L.flip(x, (1,)),
    ),
    "tile": (
        lambda L, x, s: x.tile((2,)), lambda L, x, s: x.tile(()), lambda L, x, s: x.tile((-1,)),
        lambda L, x, s: L.tile(x, dims=(2, 1, 1)), lambda L, x, s: x.repeat(2, 1, 1),
        lambda L, x, s: x.repeat(2), lambda L, x, s: x.tile(0),
    ),
    "select": (
        lambda L, x, s: x.select(0, -5), lambda L, x, s: x.select(0, True),
        lambda L, x, s: x.select(0, slice(1)), lambda L, x, s: x.select(-1, 1),
        lambda L, x, s: s.select(0, 0), lambda L, x, s: x.select(2, 0),
    ),
    "diag": (
        lambda L, x, s: L.diag(x, 100), lambda L, x, s: L.diag(x, -1), lambda L, x, s: L.diag(s),
        lambda L, x, s: L.diag(x[0], 1), lambda L, x, s: L.diag(x, 1.5),
    ),
    "trace": (
        lambda L, x, s: L.trace(x), lambda L, x, s: L.trace(x.int()),
        lambda L, x, s: L.trace(x[None]), lambda L, x, s: L.trace(L.zeros(0, 0)),
    ),
    "repeat_interleave": (
        lambda L, x, s: x.repeat_interleave(L.tensor([-1, 1, 1]), 0),
        lambda L, x, s: x.repeat_interleave(L.tensor([1.0, 1, 1]), 0),
        lambda L, x, s: x.repeat_interleave(L.tensor([1, 0, 2]).int(), 0),
        lambda L, x, s: x.repeat_interleave(True, 0), lambda L, x, s: x.repeat_interleave(1.5, 0),
        lambda L, x, s: s.repeat_interleave(2), lambda L, x, s: s.repeat_interleave(2, 0),
    ),
    "split": (
        lambda L, x, s: L.split(x, True), lambda L, x, s: L.split(x, 0),
        lambda L, x, s: L.split(x[:0], 0), lambda L, x, s: L.split(x[:0], 2),
        lambda L, x, s: L.split(x, []), lambda L, x, s: L.split(x[:0], []),
        lambda L, x, s: L.split(s, 1), lambda L, x, s: L.split(x, [1, 2]),
    ),
    "chunk": (
        lambda L, x, s: x.chunk(0), lambda L, x, s: x.chunk(5), lambda L, x, s: x.chunk(2.0),
        lambda L, x, s: x[:0].chunk(3), lambda L, x, s: s.chunk(1),
    ),
    "unbind": (lambda L, x, s: s.unbind(), lambda L, x, s: x.unbind(-1)),
    "unflatten": (
        lambda L, x, s: x.unflatten(1, (2, -1)), lambda L, x, s: x.unflatten(1, (3, -1)),
        lambda L, x, s: x.unflatten(1, ()), lambda L, x, s: x.unflatten(1, (2, 3)),
        lambda L, x, s: x[:0].unflatten(0, (0, 3)),
    ),
    "movedim": (
        lambda L, x, s: L.movedim(x, (0, 0), (0, 1)), lambda L, x, s: L.movedim(x, (0,), (0, 1)),
        lambda L, x, s: L.movedim(s, 0, 0), lambda L, x, s: L.movedim(x[None], (0, 1), (-1, 0)),
    ),
    "broadcast_to": (
        lambda L, x, s: L.broadcast_to(x, (2, 3, 4)), lambda L, x, s: L.broadcast_to(x, (2, -1, 4)),
        lambda L, x, s: L.broadcast_to(x, (2, 4)),
    ),
    "tril_indices": (
        lambda L, x, s: L.tril_indices(3, 3, 1, dtype=L.int32),
        lambda L, x, s: L.tril_indices(0, 3),
        lambda L, x, s: L.tril_indices(-3, 3), lambda L, x, s: L.tril_indices(2.5, 3),
        lambda L, x, s: L.triu_indices(3, 4, -1),
    ),
    "normal": (
        lambda L, x, s: L.normal(L.zeros(3), L.ones(2, 1)).shape,
        lambda L, x, s: L.normal(L.zeros(3, dtype=L.int64), 1.0),
        lambda L, x, s: L.normal(L.zeros(3), L.ones(2)), lambda L, x, s: L.normal(L.zeros(2), -1.0),
        lambda L, x, s: L.normal(L.zeros(3), 1.0, (3,)),
    ),
}


def compared(call):
    """A text that says how the libraries differ in a call, or None."""
    def on(library):
        x = library.tensor([[0.0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]])
        return call(library, x, library.tensor(5.0))
    return disagreement(run(on, tl), run(on, torch), "exact")


@each("name", BY_INDEX)
def test_indices_of_every_kind(name):
    found = {kind: compared(lambda L, x, s, index=index: BY_INDEX[name](L, x, index(L)))
             for kind, index in INDICES.items() if not excused(name, kind)}
    assert not {kind: text for kind, text in found.items() if text}


@each("name", OTHERS)
def test_edges(name):
    found = {place: compared(call) for place, call in enumerate(OTHERS[name])}
    assert not {place: text for place, text in found.items() if text}


@each("key", [
    (None,), (slice(None), None), (..., None), (None, ..., None), (slice(None), None, 0), (0, None),
    (slice(None), None, slice(1, None)), (slice(None), None, None), (0, 0, 0, None),
    (slice(1, 1), None), (None, 0, None, slice(None), None)])
def test_a_new_dim_has_the_stride_of_a_whole_dim(key):
    for make in (lambda L: L.ones(4, 3, 5), lambda L: L.ones(4, 3, 5).permute(2, 0, 1),
                 lambda L: L.ones(4, 3, 5)[1:, :, 1:3], lambda L: L.ones(4, 0, 5)):
        ours, theirs = (make(L) for L in (tl, torch))
        if 0 not in key or 0 not in theirs.shape:
            assert ours[key].stride() == theirs[key].stride()


@each("data", [
    lambda lib: [[1, 2, 3], np.ones(3, "f4")], lambda lib: [np.ones(3, "f4"), (1, 2, 3)],
    lambda lib: [[[1, 2]], np.ones((1, 2), "i2")], lambda lib: [np.ones((1, 2), "i2"), [[1, 2]]],
    lambda lib: [[[1.0, 2.0]], [np.ones(2)]], lambda lib: [[np.ones(2)], [[1.0, 2.0]]],
    lambda lib: [[1, 2], lib.tensor([3.0, 4.0])], lambda lib: [[1.0], lib.tensor([3.0])],
    lambda lib: [[1, 2], range(2), np.ones(2)],
    lambda lib: [[1, 2, 3], np.ones(2)], lambda lib: [np.ones(2), [1, 2, 3]],
    lambda lib: [[[1, 2]], np.ones((1, 3))], lambda lib: [[[1, 2]], np.ones(2)],
    lambda lib: [[1.0], np.array(1.0)], lambda lib: [np.ones(3), 1.0],
])
@pytest.mark.filterwarnings("ignore:Creating a tensor from a list of numpy")
def test_arrays_beside_sequences(data):
    mine, theirs = (run(lambda lib: lib.tensor(data(lib)), lib) for lib in (tl, torch))
    assert not disagreement(mine, theirs), (mine, theirs)
