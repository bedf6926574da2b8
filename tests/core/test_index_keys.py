"""Index expressions against NumPy: reading, writing and accumulating."""

import numpy as np
import pytest
from cases import each
from hypothesis import given
from hypothesis import strategies as st
from tensorlib._core.arrays.arrays import from_numpy
from tensorlib._core.arrays.convert import tensor
from tensorlib._core.base.dtypes import BY_NAME
from tensorlib._core.index.keys import parse, put, take
from tensorlib._core.reduce.masks import nonzero
from tensorlib.func import vmap


NAMES = [name for name in BY_NAME if name != "bfloat16"]
LAYOUTS = {
    "contiguous": lambda a: a.copy(),
    "transposed": lambda a: np.ascontiguousarray(a.T).T,
    "strided": lambda a: np.repeat(np.repeat(a, 2, 0), 3, -1)[::2, ..., ::3],
    "reversed": lambda a: a[::-1, ..., ::-1].copy()[::-1, ..., ::-1],
}
MASK = np.array([[True, False, True], [False, False, True]])

# Keys for an array of shape (2, 3, 4) that mean the same in NumPy.
KEYS = {
    "int": 1, "negative int": -2, "ints": (1, -1, 2), "numpy int": np.int16(1),
    "0-d array": np.array(1), "slice": slice(1, None), "far slice": slice(-100, 2**70),
    "negative step": slice(None, None, -1),
    "steps": (slice(None), slice(2, None, -2), slice(3, 0, -2)),
    "empty slice": slice(2, 1), "ellipsis": ..., "ellipsis and int": (..., 1),
    "int, ellipsis, int": (0, ..., 1), "idle ellipsis": (0, 1, ..., 2), "new": None,
    "new dims": (None, 0, None, ..., None), "nothing": (),
    "list": [1, 0, 1], "negative list": [-1, 0], "empty list": [], "tuple in a tuple": ((0, 1),),
    "range": (range(2),), "2-d list": ([[0, 1], [1, 0]],),
    "list in the middle": (slice(None), [0, 2]),
    "list at the end": (..., [3, 0, -1, 3]), "int32": np.array([1, 0], "i4"),
    "int8": np.array([-1], "i1"), "uint16": np.array([1], "u2"), "two lists": ([0, 1], [2, 0]),
    "three lists": ([0, 1], [2, 0], [-1, 3]), "broadcast lists": ([[0], [1]], [2, 0]),
    "adjacent at the end": (slice(None), [0, 1], [2, 0]), "apart": ([0, 1], slice(None), [2, 0]),
    "apart by a new dim": ([0, 1], None, [2, 0]), "list and int": ([0, 1], 1),
    "list and slice": ([1, 0, 1], slice(None, None, -1)),
    "slice and list": (slice(None, None, -1), [0, 2, 1], slice(1, 3)),
    "strided indices": np.arange(8).reshape(2, 4)[:, ::3] % 2, "one": [0],
    "mask": MASK, "leading mask": np.array([True, False]), "mask list": [False, True],
    "mask of nothing": np.zeros((2, 3), bool), "full mask": np.ones((2, 3, 4), bool),
    "some of all": np.arange(24).reshape(2, 3, 4) % 5 == 0, "mask and int": (MASK, 1),
    "mask and slice": (MASK, slice(1, 3)),
    "trailing mask": (..., np.array([True, False, False, True])),
    "trailing 2-d mask": (slice(None), np.arange(12).reshape(3, 4) % 3 > 0),
    "mask and list": (MASK, [0, 1, -1]),
    "two masks": (np.array([True, False]), np.array([1, 0, 1]) > 0),
    "int and mask": (1, np.array([True, False, True])), "new and mask": (None, MASK),
    "strided mask": np.repeat(MASK, 2, 1)[:, ::2], "True": True, "False": False,
    "numpy True": np.True_, "True and a list": (True, [0]), "list and False": ([0], False),
}


