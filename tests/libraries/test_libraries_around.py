"""Libraries around models: einops, scikit-learn, SciPy's minimisers, optuna, torchmetrics.

Each runs where its library is installed; the extra `libraries` installs them all but torchmetrics,
which would install PyTorch: docs/libraries.md.
"""

import json
import pickle
from importlib.util import find_spec

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from process import run_python
from tensorlib import nn
from tensorlib.testing import assert_close

RNG = np.random.default_rng(0)


# ---- einops --------------------------------------------------------------------------------------

@pytest.fixture
def einops():
    found = pytest.importorskip("einops")
    pytest.importorskip("tensorlib.einops")
    return found


X = RNG.normal(size=(2, 6, 4, 3))
CALLS = [
    ("rearrange", "b (h p) w c -> b h w (p c)", {"p": 2}), ("rearrange", "b h w c -> c b h w", {}),
    ("rearrange", "b h w c -> (b h w c)", {}), ("rearrange", "... c -> c ...", {}),
    ("rearrange", "b h w c -> b 1 h w c 1", {}), ("repeat", "b h w c -> b h (w r) c", {"r": 3}),
    *[("reduce", "b (h p) w c -> b h c", {"reduction": name, "p": 3})
      for name in ("min", "max", "sum", "mean", "prod")],
    ("reduce", "... -> ", {"reduction": "sum"}),
]


@pytest.mark.parametrize("name, pattern, options", CALLS)
def test_einops_gives_on_tensors_what_it_gives_on_arrays(einops, name, pattern, options):
    call, x = getattr(einops, name), tl.from_numpy(X.copy()).requires_grad_()
    found = call(x, pattern, **options)
    assert isinstance(found, tl.Tensor)
    assert_close(found.detach(), tl.from_numpy(np.asarray(call(X, pattern, **options))))
    found.sum().backward()
    assert x.grad.isfinite().all() and x.grad.shape == x.shape


def test_einops_packs_sums_and_lists(einops):
    a, b = tl.ones(2, 3, 4), tl.zeros(5, 4)
    packed, shapes = einops.pack([a, b], "* c")
    assert packed.shape == (11, 4)
    assert [tuple(x.shape) for x in einops.unpack(packed, shapes, "* c")] == [(2, 3, 4), (5, 4)]
    assert einops.einsum(a, b, "i j c, k c -> i j k").shape == (2, 3, 5)
    assert einops.rearrange([a, a], "n a b c -> a (n b) c").shape == (2, 6, 4)
    assert einops.parse_shape(a, "a b _") == {"a": 2, "b": 3}
    assert tl.einops.rearrange is einops.rearrange
    with pytest.raises(einops.EinopsError, match="tensorlib|Shape|rearrange"):
        einops.rearrange(a, "a b -> b a")
    assert einops.reduce(a > 0, "a b c -> a", "any").dtype == tl.bool


def test_einops_layers(einops):
    layers = pytest.importorskip("tensorlib.einops.layers")
    model = nn.Sequential(layers.Rearrange("b (h p) c -> b h (p c)", p=2), nn.Linear(8, 3),
                          layers.Reduce("b h c -> b c", "mean"),
                          layers.EinMix("b c -> b e", weight_shape="c e", bias_shape="e", c=3, e=5))
    out = model(tl.randn(2, 6, 4))
    assert out.shape == (2, 5)
    out.sum().backward()
    assert set(model.state_dict()) == {"1.weight", "1.bias", "3.weight", "3.bias"}
    assert all(p.grad is not None for p in model.parameters())
    assert "Rearrange" in repr(model)


def test_einops_under_a_transform_and_compiled(einops):
    def f(x):
        return einops.reduce(x, "a (b c) -> b", "sum", b=2).square().sum()

    x = tl.randn(3, 4)
    assert_close(tl.func.grad(f)(x), tl.func.grad(tl.compile(f))(x))


def test_without_einops_the_error_names_it():
    run_python("""
import sys
sys.modules["einops"] = None
import importlib.util
importlib.util.find_spec, real = lambda name: None if name == "einops" else real(name), (
    importlib.util.find_spec)
import tensorlib.einops
try:
    tensorlib.einops.rearrange
except ImportError as error:
    assert "pip install einops" in str(error)
else:
    raise AssertionError
""")


# ---- scikit-learn --------------------------------------------------------------------------------

