"""`nn.functional` beside PyTorch's: values, gradients, dtypes and the types of errors."""

import warnings

import numpy as np
import pytest
from cases import each
from peer import disagreement, run, tensor

import tensorlib as tl
import tensorlib.nn.functional
from tensorlib.testing import assert_close

torch = pytest.importorskip("torch")


def real(*shape, seed=0, low=-2.0, high=2.0):
    return np.random.default_rng([seed, *shape]).uniform(low, high, shape)


def assert_agree(call, *arrays, dtypes=("float32",), differentiable=True):
    """Both libraries agree in the results of a call of F and tensors, and in its gradients."""
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


def assert_both_refuse(call, *arrays):
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


@each("name", ACTIVATIONS)
def test_activations(name):
    finite = KINKS[np.isfinite(KINKS)]
    # where PyTorch's loops give NaN for infinities, on some processors (gelu) or on all
    special = KINKS if name not in ("gelu", "glu", "tanhshrink", "softsign", "mish") else finite
    assert_agree(ACTIVATIONS[name], special, dtypes=("float32", "float64", "bfloat16"),
                 differentiable=False)
    assert_agree(ACTIVATIONS[name], finite[:14])


def test_prelu():
    assert_agree(lambda F, x, w: F.prelu(x, w), real(2, 3, 2), real(3))
    assert_agree(lambda F, x, w: F.prelu(x, w), real(4), real(1))
    assert_both_refuse(lambda F, x, w: F.prelu(x, w), real(2, 3), real(2))


def test_activations_refuse_what_pytorch_refuses():
    assert_both_refuse(lambda F, x: F.gelu(x, approximate="fast"), real(3))
    assert_both_refuse(lambda F, x: F.gelu(x), np.arange(3))
    assert_both_refuse(lambda F, x: F.softshrink(x, -1.0), real(3))
    assert_both_refuse(lambda F, x: F.glu(x), real(3))


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


@each("name", NORMS)
def test_norms(name):
    call, *shapes = NORMS[name]
    assert_agree(call, *(real(*shape, seed=i) for i, shape in enumerate(shapes)),
                 dtypes=("float32", "float64", "bfloat16"))


@each("training", [True, False])
@each("shape", [(4, 3), (4, 3, 5)], ids=str)
def test_running_statistics(training, shape):
    def call(F, x, mean, var, w, b):
        mean, var = mean * 1, var * 1
        out = F.batch_norm(x, mean, var, w, b, training, 0.3)
        return out, mean.detach(), var.detach()
    assert_agree(call, real(*shape), real(3), real(3, low=0.5), real(3, seed=1), real(3, seed=2),
                 differentiable=False)


def test_norms_refuse_what_pytorch_refuses():
    assert_both_refuse(lambda F, x: F.layer_norm(x, (2,)), real(2, 3))
    assert_both_refuse(lambda F, x, w: F.layer_norm(x, (3,), w), real(2, 3), real(2))
    assert_both_refuse(lambda F, x: F.batch_norm(x, None, None), real(2, 3))
    assert_both_refuse(lambda F, x: F.batch_norm(x, None, None, training=True), real(1, 3))
    assert_both_refuse(lambda F, x, w: F.batch_norm(x, None, None, w, training=True), real(2, 3),
                       real(2))


# ---- losses --------------------------------------------------------------------------------------

REDUCTIONS = ("mean", "sum", "none")
PAIR_LOSSES = {
    "mse_loss": {}, "l1_loss": {}, "smooth_l1_loss": {"beta": 0.7}, "huber_loss": {"delta": 0.7},
    "binary_cross_entropy_with_logits": {}, "kl_div": {"log_target": True},
    "poisson_nll_loss": {"full": True}, "soft_margin_loss": {}, "multilabel_soft_margin_loss": {},
    "hinge_embedding_loss": {"margin": 0.5},
}


@each("name", PAIR_LOSSES)
@each("reduction", REDUCTIONS)
def test_losses_of_pairs(name, reduction):
    def call(F, x, t):
        t = t.detach() if "margin" in name else t
        return getattr(F, name)(x, t, reduction=reduction, **PAIR_LOSSES[name])
    signs = np.sign(real(3, 4, seed=1))
    wanted = signs if "hinge" in name or "soft" in name else real(3, 4, seed=1)
    assert_agree(call, real(3, 4),
                 abs(wanted) if "multilabel" in name or "poisson" in name else wanted)


