"""Weight norms in the older way: the weight is computed anew before each call."""

from typing import Any

from tensorlib import Tensor, no_grad
from tensorlib.nn.parameter import Parameter, is_lazy
from tensorlib.nn.utils.parametrizations import norm_except_dim


class WeightNorm:
    """The hook before each call that computes a weight of its norm and its direction."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name, self.dim = name, -1 if dim is None else dim

    def computed(self, module: Any) -> Tensor:
        """The weight."""
        g, v = getattr(module, self.name + "_g"), getattr(module, self.name + "_v")
        weight: Tensor = v * (g / norm_except_dim(v, self.dim))
        return weight

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.computed(module))


def hook_of(module: Any, kind: type, name: str) -> Any:
    """The key of a hook of one kind for a name, or None."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, kind) and vars(hook)["name"] == name:
            return key
    return None


def begun_weight(module: Any, kind: str, name: str) -> Tensor:
    """The weight that a norm is to be taken of. Raises: ValueError before it has a shape."""
    weight: Tensor = getattr(module, name)
    if is_lazy(weight):
        raise ValueError(f"{kind}: '{name}' of {module} has no shape yet; call the module once "
                         "before, so that it begins")
    return weight


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """This module, with parameters `weight_g` and `weight_v`: see `parametrizations.weight_norm`.

    Raises: RuntimeError where the weight has one already, ValueError where it has no shape yet.
    """
    if hook_of(module, WeightNorm, name) is not None:
        raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
    weight, hook = begun_weight(module, "weight_norm", name), WeightNorm(name, dim)
    delattr(module, name)
    module.register_parameter(name + "_g", Parameter(norm_except_dim(weight, dim).detach()))
    module.register_parameter(name + "_v", Parameter(weight.detach()))
    setattr(module, name, hook.computed(module))
    module.register_forward_pre_hook(hook)
    return module


def remove_weight_norm(module: Any, name: str = "weight") -> Any:
    """This module, with a plain weight again. Raises: ValueError where it has no norm apart."""
    key = hook_of(module, WeightNorm, name)
    if key is None:
        raise ValueError(f"weight_norm of '{name}' not found in {module}")
    hook = module._forward_pre_hooks.pop(key)
    with no_grad():
        weight = hook.computed(module)
    delattr(module, name)
    delattr(module, name + "_g")
    delattr(module, name + "_v")
    module.register_parameter(name, Parameter(weight))
    return module
