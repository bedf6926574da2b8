"""Pruning: weights masked with zeros and ones.

>>> layer = l1_unstructured(Linear(4, 2), "weight", amount=3)
>>> int((layer.weight == 0).sum())
3
>>> list(layer.state_dict())
['bias', 'weight_orig', 'weight_mask']

What is learnt is then `weight_orig`, and before each call the weight is its product with the mask.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tensorlib import Tensor, no_grad, ones_like, rand, rand_like
from tensorlib.nn.utils.convert_parameters import parameters_to_vector

__all__ = [
    "BasePruningMethod", "CustomFromMask", "Identity", "L1Unstructured", "LnStructured",
    "PruningContainer", "RandomStructured", "RandomUnstructured", "custom_from_mask",
    "global_unstructured", "identity", "is_pruned", "l1_unstructured", "ln_structured",
    "random_structured", "random_unstructured", "remove",
]


class BasePruningMethod(ABC):
    """A way to choose what to take out of use; a subclass computes a mask.

    PRUNING_TYPE says what `compute_mask` is given: "unstructured", the elements that are in use, as
    a vector; "structured", the slices along `self.dim` that are in use; "global", everything.
    """

    PRUNING_TYPE: str
    _tensor_name: str

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask for a tensor, which has zeros at least where `default_mask` has."""

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    def apply_mask(self, module: Any) -> Tensor:
        """The tensor of a module with the mask applied."""
        mask, original = (getattr(module, f"{self._tensor_name}_{part}") for part in (
            "mask", "orig"))
        return mask.to(original.dtype) * original

    def prune(self, t: Tensor, default_mask: Tensor | None = None,
              importance_scores: Tensor | None = None) -> Tensor:
        """A tensor with a newly computed mask applied. Raises: ValueError for other shapes."""
        scores = t if importance_scores is None else importance_scores
        check_scores(scores, t)
        before = ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, before)

    @classmethod
    def apply(cls, module: Any, name: str, *args: Any, importance_scores: Tensor | None = None,
              **kwargs: Any) -> Any:
        """The method, after it was applied to a parameter of a module, on top of earlier ones.

        `importance_scores` stand for the parameter when it is decided what is taken out.
        """
        method = cls(*args, **kwargs)
        method._tensor_name = name
        key = hook_key(module, name)
        original = getattr(module, name)
        if importance_scores is not None:
            check_scores(importance_scores, original)
        scores = (original if importance_scores is None else importance_scores).detach()
        with no_grad():
            if key is None:
                mask = method.compute_mask(scores, default_mask=ones_like(original)).to(
                    original.dtype)
            else:
                mask = combined(method, scores, getattr(module, name + "_mask"))
        if key is None:
            delattr(module, name)
            module.register_parameter(name + "_orig", original)
            hook: Any = method
        else:
            old = module._forward_pre_hooks.pop(key)
            earlier = list(old) if isinstance(old, PruningContainer) else [old]
            hook = PruningContainer(*earlier, method)
        module.register_buffer(name + "_mask", mask)
        setattr(module, name, hook.apply_mask(module))
        module.register_forward_pre_hook(hook)
        return hook

    def remove(self, module: Any) -> None:
        """Makes the masked tensor a plain parameter again, with its zeros."""
        name = self._tensor_name
        with no_grad():
            value = self.apply_mask(module)
        original = getattr(module, name + "_orig")
        original.data = value
        for each in (name, name + "_mask", name + "_orig"):
            delattr(module, each)
        module.register_parameter(name, original)


def check_scores(scores: Tensor, t: Tensor) -> None:
    """Raises ValueError for scores of another shape."""
    if scores.shape != t.shape:
        raise ValueError(f"prune: importance_scores should have the shape of the parameter, "
                         f"{tuple(t.shape)}, got {tuple(scores.shape)}")


