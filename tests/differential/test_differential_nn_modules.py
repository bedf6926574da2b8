"""Each module beside PyTorch's: text, state, outputs, gradients and what training changes."""

import warnings
from inspect import signature

import numpy as np
import pytest
from cases import each
from peer import name_of, tensor

import tensorlib as tl
import tensorlib.nn
from tensorlib.testing import assert_close

torch = pytest.importorskip("torch")


def real(*shape, low=-2.0, high=2.0):
    return np.random.default_rng([5, *shape]).uniform(low, high, shape)


def whole(high, *shape):
    return np.random.default_rng([high, *shape]).integers(0, high, shape)


def fixed(values):
    """Numbers that get no gradient: floats of half the width say so."""
    return np.asarray(values, dtype=np.float32)


def sign(*shape):
    return fixed(np.where(real(*shape) > 0, 1.0, -1.0))


X = real(4, 6)
SEQUENCE, IMAGE, VOLUME = real(2, 4, 9), real(2, 4, 8, 7), real(2, 4, 6, 5, 7)
CLASSES = whole(6, 4)
CUBES = {1: SEQUENCE, 2: IMAGE, 3: VOLUME}

# How a module is made, and what it is called with. What can't be drawn alike stands below.
CASES = [
    ("Identity(3, key=4)", X), ("Flatten()", IMAGE), ("Flatten(0, 2)", IMAGE),
    ("Unflatten(1, (2, 3))", X), ("Unflatten(-1, [3, 2])", X),
    ("Linear(6, 3)", X), ("Linear(6, 3, bias=False)", real(2, 3, 6)), ("Linear(6, 1)", real(6)),
    ("Bilinear(6, 5, 3)", X, real(4, 5)), ("Bilinear(6, 5, 3, bias=False)", X, real(4, 5)),
    # activations
    *[(f"{name}()", X) for name in (
        "Sigmoid Tanh LogSigmoid Softsign Tanhshrink ReLU SELU SiLU Mish Hardsigmoid Hardswish "
        "ReLU6 Hardtanh ELU CELU LeakyReLU GELU Softplus Hardshrink Softshrink PReLU GLU").split()],
    ("ReLU(inplace=True)", X), ("Threshold(0.3, -7)", X), ("Threshold(0.3, -7, True)", X),
    ("Hardtanh(-0.5, 1.5, True)", X), ("ELU(0.5)", X), ("ELU(0.5, inplace=True)", X),
    ("CELU(0.5, True)", X), ("SELU(True)", X), ("LeakyReLU(0.2, True)", X), ("SiLU(True)", X),
    ("GELU('tanh')", X), ("GELU(approximate='tanh')", X), ("Softplus(2, 3.0)", X),
    ("Hardshrink(0.7)", X), ("Softshrink(0.7)", X), ("PReLU(4, 0.1)", IMAGE), ("GLU(0)", X),
    ("Softmax(dim=1)", X), ("Softmax(0)", X), ("Softmin(1)", X), ("LogSoftmax(-1)", X),
    ("Softmax2d()", IMAGE), ("Softmax2d()", IMAGE[0]),
    # convolutions
    *[(f"Conv{n}d(4, 6, 3)", x) for n, x in CUBES.items()],
    *[(f"Conv{n}d(4, 6, 3, 2, 1, 1, 2, False)", x) for n, x in CUBES.items()],
    *[(f"Conv{n}d(4, 2, 3, padding=2, padding_mode='{mode}')", x) for n, x in CUBES.items()
      for mode in ("zeros", "reflect", "replicate", "circular")],
    ("Conv2d(4, 2, (2, 3), stride=(2, 1), padding=(1, 0), dilation=(1, 2))", IMAGE),
    ("Conv2d(4, 2, 4, padding='same')", IMAGE), ("Conv2d(4, 2, 4, padding='valid')", IMAGE),
    ("Conv2d(4, 2, 4, padding='same', padding_mode='circular', dilation=2)", IMAGE),
    ("Conv1d(4, 2, 3, padding='same', padding_mode='reflect')", SEQUENCE[0]),
    *[(f"ConvTranspose{n}d(4, 6, 3)", x) for n, x in CUBES.items()],
    *[(f"ConvTranspose{n}d(4, 6, 3, 2, 1, 1, 2, False, 2)", x) for n, x in CUBES.items()],
    ("ConvTranspose2d(4, 2, (2, 3), stride=(2, 1), padding=(1, 0))", IMAGE),
    # pools
    *[(f"MaxPool{n}d(2)", x) for n, x in CUBES.items()],
    *[(f"MaxPool{n}d(3, 1, 1, 2, ceil_mode=True)", x) for n, x in CUBES.items()],
    *[(f"MaxPool{n}d(2, return_indices=True)", x) for n, x in CUBES.items()],
    *[(f"AvgPool{n}d(2)", x) for n, x in CUBES.items()],
    *[(f"AvgPool{n}d(3, 2, 1, True, False)", x) for n, x in CUBES.items()],
    ("AvgPool2d((2, 3), divisor_override=5)", IMAGE), ("AvgPool3d((1, 2, 3))", VOLUME),
    *[(f"LPPool{n}d(2, 3)", np.abs(x)) for n, x in CUBES.items()],
    ("LPPool2d(1.5, (2, 3), 1, True)", np.abs(IMAGE)),
    *[(f"AdaptiveAvgPool{n}d(3)", x) for n, x in CUBES.items()],
    *[(f"AdaptiveMaxPool{n}d(3)", x) for n, x in CUBES.items()],
    ("AdaptiveAvgPool2d((None, 3))", IMAGE), ("AdaptiveMaxPool2d((5, None), True)", IMAGE),
    # normalisation
    *[(f"BatchNorm{n}d(4)", x) for n, x in CUBES.items()], ("BatchNorm1d(6)", X),
    ("BatchNorm2d(4, 0.1, None)", IMAGE), ("BatchNorm2d(4, momentum=0.7, affine=False)", IMAGE),
    ("BatchNorm2d(4, track_running_stats=False)", IMAGE), ("BatchNorm1d(6, bias=False)", X),
    *[(f"InstanceNorm{n}d(4)", x) for n, x in CUBES.items()],
    ("InstanceNorm2d(4, 0.1, 0.3, True, True)", IMAGE), ("InstanceNorm1d(4)", SEQUENCE[0]),
    ("LayerNorm(6)", X), ("LayerNorm((8, 7), 0.1)", IMAGE), ("LayerNorm([7], bias=False)", IMAGE),
    ("LayerNorm(6, elementwise_affine=False)", X),
    ("GroupNorm(2, 4)", IMAGE), ("GroupNorm(4, 4, 0.1, False)", SEQUENCE),
    ("GroupNorm(1, 6, bias=False)", X),
    ("RMSNorm(6)", X), ("RMSNorm((8, 7), 0.1)", IMAGE), ("RMSNorm(6, elementwise_affine=False)", X),
    ("LocalResponseNorm(3)", IMAGE), ("LocalResponseNorm(2, 0.1, 0.5, 2.0)", SEQUENCE),
    # dropout, in the mode for use
    *[(f"{name}(0.3).eval()", IMAGE[0] if "1" in name else IMAGE) for name in (
        "Dropout", "Dropout1d", "Dropout2d", "AlphaDropout", "FeatureAlphaDropout")],
    ("Dropout3d(0.3, True).eval()", VOLUME), ("Dropout(0.0)", X), ("Dropout(1.0)", X),
    ("RReLU(0.1, 0.3).eval()", X), ("RReLU(inplace=True).eval()", X),
    # tables
    ("Embedding(9, 3)", whole(9, 2, 4)), ("Embedding(9, 3, padding_idx=-2)", whole(9, 2, 4)),
    ("Embedding(9, 3, max_norm=0.5, norm_type=1, scale_grad_by_freq=True)", whole(9, 2, 4)),
    ("EmbeddingBag(9, 3)", whole(9, 2, 4)), ("EmbeddingBag(9, 3, mode='max')", whole(9, 2, 4)),
    ("EmbeddingBag(9, 3, mode='sum')", whole(9, 7), np.array([0, 3, 3]), real(7)),
    ("EmbeddingBag(9, 3, 0.5, include_last_offset=True, padding_idx=1)", whole(9, 7),
     np.array([0, 3, 7])),
    # margins
    *[(f"{kind}Pad{n}d(1)", CUBES[n]) for n in CUBES
      for kind in ("Zero", "Reflection", "Replication", "Circular")],
    *[(f"ConstantPad{n}d({(2, 1) * n}, 0.5)", x) for n, x in CUBES.items()],
    ("ZeroPad2d((1, 0, -1, 2))", IMAGE), ("ReflectionPad2d((1, 2, 3, 0))", IMAGE[0]),
    # images and channels
    ("PixelShuffle(2)", IMAGE), ("PixelUnshuffle(2)", real(2, 3, 4, 6)),
    ("ChannelShuffle(2)", IMAGE), ("Fold((5, 6), 2)", real(2, 12, 20)),
    ("Fold((5, 6), (2, 3), 1, 1, (2, 1))", real(2, 12, 18)), ("Unfold(3)", IMAGE),
    ("Unfold((2, 3), dilation=2, padding=1, stride=2)", IMAGE),
    ("Upsample(scale_factor=2)", IMAGE), ("Upsample((5, 3), mode='bilinear')", IMAGE),
    ("Upsample(scale_factor=(2, 1.5), mode='bicubic', align_corners=True)", IMAGE),
    ("Upsample(scale_factor=1.7, mode='linear', recompute_scale_factor=True)", SEQUENCE),
    ("UpsamplingNearest2d(5)", IMAGE), ("UpsamplingBilinear2d(scale_factor=2)", IMAGE),
    ("PairwiseDistance()", X, real(4, 6, low=0)), ("PairwiseDistance(1.5, 0.1, True)", X, X[::-1]),
    ("CosineSimilarity()", X, X[::-1]), ("CosineSimilarity(0, 0.5)", X, X[::-1]),
    # losses
    *[(f"{name}(reduction='{reduction}')", X, X[::-1]) for reduction in ("none", "mean", "sum")
      for name in ("L1Loss", "MSELoss", "SmoothL1Loss", "HuberLoss")],
    ("SmoothL1Loss(beta=0.3)", X, X[::-1]), ("HuberLoss(delta=0.3)", X, X[::-1]),
    ("MSELoss(size_average=False)", X, X[::-1]), ("L1Loss(reduce=False)", X, X[::-1]),
    ("PoissonNLLLoss()", X, np.abs(X[::-1])),
    ("PoissonNLLLoss(False, True, eps=0.1, reduction='sum')", np.abs(X), np.abs(X[::-1])),
    ("GaussianNLLLoss()", X, X[::-1], np.abs(X) + 0.1),
    ("GaussianNLLLoss(full=True, eps=0.5, reduction='none')", X, X[::-1], np.abs(X) + 0.1),
    ("BCELoss()", real(4, 6, low=0.1, high=0.9), real(4, 6, low=0, high=1)),
    ("BCEWithLogitsLoss(reduction='sum')", X, real(4, 6, low=0, high=1)),
    ("KLDivLoss(reduction='batchmean')", X, real(4, 6, low=0.1, high=1)),
    ("KLDivLoss(log_target=True)", X, X[::-1]),
    ("NLLLoss()", X, CLASSES), ("NLLLoss(ignore_index=2, reduction='none')", X, CLASSES),
    ("CrossEntropyLoss()", X, CLASSES), ("CrossEntropyLoss(label_smoothing=0.2)", X, CLASSES),
    ("CrossEntropyLoss(ignore_index=2, reduction='sum')", real(2, 6, 3), whole(6, 2, 3)),
    ("CrossEntropyLoss()", X, np.abs(X[::-1])),
    ("LinearCrossEntropyLoss(6, 5)", X, whole(5, 4)),
    ("LinearCrossEntropyLoss(6, 5, out_features=(2, 3), bias=True, reduction='none',"
     "ignore_index=2, label_smoothing=0.1)", X, whole(5, 4, 2, 3)),
    ("HingeEmbeddingLoss()", X, sign(4, 6)), ("HingeEmbeddingLoss(0.3)", X, sign(4, 6)),
    ("CosineEmbeddingLoss(0.2)", X, X[::-1], sign(4)),
    ("MarginRankingLoss(0.2)", X[0], X[1], sign(6)), ("SoftMarginLoss()", X, sign(4, 6)),
    ("MultiLabelMarginLoss()", X, whole(6, 4, 6)), ("MultiMarginLoss(2, 0.5)", X, CLASSES),
    ("MultiLabelSoftMarginLoss()", X, whole(2, 4, 6).astype(float)),
    ("TripletMarginLoss(0.5, 1.5, 1e-3, True)", X, X[::-1], real(4, 6, low=0)),
    ("TripletMarginWithDistanceLoss(swap=True)", X, X[::-1], real(4, 6, low=0)),
    # PyTorch's gradient is that of the logits, not of what it is given
    ("CTCLoss()", fixed(np.log(np.full((9, 2, 4), 0.25))), 1 + whole(3, 2, 4), np.array([9, 8]),
     np.array([4, 3])),
    # made of others
    ("Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Sequential(nn.Linear(5, 2)))", X),
    ("ModuleList([nn.Linear(6, 6), nn.Linear(6, 6), nn.ReLU()])[1:][0]", X),
    ("AdaptiveLogSoftmaxWithLoss(6, 9, [3, 5], 2.0, True)", X, np.array([0, 4, 7, 2])),
    ("AdaptiveLogSoftmaxWithLoss(6, 9, [3, 5])", X, np.array([8, 8, 7, 5])),
]

