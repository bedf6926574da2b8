"""The version of the library, and the versions of CUDA and others, which are None."""

from tensorlib._core.base.version import __version__

cuda: str | None = None
hip: str | None = None
xpu: str | None = None
debug: bool = False
git_version: str = "Unknown"

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "xpu"]
