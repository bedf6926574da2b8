"""Bools whose bytes are neither 0 nor 1, as memory that others made may have them: what is not 0 is
true, to every operation."""

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib.testing.catalogue import call, dtypes_taken, in_dtype, outputs, samples
from tests.ops.catalogue import operations


def odd(x):
    """The same bools, with any other byte for each 1."""
    array = x.numpy().copy()
    others = np.random.default_rng(0).integers(2, 256, array.shape, np.uint8)
    array.view(np.uint8)[...] = np.where(array, others, 0)
    return tl.from_numpy(array)


def truths(result):
    """Values to compare: of bools whether each byte is 0."""
    array = result.detach().numpy()
    return array.view(np.uint8) != 0 if array.dtype == np.bool_ else array


@operations("dtypes", lambda op: not op.random)
def test_every_operation_takes_what_is_not_zero_as_true(op):
    dtypes = {"bool", "int64", "float32"} & set(dtypes_taken(op))
    given = [in_dtype(op, sample, dtype) for dtype in sorted(dtypes) for sample in samples(op)]
    with_bools = [plain for plain in given if any(x.dtype is tl.bool for x in plain.arrays)]
    if not with_bools:
        pytest.skip("it takes no bools")
    for plain in with_bools:
        other = plain.map(lambda i, x: odd(x) if x.dtype is tl.bool else x)
        for found, wanted in zip(outputs(call(op, other)), outputs(call(op, plain)), strict=True):
            np.testing.assert_array_equal(truths(found), truths(wanted))


BYTES = np.array([2, 3, 0, 255, 1, 0, 128], np.uint8)
WAYS = {
    "from_numpy": lambda: tl.from_numpy(BYTES.copy().view(bool)),
    "tensor": lambda: tl.tensor(BYTES.view(bool)),
    "asarray": lambda: tl.asarray(BYTES.copy().view(bool)),
    "view": lambda: tl.tensor(BYTES).view(tl.bool),
    "frombuffer": lambda: tl.frombuffer(BYTES.tobytes(), dtype=tl.bool),
    "from_dlpack": lambda: tl.from_dlpack(BYTES.copy().view(bool)),
}


@each("way", WAYS)
def test_bytes_that_become_bools(way):
    x = WAYS[way]()
    assert x.dtype is tl.bool
    assert x.sum().item() == 5 and x.long().tolist() == [1, 1, 0, 1, 1, 0, 1]
    assert x.tolist() == [True, True, False, True, True, False, True] and x[0].item() is True
    assert x.float().mean().item() == pytest.approx(5 / 7) and x.cumsum(0)[-1].item() == 5
    assert tl.arange(7)[x].tolist() == [0, 1, 3, 4, 6] and x.count_nonzero().item() == 5
    assert (x == tl.ones(7, dtype=tl.bool)).sum().item() == 5 and (~x).sum().item() == 2
    assert x.sort().values.tolist() == sorted(x.tolist()) and x.max(0).indices.item() == 0
    assert (x & x).sum().item() == (x | x).sum().item() == 5 and (x ^ x).sum().item() == 0
    assert x.repeat(5000).sum().item() == 25000 and "2" not in repr(x)


@each("run", [lambda f: f, tl.compile])
@each("dtype", [tl.float32, tl.float64, tl.int64, tl.uint8])
def test_a_condition_of_uint8_holds_where_it_is_not_0(run, dtype):
    condition, x = tl.tensor([2, 0, 255, 0], dtype=tl.uint8), tl.arange(4, dtype=dtype)
    if dtype.is_floating_point:
        x.requires_grad_()
    with pytest.warns(UserWarning, match="uint8"):
        for form in (lambda c, x: tl.where(c, x, x * 2), lambda c, x: x.where(c, x * 2)):
            assert run(form)(condition, x).tolist() == [0, 2, 2, 6]
        if dtype.is_floating_point:
            tl.where(condition, x, x * 2).sum().backward()
            assert x.grad.tolist() == [1, 2, 1, 2]
    with pytest.raises(RuntimeError, match="must be a bool tensor"):
        tl.where(condition.int(), x, x)


def test_a_byte_written_later_counts():
    array = np.zeros(4, np.uint8)
    x = tl.from_numpy(array.view(bool))
    array[:] = 255
    assert x.sum().item() == 4 and x.numpy().sum() == 4
