"""A layer and the batch normalisation after it as one; first values with a structure; vectors."""

import pytest
from cases import each

import tensorlib as tl
from tensorlib import nn
from tensorlib.nn.utils import (
    fuse_conv_bn_eval, fuse_conv_bn_weights, fuse_linear_bn_eval, fuse_linear_bn_weights,
    parameters_to_vector, vector_to_parameters,
)
from tensorlib.testing import assert_close


def normalisation(kind, *args, **options):
    """A batch normalisation for use, of which no number is a usual one."""
    norm = kind(*args, dtype=tl.float64, **options).eval()
    with tl.no_grad():
        for tensor in (norm.running_mean, norm.running_var, norm.weight, norm.bias):
            if tensor is not None:
                tensor.uniform_(0.5, 2)
    return norm


@each("bias", [True, False])
@each("options", [{}, {"affine": False}, {"bias": False}, {"eps": 0.5}], ids=str)
@each("make, norm, shape, transpose", [
    (lambda bias: nn.Conv1d(2, 3, 2, bias=bias), nn.BatchNorm1d, (2, 2, 5), False),
    (lambda bias: nn.Conv2d(4, 3, 2, bias=bias), nn.BatchNorm2d, (2, 4, 5, 4), False),
    (lambda bias: nn.Conv2d(4, 6, 2, groups=2, bias=bias), nn.BatchNorm2d, (2, 4, 5, 4), False),
    (lambda bias: nn.Conv3d(1, 2, 2, bias=bias), nn.BatchNorm3d, (2, 1, 3, 4, 2), False),
    (lambda bias: nn.ConvTranspose2d(4, 3, 2, bias=bias), nn.BatchNorm2d, (2, 4, 5, 4), True),
    (lambda bias: nn.Linear(3, 4, bias), nn.BatchNorm1d, (5, 3), None),
])
def test_one_layer_gives_what_both_give(make, norm, shape, transpose, options, bias):
    layer = make(bias).double().eval()
    outputs = layer.out_features if transpose is None else layer.out_channels
    norm, x = normalisation(norm, outputs, **options), tl.randn(shape, dtype=tl.float64)
    before = [tensor.clone() for tensor in layer.parameters()]
    if transpose is None:
        found = fuse_linear_bn_eval(layer, norm)
    else:
        found = fuse_conv_bn_eval(layer, norm, transpose)
    assert_close(found(x), norm(layer(x)))
    assert type(found) is type(layer) and found is not layer and not found.training
    assert all(tensor.equal(old) for tensor, old in zip(layer.parameters(), before, strict=True))
    assert type(found.weight) is type(found.bias) is nn.Parameter
    assert found.weight.requires_grad and found.bias.requires_grad == bias


def test_what_does_not_learn_and_other_dtypes_stay():
    norm = nn.BatchNorm2d(2).eval()
    found = fuse_conv_bn_eval(nn.Conv2d(1, 2, 3).requires_grad_(False).half().eval(), norm)
    assert not found.weight.requires_grad and not found.bias.requires_grad
    assert found.weight.dtype == found.bias.dtype == tl.float16


def test_one_normalised_number_fits_each_feature():
    layer, norm = nn.Linear(3, 4).double().eval(), normalisation(nn.BatchNorm1d, 1)
    x = tl.randn(5, 3, dtype=tl.float64)
    assert_close(fuse_linear_bn_eval(layer, norm)(x), norm(layer(x).reshape(-1, 1)).reshape(5, 4))


def test_weights_alone():
    """By numbers: (w x + b - mean) / sqrt(var + eps) * gain + offset."""
    args = [tl.tensor(row) for row in ([[3.0], [1.0]], [1.0, 2.0], [5.0, 1.0], [3.0, 15.0])]
    weight, bias = fuse_linear_bn_weights(*args, 1.0, tl.tensor([2.0, 4.0]), tl.tensor([0.5, 0.0]))
    assert weight.tolist() == [[3.0], [1.0]] and bias.tolist() == [-3.5, 1.0]
    weight, bias = fuse_conv_bn_weights(args[0].mT, None, *args[2:], 1.0, None, None, True)
    assert weight.tolist() == [[1.5, 0.25]] and bias.tolist() == [-2.5, -0.25]


