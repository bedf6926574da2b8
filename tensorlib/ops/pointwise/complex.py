"""The functions of complex numbers for real ones, whose imaginary part is 0."""

import numpy as np

from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.declare import composite, elementwise
from tensorlib.ops.late import declared
from tensorlib.ops.samples import given, reals, refusals

inf, nan = float("inf"), float("nan")


@composite(reference=np.real, samples=reals(-2, 2), method=False, view="maybe")
def real(input: Tensor):
    """The real part, which is `input` itself."""
    return input


@composite(reference=lambda x: x, samples=reals(-2, 2), view="maybe")
def conj(input: Tensor):
    """The conjugate complex numbers: `input` itself, which is real."""
    return input


@composite(reference=lambda x: x, samples=reals(-2, 2), out=True, inplace=True, view="maybe")
def conj_physical(input):
    """The conjugate complex numbers: `input` itself, which is real."""
    return input


@composite(reference=lambda x: x, samples=reals(-2, 2), view="maybe")
def resolve_conj(input: Tensor):
    """`input` itself, of which no conjugation waits."""
    return input


@composite(reference=lambda x: x, samples=reals(-2, 2), view="maybe")
def resolve_neg(input: Tensor):
    """`input` itself, of which no negation waits."""
    return input


@elementwise(reference=np.angle, samples=reals(-2, 2), edges=(0.0, 1.0, -2.5, inf, -inf, nan),
             to_float=True, inplace=False)
def angle(input):
    """The angle in the plane of complex numbers: 0 or, for negative numbers, pi; NaN for NaN.

    Units: radians. Gradient: 0. Integers give the default float.

    >>> tensorlib.angle(tensorlib.tensor([2.0, -2.0]))
    tensor([0.0000, 3.1416])
    """


@angle.deriv
def angle_deriv():
    return 0


@composite(reference=lambda x: np.swapaxes(x, -1, -2), samples=given(((2, 3),), ((2, 1, 3),)),
           errors=refusals((RuntimeError, (2,))), view="maybe")
def adjoint(input: Tensor):
    """The matrices of the last two dims transposed, and conjugate where they are complex.

    Shapes: (*, M, N) -> (*, N, M), a view. Raises: RuntimeError for fewer than two dims.
    """
    if input.ndim < 2:
        raise RuntimeError(f"adjoint: takes matrices, got a tensor of shape {tuple(input.shape)}")
    return input.transpose(-2, -1)


declared(__name__)
