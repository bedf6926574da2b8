"""Kullback and Leibler's divergence of pairs of distributions of one family.

Those of different families are in `kl_pairs`.

Source: Gil, Alajaji and Linder, "Renyi divergence measures for commonly used univariate continuous
distributions", Information Sciences 249, 2013, for most formulas.
"""

import math

import tensorlib as tl
from tensorlib._core.base.registry import Registry
from tensorlib.distributions.arguments import softplus, sum_rightmost
from tensorlib.distributions.discrete import (
    Bernoulli, Binomial, Categorical, Geometric, OneHotCategorical, Poisson)
from tensorlib.distributions.distribution import ExponentialFamily, Independent
from tensorlib.distributions.heavy_tails import InverseGamma, Pareto, Weibull
from tensorlib.distributions.location import EULER, Cauchy, Gumbel, Laplace, Normal, Uniform
from tensorlib.distributions.matrices import Wishart, mvdigamma
from tensorlib.distributions.multivariate import LowRankMultivariateNormal, MultivariateNormal
from tensorlib.distributions.positive import Beta, Dirichlet, Exponential, Gamma, HalfNormal
from tensorlib.distributions.transformed import TransformedDistribution
from tensorlib.distributions.unit_interval import ContinuousBernoulli

inf = math.inf
RULES = _KL_REGISTRY = Registry()       # the second is PyTorch's name


def register_kl(type_p, type_q):
    """A decorator that makes a function of two distributions the rule for these classes.

    Raises: TypeError for what is not a class.
    """
    for kind in (type_p, type_q):
        if not isinstance(kind, type):
            raise TypeError(f"Expected a Distribution subclass but got {kind!r}")

    def register(function):
        RULES[type_p, type_q] = function
        return function
    return register


def without_rule(type_p, type_q):
    """The error of classes that there is no rule for."""
    return NotImplementedError(
        f"No KL(p || q) is implemented for p type {type_p.__name__} and q type {type_q.__name__}")


def rule_for(type_p, type_q):
    """The rule of the nearest classes that both are subclasses of. Raises: NotImplementedError."""
    found = [(type_p.__mro__.index(p) + type_q.__mro__.index(q), type_p.__mro__.index(p), rule)
             for (p, q), rule in RULES.items() if issubclass(type_p, p) and issubclass(type_q, q)]
    if not found:
        raise without_rule(type_p, type_q)
    return min(found, key=lambda row: row[:2])[2]


def kl_divergence(p, q):
    """The divergence KL(p || q) of two distributions, of their batch shape.

    Raises: NotImplementedError for classes that no rule was registered for.

    >>> from tensorlib.distributions import Normal, kl_divergence
    >>> kl_divergence(Normal(0., 1.), Normal(1., 1.))
    tensor(0.5000)
    """
    return rule_for(type(p), type(q))(p, q)


@register_kl(Normal, Normal)
def _(p, q):
    """1/2 (s**2/t**2 + (m - n)**2/t**2 - 1 - log(s**2/t**2)) for N(m, s**2), N(n, t**2)"""
    ratio = (p.scale / q.scale).square()
    away = ((p.loc - q.loc) / q.scale).square()
    return 0.5 * (ratio + away - 1 - ratio.log())


@register_kl(Bernoulli, Bernoulli)
def _(p, q):
    """p log(p/q) + (1 - p) log((1 - p)/(1 - q)), by the logits"""
    one = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    zero = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    one = one.where((q.probs != 0).logical_or(p.probs == 0), inf).where(p.probs != 0, 0.0)
    zero = zero.where((q.probs != 1).logical_or(p.probs == 1), inf).where(p.probs != 1, 0.0)
    return one + zero


@register_kl(Binomial, Binomial)
def _(p, q):
    """n (p log(p/q) + (1 - p) log((1 - p)/(1 - q))) for n trials"""
    if (p.total_count < q.total_count).any():
        raise NotImplementedError(
            "KL between Binomials where q.total_count > p.total_count is not implemented")
    found = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p()
                             - (-q.probs).log1p())
    return found.where(p.total_count <= q.total_count, inf)


@register_kl(Categorical, Categorical)
def _(p, q):
    """The sum of p log(p/q) over the categories."""
    each = p.probs * (p.logits - q.logits)
    each = each.where((q.probs != 0).expand_as(each), inf)
    return each.where((p.probs != 0).expand_as(each), 0.0).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _(p, q):
    return kl_divergence(p._categorical, q._categorical)


@register_kl(Geometric, Geometric)
def _(p, q):
    """-H(p) - log(1 - q)/p - logit(q)"""
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Poisson, Poisson)
def _(p, q):
    """a log(a/b) - (a - b) for rates a and b"""
    return tl.xlogy(p.rate, p.rate) - tl.xlogy(p.rate, q.rate) - (p.rate - q.rate)


@register_kl(Beta, Beta)
def _(p, q):
    """log B(c, d)/B(a, b) + (a - c) psi(a) + (b - d) psi(b) + (c + d - a - b) psi(a + b)"""
    a, b, c, d = p.concentration1, p.concentration0, q.concentration1, q.concentration0
    return ((c.lgamma() + d.lgamma() + (a + b).lgamma()) - (a.lgamma() + b.lgamma()
            + (c + d).lgamma()) + (a - c) * a.digamma() + (b - d) * b.digamma()
            + (c + d - a - b) * (a + b).digamma())


