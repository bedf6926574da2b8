"""Operations under the names that they have in ATen: `torch.ops.aten.add.Tensor`.

Libraries look them up for tables of what they override. Called, an operation is the function of
that name, whatever its overload.
"""

from __future__ import annotations

from typing import Any

import tensorlib as tl
from tensorlib import nn


class OpOverload:
    """An operation, or one of its overloads: `aten.add`, and `aten.add.Tensor`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = self._name.partition(".")[0]
        for home in (tl, nn.functional, tl.linalg, tl.Tensor):
            if hasattr(home, name):
                return getattr(home, name)(*args, **kwargs)
        raise NotImplementedError(f"aten.{self._name}: there is no operation of that name")

    def __getattr__(self, name: str) -> OpOverload:
        if name.startswith("__") or "." in self._name:
            raise AttributeError(f"aten.{self._name} has no attribute {name!r}")
        vars(self)[name] = made = OpOverload(f"{self._name}.{name}")
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpOverload) and self._name == other._name

    def __hash__(self) -> int:
        return hash(self._name)

    @property
    def __name__(self) -> str:
        return self._name

    @property
    def namespace(self) -> str:
        """Where it is: in "aten"."""
        return "aten"

    @property
    def overloadpacket(self) -> OpOverload:
        """The operation itself: `aten.add`."""
        return __getattr__(self._name.partition(".")[0])

    def name(self) -> str:
        """The name with that of the overload, unless that is the default: "aten::add.Tensor"."""
        return f"aten::{self._name.removesuffix('.default')}"

    def __reduce__(self) -> tuple:
        return _operation, (self._name,)

    def __repr__(self) -> str:
        return f"<OpOverload(aten.{self._name})>"

    def __str__(self) -> str:
        return f"aten.{self._name}"


def __getattr__(name: str) -> OpOverload:
    if name.startswith("__"):
        raise AttributeError(f"aten has no operation {name!r}")
    return globals().setdefault(name, OpOverload(name))


def _operation(name: str) -> OpOverload:
    operation, _, overload = name.partition(".")
    found = __getattr__(operation)
    return getattr(found, overload) if overload else found