@each("name", ["hinge_embedding_loss", "margin_ranking_loss", "soft_margin_loss",
               "cosine_embedding_loss"])
def test_losses_of_signs_with_targets_that_are_none(name):
    """0 stands for "no label" in many programs; what comes of it is PyTorch's."""
    x, signs = real(5, 3), np.array([1.0, -1.0, 0.0, 2.0, 0.5])
    if "pair" in name or "ranking" in name or "cosine" in name:
        one = () if "cosine" in name else (0,)
        assert_agree(lambda F, x, y, t: getattr(F, name)(x, y, t.detach(), reduction="none"),
                     x[(slice(None), *one)], real(5, 3, seed=1)[(slice(None), *one)], signs)
    else:
        assert_agree(lambda F, x, t: getattr(F, name)(x, t.detach(), reduction="none"), x[:, 0],
                     signs)


def test_losses_of_probabilities():
    p, t, w = real(3, 4, low=0.1, high=0.9), real(3, 4, seed=1, low=0, high=1), real(4, low=0.5)
    assert_agree(lambda F, p, t: F.binary_cross_entropy(p, t), p, t)
    assert_agree(lambda F, p, t, w: F.binary_cross_entropy(p, t, w.detach(), reduction="sum"), p, t,
                 w)
    certain = np.array([0.0, 1.0, 0.0, 1.0])
    assert_agree(lambda F, p, t: F.binary_cross_entropy(p, t), certain, certain[::-1].copy(),
                 differentiable=False)
    assert_agree(lambda F, x, t, w: F.binary_cross_entropy_with_logits(
        x, t, w.detach(), pos_weight=w.detach() * 2), real(3, 4), t, w)
    assert_agree(lambda F, x, t: F.kl_div(x, t, reduction="batchmean"), real(3, 4), t)
    assert_agree(lambda F, x, t: F.kl_div(x, t, reduction="none"), real(3),
                 np.array([0.0, 0.5, 1.0]), differentiable=False)
    assert_agree(lambda F, x, t, v: F.gaussian_nll_loss(x, t, v, full=True), real(3, 4), t,
                 w[:3] + 2)
    assert_both_refuse(lambda F, p, t: F.binary_cross_entropy(p, t), real(3, low=2), real(3))
    assert_both_refuse(lambda F, x, t: F.mse_loss(x, t, reduction="most"), real(3), real(3))
    assert_both_refuse(lambda F, x, t: F.binary_cross_entropy_with_logits(x, t), real(3), real(2))


CLASSES = np.array([1, 3, 0, 3, 2])
IMAGE = np.array([[[0, 2], [1, -100]], [[2, 2], [1, 0]]])


@each("reduction", REDUCTIONS)
@each("name", ["cross_entropy", "nll_loss"])
def test_losses_of_classes(name, reduction):
    def of(F, x, t, w=None, **options):
        return getattr(F, name)(x, t, w, reduction=reduction, **options)
    assert_agree(of, real(5, 4), CLASSES)
    assert_agree(lambda F, x, t, w: of(F, x, t, w.detach(), ignore_index=3), real(5, 4), CLASSES,
                 real(4, low=0.5))
    assert_agree(of, real(2, 3, 2, 2), IMAGE)
    assert_agree(of, real(4), np.array(2))
    assert_agree(of, real(0, 4), np.zeros(0, np.int64), differentiable=False)
    assert_agree(lambda F, x, t: of(F, x, t, ignore_index=1), real(2, 3), np.array([1, 1]),
                 differentiable=False)


@each("reduction", REDUCTIONS)
def test_cross_entropy_smoothed_and_of_probabilities(reduction):
    def of(F, x, t, w=None):
        return F.cross_entropy(x, t, w, reduction=reduction, label_smoothing=0.2)
    assert_agree(of, real(5, 4), CLASSES)
    assert_agree(of, real(2, 3, 2, 2), IMAGE)
    assert_agree(lambda F, x, t, w: of(F, x, t, w.detach()), real(5, 4), CLASSES, real(4, low=0.5))
    assert_agree(lambda F, x, t, w: of(F, x, t, w.detach()), real(2, 3, 2), real(2, 3, 2, low=0),
                 real(3, low=0.5))
    assert_agree(of, real(4), real(4, low=0))


