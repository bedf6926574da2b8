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

    def __reduce__(self) -> tuple:
        return _operation, (self._name,)

    def __repr__(self) -> str:
        return f"<OpOverload(aten.{self._name})>"


def __getattr__(name: str) -> OpOverload:
    if name.startswith("__"):
        raise AttributeError(f"aten has no operation {name!r}")
    globals()[name] = made = OpOverload(name)
    return made


def _operation(name: str) -> OpOverload:
    operation, _, overload = name.partition(".")
    found = globals().get(operation) or __getattr__(operation)
    return getattr(found, overload) if overload else found
