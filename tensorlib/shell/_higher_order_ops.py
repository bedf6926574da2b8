"""Functions of functions that PyTorch has in `torch._higher_order_ops`."""

from collections.abc import Callable
from typing import Any

from tensorlib import cat, vmap
from tensorlib._core.base.importing import named_as_function
from tensorlib.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

__all__ = ["associative_scan"]

__path__: list[str] = []
named_as_function(f"{__name__}.associative_scan", __name__)


def associative_scan(combine_fn: Callable[[Any, Any], Any], xs: Any, dim: int,
                     reverse: bool = False, combine_mode: str = "pointwise") -> Any:
    """The running results of an associative function along a dim, the first being that of `xs`.

    combine_mode: "pointwise" for a function of elements, "generic" for one of slices without the
    dim. Source: Hillis and Steele, "Data Parallel Algorithms", 1986: as many steps as the
    logarithm of the size.

    >>> from tensorlib._higher_order_ops.associative_scan import associative_scan
    >>> associative_scan(lambda a, b: a * b, tensorlib.tensor([1., 2., 3., 4.]), 0)
    tensor([ 1.,  2.,  6., 24.])
    """
    leaves, structure = tree_flatten(xs)
    combine = combine_fn if combine_mode == "pointwise" else vmap(combine_fn, dim, dim)
    if reverse:
        leaves = [x.flip(dim) for x in leaves]
    count, step = leaves[0].shape[dim], 1
    while step < count:
        earlier, later = (tree_unflatten([x.narrow(dim, start, count - step) for x in leaves],
                                         structure) for start in (0, step))
        leaves = [cat([x.narrow(dim, 0, step), y], dim)
                  for x, y in zip(leaves, tree_leaves(combine(earlier, later)))]
        step *= 2
    return tree_unflatten([x.flip(dim) for x in leaves] if reverse else leaves, structure)
