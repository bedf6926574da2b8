"""`nn.utils`, `nn.init` and hooks beside PyTorch's."""

import warnings

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib.testing import assert_close

torch = pytest.importorskip("torch")
pytest.importorskip("torch.nn.utils.parametrizations")
pytest.importorskip("torch.nn.utils.prune")

BOTH = (tl, torch)


def real(*shape):
    return np.random.default_rng([11, *shape]).uniform(-2, 2, shape)


def array(L, values):
    return (tl.tensor if L is tl else torch.tensor)(np.asarray(values).tolist(), dtype=L.float64)


def copied(mine, theirs):
    mine.load_state_dict({name: tl.from_numpy(value.numpy().copy())
                          for name, value in theirs.state_dict().items()})


def pair(make):
    """One module in both libraries, in float64, with the same state."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mine, theirs = (make(L).double() for L in BOTH)
    copied(mine, theirs)
    return mine, theirs


def assert_same_state(mine, theirs):
    ours, others = mine.state_dict(), theirs.state_dict()
    assert list(ours) == list(others)
    for name in others:
        assert_close(ours[name].numpy(), others[name].numpy(), rtol=1e-9, atol=1e-9)


def assert_same_step(mine, theirs, *arrays):
    """The same outputs and gradients, and the same state after a small step downhill."""
    outputs = []
    for L, module in zip(BOTH, (mine, theirs)):
        output = module(*[array(L, x) for x in arrays])
        (output * output).sum().backward()
        outputs.append(output.detach().numpy())
        with L.no_grad():
            for p in module.parameters():
                p -= 0.01 * p.grad
                p.grad = None
    assert_close(*outputs, rtol=1e-8, atol=1e-9)
    assert_same_state(mine, theirs)


# ---- gradients ---------------------------------------------------------------------------------

def with_gradients(L):
    made = [array(L, real(2, 3)).requires_grad_(), array(L, real(4)).requires_grad_(),
            array(L, 1.0).requires_grad_()]
    for p in made[:2]:
        (p * p * 3).sum().backward()
    return made


@each("norm_type", [2.0, 1, 0.5, float("inf"), 3])
@each("bound", [0.5, 1e6])
def test_clip_grad_norm(norm_type, bound):
    norms, gradients = [], []
    for L in BOTH:
        made = with_gradients(L)
        norms.append(float(L.nn.utils.clip_grad_norm_(made, bound, norm_type)))
        gradients.append([p.grad.numpy() for p in made[:2]])
        assert made[2].grad is None
        assert_close(float(L.nn.utils.get_total_norm([p.grad for p in made[:2]], norm_type)),
                     min(norms[-1], bound), rtol=1e-4, atol=0)
    assert_close(*norms)
    for one, other in zip(*gradients):
        assert_close(one, other)


def test_clip_grad_value_and_the_empty_list():
    gradients = []
    for L in BOTH:
        made = with_gradients(L)
        L.nn.utils.clip_grad_value_(made, 2.5)
        L.nn.utils.clip_grad_value_(made[0], 2)
        gradients.append([p.grad.numpy() for p in made[:2]])
        assert float(L.nn.utils.clip_grad_norm_([], 1.0)) == 0
        assert float(L.nn.utils.clip_grad_norm_(iter(made[2:]), 1.0)) == 0
    for one, other in zip(*gradients):
        assert_close(one, other)


def test_parameters_as_a_vector():
    vectors = []
    for L in BOTH:
        made = with_gradients(L)
        vector = L.nn.utils.parameters_to_vector(made)
        L.nn.utils.vector_to_parameters(vector.detach() * 2, made)
        vectors.append(np.concatenate([vector.detach().numpy(),
                                       *[p.detach().numpy().ravel() for p in made]]))
        assert all(p.is_leaf and p.requires_grad for p in made)
    assert_close(*vectors)


# ---- parametrizations --------------------------------------------------------------------------

LAYERS = {
    "Linear": (lambda L: L.nn.Linear(4, 3), real(5, 4)),
    "Linear wide": (lambda L: L.nn.Linear(3, 4), real(5, 3)),
    "square": (lambda L: L.nn.Linear(3, 3), real(5, 3)),
    "Conv2d": (lambda L: L.nn.Conv2d(2, 4, 3), real(2, 2, 5, 5)),
    "ConvTranspose1d": (lambda L: L.nn.ConvTranspose1d(2, 4, 3), real(2, 2, 5)),
}


@each("layer", LAYERS)
@each("dim", [0, 1, -1, None])
@each("home", ["parametrizations", "utils"])
def test_weight_norm(layer, dim, home):
    make, x = LAYERS[layer]
    mine, theirs = pair(lambda L: place(L, home).weight_norm(make(L), dim=dim))
    for _ in range(2):
        assert_same_step(mine, theirs, x)


def place(L, home):
    return L.nn.utils if home == "utils" else L.nn.utils.parametrizations


@each("layer", LAYERS)
@each("options", [{}, {"n_power_iterations": 3, "eps": 1e-6}, {"dim": 1}])
@each("home", ["parametrizations", "utils"])
def test_spectral_norm(layer, options, home):
    make, x = LAYERS[layer]
    mine, theirs = pair(lambda L: place(L, home).spectral_norm(make(L), **options))
    for _ in range(3):
        assert_same_step(mine, theirs, x)
    assert_same_step(mine.eval(), theirs.eval(), x)


@each("layer", ["Linear", "Linear wide", "square"])
@each("orthogonal_map", [None, "matrix_exp", "cayley", "householder"])
@each("use_trivialization", [True, False])
def test_orthogonal(layer, orthogonal_map, use_trivialization):
    make, x = LAYERS[layer]
    householder = orthogonal_map == "householder" or (
        orthogonal_map is None and layer != "square")

    def made(L):
        found = make(L)
        if householder and not use_trivialization:
            with L.no_grad():
                found.weight.copy_(array(L, real(*found.weight.shape)).to(L.float32))
        return L.nn.utils.parametrizations.orthogonal(
            found, orthogonal_map=orthogonal_map, use_trivialization=use_trivialization)

    mine, theirs = pair(made)
    for _ in range(3):
        assert_same_step(mine, theirs, x)
    weight = mine.weight.detach().numpy()
    product = weight @ weight.T if weight.shape[0] <= weight.shape[1] else weight.T @ weight
    assert_close(product, np.eye(len(product)), atol=1e-5, rtol=1e-5)       # the base is float32
    if not use_trivialization and not householder:
        for module in (mine, theirs):
            with pytest.raises(NotImplementedError, match="assign"):
                module.weight = module.weight.detach()


# ---- masks -------------------------------------------------------------------------------------

STEPS = [
    lambda P, m: P.identity(m, "weight"),
    lambda P, m: P.l1_unstructured(m, "weight", 3),
    lambda P, m: P.l1_unstructured(m, "weight", 0.25),
    lambda P, m: P.ln_structured(m, "weight", 1, 2, 0),
    lambda P, m: P.ln_structured(m, "weight", 0.5, float("inf"), -1),
    lambda P, m: P.l1_unstructured(m, "bias", 1),
    lambda P, m: P.l1_unstructured(m, "weight", 0),
]


@each("order", [[0], [1], [3], [4], [1, 2, 3], [4, 1, 5, 2], [3, 0, 1, 6]])
def test_masks(order):
    make, x = LAYERS["Conv2d"]
    mine, theirs = pair(make)
    for step in order:
        for L, module in zip(BOTH, (mine, theirs)):
            assert STEPS[step](L.nn.utils.prune, module) is module
            assert L.nn.utils.prune.is_pruned(module)
        assert_same_step(mine, theirs, x)
    for L, module in zip(BOTH, (mine, theirs)):
        for name in ("weight", "bias"):
            if hasattr(module, name + "_mask"):
                L.nn.utils.prune.remove(module, name)
        assert not L.nn.utils.prune.is_pruned(module)
    assert_same_step(mine, theirs, x)


def test_masks_of_several_parameters():
    def make(L):
        return L.nn.Sequential(L.nn.Linear(4, 3), L.nn.ReLU(), L.nn.Linear(3, 2))
    mine, theirs = pair(make)
    for L, module in zip(BOTH, (mine, theirs)):
        P = L.nn.utils.prune
        P.l1_unstructured(module[0], "weight", 2)
        places = [(module[0], "weight"), (module[2], "weight"), (module[2], "bias")]
        P.global_unstructured(places, P.L1Unstructured, amount=0.5)
        P.global_unstructured(places, P.L1Unstructured, amount=1,
                              importance_scores={places[1]: array(L, np.ones((2, 3)))})
        P.custom_from_mask(module[0], "bias", array(L, [1, 0, 1]))
    assert_same_state(mine, theirs)
    assert_same_step(mine, theirs, real(5, 4))


@each("amount", [2, 0.5])
def test_random_masks_take_out_as_many(amount):
    for L in BOTH:
        P, layer = L.nn.utils.prune, L.nn.Linear(4, 6)
        P.random_unstructured(layer, "weight", amount)
        assert int((layer.weight_mask == 0).sum()) == (2 if amount == 2 else 12)
        layer = L.nn.Linear(4, 6)
        P.random_structured(layer, "weight", amount, dim=1)
        assert sorted(layer.weight_mask.sum(0).tolist()).count(0) == 2


# ---- layers put together -----------------------------------------------------------------------

@each("options", [{}, {"bias": False}])
def test_fusion(options):
    def nets(L):
        conv, linear = L.nn.Conv2d(2, 3, 3, **options), L.nn.Linear(4, 3, **options)
        back = L.nn.ConvTranspose2d(2, 3, 3, **options)
        found = L.nn.Sequential(conv, L.nn.BatchNorm2d(3), linear, L.nn.BatchNorm1d(3), back,
                                L.nn.BatchNorm2d(3, affine=False))
        for i, part in enumerate(found[1::2]):
            part.running_mean.copy_(array(L, real(3) + i).to(L.float32))
            part.running_var.copy_(array(L, np.abs(real(3)) + i).to(L.float32))
        return found.eval()

    mine, theirs = pair(nets)
    for L, net in zip(BOTH, (mine, theirs)):
        U, (conv, bn, linear, bn1, back, bn2) = L.nn.utils, net
        for fused, layers, x in (
                (U.fuse_conv_bn_eval(conv, bn), (conv, bn), real(1, 2, 5, 5)),
                (U.fuse_linear_bn_eval(linear, bn1), (linear, bn1), real(5, 4)),
                (U.fuse_conv_bn_eval(back, bn2, transpose=True), (back, bn2), real(1, 2, 5, 5))):
            x = array(L, x)
            assert_close(fused(x).detach().numpy(), layers[1](layers[0](x)).detach().numpy(),
                         atol=1e-9, rtol=1e-9)


# ---- first values --------------------------------------------------------------------------------

INITS = [
    ("uniform_", {}), ("uniform_", {"a": -3, "b": 2}), ("normal_", {"mean": 1, "std": 3}),
    ("trunc_normal_", {}), ("trunc_normal_", {"mean": 1, "std": 2, "a": -1, "b": 4}),
    ("xavier_uniform_", {"gain": 2}), ("xavier_normal_", {}), ("kaiming_uniform_", {}),
    ("kaiming_uniform_", {"a": 5 ** 0.5}), ("kaiming_uniform_", {"nonlinearity": "tanh"}),
    ("kaiming_normal_", {"mode": "fan_out", "nonlinearity": "relu"}),
    ("kaiming_normal_", {"a": 0.5}), ("orthogonal_", {"gain": 3}), ("sparse_", {"sparsity": 0.3}),
]


@each("name, options", INITS)
def test_first_values_have_the_same_distribution(name, options):
    """By the quantiles of many."""
    found = []
    for L in BOTH:
        L.manual_seed(3)
        shape = (150, 100) if name in ("orthogonal_", "sparse_") else (100, 50, 3)
        filled = L.empty(shape)
        assert getattr(L.nn.init, name)(filled, **options) is filled
        values = np.sort(filled.numpy().ravel())
        found.append(np.quantile(values, np.linspace(0.005, 0.995, 67)))
    spread = found[1].std()
    assert_close(found[0] / spread, found[1] / spread, atol=0.08, rtol=0.03)


@each("call", [
    lambda L, x: L.nn.init.eye_(x(3, 5)), lambda L, x: L.nn.init.constant_(x(2, 3), 0.5),
    lambda L, x: L.nn.init.ones_(x(3)), lambda L, x: L.nn.init.zeros_(x(3)),
    lambda L, x: L.nn.init.dirac_(x(4, 2, 3)), lambda L, x: L.nn.init.dirac_(x(6, 2, 3, 3), 2),
    lambda L, x: L.nn.init.dirac_(x(2, 3, 2, 3, 4)),
])
def test_first_values_without_chance(call):
    mine, theirs = (call(L, L.empty).numpy() for L in BOTH)
    assert_close(mine, theirs)


@each("nonlinearity", [
    "linear", "conv1d", "conv2d", "conv_transpose3d", "sigmoid", "tanh", "relu", "selu",
    "leaky_relu"])
def test_gains(nonlinearity):
    mine, theirs = (L.nn.init.calculate_gain(nonlinearity) for L in BOTH)
    assert mine == theirs


@each("text", [
    "Linear(20, 30)", "Conv2d(4, 6, 3)", "ConvTranspose1d(4, 6, 3)", "Bilinear(20, 5, 6)",
    "Embedding(50, 20, padding_idx=3)", "EmbeddingBag(50, 20)"])
def test_layers_begin_alike(text):
    """The bounds and the variance of each parameter."""
    for L in BOTH:
        L.manual_seed(0)
    for name, theirs in eval(f"torch.nn.{text}").named_parameters():
        many = [np.concatenate([dict(eval(f"{L.__name__}.nn.{text}", {L.__name__: L})
                                     .named_parameters())[name].detach().numpy().ravel()
                                for _ in range(60)]) for L in BOTH]
        assert_close(*[x.std() for x in many], rtol=0.06, atol=0)
        assert_close(*[np.quantile(np.abs(x), 0.98) for x in many], rtol=0.06, atol=0)
