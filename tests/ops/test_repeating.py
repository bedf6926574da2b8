"""Tensors turned round, shifted, repeated: NumPy's values, gradients, batches, errors."""

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib import func
from tensorlib.testing import assert_close, gradcheck, gradgradcheck

CASES = {
    "flip": (lambda x: x.flip(0), lambda x: np.flip(x, 0)),
    "flip of dims": (lambda x: tl.flip(x, (0, -1)), lambda x: np.flip(x, (0, 1))),
    "flip of none": (lambda x: x.flip(()), np.copy),
    "roll": (lambda x: tl.roll(x, 2), lambda x: np.roll(x, 2)),
    "roll of a dim": (lambda x: x.roll(-4, 1), lambda x: np.roll(x, -4, 1)),
    "roll of dims": (lambda x: x.roll((1, 2), (0, 1)), lambda x: np.roll(x, (1, 2), (0, 1))),
    "repeat": (lambda x: x.repeat(2, 3), lambda x: np.tile(x, (2, 3))),
    "repeat in front": (lambda x: x.repeat((2, 1, 1)), lambda x: np.tile(x, (2, 1, 1))),
    "repeat never": (lambda x: x.repeat(0, 1), lambda x: np.tile(x, (0, 1))),
    "tile": (lambda x: tl.tile(x, (2,)), lambda x: np.tile(x, 2)),
    "repeat_interleave": (lambda x: tl.repeat_interleave(x, 2), lambda x: np.repeat(x, 2)),
    "repeat_interleave of a dim": (
        lambda x: x.repeat_interleave(tl.tensor([1, 0, 2]), dim=1),
        lambda x: np.repeat(x, [1, 0, 2], 1)),
    "select": (lambda x: x.select(1, -1), lambda x: x[:, -1]),
    "diag": (lambda x: tl.diag(x, 1), lambda x: np.diag(x, 1)),
    "diag of a vector": (lambda x: x[0].diag(-1), lambda x: np.diag(x[0], -1)),
    "trace": (tl.trace, np.trace),
}


def values():
    array = np.random.default_rng(3).uniform(-1, 1, (2, 3))
    return tl.tensor(array, requires_grad=True)


@pytest.mark.parametrize("function, reference", CASES.values(), ids=CASES)
class TestOfAMatrix:
    def test_values(self, function, reference):
        x = values()
        assert_close(function(x).detach(), reference(x.detach().numpy()))
        whole = tl.arange(6).reshape(2, 3)
        assert_close(function(whole), reference(whole.numpy()))

    def test_gradients(self, function, reference):
        assert gradcheck(function, values()) and gradgradcheck(lambda x: function(x * x), values())

    def test_forward_mode(self, function, reference):
        x = values().detach()
        assert_close(func.jvp(function, (x,), (x,))[1], function(x))

    def test_on_each_example(self, function, reference):
        x = tl.stack([values().detach(), values().detach() * 2])
        assert_close(func.vmap(function)(x), tl.stack([function(x[0]), function(x[1])]))


def test_what_they_give_is_a_copy_but_for_select():
    x = tl.zeros(3, 3)
    for copy in (x.flip(0), x.roll(1, 0), x.diag(), x.repeat(1, 1), x.tile(1)):
        copy.fill_(1)
    assert not x.any()
    x.select(0, 1).fill_(1)
    assert x.sum() == 3


@each("call, error, message", [
    (lambda x: x.flip(0, -2), RuntimeError, "flip: a dim appears multiple"),
    (lambda x: x.flip(2), IndexError, "flip: Dimension out of range"),
    (lambda x: x.roll((1, 2), 0), RuntimeError, "roll: shifts and dimensions must align"),
    (lambda x: x.repeat(2), RuntimeError, "repeat: needs a number for each of 2 dims"),
    (lambda x: x.repeat(2, -1), RuntimeError, "repeat: .*0 or more"),
    (lambda x: x.repeat_interleave(tl.tensor([1, 2]), 1), RuntimeError, "each of the 3 slices"),
    (lambda x: x.repeat_interleave(-1), RuntimeError, "repeat_interleave: .*0 or more"),
    (lambda x: tl.repeat_interleave(x), RuntimeError, "repeats alone must be a vector, got shape"),
    (lambda x: tl.repeat_interleave(x[0]), TypeError, "repeats must be ints"),
    (lambda x: x.select(0, 5), IndexError, "5"),
    (lambda x: x[0, 0].select(0, 0), IndexError, "0-d"),
    (lambda x: tl.diag(x[None]), RuntimeError, "diag: expects a vector or a matrix"),
    (lambda x: x[0].trace(), RuntimeError, "trace: expects a matrix"),
    (lambda x: tl.trace([1.0]), TypeError, "trace: input must be a Tensor"),
])
def test_bad_arguments(call, error, message):
    with pytest.raises(error, match=message):
        call(tl.zeros(2, 3))


