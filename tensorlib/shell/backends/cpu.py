"""The processor."""

from tensorlib import _kernels

NAMES = {"v4": "AVX512", "v3": "AVX2"}


def get_cpu_capability() -> str:
    """The instructions that kernels are compiled for, by PyTorch's names: "AVX2", "DEFAULT"."""
    return NAMES.get(_kernels.level, "DEFAULT")


__all__ = ["get_cpu_capability"]
