"""Distributions, beside PyTorch: densities, moments, entropies, divergences, gradients, shapes."""

import itertools

import numpy as np
import pytest
from cases import each

import tensorlib as tl

torch = pytest.importorskip("torch")

# class, parameters, values; log odds of 0 are left out, as PyTorch's second derivatives are wrong
# there: that of log(1 + exp(-|x|)) + max(x, 0)
CASES = [
    ("Normal", {"loc": [0.5, -1.0], "scale": [1.0, 2.5]}, [0.3, 4.0]),
    ("LogNormal", {"loc": [0.5, -1.0], "scale": [1.0, 0.5]}, [0.3, 4.0]),
    ("Cauchy", {"loc": [0.5, -1.0], "scale": [1.0, 2.5]}, [0.3, 4.0]),
    ("Laplace", {"loc": [0.5, -1.0], "scale": [1.0, 2.5]}, [0.3, 4.0]),
    ("Gumbel", {"loc": [0.5, -1.0], "scale": [1.0, 2.5]}, [0.3, 4.0]),
    ("StudentT", {"df": [1.5, 4.0], "loc": [0.5, -1.0], "scale": [1.0, 2.5]}, [0.3, 4.0]),
    ("Uniform", {"low": [0.0, -1.0], "high": [1.0, 5.0]}, [0.3, 4.0]),
    ("HalfNormal", {"scale": [1.0, 2.5]}, [0.3, 4.0]),
    ("HalfCauchy", {"scale": [1.0, 2.5]}, [0.3, 4.0]),
    ("Exponential", {"rate": [1.0, 2.5]}, [0.3, 4.0]),
    ("Gamma", {"concentration": [0.7, 2.5], "rate": [1.0, 3.0]}, [0.3, 4.0]),
    ("Chi2", {"df": [0.7, 5.0]}, [0.3, 4.0]),
    ("Beta", {"concentration1": [0.7, 2.5], "concentration0": [2.0, 3.0]}, [0.3, 0.9]),
    ("Dirichlet", {"concentration": [[0.7, 2.5, 1.5], [3.0, 2.0, 1.1]]},
     [[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]]),
    ("Weibull", {"scale": [1.0, 2.5], "concentration": [1.7, 2.5]}, [0.3, 4.0]),
    ("Pareto", {"scale": [0.2, 2.5], "alpha": [1.5, 3.5]}, [0.3, 4.0]),
    ("InverseGamma", {"concentration": [0.7, 2.5], "rate": [1.0, 3.0]}, [0.3, 4.0]),
    ("RelaxedBernoulli", {"temperature": 0.7, "probs": [0.2, 0.7]}, [0.3, 0.9]),
    ("RelaxedBernoulli", {"temperature": 0.7, "logits": [0.2, -0.7]}, [0.3, 0.9]),
    ("RelaxedOneHotCategorical", {"temperature": 0.7, "probs": [[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]]},
     [[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]]),
    ("Bernoulli", {"probs": [0.2, 0.7]}, [0.0, 1.0]),
    ("Bernoulli", {"logits": [0.4, -1.5]}, [0.0, 1.0]),
    ("Binomial", {"total_count": 7, "probs": [0.2, 0.7]}, [0.0, 5.0]),
    ("Binomial", {"total_count": 7, "logits": [0.4, -1.5]}, [3.0, 7.0]),
    ("NegativeBinomial", {"total_count": 4.0, "probs": [0.2, 0.7]}, [0.0, 5.0]),
    ("Geometric", {"probs": [0.2, 0.7]}, [0.0, 5.0]),
    ("Geometric", {"logits": [0.4, -1.5]}, [1.0, 5.0]),
    ("Poisson", {"rate": [0.2, 7.0]}, [0.0, 5.0]),
    ("Categorical", {"probs": [[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]]}, [0, 2]),
    ("Categorical", {"logits": [[0.0, 1.5, -1.0], [0.1, 0.1, 2.0]]}, [1, 2]),
    ("OneHotCategorical", {"probs": [[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]]},
     [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]),
    ("Multinomial", {"total_count": 5, "probs": [[0.2, 0.4, 0.4], [0.1, 0.1, 0.8]]},
     [[2.0, 2.0, 1.0], [0.0, 1.0, 4.0]]),
    ("MultivariateNormal", {"loc": [1.0, -1.0], "covariance_matrix": [[2.0, 0.5], [0.5, 1.0]]},
     [[0.3, 0.9], [1.0, 2.0]]),
    ("MultivariateNormal", {"loc": [[1.0, -1.0], [0.0, 0.5]],
                            "scale_tril": [[2.0, 0.0], [0.5, 1.0]]}, [[0.3, 0.9], [1.0, 2.0]]),
    ("MultivariateNormal", {"loc": [1.0, -1.0], "precision_matrix": [[2.0, 0.5], [0.5, 1.0]]},
     [0.3, 0.9]),
    ("LowRankMultivariateNormal", {"loc": [[1.0, -1.0, 0.5], [0.0, 0.3, 2.0]],
                                   "cov_factor": [[1.0], [0.5], [-0.7]],
                                   "cov_diag": [0.5, 1.0, 0.2]}, [[0.3, 0.9, 1.0], [1., 2., 3.]]),
    ("VonMises", {"loc": [0.5, -1.0], "concentration": [1.0, 7.5]}, [0.3, -2.0]),
    ("FisherSnedecor", {"df1": [1.5, 4.0], "df2": [5.0, 3.0]}, [0.3, 4.0]),
    ("Kumaraswamy", {"concentration1": [1.7, 2.5], "concentration0": [2.0, 0.5]}, [0.3, 0.9]),
    ("ContinuousBernoulli", {"probs": [0.2, 0.7]}, [0.3, 0.9]),
    ("ContinuousBernoulli", {"logits": [0.4, -1.5]}, [0.3, 1.0]),
    ("LogisticNormal", {"loc": [[0.5, -1.0], [0.0, 0.2]], "scale": [1.0, 2.5]},
     [[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]]),
    ("Wishart", {"df": 2.5, "covariance_matrix": [[2.0, 0.5], [0.5, 1.0]]},
     [[[0.3, 0.1], [0.1, 0.9]], [[1.0, 0.5], [0.5, 2.0]]]),
    ("Wishart", {"df": [5.0], "precision_matrix": [[2.0, 0.5], [0.5, 1.0]]},
     [[0.3, 0.1], [0.1, 0.9]]),
    ("LKJCholesky", {"dim": 3, "concentration": [1.0, 2.5]},
     [[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.0, 0.6, 0.8]]),
]
NAMES = [f"{name}-{'-'.join(given)}" for name, given, _ in CASES]


