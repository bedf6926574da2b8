"""Layers that change shapes."""

from collections.abc import Sequence

from tensorlib import Tensor
from tensorlib.nn.modules.repr import Shown

__all__ = ["Flatten", "Unflatten"]


class Flatten(Shown):
    """Several dims made one: by default all but the first, the batch.

    >>> Flatten()(tensorlib.ones(2, 3, 4)).shape
    tensorlib.Size([2, 12])
    """

    shown = ("start_dim", "end_dim")

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)


class Unflatten(Shown):
    """One dim made several, with the given sizes.

    >>> Unflatten(1, (3, 4))(tensorlib.ones(2, 12)).shape
    tensorlib.Size([2, 3, 4])
    """

    shown = ("dim", "unflattened_size")

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        super().__init__()
        if not isinstance(dim, int):
            raise TypeError(f"Unflatten: dim must be an int, got {type(dim).__name__}")
        if not (isinstance(unflattened_size, (tuple, list))
                and all(isinstance(size, int) for size in unflattened_size)):
            raise TypeError(f"Unflatten: unflattened_size must be a tuple of ints, got "
                            f"{unflattened_size!r}")
        self.dim, self.unflattened_size = dim, unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        """The tensor with these dims in the place of one."""
        return input.unflatten(self.dim, self.unflattened_size)
