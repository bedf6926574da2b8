"""`Embedding` and `EmbeddingBag`: tables of vectors whose rows are looked up."""

from typing import Any, Self

from tensorlib import Tensor, empty, no_grad
from tensorlib.nn import functional as F
from tensorlib.nn import init
from tensorlib.nn.functional.linear import padding_place
from tensorlib.nn.modules.module import Module
from tensorlib.nn.parameter import Parameter

__all__ = ["Embedding", "EmbeddingBag"]


class Table(Module):
    """What both have in common: a table, and how its rows are kept small."""

    weight: Tensor

    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None,
                 max_norm: float | None, norm_type: float, scale_grad_by_freq: bool, sparse: bool,
                 weight: Tensor | None, freeze: bool, device: Any, dtype: Any) -> None:
        super().__init__()
        name = type(self).__name__
        if padding_idx is not None:
            padding_idx = padding_place(name, padding_idx, num_embeddings)
        if weight is not None and tuple(weight.shape) != (num_embeddings, embedding_dim):
            raise ValueError(f"{name}: the weight has shape {tuple(weight.shape)}, which does not "
                             f"match num_embeddings and embedding_dim, "
                             f"{(num_embeddings, embedding_dim)}")
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx, self.max_norm, self.norm_type = padding_idx, max_norm, norm_type
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        if weight is None:
            weight = empty((num_embeddings, embedding_dim), device=device, dtype=dtype)
            self.weight = Parameter(weight, requires_grad=not freeze)
            self.reset_parameters()
        else:
            self.weight = Parameter(weight, requires_grad=not freeze)

    def reset_parameters(self) -> None:
        """Draws normal numbers anew; the row at `padding_idx` is zero."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0)

    def options(self) -> list[str]:
        """Options that are not the usual ones, as text."""
        usual = {"padding_idx": None, "max_norm": None, "norm_type": 2, "scale_grad_by_freq": False}
        return [f"{name}={getattr(self, name)}" for name, value in usual.items()
                if getattr(self, name) != value]


def rows_and_columns(name: str, embeddings: Tensor) -> tuple[int, int]:
    """The shape of a table. Raises: ValueError for what is not a matrix."""
    if embeddings.ndim != 2:
        raise ValueError(f"{name}.from_pretrained: embeddings are expected to be 2-dimensional, "
                         f"got {embeddings.ndim} dims")
    rows, columns = embeddings.shape
    return rows, columns


class Embedding(Table):
    """Rows of a table, which are learnt: see `nn.functional.embedding`.

    Shapes: (*) -> (*, embedding_dim); weight (num_embeddings, embedding_dim).

    The row at `padding_idx` gets no gradient, and is zero at first. Rows that are used and have a
    larger norm than `max_norm` are made as small as that. With `sparse`, `backward` makes sparse
    gradients: docs/sparse.md.

    >>> words = Embedding(10, 3)
    >>> words(tensorlib.tensor([[1, 2], [3, 4]])).shape
    tensorlib.Size([2, 2, 3])
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None,
                 max_norm: float | None = None, norm_type: float = 2.0,
                 scale_grad_by_freq: bool = False, sparse: bool = False,
                 _weight: Tensor | None = None, _freeze: bool = False, device: Any = None,
                 dtype: Any = None) -> None:
        super().__init__(num_embeddings, embedding_dim, padding_idx, max_norm, norm_type,
                         scale_grad_by_freq, sparse, _weight, _freeze, device, dtype)

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True,
                        padding_idx: int | None = None, max_norm: float | None = None,
                        norm_type: float = 2.0, scale_grad_by_freq: bool = False,
                        sparse: bool = False) -> Self:
        """A layer with a table that there is; unless `freeze` is False, it is not learnt."""
        rows, columns = rows_and_columns(cls.__name__, embeddings)
        return cls(rows, columns, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse,
                   _weight=embeddings, _freeze=freeze)

    def forward(self, input: Tensor) -> Tensor:
        """The rows that the numbers in the input name."""
        return F.embedding(input, self.weight, self.padding_idx, self.max_norm, self.norm_type,
                           self.scale_grad_by_freq, self.sparse)

    def extra_repr(self) -> str:
        return ", ".join([f"{self.num_embeddings}, {self.embedding_dim}", *self.options(),
                          *["sparse=True"] * self.sparse])


class EmbeddingBag(Table):
    """Sums, means or maxima of rows of a table: see `nn.functional.embedding_bag`.

    >>> bags = EmbeddingBag(10, 3, mode="sum")
    >>> bags(tensorlib.tensor([1, 2, 4, 5, 4]), tensorlib.tensor([0, 3])).shape
    tensorlib.Size([2, 3])
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None,
                 norm_type: float = 2.0, scale_grad_by_freq: bool = False, mode: str = "mean",
                 sparse: bool = False, _weight: Tensor | None = None,
                 include_last_offset: bool = False, padding_idx: int | None = None,
                 device: Any = None, dtype: Any = None) -> None:
        super().__init__(num_embeddings, embedding_dim, padding_idx, max_norm, norm_type,
                         scale_grad_by_freq, sparse, _weight, False, device, dtype)
        self.mode, self.include_last_offset = mode, include_last_offset

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True,
                        max_norm: float | None = None, norm_type: float = 2.0,
                        scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False,
                        include_last_offset: bool = False, padding_idx: int | None = None) -> Self:
        """A layer with a table that there is; unless `freeze` is False, it is not learnt."""
        rows, columns = rows_and_columns(cls.__name__, embeddings)
        layer = cls(rows, columns, max_norm, norm_type, scale_grad_by_freq, mode, sparse,
                    embeddings, include_last_offset, padding_idx)
        layer.weight.requires_grad = not freeze
        return layer

    def forward(self, input: Tensor, offsets: Tensor | None = None,
                per_sample_weights: Tensor | None = None) -> Tensor:
        """One vector for each bag of rows."""
        return F.embedding_bag(
            input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq,
            self.mode, self.sparse, per_sample_weights, self.include_last_offset,
            self.padding_idx)

    def extra_repr(self) -> str:
        """The sizes, the mode, and the options that are not the usual ones."""
        options = [text for text in self.options() if not text.startswith("padding_idx")]
        padding = [text for text in self.options() if text.startswith("padding_idx")]
        return ", ".join([f"{self.num_embeddings}, {self.embedding_dim}", *options,
                          f"mode={self.mode!r}", *padding])
