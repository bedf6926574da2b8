"""Copies between layouts: matrices that are turned, in batches and in any order of their dims."""

from itertools import permutations

import numpy as np
import pytest
from cases import each

import tensorlib as tl

DTYPES = ("bool", "int16", "float32", "float64")
# Sizes around a block of 16, few columns that are laid beside each other, and many matrices.
SHAPES = ((37, 3, 171), (2, 16400), (3, 5471), (4, 4099), (5, 3301), (129, 129), (16, 32, 48),
          (7, 17, 11, 15), (2, 3, 65, 47), (1, 33, 1, 513), (3, 2, 5, 7, 83))


def numbered(shape, dtype):
    found = np.arange(np.prod(shape)).reshape(shape)
    return (found % 3 == 0 if dtype == "bool" else found).astype(dtype)


@each("dtype", DTYPES)
@each("shape", SHAPES, ids=str)
def test_each_order_of_dims_gives_the_same_elements_as_numpy(shape, dtype):
    values = numbered(shape, dtype)
    for order in permutations(range(len(shape))):
        found = tl.from_numpy(values).permute(order).contiguous()
        np.testing.assert_array_equal(found.numpy(), values.transpose(order), str(order))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_copy_into_another_order_of_dims_fills_it(shape):
    values = numbered(shape, "float32")
    for order in permutations(range(len(shape))):
        target = tl.zeros([shape[d] for d in order]).permute(*np.argsort(order).tolist())
        target.copy_(tl.from_numpy(values))
        np.testing.assert_array_equal(target.numpy(), values, str(order))


def test_matrices_that_are_parts_of_larger_ones_are_turned_alone():
    values = numbered((6, 70, 130), "float32")
    x = tl.from_numpy(values)
    for key in ((slice(1, 5), slice(3, 69), slice(2, 125)), (slice(None, None, 2),),
                (slice(None), slice(1, 50, 3)), (slice(None), slice(None), slice(0, 127, 2))):
        np.testing.assert_array_equal(x[key].transpose(1, 2).contiguous().numpy(),
                                      values[key].swapaxes(1, 2))
    target = tl.full((6, 132, 72), -1.0)
    target[:, 1:131, 1:71] = x.transpose(1, 2)
    wanted = np.pad(values.swapaxes(1, 2), ((0, 0), (1, 1), (1, 1)), constant_values=-1)
    np.testing.assert_array_equal(target.numpy(), wanted)


def test_repeated_matrices_are_turned_each():
    values = numbered((90, 70), "float64")
    found = tl.from_numpy(values).t().expand(5, 70, 90).contiguous()
    np.testing.assert_array_equal(found.numpy(), np.broadcast_to(values.T, (5, 70, 90)))


def test_two_threads_turn_as_one_does(two_threads):
    values = numbered((6, 129, 130), "float32")
    found = tl.from_numpy(values).permute(2, 0, 1).contiguous()
    np.testing.assert_array_equal(found.numpy(), values.transpose(2, 0, 1))


def test_nothing_is_read_or_written_on_meta():
    found = tl.empty(8, 64, 128, device="meta").permute(0, 2, 1).contiguous()
    assert found.is_meta and found.stride() == (8192, 64, 1)


@each("dtype", DTYPES)
@each("shape", ((37, 70), (2, 17, 600), (3, 129, 65)), ids=str)
def test_operands_that_lie_across_rows(shape, dtype, two_threads):
    """Rows are gone through several at a time, whatever the other operands and the result are."""
    values = numbered(shape, dtype)
    across = np.ascontiguousarray(values.swapaxes(-1, -2))
    gaps = np.repeat(across, 2, -1)[..., ::2]
    turned = [x.swapaxes(-1, -2) for x in (across, gaps, across[..., ::-1], across[..., ::-1, :])]
    for x in turned:
        for y in (values, values[..., :1], values[..., :1, :], np.float32(3), x):
            for n_threads in (1, 2):
                tl.set_num_threads(n_threads)
                a, b = tl.from_numpy(x), tl.from_numpy(np.asarray(y))
                np.testing.assert_array_equal((a == b).numpy(), x == y)
                np.testing.assert_array_equal(tl.where(a > b, a, b).numpy(), np.where(x > y, x, y))
                out = tl.zeros(shape[:-1] + (2 * shape[-1],))[..., ::2]
                np.testing.assert_array_equal(out.copy_(a).numpy(), x.astype(np.float32))