def values(name="float32", shape=(2, 3, 4)):
    return (np.arange(np.prod(shape)).reshape(shape) % 120 + 1).astype(name)


def write(x, key, value, accumulate=False):
    put(x, parse(x, key), value, accumulate)


def is_basic(key):
    parts = key if isinstance(key, tuple) else (key,)
    return all(part is None or part is ... or isinstance(part, slice)
               or (np.ndim(part) == 0 and not isinstance(part, (bool, np.bool_))) for part in parts)


def as_tensors(key):
    """The key with tensors in place of arrays, and ints in place of 0-d arrays."""
    if isinstance(key, tuple):
        return tuple(as_tensors(part) for part in key)
    if isinstance(key, np.ndarray):
        return from_numpy(key.astype("i8") if key.dtype.kind == "u" else key)
    return key


# ---- reading ------------------------------------------------------------------------------------

@each("layout", LAYOUTS)
@each("name", KEYS)
def test_reading(name, layout):
    a = LAYOUTS[layout](values())
    x, key = from_numpy(a), KEYS[name]
    want = a[key]
    for same in (x[key], x[as_tensors(key)], take(x, parse(x, key))):
        assert tuple(same.shape) == want.shape
        assert same.tolist() == want.tolist()
        assert np.shares_memory(same.numpy(), a) == (is_basic(key) and want.size > 0)


@each("name", BY_NAME)
def test_every_dtype_moves(name):
    x = tensor([[1, 0, 1], [0, 1, 1]], dtype=BY_NAME[name])
    one, zero = tensor([1, 0], dtype=BY_NAME[name]).tolist()
    assert x[:, [2, 1]].tolist() == [[one, zero], [one, one]]
    assert x[[1, 0, 1]].tolist() == [[zero, one, one], [one, zero, one], [zero, one, one]]
    assert x[[1, 0], [0, 0]].tolist() == [zero, one]
    assert x[np.array(MASK)].tolist() == [one, one, one]
    assert x.dtype is x[[0]].dtype is x[MASK].dtype


@pytest.mark.parametrize("shape", [(100_000,), (700, 300), (40, 50, 60)])
def test_large_work(shape):
    a = np.random.default_rng(0).random(shape)
    x = from_numpy(a)
    index = np.random.default_rng(1).integers(-shape[0], shape[0], 5000)
    assert (x[index].numpy() == a[index]).all()
    assert (x[..., index % shape[-1]].numpy() == a[..., index % shape[-1]]).all()
    assert (x[a > 0.5].numpy() == a[a > 0.5]).all()
    assert (x[::-1][a > 0.5].numpy() == a[::-1][a > 0.5]).all()
    write(x, a > 0.25, tensor(0.0, dtype=x.dtype))
    assert not (a > 0.25).any()


def test_tensors_may_bound_slices():
    x = from_numpy(np.arange(5))
    assert x[tensor(1):tensor([3])].tolist() == [1, 2]
    assert x[tensor(4)].tolist() == 4
    assert x[tensor(-1):].tolist() == [4]


@each(("key", "same"), [
    ((..., ...), ...), ((..., 0, ...), (..., 0)), ((0, ..., None, ...), (0, ..., None)),
    ((..., [0, 1], ...), (..., [0, 1])), (([1, 0], ..., 1, ...), ([1, 0], ..., 1)),
    ((..., [True, False, True, True], ...), (..., [True, False, True, True])),
])
def test_a_second_ellipsis_stands_for_no_dims(key, same):
    x = tensor(values().tolist())
    assert x[key].equal(x[same])
    assert vmap(lambda one: one[key])(x[None])[0].equal(x[same])
    y = x.clone()
    x[key], y[same] = 7, 7
    assert x.equal(y)


def test_an_int_tensor_stays_in_place_as_an_int():
    # NumPy moves the list's dim to the front here, PyTorch does not
    x = from_numpy(values())
    for zero in (0, tensor(0)):
        assert x[zero, :, [0, 1]].shape == (3, 2)


