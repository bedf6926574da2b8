"""Modules without weights are functions of `nn.functional`: with the same options, the same values.

What is right for the functions themselves, the tests of each operation say.
"""

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib import nn
from tensorlib.nn import functional as F


def real(*shape, low=-2.0, high=2.0):
    return tl.tensor(np.random.default_rng([5, *shape]).uniform(low, high, shape))


def whole(high, *shape):
    return tl.tensor(np.random.default_rng([high, *shape]).integers(0, high, shape))


def signs(*shape):
    return tl.where(real(*shape) > 0, 1.0, -1.0)


X, Y, WEIGHTS = real(4, 6), real(4, 6).flip(0), real(6, low=0.5)
POSITIVE, CLASSES = X.abs() + 0.1, tl.tensor([2, 0, 5, 2])
SEQUENCE, IMAGE, VOLUME = real(2, 4, 9), real(2, 4, 8, 7), real(2, 4, 6, 5, 7)
CUBES = {1: SEQUENCE, 2: IMAGE, 3: VOLUME}
EVEN = {1: SEQUENCE[..., :8], 2: IMAGE[..., :6], 3: VOLUME[..., :4, :6]}
PLACES = {n: getattr(F, f"max_pool{n}d")(x, 2, return_indices=True) for n, x in EVEN.items()}
TRIPLE = X, Y, real(4, 6).roll(1, 1)
CTC = (F.log_softmax(real(9, 2, 5), 2), whole(4, 2, 3) + 1, tl.tensor([9, 7]), tl.tensor([3, 2]))
RARE = CTC[0], tl.tensor([[1, 1, 1], [2, 0, 4]]), tl.tensor([3, 9]), tl.tensor([3, 3])
LABELS = tl.tensor([[3, 0, -1, 1, 2, 4], [1, -1, 0, 2, 3, 5], [0, 1, 2, -1, 4, 5],
                    [5, 4, 3, 2, -1, 0]])


def farthest(a, b):
    return (a - b).abs().amax(-1)


