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
                    index = tl.arange(33) * 7 % (2 * x.shape[dim]) - x.shape[dim]
                    want = np.take(x.numpy(), index.numpy(), dim)
                    np.testing.assert_array_equal(x.index_select(dim, index).numpy(), want)


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
