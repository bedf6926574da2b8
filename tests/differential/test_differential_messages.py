"""Words in messages by which scripts tell one error from another: both libraries have them."""

import copy

import pytest
from cases import each

torch = pytest.importorskip("torch")

import torch.utils.data  # noqa: E402, F811

import tensorlib as tl  # noqa: E402
import tensorlib.utils.data  # noqa: E402


def twice(lib):
    loss = lib.ones(2, requires_grad=True).square().sum()
    loss.backward()
    loss.backward()


@each("lib", [torch, tl], ids=["torch", "tensorlib"])
@each("call, words", [
    (lambda lib: lib.ones(2, 3).view(5), "shape '[5]' is invalid for input of size 6"),
    (lambda lib: lib.ones(2, 3).reshape(4, -1), "shape '[4, -1]' is invalid for input of size 6"),
    (lambda lib: lib.cat([lib.ones(2, 3), lib.ones(2, 4)]),
     "Sizes of tensors must match except in dimension 0. Expected "),
    (lambda lib: lib.cat([lib.ones(2, 3), lib.ones(2)]),
     "Tensors must have same number of dimensions: got 2 and 1"),
    (lambda lib: lib.stack([lib.ones(2), lib.ones(3)]),
     "stack expects each tensor to be equal size, but got [2] at entry 0 and [3] at entry 1"),
    (twice, "Trying to backward through the graph a second time"),
    (lambda lib: lib.testing.assert_close(lib.ones(2), lib.zeros(2)),
     "Tensor-likes are not close!"),
    (lambda lib: lib.testing.assert_close(lib.ones(2), lib.zeros(2), rtol=0, atol=0),
     "Tensor-likes are not equal!"),
    (lambda lib: lib.testing.assert_close(lib.ones(2), lib.ones(3)),
     "The values for attribute 'shape' do not match: "),
    (lambda lib: lib.testing.assert_close(lib.ones(2), lib.ones(2, dtype=lib.float64)),
     "The values for attribute 'dtype' do not match: "),
    (lambda lib: lib.testing.assert_close([1.0], [1.0, 2.0]),
     "The length of the sequences mismatch: 1 != 2"),
    (lambda lib: lib.testing.assert_close({"a": lib.ones(2)}, {"a": lib.zeros(2)}),
     "The failure occurred for item ['a']"),
    (lambda lib: lib.nn.BatchNorm1d(2)(lib.ones(1, 2)),
     "Expected more than 1 value per channel when training"),
    (lambda lib: lib.nn.InstanceNorm1d(2)(lib.ones(1, 2, 1)),
     "Expected more than 1 spatial element when training"),
    (lambda lib: copy.deepcopy(lib.ones(2, requires_grad=True) * 2),
     "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol"),
    (lambda lib: lib.utils.data.TensorDataset(lib.ones(2), lib.ones(3)),
     "Size mismatch between tensors")])
def test_the_words_of(call, words, lib):
    with pytest.raises(Exception) as raised:
        call(lib)
    assert words in str(raised.value)
