"""Files that are cut off, corrupt or hostile: one type of error, no crash, no code run."""

import io
import json
import pickle
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from cases import each
from damage import FILES, judge, safetensors, seeds, torch_file, zipped
from process import run_forked

import tensorlib as tl
from tensorlib.serialization import LoadError, add_safe_globals, safe_globals

W = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


def content(tree):
    return {"__metadata__": {"tensorlib": json.dumps({"version": 1, "content": tree})}, "w": W}


def npy(header, data=b""):
    text = header.encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data


HOSTILE = {
    "nothing": (b"", "an empty file"),
    "text": (b"hello, this is no file of tensors", "not a file of"),
    "short": (b"\x01", "not a file of"),
    "a header beyond the file": (safetensors({}, length=10**6), "1000000 bytes, in a file of 10"),
    "a header of 2**63 bytes": (safetensors({}, length=2**63), "9223372036854775808 bytes"),
    "no JSON": (safetensors(b"{nothing}"), "no JSON"),
    "no text": (safetensors(b"{\xff}"), "no JSON"),
    "deep JSON": (safetensors(b'{"a":' + b"[" * 10**6), "nested too deeply"),
    "no object": (safetensors(b"{}, []"), "no JSON"),
    "a name twice": (safetensors(b'{"w":' + json.dumps(W).encode() + b',"w":{}}', bytes(8)),
                     "stands twice"),
    "an overlap": (safetensors({"w": W, "v": {**W, "data_offsets": [4, 12]}}, bytes(12)),
                   "begins at byte .*, the one before ends at"),
    "a gap": (safetensors({"w": {**W, "data_offsets": [4, 12]}}, bytes(12)), "begins at byte"),
    "bytes left over": (safetensors({"w": W}, bytes(12)), "the tensors end at byte"),
    "bytes that lack": (safetensors({"w": W}, bytes(4)), "the tensors end at byte"),
    "a negative size": (safetensors({"w": {**W, "shape": [-2]}}, bytes(8)), "not a list of sizes"),
    "a size of 2**64": (safetensors({"w": {**W, "shape": [2**64]}}, bytes(8)), "not a list of"),
    "sizes that overflow": (safetensors({"w": {**W, "shape": [2**62, 4]}}, bytes(8)),
                            "8 bytes for a shape"),
    "much of nothing": (safetensors({"w": {**W, "shape": [0, 2**62, 2**62],
                                           "data_offsets": [0, 0]}}), "don't have the shape"),
    "100,000 dims": (safetensors({"w": {**W, "shape": [2**40] * 100_000}}, bytes(8)),
                     "the shape has 100000 dims"),
    "100 dims": (safetensors({"w": {**W, "shape": [1] * 99 + [2]}}, bytes(8)), "the shape"),
    "a size that is true": (safetensors({"w": {**W, "shape": [True]}}, bytes(8)), "not a list of"),
    "a fraction": (safetensors({"w": {**W, "shape": [2.0]}}, bytes(8)), "not a list of sizes"),
    "a negative offset": (safetensors({"w": {**W, "data_offsets": [-8, 0]}}), "not two positions"),
    "offsets turned round": (safetensors({"w": {**W, "data_offsets": [8, 0]}}, bytes(8)),
                             "-8 bytes"),
    "an unknown dtype": (safetensors({"w": {**W, "dtype": "Q7"}}, bytes(8)), "'Q7'"),
    "a dtype of others": (safetensors({"w": {**W, "dtype": "F8_E5M2", "shape": [8]}}, bytes(8)),
                          "tensorlib does not have"),
    "bools of 7": (safetensors({"w": {**W, "dtype": "BOOL", "shape": [8]}}, b"\x07" * 8),
                   "neither 0 nor 1"),
    "an entry that is none": (safetensors({"w": 3}), "not just dtype"),
    "a key too many": (safetensors({"w": {**W, "code": "1"}}, bytes(8)), "not just dtype"),
    "odd metadata": (safetensors({"__metadata__": {"a": 1}, "w": W}, bytes(8)), "strings to strin"),
    "structure: no JSON": (safetensors({"__metadata__": {"tensorlib": "{"}, "w": W}, bytes(8)),
                           "no JSON"),
    "structure: deep": (safetensors({"__metadata__": {"tensorlib": '{"a":' + "[" * 10**5}, "w": W},
                                    bytes(8)), "nested too deeply"),
    "structure: version": (safetensors({"__metadata__": {"tensorlib": '{"version": 9}'}}),
                           "version 9"),
    **{f"structure: {tree}": (safetensors(content(tree), bytes(8)), "load: ") for tree in (
        {"tensor": "v"}, {"tensor": 3}, {"eval": "1"}, {}, {"dtype": "Tensor"}, {"int": "3 + 4"},
        {"view": "w", "key": "v", "shape": [2], "stride": [1], "offset": 1},
        {"view": "w", "key": "v", "shape": [2], "stride": [-1], "offset": 0},
        {"view": "w", "key": "v", "shape": [2**62], "stride": [2**62], "offset": 0},
        {"array": "w", "dtype": "O", "shape": [1]}, {"array": "w", "dtype": "f8,f8", "shape": [1]},
        {"array": "w", "dtype": "<f8", "shape": [2**60]}, {"array": "w", "dtype": "<f4"},
        {"set": [[1]]}, {"dict": [[{"dict": {}}, 1]]}, {"Size": ["a"]}, {"device": "nowhere"},
        {"OrderedDict": [1, 2]}, {"view": "w"}, {"bytes": None}, {"complex": [1]})},
    "a later version of arrays": (b"\x93NUMPY\x03\x00", r"version \(3, 0\) of NumPy's format"),
    "an array of objects": (npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}",
                                pickle.dumps([1])), "shape|objects|Object"),
    "a huge array": (npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1152921504606846976,)}"
                         ), "in .* bytes"),
    "a negative array": (npy("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}"), "load: "),
    "a header of code": (npy("__import__('os').system('true')"), "damaged"),
    "another zip file": (zipped([("a.txt", b"a")]), "neither torch.save nor NumPy"),
    "a zip file cut off": (zipped([("a.npy", b"a")])[:40], "damaged"),
    "an archive of no arrays": (zipped([("a.npy", b"a")]), "damaged"),
    "a compressed pickle": (zipped([("a/data.pkl", bytes(99))], compression=zipfile.ZIP_DEFLATED),
                            "compressed or encrypted"),
    "a pickle of another program": (
        pickle.dumps([1, 2]), "damaged|torch.save did not write|no end"),
}


