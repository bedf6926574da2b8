"""Apple's GPUs, which are not supported."""

from .absent import is_available


def is_built() -> bool:
    """False: tensorlib is not built for them."""
    return False


def is_macos_or_newer(major: int, minor: int) -> bool:
    """False: no GPU is asked for."""
    return False


__all__ = ["is_available", "is_built", "is_macos_or_newer"]
