"""Distributions of matrices: of Wishart, and of factors of correlations."""

import math

import tensorlib as tl
from tensorlib._core.base.warned import warn_of
from tensorlib.distributions import constraints
from tensorlib.distributions.arguments import broadcast_all, derived, require
from tensorlib.distributions.distribution import Distribution, ExponentialFamily
from tensorlib.linalg import cholesky, solve_triangular
from tensorlib.distributions.gamma_variates import standard_gamma
from tensorlib.distributions.multivariate import factor_of_inverse
from tensorlib.distributions.positive import Beta


def mvdigamma(x, n):
    """The derivative of `mvlgamma`."""
    return (x.unsqueeze(-1) - 0.5 * tl.arange(n, dtype=x.dtype)).digamma().sum(-1)


class Wishart(ExponentialFamily):
    """Wishart's distribution: of the sum of x @ x.mT over `df` normal vectors x of mean 0.

    These have one of three forms of covariance, as in `MultivariateNormal`. Values are drawn by
    Bartlett's decomposition.

    Source: Anderson, An Introduction to Multivariate Statistical Analysis (2003), chapter 7.
    """

    support = constraints.positive_definite
    has_rsample = True

    def __init__(self, df, covariance_matrix=None, precision_matrix=None, scale_tril=None,
                 validate_args=None):
        given = {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix,
                 "scale_tril": scale_tril}
        given = {name: value for name, value in given.items() if value is not None}
        if len(given) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril "
                             "may be specified.")
        (name, matrix), = given.items()
        require("Wishart", tl.Tensor, **{name: matrix})
        if matrix.ndim < 2:
            raise ValueError(f"{name} must be at least two-dimensional, with optional leading "
                             "batch dimensions")
        n = matrix.shape[-1]
        df = tl.as_tensor(df, dtype=matrix.dtype)
        shape = tl.broadcast_shapes(matrix.shape[:-2], df.shape)
        if (df <= n - 1).any():
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {n - 1}.")
        if (df < n).any():
            warn_of("Low df values detected. Singular samples are highly likely to occur "
                    "for ndim - 1 < df < ndim.", level=2)
        self.df = df.expand(shape)
        vars(self)[name] = matrix.expand((*shape, n, n))
        super().__init__(shape, (n, n), validate_args=validate_args)

    @property
    def arg_constraints(self):
        """Where each parameter lies, by name."""
        return {"covariance_matrix": constraints.positive_definite,
                "precision_matrix": constraints.positive_definite,
                "scale_tril": constraints.lower_cholesky,
                "df": constraints.greater_than(self._event_shape[-1] - 1)}

    @derived
    def scale_tril(self):
        """The Cholesky factor of the covariance."""
        if "covariance_matrix" in vars(self):
            return cholesky(self.covariance_matrix)
        return factor_of_inverse(self.precision_matrix)

    @derived
    def covariance_matrix(self):
        """The covariance of the vectors."""
        return self.scale_tril @ self.scale_tril.mT

    @derived
    def precision_matrix(self):
        """The inverse of the covariance."""
        eye = tl.eye(self._event_shape[-1], dtype=self.df.dtype)
        inverse = solve_triangular(self.scale_tril, eye, upper=False)
        return inverse.mT @ inverse

    def _count(self):
        """The degrees of freedom, beside matrices."""
        return self.df[..., None, None]

    @property
    def mean(self):
        return self._count() * self.covariance_matrix

    @property
    def mode(self):
        factor = self._count() - self._event_shape[-1] - 1
        return factor.where(factor > 0, math.nan) * self.covariance_matrix

    @property
    def variance(self):
        covariance = self.covariance_matrix
        diagonal = covariance.diagonal(0, -2, -1)
        return self._count() * (
            covariance.square() + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def rsample(self, sample_shape=()):
        shape, n, dtype = self._extended_shape(sample_shape), self._event_shape[-1], self.df.dtype
        counts = (self.df.unsqueeze(-1) - tl.arange(n, dtype=dtype)).expand(shape[:-1])
        roots = (2 * standard_gamma(0.5 * counts)).sqrt().clamp(min=tl.finfo(dtype).eps)
        factor = self.scale_tril @ (tl.randn(shape, dtype=dtype).tril(-1) + roots.diag_embed())
        return factor @ factor.mT

    def _log_volume(self):
        """Half the logarithm of the determinant of the covariance."""
        return self.scale_tril.diagonal(0, -2, -1).log().sum(-1)

    def log_prob(self, value):
        self._validate_sample(value)
        df, n = self.df, self._event_shape[-1]
        inner = solve_triangular(self.scale_tril, value, upper=False)
        inner = solve_triangular(self.scale_tril.mT, inner, upper=True)
        trace = inner.diagonal(0, -2, -1).sum(-1)
        return (0.5 * (df - n - 1) * value.slogdet()[1] - 0.5 * trace - tl.mvlgamma(0.5 * df, n)
                - df * (0.5 * n * math.log(2) + self._log_volume()))

    def entropy(self):
        df, n = self.df, self._event_shape[-1]
        return ((n + 1) * (0.5 * n * math.log(2) + self._log_volume()) + tl.mvlgamma(0.5 * df, n)
                - 0.5 * (df - n - 1) * mvdigamma(0.5 * df, n) + 0.5 * df * n)


class LKJCholesky(Distribution):
    """The distribution of the Cholesky factors L of correlations of `dim` variables whose density
    is proportional to det(L @ L.mT)**(concentration - 1): for 1, all are as likely.

    Values are drawn by the onion method.

    Source: Lewandowski, Kurowicka and Joe, "Generating random correlation matrices based on vines
    and extended onion method", Journal of Multivariate Analysis 100, 2009; Stan Functions
    Reference, "Cholesky LKJ correlation distribution".
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim, concentration: tl.Tensor | float = 1.0, validate_args=None):
        if dim < 2:
            raise ValueError("Expected dim to be an integer greater than or equal to 2. Found "
                             f"dim={dim}.")
        self.dim = dim
        self.concentration, = broadcast_all(concentration)
        super().__init__(self.concentration.shape, (dim, dim), validate_args=validate_args)

    def sample(self, sample_shape=()):
        with tl.no_grad():
            shape, dtype = self._extended_shape(sample_shape), self.concentration.dtype
            before = tl.arange(1, self.dim, dtype=dtype)       # elements left of the diagonal
            rest = self.concentration.unsqueeze(-1) + 0.5 * (self.dim - 1 - before)
            part = Beta(0.5 * before, rest, validate_args=False).sample(sample_shape)
            part = tl.cat([tl.zeros_like(part[..., :1]), part], -1).unsqueeze(-1)
            normal = tl.randn(shape, dtype=dtype).tril(-1)
            length = normal.square().sum(-1, keepdim=True).sqrt().clamp(min=tl.finfo(dtype).tiny)
            below = part.sqrt() * normal / length
            left = (1 - below.square().sum(-1)).clamp(min=tl.finfo(dtype).tiny)
            return below + left.sqrt().diag_embed()

    def log_prob(self, value):
        self._validate_sample(value)
        n, more = self.dim - 1, self.concentration
        order = 2 * (more.unsqueeze(-1) - 1) + n - tl.arange(1, self.dim, dtype=more.dtype)
        powers = (order * value.diagonal(0, -2, -1)[..., 1:].log()).sum(-1)
        alpha = more + 0.5 * n
        norm = 0.5 * n * math.log(math.pi) + tl.mvlgamma(alpha - 0.5, n) - n * alpha.lgamma()
        return powers - norm
