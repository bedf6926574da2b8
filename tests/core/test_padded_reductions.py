"""Reductions over all elements of rows with gaps between them, which are read where they lie."""

import numpy as np
from cases import each

import tensorlib as tl

FUNCTIONS = "sum", "prod", "amax", "amin", "any", "all", "mean", "nansum", "norm", "var"
# A shape, and what is taken of it: the last pieces that threads have are of 1, 70 and 5 elements.
CUTS = {
    "columns": ((100, 100), np.s_[:, 1:]), "rows": ((300, 300), np.s_[::2]),
    "both": ((130, 700), np.s_[1:, 2:-1]), "rows of a lane": ((900, 70), np.s_[:, :64]),
    "short rows": ((900, 70), np.s_[:, :63]), "planes": ((30, 40, 65), np.s_[:, 1:]),
    "rows of planes": ((30, 40, 65), np.s_[..., :64]), "backwards": ((4, 5000), np.s_[::-2, 1:]),
    "a piece and one": ((3, 87383), np.s_[:, :87382]), "pieces": ((2, 131109), np.s_[:, 1:131108]),
    "a piece and five": ((2, 196612), np.s_[:, 1:196611]), "overlapping": ((9000,), None),
    "every second": ((100, 200), np.s_[:, ::2]), "turns": ((100, 300), np.s_[:, 1:200:2]),
    "every third of rows": ((130, 700), np.s_[1:, ::3]), "steps back": ((100, 200), np.s_[:, ::-2]),
    "one of each row": ((9001, 3), np.s_[:, 1:2]), "in planes": ((30, 40, 130), np.s_[:, 1:, ::2]),
    "steps in pieces": ((2, 262218), np.s_[:, 1::2]), "and five": ((2, 393224), np.s_[:, ::2]),
}


@each("dtype", ["float32", "float16", "int64", "uint8", "complex64"])
def test_any_and_all_of_dims_in_any_order(dtype):
    x = (np.random.default_rng(1).random((6, 35, 70)) < 0.03).astype(dtype)
    for order in ((0, 1, 2), (0, 2, 1), (2, 0, 1), (1, 2, 0)):
        for given in (x.transpose(order), x.transpose(order)[..., ::2], x.transpose(order)[:, :1]):
            t = tl.from_numpy(given)
            for dim in (0, 1, 2, (0, 2)):
                assert np.array_equal(t.any(dim).numpy(), given.any(dim))
                assert np.array_equal((t == 0).all(dim).numpy(), (given == 0).all(dim))


@each("cut", CUTS)
def test_gaps_change_no_bit(cut):
    shape, key = CUTS[cut]
    numbers = np.random.default_rng(7).standard_normal(shape) * 4
    numbers.flat[5] = -0.0
    for dtype in "float32", "float64", "float16", "int64", "int32", "uint8", "bool":
        x = tl.from_numpy(numbers.astype(dtype))
        x = x.as_strided((80, 100), (99, 1)) if key is None else x[key]
        dense = x.contiguous()
        for gapped, packed in ((x, dense), (x.mT, dense.mT)):
            for name in FUNCTIONS[:6 if x.dtype not in (tl.float32, tl.float64) else None]:
                found, wanted = (getattr(tl, name)(y).numpy() for y in (gapped, packed))
                assert found.tobytes() == wanted.tobytes(), (name, dtype)


def test_nan_in_a_row_is_found():
    x = tl.ones(100, 100)
    x[57, 3] = float("nan")
    assert x[:, 1:].sum().isnan() and x[:, 1:].amax().isnan() and x[:, 1:].prod().isnan()
    assert x[:, 1:].nansum() == 9899 and x[:, 4:].sum() == 9600
