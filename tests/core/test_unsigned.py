"""uint16, uint32 and uint64: their boundaries, what they promote with, and what has no answer."""

import io
import operator
import pickle

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib.testing import assert_close

NAMES = ("uint16", "uint32", "uint64")
OTHERS = ("bool", "uint8", "int8", "int16", "int32", "int64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
unsigned = pytest.mark.parametrize("name", NAMES)


def most(name):
    return np.iinfo(name).max


def numbers(name):
    """Both ends of a dtype and of the signed one of its width, and numbers in between."""
    top = most(name)
    ends = [0, 1, 2, 3, 7, 255, 256, top // 2 - 1, top // 2, top // 2 + 1, top - 7, top - 1, top]
    drawn = np.random.default_rng(0).integers(0, top, 60, name, endpoint=True)
    return np.concatenate([np.array(ends, name), drawn])


def pair(name):
    x = numbers(name)
    return np.repeat(x, len(x)), np.tile(x, len(x))


# ---- making them, and back -----------------------------------------------------------------------

@unsigned
def test_numbers_at_the_boundaries_go_in_and_out(name):
    dtype, top = getattr(tl, name), most(name)
    for value in (0, 1, top // 2, top // 2 + 1, top - 1, top):
        x = tl.tensor(value, dtype=dtype)
        assert x.item() == int(x) == operator.index(x) == value and float(x) == float(value)
        assert tl.tensor([value, 0], dtype=dtype).tolist() == [value, 0]
        assert tl.full((2,), value, dtype=dtype).tolist() == [value] * 2
        assert tl.zeros(2, dtype=dtype).fill_(value).tolist() == [value] * 2
        x = tl.zeros(3, dtype=dtype)
        x[1] = value
        assert x.tolist() == [0, value, 0]
        assert tl.tensor(np.array([value], name)).tolist() == [value]
        assert tl.tensor([np.array(value, name)[()]]).dtype == dtype


@unsigned
@pytest.mark.parametrize("make", [
    lambda value, dtype: tl.tensor(value, dtype=dtype),
    lambda value, dtype: tl.tensor([0, value], dtype=dtype),
    lambda value, dtype: tl.full((2,), value, dtype=dtype),
    lambda value, dtype: tl.zeros(2, dtype=dtype).fill_(value),
    lambda value, dtype: tl.zeros(2, dtype=dtype).masked_fill_(tl.tensor([True, False]), value),
    lambda value, dtype: operator.setitem(tl.zeros(2, dtype=dtype), 0, value)])
def test_numbers_beyond_are_refused(name, make):
    for value in (most(name) + 1, -1, 2**70):
        with pytest.raises((OverflowError, RuntimeError)):
            make(value, getattr(tl, name))


def test_errors_of_construction_say_what_fits():
    with pytest.raises(OverflowError, match=r"^tensor: -1 does not fit in tensorlib.uint64, which "
                                            r"holds 0 to 18446744073709551615$"):
        tl.tensor([-1], dtype=tl.uint64)
    with pytest.raises(OverflowError, match="does not fit in tensorlib.uint16.* 0 to 65535"):
        tl.tensor(65536, dtype=tl.uint16)
    for value in (2.0**64, -1.0, float("nan"), float("inf")):
        with pytest.raises(OverflowError):
            tl.tensor(value, dtype=tl.uint64)
    assert tl.tensor([2.0**63, 1.5e19, 0.9, -0.9], dtype=tl.uint64).tolist() == [
        2**63, 15 * 10**18, 0, 0]


@unsigned
def test_numpy_buffers_dlpack_pickles_and_files(name):
    array = numbers(name)
    x = tl.from_numpy(array)
    assert x.dtype == getattr(tl, name) and x.dtype.itemsize == array.itemsize
    assert not x.dtype.is_signed and not x.is_signed() and not x.is_floating_point()
    assert np.shares_memory(x.numpy(), array) and x.numpy().dtype == name
    assert x.tolist() == array.tolist()
    for back in (np.asarray(x), np.from_dlpack(x), np.asarray(memoryview(x)),
                 pickle.loads(pickle.dumps(x)).numpy(), x[::2].clone().numpy(),
                 tl.from_dlpack(array).numpy(), tl.frombuffer(array.tobytes(), dtype=x.dtype)):
        np.testing.assert_array_equal(np.asarray(back), array[::2] if len(back) < len(array)
                                      else array)
    file = io.BytesIO()
    tl.save({"x": x}, file)
    file.seek(0)
    found = tl.load(file)["x"]
    assert found.dtype == x.dtype and found.tolist() == array.tolist()
    assert x.type() == f"tensorlib.UInt{name[4:]}Tensor" and x.type(tl.int64).dtype == tl.int64
    info = tl.iinfo(x.dtype)
    assert (info.min, info.max, info.bits) == (0, most(name), 8 * array.itemsize)


def test_printing():
    x = tl.tensor([2**64 - 1, 0, 2**63], dtype=tl.uint64)
    assert repr(x) == (
        "tensor([18446744073709551615,                    0,  9223372036854775808],\n"
        "       dtype=tensorlib.uint64)")
    assert repr(tl.tensor(65535, dtype=tl.uint16)) == "tensor(65535, dtype=tensorlib.uint16)"
    assert f"{tl.tensor(2**64 - 1, dtype=tl.uint64):d}" == "18446744073709551615"


@unsigned
def test_ranges_and_draws(name):
    dtype, top = getattr(tl, name), most(name)
    for bounds in ((5,), (2, 11, 3), (5, 0, -2), (top - 2, top), (top, top - 5, -2),
                   (top // 2 - 1, top // 2 + 3)):
        assert tl.arange(*bounds, dtype=dtype).tolist() == list(range(*bounds))
    for bounds in ((top - 1, top + 2), (2, -3, -1)):
        with pytest.raises(OverflowError):
            tl.arange(*bounds, dtype=dtype)
    drawn = tl.randint(0, top + 1, (2000,), dtype=dtype)
    assert drawn.dtype == dtype and drawn.max().item() > top // 4 * 3 > drawn.min().item()
    drawn = tl.empty(2000, dtype=dtype).random_()
    assert drawn.max().item() > top // 4 * 3
    assert set(tl.randint(top - 1, top + 1, (64,), dtype=dtype).tolist()) == {top - 1, top}
    assert sorted(tl.randperm(9, dtype=dtype).tolist()) == list(range(9))
    with pytest.raises(OverflowError):
        tl.randint(0, top + 2, (2,), dtype=dtype)
    with pytest.raises(OverflowError):
        tl.randint(-1, 2, (2,), dtype=dtype)


# ---- casts ---------------------------------------------------------------------------------------

@unsigned
@each("other", OTHERS + NAMES + ("float16", "float32", "float64"))
def test_casts_to_and_from_every_dtype_are_those_of_numpy(name, other):
    x = numbers(name)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(tl.from_numpy(x).to(getattr(tl, other)).numpy(),
                                      x.astype(other))
        back = (numbers(other) if other in NAMES else
                np.array([True, False]) if other == "bool" else
                np.array([0, 1, 3, 100, 127, 1.5 if other[0] == "f" else 2]).astype(other)
                if other[0] == "f" else np.arange(-128, 128).astype(other))
        for layout in (back, back[::-1], np.repeat(back, 2)[::2]):
            np.testing.assert_array_equal(tl.from_numpy(layout).to(getattr(tl, name)).numpy(),
                                          layout.astype(name))


@unsigned
def test_casts_from_and_to_bfloat16(name):
    x = tl.from_numpy(numbers(name))
    assert_close(x.bfloat16(), x.double().bfloat16(), rtol=0, atol=0)
    values = tl.tensor([0.0, 1.0, 3.5, 200.0, 65280.0], dtype=tl.bfloat16)
    assert values.to(x.dtype).tolist() == [0, 1, 3, 200, 65280]


# ---- arithmetic ----------------------------------------------------------------------------------

ARITHMETIC = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor, "maximum": np.maximum,
    "minimum": np.minimum, "gcd": np.gcd, "pow": np.power,
}
DIVISIONS = {"floor_divide": np.floor_divide, "remainder": np.remainder, "fmod": np.fmod,
             "div_trunc": np.floor_divide}
COMPARISONS = {name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")}


@unsigned
@each("what", [*ARITHMETIC, *DIVISIONS, *COMPARISONS])
def test_two_operands_beside_numpy(name, what):
    """Also beyond 2**63, where a signed number would be negative."""
    a, b = pair(name)
    if what in DIVISIONS:
        a, b = a[b != 0], b[b != 0]
    reference = {**ARITHMETIC, **DIVISIONS, **COMPARISONS}[what]
    function = getattr(tl, what, lambda x, y: tl.div(x, y, rounding_mode="trunc"))
    x, y = tl.from_numpy(a), tl.from_numpy(b)
    found = function(x, y)
    wanted = reference(a, b)
    assert found.dtype == getattr(tl, wanted.dtype.name)
    np.testing.assert_array_equal(found.numpy(), wanted)
    np.testing.assert_array_equal(function(x[::-1], y[::-1]).numpy(), wanted[::-1])
    number = int(b[-1])
    if what not in ("gcd", "maximum", "minimum"):
        np.testing.assert_array_equal(function(x, number).numpy(), reference(a, b[-1]))


@unsigned
def test_shifts_and_what_takes_one_operand(name):
    a = numbers(name)
    x = tl.from_numpy(a)
    for places in (0, 1, 5, 8 * a.itemsize - 1):
        np.testing.assert_array_equal((x << places).numpy(), a << np.array(places, name))
        np.testing.assert_array_equal((x >> places).numpy(), a >> np.array(places, name))
    for found, wanted in ((-x, -a), (~x, ~a), (x.abs(), a), (x.sign(), np.sign(a)), (x.relu(), a),
                          (x.square(), a * a), (x.floor(), a), (x.logical_not(), a == 0),
                          (x.clamp(5, most(name) - 5), np.clip(a, 5, most(name) - 5))):
        np.testing.assert_array_equal(found.numpy(), wanted)
    assert_close(x.sqrt(), x.float().sqrt())
    with pytest.raises(ZeroDivisionError, match="^floor_divide: integer division by zero"):
        x // 0
    with pytest.raises(ValueError, match="^pow: integers to negative integer powers"):
        x ** -1


@unsigned
def test_in_place_out_and_numbers(name):
    dtype, top = getattr(tl, name), most(name)
    x = tl.tensor([top, 0, 5], dtype=dtype)
    assert (x + 1).tolist() == [0, 1, 6] and (x - 1).tolist() == [top - 1, top, 4]
    assert (x + top).tolist() == [top - 1, top, 4] and (0 - x).tolist() == [1, 0, top - 4]
    assert (x == top).tolist() == [True, False, False]
    assert (x / 2).dtype == tl.float32 and (x + 0.5).dtype == tl.float32
    y = x.clone().add_(2)
    assert y.tolist() == [1, 2, 7] and y.dtype == dtype
    assert tl.mul(x, x, out=tl.zeros(3, dtype=dtype)).tolist() == [1, 0, 25]
    with pytest.raises(RuntimeError, match="can't be cast"):
        x.add_(0.5)
    if name == "uint64":
        with pytest.raises(OverflowError):
            x + 2**64
    assert tl.where(x > 4, x, top).tolist() == [top, top, 5]
    assert tl.where(x > 4, 7, x).dtype == dtype


@unsigned
def test_products(name):
    rng = np.random.default_rng(1)
    for shape in ((3, 4, 5), (40, 30, 20), (1, 200, 1)):
        a = rng.integers(0, most(name), shape[:2], name, endpoint=True)
        b = rng.integers(0, most(name), shape[1:], name, endpoint=True)
        np.testing.assert_array_equal((tl.from_numpy(a) @ tl.from_numpy(b)).numpy(), a @ b)
        np.testing.assert_array_equal((tl.from_numpy(a.T.copy()).T @ tl.from_numpy(b)).numpy(),
                                      a @ b)


# ---- order ---------------------------------------------------------------------------------------

@unsigned
@pytest.mark.parametrize("n", [1, 5, 60, 3000])
def test_order_beside_numpy(name, n):
    rng = np.random.default_rng(n)
    a = rng.integers(0, most(name), (3, n), name, endpoint=True)
    a[:, 0] = most(name) // 2 + 1
    for array in (a, a[:, ::-1], np.asfortranarray(a)):
        x, before = tl.from_numpy(array), array.copy()
        for dim in (0, 1):
            np.testing.assert_array_equal(x.amax(dim).numpy(), array.max(dim))
            np.testing.assert_array_equal(x.amin(dim).numpy(), array.min(dim))
            np.testing.assert_array_equal(x.argmax(dim).numpy(), array.argmax(dim))
            np.testing.assert_array_equal(x.argmin(dim).numpy(), array.argmin(dim))
            values, places = x.sort(dim)
            np.testing.assert_array_equal(values.numpy(), np.sort(array, dim))
            np.testing.assert_array_equal(places.numpy(), np.argsort(array, dim, kind="stable"))
            np.testing.assert_array_equal(x.cummax(dim)[0].numpy(),
                                          np.maximum.accumulate(array, dim))
        assert x.max().item() == array.max() and x.min().item() == array.min()
        assert x.argmax().item() == array.argmax()
        k = (n + 1) // 2
        np.testing.assert_array_equal(x.kthvalue(k)[0].numpy(), np.sort(array)[:, k - 1])
        np.testing.assert_array_equal(x.median(1)[0].numpy(), np.sort(array)[:, (n - 1) // 2])
        np.testing.assert_array_equal(x.topk(k)[0].numpy(), np.sort(array)[:, ::-1][:, :k])
        np.testing.assert_array_equal(x.unique().numpy(), np.unique(array))
        np.testing.assert_array_equal(array, before)
        row = x[0].sort()[0]
        for right, side in ((False, "left"), (True, "right")):
            np.testing.assert_array_equal(
                tl.searchsorted(row, x, right=right).numpy(),
                np.searchsorted(row.numpy(), array, side))


@unsigned
def test_sums_are_those_of_int64(name):
    a = numbers(name)
    x = tl.from_numpy(a)
    with np.errstate(over="ignore"):
        assert x.sum().item() == a.astype(np.int64).sum() and x.sum().dtype == tl.int64
        assert x.prod().item() == a.astype(np.int64).prod()
        assert x.sum(dtype=x.dtype).item() == a.sum(dtype=name)
        np.testing.assert_array_equal(x.cumsum(0).numpy(), a.astype(np.int64).cumsum())
    assert x.count_nonzero().item() == np.count_nonzero(a)
    assert x.any().item() is True and x.all().item() is False and x.any().dtype == tl.bool
    assert x.mean(dtype=tl.float64).item() == pytest.approx(a.astype(float).mean())


@unsigned
def test_moves_and_sums_at_positions(name):
    a = numbers(name)
    x, at = tl.from_numpy(a), tl.tensor([3, 12, 12, 3])
    np.testing.assert_array_equal(x[at].numpy(), a[[3, 12, 12, 3]])
    np.testing.assert_array_equal(x.gather(0, at).numpy(), a[[3, 12, 12, 3]])
    np.testing.assert_array_equal(x[x > 5].numpy(), a[a > 5])
    wanted = a.copy()
    np.add.at(wanted, [3, 12, 12, 3], a[:4])
    for found in (x.scatter_add(0, at, x[:4]), x.index_add(0, at, x[:4]),
                  x.index_put((at,), x[:4], accumulate=True)):
        np.testing.assert_array_equal(found.numpy(), wanted)
    np.testing.assert_array_equal(tl.cat([x, x.flip(0)]).numpy(), np.concatenate([a, a[::-1]]))


@unsigned
def test_counts_of_numbers(name):
    x = tl.tensor([3, 1, 3], dtype=getattr(tl, name))
    assert x.bincount().tolist() == [0, 1, 0, 2]
    assert tl.vander(x, 3).tolist() == [[9, 3, 1], [1, 1, 1], [9, 3, 1]]
    if name == "uint64":
        with pytest.raises(RuntimeError, match="^bincount: 18446744073709551615 is too large"):
            tl.tensor([2**64 - 1], dtype=tl.uint64).bincount()


# ---- what has no answer --------------------------------------------------------------------------

@unsigned
def test_promotion_is_with_what_holds_both(name):
    dtype = getattr(tl, name)
    assert tl.promote_types(dtype, dtype) == dtype
    for other in FLOATS:
        assert tl.promote_types(dtype, getattr(tl, other)) == getattr(tl, other)
        assert tl.promote_types(getattr(tl, other), dtype) == getattr(tl, other)
        assert (tl.ones(2, dtype=dtype) + tl.ones(2, dtype=getattr(tl, other))).dtype == getattr(
            tl, other)
    for other in OTHERS + NAMES:
        x, y = tl.ones(2, dtype=dtype), tl.ones(2, dtype=getattr(tl, other))
        assert (x + y[0]).dtype == dtype              # a 0-d tensor gives way
        if other == name:
            continue
        wanted = np.promote_types(name, other)
        meet = other != "bool" and wanted.kind != "f"
        for what, function in {"add": tl.add, "eq": tl.eq, "matmul": tl.matmul,
                               "cat": lambda a, b: tl.cat([a, b]),
                               "stack": lambda a, b: tl.stack([a, b])}.items():
            for a, b in ((x, y), (y, x)):
                if meet:
                    assert function(a, b).dtype.name == ("bool" if what == "eq" else wanted.name)
                    continue
                with pytest.raises(RuntimeError, match=rf"^{what}: .*{a.dtype}.*{b.dtype}"):
                    function(a, b)
        if meet:
            assert tl.promote_types(dtype, getattr(tl, other)).name == wanted.name
            continue
        with pytest.raises(RuntimeError, match="^promote_types: .*is not supported"):
            tl.promote_types(dtype, getattr(tl, other))
    for value in (1, True, 0.5):
        assert tl.result_type(x, value) == (tl.float32 if value == 0.5 else dtype)


@unsigned
def test_positions_are_signed(name):
    x, at = tl.arange(10), tl.tensor([1, 2], dtype=getattr(tl, name))
    for function in (lambda: x[at], lambda: operator.setitem(x, at, 0)):
        with pytest.raises(IndexError, match=f"signed integers or bool, got tensorlib.{name}"):
            function()
    for function in (x.gather, x.index_select):
        with pytest.raises(RuntimeError, match=f"tensorlib.{name}"):
            function(0, at)
    with pytest.raises(RuntimeError, match="^take: .*got tensorlib"):
        x.take(at)
    assert x[at[1]].item() == 2 and list(range(5))[at[1]] == 2     # a 0-d one is a number
    assert x[np.array([1, 2], name)].tolist() == [1, 2]
    if name == "uint64":
        with pytest.raises(IndexError, match="out of bounds"):
            x[np.array([2**64 - 1], np.uint64)]
        with pytest.raises(IndexError):
            x[tl.tensor(2**64 - 1, dtype=tl.uint64)]


@unsigned
def test_what_needs_floats_says_so(name):
    x = tl.ones(2, 2, dtype=getattr(tl, name))
    for what, function in {"mean": x.mean, "std": x.std, "softmax": lambda: x.softmax(0),
                           "bernoulli": x.bernoulli,
                           "requires_grad": x.requires_grad_, "histc": x.histc}.items():
        with pytest.raises((RuntimeError, TypeError), match=rf"^{what}: .*{x.dtype}"):
            function()


@unsigned
def test_on_meta(name):
    x = tl.empty(3, 4, dtype=getattr(tl, name), device="meta")
    for found in (x + x, x.amax(0), x.sort()[0], x.clamp(1, 2), x @ x.mT):
        assert found.is_meta and found.dtype == x.dtype
    assert x.argmax(1).dtype == tl.int64 and x.cummax(0)[1].shape == (3, 4)
