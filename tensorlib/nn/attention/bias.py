"""Causal masks of `scaled_dot_product_attention`, for queries and keys of different numbers.

>>> from tensorlib.nn.attention.bias import causal_lower_right
>>> causal_lower_right(2, 4)
tensor([[ True,  True,  True, False],
        [ True,  True,  True,  True]])
"""

import tensorlib as tl
from tensorlib import Tensor

__all__ = ["causal_lower_right", "causal_upper_left"]


def causal_upper_left(*size: int) -> Tensor:
    """Which keys each query sees: the first query the first key, as `is_causal=True` has it.

    Shapes: two sizes, of queries and of keys -> (L, S), of bools; PyTorch has a class for these.
    Raises: ValueError for another number of sizes.
    """
    queries, keys = two("causal_upper_left", size)
    return tl.ones(queries, keys, dtype=tl.bool).tril()


def causal_lower_right(*size: int) -> Tensor:
    """Which keys each query sees: the last query all of them, as where earlier keys are kept.

    Shapes: two sizes, of queries and of keys -> (L, S), of bools; PyTorch has a class for these.
    Raises: ValueError for another number of sizes.
    """
    queries, keys = two("causal_lower_right", size)
    return tl.ones(queries, keys, dtype=tl.bool).tril(keys - queries)


def two(name: str, size: tuple[int, ...]) -> tuple[int, int]:
    """The two sizes of a mask. Raises: ValueError."""
    if len(size) != 2:
        raise ValueError(f"{name}: takes two sizes, of queries and of keys, got {size}")
    return size
