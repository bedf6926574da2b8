"""What is saved is loaded again: values, types, structure, names, and shared memory."""

import io
import json
import math
import os
from collections import Counter, OrderedDict

import numpy as np
import pytest
from cases import each
from hypothesis import given, settings
from hypothesis import strategies as st

from damage import Safetensors, zipped

import tensorlib as tl
from tensorlib import nn
from tensorlib.io.files import LoadError, container
from tensorlib.testing import assert_close

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32",
          "uint64", "float16", "bfloat16", "float32", "float64"]
SHAPES = [(), (0,), (3,), (2, 0, 3), (2, 3, 1, 2)]


def round_trip(obj, kind=Safetensors, **options):
    file = kind()
    tl.save(obj, file)
    file.seek(0)
    return tl.load(file, **options)


both_formats = pytest.mark.parametrize("kind", [Safetensors, io.BytesIO], ids=["safetensors", "pt"])


def assert_same(found, wanted):
    assert type(found) is type(wanted)
    if isinstance(wanted, tl.Tensor):
        assert found.dtype == wanted.dtype and found.requires_grad == wanted.requires_grad
        assert_close(found.detach(), wanted.detach(), rtol=0, atol=0)
    elif isinstance(wanted, (np.ndarray, np.generic)):
        assert found.dtype == wanted.dtype and np.array_equal(found, wanted)
    elif isinstance(wanted, dict):
        assert list(found) == list(wanted)
        for key in wanted:
            assert_same(found[key], wanted[key])
    elif isinstance(wanted, (list, tuple)):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted):
            assert_same(one, other)
    elif isinstance(wanted, float) and math.isnan(wanted):
        assert math.isnan(found)
    else:
        assert found == wanted


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mmap", [None, False])
@pytest.mark.parametrize("name", ["x.safetensors", "x.pt"])
def test_tensors_of_every_dtype_and_layout(dtype, mmap, tmp_path, name):
    whole = tl.arange(24).reshape(4, 6).to(getattr(tl, dtype))
    state = {"x": whole, "turned": whole.clone().t(), "some": whole.clone()[::2, 1::3],
             "backwards": whole.clone().flip(0), "spread": whole[0, 1].clone().expand(2, 3)}
    state.update({str(shape): tl.ones(shape, dtype=getattr(tl, dtype)) for shape in SHAPES})
    tl.save(state, tmp_path / name)
    assert_same(tl.load(tmp_path / name, mmap=mmap), state)


OTHERS = [
    None, True, 0, -3, 2**63, -2**200, 1.5, -0.0, math.inf, -math.inf, math.nan, 1 - 2j,
    "", "é\u2028\x00", "\ud800", b"", b"\x00\xff", bytearray(b"ab"), (), [], {}, set(), {1, "a"},
    frozenset([(1, 2)]), tl.float32, tl.bfloat16, tl.Size([2, 3]), tl.Size([]), tl.device("cpu"),
    OrderedDict(b=1, a=2), Counter("aab"), {1: 2, None: 3, (1, "a"): 4, 2.5: 5, False: 6, b"k": 7},
    np.float32(1.5), np.int64(-2), np.bool_(True), np.float64(0.1), np.str_("ab"),
    np.datetime64("2020-02-03"), np.complex128(1j), np.arange(6.0).reshape(2, 3).T,
    np.array(["a", "bcd"]), np.array([], np.uint16), np.array(3, np.uint64), np.zeros((2, 0)),
    np.arange(3, dtype=">i4"), np.array([b"x", b"yz"]), np.array([1, 2], "m8[s]"),
    np.ones(2, np.complex64), np.array([True, False]), {"tensor": "w", "dict": {"view": 1}},
    {"__metadata__": tl.ones(2)}, {"a": {"b": tl.ones(1)}, "a.b": tl.zeros(1)}, {"": tl.ones(1)},
    [tl.ones(2), {"x": (tl.zeros(1),)}], tl.tensor(2.5),
]