def test_bytes_of_a_mask_need_not_be_one():
    mask = np.array([2, 0, 255, 1], "u1").view(bool)
    x = from_numpy(np.arange(4))
    assert x[mask].tolist() == [0, 2, 3]
    assert nonzero(from_numpy(mask)).tolist() == [[0], [2], [3]]


@each(("shape", "key", "error", "message"), [
    ((3,), 5, IndexError, "index 5 is out of bounds for dimension 0 with size 3"),
    ((3,), -4, IndexError, "index -4 is out of bounds for dimension 0 with size 3"),
    ((2, 3), (0, 3), IndexError, "index 3 is out of bounds for dimension 1 with size 3"),
    ((3,), 2**70, IndexError, "index"), ((0, 3), 0, IndexError, "index 0 .* size 0"),
    ((), 0, IndexError, "too many indices for tensor of dimension 0"),
    ((3,), (0, 0), IndexError, "too many indices for tensor of dimension 1"),
    ((3,), MASK, IndexError, "too many indices"),
    ((3,), slice(None, None, 0), ValueError, "slice step cannot be zero"),
    ((3,), slice(0.5, None), TypeError, "slice indices"),
    ((3,), 0.5, IndexError, "got float"), ((3,), "a", TypeError, "got str"),
    ((3,), object(), TypeError, "got object"), ((3,), [0.5], IndexError, "float32"),
    ((3,), ["a"], IndexError, "hold ints or bools"),
    ((3,), ([None, 0],), IndexError, "use a tuple"),
    ((3,), ([[0], [0, 1]],), IndexError, "hold ints or bools"),
    ((3,), np.zeros(1), IndexError, "float64"),
    ((3,), [3], IndexError, "index 3 is out of bounds for dimension 0 with size 3"),
    ((3,), [0, -4, 9], IndexError, "index -4 is out of bounds"),
    ((2, 3), (slice(None), [3]), IndexError, "index 3 is out of bounds for dimension 1"),
    ((0, 3), [0], IndexError, "size 0"),
    ((2, 3), np.ones(3, bool), IndexError, r"mask \[3\] at index 0 .* tensor \[2, 3\] at index 0"),
    ((2, 3), (slice(None), MASK[0, :2]), IndexError, r"mask \[2\] at index 0 .* at index 1"),
    ((2, 3), np.ones((2, 2), bool), IndexError, r"mask \[2, 2\] at index 1"),
    ((2, 3), ([0, 1], [0, 1, 2]), IndexError, r"broadcast together with shapes \[2\], \[3\]"),
    ((1,) * 60, (None,) * 5, IndexError, "at most 64 dims"),
])
def test_errors(shape, key, error, message):
    a = np.ones(shape)
    x = from_numpy(a)
    with pytest.raises(error, match=message):
        x[key]
    with pytest.raises(error, match=message):
        write(x, key, tensor(5.0, dtype=x.dtype))
    assert (a == 1).all()


# ---- writing ------------------------------------------------------------------------------------

@each("layout", LAYOUTS)
@each("name", KEYS)
def test_writing(name, layout):
    key = KEYS[name]
    shape = values()[key].shape
    fresh = 100 + values(shape=shape)
    for value in (fresh, fresh[..., ::-1][..., ::-1] if shape else fresh, np.float32(7),
                  fresh[:1] if shape else fresh, fresh[..., :1] if shape else fresh):
        a, b = LAYOUTS[layout](values()), values()
        b[key] = value
        write(from_numpy(a), key, from_numpy(np.asarray(value)))
        assert a.tolist() == b.tolist()


