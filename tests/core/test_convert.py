"""Numbers, nested sequences, NumPy arrays, buffers, pickles and copies: into tensors and back."""

import copy
import gc
import math
import pickle
import sys
from array import array
from collections import UserDict

import numpy as np
import pytest
from cases import each
from tensorlib import OutOfMemoryError, ones, ops
from tensorlib._core.arrays.arrays import from_numpy, frombuffer, narrow, widen
from tensorlib._core.arrays.convert import as_tensor, asarray, tensor
from tensorlib._core.base.dtypes import BY_NAME, get_default_dtype, set_default_dtype
from tensorlib._core.tensor.numbers import OutOfRangeError
from tensorlib._core.index import keys
from tensorlib._core.tensor.tensor import Tensor


NAMES = list(BY_NAME)
NUMPY_NAMES = [name for name in NAMES if name != "bfloat16"]
LAYOUTS = {
    "contiguous": lambda a: a,
    "transposed": lambda a: a.T,
    "strided": lambda a: a[::2, 1:],
    "reversed": lambda a: a[::-1, ::-2],
    "expanded": lambda a: np.broadcast_to(a[:1], (4, 6)),
    "empty": lambda a: a[:0],
    "0-d": lambda a: a[1, 2, ...],
}


def grid(name):
    return np.arange(24).reshape(4, 6).astype(name)


# ---- numbers and sequences ----------------------------------------------------------------------

@each(("data", "dtype", "shape"), [
    (3, "int64", ()), (1.5, "float32", ()), (True, "bool", ()), ([], "float32", (0,)),
    ([[], []], "float32", (2, 0)), ([1, 2.5], "float32", (2,)), ([True, 2], "int64", (2,)),
    ([True, False], "bool", (2,)), (((1, 2), [3, 4]), "int64", (2, 2)), (range(3), "int64", (3,)),
    (np.float64(1.5), "float64", ()), ([np.int32(1)], "int32", (1,)),
    ([np.int32(1), 2], "int64", (2,)), ([np.float32(1), np.float64(2)], "float64", (2,)),
    (bytearray(b"ab"), "uint8", (2,)), (array("d", [1, 2]), "float64", (2,)),
    ([[[[1.0]]]], "float32", (1, 1, 1, 1)), ([np.array(1, "i4"), np.array(2.0)], "float64", (2,)),
])
def test_dtype_and_shape_are_inferred(data, dtype, shape):
    x = tensor(data)
    assert x.dtype is BY_NAME[dtype]
    assert tuple(x.shape) == shape
    assert x.is_contiguous()


def test_python_floats_take_the_default_dtype():
    before = get_default_dtype()
    try:
        set_default_dtype(BY_NAME["float64"])
        assert tensor([0.1]).tolist() == [0.1]
        assert tensor([]).dtype is BY_NAME["float64"]
    finally:
        set_default_dtype(before)


@each("name", NAMES)
@each("data", [1, 0, [1, 0, 3], [[1.0, 2.0]], [True, False], []])
def test_given_dtype(name, data):
    x = tensor(data, dtype=BY_NAME[name])
    want = np.array(data).astype("float32" if name == "bfloat16" else name)
    assert x.dtype is BY_NAME[name]
    assert x.tolist() == want.tolist()


@each(("data", "message", "error"), [
    ([[1, 2], [3]], "length 2 at dim 1 .got 1", ValueError),
    ([[], [1]], "length 0 at dim 1 .got 1", ValueError),
    ([[[1, 2], [3, 4]], [[1, 2], [3]]], "length 2 at dim 2 .got 1", ValueError),
    ([[1, 2], 3], "length 2 at dim 1 .got int", TypeError),
    ([1, [2, 3]], "number at dim 1.* got list", TypeError),
    ([np.ones(2), np.ones(3)], "length 2 at dim 1 .got 3", ValueError),
    ([np.ones(2), np.ones((2, 2))], "1 dims at dim 1 .got 2", ValueError),
    ([np.ones(2), 1.0], "an array at dim 1", TypeError),
    ("abc", "got str 'abc'", TypeError), ([1, "a"], "got str 'a'", TypeError),
    (b"ab", "got bytes", TypeError),
    (None, "infer dtype of NoneType", RuntimeError), ({1: 2}, "dtype of dict", RuntimeError),
    ({1}, "dtype of set", RuntimeError), (object(), "dtype of object", RuntimeError),
    ([[None]], "dtype of NoneType", RuntimeError),
    (np.array(["a"]), "<U1", TypeError), (np.ones(2, "clongdouble"), "complex256", TypeError),
])
def test_what_is_no_tensor(data, message, error):
    with pytest.raises(error, match=message):
        tensor(data)


