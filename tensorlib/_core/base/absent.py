"""Types of PyTorch's that are not supported: `isinstance` returns False, and a call raises."""

from typing import Any, NoReturn


def absent(name: str, why: str, module: str) -> type:
    """A type without instances: calling it raises NotImplementedError, which says why."""
    def refuse(cls: type, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"{name}: {why}")

    return type(name, (), {"__module__": module, "__slots__": (), "__new__": refuse,
                           "__doc__": f"Not supported: {why}."})