@each("name", HOSTILE)
def test_hostile_files(name, tmp_path):
    data, words = HOSTILE[name]
    for path in (None, tmp_path / "x"):
        with pytest.raises(LoadError, match=words):
            if path is None:
                tl.load(io.BytesIO(data))
            else:
                path.write_bytes(data)
                tl.load(path)


def test_the_error_is_of_both_types_and_names_the_file(tmp_path):
    (tmp_path / "x").write_bytes(b"")
    for kind in (RuntimeError, ValueError):
        with pytest.raises(kind, match="load: '.*x': an empty file"):
            tl.load(tmp_path / "x")


def test_expanding_archives_are_refused():
    size = 2**20
    file = io.BytesIO()
    np.save(file, np.zeros(size, np.uint8))
    small = file.getvalue()
    data = zipped([("a.npy", small)], compression=zipfile.ZIP_DEFLATED)
    assert len(data) < 3000
    for claimed in (2**31, 2**32 - 2):
        lying = data.replace(len(small).to_bytes(4, "little"), claimed.to_bytes(4, "little"))
        assert_refused(lying, "expands to")
    header = small[:128].replace(b"1048576", b"1073741824".ljust(10)[:10]).replace(b"   }", b"}   ")
    assert_refused(zipped([("a.npy", header + small[128:])], compression=zipfile.ZIP_DEFLATED),
                   "load: ")


def assert_refused(data, words):
    """Loading fails before much memory is taken."""
    tracemalloc.start()
    with pytest.raises(LoadError, match=words):
        tl.load(io.BytesIO(data))
    assert tracemalloc.get_traced_memory()[1] < 2**26
    tracemalloc.stop()


