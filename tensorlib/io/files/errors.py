"""The error of files that can't be loaded."""

__all__ = ["LoadError"]


class LoadError(RuntimeError, ValueError):
    """A file is damaged, is none of those that `load` reads, or names what `load` doesn't build."""
