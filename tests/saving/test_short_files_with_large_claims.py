"""Small files that ask for much memory or time are refused before they get it."""

import io
import json
import pickle
import resource
import time
import zipfile

import numpy as np
import pytest
from cases import each
from damage import safetensors, torch_file, zipped

import tensorlib as tl
from tensorlib import nn, program
from tensorlib.program.ir.errors import ProgramError
from tensorlib.serialization import LoadError

LIMIT = 2**18                  # KiB that the process may grow by
LEGACY = b"".join(pickle.dumps(part, 2) for part in (
    0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}))


def array(text, data=b""):
    header = text.encode()
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + data


def content(tree, data):
    entry = {"dtype": "U8", "shape": [len(data)], "data_offsets": [0, len(data)]}
    return safetensors({"__metadata__": {"tensorlib": json.dumps(
        {"version": 1, "content": tree})}, "w": entry}, data)


def noted(value, use, times):
    """A pickle that notes one value and uses it again and again."""
    return (b"\x80\x02" + pickle.dumps(value, 2)[2:-1] + b"r\xff\xff\x00\x000]"
            + use.replace(b"@", b"j\xff\xff\x00\x00") * times + b".")


def compressed(method, size=2**22):
    file = io.BytesIO()
    np.save(file, np.zeros(size, np.uint8))
    return zipped([("a.npy", file.getvalue())], compression=method)


TEXT = "a" * 300_000
KEY = tuple(range(9_000))
DTYPE = b"cnumpy\ndtype\nX\x02\x00\x00\x00u1\x89\x88\x87R"
FILES = {
    "an archive compressed by bz2": lambda: compressed(zipfile.ZIP_BZIP2),
    "an archive compressed by lzma": lambda: compressed(zipfile.ZIP_LZMA),
    "2**32 strings of no characters": lambda: array(
        "{'descr': '<U0', 'fortran_order': False, 'shape': (4294967296,)}"),
    "2**40 byte strings of no bytes": lambda: array(
        "{'descr': '|S0', 'fortran_order': False, 'shape': (1099511627776,)}"),
    "a shape of 100,000 sizes": lambda: safetensors(
        {"w": {"dtype": "F32", "shape": [2**62] * 100_000, "data_offsets": [0, 8]}}, bytes(8)),
    "bytes that 30,000 places name": lambda: content([{"bytes": "w"}] * 30_000, bytes(300_000)),
    "an array that 30,000 places name": lambda: content(
        [{"array": "w", "dtype": "|u1", "shape": [1]}] * 30_000, bytes(300_000)),
    **{f"a text that becomes {name} 20,000 times{suffix}": (
        lambda use=use, value=value, start=start: start(noted(value, use, 20_000)))
       for start, suffix in ((torch_file, ""), (lambda program: LEGACY + program, ", before zip"))
       for name, value, use in (
           ("a bytearray", TEXT, b"cbuiltins\nbytearray\n@X\x06\x00\x00\x00latin1\x86Ra"),
           ("bytes", TEXT, b"c_codecs\nencode\n@X\x06\x00\x00\x00latin1\x86Ra"),
           ("an array", TEXT, b"cnumpy.core.multiarray\nscalar\n" + DTYPE + b"@\x86Ra"),
           ("a set", list(range(50_000)), b"cbuiltins\nset\n@\x85Ra"))},
    "a key of 9,000 parts, 20,000 times": lambda: torch_file(noted(KEY, b"}@K\x01sa", 20_000)),
    "sets of a key of 9,000 parts": lambda: torch_file(
        noted([KEY], b"cbuiltins\nset\n@\x85Ra", 20_000)),
    "a key that is 9,000 deep": lambda: torch_file(
        b"\x80\x02}" + b")" + b"\x85" * 9_000 + b"K\x01s."),
    "a dtype of 100,000 fields": lambda: torch_file(
        b"\x80\x02cnumpy\ndtype\n" + pickle.dumps("f4," * 100_000, 2)[2:-1] + b"\x89\x88\x87R."),
}


@pytest.mark.parametrize("name", FILES)
def test_short_files_take_little_memory_and_time(name, tmp_path):
    data = FILES[name]()
    (tmp_path / "x").write_bytes(data)
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    for load in (lambda: tl.load(io.BytesIO(data)), lambda: tl.load(tmp_path / "x")):
        with pytest.raises(LoadError) as raised:
            load()
        assert len(str(raised.value)) < 1200
    assert time.process_time() - began < 10        # of minutes, where it is counted wrongly
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < LIMIT


def test_a_long_pickle_that_uses_its_values_again_is_read():
    """What honest programs write has the same key and text in many places."""
    key = (1, (2, 3))
    value = [{key: i, "name": "a" * 50} for i in range(20_000)]
    file = io.BytesIO()
    tl.save({"all": value, "set": {(i, key) for i in range(5_000)}}, file)
    file.seek(0)
    found = tl.load(file)
    assert found["all"] == value and len(found["set"]) == 5_000


def test_archives_that_numpy_compressed_are_read(tmp_path):
    np.savez_compressed(tmp_path / "x.npz", a=np.zeros(2**22), text=np.array(["", "a"]))
    found = tl.load(tmp_path / "x.npz")
    assert found["a"].shape == (2**22,) and found["text"].tolist() == ["", "a"]


def test_a_program_file_with_many_sizes_is_refused(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(safetensors({"__metadata__": {"program": ""}, "w": {
        "dtype": "F32", "shape": [2**40] * 100_000, "data_offsets": [0, 8]}}, bytes(8)))
    began = time.process_time()
    with pytest.raises(ProgramError) as raised:
        program.load(path)
    assert time.process_time() - began < 5 and len(str(raised.value)) < 1200


# ---- modules inside themselves -------------------------------------------------------------------

@each("walk", [
    lambda m: m.load_state_dict({}), lambda m: m.state_dict(), lambda m: m.train(), repr,
    lambda m: m.double(), lambda m: m.apply(lambda part: None),
    lambda m: list(m.named_modules(remove_duplicate=False)),
    lambda m: list(m.named_parameters(remove_duplicate=False)),
    lambda m: list(m.named_buffers(remove_duplicate=False)),
    lambda m: list(m.modules()), lambda m: m.zero_grad(), lambda m: list(m.parameters())],
    ids=["load_state_dict", "state_dict", "train", "repr", "double", "apply", "named_modules",
         "named_parameters", "named_buffers", "modules", "zero_grad", "parameters"])
def test_a_module_inside_itself_takes_little_memory(walk):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for depth in (0, 1, 3):
        m = inner = nn.Linear(1, 1)
        for _ in range(depth):
            inner.part = nn.Linear(1, 1)
            inner = inner.part
        inner.me = m
        try:
            walk(m)                                # walks that count each module once are fine
        except RecursionError:
            pass
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < LIMIT


def test_load_state_dict_says_which_module_is_inside_itself():
    m = nn.Sequential(nn.Linear(1, 1))
    m[0].me = m
    with pytest.raises(RecursionError, match=r"'0\.me' is inside itself"):
        m.load_state_dict({})
    shared = nn.Linear(1, 1)
    twice = nn.Sequential(shared, nn.Sequential(shared))
    assert len(list(twice.named_modules(remove_duplicate=False))) == 4
    twice.load_state_dict(twice.state_dict())