def made(lib, name, given, requires_grad=False):
    if "temperature" in given:               # a tensor, but no parameter to differentiate
        given = {**given, "temperature": lib.tensor(given["temperature"], dtype=lib.float64)}
    given = {key: value if isinstance(value, (int, float, lib.Tensor)) else lib.tensor(
        value, dtype=lib.float64, requires_grad=requires_grad) for key, value in given.items()}
    return getattr(lib.distributions, name)(**given), [
        x for key, x in given.items() if isinstance(x, lib.Tensor) and key != "temperature"]


def values_of(lib, values):
    """Values as a tensor: whole numbers, or float64."""
    whole = np.asarray(values).dtype.kind == "i"
    return lib.tensor(values, dtype=lib.int64 if whole else lib.float64)


def outcome(compute):
    """A tensor as an array, or the type of the error."""
    try:
        return compute().detach().double().numpy()
    except (NotImplementedError, AttributeError):
        return "not implemented"


def assert_same(ours, theirs, rtol=1e-9):
    if isinstance(theirs, str):
        return                               # PyTorch lacks it
    assert not isinstance(ours, str)
    np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=1e-12)


@each("name, given, values", CASES, ids=NAMES)
def test_densities_and_moments(name, given, values):
    (ours, _), (theirs, _) = made(tl, name, given), made(torch, name, given)
    mine, other = values_of(tl, values), values_of(torch, values)
    assert tuple(ours.batch_shape) == tuple(theirs.batch_shape)
    assert tuple(ours.event_shape) == tuple(theirs.event_shape)
    assert ours.has_rsample == theirs.has_rsample
    rtol = 1e-6 if name == "VonMises" else 1e-9         # for PyTorch's Bessel functions
    assert_same(outcome(lambda: ours.log_prob(mine)), outcome(lambda: theirs.log_prob(other)), rtol)
    assert_same(outcome(lambda: ours.cdf(mine)), outcome(lambda: theirs.cdf(other)))
    chances = [0.2, 0.7]
    assert_same(outcome(lambda: ours.icdf(tl.tensor(chances, dtype=tl.float64))),
                outcome(lambda: theirs.icdf(torch.tensor(chances, dtype=torch.float64))))
    for what in ("mean", "variance", "stddev", "mode"):
        if (name, what) == ("Kumaraswamy", "mode"):
            continue                                     # PyTorch's formula gives NaN
        assert_same(outcome(lambda: getattr(ours, what)), outcome(lambda: getattr(theirs, what)),
                    rtol)
    for what in ("entropy", "perplexity", "enumerate_support"):
        assert_same(outcome(lambda: getattr(ours, what)()),
                    outcome(lambda: getattr(theirs, what)()),
                    1e-7 if name == "Multinomial" else 1e-9)     # PyTorch's lgamma is of float32
    shape = (3, *ours.batch_shape)
    mine, other = ours.expand(shape), theirs.expand(shape)
    classes = ("Categorical", "OneHotCategorical", "Multinomial")     # PyTorch draws 1 or more
    for sizes in ((), (4,), (2, 1 if name in classes else 0)):
        drawn, like = mine.sample(sizes), other.sample(sizes)
        assert tuple(drawn.shape) == tuple(like.shape) and str(drawn.dtype)[10:] == str(
            like.dtype)[6:]
    assert_same(outcome(lambda: mine.mean), outcome(lambda: other.mean))
    assert_same(outcome(lambda: mine.entropy()), outcome(lambda: other.entropy()), 1e-7)