@each("value", OTHERS, ids=range(len(OTHERS)))
@both_formats
def test_other_values(value, kind):
    assert_same(round_trip(value, kind), value)
    assert_same(round_trip({"state": [value, tl.ones(2)]}, kind)["state"][0], value)


LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5),
    st.binary(max_size=5), st.complex_numbers(allow_nan=False),
    st.lists(st.integers(-9, 9), max_size=3).map(tl.tensor))
KEYS = st.one_of(st.text(max_size=4), st.integers(), st.tuples(st.integers(), st.text(max_size=2)))


@settings(max_examples=25)
@given(st.recursive(LEAVES, lambda inner: st.one_of(
    st.lists(inner, max_size=4), st.lists(inner, max_size=4).map(tuple),
    st.dictionaries(KEYS, inner, max_size=4),
    st.dictionaries(KEYS, inner, max_size=4).map(OrderedDict)), max_leaves=8))
def test_any_nesting(value):
    assert_same(round_trip(value), value)
    assert_same(round_trip(value, io.BytesIO), value)


def header(path):
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    return json.loads(data[8:8 + length]), data[8 + length:]


def test_a_plain_state_dict_is_a_plain_safetensors_file(tmp_path):
    state = {"b.weight": tl.arange(6.0).reshape(2, 3), "a": tl.tensor([True, False, True]),
             "c": tl.arange(2)}
    tl.save(state, tmp_path / "x.safetensors")
    found, data = header(tmp_path / "x.safetensors")
    assert found.pop("__metadata__") == {"format": "pt"}
    assert list(found) == list(state)
    assert found["b.weight"] == {"dtype": "F32", "shape": [2, 3], "data_offsets": [16, 40]}
    assert np.array_equal(np.frombuffer(data[16:40], "<f4"), np.arange(6))
    assert found["c"]["data_offsets"] == [0, 16] and len(data) == 43
    assert (len((tmp_path / "x.safetensors").read_bytes()) - len(data)) % 64 == 0


def test_tensors_in_containers_have_the_names_of_their_places(tmp_path):
    tl.save({"model": OrderedDict(w=tl.ones(2)), "steps": [tl.ones(1), 2]},
            tmp_path / "x.safetensors")
    found, _ = header(tmp_path / "x.safetensors")
    assert set(found) == {"__metadata__", "model.w", "steps.0"}


@both_formats
def test_parameters_and_buffers(kind):
    model = nn.Linear(2, 3)
    made = round_trip({"p": model.weight, "frozen": nn.Parameter(tl.ones(2), requires_grad=False),
                       "b": nn.Buffer(tl.ones(2), persistent=False),
                       "leaf": tl.ones(2, requires_grad=True), "of": (model.weight * 2)}, kind)
    assert type(made["p"]) is type(made["frozen"]) is nn.Parameter
    assert made["p"].requires_grad and not made["frozen"].requires_grad
    assert type(made["b"]) is nn.Buffer and not made["b"].persistent
    assert made["leaf"].requires_grad and made["of"].requires_grad and made["of"].is_leaf
    assert_close(made["p"].detach(), model.weight.detach())


# ---- shared memory -------------------------------------------------------------------------------

@pytest.mark.parametrize("name", ["x.safetensors", "x.pt"])
def test_shared_memory_is_shared_again(name, tmp_path):
    x = tl.arange(12.0).reshape(3, 4)
    tl.save({"x": x, "same": x, "other": x.detach(), "row": x[1], "turned": x.t(),
             "last": x[2:, 1::2]}, tmp_path / name)
    for mmap in (True, False):
        found = tl.load(tmp_path / name, mmap=mmap)
        assert found["same"] is found["x"] and found["other"] is not found["x"]
        assert found["turned"].stride() == x.t().stride()
        found["x"].zero_()
        assert all(not part.any() for part in found.values())
    if name == "x.safetensors":
        assert len(header(tmp_path / name)[1]) == 48


@both_formats
def test_tied_weights_stay_tied(kind):
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.head = nn.Embedding(5, 3), nn.Linear(3, 5, bias=False)
            self.head.weight = self.table.weight

    state = round_trip(Tied().state_dict(), kind)
    state["table.weight"].fill_(7)
    assert (state["head.weight"] == 7).all()


