"""The functions of `torch.cuda` for the CPU, for code that is written for any device.

Operations run one after the other, so there is nothing to wait for: streams and events are there
to be handed on.

>>> tensorlib.cpu.synchronize()
>>> tensorlib.cpu.device_count(), tensorlib.cpu.current_device()
(1, 'cpu')
"""

from typing import Any

from tensorlib._core.base.importing import on_first_use
from tensorlib._core.base.registry import Registry

__all__ = ["Event", "Stream", "StreamContext", "current_device", "current_stream", "device_count",
           "is_available", "is_initialized", "set_device", "stream", "synchronize"]

__getattr__, __dir__ = on_first_use(__name__, {"amp": "amp"})


def is_available() -> bool:
    """True: tensors are on it."""
    return True


def is_initialized() -> bool:
    """True: there is nothing to initialize."""
    return True


def device_count() -> int:
    """1: all processors are one device."""
    return 1


def current_device() -> str:
    """The device that there is: `"cpu"`."""
    return "cpu"


def set_device(device: Any) -> None:
    """Does nothing: there is one device."""


def synchronize(device: Any = None) -> None:
    """Does nothing: an operation is done when its call returns."""


class Event:
    """A point in the run, which is reached at once."""

    def query(self) -> bool:
        """True: what came before it is done."""
        return True

    def record(self, stream: Any = None) -> None:
        """Does nothing."""

    def synchronize(self) -> None:
        """Does nothing."""

    def wait(self, stream: Any = None) -> None:
        """Does nothing."""


class Stream:
    """A sequence of operations, of which there is only one."""

    def __init__(self, priority: int = -1) -> None:
        self.priority = priority

    def wait_stream(self, stream: Any) -> None:
        """Does nothing."""

    def wait_event(self, event: Any) -> None:
        """Does nothing."""

    def record_event(self) -> None:
        """Does nothing."""


_kept = Registry(current=Stream())


def current_stream(device: Any = None) -> Stream:
    """The stream of the innermost `stream` context."""
    found: Stream = _kept["current"]
    return found


class StreamContext:
    """A context in which `current_stream` gives this stream; None leaves the one that it gives."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        self.before = _kept["current"]
        if self.stream is not None:
            _kept["current"] = self.stream

    def __exit__(self, *error: object) -> None:
        _kept["current"] = self.before


def stream(stream: Stream | None) -> StreamContext:
    """`StreamContext(stream)`."""
    return StreamContext(stream)