@each("layout", LAYOUTS)
@each("dtype", NAMES)
def test_long_rows_are_read_and_written_where_they_lie(dtype, layout):
    """Rows whose elements have gaps, at positions and under masks, of which the last wins."""
    rng = np.random.default_rng(3)
    whole = rng.integers(0, 2, (6, 3, 37)).astype(dtype)
    rows = np.array([4, 0, 4, 5])
    masks = whole != 0, rng.random((6, 3)) < 0.5, rng.random(6) < 0.5
    for key in (rows, (rows, [2, 1, 2, 0]), (slice(1, 3), [1, 1]), slice(None, None, -2), *masks):
        a, b = LAYOUTS[layout](whole), whole.copy()
        assert from_numpy(a)[key].numpy().tobytes() == b[key].tobytes()
        for value in (rng.integers(0, 2, b[key].shape), np.array([1])):
            b[key] = value.astype(dtype)
            write(from_numpy(a), key, from_numpy(value.astype(dtype)))
            assert a.tobytes() == b.tobytes()


@each("layout", LAYOUTS)
@each("dtype", NAMES)
@each("name", KEYS)
def test_accumulating(name, dtype, layout):
    key = KEYS[name]
    a, b = LAYOUTS[layout](values() % 5).astype(dtype), (values() % 5).astype(dtype)
    value = np.asarray(values(shape=b[key].shape) % 3, dtype)
    np.add.at(b, key, value)
    x = from_numpy(a)
    write(x, key, from_numpy(value), accumulate=True)
    assert x.tolist() == b.tolist()


def test_bfloat16_accumulates_in_float32():
    x = tensor([256.0, 0.0], dtype=BY_NAME["bfloat16"])
    ones = tensor([1.0] * 8, dtype=x.dtype)
    write(x, [0] * 8, ones, accumulate=True)     # 256 + 1 is 256 in bfloat16
    assert x.tolist() == [264, 0]


def test_duplicates():
    x = from_numpy(np.zeros(3))
    ramp = from_numpy(np.arange(2000.0))
    write(x, np.arange(2000) % 2, ramp)
    assert x.tolist() == [1998, 1999, 0]
    write(x, np.arange(2000) % 2, ramp, accumulate=True)
    assert x.tolist() == [1998 + 999000, 1999 + 1000000, 0]


def test_overlap_acts_as_if_copied_first():
    a = np.arange(8.0)
    x = from_numpy(a)
    write(x, slice(1, None), x[:-1])
    assert a.tolist() == [0, 0, 1, 2, 3, 4, 5, 6]
    write(x, slice(None, None, -1), x)
    assert a.tolist() == [6, 5, 4, 3, 2, 1, 0, 0]
    write(x, [0, 1, 2, 3], x[4:8])
    assert a.tolist() == [2, 1, 0, 0, 2, 1, 0, 0]
    write(x, slice(1, None), x[:-1], accumulate=True)
    assert a.tolist() == [2, 3, 1, 0, 2, 3, 1, 0]


def test_a_tensor_may_index_itself():
    a = np.array([2, 0, 1, 0])
    x = from_numpy(a)
    write(x, x, from_numpy(np.array([10, 20, 30, 40])))
    assert a.tolist() == [40, 30, 10, 0]
    mask = np.array([True, False, True])
    write(from_numpy(mask), from_numpy(mask), tensor(False))
    assert not mask.any()


def test_a_parsed_key_keeps_what_it_was_given():
    x = from_numpy(np.arange(4))
    index, mask = np.array([3, -1]), np.array([True, False, False, True])
    by_index, by_mask = parse(x, index), parse(x, mask)
    index[:] = 99
    mask[:] = True
    assert take(x, by_index).tolist() == [3, 3]
    assert take(x, by_mask).tolist() == [0, 3]


@pytest.mark.parametrize(("key", "shape"), [
    (0, (4,)), (slice(0, 2), (3, 3)), ([0, 1], (2, 4)), ([0, 1], (2, 1, 3)), (MASK, (2,)),
    ((0, 0), (2,)),
])
def test_values_that_do_not_broadcast(key, shape):
    a = values(shape=(2, 3))
    before = a.tolist()
    with pytest.raises(RuntimeError, match="value tensor of shape .* cannot be broadcast"):
        write(from_numpy(a), key, from_numpy(values(shape=shape)))
    assert a.tolist() == before


