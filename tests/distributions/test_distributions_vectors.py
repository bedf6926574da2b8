"""Distributions of vectors and of other distributions; what each of them refuses."""

import math

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib import distributions as d
from tensorlib.distributions import constraints, discrete
from tensorlib.testing import assert_close

inf = math.inf
COVARIANCE = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, -0.3], [0.1, -0.3, 1.5]])
SIZE = "tensorlib.Size([2, 3])"
OTHER = np.array([[1.0, 0.2, 0.0], [0.2, 3.0, 0.4], [0.0, 0.4, 2.0]])


def wide(x):
    return tl.tensor(x, dtype=tl.float64)


def normal(loc, covariance):
    return d.MultivariateNormal(wide(loc), wide(covariance))


def test_normal_vectors():
    loc, other = [1.0, -1.0, 0.5], [0.0, 0.5, 2.0]
    p, q = normal(loc, COVARIANCE), normal(other, OTHER)
    assert p.mean is p.loc and p.mode is p.loc
    entropy = 0.5 * np.linalg.slogdet(2 * np.pi * np.e * COVARIANCE)[1]
    assert p.entropy().item() == pytest.approx(entropy)
    assert p.expand((2, 4)).entropy().shape == (2, 4)
    assert_close(p.variance, wide(np.diag(COVARIANCE)))
    away = np.subtract(other, loc)
    between = 0.5 * (np.trace(np.linalg.solve(OTHER, COVARIANCE)) + away @ np.linalg.solve(
        OTHER, away) - 3 + np.linalg.slogdet(OTHER)[1] - np.linalg.slogdet(COVARIANCE)[1])
    assert d.kl_divergence(p, q).item() == pytest.approx(between)
    assert d.kl_divergence(p.expand((4,)), q).tolist() == pytest.approx([between] * 4)
    assert d.kl_divergence(p, q.expand((4,))).tolist() == pytest.approx([between] * 4)


def test_shares_are_shares_of_what_is_left():
    """Of shares of a Dirichlet distribution the first is a beta number, and so is each next one
    of what those before it left."""
    def parts(a):
        return d.Beta(wide(a[0]), wide(a[1] + a[2])), d.Beta(wide(a[1]), wide(a[2]))

    a, b = [0.7, 2.5, 1.5], [3.0, 2.0, 1.1]
    p, q = d.Dirichlet(wide([a, b])), d.Dirichlet(wide([b, a]))
    divergences = [sum(d.kl_divergence(one, other).item() for one, other in zip(parts(x), parts(y)))
                   for x, y in ((a, b), (b, a))]
    assert d.kl_divergence(p, q).tolist() == pytest.approx(divergences)
    many = d.kl_divergence(p.expand((4, 2)), q)
    assert many.shape == (4, 2) and many[3].tolist() == pytest.approx(divergences)
    entropies = [sum(part.entropy().item() for part in parts(x))
                 + (wide(x[1] + x[2]).digamma() - wide(sum(x)).digamma()).item() for x in (a, b)]
    assert p.entropy().tolist() == pytest.approx(entropies)


def test_modes_of_shares():
    found = d.Dirichlet(wide([[3.0, 2.0, 2.0], [0.5, 2.0, 0.7], [1.0, 1.0, 1.0]])).mode
    assert found[:2].tolist() == [[0.5, 0.25, 0.25], [0.0, 1.0, 0.0]] and found[2].isnan().all()
    found = d.Dirichlet(wide([[0.5, 0.7, 0.9], [3.0, 2.0, 2.0]])).mode
    assert found.tolist() == [[1.0, 0.0, 0.0], [0.5, 0.25, 0.25]]


def test_dims_of_an_event():
    base = d.Normal(wide([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]), 1.5)
    for n in (0, 1, 2):
        p = d.Independent(base, n)
        assert p.has_rsample and p.rsample((4,)).shape == (4, 2, 3)
        assert p.mean is base.loc and p.mode is base.loc and p.variance.equal(base.variance)
        entropy = base.entropy()[0, 0].item()
        assert p.entropy().flatten().tolist() == pytest.approx(
            [entropy * (1, 3, 6)[n]] * (6, 2, 1)[n])
        assert p.support.event_dim == n
        assert repr(p) == f"Independent(Normal(loc: {SIZE}, scale: {SIZE}), {n})"
        q = d.Independent(d.Normal(base.loc + 1.5, 1.5), n)
        assert d.kl_divergence(p, q).flatten().tolist() == pytest.approx(
            [0.5 * (1, 3, 6)[n]] * (6, 2, 1)[n])
    assert d.Independent(base, 0).support is constraints.real
    assert d.Independent(base, 1).rsample().requires_grad is False
    loc = tl.zeros(3, requires_grad=True)
    assert d.Independent(d.Normal(loc, 1.0), 1).rsample().requires_grad


