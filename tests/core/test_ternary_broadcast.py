"""Operations of three tensors, of which some are one element for a row: their loops hold it."""

import itertools

import numpy as np
import tensorlib as tl
from cases import each

OPERATIONS = {
    "clamp": lambda a, b, c: a.clamp(b, c),
    "lerp": lambda a, b, c: a.lerp(b, c),
    "addcmul": lambda a, b, c: tl.addcmul(a, b, c),
    "addcdiv": lambda a, b, c: tl.addcdiv(a, b, c),
}
DTYPES = {"clamp": ["float32", "float64", "int64", "int32", "uint8", "int16", "bfloat16"],
          "addcmul": ["float32", "float64", "int64", "bfloat16"]}
CASES = [(name, dtype) for name in OPERATIONS
         for dtype in DTYPES.get(name, ["float32", "float64", "float16"])]
# each argument a matrix, a row, a column, one element, or a number
SHAPES = [(5, 70), (1, 70), (5, 1), (1, 1), ()]


def sample(shape, dtype, seed):
    x = np.random.default_rng(seed).uniform(0.25, 9, shape)
    if dtype.startswith(("float", "bfloat")):
        x = np.where(x > 8, np.nan, x - 2)
    return tl.tensor(x).to(getattr(tl, dtype))


@each("name, dtype", CASES)
def test_columns_and_numbers_give_the_bits_of_whole_matrices(name, dtype):
    operation = OPERATIONS[name]
    for shapes in itertools.product(SHAPES, repeat=3):
        args = [sample(shape, dtype, seed) for seed, shape in enumerate(shapes)]
        whole = [x.expand(5, 70).contiguous() for x in args]
        found, wanted = operation(*args).expand(5, 70), operation(*whole)
        np.testing.assert_array_equal(found.double().numpy(), wanted.double().numpy())


@each("name", OPERATIONS)
def test_columns_in_place_and_in_a_part_of_rows(name):
    operation = getattr(tl.Tensor, name + "_")
    for shapes in itertools.product(SHAPES, repeat=2):
        x, first, second = sample((5, 90), "float32", 0), *(
            sample(shape, "float32", seed + 1) for seed, shape in enumerate(shapes))
        wanted = OPERATIONS[name](x[:, 7:77].contiguous(), first, second)
        before = x.clone()
        operation(x[:, 7:77], first, second)
        np.testing.assert_array_equal(x[:, 7:77].numpy(), wanted.numpy())
        np.testing.assert_array_equal(x[:, :7].numpy(), before[:, :7].numpy())
        np.testing.assert_array_equal(x[:, 77:].numpy(), before[:, 77:].numpy())


@each("name", ["maximum", "minimum"])
@each("dtype", ["uint8", "int8", "int16", "int32", "int64", "uint64"])
def test_extremes_of_integers_and_a_column(name, dtype):
    info = np.iinfo(dtype)
    rng = np.random.default_rng(0)
    for left, right in itertools.product(SHAPES, repeat=2):
        a, b = (rng.integers(info.min, info.max, shape, dtype, endpoint=True)
                for shape in (left, right))
        found = getattr(tl, name)(tl.tensor(a), tl.tensor(b))
        np.testing.assert_array_equal(found.numpy(), getattr(np, name)(a, b))
