"""Operands that are repeated in tiles, where an element has sixteen bytes."""

import itertools

import numpy as np

import tensorlib as tl

REFERENCES = {
    "addcmul": lambda a, b, c: a + b * c,
    "addcdiv": lambda a, b, c: a + b / c,
    "lerp": lambda a, b, c: a + c * (b - a),
}


def test_numbers_rows_and_columns_are_repeated_whole():
    rng = np.random.default_rng(3)
    for rows, columns in ((1, 3000), (300, 70), (40, 900)):
        shapes = ((rows, columns), (), (columns,), (rows, 1))
        for kinds in itertools.product(shapes, repeat=3):
            arrays = [rng.uniform(1, 2, shape) + 1j * rng.uniform(1, 2, shape) for shape in kinds]
            for name, reference in REFERENCES.items():
                found = getattr(tl, name)(*map(tl.from_numpy, map(np.asarray, arrays))).numpy()
                assert np.allclose(found, reference(*arrays), rtol=1e-14), (name, kinds)
