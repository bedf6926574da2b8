"""The LDL decomposition of symmetric and Hermitian matrices, and solving by it."""

import numpy as np

from tensorlib._core.base.error_names import type_name
from tensorlib._core.base.results import result_type
from tensorlib._core.base.shape import broadcast_shapes
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.linalg import lapack
from tensorlib.linalg.checks import (
    NOT_SQUARE, TAKEN, definite, first, matrices, refusing, require_matrices, require_no_failure,
    require_one_dtype, require_square,
)
from tensorlib.linalg.inverses import tensors
from tensorlib.ops.declare import composite, op

LDL = result_type("linalg_ldl_factor", "LD pivots")
LDLEx = result_type("linalg_ldl_factor_ex", "LD pivots info")


def eliminated(x, hermitian=False, check_errors=False):
    """The reference of `linalg_ldl_factor_ex` where nothing is exchanged."""
    out = definite(x)
    for j in range(len(x)):
        column = out[j + 1:, j].copy()
        out[j + 1:, j] /= out[j, j]
        row = out[j + 1:, j].conj() if hermitian else out[j + 1:, j]
        out[j + 1:, j + 1:] -= np.tril(np.outer(column, row))
    return np.tril(out), np.arange(1, len(x) + 1, dtype=np.int32), np.int32(0)


def hermitian_too(generate):
    """The samples, and the first one again with `hermitian`."""
    def with_both(rng):
        cases = list(generate(rng))
        yield from cases
        yield cases[0][0], {"hermitian": True}
    return with_both


@op(out=True, outputs=("LD", "pivots", "info"), public=False, method=False, differentiable=False,
    dtypes=TAKEN, tolerance="product", prepare=first(definite), complex=True,
    samples=hermitian_too(refusing(matrices((2, 2), (1, 1)))), checks_values=True,
    errors=NOT_SQUARE, reference=eliminated, reads_values=True)
def linalg_ldl_factor_ex(A: Tensor, hermitian=False, check_errors=False):
    """The LDL decomposition of symmetric matrices, as a named tuple (LD, pivots, info).

    hermitian: of Hermitian matrices, which real ones are if they are symmetric.
    LD and pivots are those of LAPACK's `sytrf`, or `hetrf`, of the lower triangle; info is 0, or
    the place of a block of D that is 0.

    Shapes: (*, N, N) -> (*, N, N), (*, N), (*).
    Raises: RuntimeError for other than square matrices and for integers and half types;
    LinAlgError for failures with `check_errors`; NotImplementedError where NumPy's library has no
    LAPACK that is known.
    """
    require_square("linalg.ldl_factor", A)
    ld, pivots, info = lapack.ldl_factor(A, bool(hermitian))
    if check_errors:
        require_no_failure("linalg.ldl_factor", info.numpy(), "the diagonal block {} of D is zero")
    return LDLEx(ld, pivots, info)


@composite(out=True, outputs=("LD", "pivots"), public=False, method=False, differentiable=False,
           dtypes=TAKEN, tolerance="product", prepare=first(definite), complex=True,
           samples=hermitian_too(matrices((2, 2))), errors=NOT_SQUARE,
           reference=lambda x, hermitian=False: eliminated(x, hermitian)[:2],
           reads_values=True, checks_values=True)
def linalg_ldl_factor(A: Tensor, *, hermitian=False):
    """The LDL decomposition of symmetric matrices, as a named tuple (LD, pivots).

    See `linalg.ldl_factor_ex`. Raises: LinAlgError for a block of D that is 0.
    """
    return LDL(*linalg_ldl_factor_ex(A, hermitian, True)[:2])


def ldl_systems(rng):
    """A compact LDL decomposition without exchanges, and a right-hand side."""
    ld = definite(rng.uniform(-1, 1, (3, 3)))
    for keywords in ({}, {"hermitian": True}):
        yield (ld, np.array([1, 2, 3]), rng.uniform(-1, 1, (3, 2))), keywords


def ldl_reference(ld, pivots, b, hermitian=False):
    """The reference of `linalg_ldl_solve` where nothing was exchanged."""
    lower, diagonal = np.tril(ld, -1) + np.eye(ld.shape[-1]), np.diag(ld)
    upper = lower.T.conj() if hermitian else lower.T
    return np.linalg.solve(lower * (diagonal.real if hermitian else diagonal) @ upper, b)


@composite(out=True, tensors=("LD", "B"), public=False, method=False, differentiable=False,
           dtypes=TAKEN, complex=True,
           tolerance="product", samples=ldl_systems, reference=ldl_reference,
           reads_values=True, checks_values=True)
def linalg_ldl_solve(LD: Tensor, pivots, B: Tensor, *, hermitian=False):
    """The X of A @ X = B for the A that LD and pivots decompose: see `linalg.ldl_factor`.

    Shapes: (*, N, N), (*, N), (*, N, K) -> (*, N, K), with * broadcast.
    Raises: RuntimeError for shapes that do not fit and for integers and half types, IndexError for
    pivots that are none.
    """
    require_square("linalg.ldl_solve", LD, "LD")
    require_matrices("linalg.ldl_solve", B, "B")
    require_one_dtype("linalg.ldl_solve", LD, B)
    if not isinstance(pivots, Tensor):
        raise TypeError(f"linalg.ldl_solve: pivots must be a Tensor, got {type_name(pivots)}")
    n = LD.shape[-1]
    if B.shape[-2] != n or tuple(pivots.shape) != tuple(LD.shape[:-1]):
        raise RuntimeError("linalg.ldl_solve: LD, pivots and B have shapes that do not fit: "
                           f"{tuple(LD.shape)}, {tuple(pivots.shape)} and {tuple(B.shape)}")
    batch = broadcast_shapes("linalg.ldl_solve", LD.shape[:-2], B.shape[:-2])
    given = (LD.expand(batch + (n, n)), pivots.expand(batch + (n,)),
             B.expand(batch + B.shape[-2:]))
    return ldl_systems_solved(*given, hermitian)


@op(public=False, method=False, differentiable=False, dtypes=TAKEN, tolerance="product",
    samples=ldl_systems, reference=ldl_reference, reads_values=True, checks_values=True,
    complex=True)
def ldl_systems_solved(LD: Tensor, pivots: Tensor, B: Tensor, hermitian=False):
    """X of A @ X = B for decompositions of one batch shape: see `linalg_ldl_solve`."""
    return tensors(lapack.ldl_solve(*[x.numpy(force=True) for x in (LD, pivots, B)], hermitian))[0]