def test_dims_of_an_event_of_what_can_be_enumerated():
    base = d.Bernoulli(tl.tensor([0.2, 0.5]))
    none, one = d.Independent(base, 0), d.Independent(base, 1)
    assert not none.has_rsample and none.has_enumerate_support and not one.has_enumerate_support
    assert none.enumerate_support().tolist() == [[0, 0], [1, 1]]
    assert none.enumerate_support(expand=False).tolist() == [[0], [1]]
    assert not d.Independent(d.Normal(tl.zeros(2), 1.0), 0).has_enumerate_support
    with pytest.raises(NotImplementedError, match="Enumeration over cartesian product"):
        one.enumerate_support()


def test_mixtures():
    chances = wide([0.2, 0.5, 0.3])
    loc = wide([[-1.0, 2.0, 0.5], [0.0, 1.0, 3.0]])
    classes, components = d.Categorical(chances), d.Normal(loc, wide(1.5))
    p = d.MixtureSameFamily(classes, components)
    assert p.mixture_distribution is classes and p.component_distribution is components
    mean = (chances * loc).sum(-1)
    assert_close(p.mean, mean)
    assert_close(p.variance, (chances * (1.5**2 + loc**2)).sum(-1) - mean**2)
    vectors = d.MixtureSameFamily(d.Categorical(chances[:2]), d.Independent(components, 1))
    share = 2 / 7
    assert_close(vectors.mean, share * loc[0] + (1 - share) * loc[1])
    assert_close(vectors.variance,
                 1.5**2 + share * (1 - share) * (loc[0] - loc[1])**2)
    assert repr(p) == ("MixtureSameFamily(\n  Categorical(probs: tensorlib.Size([3])),\n"
                       f"  Normal(loc: {SIZE}, scale: {SIZE}))")


def test_transformed_distributions():
    base = d.Normal(wide([0.0, 1.0]), wide(1.0))
    plain = d.TransformedDistribution(base, [])
    value, chance = wide(1.5), wide(0.3)
    assert plain.support is constraints.real and plain.log_prob(value).equal(base.log_prob(value))
    assert d.TransformedDistribution(base, d.ExpTransform()).support is constraints.positive
    held = d.TransformedDistribution(d.Independent(base, 1), d.ExpTransform()).support
    assert held.event_dim == 1 and held.base_constraint is constraints.positive
    turned = d.TransformedDistribution(base, d.AffineTransform(0.5, wide([2.0, -2.0])))
    assert turned.has_rsample and turned.rsample((4,)).shape == (4, 2)
    assert_close(turned.cdf(value), tl.stack([base.cdf(wide(0.5))[0], 1 - base.cdf(wide(-0.5))[1]]))
    assert_close(turned.icdf(chance), tl.stack([0.5 + 2 * base.icdf(chance)[0],
                                                0.5 - 2 * base.icdf(1 - chance)[1]]))
    assert_close(turned.cdf(turned.icdf(chance)), wide([0.3, 0.3]))
    counts = d.TransformedDistribution(d.Bernoulli(0.5), d.AffineTransform(1.0, 2.0))
    assert not counts.has_rsample and set(counts.sample((50,)).tolist()) == {1.0, 3.0}
    assert repr(plain) == (
        "TransformedDistribution(Normal(loc: tensorlib.Size([2]), scale: tensorlib.Size([2])), [])")
    p = d.LogNormal(0.5, 2.0)
    assert (p.loc, p.scale) == (0.5, 2) and repr(p) == "LogNormal(loc: 0.5, scale: 2.0)"


def test_classes_are_searched_for_where_there_are_many(monkeypatch):
    p = d.Categorical(tl.tensor([[0.2, 0.0, 0.8], [1.0, 0.0, 0.0]])).expand((4, 2))
    monkeypatch.setattr(discrete, "SEARCHED", p.batch_shape.numel() * 3 * 600 - 1)
    called = []
    monkeypatch.setattr(tl, "multinomial", lambda *given, found=tl.multinomial: (
        called.append(given[1:]), found(*given))[1])
    tl.manual_seed(5)
    drawn = p.sample((20, 30))
    assert called == [(600, True)] and drawn.shape == (20, 30, 4, 2) and drawn.dtype == tl.int64
    assert (drawn[..., 1] == 0).all() and set(drawn[..., 0].flatten().tolist()) == {0, 2}
    assert abs((drawn[..., 0] == 2).double().mean() - 0.8) < 5 * 0.4 / 2400**0.5
    p.sample((20, 29))
    assert called == [(600, True)]


