"""`x.view(dtype)`: the same bytes as elements of another dtype."""

import itertools

import numpy as np
import pytest
from cases import each

import tensorlib as tl

DTYPES = ["bool", "uint8", "int8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
          "float16", "float32", "float64"]


@each("old, new", list(itertools.product(DTYPES, repeat=2)))
def test_the_bytes_are_those_of_numpy(old, new):
    array = np.random.default_rng(0).integers(0, 2, (3, 5, 16)).astype(old)
    for part in (array, array[1], array[::2, ::-1], array.transpose(1, 0, 2), array[:0],
                 array[0, 0], array[:, 1:2]):
        found = tl.from_numpy(part).view(getattr(tl, new)).numpy()
        assert found.dtype == new and found.tobytes() == part.view(new).tobytes()
        assert np.shares_memory(found, array) or not part.size


def test_writes_are_seen_on_both_sides():
    x = tl.zeros(2, 2)
    y = x.view(tl.int32)
    y[0, 1] = 1065353216
    assert x.tolist() == [[0.0, 1.0], [0.0, 0.0]]
    x.fill_(-2.0)
    assert y.tolist() == [[-1073741824] * 2] * 2


def test_it_is_outside_the_graph_and_its_writes_are_noticed():
    w = tl.ones(3, requires_grad=True)
    for dtype in (tl.int32, tl.float32):
        assert not w.view(dtype).requires_grad
    y = w * 2
    loss = (y * y).sum()
    y.view(tl.int32).zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_memory_outlives_what_it_was_made_of():
    x = tl.arange(6, dtype=tl.float64)
    y = x.view(tl.int64)
    x.data = tl.zeros(2, dtype=tl.float64)
    del x
    assert y.view(tl.float64).tolist() == [0, 1, 2, 3, 4, 5]


@each("call, error, text", [
    (lambda: tl.zeros(2, 3).view(tl.float64), RuntimeError, "last dim, 3, is not divisible by 2"),
    (lambda: tl.zeros(()).view(tl.int8), RuntimeError, "it has no dims"),
    (lambda: tl.zeros(4, 4).t().view(tl.int8), RuntimeError, "lie 4 apart"),
    (lambda: tl.zeros(4).flip(0).view(tl.int8)[::-1].view(tl.int32), RuntimeError, "lie -1 apart"),
    (lambda: tl.zeros(4, 3)[:, :2].view(tl.float64), RuntimeError, "step of dim 0, 3"),
    (lambda: tl.zeros(9, dtype=tl.uint8)[1:].view(tl.int32), RuntimeError, "multiple of 4 bytes"),
    (lambda: tl.zeros(3).expand(2, 3).view(tl.float64), RuntimeError, "not divisible"),
    (lambda: tl.zeros(1).expand(2**58).view(tl.int8), RuntimeError, "lie 0 apart"),
    (lambda: tl.zeros(2**58, 0).view(tl.int8).view(2**62, -1), RuntimeError, "view"),
    (lambda: tl.zeros(3).view("int8"), TypeError, "view"),
    (lambda: tl.zeros(3).view(tl.int8, 3), TypeError, "view"),
    (lambda: tl.zeros(3).view(3, dtype=tl.int8), TypeError, "view"),
    (lambda: tl.vmap(lambda x: x.view(tl.int8))(tl.zeros(4)), RuntimeError, "it has no dims"),
])
def test_what_cannot_be_cut_so_is_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_of_each_example_of_a_batch():
    x = tl.arange(12, dtype=tl.float32).reshape(2, 3, 2)
    for dtype in (tl.int32, tl.int8, tl.float64):
        assert tl.equal(tl.vmap(lambda part: part.view(dtype))(x), x.view(dtype))


def test_steps_of_no_elements_do_not_matter():
    assert tl.zeros(1).expand(0, 6).view(tl.float64).shape == (0, 3)
    assert tl.zeros(0, 3, 5).transpose(0, 2).view(tl.int8).shape == (5, 3, 0)


def test_without_memory():
    x = tl.zeros(4, 6, device="meta").view(tl.float64)
    assert x.is_meta and x.shape == (4, 3) and x.stride() == (3, 1)


@each("size", [1, 2, 3, 4])
@each("step", [-2, -1, 1, 2])
@each("old, new", [("int32", "int64"), ("int32", "int16"), ("int64", "uint8"),
                   ("uint8", "int32"), ("int16", "uint16")])
def test_only_a_last_dim_without_gaps_is_cut(old, new, size, step):
    """A dim of one element has no gaps; one of two has them, if its step is not 1."""
    array = np.arange(6 * 16, dtype=old).reshape(6, 16)[:, ::step][:, :size]
    old_size, new_size = (np.dtype(name).itemsize for name in (old, new))
    x = tl.from_numpy(array)
    cut = old_size == new_size or (step == 1 or size == 1) and size * old_size % new_size == 0
    if cut and abs(array.strides[0]) % new_size == 0 and (
            array.__array_interface__["data"][0] % new_size == 0):
        found = x.view(getattr(tl, new))
        assert found.tolist() == np.ascontiguousarray(array).view(new).tolist()
    elif not cut:
        with pytest.raises(RuntimeError, match="view"):
            x.view(getattr(tl, new))