def test_losses_of_classes_refuse_what_pytorch_refuses():
    for name in ("cross_entropy", "nll_loss"):
        for target in (np.array([0, 9]), np.array([0, -1]), np.array([0]), np.array([[0, 1]])):
            assert_both_refuse(lambda F, x, t, name=name: getattr(F, name)(x, t), real(2, 3),
                               target)
    x = tl.tensor([[1000.0, 0.0], [-1000.0, 0.0]], requires_grad=True)
    tl.nn.functional.cross_entropy(x, tl.tensor([0, 0]), reduction="sum").backward()
    assert x.grad.tolist() == [[0.0, 0.0], [-1.0, 1.0]]


# ---- products, tables, dropout -------------------------------------------------------------------

def test_linear_and_bilinear():
    for x in (real(2, 3), real(3), real(2, 4, 3), real(0, 3)):
        assert_agree(lambda F, x, w, b: F.linear(x, w, b), x, real(5, 3), real(5),
                     dtypes=("float32", "float64", "bfloat16"))
        assert_agree(lambda F, x, w: F.linear(x, w), x, real(5, 3))
    assert_agree(lambda F, a, b, w, c: F.bilinear(a, b, w, c), real(4, 3), real(4, 2),
                 real(5, 3, 2), real(5))
    assert_both_refuse(lambda F, x, w: F.linear(x, w), real(2, 3), real(5, 2))
    assert_both_refuse(lambda F, x, w, b: F.linear(x, w, b), real(2, 3), real(5, 3), real(4))


def test_embedding():
    table = real(6, 3)
    for places in (np.array([0, 5, 0]), np.array([[1, 2], [2, 2]]), np.array(3),
                   np.zeros((0, 2), int)):
        assert_agree(lambda F, i, w: F.embedding(i, w), places, table)
        assert_agree(lambda F, i, w: F.embedding(i, w, padding_idx=2), places, table)
        assert_agree(lambda F, i, w: F.embedding(i, w, padding_idx=-4, scale_grad_by_freq=True),
                     places, table)
    assert_agree(lambda F, i, w: F.embedding(i, w * 1, max_norm=1.5), np.array([0, 1, 0]), table,
                 differentiable=False)
    for places in (np.array([6]), np.array([-1]), np.array([0.0])):
        assert_both_refuse(lambda F, i, w: F.embedding(i, w), places, table)
    assert_both_refuse(lambda F, i, w: F.embedding(i, w, padding_idx=7), np.array([0]), table)


@each("name, shape, lead", [
    ("dropout", (50, 40), 2), ("alpha_dropout", (50, 40), 2), ("dropout1d", (9, 30, 4), 2),
    ("dropout1d", (90, 4), 1), ("dropout2d", (9, 30, 2, 2), 2), ("dropout3d", (9, 30, 2, 1, 2), 2),
    ("feature_alpha_dropout", (9, 30, 4), 2)])
def test_dropout_drops_what_it_should(name, shape, lead):
    """Elements, or whole channels, as often as asked for; the values beside PyTorch's."""
    x, found = real(*shape, low=0.5), {}
    for L in (tl, torch):
        L.manual_seed(0)
        leaf = L.tensor(x, requires_grad=True)
        y = getattr(L.nn.functional, name)(leaf, 0.3, training=True)
        y.sum().backward()
        factor, y = leaf.grad.numpy(), y.detach().numpy()
        lost = (factor == 0).reshape(*shape[:lead], -1)
        assert (lost.all(-1) == lost.any(-1)).all() and 0.2 < lost.mean() < 0.4
        found[L] = np.unique(factor.round(6)), np.unique((y - factor * x).round(6))
    for mine, theirs in zip(found[tl], found[torch]):
        np.testing.assert_allclose(mine, theirs, atol=1e-5)
    same = getattr(tl.nn.functional, name)(tl.tensor(x), 0.3, training=False)
    assert (same.numpy() == x).all()


def test_gumbel_softmax_is_a_distribution():
    logits = tl.tensor([[0.0, 2.0, 1.0]]).expand(2000, 3).clone().requires_grad_()
    hard = tl.nn.functional.gumbel_softmax(logits, hard=True)
    assert sorted(set(hard.detach().numpy().ravel().round(5))) == [0.0, 1.0]
    share = hard.detach().mean(0)
    assert_close(share, logits[0].detach().softmax(0), rtol=0.2, atol=0.03)
    (hard * tl.arange(3.0)).sum().backward()
    assert (logits.grad != 0).all()


