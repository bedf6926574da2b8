"""Types of `tensorlib.autograd.graph`."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, overload

from tensorlib import Tensor
from tensorlib._core.graph.node import Node as Node
from tensorlib._core.graph.handles import RemovableHandle

class GradientEdge(NamedTuple):
    node: Node
    output_nr: int

def get_gradient_edge(tensor: Tensor) -> GradientEdge: ...
def increment_version(tensor: Tensor | Sequence[Tensor]) -> None: ...

@overload
def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[[Sequence[Tensor | None]], object], *,
    mode: Literal["all"] = "all"
) -> RemovableHandle: ...
@overload
def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[[Tensor], object], *, mode: Literal["any"]
) -> RemovableHandle: ...

class saved_tensors_hooks:
    def __init__(
        self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]
    ) -> None: ...
    def __enter__(self) -> object: ...
    def __exit__(
        self, kind: object = None, error: object = None, trace: object = None
    ) -> None: ...

class disable_saved_tensors_hooks:
    def __init__(self, error_message: str) -> None: ...
    def __enter__(self) -> object: ...
    def __exit__(
        self, kind: object = None, error: object = None, trace: object = None
    ) -> None: ...

class save_on_cpu:
    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None: ...
    def __enter__(self) -> object: ...
    def __exit__(self, *error: object) -> None: ...

class allow_mutation_on_saved_tensors(saved_tensors_hooks):
    def __init__(self) -> None: ...
