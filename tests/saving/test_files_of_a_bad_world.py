"""Files that shrink, full disks, short writes, interrupts, many files, long names."""

import io
import os
import pickle
import sys

import numpy as np
import pytest
from cases import each
from damage import Safetensors, safetensors, zipped
from process import run_forked

import tensorlib as tl
from tensorlib import nn, program
from tensorlib.io import atomic
from tensorlib.io.files.source import Source
from tensorlib.program.ir.errors import ProgramError
from tensorlib.serialization import LoadError

FORMATS = ["x.safetensors", "x.pt", "x.npz", "x.npy"]


def content(name):
    return tl.arange(5000.0) if name.endswith("npy") else {"a": tl.arange(5000.0), "b": tl.ones(3)}


# ---- reading -------------------------------------------------------------------------------------

SHRINKS = """
import os, sys
import tensorlib as tl
from tensorlib.io.files.source import Source

fill, count = Source.fill, 0

def shrinking(source, start, memory):
    global count
    count += 1
    if count == step:
        os.truncate(path, size // 2)
    return fill(source, start, memory)

Source.fill = shrinking
for case in sys.argv[1:]:
    path, mmap = case.split(":")
    whole = open(path, "rb").read()
    size, step, count, errors = len(whole), 0, 0, 0
    while count >= step:
        step, count = step + 1, 0
        open(path, "wb").write(whole)
        try:
            tl.load(path, mmap={"None": None, "False": False, "True": True}[mmap])
        except tl.serialization.LoadError:
            errors += 1
    print(case, step, errors, flush=True)
"""


def test_a_file_that_shrinks_while_it_is_read_is_an_error(tmp_path):
    for name in FORMATS:
        tl.save(content(name), tmp_path / name)
    cases = [f"{tmp_path / name}:{mmap}" for name in FORMATS for mmap in (None, False, True)]
    said = [line.split() for line in run_forked(SHRINKS, *cases).splitlines()]
    assert [case for case, _, _ in said] == cases
    assert all(int(steps) > 2 and int(errors) >= 1 for _, steps, errors in said), said


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_that_is_cut_off_after_it_was_loaded_changes_nothing(name, tmp_path):
    """Mapped memory would end the process: only those who ask for it have it."""
    tl.save(content(name), tmp_path / name)
    found = tl.load(tmp_path / name)
    os.truncate(tmp_path / name, 0)
    assert (found if name.endswith("npy") else found["a"]).sum() == sum(range(5000))


def test_what_is_read_when_a_mapped_file_is_loaded_is_not_the_map(tmp_path, monkeypatch):
    """Headers, bools and what is not aligned; only tensors that are used later touch it."""
    state = {"a": tl.arange(5000.0), "mask": tl.tensor([True, False])}
    tl.save(state, tmp_path / "x.safetensors")
    reads, fill = [], Source.fill
    monkeypatch.setattr(Source, "fill", lambda source, start, memory: reads.append(
        len(memory)) or fill(source, start, memory))
    found = tl.load(tmp_path / "x.safetensors", mmap=True)
    assert 2 in reads and max(reads) < 20_000 and found["mask"].tolist() == [True, False]
    assert found["a"].sum() == state["a"].sum()


def test_mapped_files_keep_no_descriptor(tmp_path):
    tl.save({"a": tl.arange(5000)}, tmp_path / "x.safetensors")
    tl.save({"a": tl.arange(5000)}, tmp_path / "x.pt")
    said = run_forked(
        "import resource, sys, tensorlib as tl\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))\n"
        "kept = [tl.load(path, mmap=True) for _ in range(100) for path in sys.argv[1:]]\n"
        "print(sum(int(x['a'][-1]) for x in kept))",
        str(tmp_path / "x.safetensors"), str(tmp_path / "x.pt"))
    assert int(said) == 200 * 4999


def test_a_mapping_outlasts_its_file(tmp_path):
    path = tmp_path / "x.safetensors"
    tl.save({"a": tl.arange(5000)}, path)
    found = tl.load(path, mmap=True)["a"]
    path.unlink()
    part = found[10:]
    del found
    assert part.sum() == sum(range(10, 5000))


BOOLS = np.array([7, 1, 0, 255], np.uint8)