# The module, the function, what both are called with, what both must be told, other options.
PLAIN = [
    *[(name, name.lower(), (X,), (), {}) for name in (
        "LogSigmoid", "Softsign", "Tanhshrink", "SELU", "Hardsigmoid", "Hardswish", "ReLU6",
        "SiLU", "Mish", "ReLU")],
    ("Threshold", "threshold", (X,), (0.3, -7.0), {}),
    ("Hardtanh", "hardtanh", (X,), (), {"min_val": -0.5, "max_val": 1.5}),
    ("ELU", "elu", (X,), (), {"alpha": 0.5}), ("CELU", "celu", (X,), (), {"alpha": 0.5}),
    ("LeakyReLU", "leaky_relu", (X,), (), {"negative_slope": 0.2}),
    ("Softplus", "softplus", (X,), (), {"beta": 2.0, "threshold": 1.0}),
    ("Hardshrink", "hardshrink", (X,), (), {"lambd": 0.7}),
    ("Softshrink", "softshrink", (X,), (), {"lambd": 0.7}),
    ("GELU", "gelu", (X,), (), {"approximate": "tanh"}), ("GLU", "glu", (X,), (), {"dim": 0}),
    *[(name, function, (X,), (dim,), {}) for dim in (0, 1) for name, function in (
        ("Softmax", "softmax"), ("Softmin", "softmin"), ("LogSoftmax", "log_softmax"))],
    # windows
    *[(f"MaxPool{n}d", f"max_pool{n}d", (x,), (3,), {
        "stride": 1, "padding": 1, "dilation": 2, "return_indices": True})
      for n, x in {1: SEQUENCE, 2: IMAGE, 3: VOLUME[..., :6]}.items()],
    *[(f"MaxPool{n}d", f"max_pool{n}d", (x,), (3,), {"stride": 2, "ceil_mode": True})
      for n, x in {1: SEQUENCE[..., :8], 2: IMAGE, 3: VOLUME}.items()],
    *[(f"MaxUnpool{n}d", f"max_unpool{n}d", PLACES[n], (2,), {}) for n in CUBES],
    *[(f"MaxUnpool{n}d", f"max_unpool{n}d", (found[..., :2], places[..., :2]), (2,),
       {"stride": 9, "padding": 1}) for n, (found, places) in PLACES.items()],
    *[(f"AvgPool{n}d", f"avg_pool{n}d", (x,), (3,), {
        "stride": 2, "padding": 1, "ceil_mode": True, "count_include_pad": False})
      for n, x in {1: SEQUENCE[..., :8], 2: IMAGE, 3: VOLUME}.items()],
    *[(f"AvgPool{n}d", f"avg_pool{n}d", (CUBES[n],), (2,), {"divisor_override": 3})
      for n in (2, 3)],
    *[(f"LPPool{n}d", f"lp_pool{n}d", (x.abs(),), (3.0, 3), {"stride": 2, "ceil_mode": True})
      for n, x in {1: SEQUENCE[..., :8], 2: IMAGE, 3: VOLUME}.items()],
    *[(f"AdaptiveAvgPool{n}d", f"adaptive_avg_pool{n}d", (x,), (3,), {}) for n, x in CUBES.items()],
    *[(f"AdaptiveMaxPool{n}d", f"adaptive_max_pool{n}d", (x,), (3,), {"return_indices": True})
      for n, x in CUBES.items()],
    *[(f"FractionalMaxPool{n}d", f"fractional_max_pool{n}d", (CUBES[n],), (2,), {
        **size, "return_indices": True, "_random_samples": real(2, 4, n, low=0.0, high=1.0)})
      for n in (2, 3) for size in ({"output_size": (5, 4, 5)[:n]}, {"output_ratio": 0.5})],
    ("Fold", "fold", (real(2, 12, 12),), ((5, 6), (2, 3)),
     {"dilation": (2, 1), "padding": (1, 0), "stride": (2, 1)}),
    ("Unfold", "unfold", (IMAGE,), (3,), {"dilation": 2, "padding": 1, "stride": 2}),
    # images and channels
    ("PixelShuffle", "pixel_shuffle", (IMAGE,), (2,), {}),
    ("PixelUnshuffle", "pixel_unshuffle", (IMAGE[..., :6],), (2,), {}),
    ("ChannelShuffle", "channel_shuffle", (IMAGE,), (2,), {}),
    ("LocalResponseNorm", "local_response_norm", (IMAGE,), (3,),
     {"alpha": 0.1, "beta": 0.5, "k": 2.0}),
    ("CrossMapLRN2d", "local_response_norm", (IMAGE,), (3,), {"alpha": 0.1, "beta": 0.5, "k": 2}),
    ("Upsample", "interpolate", (IMAGE,), (), {
        "scale_factor": (2, 1.7), "mode": "bicubic", "align_corners": True}),
    ("Upsample", "interpolate", (IMAGE,), (), {
        "scale_factor": 1.7, "mode": "bilinear", "recompute_scale_factor": True}),
    ("PairwiseDistance", "pairwise_distance", (X, Y), (), {"p": 3.0, "eps": 0.1, "keepdim": True}),
    ("CosineSimilarity", "cosine_similarity", (X, Y), (), {"dim": 0, "eps": 9.0}),
]
LOSSES = [
    ("L1Loss", "l1_loss", (X, Y), (), {}), ("MSELoss", "mse_loss", (X, Y), (), {}),
    ("SmoothL1Loss", "smooth_l1_loss", (X, Y), (), {"beta": 0.3}),
    ("HuberLoss", "huber_loss", (X, Y), (), {"delta": 0.3}),
    ("PoissonNLLLoss", "poisson_nll_loss", (POSITIVE, 2 + Y), (),
     {"log_input": False, "full": True, "eps": 0.1}),
    ("GaussianNLLLoss", "gaussian_nll_loss", (X, Y, POSITIVE), (), {"full": True, "eps": 0.5}),
    ("BCELoss", "binary_cross_entropy", (POSITIVE / 3, Y.sigmoid()), (), {"weight": WEIGHTS}),
    ("BCEWithLogitsLoss", "binary_cross_entropy_with_logits", (X, Y.sigmoid()), (),
     {"weight": WEIGHTS, "pos_weight": WEIGHTS.flip(0)}),
    ("KLDivLoss", "kl_div", (X, Y.abs()), (), {"log_target": True}),
    ("NLLLoss", "nll_loss", (X, CLASSES), (),
     {"weight": WEIGHTS, "ignore_index": 0}),
    ("CrossEntropyLoss", "cross_entropy", (X, CLASSES), (),
     {"weight": WEIGHTS, "ignore_index": 0, "label_smoothing": 0.2}),
    ("CTCLoss", "ctc_loss", CTC, (), {"blank": 4}), ("CTCLoss", "ctc_loss", RARE, (), {
        "zero_infinity": True}),
    ("HingeEmbeddingLoss", "hinge_embedding_loss", (X, signs(4, 6)), (), {"margin": 0.3}),
    ("CosineEmbeddingLoss", "cosine_embedding_loss", (X, Y, -tl.ones(4)), (), {"margin": -0.7}),
    ("MarginRankingLoss", "margin_ranking_loss", (X, Y, signs(4, 6)), (), {"margin": 0.3}),
    ("SoftMarginLoss", "soft_margin_loss", (X, signs(4, 6)), (), {}),
    ("MultiLabelMarginLoss", "multilabel_margin_loss", (X, LABELS), (), {}),
    ("MultiLabelSoftMarginLoss", "multilabel_soft_margin_loss", (X, Y.sigmoid()), (),
     {"weight": WEIGHTS}),
    ("MultiMarginLoss", "multi_margin_loss", (X, CLASSES), (),
     {"p": 2, "margin": 0.3, "weight": WEIGHTS}),
    ("TripletMarginLoss", "triplet_margin_loss", TRIPLE, (),
     {"margin": 2.0, "p": 1.0, "eps": 0.3, "swap": True}),
    ("TripletMarginWithDistanceLoss", "triplet_margin_with_distance_loss", TRIPLE, (),
     {"distance_function": farthest, "margin": 2.0, "swap": True}),
]