# ---- margins and distances -----------------------------------------------------------------------

def test_distances():
    a, b = real(3, 4), real(3, 4, seed=1)
    assert_agree(lambda F, a, b: F.cosine_similarity(a, b), a, b)
    assert_agree(lambda F, a, b: F.cosine_similarity(a, b, -1), np.vstack([a[:1] * 0, a[1:]]), b,
                 differentiable=False)
    assert_agree(lambda F, a, b: F.pairwise_distance(a, b, 1.0, keepdim=True), a, b)
    assert_agree(lambda F, a: F.normalize(a), a)
    assert_agree(lambda F, a: F.normalize(a, 1.0, 0), a)


@each("reduction", REDUCTIONS)
def test_losses_of_margins(reduction):
    a, b, c = (real(3, 4, seed=i) for i in range(3))
    t, signs = np.array([1, 3, 0]), np.array([1.0, -1.0, 1.0])
    how = {"reduction": reduction}
    assert_agree(lambda F, a, b, t: F.margin_ranking_loss(a, b, t.detach(), 0.2, **how), a, b,
                 np.sign(c))
    assert_agree(lambda F, a, b, t: F.cosine_embedding_loss(a, b, t.detach(), 0.1, **how), a, b,
                 signs)
    assert_agree(lambda F, a, b, c: F.triplet_margin_loss(a, b, c, swap=True, **how), a, b, c)
    assert_agree(lambda F, a, b, c: F.triplet_margin_with_distance_loss(a, b, c, **how), a, b, c)
    assert_agree(lambda F, a, t: F.multi_margin_loss(a, t, 2, 0.8, **how), a, t)
    assert_agree(lambda F, a, t, w: F.multi_margin_loss(a, t, weight=w.detach(), **how), a, t,
                 real(4, low=0.5))
    assert_agree(lambda F, a, t: F.multilabel_margin_loss(a, t, **how), a,
                 np.array([[1, 3, -1, 0], [2, -1, 0, 0], [-1, 0, 0, 0]]))


# ---- groups, tables, sequences -------------------------------------------------------------------

def test_norms_of_groups():
    for shape in ((2, 4), (2, 4, 3), (2, 4, 3, 2)):
        assert_agree(lambda F, x, w, b: F.group_norm(x, 2, w, b), real(*shape), real(4),
                     real(4, seed=1))
    assert_agree(lambda F, x: F.group_norm(x, 4, eps=0.1), real(2, 4, 5))
    assert_agree(lambda F, x, w, b: F.instance_norm(x, None, None, w, b), real(2, 4, 3), real(4),
                 real(4))
    for size in (1, 2, 5):
        assert_agree(lambda F, x, n=size: F.local_response_norm(x, n, 0.3), real(2, 4, 3, 2))

    def moved(F, x, mean, var):
        mean, var = mean * 1, var * 1
        return F.instance_norm(x, mean, var, use_input_stats=True), mean.detach(), var.detach()
    assert_agree(moved, real(3, 2, 4), real(2), real(2, low=0.5), differentiable=False)


def test_tables():
    assert_agree(lambda F, i: F.one_hot(i), np.array([[1, 0], [3, 2]]), differentiable=False)
    assert_agree(lambda F, i: F.one_hot(i, 6), np.array(2), differentiable=False)
    for i, n in ((np.array([1, -1]), 3), (np.array([3]), 3), (np.zeros(0, int), -1)):
        assert_both_refuse(lambda F, i, n=n: F.one_hot(i, n), i)
    table, i, starts = real(6, 3), np.array([0, 5, 0, 2, 2]), np.array([0, 2, 2])
    for mode in ("mean", "sum", "max"):
        assert_agree(lambda F, i, w, m=mode: F.embedding_bag(i, w, mode=m), i[:4].reshape(2, 2),
                     table)
        for options in ({}, {"padding_idx": 2, "include_last_offset": True}):
            assert_agree(lambda F, i, w, o, m=mode, options=options: F.embedding_bag(
                i, w, o, mode=m, **options), i, table, starts + [0, 0, 3 * bool(options)])
    assert_agree(lambda F, i, w, o, f: F.embedding_bag(i, w, o, mode="sum", per_sample_weights=f),
                 i, table, starts, real(5))


