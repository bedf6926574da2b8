"""What Tensors can do: every operation declared once, in one visible block of its family."""

from tensorlib._core.operators import connect_operators
from tensorlib._core.subscript import connect_subscripts
from tensorlib.ops import (
    pointwise,
    arithmetic,
    comparison,
    casting,
    shaping,
    creation,
    random,
    linalg,
    reductions,
    softmax,
    indexing,
)
from tensorlib.ops.declare import FUNCTIONS, check_tensors

check_tensors()
connect_operators()
connect_subscripts()