@register_kl(Dirichlet, Dirichlet)
def _(p, q):
    """log B(b)/B(a) + sum of (a - b) (psi(a) - psi(sum of a))"""
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    norms = (total.lgamma() - b.sum(-1).lgamma()) - (a.lgamma() - b.lgamma()).sum(-1)
    return norms + ((a - b) * (a.digamma() - total.digamma().unsqueeze(-1))).sum(-1)


@register_kl(Gamma, Gamma)
@register_kl(InverseGamma, InverseGamma)
def _(p, q):
    """b log(r/s) + log Gamma(b)/Gamma(a) + (a - b) psi(a) + a (s - r)/r for rates r, s"""
    a, b = p.concentration, q.concentration
    return (b * (p.rate / q.rate).log() + b.lgamma() - a.lgamma() + (a - b) * a.digamma()
            + (q.rate - p.rate) * (a / p.rate))


@register_kl(Exponential, Exponential)
def _(p, q):
    """s/r - 1 - log(s/r) for rates r and s"""
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(HalfNormal, HalfNormal)
def _(p, q):
    """1/2 (s**2/t**2 - 1 - log(s**2/t**2)) for scales s and t"""
    ratio = (p.scale / q.scale).square()
    return 0.5 * (ratio - 1 - ratio.log())


@register_kl(Laplace, Laplace)
def _(p, q):
    """s/t e**(-d/s) + d/t - 1 - log(s/t) for scales s, t and distance d of the means"""
    ratio, away = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + away / q.scale + ratio * (-away / p.scale).exp() - 1


@register_kl(Cauchy, Cauchy)
def _(p, q):
    """Chyzak and Nielsen, arXiv:1905.10965"""
    return ((p.scale + q.scale).square() + (p.loc - q.loc).square()).log() - (
        4 * p.scale * q.scale).log()


@register_kl(Gumbel, Gumbel)
def _(p, q):
    ratio, away = p.scale / q.scale, (q.loc - p.loc) / q.scale
    return -ratio.log() - away + ratio * EULER + (away + (1 + ratio).lgamma()).exp() - (1 + EULER)


@register_kl(Weibull, Weibull)
def _(p, q):
    """EULER (r - 1) - log(r) - a + e**a gamma(1 + r) - 1, with the ratio r of the concentrations
    and a = log((scale of p / scale of q)**(concentration of q))"""
    ratio = q.concentration / p.concentration
    away = q.concentration * (p.scale / q.scale).log()
    return EULER * (ratio - 1) - ratio.log() - away + (away + (1 + ratio).lgamma()).exp() - 1


@register_kl(Uniform, Uniform)
def _(p, q):
    """log(width of q / width of p); infinite unless q covers p"""
    found = ((q.high - q.low) / (p.high - p.low)).log()
    return found.where((q.low <= p.low).logical_and(q.high >= p.high), inf)


@register_kl(Pareto, Pareto)
def _(p, q):
    """b log(m/n) - log(b/a) + b/a - 1 for shapes a, b and scales m, n; infinite for m < n"""
    ratio = q.alpha / p.alpha
    found = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return found.where(p.scale >= q.scale, inf)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _(p, q):
    return (p.mean * (p.logits - q.logits) + p._log_norm() + (-p.probs).log1p()
            - q._log_norm() - (-q.probs).log1p())


@register_kl(MultivariateNormal, MultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _(p, q):
    """1/2 (log det T/det S + tr(T**-1 S) + (n - m)' T**-1 (n - m) - k) for N(m, S), N(n, T)"""
    if p.event_shape != q.event_shape:
        raise ValueError("KL-divergence between two Multivariate Normals with different event "
                         "shapes cannot be computed")
    if isinstance(p, MultivariateNormal):
        spread = q._square_length(p._unbroadcasted_scale_tril)
    else:
        spread = q._square_length(p.cov_factor) + q._diagonal_length(p.cov_diag)
    away = q._square_length((q.loc - p.loc).unsqueeze(-1))
    return q._log_volume() - p._log_volume() + 0.5 * (spread + away - p.event_shape[0])


@register_kl(Wishart, Wishart)
def _(p, q):
    n = p.event_shape[-1]
    if n != q.event_shape[-1]:
        raise ValueError("KL-divergence between two Wisharts with different event shapes cannot "
                         "be computed")
    trace = (q.precision_matrix * p.covariance_matrix).sum((-2, -1))
    return (q.df * (q._log_volume() - p._log_volume()) + 0.5 * p.df * (trace - n)
            + tl.mvlgamma(0.5 * q.df, n) - tl.mvlgamma(0.5 * p.df, n)
            + 0.5 * (p.df - q.df) * mvdigamma(0.5 * p.df, n))


@register_kl(ExponentialFamily, ExponentialFamily)
def _(p, q):
    """Bregman's divergence of the log normalizers, for families that say what theirs are."""
    if type(p) is not type(q) or not hasattr(p, "_log_normalizer"):
        raise without_rule(type(p), type(q))
    natural = [x if x.requires_grad else x.detach().requires_grad_() for x in p._natural_params]
    norm = p._log_normalizer(*natural)
    means = tl.autograd.grad(norm.sum(), natural, create_graph=True)
    found = q._log_normalizer(*q._natural_params) - norm
    for of_p, of_q, mean in zip(natural, q._natural_params, means):
        product = (of_q - of_p) * mean
        found = found - sum_rightmost(product, product.ndim - found.ndim)
    return found


@register_kl(Independent, Independent)
def _(p, q):
    """The sum over the dims that belong to an event."""
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("KL of Independents of different reinterpreted_batch_ndims")
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _(p, q):
    """That of the base distributions: a bijection changes no divergence."""
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("KL of distributions of different transforms")
    return kl_divergence(p.base_dist, q.base_dist)