def test_vectors_of_classes_with_the_gradient_of_chances():
    chances = tl.tensor([0.25, 0.75], requires_grad=True)
    p = d.OneHotCategoricalStraightThrough(chances)
    assert p.has_rsample and not d.OneHotCategorical(chances).has_rsample
    drawn = p.rsample((100,))
    assert not p.sample().requires_grad and drawn.detach().unique().tolist() == [0.0, 1.0]
    drawn[:, 1].sum().backward()
    assert_close(chances.grad, 100 * tl.tensor([-0.75, 0.25]))        # of p1 = c1 / (c0 + c1)


@pytest.mark.parametrize("p, shape", [
    (d.Bernoulli(tl.tensor([0.5])), (1,)), (d.Bernoulli(logits=tl.ones(2)), (2,)),
    (d.Binomial(3, tl.ones(2, 1)), (2, 1)), (d.Multinomial(3, tl.ones(4)), (4,)),
    (d.OneHotCategorical(logits=tl.ones(2, 5)), (2, 5)), (d.Categorical(tl.ones(2, 5)), (2, 5))])
def test_shapes_of_parameters(p, shape):
    assert p.param_shape == shape


def test_a_larger_batch_computes_anew_what_was_computed():
    class Halved(d.Normal):
        @discrete.derived
        def half(self):
            return self.scale / 2

    one = Halved(0.0, 4.0)
    assert one.half == 2
    other = one.expand((3,))
    assert other.half.tolist() == [2, 2, 2] and one.half.ndim == 0
    bernoulli = d.Bernoulli(0.5)
    assert bernoulli.logits == 0 and bernoulli.expand((2,)).logits.tolist() == [0, 0]


def test_relaxed_classes_have_chances_and_their_logarithms():
    chances = tl.tensor([0.2, 0.5, 0.3])
    assert_close(d.RelaxedOneHotCategorical(0.5, logits=chances.log() + 3).probs, chances)
    assert_close(d.RelaxedOneHotCategorical(0.5, 2 * chances).logits, chances.log())
    assert_close(d.RelaxedBernoulli(0.5, logits=chances.logit()).probs, chances)
    assert_close(d.RelaxedBernoulli(0.5, chances).logits, chances.logit())
    assert d.RelaxedBernoulli(0.5, chances).temperature == 0.5


class Bare(d.Distribution):
    """With nothing of its own."""

    arg_constraints = {}


@each("call", [
    lambda p: p.support, lambda p: p.mean, lambda p: p.variance, lambda p: p.stddev,
    lambda p: p.log_prob(tl.ones(())), lambda p: p.cdf(tl.ones(())), lambda p: p.icdf(tl.ones(())),
    lambda p: p.enumerate_support(), lambda p: p.entropy(), lambda p: p.perplexity(),
    lambda p: d.Distribution(), lambda p: d.distribution.Distribution.arg_constraints.fget(p)])
def test_what_a_distribution_must_say_itself(call):
    with pytest.raises(NotImplementedError):
        call(Bare())


def test_values_that_no_support_is_known_of_are_taken():
    class Free(Bare):
        support = constraints.dependent

    Free()._validate_sample(tl.tensor(math.nan))
    free = Free()
    free.arg_constraints, free.more = {"more": constraints.real, "absent": constraints.real}, "a"
    assert repr(free) == "Free(more: a)"
    with pytest.raises(ValueError, match="must be a Tensor"):
        Free()._validate_sample(3)


def test_locations_and_scales_need_values_of_their_own():
    with pytest.raises(NotImplementedError):
        d.location.LocationScale(0.0, 1.0).sample()


PAIR = tl.tensor([0.5, 0.5])
NORMALS = d.Normal(tl.zeros(2), 1.0)
CLASSES = d.Categorical(tl.ones(2))
NOT_BOTH = "either probs or logits must be given, but not both"
CHANCES = [d.Bernoulli, d.Geometric, d.Categorical, d.OneHotCategorical, d.Multinomial, d.Binomial,
           d.NegativeBinomial, lambda **given: d.RelaxedBernoulli(PAIR, **given),
           lambda **given: d.RelaxedOneHotCategorical(PAIR, **given)]


