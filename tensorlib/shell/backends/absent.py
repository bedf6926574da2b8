"""The common part of devices and libraries that are not used: questions, settings, refusals."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from tensorlib._core.base.device import NoSuchDevice


def is_available() -> bool:
    """False: tensorlib does not compute with it."""
    return False


def device_count() -> int:
    """0: there is no such device."""
    return 0


def manual_seed(seed: int) -> None:
    """Does nothing: `tensorlib.manual_seed` seeds the generator of the CPU."""


def manual_seed_all(seed: int) -> None:
    """Does nothing, as `manual_seed`."""


def needs_device(name: str, message: str, module: str) -> Any:
    """The function of a name, or the type of one in capitals, which can only raise."""
    def function(*args: object, **kwargs: object) -> NoReturn:
        raise NoSuchDevice(message)

    doc = f"Raises RuntimeError: {message.partition(': ')[2].rstrip('.')}."
    if name[0].isupper():                        # `isinstance` may ask for it
        return type(name, (), {"__new__": function, "__doc__": doc, "__module__": module})
    function.__name__ = function.__qualname__ = name
    function.__module__, function.__doc__ = module, doc
    return function


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
