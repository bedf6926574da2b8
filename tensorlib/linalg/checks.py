"""Checks of the arguments of linear algebra, and sample matrices for its tests."""

import numpy as np

from tensorlib._core.apply.elementwise import UnsupportedDtype
from tensorlib._core.base.dtypes import has_gradients
from tensorlib._core.interpreters.foreign import proxied

DTYPES = ("float32", "float64")
TAKEN = (*DTYPES, "complex64", "complex128")


class LinAlgError(RuntimeError, np.linalg.LinAlgError):
    """A matrix that has not what was asked for: no inverse, no Cholesky factor, no convergence."""


# ---- what is refused -----------------------------------------------------------------------------

def require_floats(name, *tensors):
    """Raises RuntimeError for integers and UnsupportedDtype for half types."""
    for x in tensors:
        if not (x.is_floating_point() or x.is_complex()):
            raise UnsupportedDtype(f"{name}: expected a floating point or complex tensor as input, "
                                   f"got {x.dtype}")
        if x.dtype.name not in TAKEN:
            raise UnsupportedDtype(f"{name}: takes float32, float64 and complex dtypes, got "
                                   f"{x.dtype}; x.float() gives float32")


def require_one_dtype(name, x, y):
    """Raises RuntimeError for tensors of different dtypes."""
    if x.dtype != y.dtype:
        raise RuntimeError(f"{name}: expected tensors of one dtype, got {x.dtype} and {y.dtype}")


def require_matrices(name, x, letter="A"):
    """Raises RuntimeError for what has less than two dims, or no dtype of LAPACK."""
    if x.ndim < 2:
        raise RuntimeError(f"{name}: the input tensor {letter} must have at least 2 dimensions, "
                           f"got shape {tuple(x.shape)}")
    require_floats(name, x)


def require_square(name, x, letter="A"):
    """Raises RuntimeError for what is not a square matrix or batch of these."""
    require_matrices(name, x, letter)
    if x.shape[-1] != x.shape[-2]:
        raise RuntimeError(f"{name}: {letter} must be batches of square matrices, but they are "
                           f"{x.shape[-2]} by {x.shape[-1]} matrices")


def require_no_failure(name, info, message):
    """Raises LinAlgError for the first matrix whose `info`, an array, is not 0.

    message: what to say, with `{}` for the number.
    """
    if np.count_nonzero(info):           # in a fifth of the time that `any` takes
        place = int(np.flatnonzero(info)[0])
        batch = f"(Batch element {place}): " if info.ndim else ""
        raise LinAlgError(f"{name}: {batch}{message.format(info.reshape(-1)[place])}")


def values_behind(x):
    """The values of a tensor, or of a whole batch of examples, as an array."""
    return proxied(x).numpy(force=True)


# ---- rules of complex matrices -------------------------------------------------------------------

def adjoint_rule(rule):
    """A gradient rule of the function `rule`, whose first parameter is g and which gives the
    product with the adjoint of the derivative.

    Rules give the product with its transpose, which is the same for real matrices, and for complex
    ones if it is conjugated before and after (`sweep/rules.pyx`). Functions such as Cholesky's
    factor have no complex derivative, and no transpose that could be written down more easily.
    """
    names = rule.__code__.co_varnames[:rule.__code__.co_argcount]

    def transposed(g, *values):
        return conjugates(rule(conjugates(g), *values))

    transposed.names = names
    return transposed


def conjugates(values):
    """The conjugates of complex Tensors; None and real ones as they are."""
    if isinstance(values, tuple):
        return tuple(map(conjugates, values))
    return values.conj() if values is not None and values.dtype.is_complex else values


# ---- matrices to test with -----------------------------------------------------------------------
# Samples are matrices that everything takes; `prepare` makes such of any, inside the graph, for
# tests that change them.

def taken(rng, shape):
    """Random numbers, positive definite matrices where the last two sizes are equal."""
    x = rng.uniform(-1, 1, shape)
    return symmetric(0.3 * x) if len(shape) > 1 and shape[-1] == shape[-2] else x


def matrices(*shapes):
    """One real tensor of each shape."""
    def generate(rng):
        for shape in shapes:
            yield (taken(rng, shape),), {}
    return generate


def refusing(generate, n=2):
    """The samples, and a corner of n x n of the first as one whose errors are checked."""
    def with_checks(rng):
        cases = list(generate(rng))
        yield from cases
        yield tuple(x[..., :n, :n] for x in cases[0][0]), {"check_errors": True}
    return with_checks


def with_info(prepare, function):
    """The reference of what gives a result of matrices, and that none failed."""
    return lambda x, check_errors=False: (function(prepare(x)), np.zeros(x.shape[:-2], np.int32))


def without_checks(reference):
    """The reference of what may be asked to check errors."""
    return lambda *given, check_errors=False: reference(*given)


SQUARES = matrices((3, 3), (2, 2, 2), (1, 1), (0, 0), (0, 2, 2))


def ramp(x, step):
    """A matrix of the sizes of those of `x` with step, 2 step, ... on its diagonal."""
    rows, columns = x.shape[-2:]
    return np.diag(step * np.arange(1.0, max(rows, columns) + 1))[:rows, :columns]


def with_ramp(x, step):
    """x + a ramp on the diagonals, for arrays and Tensors."""
    added = ramp(x, step)
    return x + (added if isinstance(x, np.ndarray) else x.new_tensor(added))


def regular(x):
    """Matrices of full rank and with singular values apart from each other."""
    return with_ramp(x, 1.0)


def symmetric(x):
    """Hermitian matrices with eigenvalues apart from each other."""
    return with_ramp((x + x.swapaxes(-1, -2).conj()) * 0.5, 1.0)


def definite(x):
    """Hermitian positive definite matrices, of real parts up to 2 off the diagonal."""
    return with_ramp((x + x.swapaxes(-1, -2).conj()) * 0.5, 6.0)


def refused_matrices(*cases):
    """Error samples: the error, then a tensor or a shape (of ones), then the attributes."""
    def generate():
        for error, given, *attributes in cases:
            given = given if isinstance(given, np.ndarray) else np.ones(given)
            keywords = attributes.pop() if attributes and isinstance(attributes[-1], dict) else {}
            yield (given, *attributes), keywords, error
    return generate


NOT_SQUARE = refused_matrices((RuntimeError, (3,)), (RuntimeError, (2, 3)),
                              (RuntimeError, np.ones((2, 2), np.int64)),
                              (NotImplementedError, np.ones((2, 2), np.float16)))
NO_MATRIX = refused_matrices((RuntimeError, (3,)), (RuntimeError, np.ones((2, 2), np.int64)))


def prepared_by(prepare, function):
    """The reference `function` on prepared matrices."""
    return lambda x, *args, **kwargs: function(prepare(x), *args, **kwargs)


def first(prepare):
    """The `prepare` of a declaration whose first tensor is prepared."""
    return lambda x, *rest: (prepare(x) if has_gradients(x.dtype) else x, *rest)
