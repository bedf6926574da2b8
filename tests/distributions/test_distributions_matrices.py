"""Distributions of matrices and of angles, normal vectors of low rank, and their sets of values."""

import math

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib import distributions as d
from tensorlib.distributions import constraints
from tensorlib.testing import assert_close, gradcheck

N = 20_000


@pytest.fixture(autouse=True)
def seeded():
    before = tl.get_rng_state()
    tl.manual_seed(31)
    yield
    tl.set_rng_state(before)


def wide(x, requires_grad=False):
    return tl.tensor(x, dtype=tl.float64, requires_grad=requires_grad)


def random_factor(*shape):
    """Lower triangles with a positive diagonal."""
    x = tl.randn(*shape, shape[-1], dtype=tl.float64)
    return x.tril(-1) + x.diagonal(0, -2, -1).exp().diag_embed()


def test_three_forms_of_the_covariance_of_wishart_are_one():
    factor = random_factor(2, 3)
    covariance = factor @ factor.mT
    forms = [d.Wishart(4.5, scale_tril=factor), d.Wishart(4.5, covariance),
             d.Wishart(wide([4.5, 4.5]), precision_matrix=tl.linalg.inv(covariance))]
    value = forms[0].sample((5,))
    for p in forms:
        assert constraints.positive_definite.check(value).all()
        assert_close(p.log_prob(value), forms[0].log_prob(value))
        assert_close(p.entropy(), forms[0].entropy())
        for name in ("scale_tril", "covariance_matrix", "precision_matrix", "mean", "mode",
                     "variance"):
            assert_close(getattr(p, name), getattr(forms[0], name))
            assert_close(getattr(p.expand((4, 2)), name)[1], getattr(p, name))


def test_a_wishart_matrix_of_one_number_is_a_gamma_number():
    p, q = d.Wishart(3.5, wide([[2.0]])), d.Gamma(wide(3.5 / 2), wide(0.25))
    x = wide([0.3, 4.0])
    assert_close(p.log_prob(x[:, None, None]), q.log_prob(x))
    assert_close(p.entropy(), q.entropy())
    more = d.Wishart(5.5, wide([[0.7]]))
    assert_close(d.kl_divergence(p, more), d.kl_divergence(q, d.Gamma(wide(5.5 / 2),
                                                                      wide(1 / 1.4))))


def test_divergences_and_densities_of_matrices_have_gradients():
    factor, more = random_factor(2), random_factor(2)
    df, dg = wide([2.5, 4.0], True), wide(3.5, True)
    value = d.Wishart(3.0, scale_tril=more).sample()
    assert gradcheck(lambda df, x, dg, y: d.kl_divergence(
        d.Wishart(df, x @ x.mT, validate_args=False), d.Wishart(dg, y @ y.mT,
                                                                validate_args=False)),
        (df, factor.requires_grad_(), dg, more.requires_grad_()))
    assert gradcheck(lambda df, x: d.Wishart(df, scale_tril=x.tril(), validate_args=False).log_prob(
        value), (df, factor))


def test_the_entropy_and_the_divergence_of_matrices_are_means():
    p = d.Wishart(5.0, scale_tril=random_factor(3))
    q = d.Wishart(7.0, scale_tril=random_factor(3))
    x = p.sample((N,))
    for found, drawn in ((p.entropy(), -p.log_prob(x)),
                        (d.kl_divergence(p, q), p.log_prob(x) - q.log_prob(x))):
        assert abs(found - drawn.mean()) < 5 * drawn.std() / N**0.5


@each("n", [2, 4])
@each("concentration", [0.5, 1.0, 3.0])
def test_factors_of_correlations(n, concentration):
    p = d.LKJCholesky(n, wide(concentration))
    factors = p.sample((N,))
    assert constraints.corr_cholesky.check(factors).all()
    found = (factors @ factors.mT).numpy()
    # each correlation is 2 b - 1 for b of Beta(a, a)
    a = concentration + (n - 2) / 2
    rows, columns = np.tril_indices(n, -1)
    each = found[:, rows, columns]
    assert (abs(each.mean(0)) < 5 * each.std(0) / N**0.5).all()
    np.testing.assert_allclose(each.var(0), 1 / (2 * a + 1), rtol=0.06)


def test_the_density_of_the_factors_of_two_correlated_variables():
    # of factors: the Jacobian of the correlation is 1, and the measure that of the one below
    for concentration in (0.5, 1.0, 3.0):
        r = wide(np.linspace(-0.99, 0.99, 9))
        factors = tl.stack([tl.stack([r * 0 + 1, r * 0], -1),
                            tl.stack([r, (1 - r * r).sqrt()], -1)], -2)
        half = d.Beta(wide(concentration), wide(concentration))
        assert_close(d.LKJCholesky(2, wide(concentration)).log_prob(factors),
                     half.log_prob((r + 1) / 2) - math.log(2))


def test_vectors_of_low_rank_are_normal_vectors():
    loc, factor = tl.randn(2, 4, dtype=tl.float64), tl.randn(4, 2, dtype=tl.float64)
    diagonal = tl.rand(2, 4, dtype=tl.float64) + 0.5
    p = d.LowRankMultivariateNormal(loc, factor, diagonal)
    q = d.MultivariateNormal(loc, factor @ factor.mT + diagonal.diag_embed())
    other = d.MultivariateNormal(loc + 1, scale_tril=random_factor(4))
    x = p.sample((3,))
    assert_close(p.log_prob(x), q.log_prob(x))
    assert_close(p.entropy(), q.entropy())
    for name in ("mean", "mode", "variance", "scale_tril", "covariance_matrix", "precision_matrix"):
        assert_close(getattr(p, name), getattr(q, name))
        assert_close(getattr(p.expand((3, 2)), name)[1], getattr(q, name))
    for one, two in ((p, q), (q, p), (p, p)):
        assert_close(d.kl_divergence(one, two), tl.zeros(2, dtype=tl.float64), atol=1e-12, rtol=0)
    assert_close(d.kl_divergence(p, other), d.kl_divergence(q, other))
    assert_close(d.kl_divergence(other, p), d.kl_divergence(other, q))


