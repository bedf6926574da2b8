"""Types of `tensorlib.graph.picture`."""

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any

from tensorlib import Tensor

_Params = Mapping[str, Any] | Iterable[tuple[str, Any]] | None

class Dot(str):
    def _repr_svg_(self) -> str | None: ...

def dot(tensors: Tensor | Sequence[Tensor], params: _Params = None) -> Dot: ...
def draw(
    tensors: Tensor | Sequence[Tensor], path: str | PathLike[str], params: _Params = None
) -> str: ...
