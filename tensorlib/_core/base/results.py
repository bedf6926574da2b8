"""The named tuples that functions with several results return."""

from collections import namedtuple
from typing import Any

from tensorlib._core.base import library


def result_type(name: str, fields: str) -> Any:
    """A class of named tuples, which `tensorlib.return_types` has under its name.

    There pickles find it: where it is made, the name is that of the function.
    """
    kind = namedtuple(name, fields, module="tensorlib.return_types")
    kind.__repr__ = written
    return kind


def written(result: Any) -> str:
    """A result as PyTorch writes it, a line for each part."""
    parts = ",\n".join(f"{name}={part!r}" for name, part in zip(result._fields, result))
    return f"{library.name}.return_types.{type(result).__name__}(\n{parts})"
