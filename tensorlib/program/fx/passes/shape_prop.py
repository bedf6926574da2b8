"""Runs a graph, and notes what each node gives in its `meta`."""

from typing import Any, NamedTuple

import tensorlib
from tensorlib import Tensor
from tensorlib._core.base.explained import explain

from ..interpreter import Interpreter
from ..node import Node, map_aggregate

__all__ = ["ShapeProp", "TensorMetadata"]


class TensorMetadata(NamedTuple):
    """What a node's tensor was like."""

    shape: tensorlib.Size
    dtype: tensorlib.dtype
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: tensorlib.memory_format | None
    is_quantized: bool
    qparams: dict[str, Any]


def described(result: Tensor) -> TensorMetadata:
    """The note on one tensor."""
    formats = (tensorlib.contiguous_format, tensorlib.channels_last, tensorlib.channels_last_3d)
    ranks = {tensorlib.channels_last: 4, tensorlib.channels_last_3d: 5}
    layout = next((form for form in formats if ranks.get(form, result.ndim) == result.ndim
                   and result.is_contiguous(memory_format=form)), None)
    return TensorMetadata(result.shape, result.dtype, result.requires_grad, result.stride(), layout,
                          False, {})


class ShapeProp(Interpreter):
    """Notes shapes, dtypes and strides as `meta["tensor_meta"]` of each node.

    >>> traced = tensorlib.fx.symbolic_trace(lambda x: x.sum(0))
    >>> result = tensorlib.fx.passes.shape_prop.ShapeProp(traced).propagate(tensorlib.ones(2, 3))
    >>> [node.meta["tensor_meta"].shape for node in traced.graph.nodes]
    [tensorlib.Size([2, 3]), tensorlib.Size([3]), tensorlib.Size([3])]
    """

    def run_node(self, n: Node) -> Any:
        """What a node gives, after it was noted."""
        result = super().run_node(n)
        found = False

        def note(value: Any) -> Any:
            nonlocal found
            if not isinstance(value, Tensor):
                return value
            found = True
            return described(value)

        meta = map_aggregate(result, note)
        if found:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """What the graph gives for these arguments."""
        return self.run(*args)


explain(vars(), __all__)
