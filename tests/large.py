"""Arrays of 1,000 to 100,000 elements in odd layouts, of small whole numbers.

So many elements take several tiles and chunks, which end in the middle of rows. Every dtype holds
the numbers, so that results are exact.
"""

import math
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

import tensorlib as tl

POOL = np.random.default_rng(0).integers(1, 60, 1 << 20)
POOLS = {name: POOL.astype(name) for name in (
    "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64")}
POOLS["bool"] = POOL % 2 == 0


@st.composite
def shapes(draw):
    """Vectors, matrices, many short rows, and three dims, of 1,000 to 100,000 elements."""
    numel = draw(st.sampled_from([1_000, 20_000, 40_000, 100_000]))
    row = draw(st.one_of(st.integers(2, 63), st.integers(64, 800), st.just(numel)))
    rows = max(1, numel // row)
    if row == numel:
        return (numel,)
    return draw(st.sampled_from([(rows, row), (row, rows), (2, max(1, rows // 2), row)]))


class Layout(NamedTuple):
    """How an array lies in memory; short to print where a law fails."""

    shape: tuple
    dtype: str
    order: tuple          # of the dims in memory
    ways: tuple           # of each dim: plain, reversed, apart (every other element), or repeated
    start: int            # in the pool
    expanded: bool        # a repeated dim has its size and no step, not size 1

    def array(self):
        """A new array of this layout."""
        room = [{"repeated": 1, "apart": 2 * n}.get(way, n)
                for n, way in zip(self.shape, self.ways)]
        memory = POOLS[self.dtype][self.start:self.start + math.prod(room)].copy()
        view = memory.reshape([room[d] for d in self.order]).transpose(np.argsort(self.order))
        steps = [{"reversed": -1, "apart": 2}.get(way) for way in self.ways]
        view = view[tuple(slice(None, None, step) for step in steps)]
        return np.broadcast_to(view, self.shape) if self.expanded else view

    def whole(self):
        """As `array`, where repeated dims have their sizes."""
        view = self.array()
        return view if view.shape == self.shape else np.broadcast_to(view, self.shape)


@st.composite
def layouts(draw, shape, dtype, repeats=True):
    """Any layout of this shape. Without `repeats` no two elements share memory."""
    order = tuple(draw(st.permutations(range(len(shape)))))
    kind = draw(st.sampled_from(["in order", "any", "any"] + ["one element for all"] * repeats))
    way = st.sampled_from(["plain", "plain", "reversed", "apart"] + ["repeated"] * repeats)
    ways = {"in order": ("plain",) * len(shape), "any": tuple(draw(way) for _ in shape),
            "one element for all": ("repeated",) * len(shape)}[kind]
    start, expanded = draw(st.integers(0, 99)), draw(st.booleans())
    return Layout(shape, dtype, order, ways, start, repeats and expanded)


class Positions(NamedTuple):
    """A mask of a dim, or some of its positions in another order; short to print, too."""

    size: int
    seed: int
    kind: str

    def array(self):
        rng = np.random.default_rng(self.seed)
        if self.kind == "mask":
            return rng.integers(0, 3, self.size) == 0
        places = rng.permutation(self.size)[:rng.integers(1, self.size + 1)]
        return np.where(places % 2, places, places - self.size)      # some count from the end


def tensor(array):
    """A Tensor that looks at the array's memory."""
    return tl.from_numpy(np.asarray(array))


def assert_equal(result, expected):
    """The values are the same, whatever dtype numbers are promoted to."""
    assert tuple(result.shape) == expected.shape
    np.testing.assert_array_equal(result.numpy().astype(np.float64), expected)
