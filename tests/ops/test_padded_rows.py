"""Every operation on matrices whose rows are long enough for the loops of long rows: elements with
gaps between them give the bits that those without do. The samples of operations are too small."""

import pytest
from benchmarks.rows import broadcast_rows, rows
from benchmarks.settings import arguments

import tensorlib as tl
from tensorlib.ops import registry
from tensorlib.testing.catalogue import outputs

# Views of other sizes are refused, and the BLAS adds up vectors in steps in another order.
LEFT_OUT = {"view", "dot", "vdot"}
# As `python -m benchmarks.catalogue` times them
EXPRESSIONS = [code for name, code in dict.fromkeys((*rows(), *broadcast_rows()))
               if name in registry and name not in LEFT_OUT and "empty" not in name
               and not registry[name].random]
SIZE = "6,400"              # of matrices: rows of 80 bytes to 640


def between_rows(x):
    """The elements where each row, and each slice, is followed by others."""
    whole = tl.ones([n + 3 for n in x.shape], dtype=x.dtype)
    return whole[tuple(slice(2, -1) for _ in x.shape)].copy_(x)


def at_every_second_place(x):
    whole = tl.ones([*x.shape[:-1], 2 * x.shape[-1]], dtype=x.dtype)
    return whole[..., 1::2].copy_(x)


def backwards(x):
    return tl.from_numpy(x.flip(0).numpy()[::-1])


def found(code, names):
    """The results of an expression, or what it wrote to; None where it takes no such arguments."""
    tl.manual_seed(0)
    try:
        result = eval(code, dict(names))
    except (RuntimeError, TypeError, ValueError, NotImplementedError):
        return None
    return [x.to_dense() if x.is_sparse else x
            for x in outputs(names["z"] if result is None else result)]


def same(some, others):
    """Whether these are equal element by element; NaN is equal to NaN."""
    return some is not None and [(x.dtype, x.shape) for x in some] == [
        (y.dtype, y.shape) for y in others] and all(
            ((x == y) | (x != x) & (y != y)).all() for x, y in zip(some, others))


@pytest.mark.parametrize("dtype", ["float32", "float16", "uint8", "int64", "complex64"])
def test_gaps_change_no_bit(dtype):
    names = arguments(tl, SIZE, dtype, "plain")
    layouts = [(arranged, {key: arranged(x) if isinstance(x, tl.Tensor) else x
                           for key, x in names.items()})
               for arranged in (between_rows, at_every_second_place, backwards)]
    wrong = [f"{code}, {arranged.__name__}" for code in EXPRESSIONS
             if (expected := found(code, names)) is not None
             for arranged, apart in layouts if not same(found(code, apart), expected)]
    assert not wrong, "; ".join(wrong)
