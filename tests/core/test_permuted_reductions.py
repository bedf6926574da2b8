"""Reductions of permuted tensors, whose kept dims lie in another order in memory."""

from itertools import combinations, permutations

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib.testing import assert_close

SHAPE = (5, 6, 7, 8)         # large enough to be reduced as they lie in memory


@each("dtype", ["float32", "float64", "bfloat16", "int32"])
@each("name", ["sum", "mean", "amax", "var", "norm"])
def test_results_are_those_of_a_contiguous_copy(name, dtype):
    whole = dtype == "int32"
    if whole and name in ("mean", "var", "norm"):
        name = "amin"
    x = tl.tensor(np.random.default_rng(1).normal(size=SHAPE) * 9).to(getattr(tl, dtype))
    for order in permutations(range(4)):
        turned = x.permute(order)
        copy = turned.contiguous()
        for dims in (*combinations(range(4), 1), *combinations(range(4), 2)):
            for keepdim in (False, True):
                found = getattr(turned, name)(dim=dims, keepdim=keepdim)
                assert_close(found, getattr(copy, name)(dim=dims, keepdim=keepdim))
                assert found.is_contiguous()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_norms_of_no_elements_are_none_or_0(dtype):
    x = tl.empty(3, 0, 2000, dtype=getattr(tl, dtype))
    assert x.norm(dim=0).shape == (0, 2000) and x.norm(dim=2).shape == (3, 0)
    assert (x.norm(dim=1) == 0).all() and x.norm(dim=1).shape == (3, 2000)
