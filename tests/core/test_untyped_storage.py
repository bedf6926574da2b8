"""`untyped_storage`: what memory a tensor has, for those who ask whether two tensors share it."""

import gc
import pickle
import sys

import pytest

import tensorlib as tl


def test_views_share_it():
    x = tl.ones(3, 4, dtype=tl.float64)
    memory = x.untyped_storage()
    assert memory.nbytes() == memory.size() == len(memory) == 96 and memory.element_size() == 1
    assert memory.data_ptr() == x.data_ptr() and memory.device == tl.device("cpu")
    for view in (x[1:, 2], x.t(), x.detach(), x[:0], x[::-1], x.view(tl.int64)):
        other = view.untyped_storage()
        assert (other.data_ptr(), other.nbytes()) == (memory.data_ptr(), 96)
    assert x.clone().untyped_storage().data_ptr() != memory.data_ptr()
    assert x[2:].data_ptr() == memory.data_ptr() + 64
    assert sys.getsizeof(memory) >= 96 and repr(memory) == "<UntypedStorage of 96 bytes on cpu>"


def test_it_keeps_the_memory():
    memory = tl.ones(1000).untyped_storage()
    gc.collect()
    held = {tl.zeros(1000).untyped_storage().data_ptr() for _ in range(10)}
    assert memory.data_ptr() not in held


def test_without_memory():
    memory = tl.empty(10, 10, device="meta").untyped_storage()
    assert memory.data_ptr() == 0 and memory.device == tl.device("meta")
    assert sys.getsizeof(memory) < 200
    own = type(memory)()
    assert len(own) == own.nbytes() == 0 and own.device == tl.device("cpu")


def test_of_a_file(tmp_path):
    path = tmp_path / "bytes"
    path.write_bytes(bytes(range(16)))
    kind = tl.UntypedStorage
    memory = kind.from_file(str(path), nbytes=12)
    assert memory.untyped() is memory and len(memory) == 12 and memory[-1] == 11
    part = memory[4:8]
    x = tl.asarray(part, dtype=tl.uint8)
    assert x.tolist() == part.tolist() == [4, 5, 6, 7] and len(memory[8:2]) == 0
    assert x.view(tl.int32).item() == int.from_bytes(path.read_bytes()[4:8], sys.byteorder)
    x.fill_(9)                                            # seen by all, but not by the file
    del memory
    gc.collect()
    assert part.tolist() == [9] * 4 and path.read_bytes() == bytes(range(16))
    shared = tl.asarray(kind.from_file(path, shared=True, nbytes=20), dtype=tl.uint8)
    shared[18] = 5
    assert path.read_bytes() == bytes([*range(16), 0, 0, 5, 0])
    made = kind.from_file(tmp_path / "new", True, 3)
    assert made.tolist() == [0, 0, 0] and len(kind.from_file(path, nbytes=0)) == 0


def test_a_tensor_of_the_elements_of_a_file(tmp_path):
    path = tmp_path / "numbers"
    path.write_bytes(tl.arange(4.0).numpy().tobytes())
    x = tl.from_file(str(path), size=3)
    assert x.dtype == tl.float32 and x.tolist() == [0, 1, 2]
    x.fill_(7)
    shared = tl.from_file(path, True, 6, dtype=tl.int32)
    shared[5] = 9
    assert tl.from_file(path, size=4).tolist() == [0, 1, 2, 3]
    assert tl.from_file(path, size=6, dtype=tl.int32)[5] == 9 and path.stat().st_size == 24
    assert tl.from_file(path, size=2, requires_grad=True).requires_grad
    with pytest.raises(RuntimeError, match="fewer"):
        tl.from_file(path, size=7)


def test_the_bytes_are_a_buffer():
    x = tl.tensor([1, 258], dtype=tl.int16)
    memory = x.untyped_storage()
    view = memoryview(memory)
    view[0] = 7
    assert x.tolist() == [7, 258] and bytes(memory) == x.numpy().tobytes()
    held = memory[2:]
    del x, memory, view
    gc.collect()
    assert int.from_bytes(held, sys.byteorder) == 258


def test_what_is_refused_of_a_file(tmp_path):
    path = tmp_path / "short"
    path.write_bytes(b"abc")
    memory = tl.UntypedStorage.from_file(path, nbytes=3)
    absent = tl.empty(3, device="meta").untyped_storage()
    for error, call in ((RuntimeError, lambda: tl.UntypedStorage.from_file(path, nbytes=4)),
                        (ValueError, lambda: tl.UntypedStorage.from_file(path, nbytes=-1)),
                        (TypeError, lambda: tl.UntypedStorage.from_file(1, nbytes=1)),
                        (TypeError, lambda: tl.from_file(tl.ones(3), size=1)),
                        (FileNotFoundError, lambda: tl.UntypedStorage.from_file(tmp_path / "no")),
                        (RuntimeError, lambda: memory[::2]), (IndexError, lambda: memory[3]),
                        (BufferError, lambda: bytes(absent)), (BufferError, lambda: absent[0])):
        with pytest.raises(error):
            call()
    assert len(absent[1:3]) == 2 and absent[1:3].data_ptr() == 0


def test_what_is_refused():
    kind = type(tl.ones(1).untyped_storage())
    for call in (lambda: kind.nbytes(3), lambda: tl.Tensor.untyped_storage(3), lambda: kind(4),
                 lambda: pickle.dumps(kind())):
        with pytest.raises(TypeError):
            call()


def test_parameters_that_are_tied_are_found():
    layer, head = tl.nn.Linear(2, 2), tl.nn.Linear(2, 2)
    head.weight = layer.weight
    places = [p.untyped_storage().data_ptr() for p in (layer.weight, head.weight, head.bias)]
    assert places[0] == places[1] != places[2]
