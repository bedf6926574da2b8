"""What libraries ask PyTorch's compiler while it traces, which is not here: nothing is traced."""

from typing import Any

__all__ = ["TracingContext", "active_fake_mode", "detect_fake_mode"]


def detect_fake_mode(inputs: Any = None) -> None:
    """None: there are no fake tensors."""


active_fake_mode = detect_fake_mode


class TracingContext:
    """What is traced, which is nothing."""

    @staticmethod
    def try_get() -> None:
        """None: nothing is traced."""
