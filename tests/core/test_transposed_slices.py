"""Slices of tensors that lie across, and numbers at either place of loops of integers."""

from itertools import permutations

import numpy as np
import tensorlib as tl
from cases import each


@each("dtype", ["bool", "float16", "float32", "float64", "complex128"])
def test_slices_of_any_layout_are_numpys(dtype):
    for shape in ((37, 23), (5, 4, 70), (3, 50, 2), (40, 40, 3)):
        whole = tl.arange(int(np.prod(shape))).sub(50).reshape(shape).to(getattr(tl, dtype))
        for order in permutations(range(len(shape))):
            turned = whole.permute(order)
            for x in (turned, turned[::2], turned[..., ::3], turned[:, 1:]):
                for dim in range(x.ndim):
                    every = tl.arange(33) * 7 % (2 * x.shape[dim]) - x.shape[dim]
                    for index in (every, every[2:4]):
                        want = np.take(x.numpy(), index.numpy(), dim)
                        np.testing.assert_array_equal(x.index_select(dim, index).numpy(), want)


@each("dtype", ["bool", "float16", "float32", "float64", "complex128"])
def test_rows_with_gaps_are_written_into_rows_with_gaps(dtype):
    for columns in (20, 66, 600, 2100):
        x, y = (tl.arange(9 * columns).reshape(9, columns).add(k).to(getattr(tl, dtype))
                for k in (0, 5))
        want, index = x.numpy().copy(), np.array([7, 0, 3])
        want[:, ::2][index] = y.numpy()[:3, 1::2]
        x[:, ::2][tl.from_numpy(index)] = y[:3, 1::2]
        np.testing.assert_array_equal(x.numpy(), want)
        taken = x[:, ::2][tl.from_numpy(index)]
        np.testing.assert_array_equal(taken.numpy(), want[:, ::2][index])


@each("dtype", ["uint8", "float16", "float32", "float64"])
def test_sums_of_parts_of_rows_are_numpys(dtype):
    for width in (3, 8, 16, 17, 32, 63, 64):
        x = tl.arange(50 * 2 * width).remainder(50).reshape(50, 2, width).to(getattr(tl, dtype))
        given, columns = x.numpy(), x[:, 0, :1]
        np.testing.assert_array_equal((x[:, 0] + x[:, 1]).numpy(), given[:, 0] + given[:, 1])
        np.testing.assert_array_equal((x[:, 1] - x[:, 0].clone()).numpy(),
                                      given[:, 1] - given[:, 0])
        np.testing.assert_array_equal((x[:, 1] * columns).numpy(), given[:, 1] * columns.numpy())


FUNCTIONS = {"bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or,
             "bitwise_xor": np.bitwise_xor, "bitwise_left_shift": np.left_shift,
             "bitwise_right_shift": np.right_shift}


def check_numbers(name, function, dtype):
    for rows, columns in ((5, 3), (40, 17), (256, 256), (3, 5000), (1, 9000), (300, 8), (70, 64)):
        a = tl.arange(rows * columns).remainder(7).reshape(rows, columns).to(getattr(tl, dtype))
        column, row = a[:, :1].remainder(3), a[0].remainder(3)
        for x, y in ((a, column), (column, a), (a, row), (column, row), (row, column),
                     (a, tl.tensor(2, dtype=a.dtype)), (tl.tensor(2, dtype=a.dtype), a),
                     (a[:, ::2], column), (column, a[:, ::2]), (a.t(), column.t()),
                     (column[:, None], a[:, None].expand(rows, 3, columns))):
            with np.errstate(divide="ignore", invalid="ignore"):
                want = function(x.numpy(), y.numpy())
            np.testing.assert_array_equal(getattr(tl, name)(x, y).numpy(), want)


@each("dtype", ["int64", "int32", "int16", "int8", "uint8"])
@each("name", FUNCTIONS)
def test_columns_and_numbers_at_either_place_are_those_written_out(name, dtype):
    check_numbers(name, FUNCTIONS[name], dtype)


@each("dtype", ["float32", "float64"])
@each("name", ["add", "subtract", "multiply", "divide", "maximum"])
def test_columns_and_numbers_of_floats_at_either_place_are_those_written_out(name, dtype):
    check_numbers(name, getattr(np, name), dtype)
