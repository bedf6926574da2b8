"""The named tuples that functions with several results return."""

from collections import namedtuple
from typing import Any

from tensorlib._core.base import library


def result_type(name: str, fields: str) -> Any:
    """A class of named tuples, an attribute of `tensorlib.return_types`.

    Pickles find it there, since in its own module the name is that of the function.
    """
    kind = namedtuple(name, fields, module="tensorlib.return_types")
    kind.__repr__ = written
    return kind


def written(result: Any) -> str:
    """The repr of a result as in PyTorch, with a line for each field."""
    parts = ",\n".join(f"{name}={part!r}" for name, part in zip(result._fields, result))
    return f"{library.name}.return_types.{type(result).__name__}(\n{parts})"