def test_leading_dims_of_size_one_are_dropped():
    a = values(shape=(2, 3))
    write(from_numpy(a), 0, from_numpy(np.float32([[[7, 8, 9]]])))
    assert a[0].tolist() == [7, 8, 9]


def test_read_only_memory_is_not_written():
    a = np.zeros((2, 3))
    a.flags.writeable = False
    for key in (0, [0], MASK, ...):
        for accumulate in (False, True):
            with pytest.raises(RuntimeError, match="read-only"):
                write(from_numpy(a), key, tensor(1.0, dtype=BY_NAME["float64"]), accumulate)
    assert not a.any()


# ---- nonzero ------------------------------------------------------------------------------------

@each("name", BY_NAME)
@each("shape", [(), (0,), (7,), (2, 3), (3, 0, 2), (2, 3, 4)])
def test_nonzero(name, shape):
    a = np.arange(np.prod(shape, dtype=int)).reshape(shape) % 3
    x = tensor(a, dtype=BY_NAME[name])
    want = np.argwhere(a)
    assert nonzero(x).tolist() == want.tolist()
    assert tuple(nonzero(x).shape) == want.shape


def test_nonzero_of_floats():
    for name in ("float16", "bfloat16", "float32", "float64"):
        x = tensor([0.0, -0.0, float("nan"), float("-inf"), -1.0], dtype=BY_NAME[name])
        assert nonzero(x).tolist() == [[2], [3], [4]]
    assert nonzero(from_numpy(np.eye(3)[::-1])).tolist() == [[0, 2], [1, 1], [2, 0]]


# ---- random expressions -------------------------------------------------------------------------

@st.composite
def shapes_and_keys(draw):
    """A shape and a key for it that NumPy and we read alike: no int beside lists or masks."""
    shape = tuple(draw(st.lists(st.integers(0, 4), min_size=1, max_size=4)))
    advanced = draw(st.booleans())
    n = draw(st.integers(1, 4))
    parts, dim = [], 0
    while dim < len(shape):
        size = shape[dim]
        kind = draw(st.sampled_from(["slice", "new", "list", "mask"] if advanced else
                                    ["slice", "new", "int"]))
        if kind == "new":
            parts.append(None)
        elif kind == "int" and size:
            parts.append(draw(st.integers(-size, size - 1)))
        elif kind == "list" and size:
            parts.append(np.array(draw(st.lists(st.integers(-size, size - 1), min_size=n,
                                                max_size=n))))
        elif kind == "mask" and size >= n:
            chosen = draw(st.permutations(range(size)))[:n]
            parts.append(np.isin(np.arange(size), chosen))
        else:
            parts.append(draw(st.slices(size)))
        dim += kind != "new"
        if len(parts) > 8:
            break
    stop = draw(st.integers(0, len(parts)))
    if draw(st.booleans()):
        return shape, (*parts[:stop], ...)
    return shape, tuple(parts[:stop])


@given(shapes_and_keys())
def test_random_expressions(shape_and_key):
    shape, key = shape_and_key
    a = values("int64", shape)
    x, want = from_numpy(a.copy()), np.asarray(a[key])
    assert tuple(x[key].shape) == want.shape
    assert x[key].tolist() == want.tolist()
    fresh = np.asarray(values("int64", want.shape) + 1000)
    write(x, key, from_numpy(fresh))
    a[key] = fresh
    assert x.tolist() == a.tolist()
    write(x, key, from_numpy(fresh), accumulate=True)
    np.add.at(a, key, fresh)
    assert x.tolist() == a.tolist()


@pytest.mark.parametrize("take, offset", [
    (lambda x: x[1:1], 3), (lambda x: x[2:], 6), (lambda x: x[1:0], 3), (lambda x: x[1:1, 2:2], 5),
    (lambda x: x[1, 3:], 6)])
def test_a_slice_of_no_elements_begins_where_it_was_cut(take, offset):
    assert take(from_numpy(np.zeros((2, 3)))).storage_offset() == offset
