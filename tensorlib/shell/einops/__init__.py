"""einops on tensors: once this module is imported, `einops.rearrange` and the like take them.

    import tensorlib.einops
    from einops import rearrange
    rearrange(x, "batch height width -> batch (height width)")

The functions are here as well, and the layers are in `tensorlib.einops.layers`. It needs the
package einops.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

import tensorlib as tl
from tensorlib import Tensor

__all__ = ["asnumpy", "einsum", "pack", "parse_shape", "rearrange", "reduce", "repeat", "unpack"]

IN_ONE = {"min": "amin", "max": "amax", "sum": "sum", "mean": "mean", "prod": "prod", "any": "any",
          "all": "all"}


def backend() -> type:
    """The class by which einops knows tensors: it finds it among the subclasses of its own."""
    base: type = import_module("einops._backends").AbstractBackend

    class TensorlibBackend(base):  # type: ignore[misc]
        """What einops asks of a library, in operations of this one."""

        framework_name = "tensorlib"

        def is_appropriate_type(self, tensor: Any) -> bool:
            return isinstance(tensor, Tensor)

        def from_numpy(self, x: Any) -> Tensor:
            return tl.from_numpy(x)

        def to_numpy(self, x: Tensor) -> Any:
            return np.asarray(x.detach().numpy())

        def arange(self, start: int, stop: int) -> Tensor:
            return tl.arange(start, stop)

        def shape(self, x: Tensor) -> tuple[int, ...]:
            return tuple(x.shape)

        def transpose(self, x: Tensor, axes: Any) -> Tensor:
            return x.permute(*axes)

        def reduce(self, x: Tensor, operation: str, axes: Any) -> Tensor:
            if operation not in IN_ONE:
                raise NotImplementedError(f"einops: no reduction {operation!r} of tensors")
            reduce = getattr(x, IN_ONE[operation])
            if operation != "prod":
                result: Tensor = reduce(dim=tuple(axes))
                return result
            for axis in sorted(axes, reverse=True):
                x = x.prod(dim=axis)
            return x

        def stack_on_zeroth_dimension(self, tensors: list[Tensor]) -> Tensor:
            return tl.stack(tensors)

        def add_axis(self, x: Tensor, new_position: int) -> Tensor:
            return x.unsqueeze(new_position)

        def add_axes(self, x: Tensor, n_axes: int, pos2len: dict[int, int]) -> Tensor:
            sizes = [-1] * n_axes
            for place, size in pos2len.items():
                x, sizes[place] = x.unsqueeze(place), size
            return x.expand(*sizes)

        def tile(self, x: Tensor, repeats: Any) -> Tensor:
            return x.repeat(*repeats)

        def concat(self, tensors: list[Tensor], axis: int) -> Tensor:
            return tl.cat(tensors, axis)

        def is_float_type(self, x: Tensor) -> bool:
            return x.is_floating_point()

        def layers(self) -> Any:
            return import_module("tensorlib.einops.layers")

        def einsum(self, pattern: str, *x: Tensor) -> Tensor:
            return tl.einsum(pattern, *x)

    return TensorlibBackend


if find_spec("einops"):
    Backend = backend()                # kept here: einops looks among the classes that are alive


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'tensorlib.einops' has no attribute {name!r}")
    try:
        return getattr(import_module("einops"), name)
    except ImportError:
        raise ImportError("tensorlib.einops: needs the package einops: pip install einops"
                          ) from None


def __dir__() -> list[str]:
    return sorted(__all__)
