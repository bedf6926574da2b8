"""Parametrizations that are used often: weight norms, spectral norms, orthogonal matrices."""

from functools import partial
from typing import Any

from tensorlib import (
    Tensor, allclose, cat, eye, finfo, geqrf, linalg, matrix_exp, mv, no_grad, randn,
    vdot, zeros_like,
)
from tensorlib.autograd.modes import apart_from_transforms
from tensorlib.nn import functional as F
from tensorlib.nn.modules.conv import ConvTranspose
from tensorlib.nn.modules.module import Module
from tensorlib.nn.utils import parametrize

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]

MAPS = ("matrix_exp", "cayley", "householder")


def tensor_of(module: Module, name: str) -> Tensor:
    """A tensor of a module. Raises: ValueError where there is none of that name."""
    found = getattr(module, name, None)
    if not isinstance(found, Tensor):
        raise ValueError(f"Module '{type(module).__name__}' has no parameter or buffer with name "
                         f"'{name}'")
    return found


# ---- the norm of a weight, apart from its direction ----------------------------------------------

def norm_except_dim(v: Tensor, dim: int | None) -> Tensor:
    """The norms of all slices along `dim`, or for None or -1 the norm of all elements.

    Shapes: 1 in each dim but `dim`.
    """
    if dim is None or dim == -1:
        return v.norm()
    others = [d for d in range(v.ndim) if d != dim % v.ndim]
    return linalg.vector_norm(v, dim=others, keepdim=True) if others else v.abs()


class WeightNorm(Module):
    """g * v / |v|."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        """The weight of a norm and a direction."""
        return weight_v * (weight_g / norm_except_dim(weight_v, self.dim))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The norm and the direction of a weight."""
        return norm_except_dim(weight, self.dim), weight


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """This module, with the norm and the direction of a weight learnt apart.

    They are `parametrizations.weight.original0` and `original1`; a state of `nn.utils.weight_norm`,
    with `weight_g` and `weight_v`, is loaded, too. There is a norm for each slice along `dim`; for
    None, one for the whole weight.

    Source: Salimans and Kingma, "Weight Normalization", NeurIPS 2016.

    >>> layer = weight_norm(Linear(3, 2))
    >>> layer.parametrizations.weight.original0.shape
    tensorlib.Size([2, 1])
    """
    tensor_of(module, name)
    parametrize.register_parametrization(module, name, WeightNorm(dim), unsafe=True)
    module._register_load_state_dict_pre_hook(partial(take_former_names, name))
    return module


def take_former_names(name: str, state: dict[str, Any], prefix: str, *others: Any) -> None:
    """Renames what `nn.utils.weight_norm` puts into a state, before it is loaded."""
    former = [f"{prefix}{name}_{part}" for part in "gv"]
    if all(key in state for key in former):
        for i, key in enumerate(former):
            state[f"{prefix}parametrizations.{name}.original{i}"] = state.pop(key)


# ---- by its largest singular value ---------------------------------------------------------------