@each("name, given, values", CASES, ids=NAMES)
def test_gradients_of_densities_and_entropies(name, given, values):
    found = []
    for lib in (tl, torch):
        distribution, parameters = made(lib, name, given, requires_grad=True)
        value = values_of(lib, values)
        total = distribution.log_prob(value).sum()
        try:
            total = total + distribution.entropy().sum()
        except NotImplementedError:
            pass
        gradients = lib.autograd.grad(total, parameters, create_graph=True)
        second = lib.autograd.grad(sum((g * g).sum() for g in gradients), parameters)
        found.append([g.detach().numpy() for g in (*gradients, *second)])
    for ours, theirs in zip(*found):
        if name in ("MultivariateNormal", "Wishart") and ours.shape[-2:] == (2, 2):
            ours, theirs = ours + ours.swapaxes(-1, -2), theirs + theirs.swapaxes(-1, -2)
        np.testing.assert_allclose(ours, theirs, rtol=1e-5 if name == "VonMises" else 1e-7,
                                   atol=1e-9)


def test_what_exceeds_a_threshold():
    """in float32, as PyTorch's GeneralizedPareto takes no other dtype"""
    for concentration in ([0.3, 0.7], [-0.2, 0.0], [-0.9, 1.2]):
        found = []
        for lib in (tl, torch):
            given = [lib.tensor(x, requires_grad=True)
                     for x in ([0.0, 0.1], [6.0, 5.5], concentration)]
            p, x = lib.distributions.GeneralizedPareto(*given), lib.tensor([0.3, 4.0])
            values = [p.log_prob(x), p.cdf(x), p.log_cdf(x), p.icdf(lib.tensor([0.2, 0.7])),
                      p.log_survival_function(x), p.entropy()]
            g = lib.autograd.grad(sum(value.sum() for value in values), given)
            found.append([y.detach().numpy() for y in (
                *values, p.mean, p.variance, p.mode, p.support.upper_bound, *g)])
        for ours, theirs in zip(*found, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5)


MIXED = [("Exponential", "Gamma"), ("Gamma", "Exponential"), ("Normal", "Laplace"),
         ("Laplace", "Normal"), ("Uniform", "Normal"), ("Chi2", "Gamma")]


@each("p, q", [(c, c) for c in CASES] + [
    (a, b) for a, b in itertools.product(CASES, CASES) if (a[0], b[0]) in MIXED],
    ids=lambda case: case[0])
