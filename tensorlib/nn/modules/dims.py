"""Families of layers that are written once, with a class for each number of dims."""

from collections.abc import Iterable
from typing import Any

from tensorlib.nn.modules.module import Module

Sizes = int | tuple[int, ...]           # one number for all dims, or one for each


class PerDim(Module):
    """A layer that is there for several numbers of dims; each has a class, which is one row.

    The row says the number: `class MaxPool2d(MaxPool, ndim=2)`. The family says in `_function`
    what it calls, a name in `nn.functional` with a place for the number: "max_pool{}d".
    """

    ndim: int
    _function: str

    def __init_subclass__(cls, ndim: int | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        if ndim is not None:
            cls.ndim = ndim
            if hasattr(cls, "_function"):
                cls._function = cls._function.format(ndim)

    def each(self, option: str, value: Any, count: int | None = None,
             single: bool = False) -> tuple[Any, ...]:
        """An option as a tuple with a number for each dim. Raises: ValueError for other counts.

        single: a sequence of one number is for all dims, too, as it is for the function.
        """
        count = self.ndim if count is None else count
        if not isinstance(value, Iterable):
            return (value,) * count
        values = tuple(value)
        if single and len(values) == 1:
            return values * count
        if len(values) != count:
            raise ValueError(f"{type(self).__name__}: {option} must be one number or {count}, got "
                             f"{values}")
        return values
