"""Types of `tensorlib.graph.graph_summary`."""

from collections.abc import Mapping, Sequence

from tensorlib import Tensor

class Summary:
    nodes: int
    by_operation: Mapping[str, int]
    saved_by_operation: Mapping[str, int]
    saved_bytes: int
    depth: int
    def __init__(
        self, by_operation: Mapping[str, int], saved_by_operation: Mapping[str, int],
        saved_bytes: int, depth: int
    ) -> None: ...

def summary(tensors: Tensor | Sequence[Tensor]) -> Summary: ...