def test_divergences(p, q):
    found = []
    for lib in (tl, torch):
        one, parameters = made(lib, *p[:2], requires_grad=True)
        other = {key: value if isinstance(value, (int, float)) else (
            np.asarray(value) * (1.0 if key in ("covariance_matrix", "precision_matrix",
                                                "scale_tril", "low") else 0.9)).tolist()
            for key, value in q[1].items()}
        if q[0] in ("Categorical", "OneHotCategorical", "Multinomial") and "probs" in other:
            other["probs"] = [[0.4, 0.3, 0.3], [0.3, 0.1, 0.6]]
        two, more = made(lib, q[0], other, requires_grad=True)
        try:
            divergence = lib.distributions.kl_divergence(one, two)
        except NotImplementedError:
            found.append(None)
            continue
        gradients = ([] if not divergence.isfinite().all() else lib.autograd.grad(
            divergence.sum(), parameters + more, allow_unused=True))
        found.append([divergence.detach().numpy()] + [
            0 if g is None else g.numpy() + (g.numpy().swapaxes(-1, -2) if g.shape[-2:] == (2, 2)
                                             else 0) for g in gradients])
    if found[1] is None:                    # PyTorch has that of equal Weibull's alone
        assert found[0] is None or p[0] == "Weibull"
    elif found[0] is not None:
        if p[0] == "Wishart":               # PyTorch's has no gradient of the first one
            found = [[rows[0], *rows[len(rows) // 2 + 1:]] for rows in found]
        for ours, theirs in zip(*found, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-10)
    else:
        assert p[0] in ("NegativeBinomial", "HalfCauchy", "Multinomial", "StudentT"), p[0]


# parameters with which most divergences between families are finite
FAMILIES = [
    ("Bernoulli", {"probs": [0.2, 0.7]}), ("Poisson", {"rate": [0.2, 7.0]}),
    ("Binomial", {"total_count": 7, "probs": [0.2, 0.7]}),
    ("Beta", {"concentration1": [0.7, 2.5], "concentration0": [2.0, 3.0]}),
    ("ContinuousBernoulli", {"probs": [0.2, 0.7]}), ("Exponential", {"rate": [1.0, 2.5]}),
    ("Gamma", {"concentration": [0.7, 2.5], "rate": [1.0, 3.0]}),
    ("Gumbel", {"loc": [0.5, -1.0], "scale": [1.0, 2.5]}),
    ("Laplace", {"loc": [0.5, -1.0], "scale": [1.0, 2.5]}),
    ("Normal", {"loc": [0.4, -1.2], "scale": [1.5, 0.5]}),
    ("Pareto", {"scale": [0.2, 0.3], "alpha": [2.5, 3.5]}),
    ("Pareto", {"scale": [0.2, 2.0], "alpha": [0.5, 1.5]}),
    ("Uniform", {"low": [0.3, 0.4], "high": [0.6, 0.9]}),
    ("Uniform", {"low": [-0.3, -0.4], "high": [1.6, 1.9]}),
    ("LowRankMultivariateNormal", {"loc": [1.0, -1.0, 0.5], "cov_factor": [[1.0], [0.5], [-0.7]],
                                   "cov_diag": [0.5, 1.0, 0.2]}),
    ("MultivariateNormal", {"loc": [0.0, 1.0, 2.0], "scale_tril": [
        [2.0, 0.0, 0.0], [0.5, 1.0, 0.0], [0.1, 0.7, 1.5]]}),
]


@each("p", FAMILIES, ids=lambda case: case[0])
def test_divergences_between_families(p):
    for q in FAMILIES:
        found = []
        for lib in (tl, torch):
            (one, parameters), (two, more) = (made(lib, *case, requires_grad=True)
                                              for case in (p, q))
            if (type(one), type(two)) not in (lib.distributions.kl.RULES if lib is tl else
                                              lib.distributions.kl._KL_REGISTRY):
                found.append(None)
                continue
            divergence = lib.distributions.kl_divergence(one, two)
            gradients = ([] if not divergence.isfinite().all() else lib.autograd.grad(
                divergence.sum(), parameters + more, allow_unused=True))
            found.append([divergence.detach().numpy()] + [
                0 if g is None else g.numpy() for g in gradients])
        if found[1] is not None:
            for ours, theirs in zip(*found, strict=True):
                np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-10, err_msg=str(q))


def test_every_pair_of_pytorchs_has_a_rule():
    theirs = {(p.__name__, q.__name__) for p, q in torch.distributions.kl._KL_REGISTRY}
    assert theirs <= {(p.__name__, q.__name__) for p, q in tl.distributions.kl.RULES}


def test_every_name_of_pytorchs_is_there():
    for name in ("", "transforms", "constraints", "utils"):
        theirs = getattr(torch.distributions, name) if name else torch.distributions
        ours = getattr(tl.distributions, name) if name else tl.distributions
        public = getattr(theirs, "__all__", ()) if name != "utils" else (
            "broadcast_all", "clamp_probs", "lazy_property", "logits_to_probs", "probs_to_logits",
            "tril_matrix_to_vec", "vec_to_tril_matrix")
        assert [x for x in public if not hasattr(ours, x)] == []


def test_values_have_gradients_where_pytorchs_have():
    for name, given, _ in CASES:
        if made(torch, name, given)[0].has_rsample:
            ours, parameters = made(tl, name, given, requires_grad=True)
            found = tl.autograd.grad(ours.rsample((3,)).sum(), parameters, allow_unused=True)
            assert all(g is not None and g.isfinite().all() for g in found), name


def test_a_family_that_says_what_its_log_normalizer_is_has_a_divergence():
    found = []
    for lib in (tl, torch):
        class Rate(lib.distributions.ExponentialFamily):
            arg_constraints = {}

            def __init__(self, rate):
                self.rate = rate
                super().__init__(rate.shape)

            @property
            def _natural_params(self):
                return -self.rate,

            def _log_normalizer(self, x):
                return -(-x).log()

        p, q = (Rate(lib.tensor(x, dtype=lib.float64)) for x in ([1.0, 2.0], [3.0, 0.5]))
        found.append(lib.distributions.kl_divergence(p, q).detach().numpy())
    np.testing.assert_allclose(*found, rtol=1e-12)


TRANSFORMS = [
    (lambda t: t.ExpTransform(), [0.3, -1.0]), (lambda t: t.SigmoidTransform(), [0.3, -1.0]),
    (lambda t: t.TanhTransform(), [0.3, -1.0]), (lambda t: t.SoftplusTransform(), [0.3, -1.0]),
    (lambda t: t.AffineTransform(1.0, -2.0), [0.3, -1.0]),
    (lambda t: t.AffineTransform(1.0, 2.0, event_dim=1), [0.3, -1.0]),
    (lambda t: t.PowerTransform(2.5), [0.3, 4.0]),
    (lambda t: t.StickBreakingTransform(), [[0.3, -1.0, 2.0]]),
    (lambda t: t.ComposeTransform([t.AffineTransform(1.0, 3.0), t.TanhTransform()]), [0.3, -1.0]),
    (lambda t: t.ComposeTransform([t.ExpTransform(), t.ReshapeTransform((2,), (2, 1))]),
     [0.3, -1.0]),
    (lambda t: t.IndependentTransform(t.ExpTransform(), 1), [0.3, -1.0]),
    (lambda t: t.CorrCholeskyTransform(), [[0.3, -1.0, 2.0], [0.1, 0.2, -0.3]]),
    (lambda t: t.CorrCholeskyTransform(), [0.3]),
    (lambda t: t.CatTransform([t.ExpTransform(), t.TanhTransform()], -1, [1, 2]),
     [[0.3, -1.0, 2.0]]),
    (lambda t: t.CatTransform([t.ExpTransform(), t.identity_transform], 0), [0.3, -1.0]),
    (lambda t: t.CatTransform([t.IndependentTransform(t.ExpTransform(), 1),
                               t.IndependentTransform(t.TanhTransform(), 1)], -1, [1, 2]),
     [[0.3, -1.0, 2.0]]),
    (lambda t: t.StackTransform([t.ExpTransform(), t.TanhTransform()], 1),
     [[0.3, -1.0], [2.0, 0.1]]),
]


def of_normal(lib):
    d = lib.distributions
    return d.transforms.CumulativeDistributionTransform(d.Normal(
        lib.tensor(0.5, dtype=lib.float64), 2.0))


@each("make, points", TRANSFORMS + [(None, [0.3, -1.0])])
def test_transforms(make, points):
    found = []
    for lib in (tl, torch):
        transform = of_normal(lib) if make is None else make(lib.distributions.transforms)
        x = lib.tensor(points, dtype=lib.float64, requires_grad=True)
        y = transform(x)
        stretch = transform.log_abs_det_jacobian(x, y)
        g, = lib.autograd.grad(stretch.sum() + y.square().sum(), x)
        back = transform.inv(y)
        found.append([v.detach().numpy() for v in (y, stretch, g, back)]
                     + [transform.bijective, transform.domain.event_dim,
                        transform.codomain.event_dim, tuple(transform.forward_shape(x.shape))])
        np.testing.assert_allclose(back.detach().numpy(), points, rtol=1e-7)
    for ours, theirs in zip(*found):
        np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-12)


def test_transformed_and_independent_distributions():
    found = []
    for lib in (tl, torch):
        d = lib.distributions
        loc = lib.tensor([[0.5, -0.2, 0.1], [0.0, 1.0, 2.0]], dtype=lib.float64)
        base = d.Normal(loc, 1.5)
        for one in (d.Independent(base, 1), d.TransformedDistribution(
                base, [d.TanhTransform(), d.AffineTransform(0.0, 2.0)]),
                d.TransformedDistribution(d.Independent(base, 1), d.ExpTransform()),
                d.TransformedDistribution(base, d.StickBreakingTransform())):
            tail = one.event_shape[-1:] or (3,)
            value = lib.full((2, *tail), 1 / tail[0], dtype=lib.float64)
            found.append([one.log_prob(value).numpy(), tuple(one.batch_shape),
                          tuple(one.event_shape), tuple(one.rsample((5,)).shape),
                          tuple(one.expand((4, *one.batch_shape)).sample().shape)])
        squashed = d.TransformedDistribution(base, [d.AffineTransform(1.0, -2.0)])
        found.append([squashed.cdf(loc).numpy(), squashed.icdf(loc.sigmoid()).numpy()])
        found.append([d.kl_divergence(d.Independent(base, 1), d.Independent(
            d.Normal(loc * 2, 1.0), 1)).numpy(), d.kl_divergence(
                d.LogNormal(loc, 1.0), d.LogNormal(loc * 2, 2.0)).numpy()])
    half = len(found) // 2
    for ours, theirs in zip(found[:half], found[half:]):
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9)