@each("reduction", REDUCTIONS)
def test_ctc_loss(reduction):
    logits, labels = real(6, 3, 4), np.array([[1, 2, 2], [3, 1, 1], [2, 1, 1]])

    def of(F, x, t, inputs, sizes):
        return F.ctc_loss(x.log_softmax(2), t, inputs, sizes, reduction=reduction)
    assert_agree(of, logits, labels, np.array([6, 5, 4]), np.array([3, 2, 0]))
    assert_agree(of, logits, np.array([1, 2, 2, 3, 1]), np.array([6, 5, 4]), np.array([3, 2, 0]))
    assert_agree(lambda F, x,
                 t: F.ctc_loss(x.log_softmax(2), t, (6, 5, 2), (3, 2, 3), zero_infinity=True,
                                            reduction=reduction), logits, labels)
    assert_agree(lambda F, x, t: F.ctc_loss(x.log_softmax(1), t, (6,), (3,), reduction=reduction),
                 logits[:, 0], labels[0], differentiable=False)


# ---- convolutions --------------------------------------------------------------------------------

CONVOLUTIONS = [
    ("conv1d", (2, 3, 9), (4, 3, 3), {"stride": 2, "padding": 1}),
    ("conv1d", (3, 9), (4, 3, 3), {"dilation": 2, "padding": "same"}),
    ("conv1d", (2, 3, 9), (4, 3, 4), {"padding": "same"}),
    ("conv2d", (2, 3, 6, 7), (4, 3, 3, 3), {"padding": 1}),
    ("conv2d", (2, 3, 6, 7), (4, 3, 3, 2), {"padding": (2, 3), "stride": (2, 3)}),
    ("conv2d", (2, 4, 6, 7), (4, 2, 3, 3), {"groups": 2, "dilation": 2, "padding": 1}),
    ("conv2d", (2, 4, 6, 7), (8, 1, 5, 5), {"groups": 4, "padding": "same"}),
    ("conv2d", (2, 3, 5, 5), (4, 3, 1, 1), {}), ("conv2d", (3, 5, 5), (4, 3, 5, 5), {}),
    ("conv2d", (2, 3, 2, 2), (4, 3, 7, 7), {"padding": 3}),
    ("conv2d", (0, 3, 5, 5), (4, 3, 3, 3), {}),
    ("conv3d", (2, 2, 4, 3, 5), (3, 2, 2, 3, 3), {"padding": 1, "stride": (1, 2, 1)}),
    ("conv_transpose1d", (2, 3, 5), (3, 4, 3), {"stride": 2, "padding": 1, "output_padding": 1}),
    ("conv_transpose2d", (2, 4, 3, 4), (4, 2, 3, 2), {"groups": 2, "dilation": 2}),
    ("conv_transpose2d", (2, 4, 3, 4), (4, 2, 3, 3), {"stride": (2, 1), "padding": 1}),
    ("conv_transpose3d", (1, 2, 3, 2, 2), (2, 3, 2, 2, 3), {"stride": 2}),
]


@each("name, shape, weight, options", CONVOLUTIONS, ids=repr)
def test_convolutions(name, shape, weight, options):
    outs = weight[1] * options.get("groups", 1) if "transpose" in name else weight[0]
    assert_agree(lambda F, x, w, b: getattr(F, name)(x, w, b, **options), real(*shape),
                 real(*weight),
                 real(outs), dtypes=("float32", "float64"))


def test_convolutions_refuse_what_pytorch_refuses():
    x, w = real(1, 2, 4, 4), real(3, 2, 3, 3)
    assert_both_refuse(lambda F, x, w: F.conv2d(x, w), real(1, 3, 4, 4), w)
    assert_both_refuse(lambda F, x, w: F.conv2d(x, w, stride=0), x, w)
    assert_both_refuse(lambda F, x, w: F.conv2d(x, w, padding=-1), x, w)
    assert_both_refuse(lambda F, x, w: F.conv2d(x, w, padding="same", stride=2), x, w)
    assert_both_refuse(lambda F, x, w: F.conv2d(x, w), real(1, 2, 2, 2), w)
    assert_both_refuse(lambda F, x, w: F.conv_transpose2d(x, w, output_padding=1), x,
                       real(2, 3, 3, 3))


# ---- pools ---------------------------------------------------------------------------------------