def test_a_mapping_without_a_first_item_is_refused():
    for data in (UserDict(a=1), ops.registry):
        with pytest.raises(ValueError, match=rf"an object of type (\w+\.)?{type(data).__name__}"):
            tensor(data)


def test_a_list_that_holds_itself_is_refused():
    data = []
    data.append(data)
    with pytest.raises(ValueError, match="nested deeper than 64"):
        tensor(data)


@each(("value", "name"), [
    (2**63, "int64"), (-2**63 - 1, "int64"), (10**2000, "int64"), (300, "uint8"), (-1, "uint8"),
    (128, "int8"), (-129.5, "int8"), (40000, "int16"), (2**40, "int32"), (math.nan, "int32"),
    (math.inf, "int64"), (1e30, "int64"), (2.0**63, "int64"), (-1.0, "uint8"),
])
def test_numbers_out_of_range(value, name):
    for error in (OutOfRangeError, OverflowError, RuntimeError, ValueError):
        with pytest.raises(error, match=f"does not fit in tensorlib.{name}"):
            tensor([value], dtype=BY_NAME[name])


@pytest.mark.parametrize(("name", "low", "high"), [
    ("uint8", 0, 255), ("int8", -128, 127), ("int16", -2**15, 2**15 - 1),
    ("int32", -2**31, 2**31 - 1), ("int64", -2**63, 2**63 - 1),
])
def test_the_whole_range_of_integers(name, low, high):
    assert tensor([low, high], dtype=BY_NAME[name]).tolist() == [low, high]


def test_halves_round_once():
    # between two halves, a float32 in the middle would round the wrong way
    value = 1 + 2.0**-11 + 2.0**-40
    assert tensor(value, dtype=BY_NAME["float16"]).item() == np.float16(value).item()
    assert tensor(1e30, dtype=BY_NAME["float16"]).item() == math.inf


def test_bfloat16_bits():
    values = np.array([0.0, -0.0, 1.0, 1.00390625, 1.01171875, -3e38, 3.4e38, np.inf, np.nan,
                       1e-40], "f4")
    bits = narrow(values)
    # ties go to even: 1 + 2**-8 down, 1 + 3 * 2**-8 up
    assert bits[:5].tolist() == [0, 0x8000, 0x3f80, 0x3f80, 0x3f82]
    wide = widen(bits)
    assert wide[6] == np.inf and wide[7] == np.inf and np.isnan(wide[8])
    assert (narrow(wide[:8]) == bits[:8]).all()


def test_list_of_arrays_and_of_tensors():
    rows = [np.arange(3, dtype="f4") + i for i in range(4)]
    want = np.array(rows)
    assert tensor(rows).tolist() == want.tolist()
    assert tensor([row[::-1] for row in rows]).tolist() == want[:, ::-1].tolist()
    assert tensor([rows, rows]).shape == (2, 4, 3)
    assert tensor([row.astype(">f8") for row in rows]).tolist() == want.tolist()
    assert tensor([from_numpy(row) for row in rows]).tolist() == want.tolist()
    assert tensor([rows[0], rows[1].astype("f8")]).dtype is BY_NAME["float64"]
    # tensors of one element stand for their number, as in PyTorch
    assert tensor([tensor([1.0]), tensor(2)]).tolist() == [1.0, 2.0]


def test_sequences_of_our_own():
    class Pair:
        def __len__(self):
            return 2

        def __getitem__(self, i):
            if i > 1:
                raise IndexError(i)
            return 10 * i

    assert tensor([Pair(), Pair()]).tolist() == [[0, 10], [0, 10]]