def test_dims_and_numbers_go_by_their_names():
    x = tl.arange(6).reshape(2, 3)
    for turned in (tl.flip(x, dims=(0, 1)), x.flip(dims=[1, 0])):
        assert turned.tolist() == [[5, 4, 3], [2, 1, 0]]
    assert x.tile(dims=(2, 1)).shape == x.repeat(repeats=(2, 1)).shape == (4, 3)


def test_the_gradient_of_what_is_repeated_is_one_node():
    x = tl.ones(2, requires_grad=True)
    for out in (x.repeat(3), x.tile(3), x.flip(0)):
        ((leaf, _),) = out.grad_fn.next_functions
        assert leaf.variable is x


def test_one_position_may_be_a_tensor():
    x = tl.arange(6).reshape(2, 3)
    assert x.select(1, tl.tensor(-1)).tolist() == [2, 5]
    for index in (tl.tensor([0]), tl.tensor(0.0), tl.tensor(True)):
        with pytest.raises(TypeError, match="select: index must be an int"):
            x.select(0, index)


def test_repeats_alone_repeat_positions():
    for counts, options in ([1, 0, 2], {}), ([], {}), ([3], {"output_size": 3}):
        found = tl.repeat_interleave(tl.tensor(counts, dtype=tl.int32), **options)
        assert found.tolist() == np.repeat(np.arange(len(counts)), counts).tolist()
        assert found.dtype == tl.int64


def test_what_is_scattered_takes_the_dtype_of_the_tensor():
    x = tl.as_strided_scatter(tl.zeros(4), tl.tensor([1, 2]), (2,), (3,))
    assert x.dtype == tl.float32 and x.tolist() == [1, 0, 0, 2]


@each("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
@each("place", [((3, 4, 2), (7, 2, 2), 5), ((5, 2), (0, 1), 0),
                ((0, 3), (1, 1))], ids=str)
def test_gradients_of_views_of_what_lies_without_gaps(order, place):
    memory = tl.arange(8.0).repeat(9)                   # of which the tensor is a part
    x = memory[6:66].reshape(4, 3, 5).permute(order).requires_grad_()
    weights = tl.arange(120.0)[:np.prod(place[0])].reshape(place[0])
    want = np.zeros(72)
    np.add.at(want, np.lib.stride_tricks.as_strided(
        np.arange(72)[(place[2] if place[2:] else 6):], place[0],
        [8 * n for n in place[1]]).reshape(-1), weights.numpy().reshape(-1))
    (found,) = tl.autograd.grad(x.as_strided(*place), x, weights)
    assert (found.numpy() == want[6:66].reshape(4, 3, 5).transpose(order)).all()


def test_complex_numbers_lie_as_their_parts():
    real, imag, row = tl.rand(4, 3).t(), tl.rand(4, 3).t(), tl.rand(4)
    for parts in ((real, imag), (real, row), (row, imag)):
        z = tl.complex(*parts)
        assert z.stride() == (1, 3)
        assert (z.numpy() == parts[0].numpy() + 1j * parts[1].numpy()).all()


def test_reversed_gives_a_tensor():
    x = tl.arange(6.0).reshape(3, 2).requires_grad_()
    assert tl.equal(reversed(x), x.flip(0)) and reversed(x).requires_grad
    scalar = tl.tensor(3)
    assert reversed(scalar) is scalar and reversed(tl.arange(3)).tolist() == [2, 1, 0]
