"""What can be asked of tensors, and the functions of complex numbers for real ones."""

import math

import numpy as np

from tensorlib._core.base.dtypes import promote_types
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.comparison import where
from tensorlib.ops.declare import FUNCTIONS, composite, publish
from tensorlib.ops.late import declared
from tensorlib.ops.samples import given, given_pairs, reals, refusals

add, zeros_like = FUNCTIONS["add"], FUNCTIONS["zeros_like"]


# ---- questions -----------------------------------------------------------------------------------

@composite(differentiable=False, reference=lambda x: bool(x.any()),
           samples=given(((),), ((1,),), ((1, 1),)),
           errors=refusals((RuntimeError, (2,)), (RuntimeError, (0,))))
def is_nonzero(input: Tensor) -> bool:
    """Whether the only element of `input` is not 0. Raises: RuntimeError for others than one."""
    if input.numel() != 1:
        raise RuntimeError(f"is_nonzero: takes a tensor of one element, got {input.numel()}")
    return bool(input.detach())


@composite(differentiable=False, reference=lambda x, y: x.shape == y.shape,
           samples=given_pairs(((2, 3), (2, 3)), ((2,), (1,)), ((), ())))
def is_same_size(input, other: Tensor) -> bool:
    """Whether both tensors have one shape."""
    return input.shape == other.shape


@composite(differentiable=False, reference=lambda x: x.dtype.kind in "if", samples=reals(-2, 2))
def is_signed(input: Tensor) -> bool:
    """Whether the dtype of `input` has negative numbers."""
    return input.dtype.is_signed


@composite(differentiable=False, reference=lambda x: False, samples=reals(-2, 2))
def is_conj(input: Tensor) -> bool:
    """False: there are no complex tensors, whose conjugation could wait."""
    return False


@composite(differentiable=False, reference=lambda x: False, samples=reals(-2, 2))
def is_neg(input: Tensor) -> bool:
    """False: no tensor's negation waits."""
    return False


@composite(differentiable=False, reference=lambda x: -1, samples=reals(-2, 2))
def get_device(input: Tensor) -> int:
    """-1, as PyTorch says for the CPU."""
    return -1


def result_type(tensor: object, other: object):
    """The dtype of a sum of both, which are tensors or numbers.

    Raises: TypeError.

    >>> tensorlib.result_type(tensorlib.tensor([1, 2]), 1.0)
    tensorlib.float32
    """
    both = [x.detach()[:0] if isinstance(x, Tensor) and x.ndim else x for x in (tensor, other)]
    if not any(isinstance(x, Tensor) for x in both):
        both = [FUNCTIONS["scalar_tensor"](x, dtype=FUNCTIONS["tensor"](x).dtype) for x in both]
    if all(isinstance(x, Tensor) and x.dtype.name == "bool" for x in both):
        return promote_types(both[0].dtype, both[1].dtype)
    return add(*both).dtype


publish("result_type", result_type, result_type.__doc__, method=False)


# ---- complex numbers whose imaginary part is 0 ---------------------------------------------------

@composite(reference=np.real, samples=reals(-2, 2), method=False)
def real(input: Tensor):
    """The real part, which is `input` itself."""
    return input


@composite(reference=lambda x: x, samples=reals(-2, 2))
def conj(input: Tensor):
    """The conjugate complex numbers: `input` itself, which is real."""
    return input


@composite(reference=lambda x: x, samples=reals(-2, 2), out=True, inplace=True)
def conj_physical(input):
    """The conjugate complex numbers: `input` itself, which is real."""
    return input


@composite(reference=lambda x: x, samples=reals(-2, 2))
def resolve_conj(input: Tensor):
    """`input` itself, of which no conjugation waits."""
    return input


@composite(reference=lambda x: x, samples=reals(-2, 2))
def resolve_neg(input: Tensor):
    """`input` itself, of which no negation waits."""
    return input


@composite(reference=np.angle, samples=reals(-2, 2), out=True)
def angle(input):
    """The angle in the plane of complex numbers: 0 or, for negative numbers, pi; NaN for NaN.

    Units: radians. Gradient: 0. Integers give the default float.

    >>> tensorlib.angle(tensorlib.tensor([2.0, -2.0]))
    tensor([0.0000, 3.1416])
    """
    x = input if input.is_floating_point() else input.to(add(input[..., :0] if input.ndim else
                                                             input, 1.0).dtype)
    return where(x.isnan(), x, zeros_like(x).masked_fill(x < 0, math.pi))


@composite(reference=lambda x: np.swapaxes(x, -1, -2), samples=given(((2, 3),), ((2, 1, 3),)),
           errors=refusals((RuntimeError, (2,))))
def adjoint(input: Tensor):
    """The matrices of the last two dims transposed, and conjugate where they are complex.

    Shapes: (*, M, N) -> (*, N, M), a view. Raises: RuntimeError for fewer than two dims.
    """
    if input.ndim < 2:
        raise RuntimeError(f"adjoint: takes matrices, got a tensor of shape {tuple(input.shape)}")
    return input.transpose(-2, -1)


declared(__name__)