LAZY = [
    ("LazyLinear(3)", X), ("LazyLinear(3, bias=False)", X),
    *[(f"LazyConv{n}d(6, 3, 1, 1, 1, 2)", x) for n, x in CUBES.items()],
    *[(f"LazyConvTranspose{n}d(6, 3, bias=False)", x) for n, x in CUBES.items()],
    *[(f"LazyBatchNorm{n}d()", x) for n, x in CUBES.items()],
    *[(f"LazyInstanceNorm{n}d()", x) for n, x in CUBES.items()],
    ("LazyBatchNorm1d(0.1, None, False)", X),
]

# What takes tensors when it is made.
WEIGHTED = [
    ("BCELoss", {"weight": real(6, low=0)}, (real(4, 6, low=0.1, high=0.9), np.eye(4, 6))),
    ("BCEWithLogitsLoss", {"weight": real(6, low=0), "pos_weight": real(1, low=0)},
     (X, np.eye(4, 6))),
    ("NLLLoss", {"weight": real(6, low=0)}, (X, CLASSES)),
    ("CrossEntropyLoss", {"weight": real(6, low=0)}, (X, CLASSES)),
    ("MultiMarginLoss", {"weight": real(6, low=0)}, (X, CLASSES)),
    ("MultiLabelSoftMarginLoss", {"weight": real(6, low=0)}, (X, np.eye(4, 6))),
]


