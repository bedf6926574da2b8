"""The version of the library, and of what PyTorch may be built with: nothing of it is here."""

from tensorlib._core.base.version import __version__

cuda: str | None = None
hip: str | None = None
xpu: str | None = None
debug: bool = False
git_version: str = "Unknown"

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "xpu"]
