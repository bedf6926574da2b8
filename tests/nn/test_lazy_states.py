"""Lazy modules before their first call: their states, copies and what a class must say."""

import copy
import pickle
from io import BytesIO

import re

import pytest
from cases import each

import tensorlib as tl
from tensorlib import nn
from tensorlib.nn.modules.lazy import LazyModuleMixin
from tensorlib.nn.parameter import UninitializedTensorMixin
from tensorlib.testing import assert_close

MADE = {
    "LazyLinear": (lambda: nn.LazyLinear(3), tl.ones(2, 4)),
    "LazyConv2d": (lambda: nn.LazyConv2d(3, 2, bias=False), tl.ones(2, 4, 5, 5)),
    "LazyConvTranspose1d": (lambda: nn.LazyConvTranspose1d(3, 2), tl.ones(2, 4, 5)),
    "LazyBatchNorm1d": (nn.LazyBatchNorm1d, tl.randn(3, 4)),
    "LazyInstanceNorm1d": (lambda: nn.LazyInstanceNorm1d(affine=True), tl.randn(3, 4, 5)),
    "LazyInstanceNorm2d": (lambda: nn.LazyInstanceNorm2d(affine=True), tl.randn(4, 5, 6)),
}


@each("assign", [False, True])
@each("make, x", MADE.values(), ids=MADE)
def test_a_state_without_shapes_leaves_them_open(make, x, assign):
    layer, state = make(), make().state_dict()
    kinds = {type(tensor).__name__ for name, tensor in state.items() if "batches" not in name}
    assert kinds <= {"UninitializedParameter", "UninitializedBuffer"} and kinds
    assert layer.load_state_dict(state, assign=assign) == ([], [])
    assert layer.has_uninitialized_params()
    layer(x)
    assert type(layer).__name__ == type(make()).__name__.removeprefix("Lazy")
    assert all(tensor.numel() for tensor in layer.state_dict().values())
    other = make()
    other.load_state_dict(layer.state_dict())
    assert not other.has_uninitialized_params()
    assert_close(other.eval()(x), layer.eval()(x))


def test_a_state_without_shapes_fits_no_module_that_has_them():
    layer = nn.Linear(2, 3)
    before = copy.deepcopy(layer.state_dict())
    with pytest.raises(RuntimeError, match=(
            "\tweight is uninitialized in the state and initialized in the module\n"
            "\tbias is uninitialized in the state and initialized in the module$")):
        layer.load_state_dict(nn.LazyLinear(3).state_dict())
    assert all(layer.state_dict()[name].equal(before[name]) for name in before)


@each("copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(
    pickle.dumps(x))])
@each("tensor", [
    nn.UninitializedParameter(), nn.UninitializedParameter(False, dtype=tl.float64),
    nn.UninitializedBuffer(dtype=tl.float16), nn.UninitializedBuffer(persistent=False)], ids=repr)
def test_copies_without_shapes(tensor, copied):
    made = copied(tensor)
    assert isinstance(made, UninitializedTensorMixin) and made.cls_to_become in type(made).__mro__
    assert type(made) is type(tensor) and made.dtype == tensor.dtype
    assert made.requires_grad == tensor.requires_grad
    assert getattr(made, "persistent", None) == getattr(tensor, "persistent", None)
    made.materialize((2,))
    assert made.shape == (2,) and made.dtype == tensor.dtype and repr(tensor).startswith("<Unini")


class Safetensors(BytesIO):
    name = "x.safetensors"


class Half(LazyModuleMixin):
    def __init__(self):
        super().__init__()
        self.weight = nn.UninitializedParameter()


class Forgetful(Half):
    def initialize_parameters(self, x):
        """Makes none."""


@each("act, error, text", [
    (lambda: Half()(3), NotImplementedError, "^initialize_parameters is not implemented for Half$"),
    (lambda: Forgetful()(3), RuntimeError, "^Forgetful: some parameters were not initialized"),
    (lambda: nn.LazyConv2d(4, 3, groups=2)(tl.ones(1, 3, 5, 5)), ValueError,
     r"^LazyConv2d: in_channels \(3\) must be divisible by groups \(2\)$"),
    (lambda: nn.LazyConv1d(4, 3)(tl.ones(5)), ValueError, "an input of 2 or 3 dims, got 1$"),
    (lambda: tl.save(nn.LazyLinear(3).state_dict(), Safetensors()), TypeError,
     r"save: obj\['weight'\] is of type UninitializedParameter; .* call the lazy module once"),
    (lambda: nn.UninitializedParameter().shape, RuntimeError, "call forward.. of the lazy module"),
    (lambda: sum(x.numel() for x in nn.LazyLinear(3).parameters()), ValueError,
     "the number of elements of an uninitialized parameter or buffer is not known: call forward"),
    (lambda: nn.UninitializedBuffer().nelement(), ValueError, "call forward.. of the lazy module"),
])
def test_what_is_refused(act, error, text):
    with pytest.raises(error) as caught:
        act()
    assert re.search(text, str(caught.value))    # without the note that names the module