def test_a_sequence_that_changes_is_noticed():
    class Growing:
        length = 1

        def __len__(self):
            return self.length

        def __getitem__(self, i):
            if i >= self.length:
                self.length += 1
                raise IndexError(i)
            return 1.5

    with pytest.raises(ValueError, match="length|changed"):
        tensor([Growing(), Growing()])


def test_tensors_are_copied():
    x = tensor([1.0, 2.0])
    y = tensor(x)
    assert y.data_ptr() != x.data_ptr()
    assert tensor(x, dtype=BY_NAME["int64"]).tolist() == [1, 2]
    assert Tensor([[1, 2]]).tolist() == [[1, 2]]


def test_only_the_cpu():
    assert tensor(1, device="cpu").item() == 1
    for make in (tensor, asarray, as_tensor):
        with pytest.raises(RuntimeError, match="cuda"):
            make([1], device="cuda")


def test_requires_grad():
    assert tensor([1.0], requires_grad=True).requires_grad
    with pytest.raises(RuntimeError, match="floating"):
        tensor([1], requires_grad=True)


# ---- NumPy --------------------------------------------------------------------------------------

@each("layout", LAYOUTS)
@each("name", NUMPY_NAMES)
def test_numpy_round_trip_shares_memory(name, layout):
    a = LAYOUTS[layout](grid(name))
    x = from_numpy(np.asarray(a))
    back = x.numpy()
    assert x.dtype is BY_NAME[name]
    assert tuple(x.shape) == a.shape
    assert x.tolist() == a.tolist()
    assert back.dtype == a.dtype
    assert back.tolist() == a.tolist()
    if back.size:
        assert np.shares_memory(back, a)
        assert back.strides == a.strides or layout == "empty"


def test_writes_go_both_ways():
    a = np.zeros(3)
    x = from_numpy(a)
    x.numpy()[0] = 5
    a[2] = 7
    assert x.tolist() == [5, 0, 7]


def test_memory_outlives_its_owners():
    back = from_numpy(np.arange(1000.0)).numpy()
    own = tensor([float(i) for i in range(1000)]).numpy()
    gc.collect()
    churn = [tensor([0.0] * 1000) for _ in range(10)]
    assert back.sum() == own.sum() == 499500
    del churn


def test_references_are_not_leaked():
    a = np.ones(3)
    before = sys.getrefcount(a)
    for _ in range(10):
        x = from_numpy(a)
        y = x.numpy()
        memoryview(x).release()
        del x, y
    assert sys.getrefcount(a) == before


def test_read_only_arrays_stay_read_only():
    a = np.zeros(3)
    a.flags.writeable = False
    x = from_numpy(a)
    assert not x.numpy().flags.writeable
    assert memoryview(x).readonly
    with pytest.raises(RuntimeError, match="read-only"):
        keys.put(x, keys.parse(x, 0), tensor(1.0, dtype=x.dtype), False)
    assert not a.any()


@each(("make", "error"), [
    (lambda: np.ones(2, ">f4"), ValueError), (lambda: np.ones(2, "m8[s]"), TypeError),
    (lambda: np.array([None]), TypeError), (lambda: np.ones(2, "clongdouble"), TypeError),
    (lambda: np.zeros(3, [("a", "i1"), ("b", "f4")])["b"], ValueError),
    (lambda: np.zeros(3, [("a", "f4"), ("b", "f8")], )["b"], ValueError),
    (lambda: [1.0], TypeError), (lambda: np.float32(1), TypeError),
])
def test_from_numpy_refuses(make, error):
    with pytest.raises(error):
        from_numpy(make())


def test_tensor_copies_what_can_not_be_shared():
    odd = np.zeros(3, [("a", "i1"), ("b", "f4")])["b"]
    odd[:] = [1, 2, 3]
    assert tensor(odd).tolist() == [1, 2, 3]
    assert tensor(np.arange(3, dtype=">i4")).tolist() == [0, 1, 2]


def test_numpy_functions_take_tensors():
    x = tensor([[1.0, 2.0]])
    assert np.shares_memory(np.asarray(x), x.numpy())
    assert np.asarray(x, dtype="f8").dtype == np.float64
    assert not np.shares_memory(np.array(x), x.numpy())
    assert np.sum(np.asarray(x)) == 3
    with pytest.raises(ValueError, match="without a copy"):
        x.__array__(np.dtype("f8"), copy=False)


