"""Operations: each is declared once, in one block in a module of its family."""

from tensorlib._core.base.explained import explain
from tensorlib._core.graph.op import Op, registry
from tensorlib._core.interpreters import subclasses
from tensorlib.ops.pointwise import unary, arithmetic, combined, comparison, casting
from tensorlib.ops.shape import views, joining, rebasing, parts, piecewise_linear
from tensorlib.ops.create import creation, random
from tensorlib.ops.products import matmul
from tensorlib.ops.reduce import reductions, extremes, variance, softmax
from tensorlib.ops.index import indexing, scattering
from tensorlib.ops.calls import Call, GradOp, build_grad_op, call
from tensorlib.ops.complete import check_registry
from tensorlib.ops.compose import compose
from tensorlib.ops.declare import FUNCTIONS, Tensors, check_tensors, composite, elementwise, op
from tensorlib.ops.lazy import declare_all
from tensorlib.ops.primitive import defjvp, defvjp, defvmap, primitive

check_registry()
check_tensors()

__all__ = [
    "Call",
    "GradOp",
    "Op",
    "Tensors",
    "build_grad_op",
    "call",
    "compose",
    "composite",
    "defjvp",
    "defvjp",
    "defvmap",
    "elementwise",
    "op",
    "primitive",
    "registry",
]


def __dir__():
    return sorted(__all__)

explain(vars(), __all__)
