"""Tensors side by side and on diagonals, without a gradient as with one."""

from itertools import combinations

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib.ops.shape import stacking

STACKS = {"hstack": np.hstack, "vstack": np.vstack, "dstack": np.dstack,
          "column_stack": np.column_stack}
SHAPES = [[(3,)], [(3,), (3,)], [(3,), (2,)], [(2, 3), (2, 3)], [(2, 3), (2, 4)],
          [(2, 3), (1, 3)], [(2, 3, 4), (2, 3, 4)], [(0,), (0,)], [(), ()], [(1,), ()],
          [(3,), (1, 3)], [(3, 1), (3,)]]


@each("name", STACKS)
@each("shapes", SHAPES)
@each("dtype", ["float32", "bfloat16", "uint8"])
def test_stacks_are_those_of_numpy_in_any_layout(name, shapes, dtype):
    arrays = [np.arange(1, 1 + np.prod(shape, dtype=int)).reshape(shape) + i
              for i, shape in enumerate(shapes)]
    whole = [tl.tensor(a).to(getattr(tl, dtype)) for a in arrays]
    gaps = [tl.stack([x, x], -1)[..., 0] for x in whole]
    for given in (whole, tuple(gaps), [x.mT if x.ndim > 1 else x for x in gaps]):
        try:
            want = STACKS[name]([x.tolist() if x.numel() else np.zeros(x.shape) for x in given])
        except ValueError:
            with pytest.raises(RuntimeError, match="stack: "):
                getattr(tl, name)(given)
            continue
        found = getattr(tl, name)(given)
        assert found.shape == want.shape and found.dtype is whole[0].dtype
        assert found.tolist() == want.tolist() and found._base is None and found.is_contiguous()


@each("dtype", ["bool", "bfloat16", "float32", "complex128"])
@each("shape", [(1,), (3,), (0,), (2, 3), (2, 0), (3, 1, 2)])
@pytest.mark.parametrize("offset", [0, 1, -2, np.int64(3)])
def test_diagonals_of_matrices_and_zeros_elsewhere(shape, offset, dtype):
    whole = tl.arange(1, 13)[:np.prod(shape)].reshape(shape).to(getattr(tl, dtype))
    turned = whole.mT if whole.ndim > 1 else whole.flip(0)
    for x in (whole, turned, tl.stack([whole, whole], -1)[..., 0]):
        found = x.diag_embed(offset)
        n = x.shape[-1] + abs(int(offset))
        want = x.new_zeros((*x.shape[:-1], n, n))
        want.diagonal(int(offset), -2, -1).copy_(x)
        assert tl.equal(found, want) and found._base is None and found.is_contiguous()
        assert tl.equal(x.diag_embed(offset, 0, -1), want.movedim((-2, -1), (0, -1)))
        if x.ndim == 1:
            assert tl.equal(x.diag(offset), want)


def test_choices_among_few_are_found_once():
    stacking.kept_choices.cache_clear()
    for x in (tl.arange(5), tl.arange(5) * 2, tl.arange(100)):
        assert tl.combinations(x, 3).tolist() == list(map(list, combinations(x.tolist(), 3)))
    assert stacking.kept_choices.cache_info()[:2] == (1, 1)