# ---- pickles -------------------------------------------------------------------------------------

RAN = []


def ran(*arguments):
    RAN.append(arguments)


class Evil:
    def __reduce__(self):
        return ran, (1,)


STORAGE = b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpu"
TENSOR = b"ctorch._utils\n_rebuild_tensor_v2\n(" + STORAGE


def tensor_program(count=b"K\x02", offset=b"K\x00", size=b"K\x02\x85", stride=b"K\x01\x85"):
    return b"\x80\x02" + TENSOR + count + b"tQ" + offset + size + stride + b"\x89Nt" + b"R."


PROGRAMS = {
    "a call": (
        pickle.dumps({"a": Evil()}, 2), r"names test_damaged_files\.ran, .*add_safe_globals"),
    "a call of protocol 4": (pickle.dumps([Evil()], 4), r"names test_damaged_files\.ran"),
    "the system": (b"cos\nsystem\n(X\x04\x00\x00\x00truetR.", "names os.system"),
    "eval": (b"c__builtin__\neval\n(X\x01\x00\x00\x001tR.", "names __builtin__.eval"),
    "getattr": (b"cbuiltins\ngetattr\n.", "names builtins.getattr"),
    "an attribute of a known name": (b"\x80\x04\x8c\x05torch\x8c\x0aos.system1\x93.", "load: "),
    "torch.load in torch.load": (b"ctorch.storage\n_load_from_bytes\n.", "_load_from_bytes"),
    "INST": (b"(ios\nsystem\n.", "instruction INST"),
    "OBJ": (b"(cos\nsystem\no.", "names os.system"),
    "EXT1": (b"\x82\x01.", "instruction EXT1"),
    "PERSID": (b"Pa\n.", "instruction PERSID"),
    "nothing on the stack": (b".", "takes more from its stack"),
    "no mark": (b"Nt.", "no mark"),
    "no such memo": (b"h\x07.", "refers to object 7"),
    "a huge memo": (b"Nr\xff\xff\xff\x7f.", None),
    "huge bytes": (b"\x80\x04\x8e" + (2**62).to_bytes(8, "little") + b".", "damaged"),
    "a huge bytearray": (
        b"cbuiltins\nbytearray\n\x8a\x08" + b"\xff" * 7 + b"\x7f\x85R.", "bytes in"),
    "a huge set": (b"cbuiltins\nset\nX\x01\x00\x00\x00a\x85R.", "a set made of a str"),
    "a call of a type": (b"cbuiltins\nint\nX\x01\x00\x00\x001\x85R.", "calls builtins.int"),
    "a call of a value": (b"K\x01)R.", "calls int"),
    "a state for a list": (b"]}b.", "gives a state to a list"),
    "attributes of a dict": (b"ccollections\nOrderedDict\n)R}X\x05\x00\x00\x00itemsK\x01sb.", None),
    "a dict that is a list": (b"]K\x01K\x02s.", "fills a list as if it were a dict"),
    "an odd number of values": (b"}(K\x01u.", "a key without a value"),
    "a list as a key": (b"}]K\x01s.", "damaged"),
    "a key that doubles": (b"}" + b")" + b"2\x86" * 60 + b"K\x01s.", "more than 10000 parts"),
    "an element that doubles": (b"\x80\x04\x8f(" + b")" + b"2\x86" * 60 + b"\x90.", "10000 parts"),
    "no end": (b"N", "damaged|no end"),
    "an array of objects": (
        b"cnumpy\ndtype\nX\x02\x00\x00\x00O8\x89\x88\x87R.", "NumPy array of 'O8'"),
    "a good tensor": (tensor_program(), None),
    "more elements than bytes": (tensor_program(count=b"K\x03"), "has 8 bytes, for 3 elements"),
    "negative elements": (tensor_program(count=b"J\xff\xff\xff\xff"), "-1 elements"),
    "beyond its storage": (tensor_program(offset=b"K\x01"), "fails"),
    "before its storage": (tensor_program(offset=b"J\xff\xff\xff\xff"), "fails"),
    "a huge size": (tensor_program(size=b"\x8a\x08" + b"\xff" * 7 + b"\x7f\x85"), "fails"),
    "a long stride": (tensor_program(stride=b"\x8a\x08" + b"\xff" * 7 + b"\x7f\x85"), "fails"),
    "sizes of text": (tensor_program(size=b"X\x01\x00\x00\x00a\x85"), "fails"),
    "a tensor of a list": (b"ctorch._utils\n_rebuild_tensor_v2\n(]K\x00))\x89NtR.", "fails"),
    "a reference to a file": (b"X\x0b\x00\x00\x00/etc/passwdQ.", "something else than a storage"),
    "a storage that is not there": (tensor_program().replace(b"X\x01\x00\x00\x000", b"X\x01\x00"
                                                             b"\x00\x009"), "has no 'data/9'"),
}