@each("make", CHANCES)
def test_chances_are_given_in_one_way(make):
    make(probs=PAIR), make(logits=PAIR)
    for given in ({}, {"probs": PAIR, "logits": PAIR}):
        with pytest.raises(ValueError, match=NOT_BOTH):
            make(**given)


REFUSED = [
    (lambda: d.Normal("a", 1.0), ValueError, "Number or Tensor, got str, float"),
    (lambda: d.Normal([0.0], tl.ones(1)), ValueError, "Number or Tensor, got list, Tensor"),
    (lambda: d.Uniform(1.0, 1.0), ValueError, "Uniform is not defined when low>= high"),
    (lambda: d.Uniform(PAIR, tl.tensor([1.0, 0.0])), ValueError, "not defined when low>= high"),
    (lambda: d.Geometric(tl.zeros(1)), ValueError, "Geometric to be positive"),
    (lambda: d.Categorical(tl.tensor(0.5)), ValueError, "`probs` parameter must be at least one-d"),
    (lambda: d.Categorical(logits=tl.tensor(0.5)), ValueError, "`logits` parameter must be at lea"),
    (lambda: d.Categorical([0.5, 0.5]), TypeError, "Categorical: probs must be a Tensor, not list"),
    (lambda: d.Dirichlet([1.0]), TypeError, "Dirichlet: concentration must be a Tensor, not list"),
    (lambda: d.Dirichlet(tl.tensor(1.0)), ValueError, "`concentration` parameter must be at leas"),
    (lambda: d.Multinomial(tl.tensor(3), PAIR), NotImplementedError, "inhomogeneous total_count"),
    (lambda: d.Binomial(tl.tensor([3, 4]), PAIR).entropy(), NotImplementedError,
     "Inhomogeneous total count not supported by `entropy`"),
    (lambda: d.Binomial(tl.tensor([3, 4]), PAIR).enumerate_support(), NotImplementedError,
     "Inhomogeneous total count not supported by `enumerate_support`"),
    (lambda: d.MultivariateNormal([0.0], tl.eye(1)), TypeError, "loc must be a Tensor, not list"),
    (lambda: d.Wishart(3.0, [1.0]), TypeError, "covariance_matrix must be a Tensor, not list"),
    (lambda: d.MultivariateNormal(PAIR, [1.0]), TypeError, "covariance_matrix must be a Tensor"),
    (lambda: d.MultivariateNormal(tl.tensor(0.0), tl.eye(1)), ValueError, "loc must be at least"),
    (lambda: d.MultivariateNormal(PAIR), ValueError, "Exactly one of covariance_matrix"),
    (lambda: d.MultivariateNormal(PAIR, tl.eye(2), tl.eye(2)), ValueError, "Exactly one of covar"),
    (lambda: d.MultivariateNormal(PAIR, precision_matrix=PAIR), ValueError,
     "precision_matrix must be at least two-dimensional"),
    (lambda: d.MultivariateNormal(PAIR, -tl.eye(2)), ValueError, "constraint PositiveDefinite"),
    (lambda: d.MultivariateNormal(PAIR, -tl.eye(2), validate_args=False), RuntimeError,
     "the input is not positive-definite"),
    (lambda: d.MultivariateNormal(PAIR, tl.eye(2)).log_prob(tl.ones(3)), ValueError,
     r"must match event_shape: \(3,\) vs \(2,\)"),
    (lambda: d.Independent(3, 1), TypeError, "base_distribution must be a Distribution, not int"),
    (lambda: d.MixtureSameFamily(d.Bernoulli(0.5), NORMALS), ValueError, "instance of Categorical"),
    (lambda: d.MixtureSameFamily(CLASSES, 3), ValueError, "an instance of Distribution"),
    (lambda: d.MixtureSameFamily(CLASSES, d.Normal(tl.zeros(3), 1.0)), ValueError,
     r"`mixture_distribution` has 2 components, but .* batch_shape \(3,\)"),
    (lambda: d.MixtureSameFamily(CLASSES, d.Normal(0.0, 1.0)), ValueError, r"has batch_shape \(\)"),
    (lambda: d.MixtureSameFamily(CLASSES.expand((3,)), NORMALS.expand((4, 2))), ValueError,
     r"\(\(3,\)\) is not compatible with `component_distribution.batch_shape` \(\(4, 2\)\)"),
    (lambda: d.TransformedDistribution(NORMALS, [3]), ValueError, r"list of Transforms, got \[3\]"),
    (lambda: d.TransformedDistribution(NORMALS, 3), ValueError, "list of Transforms, got 3"),
    (lambda: d.TransformedDistribution(3, []), TypeError, "must be a Distribution, not int"),
    (lambda: d.TransformedDistribution(d.Normal(0.0, 1.0), d.StickBreakingTransform()), ValueError,
     r"needs to have shape with size at least 1, but got \(\)"),
    (lambda: d.Bernoulli(0.5).rsample(), NotImplementedError, "Bernoulli has no rsample"),
    (lambda: d.Multinomial(3, PAIR).mode, NotImplementedError, "Multinomial does not implement m"),
    (lambda: d.kl_divergence(d.MultivariateNormal(PAIR, tl.eye(2)), d.MultivariateNormal(
        tl.ones(3), tl.eye(3))), ValueError, "Normals with different event shapes"),
    (lambda: d.kl_divergence(d.Independent(NORMALS, 0), d.Independent(NORMALS, 1)),
     NotImplementedError, "different reinterpreted_batch_ndims"),
    (lambda: d.kl_divergence(d.LogNormal(0.0, 1.0), d.TransformedDistribution(
        d.Normal(0.0, 1.0), d.TanhTransform())), NotImplementedError, "of different transforms"),
    (lambda: d.kl_divergence(d.Binomial(3, PAIR), d.Binomial(4, PAIR)), NotImplementedError,
     "q.total_count > p.total_count"),
]


