"""Sparse tensors: as far as graphs of nodes and tables of embeddings need them.

>>> adjacency = tensorlib.sparse_coo_tensor([[0, 1, 1], [1, 0, 2]], [1.0, 1.0, 1.0], (3, 3))
>>> adjacency @ tensorlib.tensor([[1.0], [2.0], [3.0]])
tensor([[2.],
        [4.],
        [0.]])
"""

from typing import Any

from tensorlib import Tensor
from tensorlib import matmul as _matmul
from tensorlib._core.base.error_names import type_name as _type_name
from tensorlib.sparse import dispatch, functions, indexing, products  # noqa: F401  operations
from tensorlib.sparse.checking import as_sparse_gradcheck
from tensorlib.sparse.compressed import CompressedTensor
from tensorlib.sparse.creation import (
    DoubleTensor,
    FloatTensor,
    from_dense,
    from_scipy,
    sparse_bsc_tensor,
    sparse_bsr_tensor,
    sparse_compressed_tensor,
    sparse_coo_tensor,
    sparse_csc_tensor,
    sparse_csr_tensor,
    spdiags,
    to_scipy,
)
from tensorlib.sparse.dispatch import UnsupportedForSparse
from tensorlib.sparse.functions import log_softmax, softmax, sum
from tensorlib.sparse.gradients import rows_looked_up
from tensorlib.sparse.invariants import check_sparse_tensor_invariants
from tensorlib.sparse.products import addmm, sampled_addmm
from tensorlib.sparse.tensor import SparseTensor

__all__ = ["CompressedTensor", "DoubleTensor", "FloatTensor", "SparseTensor",
           "UnsupportedForSparse", "addmm", "as_sparse_gradcheck",
           "check_sparse_tensor_invariants", "from_dense", "from_scipy", "log_softmax", "mm",
           "rows_looked_up", "sampled_addmm", "softmax", "sparse_bsc_tensor", "sparse_bsr_tensor",
           "sparse_compressed_tensor", "sparse_coo_tensor", "sparse_csc_tensor",
           "sparse_csr_tensor", "spdiags", "sum", "to_scipy"]


def mm(mat1: Tensor, mat2: Tensor, reduce: str = "sum") -> Any:
    """The product of two matrices, sparse or dense: sparse if both are.

    reduce: of a sparse and a dense one, a row may have the "mean", "amax" or "amin" of its terms.
    Gradient: to dense matrices, and to the values of sparse ones.
    Raises: RuntimeError for shapes that do not fit, TypeError for another `reduce`.
    """
    if isinstance(mat1, SparseTensor) or isinstance(mat2, SparseTensor):
        return products.matmul(mat1, mat2, reduce=reduce)
    dims = [getattr(x, "ndim", None) for x in (mat1, mat2)]
    if reduce != "sum" or dims != [2, 2]:
        shown = [_type_name(x) if n is None else f"{n} dims" for x, n in zip((mat1, mat2), dims)]
        raise TypeError(f"sparse.mm: takes two matrices and reduce='sum', got {shown[0]} and "
                        f"{shown[1]} and {reduce!r}")
    return _matmul(mat1, mat2)
