"""The common part of the settings of libraries that are not used."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


def is_available() -> bool:
    """False: tensorlib does not compute with it."""
    return False


def flags_of(namespace: dict[str, Any]) -> Callable[..., Any]:
    """The function `flags` of a module: a context in which its settings are others."""
    @contextmanager
    def flags(**settings: Any) -> Iterator[None]:
        """A context in which settings of this module are others. Raises: TypeError for unknown."""
        for name in settings:
            if not isinstance(namespace.get(name), (bool, int, str)):
                raise TypeError(f"flags: {namespace['__name__']} has no setting {name!r}")
        before = {name: namespace[name] for name in settings}
        namespace.update(settings)
        try:
            yield
        finally:
            namespace.update(before)
    return flags
