"""The frequencies that elements of a spectrum stand for, and spectra in the order of these."""

import numpy as np

from tensorlib._core.tensor.tensor import Tensor
from tensorlib.ops.arguments import integer
from tensorlib.ops.declare import FUNCTIONS, composite
from tensorlib.ops.fourier.arguments import check_length, many, one_dim
from tensorlib.ops.lazy import declared
from tensorlib.ops.samples import calls, given, refusals, refused_calls
from tensorlib.ops.shape.repeating import roll

COUNTS = calls((1,), (4,), (5, 0.5), (6, 2))
BAD_COUNTS = refused_calls((RuntimeError, 0), (RuntimeError, -3), (TypeError, 2.5))
SHIFTED = given(((5,),), ((3, 4),), ((3, 4), 1), ((2, 3, 4), (0, 2)), ((2, 0),))


def frequencies(name, n, d, dtype, half, options):
    """k / (n d) for the elements of a spectrum, or of its first half."""
    n = integer(name, "n", n)
    check_length(name, n)
    options = {key: value for key, value in options.items() if value is not None}
    requires_grad = options.pop("requires_grad", False)
    out = FUNCTIONS["empty"](n // 2 + 1 if half else n, dtype=dtype, **options)
    if not (out.is_floating_point() or out.is_complex()):
        raise RuntimeError(f"{name}: dtype must be a floating one, got {out.dtype}")
    places = np.arange(len(out))
    if not half:
        places[(n + 1) // 2:] -= n
    out.copy_(FUNCTIONS["from_numpy"](places / (n * float(d))))
    return out.requires_grad_(requires_grad) if requires_grad else out


@composite(tensors=(), method=False, public=False,
           reference=lambda n, d=1.0: np.fft.fftfreq(n, d).astype("f4"),
           samples=COUNTS, errors=BAD_COUNTS, differentiable=False, out=True)
def fft_fftfreq(n, d=1.0, *, dtype=None, layout=None, device=None, requires_grad=False):
    """The frequency of each element of an `fft` of `n` samples that lie `d` apart.

    Shapes: (n,). Units: cycles per unit of `d`. Raises: RuntimeError for n below 1; TypeError.

    >>> tensorlib.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    return frequencies("fft.fftfreq", n, d, dtype, False, {
        "layout": layout, "device": device, "requires_grad": requires_grad})


@composite(tensors=(), method=False, public=False,
           reference=lambda n, d=1.0: np.fft.rfftfreq(n, d).astype("f4"), samples=COUNTS,
           errors=BAD_COUNTS, differentiable=False, out=True)
def fft_rfftfreq(n, d=1.0, *, dtype=None, layout=None, device=None, requires_grad=False):
    """The frequency of each element of an `rfft` of `n` samples that lie `d` apart.

    Shapes: (n // 2 + 1,). Units: cycles per unit of `d`. Raises: as `fftfreq`.
    """
    return frequencies("fft.rfftfreq", n, d, dtype, True, {
        "layout": layout, "device": device, "requires_grad": requires_grad})


def shifted(name, x, dim, back):
    """The elements moved along dims by half of their sizes."""
    dims = range(x.ndim) if dim is None else [one_dim(name, x, d) for d in many(name, "dim", dim)]
    dims = tuple(dims)
    if not dims:
        return x.clone()
    return roll(x, tuple(x.shape[d] // 2 * (-1 if back else 1) for d in dims), dims)


@composite(method=False, public=False, complex=True, reference=np.fft.fftshift,
           samples=SHIFTED, errors=refusals((IndexError, (4,), 1), (TypeError, (4,), 0.5)))
def fft_fftshift(input: Tensor, dim=None):
    """The elements of a spectrum in the order of their frequencies, the negative ones first.

    dim: one or more, by default all. Raises: IndexError for a dim out of range; TypeError.
    """
    return shifted("fft.fftshift", input, dim, False)


@composite(method=False, public=False, complex=True, reference=np.fft.ifftshift,
           samples=SHIFTED, errors=refusals((IndexError, (4,), 1), (TypeError, (4,), 0.5)))
def fft_ifftshift(input: Tensor, dim=None):
    """The inverse of `fftshift`. Raises: as `fftshift`."""
    return shifted("fft.ifftshift", input, dim, True)


declared(__name__)