POOLS = [
    ("max_pool1d", (2, 3, 9), (2,), {}), ("max_pool1d", (3, 9), (3,), {"stride": 2, "padding": 1}),
    ("max_pool2d", (2, 3, 6, 7), (2,), {"ceil_mode": True}),
    ("max_pool2d", (2, 3, 6, 300), ((2, 3),), {"stride": (1, 2), "padding": (1, 1)}),
    ("max_pool2d", (2, 3, 9, 8), (3,), {"dilation": 2, "padding": 1, "stride": 1}),
    ("max_pool3d", (1, 2, 4, 5, 3), ((2, 2, 3),), {"stride": 1, "padding": 1}),
    ("avg_pool1d", (2, 3, 9), (4,), {"padding": 2, "ceil_mode": True, "stride": 3}),
    ("avg_pool2d", (2, 3, 6, 7), (3,), {"padding": 1, "count_include_pad": False}),
    ("avg_pool2d", (3, 6, 7), (3,), {"padding": 1, "ceil_mode": True, "stride": 2}),
    ("avg_pool2d", (2, 3, 6, 7), ((2, 3),), {"divisor_override": 5}),
    ("avg_pool3d", (1, 2, 4, 5, 3), (2,), {"padding": 1}),
    ("unfold", (2, 3, 6, 7), ((2, 3),), {"padding": 1, "stride": 2, "dilation": 2}),
    ("fold", (2, 12, 20), ((5, 6), (2, 2)), {}),
]


@each("name, shape, args, options", POOLS, ids=repr)
def test_pools(name, shape, args, options):
    assert_agree(lambda F, x: getattr(F, name)(x, *args, **options), real(*shape))
    if name.startswith("max"):
        assert_agree(lambda F,
                     x: getattr(F, name)(x.round(), *args, **options, return_indices=True),
                     real(*shape), differentiable=False)


def test_pools_of_nan_and_infinities():
    x = np.array([[[1.0, np.nan, 3.0, 4.0, -np.inf, -np.inf, np.inf, np.nan, np.nan, 2.0]]])
    assert_agree(lambda F, x: F.max_pool1d(x, 2, return_indices=True), x, differentiable=False)
    assert_agree(lambda F, x: F.max_pool1d(x, 3, 1, return_indices=True), x, differentiable=False)


def test_back_from_maxima():
    def there_and_back(F, x, n, **options):
        y, places = getattr(F, f"max_pool{n}d")(x, 2, return_indices=True)
        return getattr(F, f"max_unpool{n}d")(y, places, 2, **options)
    assert_agree(lambda F, x: there_and_back(F, x, 1), real(2, 3, 8))
    assert_agree(lambda F, x: there_and_back(F, x, 2, output_size=(2, 3, 5, 7)), real(2, 3, 5, 7))
    assert_agree(lambda F, x: there_and_back(F, x, 3), real(1, 2, 4, 2, 4))
    assert_both_refuse(lambda F, x, i: F.max_unpool1d(x, i, 2), real(1, 1, 2), np.array([[[0, 9]]]))


def test_pools_refuse_what_pytorch_refuses():
    for name in ("max_pool2d", "avg_pool2d"):
        for args in ((9,), (2, 1, 2), ((1, 2, 3),)):
            assert_both_refuse(lambda F, x, args=args, name=name: getattr(F, name)(x, *args),
                               real(1, 1, 4, 4))


def test_examples_have_their_own_maxima():
    """Gradients example by example, where each has another greatest element."""
    x = tl.tensor(real(3, 1, 4, 4))
    slopes = tl.func.vmap(tl.func.grad(lambda x: (tl.max_pool2d(x, 2) ** 2).sum()))(x)
    x.requires_grad_()
    (tl.max_pool2d(x, 2) ** 2).sum().backward()
    assert_close(slopes, x.grad)


@each("name", ["elu", "selu", "celu", "gelu", "silu", "mish", "softplus",
               "logsigmoid", "hardswish", "softsign", "tanhshrink", "tanh"])
def test_second_derivatives_where_functions_bend(name):
    found = []
    for lib in (tl, torch):
        x = lib.tensor([0.0, -0.0, -3.0, 3.0, 0.5, -0.5], dtype=lib.float64, requires_grad=True)
        g, = lib.autograd.grad(getattr(lib.nn.functional, name)(x).sum(), x, create_graph=True)
        found.append(lib.autograd.grad((g * g).sum(), x)[0].tolist())
    assert found[0] == pytest.approx(found[1])
