"""Distributions: values are drawn from their densities, with the gradients of their parameters."""

import contextlib
import copy
import doctest
import pkgutil
from importlib import import_module

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib import distributions as d
from tensorlib.func import vmap
from tensorlib.testing import assert_close, gradcheck, gradgradcheck

N = 20_000


@pytest.fixture(autouse=True)
def seeded():
    before = tl.get_rng_state()
    tl.manual_seed(31)
    yield
    tl.set_rng_state(before)


CONTINUOUS = [
    d.Normal(1.0, 2.0), d.LogNormal(0.5, 0.7), d.Cauchy(1.0, 2.0), d.Laplace(-1.0, 3.0),
    d.Gumbel(0.5, 2.0), d.Uniform(-1.0, 3.0), d.HalfNormal(2.0), d.HalfCauchy(1.5),
    d.Exponential(0.3), d.Weibull(2.0, 0.7), d.Pareto(1.0, 2.5), d.InverseGamma(3.0, 2.0),
    d.MixtureSameFamily(d.Categorical(tl.tensor([0.3, 0.7])), d.Normal(tl.tensor([-2., 1.]), 1.0)),
    d.Gamma(0.6, 2.0), d.Gamma(7.0, 0.5), d.Chi2(3.0), d.Kumaraswamy(0.7, 2.5),
    d.ContinuousBernoulli(0.2), d.ContinuousBernoulli(0.5), d.GeneralizedPareto(1.0, 2.0, -0.5),
    d.GeneralizedPareto(1.0, 2.0, 0.0), d.GeneralizedPareto(1.0, 2.0, 1.3),
    d.TransformedDistribution(d.Normal(0.0, 1.0), [d.AffineTransform(1.0, -2.0),
                                                   d.SigmoidTransform()]),
]
NUMBERS = [
    d.Bernoulli(0.3), d.Bernoulli(logits=0.5), d.Binomial(9, 0.4), d.NegativeBinomial(3.0, 0.6),
    d.Geometric(0.3), d.Poisson(3.5), d.Categorical(tl.tensor([0.2, 0.0, 0.5, 0.3])),
]


@each("distribution", CONTINUOUS, ids=lambda x: type(x).__name__)
def test_values_are_distributed_as_the_density_says(distribution):
    drawn = distribution.sample((N,))
    below = np.sort(distribution.cdf(drawn).numpy())
    assert abs(below - (np.arange(N) + 0.5) / N).max() < 2 / np.sqrt(N)


@each("distribution", NUMBERS, ids=lambda x: type(x).__name__)
def test_numbers_come_up_as_often_as_their_chances_say(distribution):
    drawn = distribution.sample((N,)).numpy().astype(int)
    some = tl.arange(min(drawn.max() + 1, 60))
    chances = distribution.log_prob(some if type(distribution) is d.Categorical else some.float())
    counts = np.bincount(drawn, minlength=len(some))[:len(some)]
    expected = N * chances.exp().double().numpy()
    assert (abs(counts - expected) < 5 * np.sqrt(expected + 1)).all()


@each("distribution", [
    d.StudentT(5.0, 1.0, 2.0), d.Beta(0.5, 2.0), d.Beta(5.0, 3.0),
    d.Dirichlet(tl.tensor([0.3, 2.0, 5.0])), d.Multinomial(6, tl.tensor([0.2, 0.5, 0.3])),
    d.OneHotCategorical(tl.tensor([0.2, 0.5, 0.3])),
    d.MultivariateNormal(tl.tensor([1.0, -1.0]), tl.tensor([[2.0, 0.5], [0.5, 1.0]])),
    d.Poisson(40.0), d.Binomial(100, 0.7), d.NegativeBinomial(5.0, 0.3),
    d.FisherSnedecor(3.0, 15.0), d.LowRankMultivariateNormal(
        tl.tensor([1.0, -1.0]), tl.tensor([[0.5], [-2.0]]), tl.tensor([1.0, 0.3])),
    d.Wishart(4.5, tl.tensor([[2.0, 0.5], [0.5, 1.0]])),
], ids=lambda x: type(x).__name__)
def test_values_have_the_mean_and_the_variance(distribution):
    drawn = distribution.sample((N,)).double()
    spread = distribution.stddev.double()
    assert ((drawn.mean(0) - distribution.mean).abs() < 5 * spread / N**0.5).all()
    assert_close(drawn.var(0), distribution.variance.double(), rtol=0.15, atol=0.01)


