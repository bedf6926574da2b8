"""Spectral norms in the older way: the weight is computed anew before each call."""

from typing import Any

from tensorlib import Tensor, dot, mv, no_grad
from tensorlib.autograd.modes import apart_from_transforms
from tensorlib.nn import functional as F
from tensorlib.nn.modules.conv import ConvTranspose
from tensorlib.nn.parameter import Parameter
from tensorlib.nn.utils.weight_norm_hook import begun_weight, hook_of


class SpectralNorm:
    """The hook before each call that divides a weight by its largest singular value."""

    def __init__(self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0,
                 eps: float = 1e-12) -> None:
        if n_power_iterations <= 0:
            raise ValueError("spectral_norm: expected n_power_iterations to be positive, but got "
                             f"{n_power_iterations}")
        self.name, self.dim, self.eps = name, dim, eps
        self.n_power_iterations = n_power_iterations

    def matrix(self, weight: Tensor) -> Tensor:
        """The weight as a matrix with the rows along `dim`."""
        return weight.movedim(self.dim, 0).unsqueeze(-1).flatten(1)

    def computed(self, module: Any, iterates: bool) -> Tensor:
        """The weight; the vectors are brought nearer to the singular ones if `iterates`."""
        weight: Tensor = getattr(module, self.name + "_orig")
        u, v = getattr(module, self.name + "_u"), getattr(module, self.name + "_v")
        matrix = self.matrix(weight)
        if iterates:
            with apart_from_transforms():
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(mv(matrix.mT, u), dim=0, eps=self.eps))
                    u.copy_(F.normalize(mv(matrix, v), dim=0, eps=self.eps))
        return weight / dot(u.clone(), mv(matrix, v.clone()))

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.computed(module, module.training))


def spectral_norm(module: Any, name: str = "weight", n_power_iterations: int = 1,
                  eps: float = 1e-12, dim: int | None = None) -> Any:
    """This module, with the parameter `weight_orig`: see `parametrizations.spectral_norm`.

    Raises: RuntimeError where the weight has one already, ValueError where it has no shape yet.
    """
    if hook_of(module, SpectralNorm, name) is not None:
        raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
    if dim is None:
        dim = 1 if isinstance(module, ConvTranspose) else 0
    weight = begun_weight(module, "spectral_norm", name)
    hook = SpectralNorm(name, n_power_iterations, dim, eps)
    with no_grad():
        matrix = hook.matrix(weight)
        u, v = (F.normalize(matrix.new_empty((size,)).normal_(0, 1), dim=0, eps=eps)
                for size in matrix.shape)
    delattr(module, name)
    module.register_parameter(name + "_orig", weight)
    setattr(module, name, weight.detach())
    module.register_buffer(name + "_u", u)
    module.register_buffer(name + "_v", v)
    module.register_forward_pre_hook(hook)
    return module


def remove_spectral_norm(module: Any, name: str = "weight") -> Any:
    """This module, with a plain weight again. Raises: ValueError where it is not normalised."""
    key = hook_of(module, SpectralNorm, name)
    if key is None:
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    hook = module._forward_pre_hooks.pop(key)
    with no_grad():
        weight = hook.computed(module, iterates=False)
    for each in (name, name + "_u", name + "_v", name + "_orig"):
        delattr(module, each)
    module.register_parameter(name, Parameter(weight.detach()))
    return module
