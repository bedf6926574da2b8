"""What files of torch.save hold beside tensors of this machine: values, states, byte orders."""

import copyreg
import io
import pickle
from collections import Counter, OrderedDict, defaultdict

import numpy as np
import pytest
from cases import each
from damage import torch_file

import tensorlib as tl
from tensorlib import nn, serialization
from tensorlib.serialization import LoadEndianness, LoadError, safe_globals


def load(program, *storages, byteorder=b"little"):
    """The value of a pickle in a file of torch.save with such storages."""
    more = [(f"a/data/{i}", data) for i, data in enumerate(storages)]
    return tl.load(io.BytesIO(torch_file(program, more, byteorder)))


def same(a, b):
    if isinstance(b, (np.ndarray, np.generic)):
        return type(a) is type(b) and a.dtype == b.dtype and np.array_equal(a, b)
    if isinstance(b, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


VALUES = [
    None, True, False, 0, -1, 255, 65536, -2**31, 2**70, 1.5, -np.inf, "é\n\u20ac", "", 2 + 3j,
    b"", b"\xff\x00a", bytearray(b"\x80b"), (), (1,), (1, 2), (1, 2, 3), (1, (2, "a"), 3, 4), [],
    [1, [2, []]], {}, {"a": 1, (1, 2): {"b": None}}, set(), {1, 2}, frozenset({3, (4, 5)}),
    OrderedDict(b=1, a=2), Counter("aab"), ["a" * 300, "a" * 300]]


@each("protocol", range(6))
@each("value", VALUES, ids=range(len(VALUES)))
def test_values_of_python_in_every_protocol(value, protocol):
    if protocol < 2 and type(value) in (set, frozenset, bytearray, complex, OrderedDict, Counter):
        protocol += 2                     # before, they are made by copyreg, which is not called
    assert same(load(pickle.dumps(value, protocol)), value)


@each("factory", [None, int, float, bool, str, list, dict, tuple])
def test_dicts_with_a_default(factory):
    found = load(pickle.dumps(defaultdict(factory, a=3), 2))
    assert type(found) is defaultdict and found == {"a": 3} and found.default_factory is factory


ARRAYS = [
    np.arange(6, dtype="i2").reshape(2, 3), np.arange(6, dtype=">i2"), np.arange(4, dtype=">f8"),
    np.asfortranarray(np.arange(6.0).reshape(2, 3)), np.zeros((0, 3), "f4"), np.array(2.5),
    np.array([1 + 2j], "c8"), np.array([True, False]), np.array([b"ab", b"c"]),
    np.array(["é", "a"]), np.array(["2020-02-03"], "M8[D]"), np.array([3], ">m8[7us]"),
    np.array([3], "m8"), np.float32(1.5), np.int64(-3), np.bool_(True),
    np.arange(12.0)[::2], np.arange(200, dtype="u1")]


@each("protocol", range(2, 6))
@each("array", ARRAYS, ids=[f"{a.dtype.str}-{a.shape}" for a in ARRAYS])
def test_arrays_of_numpy_in_every_protocol(array, protocol):
    found = load(pickle.dumps([array], protocol))[0]
    assert same(found, array)
    if array.ndim:
        assert found.flags.writeable and found.flags.owndata is False
        assert found.flags.f_contiguous == array.flags.f_contiguous or not array.flags.forc


def text(value):
    data = value.encode()
    return b"X" + len(data).to_bytes(4, "little") + data


DTYPE = b"cnumpy\ndtype\n" + text("f4") + b"\x89\x88\x87R"


@each("program, value", [
    (b"K\x01K\x020.", 1), (b"K\x01(0.", 1), (b"K\x01(K\x02K\x031.", 1),
    (b"K\x012\x86.", (1, 1)),
    (b"(K\x01K\x02K\x03K\x04d.", {1: 2, 3: 4}), (b"(K\x01K\x02l.", [1, 2]),
    (b"(K\x01K\x02\x91.", frozenset({1, 2})), (b"ccollections\nCounter\n)}\x92.", Counter()),
    (b"ctorch\ndevice\n" + text("cuda") + b"K\x01\x86R.", tl.device("cpu")),
    (b"cnumpy.core.multiarray\nscalar\n" + DTYPE + text("\x00\x00\xc0?") + b"\x86R.",
     np.float32(1.5)),
])
def test_what_instructions_do(program, value):
    assert same(load(program), value)


@each("program, words", [
    (b"K\x01K\x020", "damaged"), (b"0.", "takes more from its stack"),
    (b"K\x011.", "no mark where it needs one"), (b"(K\x01d.", "a key without a value"),
    (b"ccollections\nOrderedDict\n.", "has collections.OrderedDict as a value"),
    (b"ccollections\nCounter\n)}" + text("a") + b"K\x01s\x92.", "makes an object with keywords"),
    (b"ccollections\nCounter\n])\x92.", "fills a tuple as if it were a dict"),
    (b"ccollections\nCounter\n]}\x92.", "fills a list as if it were a tuple"),
    (b"ccollections\ndefaultdict\nctorch\nTensor\n\x85R.", "a factory that load"),
    (b"c_codecs\nencode\n" + text("a") + text("utf8") + b"\x86R.", "in the encoding 'utf8'"),
    (b"c_codecs\nencode\nK\x01\x85R.", "in the encoding 'latin1'"),
    (b"cnumpy.core.multiarray\nscalar\nN" + text("a") + b"\x86R.", "array without a dtype"),
    (b"cnumpy.core.multiarray\nscalar\ncnumpy\ndtype\n" + text("S0") + b"\x85R" + text("")
     + b"\x86R.", "array without a dtype"),
    (b"ctorch._utils\n_rebuild_parameter\nK\x01\x88N\x87R.", "a parameter holds no tensor"),
    (b"ctorch._tensor\n_rebuild_from_type_v2\n(K\x01ctorch\nTensor\n)NtR.",
     "a tensor is not made by a function"),
    (b"ccollections\ndefaultdict\nctorch\nSize\n\x85R.", "has torch.Size as a value"),
    (b"ctorch._tensor\n_rebuild_from_type_v2\n(ctorch\nTensor\nctorch\nTensor\n)NtR.",
     "a tensor is not made by a function"),
])
def test_what_pickles_may_not_say(program, words):
    with pytest.raises(LoadError, match=words):
        load(program)


# ---- tensors -------------------------------------------------------------------------------------

def storage(kind, count, key="0", more=b""):
    """A pickle's reference to a storage."""
    module = "torch.storage" if kind == "UntypedStorage" else "torch"
    return (b"(" + text("storage") + f"c{module}\n{kind}\n".encode() + text(key) + text("cpu")
            + pickle.dumps(count, 2)[2:-1] + more + b"tQ")


def tensor(of, size=b"K\x02\x85", stride=b"K\x01\x85", requires_grad=b"\x89", end=b"N"):
    return (b"ctorch._utils\n_rebuild_tensor_v2\n(" + of + b"K\x00" + size + stride + requires_grad
            + end + b"tR")


PAIR = np.array([1.0, 2.0], "<f4").tobytes()


def test_the_gradient_that_a_tensor_takes():
    for given, wanted in ((b"\x88", True), (b"\x89", False)):
        full = load(tensor(storage("FloatStorage", 2), requires_grad=given) + b".", PAIR)
        empty = load(tensor(storage("FloatStorage", 0), b"K\x00K\x03\x86", b"K\x03K\x01\x86", given)
                     + b".", b"")
        assert full.tolist() == [1, 2] and full.requires_grad is wanted and full.is_leaf
        assert empty.shape == (0, 3) and empty.dtype == tl.float32
        assert empty.requires_grad is wanted
        made = load(b"ctorch._utils\n_rebuild_parameter\n" + tensor(storage("FloatStorage", 2))
                    + given + b"N\x87R.", PAIR)
        assert type(made) is nn.Parameter and made.requires_grad is wanted


@each("metadata, wanted", [
    (text("conj") + b"\x88", [1 - 2j]), (text("neg") + b"\x88", [-1 - 2j]),
    (text("neg") + b"\x88" + text("conj") + b"\x88", [-1 + 2j]), (b"", [1 + 2j])])
def test_a_view_whose_conjugation_or_sign_waits_has_its_values(metadata, wanted):
    of = b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage("ComplexFloatStorage", 1)
    for grad, required in ((b"\x88", True), (b"\x89", False)):
        found = load(of + b"K\x00K\x01\x85K\x01\x85" + grad + b"N}(" + metadata + b"utR.", PAIR)
        assert found.tolist() == wanted and found.is_leaf and found.requires_grad is required


@each("metadata", [b"}" + text("zerotensor") + b"\x88s", b"}" + text("conj") + b"\x89s", b"K\x01"])
def test_metadata_that_is_not_known_is_refused(metadata):
    with pytest.raises(LoadError, match="metadata that load"):
        load(tensor(storage("FloatStorage", 2), end=b"N" + metadata) + b".", PAIR)


def sparse(layout, values, *ints, more=b""):
    """A sparse tensor of a layout, with parts of integers, each with its shape, and of values."""
    parts = b"".join(tensor(storage("LongStorage", int(np.prod(shape)), str(i)), *shaped(shape))
                     for i, shape in enumerate(ints))
    parts += tensor(storage("FloatStorage", values, str(len(ints))), *shaped((values,)))
    return (b"ctorch._utils\n_rebuild_sparse_tensor\n(ctorch.serialization\n_get_layout\n"
            + text(layout) + b"\x85R(" + parts + b"ctorch\nSize\nK\x02K\x03\x86\x85R" + more
            + b"ttR.")


def shaped(shape):
    """A size and the strides of rows, as a pickle has them."""
    strides = [int(np.prod(shape[i + 1:])) for i in range(len(shape))]
    return tuple(pickle.dumps(tuple(map(int, part)), 2)[2:-1] for part in (shape, strides))


def longs(*values):
    return np.array(values, "<i8").tobytes()


def test_sparse_tensors_of_each_layout():
    for coalesced in (b"\x88", b"\x89", b""):
        found = load(sparse("torch.sparse_coo", 2, (2, 2), more=coalesced), longs(0, 1, 2, 0), PAIR)
        assert found.layout is tl.sparse_coo and found.to_dense().tolist() == [
            [0, 0, 1], [2, 0, 0]]
        assert found.is_coalesced() is (coalesced == b"\x88")
    for layout, bounds, others in (("csr", (0, 1, 2), (2, 0)), ("csc", (0, 0, 1, 2), (1, 0))):
        found = load(sparse(f"torch.sparse_{layout}", 2, (len(bounds),), (2,)), longs(*bounds),
                     longs(*others), PAIR)
        assert found.layout is getattr(tl, f"sparse_{layout}") and found.to_dense().tolist() == (
            [[0, 0, 1], [2, 0, 0]] if layout == "csr" else [[0, 0, 2], [0, 1, 0]])


@each("program, parts, words", [
    (sparse("torch.sparse_coo", 2, (2, 2)), longs(0, 1, 2, 3), "does not fit to positions"),
    (sparse("torch.sparse_coo", 2, (2, 2)), longs(0, -1, 2, 0), "negative index"),
    (sparse("torch.sparse_coo", 2, (2, 2), more=b"\x88"), longs(0, 0, 1, 1), "out of order"),
    (sparse("torch.sparse_bsr", 2, (2, 2)), longs(0, 1, 2, 0), "positions must be integers"),
    (sparse("torch.float32", 2, (2, 2)), longs(0, 1, 2, 0), "the layout 'torch.float32'")])
def test_sparse_tensors_whose_parts_do_not_fit(program, parts, words):
    with pytest.raises(LoadError, match=words):
        load(program, parts, PAIR)


def test_a_tensor_with_attributes_is_that_tensor():
    found = load(b"ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._utils\n_rebuild_tensor_v2\n"
                 b"ctorch\nTensor\n(" + storage("FloatStorage", 2)
                 + b"K\x00K\x02\x85K\x01\x85\x89Nt}" + text("a") + b"K\x01stR.", PAIR)
    assert type(found) is tl.Tensor and found.tolist() == [1, 2] and not hasattr(found, "a")


def test_storages_without_a_dtype():
    start = b"ctorch._utils\n_rebuild_tensor_v3\n(" + storage("UntypedStorage", 8)
    rest = b"K\x00K\x02\x85K\x01\x85\x89N"
    assert load(start + rest + b"ctorch\nfloat32\ntR.", PAIR).tolist() == [1, 2]
    for program, words in (
            (start + rest + b"K\x03tR.", "a tensor has no storage, or no dtype"),
            (b"ctorch._utils\n_rebuild_tensor_v3\n(]" + rest + b"ctorch\nfloat32\ntR.",
             "a tensor has no storage, or no dtype"),
            (tensor(storage("UntypedStorage", 8)) + b".", "a tensor of None, a dtype that")):
        with pytest.raises(LoadError, match=words):
            load(program, PAIR)


@pytest.mark.parametrize("reference, words", [
    (b"(" + text("file") + storage("FloatStorage", 2)[13:], "something else than a storage"),
    (b"(" + text("storage") + b"K\x01" + text("0") + text("cpu") + b"K\x02tQ",
     "without a dtype, a key"),
    (b"(" + text("storage") + b"ctorch\nFloatStorage\nK\x00" + text("cpu") + b"K\x02tQ",
     "without a dtype, a key"),
    (storage("FloatStorage", 2.0), "without a dtype, a key and a size"),
    (storage("FloatStorage", -2), "has -2 elements"),
    (storage("FloatStorage", 2, more=b"K\x01"), "is a part of another"),
    (storage("FloatStorage", 3), "has 8 bytes, for 3 elements of a FloatStorage"),
])
def test_references_to_no_storage(reference, words):
    with pytest.raises(LoadError, match=words):
        load(tensor(reference) + b".", PAIR)
    assert load(tensor(storage("FloatStorage", 2, more=b"N")) + b".", PAIR).tolist() == [1, 2]


# ---- the order of bytes --------------------------------------------------------------------------

KINDS = [("Float", "f4", "float32"), ("Double", "f8", "float64"), ("Half", "f2", "float16"),
         ("Long", "i8", "int64"), ("Int", "i4", "int32"), ("Short", "i2", "int16"),
         ("Char", "i1", "int8"), ("Byte", "u1", "uint8"), ("Bool", "?", "bool")]


@each("kind, dtype, name", KINDS)
def test_files_of_machines_with_the_other_order(kind, dtype, name):
    program = tensor(storage(f"{kind}Storage", 2)) + b"."
    values = np.array([1, 0 if dtype == "?" else 3], dtype)
    swapped = values.astype(values.dtype.newbyteorder(">")).tobytes()
    found = load(program, swapped, byteorder=b"big")
    assert found.tolist() == values.tolist() and found.dtype == getattr(tl, name)
    assert load(program, values.tobytes()).tolist() == values.tolist()


@pytest.fixture
def default_order():
    yield serialization.set_default_load_endianness
    serialization.set_default_load_endianness(None)


@pytest.mark.parametrize("default, big", [
    (None, False), (LoadEndianness.LITTLE, False), (LoadEndianness.BIG, True),
    (LoadEndianness.NATIVE, np.little_endian is False)])
def test_files_that_do_not_say_their_order(default, big, default_order):
    default_order(default)
    assert serialization.get_default_load_endianness() is default
    program, values = tensor(storage("ShortStorage", 2)) + b".", [1, 258]
    for order in (None, b"big", b"little"):
        swapped = big if order is None else order == b"big"
        data = np.array(values, ">i2" if swapped else "<i2").tobytes()
        assert load(program, data, byteorder=order).tolist() == values


def test_orders_that_are_refused(default_order):
    with pytest.raises(TypeError, match="expected a LoadEndianness, got str"):
        default_order("big")
    assert serialization.get_default_load_endianness() is None
    with pytest.raises(LoadError, match="an untyped storage in a big-endian file"):
        load(tensor(storage("UntypedStorage", 8)) + b".", PAIR, byteorder=b"big")


# ---- files before zip files ----------------------------------------------------------------------

MAGIC = 0x1950A86A20F9469CFC6C


def legacy(program, *, magic=MAGIC, protocol=1001, machine=None, keys=("0",), count=2, data=PAIR):
    parts = (magic, protocol, {"little_endian": True} if machine is None else machine)
    file = b"".join(pickle.dumps(part, 2) for part in parts) + b"\x80\x02" + program + b"."
    return io.BytesIO(file + pickle.dumps(list(keys), 2) + count.to_bytes(8, "little") + data)


def test_a_file_before_zip_files():
    program = b"]" + tensor(storage("FloatStorage", 2)) + b"a" + tensor(
        storage("FloatStorage", 2), b"K\x01\x85") + b"a"
    full, part = tl.load(legacy(program))
    full[0] = 7
    assert full.tolist() == [7, 2] and part.tolist() == [7]       # one memory
    assert tl.load(legacy(program, machine={}))[0].tolist() == [1, 2]


@each("options, words", [
    ({"magic": MAGIC + 1}, "torch.save did not write"), ({"protocol": 1002}, "did not write"),
    ({"machine": [True]}, "torch.save did not write"),
    ({"machine": {"little_endian": False}}, "big-endian machine, in the format before zip files"),
    ({"count": 3}, "storage 0 has 8 of 8 bytes"), ({"data": PAIR[:-1]}, "has 7 of 8 bytes"),
    ({"keys": ("1",)}, "damaged"),
    ({"program": tensor(storage("DoubleStorage", 2**20))}, "storages of 8388608 bytes in a file"),
])
def test_lies_in_files_before_zip_files(options, words):
    given = {"program": tensor(storage("FloatStorage", 2)), **options}
    with pytest.raises(LoadError, match=words):
        tl.load(legacy(**given))


def test_a_storage_where_there_is_none():
    program = storage("FloatStorage", 2) + b"."
    with pytest.raises(LoadError, match="a storage where there is none"):
        tl.load(io.BytesIO(b"\x80\x02" + program + b" " * 50))


# ---- zip files -----------------------------------------------------------------------------------

def test_members_that_are_not_where_the_zip_file_says():
    good = torch_file(tensor(storage("FloatStorage", 2)) + b".", [("a/data/0", PAIR)])
    entry, start = good.rindex(b"PK\x01\x02"), good.rindex(b"PK\x03\x04")
    for place, data, words in (
            (start, b"PK\x03\x05", "'a/data/0' is not where the zip file says"),
            (entry + 20, (10**6).to_bytes(4, "little") * 2, "goes beyond the end of the file"),
            (entry + 20, (7).to_bytes(4, "little"), "goes beyond the end of the file"),
            (entry + 16, bytes(4), "'data/0' is damaged: its checksum")):
        bad = good[:place] + data + good[place + len(data):]
        with pytest.raises(LoadError, match=words):
            tl.load(io.BytesIO(bad))
    assert tl.load(io.BytesIO(good)).tolist() == [1, 2]


# ---- what the user allows ------------------------------------------------------------------------

class Counted:
    """Takes its state by a method of its own."""

    def __init__(self, start=0):
        self.count = start

    def __setstate__(self, state):
        self.count = state["count"] + 1


class Slotted:
    __slots__ = ("a", "b")


def test_objects_take_their_state_in_their_own_way():
    slotted = Slotted()
    slotted.a, slotted.b = 1, [2]
    with safe_globals([Counted, Slotted]):
        counted = load(pickle.dumps(Counted(3), 2))
        found = load(pickle.dumps(slotted, 2))
    assert type(counted) is Counted and vars(counted) == {"count": 4}
    assert type(found) is Slotted and (found.a, found.b) == (1, [2])


def test_what_was_allowed_is_no_more():
    program = pickle.dumps(Counted(3), 2)
    with safe_globals([copyreg.pickle]):
        serialization.add_safe_globals([Counted, Counted])
        assert serialization.get_safe_globals() == [copyreg.pickle, Counted]
        assert load(program).count == 4
        serialization.clear_safe_globals()
        assert serialization.get_safe_globals() == []
        with pytest.raises(LoadError, match="names test_pickled_values.Counted"):
            load(program)


@pytest.mark.parametrize("module", [
    tl.nn.Linear(2, 3), tl.nn.LSTM(2, 3),
    tl.nn.Sequential(tl.nn.Conv2d(1, 2, 3), tl.nn.BatchNorm2d(2))],
    ids=lambda module: type(module).__name__)
def test_a_whole_module_is_loaded_where_its_classes_are_allowed(module, tmp_path):
    tl.save(module, tmp_path / "model.pt")
    with pytest.raises(LoadError):
        tl.load(tmp_path / "model.pt")
    with tl.serialization.safe_globals([type(part) for part in module.modules()]):
        found = tl.load(tmp_path / "model.pt")
    assert type(found) is type(module)
    for name, x in module.state_dict().items():
        assert tl.equal(found.state_dict()[name], x)