@each("make, moment", [
    (lambda a: d.Gamma(a, 1.0), lambda a: a), (lambda a: d.Gamma(a, 2.0), lambda a: a / 2),
    (lambda a: d.Beta(a, 2.0), lambda a: a / (a + 2)), (lambda a: d.Beta(3.0, a),
                                     lambda a: 3 / (3 + a)),
    (lambda a: d.Dirichlet(tl.stack([a, a * 0 + 1])), lambda a: a / (a + 1)),
    (lambda a: d.Exponential(a), lambda a: 1 / a),
    (lambda a: d.StudentT(a + 4, a, 1.0), lambda a: a), (lambda a: d.Chi2(a), lambda a: a),
])
@each("at", [0.4, 1.7, 30.0])
def test_the_gradient_of_values_is_that_of_their_mean(make, moment, at):
    a = tl.tensor(at, requires_grad=True)
    drawn = make(a).rsample((N,))
    first = drawn if drawn.ndim == 1 else drawn[:, 0]
    g, = tl.autograd.grad(first.mean(), a)
    b = tl.tensor(at, requires_grad=True)
    exact, = tl.autograd.grad(moment(b), b)
    assert abs(g - exact) < 0.12 * abs(exact) + 0.003


def test_small_concentrations_give_shares():
    x = d.Dirichlet(tl.full((1000, 3), 1e-3)).rsample()
    assert x.isfinite().all() and ((x.sum(-1) - 1).abs() < 1e-5).all()
    a = tl.full((1000,), 1e-3, requires_grad=True)
    d.Beta(a, a).rsample().sum().backward()
    assert a.grad.isfinite().all()


@pytest.mark.parametrize("dtype", [tl.float32, tl.float64])
@pytest.mark.parametrize("make", [lambda a: d.Beta(a, a), lambda a: d.Dirichlet(a.expand(3))])
def test_shares_are_never_0_nor_1(make, dtype):
    """There the density of a small concentration is infinite."""
    shares = make(tl.tensor(1e-2, dtype=dtype))
    drawn = shares.sample((1000,))
    assert 0 < drawn.min() < 1e-4 and 0.999 < drawn.max() < 1
    assert shares.log_prob(drawn).isfinite().all()


def test_a_second_derivative_of_gamma_numbers_is_refused():
    a = tl.tensor(2.0, requires_grad=True)
    g, = tl.autograd.grad(d.Gamma(a, 1.0).rsample(), a, create_graph=True)
    with pytest.raises(RuntimeError):
        tl.autograd.grad(g, a)


def test_factors_have_gradients():
    root = tl.tensor(np.random.default_rng(0).normal(size=(2, 3, 3)), requires_grad=True)

    def log_prob(root, loc):
        covariance = root @ root.mT + tl.eye(3, dtype=tl.float64)
        one = d.MultivariateNormal(loc, covariance, validate_args=False)
        other = d.MultivariateNormal(loc, precision_matrix=covariance, validate_args=False)
        return one.log_prob(loc * 0.3) + other.log_prob(loc * 0.5)

    loc = tl.tensor([0.5, -1.0, 2.0], dtype=tl.float64, requires_grad=True)
    assert gradcheck(log_prob, (root, loc)) and gradgradcheck(log_prob, (root, loc))


def test_three_forms_of_a_covariance_are_one():
    covariance = tl.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=tl.float64)
    one = d.MultivariateNormal(tl.zeros(2, dtype=tl.float64), covariance)
    for name in ("covariance_matrix", "precision_matrix", "scale_tril"):
        other = d.MultivariateNormal(one.loc, **{name: getattr(one, name)})
        assert_close(other.covariance_matrix, covariance)
        assert_close(other.expand((3,)).precision_matrix[2], one.precision_matrix)


def test_rules_of_divergences_follow_classes():
    class Mine(d.Normal):
        pass

    p, q = Mine(0.0, 1.0), d.Normal(1.0, 1.0)
    assert d.kl_divergence(p, q) == 0.5
    d.register_kl(Mine, d.Normal)(lambda p, q: tl.tensor(7.0))
    assert d.kl_divergence(p, q) == 7 and d.kl_divergence(q, p) == 0.5
    with pytest.raises(NotImplementedError, match="No KL"):
        d.kl_divergence(p, d.Poisson(1.0))
    with pytest.raises(TypeError, match="Distribution subclass"):
        d.register_kl(3, d.Normal)


