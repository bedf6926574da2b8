"""What the constructors and calls of modules refuse, beyond `test_layers.py`."""

import warnings

import re

import pytest
from cases import each

import tensorlib as tl
from tensorlib import nn
from tensorlib.nn.modules import batchnorm, weighted
from tensorlib.nn.parameter import Parameter


def transformer():
    return nn.Transformer(4, 2, 1, 1, 8)


def no_leaf():
    """A parameter that an operation has written over."""
    return Parameter(tl.ones(2), requires_grad=False).mul_(tl.ones(2, requires_grad=True))


@each("act, error, text", [
    (lambda: nn.Linear(5, 3)(tl.ones(2, 4)), RuntimeError,
     r"linear: expects 5 features, got 4: an input of shape \(2, 4\) does not fit to a weight"),
    # losses
    (lambda: nn.CrossEntropyLoss(tl.ones(2, 3), tl.ones(2)), RuntimeError,
     r"^CrossEntropyLoss: .* then called: CrossEntropyLoss\(\)\(input, target\)$"),
    (lambda: nn.MSELoss(tl.ones(2), tl.ones(2)), RuntimeError, "^MSELoss: got a Tensor for an"),
    (lambda: nn.CrossEntropyLoss()(tl.ones(2, 3), tl.tensor([0.0, 1.0])), RuntimeError,
     r"cross_entropy: .* numbers of classes are integers: target.long\(\)$"),
    (lambda: nn.CrossEntropyLoss()(tl.ones(2, 3), tl.eye(3)[:2].long()), RuntimeError,
     r"cross_entropy: .* an integer target is the number of a class: target.argmax\(1\)"),
    (lambda: nn.MultiMarginLoss(weight=tl.ones(2, 2)), ValueError,
     "^MultiMarginLoss: weight must be None or have 1 dim, got 2$"),
    (lambda: nn.MultiMarginLoss(weight=tl.ones(())), ValueError, "1 dim, got 0$"),
    *[(lambda kind=kind, margin=margin: kind(margin=margin), ValueError,
       rf"^{kind.__name__}: expected margin to be greater than 0, found {margin} instead$")
      for kind in (nn.TripletMarginLoss, nn.TripletMarginWithDistanceLoss) for margin in (0, -1.5)],
    (lambda: nn.LinearCrossEntropyLoss(3, 4, weight=tl.ones(3)), RuntimeError,
     r"^LinearCrossEntropyLoss: weight must have shape \(4,\), got \(3,\)$"),
    (lambda: nn.LinearCrossEntropyLoss(3, 4, label_smoothing=1.1), RuntimeError,
     r"^LinearCrossEntropyLoss: label_smoothing must be in the range \[0, 1\], got 1.1$"),
    (lambda: nn.LinearCrossEntropyLoss(3, 4, label_smoothing=-0.1), RuntimeError, "got -0.1$"),
    # windows
    *[(lambda n=n, options=options: getattr(nn, f"FractionalMaxPool{n}d")(2, **options),
       ValueError, rf"^FractionalMaxPool{n}d: {text}")
      for n in (2, 3) for options, text in (
          ({}, "takes either output_size or output_ratio$"),
          ({"output_size": 3, "output_ratio": 0.5}, "takes either output_size or output_ratio$"),
          ({"output_ratio": 1.0}, r"output_ratio must be between 0 and 1 \(got 1.0\)$"),
          ({"output_ratio": 0.0}, r"output_ratio must be between 0 and 1 \(got 0.0\)$"),
          ({"output_ratio": (0.5, 0.5, 1)[3 - n:]}, "output_ratio must be between 0 and 1"),
          ({"output_size": (3, 3, 3, 3)}, "output_size must be one number or"))],
    (lambda: nn.FractionalMaxPool2d((2, 2, 2), 3), ValueError, "kernel_size must be one number or"),
    *[(lambda kind=kind, options=options: kind(**{"kernel_size": 2, **options}), ValueError,
       f"^{kind.__name__}: {next(iter(options))} must be one number or {count}")
      for kind, count in ((nn.MaxUnpool1d, 1), (nn.MaxUnpool2d, 2), (nn.MaxUnpool3d, 3),
       (nn.AvgPool1d, 1))
      for options in ({"kernel_size": (1,) * 4}, {"stride": (1,) * 4}, {"padding": (1,) * 4})],
    # attention
    (lambda: nn.MultiheadAttention(0, 2), ValueError, "got embed_dim=0 and num_heads=2 instead$"),
    (lambda: nn.MultiheadAttention(4, 0), ValueError, "got embed_dim=4 and num_heads=0 instead$"),
    (lambda: nn.MultiheadAttention(4, 3), AssertionError,
     "^embed_dim must be divisible by num_heads, got 4 and 3"),
    (lambda: nn.TransformerEncoderLayer(4, 2, activation="tanh"), RuntimeError,
     "^activation should be relu/gelu, not tanh$"),
    (lambda: transformer()(tl.ones(3, 2, 4), tl.ones(3, 1, 4)), RuntimeError,
     "^the batch number of src and tgt must be equal, got 2 and 1$"),
    (lambda: transformer()(tl.ones(3, 2, 5), tl.ones(3, 2, 4)), RuntimeError,
     "^the feature number of src and tgt must be equal to d_model, 4, got 5 and 4$"),
    (lambda: transformer()(tl.ones(3, 2, 4), tl.ones(3, 2, 5)), RuntimeError, "got 4 and 5$"),
    # tables and shapes
    *[(lambda kind=kind: kind(3, 2, _weight=tl.ones(2, 3)), ValueError,
       rf"^{kind.__name__}: the weight has shape \(2, 3\), .* embedding_dim, \(3, 2\)$")
      for kind in (nn.Embedding, nn.EmbeddingBag)],
    (lambda: nn.Unflatten(1.5, (2, 3)), TypeError, "^Unflatten: dim must be an int, got float$"),
    # normalisation
    (lambda: nn.BatchNorm3d(3)(tl.ones(2, 3, 4, 5)), ValueError,
     r"^BatchNorm3d: expected 5D input \(got 4D input\)$"),
    (lambda: nn.BatchNorm3d(3)(tl.ones(2, 3, 4, 5, 1, 1)), ValueError, r"got 6D input\)$"),
    (lambda: nn.InstanceNorm2d(3, affine=True)(tl.ones(2, 4, 5, 5)), ValueError,
     "^InstanceNorm2d: expected 3 channels, got 4$"),
    # what subclasses say
    (lambda: batchnorm._BatchNorm(3)(tl.ones(2, 3)), NotImplementedError, "^$"),
    (lambda: weighted.Weighted().make_parameters(True, None, None), NotImplementedError, "^$"),
    (lambda: weighted.LazyWeighted().take_channels(tl.ones(2)), NotImplementedError, "^$"),
    # members
    (lambda: nn.Linear(2, 2).get_parameter("nothing"), AttributeError,
     "^Linear has no attribute 'nothing'$"),
    (lambda: nn.BatchNorm1d(2).get_buffer("nothing"), AttributeError,
     "^BatchNorm1d has no attribute 'nothing'$"),
    (lambda: nn.Sequential(nn.Linear(2, 2)).set_submodule("0.weight", nn.ReLU()), AttributeError,
     "^'weight' of '0.weight' is not a Module$"),
    (lambda: nn.Module().register_parameter("a", no_leaf()), ValueError,
     r"^'a' is the result of an operation \(mul\); a parameter must be a leaf"),
    (lambda: setattr(nn.Module(), "a", no_leaf()), ValueError, "a parameter must be a leaf"),
    (lambda: nn.Module().get_extra_state(), RuntimeError,
     "^Module: a class with set_extra_state needs get_extra_state as well$"),
    (lambda: nn.Module().set_extra_state(3), RuntimeError,
     "^Module: a class with get_extra_state needs set_extra_state as well$"),
    # containers
    (lambda: nn.Sequential(nn.ReLU()) * 2.0, TypeError, "unsupported operand"),
    (lambda: nn.ParameterDict({"a": tl.ones(1)})(3), RuntimeError,
     "^ParameterDict: holds values, and is not to be called$"),
    (lambda: nn.ParameterDict({"forward": tl.ones(1)}), KeyError,
     "attribute 'forward' already exists"),
])
def test_refusals(act, error, text):
    with pytest.raises(error) as caught:
        act()
    assert re.search(text, str(caught.value))    # without the note that names the module


