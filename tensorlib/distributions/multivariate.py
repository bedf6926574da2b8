"""Multivariate normal distributions."""

import tensorlib as tl
from tensorlib.distributions import constraints
from tensorlib.distributions.arguments import derived, require
from tensorlib.distributions.distribution import HALF_LOG_TWO_PI, Centred
from tensorlib.linalg import cholesky, solve_triangular


class MultivariateNormal(Centred):
    """The normal distribution of vectors, of mean `loc` and one of three forms of covariance.

    covariance_matrix, its inverse precision_matrix, or scale_tril, its Cholesky factor; the others
    are computed where they are asked for.

    >>> from tensorlib.distributions import MultivariateNormal
    >>> MultivariateNormal(tensorlib.zeros(2), tensorlib.eye(2)).log_prob(tensorlib.zeros(2))
    tensor(-1.8379)
    """

    arg_constraints = {
        "loc": constraints.real_vector, "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite, "scale_tril": constraints.lower_cholesky}
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc, covariance_matrix=None, precision_matrix=None, scale_tril=None,
                 validate_args=None):
        given = {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix,
                 "scale_tril": scale_tril}
        given = {name: value for name, value in given.items() if value is not None}
        require("MultivariateNormal", tl.Tensor, loc=loc, **given)
        if loc.ndim < 1:
            raise ValueError("loc must be at least one-dimensional.")
        if len(given) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril "
                             "may be specified.")
        (name, matrix), = given.items()
        if matrix.ndim < 2:
            raise ValueError(f"{name} must be at least two-dimensional")
        rows, _ = tl.broadcast_tensors(matrix[..., 0], loc)
        shape, n = rows.shape[:-1], rows.shape[-1]
        self.loc = loc.expand((*shape, n))
        vars(self)[name] = matrix.expand((*shape, n, n))
        super().__init__(shape, (n,), validate_args=validate_args)
        if name == "scale_tril":        # the name of PyTorch's, which classes of others override
            self._unbroadcasted_scale_tril = matrix
        elif name == "covariance_matrix":
            self._unbroadcasted_scale_tril = cholesky(matrix)
        else:
            self._unbroadcasted_scale_tril = factor_of_inverse(matrix)

    def expand(self, batch_shape, _instance=None):
        kept = {name: vars(self)[name] for name in self.arg_constraints if name in vars(self)}
        new = super().expand(batch_shape, _instance)
        for name in self.arg_constraints:
            if name not in kept:
                vars(new).pop(name, None)
        return new

    @derived
    def scale_tril(self):
        """The Cholesky factor of the covariance."""
        n = self._event_shape[0]
        return self._unbroadcasted_scale_tril.expand((*self._batch_shape, n, n))

    @derived
    def covariance_matrix(self):
        """The covariance."""
        n, factor = self._event_shape[0], self._unbroadcasted_scale_tril
        return (factor @ factor.mT).expand((*self._batch_shape, n, n))

    @derived
    def precision_matrix(self):
        """The inverse of the covariance."""
        n, factor = self._event_shape[0], self._unbroadcasted_scale_tril
        inverse = solve_triangular(factor, tl.eye(n, dtype=self.loc.dtype), upper=False)
        return (inverse.mT @ inverse).expand((*self._batch_shape, n, n))

    @property
    def variance(self):
        squares = self._unbroadcasted_scale_tril.square().sum(-1)
        return squares.expand((*self._batch_shape, *self._event_shape))

    def rsample(self, sample_shape=()):
        z = tl.randn(self._extended_shape(sample_shape), dtype=self.loc.dtype)
        return self.loc + (self._unbroadcasted_scale_tril @ z.unsqueeze(-1)).squeeze(-1)

    def _log_volume(self):
        """Half the logarithm of the determinant of the covariance."""
        return self._unbroadcasted_scale_tril.diagonal(0, -2, -1).log().sum(-1)

    def _square_length(self, columns):
        """The trace of columns.mT @ precision_matrix @ columns."""
        factor = self._unbroadcasted_scale_tril
        return solve_triangular(factor, columns, upper=False).square().sum((-2, -1))

    def _diagonal_length(self, diagonal):
        """The trace of the precision matrix times a diagonal one."""
        return self._square_length(diagonal.sqrt().diag_embed())

    def log_prob(self, value):
        self._validate_sample(value)
        away = (value - self.loc).unsqueeze(-1)
        z = solve_triangular(self._unbroadcasted_scale_tril, away, upper=False).squeeze(-1)
        n = self._event_shape[0]
        return -0.5 * z.square().sum(-1) - self._log_volume() - n * HALF_LOG_TWO_PI

    def entropy(self):
        n = self._event_shape[0]
        found = n * (0.5 + HALF_LOG_TWO_PI) + self._log_volume()
        return found.expand(self._batch_shape)


