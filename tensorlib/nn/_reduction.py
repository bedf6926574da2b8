"""Names of reductions as numbers, and what says them in older scripts for PyTorch."""

from tensorlib._core.base.warned import warn_of

NUMBERS = {"none": 0, "mean": 1, "elementwise_mean": 1, "sum": 2}


def get_enum(reduction: str) -> int:
    """The number of a reduction. Raises: ValueError.

    >>> get_enum("mean")
    1
    """
    if reduction not in NUMBERS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if reduction == "elementwise_mean":
        warn_of("reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.",
                level=2)
    return NUMBERS[reduction]


def legacy_get_string(size_average: bool | None, reduce: bool | None,
                      emit_warning: bool = True, level: int = 1) -> str:
    """The reduction that both words stand for; it warns, so many frames up, that they are old.

    >>> legacy_get_string(False, None, emit_warning=False)
    'sum'
    """
    found = "none" if reduce is False else "sum" if size_average is False else "mean"
    if emit_warning:
        warn_of("size_average and reduce args will be deprecated, please use "
                f"reduction='{found}' instead.", level=level + 1)
    return found


def legacy_get_enum(size_average: bool | None, reduce: bool | None,
                    emit_warning: bool = True) -> int:
    """The number of the reduction that both words stand for."""
    return NUMBERS[legacy_get_string(size_average, reduce, emit_warning, 2)]
