"""Types of `tensorlib.autograd.forward_ad`."""

from typing import NamedTuple

from tensorlib import Tensor

class UnpackedDualTensor(NamedTuple):
    primal: Tensor
    tangent: Tensor | None

def enter_dual_level() -> int: ...
def exit_dual_level(*, level: int | None = None) -> None: ...
def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor: ...
def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor: ...

class dual_level:
    def __enter__(self) -> int: ...
    def __exit__(
        self, kind: object = None, error: object = None, trace: object = None
    ) -> None: ...