@each("call", [
    lambda d, t: d.Normal(t(0.0), t(-1.0)), lambda d, t: d.Normal(t(float("nan")), t(1.0)),
    lambda d, t: d.Bernoulli(), lambda d, t: d.Bernoulli(t(0.5), t(0.5)),
    lambda d, t: d.Bernoulli(t(1.5)), lambda d, t: d.Categorical(t(0.5)),
    lambda d, t: d.Categorical(t([-0.5, 0.5])), lambda d, t: d.Uniform(t(1.0), t(0.0)),
    lambda d, t: d.Normal("a", 1.0), lambda d, t: d.Dirichlet(t(1.0)),
    lambda d, t: d.Normal(t([0.0, 1.0]), t([1.0, 1.0])).log_prob(t([1.0, 2.0, 3.0])),
    lambda d, t: d.Gamma(t(1.0), t(1.0)).log_prob(t(-1.0)),
    lambda d, t: d.Normal(t(0.0), t(1.0)).log_prob(1.0),
    lambda d, t: d.Bernoulli(t(0.5)).rsample(), lambda d, t: d.Geometric(t(0.0)),
    lambda d, t: d.MultivariateNormal(t([0.0, 1.0])),
    lambda d, t: d.MultivariateNormal(t([0.0, 1.0]), t([[1.0, 2.0], [2.0, 1.0]])),
    lambda d, t: d.Independent(d.Normal(t(0.0), t(1.0)), 1),
    lambda d, t: d.kl_divergence(d.Normal(0.0, 1.0), d.Bernoulli(0.5)),
    lambda d, t: d.Multinomial(t(2.0), t([0.5, 0.5])),
    lambda d, t: d.TransformedDistribution(d.Normal(0.0, 1.0), [3]),
])
def test_bad_arguments_raise_the_same_errors(call):
    errors = []
    for lib in (tl, torch):
        with pytest.raises(Exception) as error:
            call(lib.distributions, lib.tensor)
        errors.append(error.value)
    assert isinstance(errors[0], type(errors[1])), errors


