"""The one table of tolerances: how far a right result may lie from its reference.

`DEFAULTS` are PyTorch's for `assert_close`. A kind widens them for results whose error grows with
the amount of work: a reduction adds many roundings, a gradient passes through several operations.
"""

from functools import cache
from typing import Any

DEFAULTS = {  # dtype: (rtol, atol); a dtype that is not listed must match exactly
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}

KINDS = {  # kind: factor on both tolerances
    "exact": 0.0,
    "elementwise": 1.0,
    "reduction": 4.0,
    "product": 8.0,
    "gradient": 10.0,
}


def tolerance(dtype: Any, kind: str = "elementwise") -> dict[str, float]:
    """The keyword arguments `rtol` and `atol` for results of `dtype` made by `kind` of work.

    Kinds are "exact", "elementwise", "reduction", "product" and "gradient".

    Raises: ValueError for an unknown kind.

    >>> tolerance("float32")
    {'rtol': 1.3e-06, 'atol': 1e-05}
    >>> tolerance("float64", "exact")
    {'rtol': 0.0, 'atol': 0.0}
    """
    if kind not in KINDS:
        raise ValueError(f"tolerance: kind is {kind!r}, it takes one of {', '.join(KINDS)}")
    rtol, atol = DEFAULTS.get(dtype_name(dtype), (0.0, 0.0))
    factor = KINDS[kind]
    return {"rtol": factor * rtol, "atol": factor * atol}


@cache
def dtype_name(dtype: Any) -> str:
    """The bare name of a tensorlib or NumPy dtype: 'float32', 'bool'."""
    return str(dtype).rpartition(".")[2]