def test_numpy_of_a_tensor_that_requires_grad():
    x = tensor([1.0], requires_grad=True)
    for convert in (Tensor.numpy, np.asarray, np.array):
        with pytest.raises(RuntimeError, match="Use tensor.detach"):
            convert(x)
    with pytest.raises(BufferError, match="requires grad"):
        memoryview(x)
    assert x.detach().numpy() == 1
    assert x.numpy(force=True) == 1


def test_bfloat16_has_no_numpy():
    x = tensor([1.0], dtype=BY_NAME["bfloat16"])
    with pytest.raises(TypeError, match="bfloat16"):
        x.numpy()
    with pytest.raises(BufferError, match="bfloat16"):
        memoryview(x)


def test_asarray_shares_where_it_can():
    a = np.ones(3)
    x = tensor([1.0])
    assert asarray(x) is x
    assert asarray(a).data_ptr() == a.ctypes.data
    assert asarray(a, copy=True).data_ptr() != a.ctypes.data
    assert asarray(a, dtype=BY_NAME["float32"]).dtype is BY_NAME["float32"]
    assert asarray(b"ab").tolist() == [97, 98]
    assert as_tensor(x) is x
    for obj, dtype in [([1.0], None), (a, BY_NAME["float32"])]:
        with pytest.raises(ValueError, match="can't share"):
            asarray(obj, dtype=dtype, copy=False)
    leaf = tensor([1.0], requires_grad=True)
    assert asarray(leaf).requires_grad
    assert not asarray(leaf, requires_grad=False).requires_grad
    assert leaf.requires_grad


# ---- buffers ------------------------------------------------------------------------------------

@each("layout", LAYOUTS)
@each("name", NUMPY_NAMES)
def test_memoryview(name, layout):
    a = np.asarray(LAYOUTS[layout](grid(name)))
    view = memoryview(from_numpy(a))
    assert view.shape == a.shape
    assert view.itemsize == a.itemsize
    assert view.nbytes == a.nbytes
    if name != "float16" and "complex" not in name:       # which memoryview itself can't read
        assert view.tolist() == a.tolist()
    assert np.asarray(view).dtype == a.dtype


def test_bytes_of_a_strided_tensor_need_strides():
    x = from_numpy(np.arange(4.0)[::2])
    with pytest.raises((BufferError, ValueError)):
        np.frombuffer(x)
    assert bytes(memoryview(x)) == np.array([0.0, 2.0]).tobytes()


def test_frombuffer():
    data = bytearray(np.arange(4, dtype="i4").tobytes())
    int32 = BY_NAME["int32"]
    x = frombuffer(data, dtype=int32)
    data[0] = 9
    assert x.tolist() == [9, 1, 2, 3]
    assert frombuffer(data, dtype=int32, count=2, offset=4).tolist() == [1, 2]
    assert frombuffer(b"\x80\x3f", dtype=BY_NAME["bfloat16"]).tolist() == [1.0]
    assert memoryview(frombuffer(b"abcd", dtype=int32)).readonly
    for count, offset in [(0, 0), (5, 0), (-1, 16), (-1, -1), (-1, 2), (1, 2)]:
        with pytest.raises(ValueError, match="frombuffer"):
            frombuffer(data, dtype=int32, count=count, offset=offset)
    for buffer in (b"", 3):
        with pytest.raises(ValueError, match="frombuffer"):
            frombuffer(buffer, dtype=int32)


# ---- back to Python -----------------------------------------------------------------------------

@each("name", NAMES)
def test_numbers(name):
    x = tensor([[1]], dtype=BY_NAME[name])
    kind = bool if name == "bool" else float if "float" in name else (
        complex if "complex" in name else int)
    assert type(x.item()) is kind
    assert x.item() == float(x) == int(x) == complex(x) == 1
    assert bool(x)
    assert not tensor(0, dtype=BY_NAME[name])
    if kind in (float, complex):
        with pytest.raises(TypeError, match="integer tensors"):
            [1, 2][x]
    else:
        assert [1, 2][x] == 2


