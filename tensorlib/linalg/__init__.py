"""Functions of matrices: decompositions, inverses, systems of equations and norms.

>>> a = tensorlib.tensor([[4., 2.], [2., 5.]])
>>> tensorlib.linalg.solve(a, tensorlib.tensor([8., 4.]))
tensor([2., 0.])
"""

from tensorlib.linalg.checks import LinAlgError
from tensorlib.linalg.determinants import linalg_det as det, linalg_slogdet as slogdet
from tensorlib.linalg.factors import (
    linalg_lu as lu,
    linalg_lu_factor as lu_factor,
    linalg_lu_factor_ex as lu_factor_ex,
    linalg_lu_solve as lu_solve,
)
from tensorlib.linalg.general import (
    linalg_eig as eig,
    linalg_eigvals as eigvals,
    linalg_lstsq as lstsq,
)
from tensorlib.linalg.inverses import (
    linalg_cholesky as cholesky,
    linalg_cholesky_ex as cholesky_ex,
    linalg_inv as inv,
    linalg_inv_ex as inv_ex,
    linalg_solve as solve,
    linalg_solve_ex as solve_ex,
    linalg_solve_triangular as solve_triangular,
)
from tensorlib.linalg.ldl import (
    linalg_ldl_factor as ldl_factor,
    linalg_ldl_factor_ex as ldl_factor_ex,
    linalg_ldl_solve as ldl_solve,
)
from tensorlib.linalg import lowrank as _lowrank  # noqa: F401  (declares two functions)
from tensorlib.linalg.norms import (
    linalg_cond as cond,
    linalg_matrix_norm as matrix_norm,
    linalg_matrix_rank as matrix_rank,
    linalg_norm as norm,
    linalg_vector_norm as vector_norm,
)
from tensorlib.linalg.products import (
    linalg_cross as cross,
    linalg_diagonal as diagonal,
    linalg_matrix_exp as matrix_exp,
    linalg_matrix_power as matrix_power,
    linalg_multi_dot as multi_dot,
    linalg_tensorinv as tensorinv,
    linalg_tensorsolve as tensorsolve,
    linalg_vander as vander,
    linalg_vecdot as vecdot,
)
from tensorlib.linalg.orthogonal import linalg_qr as qr
from tensorlib.linalg.reflections import linalg_householder_product as householder_product
from tensorlib.linalg.spectra import (
    linalg_eigh as eigh,
    linalg_eigvalsh as eigvalsh,
    linalg_pinv as pinv,
    linalg_svd as svd,
    linalg_svdvals as svdvals,
)
from tensorlib._core.base.explained import explain
from tensorlib.ops.lazy import declared, gathered
from tensorlib.ops.products.matmul import matmul

declared(__name__)
__all__ = gathered(__name__)
explain(vars(), __all__)


def __dir__():
    return __all__