def test_numbers_and_dtypes_of_parameters():
    for call in (lambda d, lib: d.Normal(0, 1), lambda d, lib: d.Normal(0.5, lib.ones(3)),
                 lambda d, lib: d.Gamma(lib.ones(2, dtype=lib.float64), 1.0),
                 lambda d, lib: d.Beta(1, 2), lambda d, lib: d.Binomial(5, lib.tensor([0.5])),
                 lambda d, lib: d.Uniform(lib.zeros(2, 1), lib.ones(3))):
        ours, theirs = (call(lib.distributions, lib) for lib in (tl, torch))
        assert tuple(ours.batch_shape) == tuple(theirs.batch_shape)
        assert str(ours.sample().dtype)[10:] == str(theirs.sample().dtype)[6:]
        assert str(ours.mean.dtype)[10:] == str(theirs.mean.dtype)[6:]


def test_mixtures():
    found = []
    for lib in (tl, torch):
        d = lib.distributions
        loc = lib.tensor([[-1.0, 2.0, 0.5], [0.0, 1.0, 3.0]], dtype=lib.float64, requires_grad=True)
        chances = lib.tensor([0.2, 0.5, 0.3], dtype=lib.float64)
        mixture = d.MixtureSameFamily(d.Categorical(chances.expand(2, 3)), d.Normal(loc, 1.5))
        value = lib.tensor([0.3, -1.0], dtype=lib.float64)
        log_prob = mixture.log_prob(value)
        g, = lib.autograd.grad(log_prob.sum(), loc)
        vectors = d.MixtureSameFamily(d.Categorical(chances[:2]), d.Independent(
            d.Normal(loc, 1.0), 1))
        found.append([x.detach().numpy() for x in (
            log_prob, g, mixture.cdf(value), mixture.mean, mixture.variance, vectors.mean,
            vectors.log_prob(lib.ones(3, dtype=lib.float64)))] + [
            tuple(mixture.sample((4,)).shape), tuple(vectors.sample((4, 2)).shape),
            tuple(mixture.expand((3, 2)).sample().shape)])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)


