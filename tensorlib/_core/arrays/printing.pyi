"""Types of `tensorlib._core.arrays.printing`, as far as `tensorlib` offers it."""

from contextlib import AbstractContextManager
from typing import Literal, TypedDict, Unpack

_Profile = Literal["default", "short", "full"]

class _Options(TypedDict, total=False):
    precision: int
    threshold: float
    edgeitems: int
    linewidth: int
    sci_mode: bool | None
    profile: _Profile

def set_printoptions(
    precision: int | None = None, threshold: float | None = None, edgeitems: int | None = None,
    linewidth: int | None = None, profile: _Profile | None = None, sci_mode: bool | None = None
) -> None: ...
def get_printoptions() -> _Options: ...
def printoptions(**changes: Unpack[_Options]) -> AbstractContextManager[None]: ...
