"""Layouts and memory formats: the values of PyTorch's arguments `layout` and `memory_format`."""

from tensorlib._core.base import library
from tensorlib._core.base.importing import deferred


class Format:
    """The common base of `layout` and `memory_format`."""

    __slots__ = ("name",)

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return f"{library.name}.{self.name}"

    def __reduce__(self):
        return self.name         # pickled by name


class layout(Format):
    """The layout of a tensor: `strided`, or one of sparse tensors (docs/sparse.md)."""

    __slots__ = ()


class memory_format(Format):
    """The order of the elements in memory, for the arguments of that name."""

    __slots__ = ()


made_in = deferred("tensorlib.sparse.creation", "made_in")     # of a layout of sparse tensors
strided = layout("strided")
sparse_coo = layout("sparse_coo")
sparse_csc, sparse_csr = layout("sparse_csc"), layout("sparse_csr")
sparse_bsc, sparse_bsr = layout("sparse_bsc"), layout("sparse_bsr")
contiguous_format = legacy_contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")

# The formats in which the channels, dim 1, are contiguous, and their numbers of dims.
RANKS = {channels_last: 4, channels_last_3d: 5}


def check_rank(name, ndim, memory_format):
    """Raises RuntimeError if a channels-last format has another number of dims."""
    if ndim != RANKS[memory_format]:
        raise RuntimeError(f"{name}: required rank {RANKS[memory_format]} tensor to use "
                           f"{memory_format.name} format, got {ndim} dims")