def estimators():
    try:
        return [tl.sklearn.NeuralNetClassifier(random_state=0, max_epochs=30),
                tl.sklearn.NeuralNetRegressor(random_state=0, max_epochs=30)]
    except ImportError:
        return []


@pytest.mark.parametrize("estimator", estimators(), ids=lambda estimator: type(estimator).__name__)
@pytest.mark.filterwarnings("ignore")
def test_an_estimator_passes_scikit_learns_checks(estimator):
    checks = pytest.importorskip("sklearn.utils.estimator_checks")
    checks.check_estimator(estimator)


def test_estimators_in_pipelines_and_searches():
    pytest.importorskip("sklearn")
    from sklearn.datasets import make_moons
    from sklearn.model_selection import GridSearchCV, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    x, y = make_moons(120, noise=0.1, random_state=0)
    names = np.array(["low", "high"])[y]
    net = tl.sklearn.NeuralNetClassifier(hidden=(16,), max_epochs=40, random_state=0, lr=0.03)
    assert cross_val_score(make_pipeline(StandardScaler(), net), x, names, cv=2).min() > 0.9
    state = tl.get_rng_state()
    found = GridSearchCV(net, {"hidden": [(2,), (16,)]}, cv=2).fit(x, names)
    assert found.best_params_ == {"hidden": (16,)} and tl.get_rng_state().equal(state)
    again = pickle.loads(pickle.dumps(found.best_estimator_))
    assert (again.predict(x) == found.predict(x)).all()
    proba = found.predict_proba(x[:5])
    assert proba.shape == (5, 2) and np.allclose(proba.sum(1), 1)
    assert len(again.loss_curve_) == 40 and again.loss_curve_[-1] < again.loss_curve_[0]


def test_an_estimator_of_a_module_of_ones_own():
    pytest.importorskip("sklearn")
    x = RNG.normal(size=(80, 3))
    y = np.stack([x[:, 0] - x[:, 1], x.sum(1)], 1)
    net = tl.sklearn.NeuralNetRegressor(
        lambda features, outputs: nn.Linear(features, outputs), optimizer=tl.optim.SGD, lr=0.1,
        max_epochs=30, random_state=1)
    assert net.fit(tl.from_numpy(x), tl.from_numpy(y)).score(x, y) > 0.999
    assert isinstance(net.module_, nn.Linear) and net.predict(x).shape == (80, 2)
    with pytest.raises(ValueError, match="max_epochs"):
        tl.sklearn.NeuralNetRegressor(max_epochs=0).fit(x, y)


# ---- SciPy ---------------------------------------------------------------------------------------

METHODS = ["L-BFGS-B", "BFGS", "CG", "Newton-CG", "trust-ncg", "trust-krylov", "trust-exact",
           "dogleg", "SLSQP", "TNC", "trust-constr", "Nelder-Mead", "Powell"]


@each("method", METHODS)
@pytest.mark.filterwarnings("ignore")
def test_a_minimiser_of_scipys_finds_the_minimum(method):
    pytest.importorskip("scipy")
    from tensorlib.optim.scipy import minimize
    x = tl.tensor(1.1, dtype=tl.float64, requires_grad=True)
    y = tl.tensor([1.2], dtype=tl.float64, requires_grad=True)
    fixed = tl.ones(3)

    def loss():
        return (1 - x) ** 2 + 10 * (y[0] - x ** 2) ** 2

    found = minimize(loss, [x, y, fixed], method=method)
    assert abs(x.item() - 1) < 1e-3 and abs(y.item() - 1) < 1e-3 and loss().item() < 1e-5
    assert found.x.shape == (2,) and found.x[0] == x.item() and x.grad is None


def test_a_model_is_fitted_with_products():
    pytest.importorskip("scipy")
    from tensorlib.optim.scipy import Objective, minimize
    tl.manual_seed(0)
    model = nn.Sequential(nn.Linear(1, 6), nn.Tanh(), nn.Linear(6, 1)).double()
    x = tl.linspace(-2, 2, 40, dtype=tl.float64)[:, None]

    def loss():
        return nn.functional.mse_loss(model(x), x.sin())

    objective = Objective(loss, list(model.parameters()))
    at = objective.start()
    step = RNG.normal(size=at.shape)
    ahead, behind = (objective.value_and_gradient(at + sign * 1e-5 * step)[1] for sign in (1, -1))
    assert np.allclose(objective.product(at, step), (ahead - behind) / 2e-5, rtol=1e-5, atol=1e-7)
    assert np.allclose(objective.hessian(at) @ step, objective.product(at, step))
    found = minimize(loss, model.parameters(), method="trust-ncg", options={"maxiter": 60})
    assert loss().item() == pytest.approx(found.fun) and found.fun < 2e-3


