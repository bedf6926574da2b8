"""Complex numbers and their real and imaginary parts, as views of each other."""

import numpy as np

from tensorlib._core.layout import reinterpret
from tensorlib._core.tensor.tensor import Tensor, attach
from tensorlib.ops.declare import op
from tensorlib.ops.samples import given, given_pairs, in_complex

COMPLEX = ("complex64", "complex128")


def as_pairs(x):
    """The reference of `view_as_real`."""
    return np.stack((x.real, x.imag), -1)


@op(view=True, linear=True, public=False, method=False, reference=np.real, dtypes=COMPLEX,
    samples=in_complex(given(((2, 3),), ((),), ((0, 2),))))
def real_part(input: Tensor):
    """The real parts of complex numbers, as a view: see `real`."""
    return reinterpret.part_of_complex(input, 0)


@real_part.vjp("input")
def real_part_vjp(g):
    """g itself, which the sweep casts to complex numbers"""
    return g


@op(view=True, linear=True, public=False, method=False, reference=np.imag, dtypes=COMPLEX,
    samples=in_complex(given(((2, 3),), ((),), ((0, 2),))))
def imag_part(input: Tensor):
    """The imaginary parts of complex numbers, as a view: see `imag`."""
    return reinterpret.part_of_complex(input, 1)


@imag_part.vjp("input")
def imag_part_vjp(g):
    """As all rules the transpose of the derivative, which is a product with -i."""
    return g * -1j


@op(view=True, linear=True, method=False, reference=as_pairs, dtypes=COMPLEX,
    samples=in_complex(given(((2, 3),), ((),), ((0, 2),))))
def view_as_real(input: Tensor):
    """Complex numbers as pairs of their real and imaginary parts, as a view.

    Shapes: (*) -> (*, 2). Raises: RuntimeError for what is not complex.

    >>> tensorlib.view_as_real(tensorlib.tensor([1 + 2j, 3.0]))
    tensor([[1., 2.],
            [3., 0.]])
    """
    return reinterpret.as_real(input)


@view_as_real.vjp("input")
def view_as_real_vjp(g):
    """The pairs of g as numbers, conjugated: what a rule gives is the transpose."""
    return view_as_complex(g.contiguous()).conj()


@op(view=True, linear=True, method=False, dtypes=("float32", "float64"),
    prepare=lambda x: (x.contiguous(),),
    reference=lambda x: x[..., 0] + 1j * x[..., 1], result_dtype=lambda x: x.dtype.to_complex(),
    samples=given(((3, 2),), ((2,),), ((0, 2),)))
def view_as_complex(input: Tensor):
    """Pairs of real and imaginary parts as complex numbers, as a view.

    Shapes: (*, 2) -> (*). Raises: RuntimeError for other dtypes than float32 and float64, for
    another last dim, and where the numbers do not lie in pairs.

    >>> tensorlib.view_as_complex(tensorlib.tensor([[1.0, 2.0], [3.0, 0.0]]))
    tensor([1.+2.j, 3.+0.j])
    """
    return reinterpret.as_complex(input)


@view_as_complex.vjp("input")
def view_as_complex_vjp(g):
    """The conjugate of g as pairs: what a rule gives is the transpose."""
    return view_as_real(g.conj())


@op(linear=True, method=False, out=True, dtypes=("float32", "float64"),
    reference=lambda real, imag: real + 1j * imag,
    result_dtype=lambda real, imag: real.dtype.to_complex(),
    samples=given_pairs(((2, 3), (2, 3)), ((2, 1), (3,)), ((), (2,)), ((0, 2), (2,))))
def complex(real: Tensor, imag: Tensor):
    """The complex numbers of these real and imaginary parts, with broadcasting.

    real, imag: the parts. Raises: RuntimeError unless both are float32 or both float64.

    >>> tensorlib.complex(tensorlib.tensor([1.0, 3.0]), tensorlib.tensor([2.0, 0.0]))
    tensor([1.+2.j, 3.+0.j])
    """
    return reinterpret.of_parts(real, imag)


@complex.vjp("real")
def complex_vjp_real(g):
    """The real part of g."""
    return real_part(g)                # of g as it is: the operation takes no complex numbers


@complex.vjp("imag")
def complex_vjp_imag(g):
    """The imaginary part of g."""
    return imag_part(g)


def real_of(self):
    """The real part, as a view; of a real tensor the tensor itself."""
    return real_part(self) if self.is_complex() else self


def set_real(self, value):
    """Writes the real part."""
    real_of(self).copy_(value if isinstance(value, Tensor) else self.new_tensor(value).real)


def imag_of(self):
    """The imaginary part, as a view. Raises: RuntimeError for a real tensor."""
    if not self.is_complex():
        raise RuntimeError(f"imag: not implemented for {self.dtype}, which has no imaginary part")
    return imag_part(self)


def set_imag(self, value):
    """Writes the imaginary part. Raises: RuntimeError for a real tensor."""
    imag_of(self).copy_(value if isinstance(value, Tensor) else self.new_tensor(value).real)


attach("real", property(real_of, set_real, doc=real_of.__doc__))
attach("imag", property(imag_of, set_imag, doc=imag_of.__doc__))


# ---- adjoint matrices ----------------------------------------------------------------------------

def adjoint_matrices(self):
    """The matrices in the last two dims transposed, and conjugate where they are complex.

    Shapes: (*, N, M) -> (*, M, N), a view of a real tensor. Raises: RuntimeError below 2 dims.
    """
    return self.mT.conj() if self.is_complex() else self.mT


def adjoint_matrix(self):
    """The matrix transposed, and conjugate where it is complex.

    Shapes: (N, M) -> (M, N), () -> (). Raises: RuntimeError for other numbers of dims.
    """
    if self.ndim not in (0, 2):
        raise RuntimeError(f"H: expects a matrix, got a tensor of {self.ndim} dims; "
                           "x.mH is for batches of them")
    return self.t().conj() if self.is_complex() else self.t()


attach("H", property(adjoint_matrix, doc=adjoint_matrix.__doc__))
attach("mH", property(adjoint_matrices, doc=adjoint_matrices.__doc__))