@pytest.mark.parametrize("k", [1e-7, 0.5, 4.0, 200.0])
def test_angles_have_the_mean_and_the_variance(k):
    p = d.VonMises(wide(2.5), wide(k))
    x = p.sample((N,))
    assert x.shape == (N,) and (x.abs() <= math.pi).all()
    away = (x - 2.5).cos()
    assert abs(1 - away.mean() - p.variance) < 5 * away.std() / N**0.5 + 1e-9
    assert abs((x - 2.5).sin().mean()) < 5 / N**0.5


@each("call, words", [
    (lambda: d.Wishart(3.0), "Exactly one"),
    (lambda: d.Wishart(3.0, tl.eye(2), scale_tril=tl.eye(2)), "Exactly one"),
    (lambda: d.Wishart(3.0, tl.ones(2)), "at least two-dimensional"),
    (lambda: d.Wishart(1.0, tl.eye(2)), "greater than ndim"),
    (lambda: d.LKJCholesky(1), "greater than or equal to 2"),
    (lambda: d.LowRankMultivariateNormal(tl.tensor(1.0), tl.ones(1, 1), tl.ones(1)), "loc"),
    (lambda: d.LowRankMultivariateNormal(tl.ones(2), tl.ones(2), tl.ones(2)), "cov_factor"),
    (lambda: d.LowRankMultivariateNormal(tl.ones(2), tl.ones(3, 1), tl.ones(2)), "matrices"),
    (lambda: d.LowRankMultivariateNormal(tl.ones(2), tl.ones(2, 1), tl.ones(3)), "vectors"),
    (lambda: d.LowRankMultivariateNormal(tl.ones(2, 2), tl.ones(3, 2, 1), tl.ones(2)), "batch"),
    (lambda: d.ContinuousBernoulli(1.5), "probs"), (lambda: d.VonMises(0.0, -1.0), "concentration"),
    (lambda: d.kl_divergence(d.Wishart(4.0, tl.eye(2)), d.Wishart(4.0, tl.eye(3))), "shapes"),
    (lambda: constraints.cat([constraints.real], 0, [1, 2]), "2 lengths"),
    (lambda: d.CatTransform([d.ExpTransform()], 0, [1, 2]), "2 lengths"),
    (lambda: d.CatTransform([d.ExpTransform()], 0, [2])(tl.ones(3)), "size 2"),
    (lambda: d.StackTransform([d.ExpTransform()], 2)(tl.ones(3)), "size 1"),
    (lambda: d.CorrCholeskyTransform().forward_shape((2,)), "flattened"),
    (lambda: d.CorrCholeskyTransform().inverse_shape((2, 3)), "square"),
])
def test_what_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_few_degrees_of_freedom_are_warned_of():
    with pytest.warns(UserWarning, match="Low df"):
        d.Wishart(1.5, tl.eye(2))


def test_positive_definite_matrices_and_back():
    x = tl.randn(2, 3, 3, dtype=tl.float64).tril()
    transform = d.transform_to(constraints.positive_definite)
    y = transform(x)
    assert constraints.positive_definite.check(y).all()
    assert_close(transform.inv(y), x)
    assert constraints.positive_semidefinite.check(tl.zeros(2, 2)).all()
    assert not constraints.positive_definite.check(tl.zeros(2, 2)).any()


def test_sets_of_parts():
    both = [constraints.positive, constraints.unit_interval]
    cat, stack = constraints.cat(both, 0, [1, 2]), constraints.stack(both, 1)
    assert cat.check(tl.tensor([2.0, 0.5, 2.0])).tolist() == [True, True, False]
    assert stack.check(tl.tensor([[2.0, 2.0], [-1.0, 0.5]])).tolist() == [[True, False],
                                                                          [False, True]]
    assert (cat.event_dim, cat.is_discrete, stack.event_dim, stack.is_discrete) == (
        0, False, 0, False)
    for constraint, x in ((cat, tl.randn(3)), (stack, tl.randn(4, 2))):
        for registry in (d.biject_to, d.transform_to):
            transform = registry(constraint)
            assert transform.bijective and constraint.check(transform(x)).all()
            assert_close(transform.inv(transform(x)), x, atol=1e-5, rtol=1e-4)
            assert transform.with_cache()(x) is not None


def test_a_copula_of_normal_vectors():
    factor = tl.tensor([[1.0, 0.0], [0.6, 0.8]])
    base = d.MultivariateNormal(tl.zeros(2), scale_tril=factor)
    copula = d.TransformedDistribution(base, d.CumulativeDistributionTransform(d.Normal(0.0, 1.0)))
    x = copula.sample((N,))
    assert_close(x.mean(0), tl.full((2,), 0.5), atol=0.02, rtol=0)
    assert_close(x.var(0), tl.full((2,), 1 / 12), atol=0.005, rtol=0)
    assert copula.log_prob(x[:5]).shape == (5,)
