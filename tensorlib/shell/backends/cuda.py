"""Settings of CUDA, which is not supported: they can be set, and change nothing."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tensorlib._core.base.registry import Registry
from tensorlib._core.base.warned import warn_of

from .absent import is_available


class Products:
    """The settings of matrix products: `matmul.allow_tf32` and the like."""

    def __init__(self) -> None:
        self.allow_tf32 = False
        self.allow_fp16_reduced_precision_reduction = True
        self.allow_bf16_reduced_precision_reduction = True
        self.allow_fp16_accumulation = False
        self.fp32_precision = "none"


matmul = Products()


def is_built() -> bool:
    """False: tensorlib is not built for CUDA."""
    return False


def preferred_linalg_library(backend: str | None = None) -> str:
    """The library that decompositions run in: one, "default"."""
    return "default"


# ---- kinds of attention --------------------------------------------------------------------------

_kept = Registry()


def _switch(kind: str) -> tuple[Callable[[bool], None], Callable[[], bool]]:
    """What sets one of these settings, and what says how it is set."""
    def enable(enabled: bool) -> None:
        """Keeps the setting: there is one kind of attention, which never makes the whole matrix."""
        _kept[kind] = bool(enabled)

    def is_enabled() -> bool:
        """What was set, at first True."""
        return bool(_kept[kind])

    _kept[kind] = True
    return enable, is_enabled


enable_flash_sdp, flash_sdp_enabled = _switch("flash")
enable_mem_efficient_sdp, mem_efficient_sdp_enabled = _switch("mem_efficient")
enable_math_sdp, math_sdp_enabled = _switch("math")
enable_cudnn_sdp, cudnn_sdp_enabled = _switch("cudnn")


@contextmanager
def sdp_kernel(enable_flash: bool = True, enable_math: bool = True,
               enable_mem_efficient: bool = True, enable_cudnn: bool = True) -> Iterator[None]:
    """A context that changes nothing: there is one kind of attention. It is deprecated."""
    warn_of("`tensorlib.backends.cuda.sdp_kernel()` is deprecated", FutureWarning, level=3)
    yield


__all__ = [
    "cudnn_sdp_enabled", "enable_cudnn_sdp", "enable_flash_sdp", "enable_math_sdp",
    "enable_mem_efficient_sdp", "flash_sdp_enabled", "is_available", "is_built",
    "math_sdp_enabled", "matmul", "mem_efficient_sdp_enabled", "preferred_linalg_library",
    "sdp_kernel"]
