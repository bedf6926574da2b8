"""Distributions, in the manner of `torch.distributions`: values, densities, entropies, gradients.

>>> from tensorlib.distributions import Normal
>>> prior = Normal(tensorlib.zeros(3), 1.)
>>> prior.log_prob(tensorlib.zeros(3))
tensor([-0.9189, -0.9189, -0.9189])

`rsample` gives values that have the gradient of the parameters: of a location and a scale by
itself, of gamma, beta and Dirichlet numbers at their quantile (Figurnov, Mohamed and Mnih,
"Implicit Reparameterization Gradients", NeurIPS 2018).
"""

from tensorlib.distributions import constraints, discrete, location, multivariate, positive
from tensorlib.distributions import transformed, transforms, utils
from tensorlib.distributions.constraint_registry import biject_to, transform_to
from tensorlib.distributions.discrete import (
    Bernoulli, Binomial, Categorical, Geometric, Multinomial, NegativeBinomial, OneHotCategorical,
    OneHotCategoricalStraightThrough, Poisson)
from tensorlib.distributions.distribution import Distribution, ExponentialFamily, Independent
from tensorlib.distributions.mixtures import (
    InverseGamma, LogitRelaxedBernoulli, MixtureSameFamily, Pareto, RelaxedBernoulli,
    RelaxedOneHotCategorical, Weibull)
from tensorlib.distributions.kl import kl_divergence, register_kl
from tensorlib.distributions.location import Cauchy, Gumbel, Laplace, Normal, StudentT, Uniform
from tensorlib.distributions.multivariate import MultivariateNormal
from tensorlib.distributions.positive import (
    Beta, Chi2, Dirichlet, Exponential, Gamma, HalfCauchy, HalfNormal)
from tensorlib.distributions.transformed import LogNormal, TransformedDistribution
from tensorlib.distributions.transforms import (
    AbsTransform, AffineTransform, ComposeTransform, ExpTransform, IndependentTransform,
    LowerCholeskyTransform, PowerTransform, ReshapeTransform, SigmoidTransform, SoftmaxTransform,
    SoftplusTransform, StickBreakingTransform, TanhTransform, Transform, identity_transform)

# PyTorch has a module for each class: `distributions.categorical.Categorical` is there, too
normal = laplace = cauchy = studentT = uniform = gumbel = location
gamma = beta = dirichlet = exponential = half_normal = half_cauchy = chi2 = positive
bernoulli = binomial = categorical = geometric = multinomial = negative_binomial = discrete
one_hot_categorical = poisson = discrete
log_normal = transformed_distribution = transformed
multivariate_normal = multivariate

__all__ = [
    "AbsTransform", "AffineTransform", "Bernoulli", "Beta", "Binomial", "Categorical",
    "Cauchy", "Chi2", "ComposeTransform", "Dirichlet", "Distribution", "ExpTransform",
    "Exponential", "ExponentialFamily", "Gamma", "Geometric", "Gumbel", "HalfCauchy",
    "HalfNormal", "Independent", "IndependentTransform", "InverseGamma", "Laplace",
    "LogNormal", "LogitRelaxedBernoulli", "LowerCholeskyTransform", "MixtureSameFamily",
    "Multinomial", "MultivariateNormal", "NegativeBinomial", "Normal", "OneHotCategorical",
    "OneHotCategoricalStraightThrough", "Pareto", "Poisson", "PowerTransform",
    "RelaxedBernoulli", "RelaxedOneHotCategorical", "ReshapeTransform", "SigmoidTransform",
    "SoftmaxTransform", "SoftplusTransform", "StickBreakingTransform", "StudentT",
    "TanhTransform", "Transform", "TransformedDistribution", "Uniform", "Weibull",
    "biject_to", "constraints", "identity_transform", "kl_divergence", "register_kl",
    "transform_to", "transforms", "utils",
]