def made(L, text):
    """The module of a text, with float64 parameters."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(f"nn.{text}", {"nn": L.nn}).double()


def given(L, value):
    value = np.asarray(value)
    if value.dtype.kind == "i":
        return tensor(L, value, "int64")
    return tensor(L, value, "float64", requires_grad=value.dtype == np.float64)


def assert_carried_over(mine, theirs):
    """Gives a module the state of PyTorch's, by name and through NumPy."""
    state = {name: tl.from_numpy(value.numpy().copy()) for name, value in
             theirs.state_dict().items()}
    assert mine.load_state_dict(state) == ([], [])


def assert_states_agree(mine, theirs):
    ours, others = mine.state_dict(), theirs.state_dict()
    assert list(ours) == list(others)
    for name, value in others.items():
        assert name_of(ours[name].dtype) == name_of(value.dtype), name
        assert_close(ours[name].numpy(), value.numpy(), rtol=1e-7, atol=1e-9)


def ran(L, module, arrays, weights):
    """The outputs, and after a sweep the gradients of inputs and parameters."""
    inputs = [given(L, array) for array in arrays]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # what writes over its input is not given a leaf
        output = module(*[x * 1 if x.requires_grad else x for x in inputs])
    outputs = [output] if isinstance(output, L.Tensor) else list(output)
    floating = [one for one in outputs if one.requires_grad]
    if floating:
        sum((one * tensor(L, weights(tuple(one.shape)), "float64")).sum()
            for one in floating).backward()
    gradients = [x.grad for x in inputs] + [p.grad for p in module.parameters()]
    return ([one.detach().numpy() for one in outputs],
            [None if g is None else g.numpy() for g in gradients])