def test_after_an_error_parameters_are_as_they_were():
    pytest.importorskip("scipy")
    from tensorlib.optim.scipy import minimize
    x = tl.ones(2, requires_grad=True)
    calls = []

    def fails():
        calls.append(1)
        if len(calls) > 2:
            raise KeyError("mine")
        return (x * x).sum()

    with pytest.raises(KeyError, match="mine"):
        minimize(fails, [x])
    assert x.tolist() == [1, 1] and x.is_leaf
    for closure, error in ((lambda: x, TypeError), (lambda: 3.0, TypeError),
                           (lambda: tl.tensor(1.0), RuntimeError)):
        with pytest.raises(error, match="minimize: "):
            minimize(closure, [x])
    with pytest.raises(ValueError, match="minimize: there is no parameter"):
        minimize(lambda: x.sum(), [tl.ones(2)])


# ---- optuna --------------------------------------------------------------------------------------

@pytest.mark.filterwarnings("ignore")
def test_optuna_searches_a_learning_rate():
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)

    def objective(trial):
        tl.manual_seed(0)
        layer = nn.Linear(2, 1)
        rate = trial.suggest_float("lr", 1e-4, 0.5, log=True)
        optimizer = tl.optim.SGD(layer.parameters(), lr=rate)
        x = tl.randn(32, 2)
        for step in range(10):
            loss = (layer(x) - x.sum(1, keepdim=True)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            trial.report(loss.item(), step)
        return loss

    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective, n_trials=8)
    assert study.best_params["lr"] > 0.01 and study.best_value < 0.1


# ---- torchmetrics --------------------------------------------------------------------------------

METRICS = """
import json, sys
import torch
from torchmetrics import MeanSquaredError, MetricCollection
from torchmetrics.classification import (MulticlassAccuracy, MulticlassAUROC,
                                         MulticlassConfusionMatrix, MulticlassF1Score)
scores, labels = map(torch.tensor, map(json.loads, sys.argv[1:]))
scores = scores.softmax(1)
metrics = MetricCollection({
    "accuracy": MulticlassAccuracy(3, average="micro"), "f1": MulticlassF1Score(3),
    "confusion": MulticlassConfusionMatrix(3), "auroc": MulticlassAUROC(3)})
for first in range(0, 60, 20):
    metrics.update(scores[first:first + 20], labels[first:first + 20])
found = {name: value.tolist() for name, value in metrics.compute().items()}
found["error"] = MeanSquaredError()(scores[:, 0], scores[:, 1]).item()
metrics.reset()
print(json.dumps(found), torch.Tensor.__module__)
"""


def test_torchmetrics_computes_what_scikit_learn_does(tmp_path):
    pytest.importorskip("lightning_utilities")      # torchmetrics itself imports PyTorch
    sklearn = pytest.importorskip("sklearn.metrics")
    if not find_spec("torchmetrics"):
        pytest.skip("torchmetrics is not installed")
    scores, labels = RNG.normal(size=(60, 3)).round(3), RNG.integers(0, 3, 60)
    scores[range(60), labels] += 1
    (tmp_path / "evaluate.py").write_text(METRICS)
    done = run_python(
        "import sys\nfrom tensorlib.as_torch import main\nmain(sys.argv[1:])",
        str(tmp_path / "evaluate.py"), json.dumps(scores.tolist()), json.dumps(labels.tolist()))
    text, name = done.rsplit(maxsplit=1)
    found, guessed = json.loads(text), scores.argmax(1)
    shares = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    assert name == "tensorlib"
    assert found["confusion"] == sklearn.confusion_matrix(labels, guessed).tolist()
    for kind, value in (("accuracy", sklearn.accuracy_score(labels, guessed)),
                        ("f1", sklearn.f1_score(labels, guessed, average="macro")),
                        ("auroc", sklearn.roc_auc_score(labels, shares, multi_class="ovr")),
                        ("error", sklearn.mean_squared_error(shares[:, 0], shares[:, 1]))):
        assert found[kind] == pytest.approx(value, abs=1e-6), kind
