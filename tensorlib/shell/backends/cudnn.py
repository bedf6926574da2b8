"""Settings of cuDNN, which is not supported: they can be set, and change nothing."""

from .absent import flags_of, is_available

enabled: bool = True
benchmark: bool = False
benchmark_limit: int = 10
deterministic: bool = False
allow_tf32: bool = True
fp32_precision: str = "none"

flags = flags_of(globals())


def version() -> int | None:
    """None: there is no cuDNN."""
    return None


def is_acceptable(tensor: object) -> bool:
    """False: no tensor is on a GPU."""
    return False


__all__ = ["allow_tf32", "benchmark", "benchmark_limit", "deterministic", "enabled", "flags",
           "fp32_precision", "is_acceptable", "is_available", "version"]