class LowRankMultivariateNormal(Centred):
    """The normal distribution of vectors, of covariance W @ W.mT + diag(d).

    W is `cov_factor`, of few columns, and d is `cov_diag`. Nothing is computed from the whole
    covariance, but by Woodbury's identity and the determinant lemma from the capacitance,
    1 + W.mT @ diag(1 / d) @ W.

    Source: Petersen and Pedersen, The Matrix Cookbook, 2012, section 3.2.
    """

    arg_constraints = {
        "loc": constraints.real_vector, "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1)}
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc, cov_factor, cov_diag, validate_args=None):
        require("LowRankMultivariateNormal", tl.Tensor, loc=loc, cov_factor=cov_factor,
                cov_diag=cov_diag)
        if loc.ndim < 1:
            raise ValueError("loc must be at least one-dimensional.")
        if cov_factor.ndim < 2:
            raise ValueError("cov_factor must be at least two-dimensional")
        n, rank = loc.shape[-1], cov_factor.shape[-1]
        if cov_factor.shape[-2] != n or cov_diag.shape[-1:] != (n,):
            raise ValueError(f"cov_factor must be a batch of matrices with shape {n} x m, and "
                             f"cov_diag one of vectors with shape ({n},), got shapes "
                             f"{tuple(cov_factor.shape)} and {tuple(cov_diag.shape)}")
        try:
            shape = tl.broadcast_shapes(
                loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        except RuntimeError as error:
            raise ValueError(f"Incompatible batch shapes: loc {tuple(loc.shape)}, cov_factor "
                             f"{tuple(cov_factor.shape)}, cov_diag {tuple(cov_diag.shape)}"
                             ) from error
        self.loc, self.cov_diag = loc.expand((*shape, n)), cov_diag.expand((*shape, n))
        self.cov_factor = cov_factor.expand((*shape, n, rank))
        super().__init__(shape, (n,), validate_args=validate_args)

    @derived
    def _capacitance_factor(self):
        """The Cholesky factor of the capacitance."""
        scaled = self.cov_factor / self.cov_diag.sqrt().unsqueeze(-1)
        rank = scaled.shape[-1]
        return cholesky(scaled.mT @ scaled + tl.eye(rank, dtype=scaled.dtype))

    @derived
    def _reduced(self):
        """A for which the precision is diag(1 / d) - A.mT @ A."""
        scaled = self.cov_factor.mT / self.cov_diag.unsqueeze(-2)
        return solve_triangular(self._capacitance_factor, scaled, upper=False)

    @derived
    def scale_tril(self):
        """The Cholesky factor of the covariance."""
        root = self.cov_diag.sqrt().unsqueeze(-1)
        scaled = self.cov_factor / root
        n = self._event_shape[0]
        return root * cholesky(scaled @ scaled.mT + tl.eye(n, dtype=scaled.dtype))

    @derived
    def covariance_matrix(self):
        """The covariance."""
        return self.cov_factor @ self.cov_factor.mT + self.cov_diag.diag_embed()

    @derived
    def precision_matrix(self):
        """The inverse of the covariance."""
        return self.cov_diag.reciprocal().diag_embed() - self._reduced.mT @ self._reduced

    @property
    def variance(self):
        return self.cov_factor.square().sum(-1) + self.cov_diag

    def rsample(self, sample_shape=()):
        shape, dtype = self._extended_shape(sample_shape), self.loc.dtype
        few = tl.randn((*shape[:-1], self.cov_factor.shape[-1], 1), dtype=dtype)
        common = (self.cov_factor @ few).squeeze(-1)
        return self.loc + common + self.cov_diag.sqrt() * tl.randn(shape, dtype=dtype)

    def _log_volume(self):
        """Half the logarithm of the determinant of the covariance."""
        return self._capacitance_factor.diagonal(0, -2, -1).log().sum(-1) + 0.5 * (
            self.cov_diag.log().sum(-1))

    def _square_length(self, columns):
        """The trace of columns.mT @ precision_matrix @ columns."""
        whole = (columns.square() / self.cov_diag.unsqueeze(-1)).sum((-2, -1))
        return whole - (self._reduced @ columns).square().sum((-2, -1))

    def _diagonal_length(self, diagonal):
        """The trace of the precision matrix times a diagonal one."""
        along = (self._reduced.square() * diagonal.unsqueeze(-2)).sum((-2, -1))
        return (diagonal / self.cov_diag).sum(-1) - along

    def log_prob(self, value):
        self._validate_sample(value)
        away = self._square_length((value - self.loc).unsqueeze(-1))
        n = self._event_shape[0]
        return -0.5 * away - self._log_volume() - n * HALF_LOG_TWO_PI

    def entropy(self):
        return self._event_shape[0] * (0.5 + HALF_LOG_TWO_PI) + self._log_volume()


def factor_of_inverse(precision):
    """The Cholesky factor of the inverse of positive definite matrices."""
    turned = cholesky(precision.flip((-2, -1)))
    upper = turned.flip((-2, -1)).mT
    eye = tl.eye(precision.shape[-1], dtype=precision.dtype)
    return solve_triangular(upper, eye, upper=False)


_precision_to_scale_tril = factor_of_inverse        # its name in PyTorch