def assert_same_runs(mine, theirs, arrays, rounds=2):
    """Both modules give the same, again and again, and change alike."""
    for i in range(rounds):
        results = [ran(L, module, arrays, lambda shape: np.random.default_rng([i, *shape]).uniform(
            0.5, 1.5, shape)) for L, module in ((tl, mine), (torch, theirs))]
        for ours, others in zip(*results):
            assert len(ours) == len(others)
            for one, other in zip(ours, others):
                assert (one is None) == (other is None)
                if one is not None:
                    assert one.shape == other.shape
                    assert_close(one, other, rtol=1e-6, atol=1e-8)
        assert_states_agree(mine, theirs)


@each("text, arrays", [(text, arrays) for text, *arrays in CASES],
      ids=[case[0] for case in CASES])
def test_a_module(text, arrays):
    mine, theirs = made(tl, text), made(torch, text)
    assert repr(mine) == repr(theirs)
    assert [(name, tuple(p.shape)) for name, p in mine.named_parameters()] == [
        (name, tuple(p.shape)) for name, p in theirs.named_parameters()]
    assert_carried_over(mine, theirs)
    assert_same_runs(mine, theirs, arrays)
    assert_same_runs(mine.eval(), theirs.eval(), arrays, rounds=1)


@each("text, array", LAZY, ids=[case[0] for case in LAZY])
def test_a_lazy_module(text, array):
    mine, theirs = made(tl, text), made(torch, text)
    assert repr(mine) == repr(theirs)
    for L, module in ((tl, mine), (torch, theirs)):
        module(given(L, array))
    assert repr(mine) == repr(theirs)
    assert type(mine).__name__ == type(theirs).__name__ == text.removeprefix("Lazy").split("(")[0]
    assert_carried_over(mine, theirs)
    assert_same_runs(mine, theirs, [array])


