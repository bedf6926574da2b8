"""How tensors are written, under the names by which libraries ask PyTorch."""

from typing import Any

from tensorlib import Tensor, get_printoptions
from tensorlib._core.arrays.printing import elements_text

__all__ = ["PRINT_OPTS"]


class _Options:
    """The options of `set_printoptions`, as attributes."""

    def __getattr__(self, name: str) -> Any:
        try:
            return get_printoptions()[name]  # type: ignore[literal-required]
        except KeyError:
            raise AttributeError(f"PRINT_OPTS has no attribute {name!r}") from None


PRINT_OPTS = _Options()


def _tensor_str(self: Tensor, indent: int) -> str:
    """The elements of a tensor in brackets, lines after the first one deeper by `indent`."""
    return elements_text(self, indent)