def test_arguments_are_not_checked_where_that_is_not_wanted():
    assert d.Normal(0.0, -1.0, validate_args=False).scale == -1
    d.Distribution.set_default_validate_args(False)
    try:
        assert d.Normal(0.0, -1.0).scale == -1
    finally:
        d.Distribution.set_default_validate_args(True)
    with pytest.raises(ValueError, match="bool"):
        d.Distribution.set_default_validate_args("yes")


FAMILY = {type(x).__name__: x for x in [
    *CONTINUOUS, *NUMBERS, d.Beta(1.0, 2.0), d.Dirichlet(tl.ones(3)), d.StudentT(3.0),
    d.Multinomial(3, tl.ones(2)), d.OneHotCategorical(tl.ones(2)),
    d.MultivariateNormal(tl.zeros(2), tl.eye(2)), d.Independent(d.Normal(tl.zeros(3), 1.0), 1),
    d.RelaxedBernoulli(tl.tensor(0.5), 0.3), d.RelaxedOneHotCategorical(tl.tensor(0.5), tl.ones(3)),
]}
WHOLE = each("distribution", FAMILY.values(), ids=list(FAMILY))


@WHOLE
@each("checks", [True, False])
def test_a_larger_batch_is_of_the_same_class_and_checks_as_much(distribution, checks):
    one = copy.copy(distribution)
    one._validate_args = checks
    other = one.expand((4, *one.batch_shape))
    assert type(other) is type(one) and other._validate_args is checks
    assert other.batch_shape == (4, *one.batch_shape) and other.event_shape == one.event_shape
    value = one.sample()
    assert other.log_prob(value).equal(one.log_prob(value).expand(other.batch_shape))


def figures(distribution):
    """Those that a distribution has, by name."""
    found = {}
    for name in ("mean", "variance", "stddev", "mode", "entropy", "perplexity"):
        with contextlib.suppress(NotImplementedError):
            value = getattr(distribution, name)
            found[name] = value() if callable(value) else value
    return found


@WHOLE
def test_figures_of_a_larger_batch_are_those_of_each(distribution):
    one = figures(distribution)
    many = figures(distribution.expand((4, 2, *distribution.batch_shape)))
    assert one.keys() == many.keys()
    for name in one:
        assert many[name].shape == (4, 2, *one[name].shape)
        assert_close(many[name], one[name].expand(many[name].shape), equal_nan=True)


@WHOLE
def test_values_of_another_shape_or_type_are_refused(distribution):
    larger = distribution.expand((3,))
    value = larger.sample()
    with pytest.raises(ValueError, match="not broadcastable"):
        larger.log_prob(value[:2])
    with pytest.raises(ValueError, match="must be a Tensor"):
        larger.log_prob([1.0])


@each("distribution", [d.Gamma(2.0, 1.5), d.Chi2(tl.tensor([1.0, 3.0]))],
      ids=repr)
@each("value", [0, 1, 0.5, True])
def test_gammas_take_numbers_as_values(distribution, value):
    found = distribution.log_prob(value)
    assert tl.equal(found, distribution.log_prob(tl.tensor(float(value))))


@pytest.mark.parametrize("n", [-1, 2])
def test_dims_that_a_distribution_does_not_have_are_no_events(n):
    with pytest.raises(ValueError, match="reinterpreted_batch_ndims"):
        d.Independent(d.Normal(tl.zeros(3), 1.0), n)


def test_each_mixture_of_a_batch_draws_a_component_of_its_own():
    """Also where all have the same chances of these."""
    components = d.Normal(tl.tensor([[0.0, 100.0], [0.0, 100.0]]), 1.0)
    drawn = d.MixtureSameFamily(d.Categorical(tl.ones(2)), components).sample((N,)) > 50
    alike = (drawn[:, 0] == drawn[:, 1]).double().mean()
    assert drawn.shape == (N, 2) and abs(alike - 0.5) < 5 * 0.5 / N**0.5


def test_chances_up_to_the_edge_of_a_support():
    """It need not belong to the support itself."""
    assert d.LogNormal(0.0, 1.0).cdf(tl.tensor(0.0)) == 0
    with pytest.raises(ValueError, match="within the support"):
        d.LogNormal(0.0, 1.0).cdf(tl.tensor(-1.0))


def test_a_batch_of_densities_and_draws():
    x = tl.linspace(-2, 2, 5)
    assert_close(vmap(lambda v: d.Normal(0.0, 1.0, validate_args=False).log_prob(v))(x),
                 d.Normal(0.0, 1.0).log_prob(x))
    drawn = vmap(lambda v: d.Normal(0.0, 1.0).rsample((3,)) + v, randomness="different")(x)
    assert drawn.shape == (5, 3) and (drawn[0] - x[0] != drawn[1] - x[1]).all()