def hook_key(module: Any, name: str) -> Any:
    """The key of the hook that prunes a tensor, or None."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            return key
    return None


def dim_of(method: Any, t: Tensor) -> int:
    """The dim whose slices a method prunes, from the first one. Raises: IndexError."""
    if not -t.ndim <= method.dim < t.ndim:
        raise IndexError(f"Invalid index {method.dim} for tensor of size {tuple(t.shape)}")
    return int(method.dim % t.ndim)


def combined(method: Any, t: Tensor, mask: Tensor) -> Tensor:
    """A mask with what a method takes out on top. Raises: ValueError for an unknown kind."""
    where: Any
    if method.PRUNING_TYPE == "unstructured":
        where = mask == 1
    elif method.PRUNING_TYPE == "global":
        where = ...
    elif method.PRUNING_TYPE == "structured":
        dim = dim_of(method, t)
        kept = mask.movedim(dim, 0).flatten(1).sum(1) != 0 if t.ndim > 1 else mask != 0
        where = (slice(None),) * dim + (kept,)
    else:
        raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
    new = mask.to(t.dtype, copy=True)
    new[where] = method.compute_mask(t[where], default_mask=mask[where]).to(new.dtype)
    return new


class PruningContainer(BasePruningMethod):
    """Several methods that were applied to one tensor, one after the other."""

    def __init__(self, *args: BasePruningMethod) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod | None) -> None:
        """Adds a method. Raises: TypeError, or ValueError for one of another tensor."""
        if method is None:
            return
        if not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        name = getattr(self, "_tensor_name", method._tensor_name)
        if method._tensor_name != name:
            raise ValueError("Can only add pruning methods acting on the parameter named "
                             f"'{name}', found '{method._tensor_name}'")
        self._tensor_name = name
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: int) -> BasePruningMethod:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask with what the last method takes out on top."""
        return combined(self._pruning_methods[-1], t, default_mask)


# ---- the methods -------------------------------------------------------------------------------

class Identity(BasePruningMethod):
    """Prunes nothing."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask that was there."""
        return default_mask


class Amount(BasePruningMethod):
    """Prunes as many elements as `amount` says, or that fraction of them for a float."""

    def __init__(self, amount: int | float) -> None:
        share = isinstance(amount, float)
        if isinstance(amount, bool) or not isinstance(amount, (int, float)):
            raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
        if amount < 0 or share and amount > 1:
            raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a "
                             "non-negative integer")
        self.amount = amount

    def count(self, size: int) -> int:
        """How many of `size` are taken out. Raises: ValueError for more than there are."""
        number = round(self.amount * size) if isinstance(self.amount, float) else self.amount
        if number > size:
            raise ValueError(f"amount={number} should be smaller than the number of parameters to "
                             f"prune={size}")
        return number