def spoilt_files():
    file = io.BytesIO()
    np.save(file, BOOLS.view(bool))
    yield "npy", file.getvalue()
    yield "npz", zipped([("a.npy", file.getvalue())])
    yield "safetensors", safetensors({"w": {
        "dtype": "BOOL", "shape": [4], "data_offsets": [0, 4]}}, BOOLS.tobytes())
    good = b"\x01\x01\x00\x01"
    file = Safetensors()
    tl.save({"array": np.frombuffer(good, bool)}, file)
    yield "an array in safetensors", file.getvalue().replace(good, BOOLS.tobytes())
    storage = (b"(X\x07\x00\x00\x00storagectorch\nBoolStorage\n"
               b"X\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x04tQ")
    text = (b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(" + storage
            + b"K\x00K\x04\x85K\x01\x85\x89NtR.")
    yield "zip", zipped([("a/data.pkl", text), ("a/data/0", BOOLS.tobytes())])
    yield "legacy", b"".join(pickle.dumps(part, 2) for part in (
        0x1950A86A20F9469CFC6C, 1001, {"little_endian": True})) + text + pickle.dumps(
            ["0"], 2) + (4).to_bytes(8, "little") + BOOLS.tobytes()
    yield "an array in a pickle", zipped([("a/data.pkl", pickle.dumps(BOOLS.view(bool), 2))])


@pytest.mark.parametrize("name, data", list(spoilt_files()),
                         ids=lambda x: x if type(x) is str else "")
def test_bools_that_are_neither_0_nor_1_are_refused(name, data, tmp_path):
    (tmp_path / "x").write_bytes(data)
    for load in (lambda: tl.load(io.BytesIO(data)), lambda: tl.load(tmp_path / "x"),
                 lambda: tl.load(tmp_path / "x", mmap=True)):
        with pytest.raises(LoadError, match="bools that are neither 0 nor 1"):
            load()


def test_bools_of_a_program_that_are_neither_0_nor_1_are_refused(tmp_path):
    path = tmp_path / "x"
    mask = tl.tensor([True, True, False, True])
    program.trace(lambda x: x * mask, tl.ones(4)).save(path)
    assert program.load(path) is not None
    path.write_bytes(path.read_bytes().replace(b"\x01\x01\x00\x01", BOOLS.tobytes()))
    with pytest.raises(ProgramError, match="neither 0 nor 1"):
        program.load(path)


# ---- writing -------------------------------------------------------------------------------------

class Short:
    """A file that takes a few bytes at a time, and says so."""

    def __init__(self, most):
        self.data, self.most = bytearray(), most

    def write(self, data):
        self.data += data[:self.most]
        return min(len(data), self.most)


class Silent(Short):
    """One that takes all and says nothing."""

    def write(self, data):
        self.data += data


@each("kind, most", [(Short, 1), (Short, 7), (Short, 10**6), (Silent, None)])
@each("name", FORMATS)
def test_short_writes_are_gone_on_with(name, kind, most):
    obj = tl.arange(9.0) if name.endswith("npy") else {"a": tl.arange(9.0), "b": tl.ones(2)}
    file = kind(most)
    file.name = name
    tl.save(obj, file)
    found = tl.load(io.BytesIO(bytes(file.data)))
    assert (found if name.endswith("npy") else found["a"]).tolist() == list(range(9))


@pytest.mark.parametrize("answer, error", [(0, "took 0 of"), (-1, "took -1 of"), (10**9, "took")])
def test_a_file_that_takes_nothing_or_too_much_is_an_error(answer, error):
    file = Short(1)
    file.write = lambda data: answer
    with pytest.raises(OSError, match=error):
        tl.save(tl.ones(2), file)


def test_a_file_that_would_have_to_wait_is_an_error():
    out, into = os.pipe()
    os.set_blocking(into, False)
    with open(out, "rb"), open(into, "wb", buffering=0) as file:
        with pytest.raises(BlockingIOError, match="without waiting"):
            tl.save(tl.ones(10**6), file)


@pytest.mark.parametrize("letter", ["x", "é", "語"])
def test_names_as_long_as_the_file_system_takes(letter, tmp_path):
    ending = ".safetensors"
    name = letter * ((255 - len(ending)) // len(letter.encode())) + ending
    for _ in range(2):
        tl.save({"a": tl.ones(1)}, tmp_path / name)
    program.trace(lambda x: x + 1, tl.ones(1)).save(tmp_path / name)
    assert os.listdir(tmp_path) == [name]


def test_a_program_is_replaced_all_at_once(tmp_path, monkeypatch):
    path = tmp_path / "x"
    old = program.trace(lambda x: x * 2, tl.ones(2))
    old.save(path)
    before = path.read_bytes()

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        program.trace(lambda x: x * 3, tl.ones(2)).save(path)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["x"]


def interrupted(write, step):
    """Calls `write`, interrupted at a step of the code that replaces a file; whether it was."""
    count = 0

    def trace(frame, event, argument):
        nonlocal count
        if frame.f_code.co_filename != atomic.__file__:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            count += 1
            if count == step:
                sys.settrace(None)
                raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        write()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    return False


@pytest.mark.parametrize("has_nameless", [True, False])
def test_an_interrupt_at_any_step_leaves_a_whole_file_and_no_other(
        has_nameless, tmp_path, monkeypatch):
    if not has_nameless:
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    path, step, seen = tmp_path / "x.safetensors", 0, set()
    going = True
    while going:
        step += 1
        tl.save({"a": tl.zeros(3)}, path)
        going = interrupted(lambda: tl.save({"a": tl.ones(3)}, path), step)
        assert os.listdir(tmp_path) == ["x.safetensors"], step
        seen.add(tuple(tl.load(path)["a"].tolist()))
    assert step > 50 and seen == {(0, 0, 0), (1, 1, 1)}


# ---- whole objects -------------------------------------------------------------------------------

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.history = nn.Linear(3, 2), [tl.ones(2)]
        self.register_buffer("seen", tl.zeros(1))

    def forward(self, x):
        return self.layer(x)


class Special(tl.Tensor):
    pass


def test_whole_models_are_saved_and_loaded_by_those_who_trust_them(tmp_path):
    model = Net()
    model.me = [model]
    tl.save({"model": model, "weight": model.layer.weight}, tmp_path / "x.pt")
    with pytest.raises(LoadError, match=r"Net, which .* load it with weights_only=False, or"):
        tl.load(tmp_path / "x.pt")
    for mmap in (None, True):
        found = tl.load(tmp_path / "x.pt", weights_only=False, mmap=mmap)
        made, x = found["model"], tl.ones(4, 3)
        assert type(made) is Net and made.me == [made] and made.layer.weight is found["weight"]
        assert (made(x) == model(x)).all() and made.history[0].tolist() == [1, 1]
        assert [name for name, _ in made.named_parameters()] == ["layer.weight", "layer.bias"]


def test_other_objects_are_saved_whole():
    special = Special([1.0, 2.0])
    special.note = "kept"
    for obj in (special, nn.LazyLinear(3), tl.optim.lr_scheduler.StepLR, {Net: len}):
        file = io.BytesIO()
        tl.save(obj, file)
        file.seek(0)
        found = tl.load(file, weights_only=False)
        assert type(found) is type(obj)
        if obj is special:
            assert found.tolist() == [1, 2] and found.note == "kept"
    for obj, error in ((lambda: 0, TypeError), ([open], None), ((i for i in "a"), TypeError)):
        if error is not None:
            with pytest.raises(error, match="save: the object can't be pickled"):
                tl.save(obj, io.BytesIO())


def test_objects_that_are_not_there_any_more_are_named():
    class Gone:
        pass

    Gone.__qualname__ = "Gone"
    globals()["Gone"] = Gone
    file = io.BytesIO()
    tl.save(Gone(), file)
    del globals()["Gone"]
    file.seek(0)
    with pytest.raises(LoadError, match="can't be made into objects: AttributeError: .*Gone"):
        tl.load(file, weights_only=False)


def test_errors_of_files_are_those_that_readers_of_pickles_catch():
    for data, kinds in ((b"", (EOFError,)), (b"x", ()), (b"\x80\x02c__builtin__\ngetattr\n.", ())):
        for kind in (*kinds, pickle.UnpicklingError, RuntimeError, ValueError, LoadError):
            with pytest.raises(kind, match="load: "):
                tl.load(io.BytesIO(data))