def test_a_transform_keeps_its_last_value():
    calls = []

    class Counting(d.ExpTransform):
        def _inverse(self, y):
            calls.append(y)
            return super()._inverse(y)

    transform = Counting(cache_size=1)
    x = tl.ones(2)
    assert transform.inv(transform(x)) is x and not calls
    assert transform.with_cache(0).inv(x).equal(x.log()) and len(calls) == 1
    assert transform.inv.inv is transform and d.ExpTransform() == d.ExpTransform()


def test_texts():
    assert repr(d.Normal(0.0, 1.0)) == "Normal(loc: 0.0, scale: 1.0)"
    assert repr(d.constraints.interval(0, 1)) == "Interval(lower_bound=0, upper_bound=1)"
    assert repr(d.constraints.greater_than_eq(2)) == "GreaterThanEq(lower_bound=2)"
    assert repr(d.constraints.real_vector) == "IndependentConstraint(Real(), 1)"
    columns = d.Normal(tl.zeros(2), tl.ones(2))
    assert repr(columns) == "Normal(loc: tensorlib.Size([2]), scale: tensorlib.Size([2]))"
    mixture = d.MixtureSameFamily(d.Categorical(probs=tl.ones(2)), columns)
    assert repr(mixture) == ("MixtureSameFamily(\n  Categorical(probs: tensorlib.Size([2])),\n  "
                             f"{columns!r})")
    both = d.ComposeTransform([d.ExpTransform(), d.AffineTransform(1.0, 2.0)])
    assert repr(both) == "ComposeTransform(\n    ExpTransform(),\n    AffineTransform()\n)"
    assert "Real()" in str(pytest.raises(ValueError, d.Normal, float("nan"), 1.0).value)


def test_examples():
    for module in pkgutil.iter_modules(d.__path__):
        result = doctest.testmod(import_module(f"{d.__name__}.{module.name}"),
                                 extraglobs={"tensorlib": tl})
        assert not result.failed
    package = import_module("tensorlib.distributions")
    assert not doctest.testmod(package, extraglobs={"tensorlib": tl}).failed
    special = import_module("tensorlib.special")
    assert not doctest.testmod(special, extraglobs={"tensorlib": tl}).failed


def test_a_subclass_expands_what_its_own_expand_began():
    class Mine(d.LogNormal):
        def __init__(self, loc, scale, note):
            self.note = note
            super().__init__(loc, scale)

        def expand(self, batch_shape, _instance=None):
            new = self._get_checked_instance(Mine, _instance)
            new.note = self.note + " larger"
            return super().expand(batch_shape, _instance=new)

    class Other(d.Normal):
        def __init__(self, loc):
            super().__init__(loc, 1.0)

    larger = Mine(0.0, 1.0, "a").expand((3,))
    assert type(larger) is Mine and larger.batch_shape == (3,) and larger.note == "a larger"
    x = tl.tensor([0.5, 1.0, 2.0])
    tl.testing.assert_close(larger.log_prob(x), d.LogNormal(0.0, 1.0).log_prob(x))
    with pytest.raises(NotImplementedError, match=r"Other of Normal.*custom .expand\(\)"):
        Other(0.0)._get_checked_instance(d.Normal)


def test_lazy_properties_can_be_told():
    lazy = d.utils.lazy_property
    assert isinstance(vars(d.MultivariateNormal)["covariance_matrix"], lazy)

    class Mine:
        calls = 0

        @lazy
        def value(self):
            """The value."""
            self.calls += 1
            return tl.is_grad_enabled()

    mine = Mine()
    with tl.no_grad():
        assert mine.value and mine.value
    assert mine.calls == 1 and Mine.value.__doc__ == "The value."


def test_parameters_of_the_whole_shape_are_kept_themselves():
    loc, scale = tl.zeros(2, requires_grad=True), tl.ones(2, requires_grad=True)
    p = d.Normal(loc, scale)
    assert p.loc is loc and p.scale is scale and d.Normal(loc, 1.0).loc is loc
    assert d.Exponential(scale).rate is scale and d.Bernoulli(logits=loc).logits is loc
    p.log_prob(tl.ones(2)).sum().backward()
    assert p.loc.grad.tolist() == [1, 1]
    assert not d.Normal(loc, tl.ones(3, 2)).loc.is_leaf


def test_a_negative_number_of_draws_is_refused():
    with pytest.raises(ValueError, match="Expected parameter total_count"):
        d.Multinomial(-1, tl.ones(2))
