"""Sparse gradients: of tables of which few rows are looked up."""

from typing import Any

from tensorlib import Tensor, no_grad
from tensorlib.sparse.tensor import SparseTensor


def rows_looked_up(weight: Tensor, indices: Tensor) -> Tensor:
    """The rows of a leaf at positions, whose gradient `backward` adds to `weight.grad` as a sparse
    tensor.

    The rows are a leaf of their own, so that no gradient as large as the table is ever made. A
    gradient asked for otherwise, as by `autograd.grad`, does not know of the table.
    """
    places = indices.detach().reshape(-1)
    rows = weight.detach().index_select(0, places).requires_grad_()

    def pass_on(rows: Tensor) -> None:
        with no_grad():
            found: Any = SparseTensor.of(places.unsqueeze(0), rows.grad, weight.shape)
            rows.grad = None
            weight.grad = found if weight.grad is None else weight.grad + found
    rows.register_post_accumulate_grad_hook(pass_on)
    return rows.reshape((*indices.shape, weight.shape[1]))