def test_the_bounds_are_taken():
    for share in (0, 1):
        loss = nn.LinearCrossEntropyLoss(3, 4, label_smoothing=share, weight=tl.ones(4))
        assert loss.label_smoothing == share and loss.state_dict()["weight"].tolist() == [1] * 4
    assert nn.FractionalMaxPool2d(2, output_ratio=(0.1, 0.9)).output_ratio == (0.1, 0.9)
    assert nn.TripletMarginLoss(1e-9).margin == nn.TripletMarginWithDistanceLoss(
        margin=1e-9).margin == 1e-9
    assert transformer()(tl.ones(3, 4), tl.ones(5, 4)).shape == (5, 4)
    first = nn.Transformer(4, 2, 1, 1, 8, batch_first=True)
    assert first(tl.ones(2, 3, 4), tl.ones(2, 5, 4)).shape == (2, 5, 4)
    with pytest.raises(RuntimeError) as caught:
        first(tl.ones(2, 3, 4), tl.ones(3, 3, 4))
    assert re.search("batch number .* got 2 and 3$", str(caught.value))


def test_without_weights_the_number_of_channels_is_only_warned_of():
    layer, x = nn.InstanceNorm1d(3), tl.randn(2, 4, 5)
    with pytest.warns(UserWarning, match=(
            "^InstanceNorm1d: expected 3 channels, got 4, which is not used because affine=False$")
            ) as found:
        assert layer(x).equal(nn.functional.instance_norm(x))
    assert len(found) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert layer(x[:, :3]).shape == (2, 3, 5) and layer(x[0, :3]).shape == (3, 5)


def test_a_module_that_did_not_begin_can_be_listed():
    class Forgot(nn.Module):
        def __init__(self):
            pass

    assert "forward" in dir(Forgot())
