"""Layouts and memory formats: the values of PyTorch's arguments `layout` and `memory_format`."""

from tensorlib._core.base import library


class Format:
    """How the elements lie in memory: what `layout` and `memory_format` have in common."""

    __slots__ = ("name",)

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return f"{library.name}.{self.name}"

    def __reduce__(self):
        return self.name         # the module's one object of this name


class layout(Format):
    """The kind of a tensor's memory: `strided`, or `sparse_coo` (docs/sparse.md)."""

    __slots__ = ()


class memory_format(Format):
    """The order of the elements in memory, for the arguments of that name."""

    __slots__ = ()


strided = layout("strided")
sparse_coo = layout("sparse_coo")

# layouts that no tensor has: libraries compare with them
sparse_bsc, sparse_bsr = layout("sparse_bsc"), layout("sparse_bsr")
sparse_csc, sparse_csr = layout("sparse_csc"), layout("sparse_csr")
contiguous_format = legacy_contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")

# The formats in which the channels, dim 1, lie closest together, with how many dims they have.
RANKS = {channels_last: 4, channels_last_3d: 5}


def check_rank(name, ndim, memory_format):
    """Raises RuntimeError for a number of dims that a format of channels does not have."""
    if ndim != RANKS[memory_format]:
        raise RuntimeError(f"{name}: required rank {RANKS[memory_format]} tensor to use "
                           f"{memory_format.name} format, got {ndim} dims")