@each("call, error, words", REFUSED)
def test_what_is_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_what_is_not_refused_where_nothing_is_checked():
    assert d.Uniform(1.0, 1.0, validate_args=False).mean == 1
    assert d.Geometric(tl.zeros(1), validate_args=False).mean == inf
    assert d.Geometric(logits=tl.tensor(-200.0)).probs == 0          # whose chances are not given


def test_densities_of_many_covariances_by_vmap():
    x, scales = tl.randn(4, 3), tl.arange(1.0, 5.0)

    def density(scale, value):
        covariance = tl.eye(3) * scale
        return d.MultivariateNormal(tl.zeros(3), covariance, validate_args=False).log_prob(value)
    assert_close(tl.func.vmap(density)(scales, x),
                 tl.stack([density(scale, value) for scale, value in zip(scales, x)]))


# ---- subclasses ----------------------------------------------------------------------------------

class Named(d.Normal):
    """A normal distribution with one more attribute and parameters of other names."""

    arg_constraints = {"centre": d.constraints.real}

    def __init__(self, centre, validate_args=None):
        self.centre = centre
        super().__init__(centre, 1.0, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Named, _instance)
        new.centre = self.centre.expand(batch_shape)
        return super().expand(batch_shape, new)


class Classes(d.Categorical):
    """Classes whose only declared parameter is one that the library does not know."""

    arg_constraints = {"level": d.constraints.real}

    def __init__(self, level, validate_args=None):
        self.level = level
        super().__init__(tl.stack([level.sigmoid(), 1 - level.sigmoid()], -1),
                         validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Classes, _instance)
        new.level = self.level.expand(batch_shape)
        return super().expand(batch_shape, new)


@pytest.mark.parametrize("small", [
    Named(tl.zeros(1)), Classes(tl.zeros(1)), type("Part", (d.Independent,), {})(
        d.Normal(tl.zeros(1, 2), 1.0), 1),
    type("Square", (d.Chi2,), {})(tl.ones(1)),
    type("Mixed", (d.MixtureSameFamily,), {})(
        d.Categorical(tl.ones(1, 2)), d.Normal(tl.zeros(1, 2), 1.0)),
], ids=lambda x: type(x).__name__)
def test_subclasses_expand_to_their_like(small):
    large = small.expand((3,))
    assert type(large) is type(small) and large.batch_shape == (3,)
    x = large.sample()
    assert tl.equal(large.log_prob(x), small.log_prob(x))
    assert large.expand((2, 3)).sample((4,)).shape == (4, 2, 3, *small.event_shape)


@pytest.mark.parametrize("base, make", [
    (d.Normal, lambda self: d.Normal.__init__(self, 0.0, 1.0)),
    (d.Chi2, lambda self: d.Chi2.__init__(self, 2.0)),
    (d.Independent, lambda self: d.Independent.__init__(self, d.Normal(tl.zeros(2), 1.0), 1)),
    (d.Distribution, lambda self: d.Distribution.__init__(self, validate_args=False)),
], ids=lambda x: getattr(x, "__name__", ""))
def test_subclasses_that_know_no_expand_refuse(base, make):
    mine = type("Mine", (base,), {"__init__": make})()
    with pytest.raises(NotImplementedError, match=r"Subclass Mine of .* must .*define .*expand"):
        mine.expand((3,))
