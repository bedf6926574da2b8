"""`nn.functional` beside PyTorch's: values, gradients, dtypes and the types of errors."""

import warnings

import numpy as np
import pytest
from peer import disagreement, run, tensor

import tensorlib as tl
import tensorlib.nn.functional
from tensorlib.testing import assert_close

torch = pytest.importorskip("torch")


def real(*shape, seed=0, low=-2.0, high=2.0):
    return np.random.default_rng([seed, *shape]).uniform(low, high, shape)


def check(call, *arrays, dtypes=("float32",), differentiable=True):
    """A call of F and tensors gives the same in both libraries, and so do its gradients."""
    def named(L, *tensors):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return call(L.nn.functional, *tensors)
    for dtype in dtypes:
        outcomes = [run(named, L, *[given(L, x, dtype) for x in arrays]) for L in (tl, torch)]
        text = disagreement(*outcomes, "gradient")
        assert text is None, f"{dtype}: {text}"
    if differentiable:
        for mine, theirs in zip(slopes(named, tl, arrays), slopes(named, torch, arrays)):
            assert (mine is None) == (theirs is None)
            if mine is not None:
                assert_close(mine.numpy(), theirs.numpy(), equal_nan=True)


def slopes(call, L, arrays):
    """The gradients of the sum of a call's floating results, weighted, for its floating tensors."""
    tensors = [given(L, x, "float64") for x in arrays]
    leaves = [x.requires_grad_() for x in tensors if x.dtype.is_floating_point]
    result = call(L, *tensors)
    results = [result] if isinstance(result, L.Tensor) else list(result)
    rng = np.random.default_rng(7)
    sum((one * tensor(L, rng.uniform(0.5, 1.5, tuple(one.shape)), "float64")).sum()
        for one in results if one.requires_grad).backward()
    return [x.grad for x in leaves]


def given(L, x, dtype):
    return tensor(L, x, dtype if x.dtype.kind == "f" else x.dtype.name)


def refused(call, *arrays):
    """Both libraries refuse a call, with errors of which one type is the other's."""
    errors = []
    for L in (tl, torch):
        with pytest.raises(Exception) as caught:
            call(L.nn.functional, *[given(L, x, "float32") for x in arrays])
        errors.append(caught.type)
    assert issubclass(*errors) or issubclass(*errors[::-1]), errors


# ---- activations ---------------------------------------------------------------------------------

KINKS = np.array([0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 3.0, -3.0, 6.0, 7.0, -7.0, 21.0, -21.0, 90.0,
                  -90.0, np.inf, -np.inf, np.nan])
ACTIVATIONS = {
    "relu": lambda F, x: F.relu(x), "relu6": lambda F, x: F.relu6(x),
    "relu in place": lambda F, x: F.relu(x * 1, inplace=True),
    "leaky_relu": lambda F, x: F.leaky_relu(x, 0.2),
    "leaky_relu in place": lambda F, x: F.leaky_relu(x * 1, 0.2, True),
    "elu": lambda F, x: F.elu(x), "elu with alpha": lambda F, x: F.elu(x, 0.5),
    "selu": lambda F, x: F.selu(x), "celu": lambda F, x: F.celu(x, 0.7),
    "elu in place": lambda F, x: F.elu(x * 1, inplace=True),
    "gelu": lambda F, x: F.gelu(x), "gelu by tanh": lambda F, x: F.gelu(x, approximate="tanh"),
    "silu": lambda F, x: F.silu(x), "mish": lambda F, x: F.mish(x),
    "hardtanh": lambda F, x: F.hardtanh(x, -0.5, 3.0), "hardswish": lambda F, x: F.hardswish(x),
    "hardsigmoid": lambda F, x: F.hardsigmoid(x), "softplus": lambda F, x: F.softplus(x),
    "softplus with beta": lambda F, x: F.softplus(x, 2, 10), "softsign": lambda F, x: F.softsign(x),
    "softshrink": lambda F, x: F.softshrink(x), "hardshrink": lambda F, x: F.hardshrink(x),
    "tanhshrink": lambda F, x: F.tanhshrink(x), "logsigmoid": lambda F, x: F.logsigmoid(x),
    "threshold": lambda F, x: F.threshold(x, 0.5, -3.0), "sigmoid": lambda F, x: F.sigmoid(x),
    "tanh": lambda F, x: F.tanh(x), "softmin": lambda F, x: F.softmin(x[:12], 0),
    "softmax": lambda F, x: F.softmax(x[:12].reshape(3, 4)), "glu": lambda F, x: F.glu(x),
    "log_softmax": lambda F, x: F.log_softmax(x[:12].reshape(3, 4), 1),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name):
    finite = KINKS[np.isfinite(KINKS)]
    special = KINKS if name not in ("glu", "tanhshrink", "softsign", "mish") else finite
    check(ACTIVATIONS[name], special, dtypes=("float32", "float64", "bfloat16"),
          differentiable=False)
    check(ACTIVATIONS[name], finite[:14])