def test_transforms_to_constraints():
    x = [0.3, -1.0, 2.0]
    for name, args in (("real", ()), ("positive", ()), ("unit_interval", ()), ("simplex", ()),
                       ("real_vector", ()), ("greater_than", (2.0,)), ("less_than", (2.0,)),
                       ("interval", (1.0, 4.0)), ("nonnegative", ()), ("corr_cholesky", ())):
        for registry in ("biject_to", "transform_to"):
            found = []
            for lib in (tl, torch):
                constraint = getattr(lib.distributions.constraints, name)
                constraint = constraint(*args) if args else constraint
                transform = getattr(lib.distributions, registry)(constraint)
                y = transform(lib.tensor(x, dtype=lib.float64))
                assert constraint.check(y).all()
                found.append(y.numpy())
            np.testing.assert_allclose(*found, rtol=1e-9)


@each("shape", [(), (5,), (4, 5), (2, 4, 5)])
@each("kind", ["loc", "scale", "exponent"])
def test_parameters_of_transforms_widen_distributions(kind, shape):
    found = []
    for lib in (tl, torch):
        d, wide = lib.distributions, lib.ones(4, 5)
        transform = (d.PowerTransform(wide) if kind == "exponent" else
                     d.AffineTransform(**{"loc": 0.0, "scale": 1.0, kind: wide}))
        made = d.TransformedDistribution(d.HalfNormal(lib.ones(shape)), [transform])
        found.append([tuple(x) for x in (
            made.batch_shape, made.sample((3,)).shape, transform.forward_shape(lib.Size(shape)),
            transform.inverse_shape(lib.Size(shape)), made.expand((3, 2, 4, 5)).sample().shape)])
    assert found[0] == found[1]


def test_what_classes_know_of_their_values():
    def known(lib, name):
        facts = []
        for fact in ("is_discrete", "event_dim"):
            try:
                facts.append(getattr(getattr(lib.distributions, name).support, fact))
            except NotImplementedError:
                facts.append("depends")
        return facts
    names = [name for name, value in vars(torch.distributions).items()
             if isinstance(value, type) and issubclass(value, torch.distributions.Distribution)
             and name not in ("Distribution", "ExponentialFamily")]
    assert {n: known(tl, n) for n in names} == {n: known(torch, n) for n in names}
    assert known(tl, "Independent") == ["depends", "depends"]