class SpectralNorm(Module):
    """W / sigma, where sigma is the largest singular value, found by power iteration."""

    _u: Tensor
    _v: Tensor

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0,
                 eps: float = 1e-12) -> None:
        super().__init__()
        if not -weight.ndim <= dim < weight.ndim:
            raise IndexError(f"spectral_norm: dim out of range (expected to be in range of "
                             f"[-{weight.ndim}, {weight.ndim - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError("spectral_norm: expected n_power_iterations to be positive, but got "
                             f"{n_power_iterations}")
        self.dim, self.eps, self.n_power_iterations = dim % weight.ndim, eps, n_power_iterations
        if weight.ndim > 1:
            with no_grad():
                matrix = self.matrix(weight)
                for name, size in zip(("_u", "_v"), matrix.shape):
                    start = matrix.new_empty((size,)).normal_(0, 1)
                    self.register_buffer(name, F.normalize(start, dim=0, eps=eps))
                self.iterate(matrix, 15)

    def matrix(self, weight: Tensor) -> Tensor:
        """The weight as a matrix with the rows along `dim`."""
        return weight.movedim(self.dim, 0).flatten(1)

    def iterate(self, matrix: Tensor, times: int) -> None:
        """Brings both vectors nearer to the singular ones."""
        with apart_from_transforms():
            for _ in range(times):
                self._u.copy_(F.normalize(mv(matrix, self._v), dim=0, eps=self.eps))
                self._v.copy_(F.normalize(mv(matrix.mH, self._u), dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        """The weight by its largest singular value."""
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self.matrix(weight)
        if self.training:
            self.iterate(matrix.detach(), self.n_power_iterations)
        return weight / vdot(self._u.clone(), mv(matrix, self._v.clone()))

    def right_inverse(self, value: Tensor) -> Tensor:
        """The value itself, since it was normalised, as is assumed."""
        return value


def spectral_norm(module: Any, name: str = "weight", n_power_iterations: int = 1,
                  eps: float = 1e-12, dim: int | None = None) -> Any:
    """This module, with a weight divided by its largest singular value.

    In training, each use makes that more exact by `n_power_iterations`. `dim` says along which dim
    the outputs are: 0, and for transposed convolutions 1, unless it is given.

    Source: Miyato et al., "Spectral Normalization for Generative Adversarial Networks", ICLR 2018.

    >>> layer = spectral_norm(Linear(20, 40))
    >>> round(tensorlib.linalg.matrix_norm(layer.weight, 2).item(), 1)
    1.0
    """
    weight = tensor_of(module, name)
    along = dim if dim is not None else 1 if isinstance(module, ConvTranspose) else 0
    return parametrize.register_parametrization(
        module, name, SpectralNorm(weight.detach(), n_power_iterations, along, eps))


# ---- orthogonal matrices -------------------------------------------------------------------------

class Orthogonal(Module):
    """An orthogonal matrix, or one of orthonormal rows or columns, of any matrix.

    With a base B, it is B times what the map gives, and the map starts at the identity.
    """

    base: Tensor | None

    def __init__(self, weight: Tensor, orthogonal_map: str, *,
                 use_trivialization: bool = True) -> None:
        super().__init__()
        self.shape, self.orthogonal_map = weight.shape, orthogonal_map
        self.use_trivialization = use_trivialization
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        wide = X.shape[-2] < X.shape[-1]
        tall = X.mT if wide else X
        if self.orthogonal_map == "householder":
            Q = by_reflections(tall)
        else:
            Q = by_skew(tall, self.orthogonal_map)
        if self.use_trivialization and self.base is not None:
            Q = self.base @ Q
        return Q.mT if wide else Q

    def right_inverse(self, Q: Tensor) -> Tensor:
        """What gives the orthogonal matrix that is nearest to Q, in a sense."""
        if Q.shape != self.shape:
            raise ValueError(f"orthogonal: expected a matrix or batch of matrices of shape "
                             f"{tuple(self.shape)}, got shape {tuple(Q.shape)}")
        wide = Q.shape[-2] < Q.shape[-1]
        tall = Q.mT if wide else Q
        n, k = tall.shape[-2:]
        if not self.use_trivialization:
            if self.orthogonal_map != "householder":
                raise NotImplementedError("orthogonal: it is not possible to assign to the matrix "
                                          f"by {self.orthogonal_map} without trivialization")
            A, tau = geqrf(tall)
            A.diagonal(dim1=-2, dim2=-1).sign_()
            A.diagonal(dim1=-2, dim2=-1)[tau == 0] *= -1
            return A.mT if wide else A
        if n != k:                       # completed to a square matrix
            tall = cat([tall, randn(*tall.shape[:-2], n, n - k, dtype=tall.dtype)], dim=-1)
            self.base = orthonormal(tall)
        else:
            self.base = tall.clone() if is_orthogonal(tall) else orthonormal(tall)
        start = zeros_like(Q)
        start.diagonal(dim1=-2, dim2=-1).fill_(-1)
        return start


def by_skew(X: Tensor, orthogonal_map: str) -> Tensor:
    """The first columns of an orthogonal matrix, of the skew-symmetric (-Hermitian) part of X."""
    n, k = X.shape[-2:]
    X = X.tril()
    if n != k:
        X = cat([X, X.new_zeros((*X.shape[:-2], n, n - k))], dim=-1)
    A = X - X.mH
    if orthogonal_map == "matrix_exp":
        Q = matrix_exp(A)
    else:
        unit = eye(n, dtype=A.dtype)
        Q = linalg.solve(unit - 0.5 * A, unit + 0.5 * A)
    return Q[..., :k]


def by_reflections(X: Tensor) -> Tensor:
    """The product of the reflections that the columns of X below the diagonal say."""
    A = X.tril(-1)
    tau = 2 / (1 + (A * A).sum(dim=-2))
    Q = linalg.householder_product(A, tau)
    return Q * X.diagonal(dim1=-2, dim2=-1).detach().int().unsqueeze(-2).to(Q.dtype)


def is_orthogonal(Q: Tensor) -> bool:
    """Whether the columns of Q are orthonormal, to rounding."""
    n, k = Q.shape[-2:]
    return allclose(Q.mH @ Q, eye(k, dtype=Q.dtype), atol=10 * n * finfo(Q.dtype).eps)


def orthonormal(A: Tensor) -> Tensor:
    """The orthogonal factor of A, with signs that make it unique."""
    X, tau = geqrf(A)
    return linalg.householder_product(X, tau) * X.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


def orthogonal(module: Any, name: str = "weight", orthogonal_map: str | None = None, *,
               use_trivialization: bool = True) -> Any:
    """This module, with a weight that stays orthogonal, or of orthonormal rows or columns.

    `orthogonal_map` says how it is made of a matrix that is learnt: "matrix_exp" or "cayley" of its
    skew-symmetric part, or "householder" reflections; unless given, the first for square and for
    complex ones, which become unitary, else the last. With `use_trivialization`, the map's result
    multiplies a fixed matrix, from which learning starts; without, "matrix_exp" and "cayley" can't
    be assigned to.

    Source: Lezcano-Casado, "Trivializations for Gradient-Based Optimization on Manifolds", NeurIPS
    2019. Raises: ValueError for vectors, unknown maps, or householder of complex matrices.

    >>> layer = orthogonal(Linear(2, 4))
    >>> (layer.weight.mT @ layer.weight).detach().round().abs()
    tensor([[1., 0.],
            [0., 1.]])
    """
    weight = tensor_of(module, name)
    if weight.ndim < 2:
        raise ValueError(f"orthogonal: expected a matrix or batch of matrices, got a tensor of "
                         f"{weight.ndim} dimensions")
    if orthogonal_map is None:
        square = weight.shape[-2] == weight.shape[-1]
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    if orthogonal_map not in MAPS:
        raise ValueError(f"orthogonal: orthogonal_map has to be one of {MAPS}, got "
                         f"{orthogonal_map!r}")
    if orthogonal_map == "householder" and weight.is_complex():
        raise ValueError("orthogonal: householder takes no complex matrices; matrix_exp and cayley "
                         "do")
    return parametrize.register_parametrization(
        module, name, Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization),
        unsafe=True)