def test_numbers_of_several_elements():
    for data in ([1.0, 2.0], []):
        x = tensor(data)
        with pytest.raises(RuntimeError, match=f"a Tensor with {len(data)} elements"):
            x.item()
        with pytest.raises(RuntimeError, match="Boolean value of Tensor"):
            bool(x)
        for number in (int, float, complex):
            with pytest.raises(ValueError, match="only one element"):
                number(x)
        with pytest.raises(TypeError, match="only integer tensors"):
            x.__index__()
    with pytest.raises(ValueError, match="NaN"):
        int(tensor(math.nan))
    with pytest.raises(OverflowError):
        int(tensor(math.inf))


def test_halves_as_numbers():
    values = [0.0, -0.0, 1.5, 65504.0, 2.0**-24, math.inf, -math.inf]
    assert tensor(values, dtype=BY_NAME["float16"]).tolist() == values
    assert math.isnan(tensor(math.nan, dtype=BY_NAME["float16"]).item())
    assert tensor([1.5, -2.0], dtype=BY_NAME["bfloat16"]).tolist() == [1.5, -2.0]


def test_iteration_is_lazy_over_the_first_dim():
    x = from_numpy(np.arange(6).reshape(3, 2))
    rows = iter(x)
    first = next(rows)
    x.numpy()[1] = 9
    assert first.tolist() == [0, 1]
    assert [row.tolist() for row in rows] == [[9, 9], [4, 5]]
    with pytest.raises(OutOfMemoryError, match="268435456 rows are too many"):
        list(ones(1).expand(2**28, 1))
    assert next(iter(ones(1).expand(2**28 - 1))) == 1
    with pytest.raises(TypeError, match="iteration over a 0-d tensor"):
        iter(tensor(1))


# ---- pickles and copies -------------------------------------------------------------------------

@each("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@each("name", NAMES)
def test_pickle(name, protocol):
    for data in (3, [1, 2], [[1, 0, 1]], [], [[], []]):
        x = tensor(data, dtype=BY_NAME[name])
        y = pickle.loads(pickle.dumps(x, protocol))
        assert y.dtype is x.dtype
        assert y.shape == x.shape
        assert y.tolist() == x.tolist()
        assert y.storage_offset() == 0


@each("protocol", [2, 5])
def test_pickle_of_views_and_leaves(protocol):
    x = from_numpy(np.arange(1e6).reshape(1000, 1000))
    data = pickle.dumps(x[::-1, 3], protocol)
    assert len(data) < 10000
    assert pickle.loads(data).tolist() == x[::-1, 3].tolist()
    leaf = tensor([1.0], requires_grad=True)
    one, two = pickle.loads(pickle.dumps([leaf, leaf], protocol))
    assert one is two
    assert one.requires_grad and one.is_leaf


def test_out_of_band_pickles_share_memory():
    x = tensor([1.0, 2.0])
    buffers = []
    data = pickle.dumps(x, 5, buffer_callback=buffers.append)
    assert len(buffers) == 1
    same = pickle.loads(data, buffers=buffers)
    assert same.data_ptr() == x.data_ptr()
    copied = pickle.loads(data, buffers=[bytes(buffers[0].raw())])
    assert copied.tolist() == [1, 2]
    assert not memoryview(copied).readonly


def test_a_pickle_of_wrong_size_is_refused():
    rebuild, args = tensor([1.0, 2.0]).__reduce_ex__(2)[:2]
    with pytest.raises(pickle.UnpicklingError, match="has 12 bytes, the pickle holds 8"):
        rebuild(*args[:2], (3,), *args[3:])


def test_copy_shares_and_deepcopy_does_not():
    x = tensor([1.0, 2.0], requires_grad=True)
    x.grad = tensor([3.0, 4.0])
    shallow, deep = copy.copy(x), copy.deepcopy(x)
    assert shallow.data_ptr() == x.data_ptr()
    assert shallow.requires_grad and deep.requires_grad
    assert deep.data_ptr() != x.data_ptr()
    assert deep.grad.tolist() == [3, 4]
    assert deep.grad is not x.grad
    one, two = copy.deepcopy([x, x])
    assert one is two


def test_subclasses_keep_their_type_and_attributes():
    x = Named([1.0])
    x.name = "w"
    for y in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert type(y) is Named
        assert y.name == "w"
        assert y.tolist() == [1]


class Named(Tensor):
    pass
