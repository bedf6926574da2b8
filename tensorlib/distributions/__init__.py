"""Distributions, in the manner of `torch.distributions`: values, densities, entropies, gradients.

>>> from tensorlib.distributions import Normal
>>> prior = Normal(tensorlib.zeros(3), 1.)
>>> prior.log_prob(tensorlib.zeros(3))
tensor([-0.9189, -0.9189, -0.9189])

`rsample` gives values that have the gradient of the parameters: of a location and a scale by
itself, of gamma, beta and Dirichlet numbers at their quantile (Figurnov, Mohamed and Mnih,
"Implicit Reparameterization Gradients", NeurIPS 2018).
"""

from tensorlib._core.base.explained import explain
from tensorlib.distributions import (
    constraints, discrete, distribution, heavy_tails, kl_pairs, location, matrices, mixtures,
    multivariate, positive, relaxed, transformed, transforms, unit_interval, utils)
from tensorlib.distributions.constraint_registry import biject_to, transform_to
from tensorlib.distributions.discrete import (
    Bernoulli, Binomial, Categorical, Geometric, Multinomial, NegativeBinomial, OneHotCategorical,
    OneHotCategoricalStraightThrough, Poisson)
from tensorlib.distributions.distribution import Distribution, ExponentialFamily, Independent
from tensorlib.distributions.heavy_tails import GeneralizedPareto, InverseGamma, Pareto, Weibull
from tensorlib.distributions.kl import kl_divergence, register_kl
from tensorlib.distributions.location import (
    Cauchy, Gumbel, Laplace, Normal, StudentT, Uniform, VonMises)
from tensorlib.distributions.matrices import LKJCholesky, Wishart
from tensorlib.distributions.mixtures import MixtureSameFamily
from tensorlib.distributions.multivariate import LowRankMultivariateNormal, MultivariateNormal
from tensorlib.distributions.positive import (
    Beta, Chi2, Dirichlet, Exponential, FisherSnedecor, Gamma, HalfCauchy, HalfNormal)
from tensorlib.distributions.relaxed import (
    LogitRelaxedBernoulli, RelaxedBernoulli, RelaxedOneHotCategorical)
from tensorlib.distributions.transformed import (
    LogisticNormal, LogNormal, TransformedDistribution)
from tensorlib.distributions.transforms import (
    AbsTransform, AffineTransform, CatTransform, ComposeTransform, CorrCholeskyTransform,
    CumulativeDistributionTransform, ExpTransform, IndependentTransform, LowerCholeskyTransform,
    PositiveDefiniteTransform, PowerTransform, ReshapeTransform, SigmoidTransform,
    SoftmaxTransform, SoftplusTransform, StackTransform, StickBreakingTransform, TanhTransform,
    Transform, identity_transform)
from tensorlib.distributions.unit_interval import ContinuousBernoulli, Kumaraswamy

# PyTorch has a module for each class: `distributions.categorical.Categorical` is there, too
exp_family = independent = distribution
normal = laplace = cauchy = studentT = uniform = gumbel = von_mises = location
gamma = beta = dirichlet = exponential = half_normal = half_cauchy = chi2 = positive
fishersnedecor = positive
bernoulli = binomial = categorical = geometric = multinomial = negative_binomial = discrete
one_hot_categorical = poisson = discrete
log_normal = logistic_normal = transformed_distribution = transformed
multivariate_normal = lowrank_multivariate_normal = multivariate
pareto = generalized_pareto = weibull = inverse_gamma = heavy_tails
mixture_same_family, relaxed_bernoulli, relaxed_categorical = mixtures, relaxed, relaxed
continuous_bernoulli = kumaraswamy = unit_interval
lkj_cholesky = wishart = matrices
# which has Distribution in it
for _module in (discrete, heavy_tails, location, matrices, mixtures, multivariate, positive,
                relaxed, transformed, unit_interval):
    vars(_module).setdefault("Distribution", Distribution)

__all__ = [
    "AbsTransform", "AffineTransform", "Bernoulli", "Beta", "Binomial", "CatTransform",
    "Categorical", "Cauchy", "Chi2", "ComposeTransform", "ContinuousBernoulli",
    "CorrCholeskyTransform", "CumulativeDistributionTransform", "Dirichlet", "Distribution",
    "ExpTransform", "Exponential", "ExponentialFamily", "FisherSnedecor", "Gamma",
    "GeneralizedPareto", "Geometric", "Gumbel", "HalfCauchy", "HalfNormal", "Independent",
    "IndependentTransform", "InverseGamma", "Kumaraswamy", "LKJCholesky", "Laplace", "LogNormal",
    "LogisticNormal", "LogitRelaxedBernoulli", "LowRankMultivariateNormal",
    "LowerCholeskyTransform", "MixtureSameFamily", "Multinomial", "MultivariateNormal",
    "NegativeBinomial", "Normal", "OneHotCategorical", "OneHotCategoricalStraightThrough", "Pareto",
    "Poisson", "PositiveDefiniteTransform", "PowerTransform", "RelaxedBernoulli",
    "RelaxedOneHotCategorical", "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform",
    "SoftplusTransform", "StackTransform", "StickBreakingTransform", "StudentT", "TanhTransform",
    "Transform", "TransformedDistribution", "Uniform", "VonMises", "Weibull", "Wishart",
    "biject_to", "constraints", "identity_transform", "kl_divergence", "register_kl",
    "transform_to", "transforms", "utils",
]
explain(vars(), __all__)