@both_formats
def test_overlapping_parts_without_their_whole(kind):
    x = tl.arange(100.0)
    found = round_trip([x[10:20], x[15:30:3], x[90:], tl.ones(2)], kind)
    assert [part.tolist() for part in found[:3]] == [
        list(range(10, 20)), list(range(15, 30, 3)), list(range(90, 100))]
    found[0][5] = -1
    assert found[1][0] == -1


@pytest.mark.parametrize("name", ["x.safetensors", "x.pt"])
def test_a_small_part_of_much_memory_is_small(tmp_path, name):
    x = tl.zeros(1000, 1000)
    tl.save({"column": x[:, 0], "more": tl.ones(2)}, tmp_path / name)
    assert os.path.getsize(tmp_path / name) < 10_000


@pytest.mark.parametrize("name", ["x.safetensors", "x.pt"])
def test_writing_to_a_loaded_tensor_leaves_the_file(tmp_path, name):
    tl.save({"x": tl.ones(5000)}, tmp_path / name)
    found = tl.load(tmp_path / name)
    found["x"].zero_()
    assert tl.load(tmp_path / name)["x"].sum() == 5000
    tl.save(found, tmp_path / name)               # over the file that its tensors lie in
    assert tl.load(tmp_path / name)["x"].sum() == 0 == found["x"].sum()


# ---- what can't be saved -------------------------------------------------------------------------

class Special(tl.Tensor):
    pass


@pytest.mark.parametrize("obj, place, kind", [
    ({"state": {"x": [0, 1, 2, object()]}}, "obj['state']['x'][3]", "object"),
    ({"f": len}, "obj['f']", "builtin_function_or_method"),
    ((1, nn.Linear(1, 1)), "obj[1]", "Linear.*save its state_dict"),
    ([Special([1.0])], "obj[0]", "Special"),
    ({"a": np.array([None])}, "obj['a']", "object"),
    ({"a": np.zeros(1, [("b", "f4")])}, "obj['a']", "b.*f4"),
    ({1: {tl.float32: range(3)}}, "obj[1][tensorlib.float32]", "range"),
    ({len: 1}, "obj (a key)", "builtin_function"),
    ({tl.ones(1): 1}, "a key of obj", "Tensor"),
])
def test_what_can_not_be_saved_is_named_with_its_place(obj, place, kind, tmp_path):
    path = tmp_path / "x.safetensors"
    path.write_text("old")
    with pytest.raises(TypeError, match=f"(?s){kind}") as raised:
        tl.save(obj, path)
    assert place in str(raised.value) and path.read_text() == "old"


def test_containers_in_themselves_and_too_deep():
    inside = {"a": []}
    inside["a"].append(inside)
    with pytest.raises(ValueError, match=r"obj\['a'\]\[0\] contains itself"):
        tl.save(inside, Safetensors())
    deep = []
    for _ in range(10_000):
        deep = [deep]
    with pytest.raises(ValueError, match="nested more than 200 deep"):
        tl.save(deep, Safetensors())


@pytest.mark.parametrize("call, error", [
    (lambda path: tl.save({}, 3), TypeError), (lambda path: tl.load(3), TypeError),
    (lambda path: tl.load(path / "none"), FileNotFoundError),
    (lambda path: tl.load(path), IsADirectoryError),
    (lambda path: tl.save({}, path / "none" / "x"), FileNotFoundError),
    (lambda path: tl.load(io.StringIO("a")), TypeError),
    (lambda path: tl.load(io.BytesIO(), mmap=True), RuntimeError),
    (lambda path: tl.load(io.BytesIO(), map_location="cuda"), RuntimeError),
    (lambda path: tl.load(io.BytesIO(), map_location=3), TypeError),
])
def test_bad_calls(call, error, tmp_path):
    with pytest.raises(error):
        call(tmp_path)


@each("location", [None, "cpu", tl.device("cpu"), {"cuda:0": "cpu"},
                   lambda storage, location: storage])
