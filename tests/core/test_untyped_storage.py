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