@pytest.mark.parametrize("layer, norm", [(True, False), (False, True), (True, True)])
def test_both_are_in_the_mode_for_use(layer, norm):
    for fuse, one, other in ((fuse_conv_bn_eval, nn.Conv1d(1, 2, 1), nn.BatchNorm1d(2)),
                             (fuse_linear_bn_eval, nn.Linear(1, 2), nn.BatchNorm1d(2))):
        with pytest.raises(RuntimeError, match="^Fusion only for eval!$"):
            fuse(one.train(layer), other.train(norm))


@pytest.mark.parametrize("missing", ["running_mean", "running_var"])
def test_without_statistics_there_is_nothing_to_fuse(missing):
    norm = nn.BatchNorm1d(2).eval()
    setattr(norm, missing, None)
    with pytest.raises(RuntimeError, match="^Only support fusion for batch norm with tracked"):
        fuse_linear_bn_eval(nn.Linear(1, 2).eval(), norm)


# ---- first values --------------------------------------------------------------------------------

@pytest.mark.parametrize("shape, groups", [
    ((4, 2, 3), 1), ((2, 3, 4), 1), ((6, 2, 4, 3), 2), ((6, 3, 5, 2), 2), ((2, 3, 1, 2, 3), 1),
    ((4, 1, 3, 3, 3), 4)], ids=str)
def test_a_convolution_that_gives_its_input(shape, groups):
    """Channel by channel in each group, as far as there are channels; then zeros."""
    outputs, inputs, *window = shape
    weight = tl.full(shape, 7.0)
    assert nn.init.dirac_(weight, groups) is weight
    x = tl.randn(2, inputs * groups, *[size + 3 for size in window])
    convolution = getattr(nn.functional, f"conv{len(window)}d")
    found = convolution(x, weight, padding="same" if all(n % 2 for n in window) else [
        size // 2 for size in window], groups=groups)
    found = found[(..., *[slice(0, size + 3) for size in window])]
    each = outputs // groups
    for group in range(groups):
        for channel in range(each):
            wanted = x[:, group * inputs + channel] if channel < inputs else x[:, 0] * 0
            assert found[:, group * each + channel].equal(wanted)


def test_ones_on_a_diagonal_and_what_is_empty():
    x = tl.full((2, 3), 7.0)
    assert nn.init.eye_(x) is x and x.tolist() == [[1, 0, 0], [0, 1, 0]]
    assert nn.init.eye_(tl.ones(3, 1, requires_grad=True)).tolist() == [[1], [0], [0]]
    for fill in (nn.init.orthogonal_, nn.init.kaiming_normal_, nn.init.kaiming_uniform_):
        x = tl.ones(0, 2)
        if fill is nn.init.orthogonal_:
            assert fill(x) is x
        else:
            with pytest.warns(UserWarning, match=f"{fill.__name__}: .* zero-element tensors"):
                assert fill(x) is x


# ---- vectors -------------------------------------------------------------------------------------

def test_parameters_show_the_elements_of_a_vector():
    layer, x = nn.Linear(2, 3), tl.arange(11.0)
    kept = layer.weight, layer.bias
    assert vector_to_parameters(x, layer.parameters()) is None
    assert layer.weight is kept[0] and layer.bias is kept[1]
    assert layer.weight.tolist() == [[0, 1], [2, 3], [4, 5]] and layer.bias.tolist() == [6, 7, 8]
    assert layer.weight.requires_grad and layer.weight.is_leaf
    x[0] = x[8] = -1                                  # as in PyTorch they are views
    assert layer.weight[0, 0] == layer.bias[2] == -1
    assert parameters_to_vector(layer.parameters()).equal(x[:9])