def test_prelu():
    check(lambda F, x, w: F.prelu(x, w), real(2, 3, 2), real(3))
    check(lambda F, x, w: F.prelu(x, w), real(4), real(1))
    refused(lambda F, x, w: F.prelu(x, w), real(2, 3), real(2))


def test_activations_refuse_what_pytorch_refuses():
    refused(lambda F, x: F.gelu(x, approximate="fast"), real(3))
    refused(lambda F, x: F.gelu(x), np.arange(3))
    refused(lambda F, x: F.softshrink(x, -1.0), real(3))
    refused(lambda F, x: F.glu(x), real(3))


# ---- normalisation -------------------------------------------------------------------------------

NORMS = {
    "layer_norm": (lambda F, x, w, b: F.layer_norm(x, (3, 5), w, b), (2, 3, 5), (3, 5), (3, 5)),
    "layer_norm of one row": (lambda F, x, w: F.layer_norm(x, (5,), w), (5,), (5,)),
    "layer_norm without weights": (lambda F, x: F.layer_norm(x, [2500], eps=0.1), (3, 2500)),
    "rms_norm": (lambda F, x, w: F.rms_norm(x, (5,), w), (4, 5), (5,)),
    "rms_norm of many": (lambda F, x: F.rms_norm(x, (300,), eps=0.01), (70, 300)),
    "batch_norm": (lambda F, x, w, b: F.batch_norm(x, None, None, w, b, True), (4, 3), (3,), (3,)),
    "batch_norm of 70 channels": (lambda F, x: F.batch_norm(x, None, None, training=True), (9, 70)),
    "batch_norm of images": (lambda F, x, w, b: F.batch_norm(x, None, None, w, b, True, 0.1, 0.01),
                             (3, 2, 4, 5), (2,), (2,)),
}


@pytest.mark.parametrize("name", NORMS)
def test_norms(name):
    call, *shapes = NORMS[name]
    check(call, *(real(*shape, seed=i) for i, shape in enumerate(shapes)),
          dtypes=("float32", "float64", "bfloat16"))


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("shape", [(4, 3), (4, 3, 5)], ids=str)
def test_running_statistics(training, shape):
    def call(F, x, mean, var, w, b):
        mean, var = mean * 1, var * 1
        out = F.batch_norm(x, mean, var, w, b, training, 0.3)
        return out, mean.detach(), var.detach()
    check(call, real(*shape), real(3), real(3, low=0.5), real(3, seed=1), real(3, seed=2),
          differentiable=False)


def test_norms_refuse_what_pytorch_refuses():
    refused(lambda F, x: F.layer_norm(x, (2,)), real(2, 3))
    refused(lambda F, x, w: F.layer_norm(x, (3,), w), real(2, 3), real(2))
    refused(lambda F, x: F.batch_norm(x, None, None), real(2, 3))
    refused(lambda F, x: F.batch_norm(x, None, None, training=True), real(1, 3))
    refused(lambda F, x, w: F.batch_norm(x, None, None, w, training=True), real(2, 3), real(2))
