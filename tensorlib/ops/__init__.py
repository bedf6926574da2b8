"""What Tensors can do: every operation declared once, in one visible block of its family."""

from tensorlib._core.operators import connect_operators
from tensorlib.ops import (
    pointwise,
    arithmetic,
    comparison,
    casting,
    shaping,
    creation,
)
from tensorlib.ops.declare import FUNCTIONS

connect_operators()
