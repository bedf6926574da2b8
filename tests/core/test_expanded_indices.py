"""Writes at positions of an expanded tensor, which are looked at once, as at those of a copy."""

import numpy as np
import pytest
import tensorlib as tl
from cases import each

WRITES = {
    "scatter": lambda x, dim, at, src: x.scatter_(dim, at, src),
    "scatter_add": lambda x, dim, at, src: x.scatter_add_(dim, at, src),
    "amax": lambda x, dim, at, src: x.scatter_reduce_(dim, at, src, "amax"),
    "prod": lambda x, dim, at, src: x.scatter_reduce_(dim, at, src, "prod"),
}


def positions(shape, dim, size, dtype):
    """An index of some shape along `dim` that is the same along the other dims."""
    rng = np.random.default_rng(size)
    once = rng.integers(-size, size, shape[dim])
    one = [shape[d] if d == dim else 1 for d in range(len(shape))]
    return tl.tensor(once, dtype=dtype).reshape(one).expand(shape)


@each("name", WRITES)
@each("shape, dim", [((40, 70), 0), ((40, 70), 1), ((5, 30, 20), 1), ((9,), 0), ((1, 30), 0)])
def test_as_at_positions_that_are_written_out(name, shape, dim):
    rng = np.random.default_rng(0)
    size = 12
    sizes = [size if d == dim else n for d, n in enumerate(shape)]
    for dtype in (tl.float32, tl.float64, tl.int16, tl.uint8):
        x = tl.tensor(rng.integers(1, 9, sizes)).to(dtype)
        for at in (positions(shape, dim, size, tl.int64),
                   positions(shape, dim, size, tl.int32)):
            for src in (tl.tensor(rng.integers(1, 3, shape)).to(dtype),
                        tl.ones((), dtype=dtype).expand(shape)):
                found = WRITES[name](x.clone(), dim, at, src)
                wanted = WRITES[name](x.clone(), dim, at.contiguous(), src)
                assert tl.equal(found, wanted)


@each("name", WRITES)
def test_positions_out_of_range_are_refused_and_write_nothing(name):
    x = tl.zeros(4, 5)
    for wrong in (4, -5):
        at = tl.tensor([[0], [wrong], [1]]).expand(3, 5)
        with pytest.raises(IndexError, match="out of bounds"):
            WRITES[name](x, 0, at, tl.ones(3, 5))
    assert (x == 0).all()


def test_positions_that_share_memory_with_what_is_written():
    x = tl.arange(6).reshape(2, 3)
    at = x[0, :1].expand(1, 3)
    x.scatter_(0, at, tl.tensor([[7, 8, 9]]))
    assert x.tolist() == [[7, 8, 9], [3, 4, 5]]
