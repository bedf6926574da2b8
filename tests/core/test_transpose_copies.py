"""Copies between layouts: matrices that are turned, in batches and in any order of their dims."""

from itertools import permutations

import numpy as np
from cases import each

import tensorlib as tl
from tensorlib._core.base.scratch import refuse_scratch

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


@each("shape", SHAPES, ids=str)
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


@each("dtype", ("uint8", "float32", "float64", "complex128"))
def test_rows_longer_than_a_band_is_wide(dtype, two_threads):
    """Longer than what is turned at once, in one step and in several, with casts on the way."""
    values = numbered((33, 4200), dtype)
    across = np.ascontiguousarray(values.T)
    gaps = np.repeat(across, 2, -1)[:, ::2]
    for n_threads in (1, 2):
        tl.set_num_threads(n_threads)
        for x in (across.T, gaps.T, across[:, ::-1].T):
            found = tl.from_numpy(x) + tl.from_numpy(values)
            np.testing.assert_array_equal(found.numpy(), x + values)
            found = tl.from_numpy(x).to(tl.complex64) + tl.from_numpy(values[:1])
            np.testing.assert_array_equal(found.numpy(), x.astype("complex64") + values[:1])


@each("dtype, shape", [("uint8", (430, 5000)), ("float32", (3, 370, 500)),
                       ("float64", (110, 2500)), ("uint8", (70_000, 32))], ids=str)
def test_large_copies_are_turned_by_bands(shape, dtype, two_threads):
    """Of 2 MiB and more."""
    values = numbered(shape, dtype)
    x = tl.from_numpy(values).transpose(-1, -2)
    for n_threads in (1, 2):
        tl.set_num_threads(n_threads)
        np.testing.assert_array_equal(x.contiguous().numpy(), values.swapaxes(-1, -2))
        target = tl.zeros(*shape[:-2], shape[-1], shape[-2] + 3)
        target[..., 2:-1] = x
        wanted = np.pad(values.swapaxes(-1, -2), [(0, 0)] * (len(shape) - 1) + [(2, 1)])
        np.testing.assert_array_equal(target.numpy(), wanted.astype("float32"))


def test_bands_need_no_memory_of_their_own():
    values = numbered((700, 1100), "float32")
    x = tl.from_numpy(values).t()
    refuse_scratch(True)
    try:
        found = x + tl.from_numpy(values.reshape(1100, 700)), x.contiguous()
    finally:
        refuse_scratch(False)
    np.testing.assert_array_equal(found[0].numpy(), values.T + values.reshape(1100, 700))
    np.testing.assert_array_equal(found[1].numpy(), values.T)


@each("shift", (1, 3, 5, 7))
def test_runs_that_lie_a_little_further_in_their_page(shift):
    """Copied in pieces: what the C library does in one call is slow on some processors."""
    values = numbered((8, 1024), "float32")
    for columns in (128 + shift, 129 + shift, 300, 513, 770, 1024):
        x = tl.from_numpy(values[:, :columns])
        wanted = np.roll(values[:, :columns], shift, 1)
        np.testing.assert_array_equal(x.roll(shift, 1).numpy(), wanted)


def test_one_element_for_each_row_fills_it():
    for dtype in (tl.bool, tl.int16, tl.float32, tl.int64, tl.complex128):
        for n in (1, 5, 63, 64, 65, 300):
            x = (tl.arange(11) % 3).to(dtype)
            rows = x.unsqueeze(1).expand(11, n).contiguous()
            assert rows.is_contiguous() and rows.tolist() == [[v] * n for v in x.tolist()]
            turned = x.expand(4, n, 11).permute(0, 2, 1).contiguous()
            assert turned.tolist() == [rows.tolist()] * 4
