"""Settings of unsupported features, which libraries make or mention where they are imported."""

from enum import Enum
from typing import Any

from tensorlib._core.base.absent import absent as absent_type

__all__ = ["Described", "absent", "choices", "described"]


class Described:
    """Settings that are kept as attributes, by their keywords."""

    def __init__(self, **settings: Any) -> None:
        vars(self).update(settings)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({given})"

    def __hash__(self) -> int:
        return hash((type(self), frozenset(vars(self).items())))


def described(name: str, base: type[Described] = Described) -> type[Described]:
    """A class of settings."""
    return type(name, (base,), {"__module__": __name__, "__doc__": "Settings, which are kept."})


def absent(name: str, instead: str) -> type:
    """A type whose call raises NotImplementedError, and says what to use."""
    return absent_type(name, f"is not here; {instead}", __name__)


def choices(name: str, values: str) -> Any:
    """The class of choices that have these names, numbered from 1."""
    return Enum(name, values, module=__name__)
