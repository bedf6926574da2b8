"""Parameters that are sparse tensors, which `Parameter` makes of those."""

from typing import Any

from tensorlib.nn.parameter import Parameter
from tensorlib.sparse import CompressedTensor, SparseTensor

__all__ = ["CompressedParameter", "SparseParameter", "sparse_parameter"]


class SparseParameter(SparseTensor, Parameter, dispatches=False):
    """A parameter of layout `sparse_coo`: the values are learnt, at positions that stay."""

    def __repr__(self) -> str:
        return f"Parameter containing:\n{super().__repr__()}"

    def __deepcopy__(self, memo: dict[int, Any]):
        return sparse_parameter(self.detach().clone(), self.requires_grad)

    def __reduce_ex__(self, protocol: Any):
        return sparse_parameter, (self.detach(), self.requires_grad)


class CompressedParameter(SparseParameter, CompressedTensor, dispatches=False):
    """A parameter in a layout of matrices: the values are learnt, at positions that stay."""


def sparse_parameter(data: SparseTensor, requires_grad: bool = True) -> SparseParameter:
    """The parameter with the entries of a sparse tensor, whose memory it shares."""
    values = data._values_.detach().requires_grad_(requires_grad)
    if isinstance(data, CompressedTensor):
        return CompressedParameter.by(data.layout, data._bounds_, data._others_, values, data.shape)
    return SparseParameter.of(data._indices_, values, data.shape, data._is_coalesced_)