def named(cases):
    return ["-".join([name, *options]) for name, _, _, _, options in cases]


def same(found, wanted):
    if isinstance(wanted, tuple):
        return isinstance(found, tuple) and all(map(same, found, wanted))
    return type(found) is tl.Tensor and found.shape == wanted.shape and bool(
        ((found == wanted) | (found != found) & (wanted != wanted)).all())


def assert_alike(name, function, inputs, told, options):
    """The module gives what the function gives, and without any one option that is another value.
    """
    function = getattr(F, function)
    tl.manual_seed(0)
    wanted = function(*inputs, *told, **options)
    assert same(getattr(nn, name)(*told, **options)(*inputs), wanted)
    for left_out in options:
        rest = {option: value for option, value in options.items() if option != left_out}
        try:
            assert not same(function(*inputs, *told, **rest), wanted), f"{left_out} says nothing"
        except (ValueError, RuntimeError):
            pass
    return wanted


@each("name, function, inputs, told, options", PLAIN, ids=named(PLAIN))
def test_a_module_is_its_function(name, function, inputs, told, options):
    assert_alike(name, function, inputs, told, options)


@each("name, function, inputs, told, options", LOSSES, ids=named(LOSSES))
def test_a_loss_is_its_function_in_each_reduction(name, function, inputs, told, options):
    found = {
        reduction: assert_alike(name, function, inputs, told, {**options, "reduction": reduction})
        for reduction in ("none", "sum")}
    assert same(getattr(nn, name)(*told, **options)(*inputs),
                getattr(F, function)(*inputs, *told, **options))
    assert found["none"].ndim and found["sum"].item() == pytest.approx(found["none"].sum().item())


@each("name, told", [
    (name, (tl.ones(6),) if "weight" in options and name != "MultiMarginLoss" else ())
    for name, _, _, _, options in LOSSES if name not in (
        "HuberLoss", "GaussianNLLLoss", "CTCLoss", "TripletMarginWithDistanceLoss")])
@each("older, reduction", [
    ((None, False), "none"), ((False, False), "none"), ((True, False), "none"),
    ((False, None), "sum"), ((False, True), "sum"), ((True, None), "mean"), ((None, True), "mean"),
    ((True, True), "mean"), ((None, None), "sum")], ids=str)
def test_reductions_in_the_words_of_older_programs(name, told, older, reduction):
    """They go before the newer word."""
    words = dict(zip(("size_average", "reduce"), older))
    if older == (None, None):
        loss = getattr(nn, name)(*told, **words, reduction="sum")
    else:
        with pytest.warns(UserWarning, match=f"please use reduction='{reduction}' instead"):
            loss = getattr(nn, name)(*told, **words, reduction="none")
    assert loss.reduction == reduction


@pytest.mark.parametrize("name, names", [
    ("BCELoss", ["weight"]), ("BCEWithLogitsLoss", ["weight", "pos_weight"]),
    ("NLLLoss", ["weight"]), ("CrossEntropyLoss", ["weight"]), ("MultiMarginLoss", ["weight"]),
    ("MultiLabelSoftMarginLoss", ["weight"])])
