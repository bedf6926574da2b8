"""The gradient of a function that is linear in pieces, as a function of what that was given.

Where a sweep records a graph of a gradient, its node is that of a function of both (see
`linear_pieces` of the sweep's rules). This is the same as an operation of programs.
"""

from tensorlib._core.layout import views
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.declare import op
from tensorlib.ops.samples import given_pairs


@op(view=True, public=False, method=False, reference=lambda x, of: x, complex=True,
    samples=given_pairs(((2, 3), (2, 3)), ((), ()), ((0, 2), (0, 2))))
def linear_pieces(input: Tensor, of: Tensor):
    """`input`, which depends in steps on `of`: its derivative is zero there."""
    return views.view(input, input.shape)


@linear_pieces.vjp("input")
def linear_pieces_vjp(g):
    """g itself"""
    return g


@linear_pieces.vjp("of")
def linear_pieces_vjp_of(g, of_shape):
    """Zeros: there is no slope on any piece."""
    return g.new_zeros(of_shape)


@linear_pieces.jvp
def linear_pieces_jvp(d_input):
    """dx"""
    return d_input
