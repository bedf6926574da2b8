"""`Size`: a tuple of ints, whatever its sizes are given as."""

import copy
import pickle

import numpy as np
import pytest

import tensorlib as tl


def test_sizes_are_ints():
    for given in ([2, 3], (tl.tensor(2), 3), np.array([2, 3]), tl.tensor([2, 3]), iter([2, 3]),
                  [tl.tensor([2]), np.int32(3)]):
        size = tl.Size(given)
        assert size == (2, 3) and {type(one) for one in size} == {int}
        assert type(size) is tl.Size and repr(size) == "tensorlib.Size([2, 3])"
    assert tl.Size() == () and tl.Size([True]) == (1,)


@pytest.mark.parametrize("given, place", [
    ([1.5], 0), (["a"], 0), ("12", 0), ([1, None], 1), ([tl.tensor(2.0)], 0),
    ([1, tl.tensor([2, 3])], 1), ([[1]], 0)], ids=str)
def test_what_is_no_int_is_refused(given, place):
    with pytest.raises(TypeError, match=rf"takes an iterable of 'int' \(item {place} is "):
        tl.Size(given)


def test_sums_products_and_parts_are_sizes():
    size = tl.Size([2, 3])
    for found, wanted in (
            (size + (1,), (2, 3, 1)), ((1,) + size, (1, 2, 3)), (size + size, (2, 3, 2, 3)),
            (size * 2, (2, 3, 2, 3)), (2 * size, (2, 3, 2, 3)), (size[:1], (2,)),
            (size[::-1], (3, 2)), (size + (tl.tensor(4),), (2, 3, 4)), (copy.copy(size), (2, 3)),
            (copy.deepcopy(size), (2, 3)), (pickle.loads(pickle.dumps(size)), (2, 3))):
        assert type(found) is tl.Size and found == wanted
    for wrong in ([1], 1, None):
        for join in (lambda x: size + x, lambda x: x + size):
            with pytest.raises(TypeError):
                join(wrong)
    with pytest.raises(TypeError, match="item 0 is 'float'"):
        size + (1.5,)


def test_a_subclass_stays_one():
    class Own(tl.Size):
        pass

    assert type(Own([1, tl.tensor(2)])) is Own and Own([1, 2]).numel() == 2
