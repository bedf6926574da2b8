"""Parsed index expressions of the examples of a batch, made to index the whole batch."""

from tensorlib._core.index.keys cimport Index, is_indexed, n_index_dims, new_index

cdef object WHOLE = slice(None)


def lifted(Index index):
    """The parsed key that picks from each example of a batch, in dim 0, what `index` picks."""
    cdef Index out = new_index()
    out.basic = (WHOLE, *index.basic)
    out.positions = None if index.positions is None else (None, *index.positions)
    out.sizes = None if index.sizes is None else (0, *index.sizes)
    out.mask, out.n_true = index.mask, index.n_true
    out.first_dim, out.result_dim = index.first_dim + 1, index.result_dim + 1
    return out


def ndim_picked(Index index, int ndim):
    """The number of dims of what a parsed key picks from a tensor of `ndim` dims."""
    cdef int n_index = n_index_dims(index), d, left
    for part in index.basic:
        ndim += 1 if part is None else 0 if part is Ellipsis or isinstance(part, slice) else -1
    left = ndim
    for d in range(ndim):
        left -= is_indexed(index, d)
    return left + n_index
