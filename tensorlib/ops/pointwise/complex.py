"""Functions of complex numbers, and of real ones, whose imaginary part is 0."""

import numpy as np

from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.declare import FUNCTIONS, composite, elementwise
from tensorlib.ops.lazy import declared
from tensorlib.ops.pointwise.arithmetic import atan2
from tensorlib.ops.pointwise.comparison import where
from tensorlib.ops.pointwise.unary import conjugated, sign
from tensorlib.ops.samples import given, in_complex, reals, refusals
from tensorlib.ops.shape.parts import imag_of, imag_part, real_of, real_part

inf, nan = float("inf"), float("nan")


@composite(reference=np.real, samples=reals(-2, 2), method=False, view="maybe", complex=True)
def real(input: Tensor):
    """The real part, as a view; of a real tensor the tensor itself."""
    return real_of(input)


@composite(reference=np.imag, samples=in_complex(reals(-2, 2)), method=False, view="maybe",
           complex=True, dtypes=("complex64", "complex128"))
def imag(input: Tensor):
    """The imaginary part, as a view. Raises: RuntimeError for a real tensor."""
    return imag_of(input)


def conjugates(x):
    """The reference of `conj`; of bools NumPy's gives integers."""
    return np.conj(x) if np.iscomplexobj(x) else x


@composite(reference=conjugates, samples=reals(-2, 2), view="maybe", complex=True)
def conj(input: Tensor):
    """The conjugate of each element; of a real tensor the tensor itself.

    >>> tensorlib.tensor([1 + 2j]).conj()
    tensor([1.-2.j])
    """
    return conjugated(input) if input.is_complex() else input


@composite(reference=conjugates, samples=reals(-2, 2), out=True, inplace=True, view="maybe",
           complex=True)
def conj_physical(input):
    """The conjugate of each element; of a real tensor the tensor itself."""
    return conj(input)


@composite(reference=lambda x: x, samples=reals(-2, 2), view="maybe", complex=True)
def resolve_conj(input: Tensor):
    """`input` itself, of which no conjugation waits."""
    return input


@composite(reference=lambda x: x, samples=reals(-2, 2), view="maybe", complex=True)
def resolve_neg(input: Tensor):
    """`input` itself, of which no negation waits."""
    return input


@elementwise(reference=np.angle, samples=reals(-2, 2), edges=(0.0, 1.0, -2.5, inf, -inf, nan),
             kernel="angle", to_float=True, inplace=False, public=False, method=False,
             slopes={"input": 0})
def real_angle(input):
    """The angle of real numbers: see `angle`."""


@composite(reference=np.angle, samples=reals(0.3, 2), out=True, complex=True)
def angle(input: Tensor):
    """The angle in the plane of complex numbers: of real ones 0 or, for negative ones, pi.

    NaN for NaN.
    Units: radians. Gradient: of a real tensor 0. Integers give the default float.

    >>> tensorlib.angle(tensorlib.tensor([2.0, -2.0]))
    tensor([0.0000, 3.1416])
    >>> tensorlib.angle(tensorlib.tensor([1j, -1j]))
    tensor([ 1.5708, -1.5708])
    """
    if input.is_complex():
        return atan2(imag_part(input), real_part(input))
    return real_angle(input)


def directions(x):
    """The reference of `sgn`."""
    if not np.iscomplexobj(x):
        return np.sign(1 * x).astype(x.dtype)
    return x / np.where(x == 0, 1, np.abs(x))


@composite(reference=directions, samples=reals(0.1, 3), out=True, inplace=True, complex=True)
def sgn(input):
    """Each element over its absolute value, and 0 at 0; of a real tensor the sign.

    Gradient: of real tensors 0; of complex ones that of the quotient, and 0 at 0.

    >>> tensorlib.sgn(tensorlib.tensor([3 + 4j, 0, -2]))
    tensor([ 0.6000+0.8000j,  0.0000+0.0000j, -1.0000+0.0000j])
    """
    if not input.is_complex():
        return sign(input)
    size = input.abs()
    return where(size == 0, 0.0, input / where(size == 0, 1.0, size))


@composite(reference=lambda r, angle: r * np.exp(1j * angle), method=False, out=True,
           dtypes=("float32", "float64"), result_dtype=lambda r, angle: r.dtype.to_complex(),
           samples=lambda rng: [((rng.uniform(0.1, 2, shape), rng.uniform(-3, 3, other)), {})
                                for shape, other in (((2, 3), (2, 3)), ((3,), ()))])
def polar(abs: Tensor, angle: Tensor):
    """The complex numbers of these absolute values and angles.

    abs, angle: tensors that broadcast. Units: radians.
    Raises: RuntimeError unless both are float32 or both float64.

    >>> tensorlib.polar(tensorlib.tensor([1.0, 2.0]), tensorlib.tensor([0.0, 3.14159265]))
    tensor([ 1.+0.0000e+00j, -2.-1.7485e-07j])
    """
    if abs.dtype != angle.dtype or abs.dtype.name not in ("float32", "float64"):
        raise RuntimeError("polar: takes two tensors of float32 or two of float64, got "
                           f"{abs.dtype} and {angle.dtype}")
    return FUNCTIONS["complex"](abs * angle.cos(), abs * angle.sin())


@composite(reference=lambda x: conjugates(np.swapaxes(x, -1, -2)),
           samples=given(((2, 3),), ((2, 1, 3),)),
           errors=refusals((RuntimeError, (2,))), view="maybe", complex=True)
def adjoint(input: Tensor):
    """The matrices of the last two dims transposed, and conjugate where they are complex.

    Shapes: (*, M, N) -> (*, N, M), a view of a real tensor. Raises: RuntimeError for fewer than two
    dims.
    """
    if input.ndim < 2:
        raise RuntimeError(f"adjoint: takes matrices, got a tensor of shape {tuple(input.shape)}")
    return conj(input.transpose(-2, -1))


declared(__name__)