@each("name, options, arrays", WEIGHTED, ids=[case[0] for case in WEIGHTED])
def test_a_weighted_loss(name, options, arrays):
    mine, theirs = (getattr(L.nn, name)(**{
        key: tensor(L, value, "float64") for key, value in options.items()}) for L in (tl, torch))
    assert_states_agree(mine, theirs)
    assert_same_runs(mine, theirs, arrays, rounds=1)


def test_all_of_pytorchs_modules_are_here_and_tested():
    theirs = {name for name in dir(torch.nn) if isinstance(getattr(torch.nn, name), type)
              and issubclass(getattr(torch.nn, name), torch.nn.Module)}
    left_out = {"DataParallel", "SyncBatchNorm"}       # of several devices
    assert theirs - left_out - set(tl.nn.__all__) == set()


# PyTorch's CrossMapLRN2d leaves one of the neighbours out, and has a gradient of something else.
def test_the_older_local_response_norm():
    assert repr(tl.nn.CrossMapLRN2d(3, 0.1)) == repr(torch.nn.CrossMapLRN2d(3, 0.1))
    x = given(tl, IMAGE)
    assert_close(tl.nn.CrossMapLRN2d(3, 0.1)(x), tl.nn.LocalResponseNorm(3, 0.1)(x))


@each("name, x, options", [
    ("FractionalMaxPool2d", IMAGE, {"kernel_size": 3, "output_size": (4, 1)}),
    ("FractionalMaxPool2d", IMAGE, {"kernel_size": (2, 1), "output_ratio": 0.6}),
    ("FractionalMaxPool3d", VOLUME, {"kernel_size": 2, "output_ratio": (0.5, 0.7, 0.6)}),
    ("FractionalMaxPool3d", VOLUME, {"kernel_size": 2, "output_size": 3, "return_indices": True}),
])
def test_pools_of_drawn_windows(name, x, options):
    drawn = real(2, 4, x.ndim - 2, low=0, high=1)
    mine, theirs = (getattr(L.nn, name)(**options, _random_samples=tensor(L, drawn, "float64"))
                    for L in (tl, torch))
    assert repr(mine) == repr(theirs)
    assert_same_runs(mine, theirs, [x], rounds=1)


# those of PyTorch take anything, and look at it later
@each("name", sorted({*tl.nn.modules.__all__} - {"RNN", "LSTM", "GRU"}))
def test_a_module_takes_the_same_arguments(name):
    """Names, order and defaults."""
    theirs = getattr(torch.nn, name)
    mine = signature(getattr(tl.nn, name).__init__).parameters
    other = {key: value for key, value in signature(theirs.__init__).parameters.items()
             if key not in ("min_value", "max_value")}          # deprecated for long
    assert list(mine) == list(other)
    defaults = [[getattr(value.default, "__name__", value.default) for value in each.values()]
                for each in (mine, other)]
    assert defaults[0] == defaults[1]
    assert [value.kind for value in mine.values()] == [value.kind for value in other.values()]