def test_every_way_to_say_the_cpu(location):
    file = io.BytesIO()
    tl.save(tl.ones(2), file)
    file.seek(0)
    assert tl.load(file, map_location=location, weights_only=False).tolist() == [1, 1]


# ---- NumPy's files -------------------------------------------------------------------------------

def test_numpy_archives(tmp_path):
    path = str(tmp_path / "x.npz")
    state = {"w": tl.arange(6.0).reshape(2, 3), "file": tl.tensor([True]), "n": 3,
             "turned": tl.ones(2, 3).t(), "leaf": tl.ones(1, requires_grad=True)}
    tl.save(state, path)
    found = np.load(path)
    assert list(found) == list(state) and all(
        np.array_equal(found[key], np.asarray(tl.as_tensor(value).detach()))
        for key, value in state.items())
    ours = tl.load(path)
    assert list(ours) == list(state) and ours["w"].dtype == tl.float32
    np.savez_compressed(path, a=np.arange(3), big=np.zeros(10**6), text=np.array(["a"]),
                        swapped=np.arange(2, dtype=">f4"), columns=np.ones((2, 3), order="F"))
    ours = tl.load(path)
    assert ours["a"].tolist() == [0, 1, 2] and ours["big"].sum() == 0
    assert ours["swapped"].tolist() == [0, 1] and ours["columns"].shape == (2, 3)
    assert isinstance(ours["text"], np.ndarray)          # no dtype of tensorlib's


def test_numpy_arrays(tmp_path):
    path = tmp_path / "x.npy"
    tl.save(tl.arange(4).reshape(2, 2), path)
    assert np.load(path).tolist() == tl.load(path).tolist() == [[0, 1], [2, 3]]
    for bad, words in ((tl.ones(2).bfloat16(), "bfloat16"), ([1], "of type list")):
        with pytest.raises(TypeError, match=words):
            tl.save(bad, path)
    for bad in (tl.ones(2), {1: tl.ones(2)}, {"a": {"b": tl.ones(2)}}):
        with pytest.raises(TypeError):
            tl.save(bad, tmp_path / "x.npz")


def test_a_name_twice_in_an_archive():
    one = io.BytesIO()
    np.save(one, np.arange(2.0))
    data = zipped([("a.npy", one.getvalue()), ("b.npy", one.getvalue())])
    assert list(tl.load(io.BytesIO(data))) == ["a", "b"]
    with pytest.raises(LoadError, match="the archive has a name twice"):
        tl.load(io.BytesIO(data.replace(b"b.npy", b"a.npy")))


def test_elements_of_no_bytes():
    file = io.BytesIO()
    np.save(file, np.empty((2, 3), "V0"))
    file.seek(0)
    found = tl.load(file)
    assert isinstance(found, np.ndarray) and found.shape == (2, 3) and found.dtype == "V0"


# ---- limits --------------------------------------------------------------------------------------

def test_the_header_may_not_be_longer_than_the_format_takes(monkeypatch):
    file = Safetensors()
    tl.save({"w": tl.ones(2)}, file)
    length = int.from_bytes(file.getvalue()[:8], "little")
    for limit in (length, length - 1):
        monkeypatch.setattr(container, "LONGEST_HEADER", limit)
        again = Safetensors()
        if limit == length:
            tl.save({"w": tl.ones(2)}, again)
            assert again.getvalue() == file.getvalue()
        else:
            with pytest.raises(ValueError, match=f"save: .* take {length} bytes; the format takes "
                                                 f"{limit}"):
                tl.save({"w": tl.ones(2)}, again)


@both_formats
def test_overlapping_arrays_that_know_their_own_part_alone(kind):
    """No tensor's memory has them all: each is written for itself."""
    array = np.arange(6.0)
    parts = {"a": tl.from_numpy(array[:4]), "b": tl.from_numpy(array[2:])}
    found = round_trip(parts, kind)
    assert found["a"].tolist() == [0, 1, 2, 3] and found["b"].tolist() == [2, 3, 4, 5]
    found["a"][2] = 9
    assert found["b"].tolist() == [2, 3, 4, 5]