def test_weights_of_losses_are_buffers(name, names):
    given = {name: tl.rand(3) for name in names}
    loss = getattr(nn, name)(**given)
    assert all(loss.state_dict()[name].equal(given[name]) for name in names)
    assert list(loss.state_dict()) == names and not list(loss.parameters())
    assert loss.double().weight.dtype == tl.float64


@pytest.mark.parametrize("name, function", [
    ("Dropout", "dropout"), ("Dropout1d", "dropout1d"), ("Dropout2d", "dropout2d"),
    ("Dropout3d", "dropout3d"), ("AlphaDropout", "alpha_dropout"),
    ("FeatureAlphaDropout", "feature_alpha_dropout"), ("RReLU", "rrelu")])
def test_what_is_drawn_in_training_is_not_in_use(name, function):
    x = {"Dropout1d": SEQUENCE, "Dropout3d": VOLUME}.get(name, IMAGE)
    options = {"lower": 0.2, "upper": 0.9} if name == "RReLU" else {"p": 0.3}
    layer, found = getattr(nn, name)(**options), {}
    for training in (True, False):
        tl.manual_seed(3)
        wanted = getattr(F, function)(x, **options, training=training)
        tl.manual_seed(3)
        found[training] = layer.train(training)(x)
        assert same(found[training], wanted)
    tl.manual_seed(3)
    usual = getattr(F, function)(x, training=True)
    assert not same(found[True], found[False]) and not same(found[True], usual)


@each("name, options", [
    (name, {}) for name in ("ReLU ReLU6 SELU SiLU Mish Hardsigmoid Hardswish Hardtanh ELU CELU "
         "LeakyReLU RReLU Dropout").split()] + [
    ("Threshold", {"threshold": 0.3, "value": -7.0}), ("AlphaDropout", {}),
    ("FeatureAlphaDropout", {}), ("Dropout1d", {}), ("Dropout2d", {}), ("Dropout3d", {})])
def test_in_place_the_input_is_written_over(name, options):
    x = {"Dropout1d": SEQUENCE, "Dropout3d": VOLUME}.get(name, IMAGE)
    for inplace in (False, True):
        own = x.clone()
        found = getattr(nn, name)(**options, inplace=inplace)(own)
        assert not same(found, x)
        # as in PyTorch, what is dropped for alpha is never written in place
        written = inplace and "Alpha" not in name
        assert same(own, found if written else x) and (found is own) == written


def test_numbers_are_put_back_into_the_size_that_is_said():
    for n, (found, places) in PLACES.items():
        size = tuple(2 * length + 1 for length in found.shape[2:])
        up = getattr(nn, f"MaxUnpool{n}d")(2)
        wanted = getattr(F, f"max_unpool{n}d")(found, places, 2, output_size=size)
        assert wanted.shape[2:] == size and same(up(found, places, output_size=size), wanted)
        assert (up.kernel_size, up.stride, up.padding) == ((2,) * n, (2,) * n, (0,) * n)


def test_upsampling_by_its_older_names():
    for options in ({"size": 5}, {"scale_factor": 1.7}, {"scale_factor": (2, 3)}):
        assert same(nn.UpsamplingNearest2d(**options)(IMAGE), F.interpolate(IMAGE, **options))
        assert same(nn.UpsamplingBilinear2d(**options)(IMAGE), F.interpolate(
            IMAGE, **options, mode="bilinear", align_corners=True))
    assert nn.Upsample(scale_factor=(2, 3)).scale_factor == (2.0, 3.0)
    assert all(type(factor) is float for factor in nn.Upsample(scale_factor=(2, 3)).scale_factor)


def test_a_softmax_of_images_goes_over_their_channels():
    assert same(nn.Softmax2d()(IMAGE), IMAGE.softmax(1))
    assert same(nn.Softmax2d()(IMAGE[0]), IMAGE[0].softmax(0))


@each("n", CUBES)
@each("kind, mode", [
    ("Circular", "circular"), ("Reflection", "reflect"), ("Replication", "replicate"),
    ("Zero", "constant"), ("Constant", "constant")])
def test_margins(kind, mode, n):
    value = {"value": 0.5} if kind == "Constant" else {}
    margins = (1, 2, 0, 3, 2, 1)[:2 * n]
    layer = getattr(nn, f"{kind}Pad{n}d")
    assert same(layer(margins, **value)(CUBES[n]), F.pad(CUBES[n], margins, mode, **value))
    assert layer(1, **value).padding == (1,) * 2 * n