class Unstructured(Amount):
    """Prunes single elements, those with the lowest scores."""

    PRUNING_TYPE = "unstructured"

    def scores(self, t: Tensor) -> Tensor:
        """A score for each element: each method has its own."""
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask that was there, with zeros at the least scores."""
        mask = default_mask.clone()
        number = self.count(t.numel())
        if number:
            mask.view(-1)[self.scores(t).reshape(-1).topk(number, largest=False).indices] = 0
        return mask


class RandomUnstructured(Unstructured):
    """Prunes random elements."""

    def scores(self, t: Tensor) -> Tensor:
        """Random numbers."""
        return rand_like(t)


class L1Unstructured(Unstructured):
    """Prunes the elements of the smallest absolute value."""

    def scores(self, t: Tensor) -> Tensor:
        """The sizes of the elements."""
        return t.abs()


class Structured(Amount):
    """Prunes whole slices along a dim, those with the lowest scores."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: int | float, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim

    def scores(self, t: Tensor) -> Tensor:
        """A score for each slice: each method has its own."""
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask that was there, with zeros in the slices of the least scores."""
        if t.ndim <= 1:
            raise ValueError("Structured pruning can only be applied to multidimensional tensors. "
                             f"Found tensor of shape {tuple(t.shape)} with {t.ndim} dims")
        size = t.shape[dim_of(self, t)]
        number = self.count(size)
        mask = default_mask.to(t.dtype, copy=True)
        if number:
            out = self.scores(t).topk(number, largest=False).indices
            mask.movedim(self.dim, 0)[out] = 0
        return mask


class RandomStructured(Structured):
    """Prunes random slices."""

    def scores(self, t: Tensor) -> Tensor:
        """Random numbers."""
        return rand(t.shape[self.dim])


class LnStructured(Structured):
    """Prunes the slices with the smallest norms."""

    def __init__(self, amount: int | float, n: Any, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def scores(self, t: Tensor) -> Tensor:
        """The norms of the slices, of power n."""
        others = [d for d in range(t.ndim) if d != self.dim % t.ndim]
        return t.norm(p=self.n, dim=others)


class CustomFromMask(BasePruningMethod):
    """Prunes what a given mask says."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """What both masks keep."""
        if default_mask.shape != self.mask.shape:
            raise ValueError(f"custom_from_mask: the mask has shape {tuple(self.mask.shape)}, the "
                             f"parameter {tuple(default_mask.shape)}")
        return default_mask * self.mask.to(default_mask.dtype)


# ---- as functions ------------------------------------------------------------------------------

def identity(module: Any, name: str) -> Any:
    """This module, with a mask of ones on a parameter."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Any, name: str, amount: int | float) -> Any:
    """This module, with elements of a parameter taken out at random."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Any, name: str, amount: int | float,
                    importance_scores: Tensor | None = None) -> Any:
    """This module, with the smallest elements of a parameter taken out."""
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_structured(module: Any, name: str, amount: int | float, dim: int) -> Any:
    """This module, with slices of a parameter taken out at random."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(module: Any, name: str, amount: int | float, n: Any, dim: int,
                  importance_scores: Tensor | None = None) -> Any:
    """This module, with the slices of a parameter taken out that have the smallest norms."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Any, name: str, mask: Tensor) -> Any:
    """This module, with what a mask says taken out of a parameter."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(parameters: Iterable[tuple[Any, str]], pruning_method: Any,
                        importance_scores: Mapping[tuple[Any, str], Tensor] | None = None,
                        **kwargs: Any) -> None:
    """Prunes several parameters (pairs of a module and a name) as if they were one.

    Raises: TypeError for a method that is not unstructured, or what are not pairs.
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    if not isinstance(importance_scores or {}, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    method, places, scores = pruning_method(**kwargs), list(parameters), importance_scores or {}
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError('Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. '
                        f"Found method {pruning_method} of type {method.PRUNING_TYPE}")
    tensors = [getattr(module, name) for module, name in places]
    before = [getattr(module, name + "_mask", ones_like(tensor))
              for (module, name), tensor in zip(places, tensors)]
    with no_grad():
        mask = combined(
            method, parameters_to_vector([scores.get(place, tensor).detach()
                                          for place, tensor in zip(places, tensors)]),
            parameters_to_vector(before))
    start = 0
    for (module, name), tensor in zip(places, tensors):
        end = start + tensor.numel()
        custom_from_mask(module, name, mask[start:end].view_as(tensor))
        start = end


def remove(module: Any, name: str) -> Any:
    """This module, with the masked tensor as a plain parameter, zeros and all.

    Raises: ValueError where the parameter is not pruned.
    """
    key = hook_key(module, name)
    if key is None:
        raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning "
                         "can be removed")
    module._forward_pre_hooks.pop(key).remove(module)
    return module


def is_pruned(module: Any) -> bool:
    """Whether any tensor in a module is pruned."""
    return any(isinstance(hook, BasePruningMethod) for each in module.modules()
               for hook in each._forward_pre_hooks.values())
