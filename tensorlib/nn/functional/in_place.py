"""Functions of PyTorch's beside those of `nn.functional`; most of them overwrite their tensor."""

from tensorlib._core.tensor.tensor import Tensor
from tensorlib.nn.functional.activations import selu_
from tensorlib.nn.functional.dropout import (
    alpha_dropout,
    dropout,
    feature_alpha_dropout,
    of_channels,
    rrelu,
)
from tensorlib.nn.functional.parametric_activations import celu_, threshold_
from tensorlib.ops.declare import publish
from tensorlib.ops.pending import put_function


def dropout_(input: Tensor, p, train):
    """This tensor, overwritten with the result of `nn.functional.dropout`."""
    return dropout(input, p, train, inplace=True)


def alpha_dropout_(input: Tensor, p, train):
    """This tensor, overwritten with the result of `nn.functional.alpha_dropout`."""
    return alpha_dropout(input, p, train, inplace=True)


def feature_alpha_dropout_(input: Tensor, p, train):
    """This tensor, overwritten with the result of `nn.functional.feature_alpha_dropout`."""
    return feature_alpha_dropout(input, p, train, inplace=True)


def feature_dropout(input: Tensor, p, train):
    """`dropout` of whole channels, as `nn.functional.dropout2d` does it for any number of dims.

    Shapes: (B, C, *). Raises: ValueError for what is not a probability, RuntimeError.
    """
    return of_features(input, p, train, False)


def feature_dropout_(input: Tensor, p, train):
    """This tensor, overwritten with the result of `feature_dropout`."""
    return of_features(input, p, train, True)


def of_features(input, p, train, inplace):
    """Alpha dropout of whole channels. Raises: RuntimeError for fewer than 2 dims."""
    if input.ndim < 2:
        raise RuntimeError("feature_dropout: expects an input with at least 2 dims, got "
                           f"{input.ndim}")
    return of_channels("feature_dropout", input, p, train, inplace, True)


def rrelu_(input: Tensor, lower=1 / 8, upper=1 / 3, training=False):
    """This tensor, overwritten with the result of `nn.functional.rrelu`."""
    return rrelu(input, lower, upper, training, inplace=True)


for _function in (alpha_dropout_, dropout_, feature_alpha_dropout_, feature_dropout,
                  feature_dropout_, rrelu_):
    publish(_function.__name__, _function, _function.__doc__, method=False)
for _function in selu_, celu_, threshold_:
    put_function(_function.__name__, _function)