@each("name", PROGRAMS)
def test_hostile_pickles(name, tmp_path):
    program, words = PROGRAMS[name]
    data = torch_file(program, [("a/data/0", bytes(8))])
    path = tmp_path / "x"
    path.write_bytes(data)
    for load in (lambda: tl.load(io.BytesIO(data), weights_only=True),
                 lambda: tl.load(path, mmap=True)):
        if words is None:
            load()
        else:
            with pytest.raises(LoadError, match=words):
                load()
    assert not RAN


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_zip_files_that_lie():
    good = torch_file(tensor_program(), [("a/data/0", bytes(8))])
    twice = torch_file(tensor_program(), [("a/data/0", bytes(8)), ("a/data/0", bytes(8))])
    for data, words in ((twice, "twice"), (good[:-30], "damaged"),
                        (good.replace(bytes(8), b"\x01" * 8, 1), "checksum|damaged|not where")):
        with pytest.raises(LoadError, match=words):
            tl.load(io.BytesIO(data))


class Settings:
    def __init__(self):
        self.rate = 0.5


def test_a_class_that_is_allowed_is_made():
    data = torch_file(pickle.dumps({"settings": Settings(), "list": [Settings()]}, 2))
    with pytest.raises(LoadError, match="Settings"):
        tl.load(io.BytesIO(data))
    with safe_globals([Settings]):
        found = tl.load(io.BytesIO(data))
    assert found["settings"].rate == found["list"][0].rate == 0.5
    with safe_globals([(Settings, "elsewhere.Name")]), pytest.raises(LoadError, match="Settings"):
        tl.load(io.BytesIO(data))
    with pytest.raises(TypeError, match="expected classes and functions"):
        add_safe_globals(["os.system"])


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("name", ["zip.pt", "legacy.pt"])
def test_files_of_torch_save(name, mmap):
    found = tl.load(FILES / name, mmap=mmap)
    model, state = found["model"], found["optimizer"]["state"][0]
    assert model["w"].tolist() == [[0, 1, 2], [3, 4, 5]] and model["h"].dtype == tl.bfloat16
    model["w"][1] = 7
    assert model["v"].tolist() == [7, 7, 7]
    assert state["step"] == 3 and state["m"].tolist() == [0, 1, 2, 3]
    assert found["optimizer"]["param_groups"] == [
        {"lr": 0.1, "betas": (0.9, 0.999), "params": [0, 1]}]
    assert type(found["p"]) is tl.nn.Parameter and found["p"].tolist() == [1, 1]
    assert found["flag"].tolist() == [True, False] and found["size"] == tl.Size([2, 3])
    assert (found["dtype"], found["name"], found["none"]) == (tl.float32, "é", None)


@each("name", seeds())
def test_files_cut_off_anywhere(name):
    data = seeds()[name]
    for end in range(0, len(data), max(1, len(data) // 60)):
        assert judge(data[:end]), end


def test_many_damaged_files(tmp_path):
    """`python tests/saving/damage.py SECONDS` tries more."""
    said = run_forked(
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from pathlib import Path\nimport damage\nprint(*damage.run(0, 3, Path(sys.argv[2])))",
        str(Path(__file__).parent), str(tmp_path / "x"))
    loaded, refused = map(int, said.split())
    assert loaded > 20 and refused > 500
