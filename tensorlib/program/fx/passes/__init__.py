"""What goes through a graph: `shape_prop`, which notes shapes."""

from . import shape_prop as shape_prop

__all__ = ["shape_prop"]
