"""uint16, uint32 and uint64 beside PyTorch, where it has an answer."""

import itertools

import numpy as np
import pytest

import tensorlib as tl

torch = pytest.importorskip("torch")

NAMES = ("uint16", "uint32", "uint64")
ALL = ("bool", "uint8", "int8", "int16", "int32", "int64", *NAMES, "float16", "bfloat16", "float32",
       "float64")
unsigned = pytest.mark.parametrize("name", NAMES)


def outcome(library, function):
    """The dtype and the values of what a call gives; None where it is refused."""
    try:
        found = function(library)
    except (RuntimeError, TypeError, OverflowError, IndexError, NotImplementedError, ValueError):
        return None
    return str(getattr(found, "dtype", found)).rpartition(".")[2], (
        found.tolist() if hasattr(found, "tolist") else found)


def test_promotion():
    for a, b in itertools.product(ALL, ALL):
        if a in NAMES or b in NAMES:
            ours, theirs = (outcome(lib, lambda lib: str(lib.promote_types(
                getattr(lib, a), getattr(lib, b))).rpartition(".")[2]) for lib in (tl, torch))
            if theirs is None and "int" in a and "int" in b:
                wanted = np.promote_types(a, b)         # which PyTorch refuses
                theirs = None if wanted.kind == "f" else (wanted.name, wanted.name)
            assert ours == theirs, (a, b)
            assert tl.can_cast(getattr(tl, a), getattr(tl, b)) == torch.can_cast(
                getattr(torch, a), getattr(torch, b)), (a, b)


def test_result_types():
    def operands(lib):
        for name in ALL:
            for shape in ((2,), ()):
                yield lib.ones(shape, dtype=getattr(lib, name))
        yield from (True, 3, 2.5)

    for (a, b), (x, y) in zip(itertools.product(operands(tl), repeat=2),
                              itertools.product(operands(torch), repeat=2), strict=True):
        ours = outcome(tl, lambda lib: str(lib.result_type(a, b)).rpartition(".")[2])
        theirs = outcome(torch, lambda lib: str(lib.result_type(x, y)).rpartition(".")[2])
        if theirs is None and isinstance(a, tl.Tensor) and isinstance(b, tl.Tensor):
            theirs = outcome(tl, lambda lib: str(
                lib.promote_types(a.dtype, b.dtype)).rpartition(".")[2])
        assert ours == theirs, (x, y)


@unsigned
@pytest.mark.parametrize("other", ALL)
def test_casts(name, other):
    top = np.iinfo(name).max
    values = [0, 1, 5, 127, 200, top // 2, top // 2 + 1, top - 1, top]

    def there(lib):
        return lib.tensor(values, dtype=getattr(lib, name)).to(getattr(lib, other)).to(
            lib.float64 if other[0] in "fb" and other != "bool" else getattr(lib, other))

    def back(lib):
        given = [0.0, 1.0, 3.75, 100.0] if other[0] in "bf" else [0, 1, 100, 127]
        if not getattr(tl, other).is_floating_point and getattr(tl, other).is_signed:
            given = [*given, -1, -100]
        return lib.tensor(given).to(getattr(lib, other)).to(getattr(lib, name))

    assert outcome(tl, there) == outcome(torch, there)
    assert outcome(tl, back) == outcome(torch, back)


@unsigned
def test_casts_of_floats_beyond_int64(name):
    values = [-1.0, -3.7, 2.0**31, 3e9, 2.0**62]
    if name == "uint64":
        values += [2.0**63, 1.5 * 2.0**63, float("nan"), float("inf"), float("-inf")]
    elif name == "uint16":
        values = values[:2]
    for dtype in ("float32", "float64"):
        found = [lib.tensor(values, dtype=getattr(lib, dtype)).to(getattr(lib, name)).tolist()
                 for lib in (tl, torch)]
        assert found[0] == found[1], dtype


CALLS = {
    "mul": lambda x, lib: x * x, "mul number": lambda x, lib: x * 3, "div": lambda x, lib: x / 2,
    "and": lambda x, lib: x & 6, "or": lambda x, lib: x | 8, "xor": lambda x, lib: x ^ 7,
    "eq": lambda x, lib: x == 5,
    "ne": lambda x, lib: x != x[0], "float": lambda x, lib: x + 0.5,
    "sqrt": lambda x, lib: x.sqrt(), "sum": lambda x, lib: x.sum(), "prod": lambda x, lib: x.prod(),
    "any": lambda x, lib: x.any(),
    "cumsum": lambda x, lib: x.cumsum(0), "cumprod": lambda x, lib: x.cumprod(0),
    "sort": lambda x, lib: x.sort(descending=True)[0], "argsort": lambda x, lib: x.argsort(),
    "unique": lambda x, lib: x.unique(), "where": lambda x, lib: lib.where(x == 5, x, 7),
    "positions": lambda x, lib: x[lib.tensor([2, 0])], "cat": lambda x, lib: lib.cat([x, x]),
    "full": lambda x, lib: lib.full((2,), 9, dtype=x.dtype), "mean": lambda x, lib: x.mean(),
    "signed positions": lambda x, lib: lib.arange(3)[x],
    "number": lambda x, lib: lib.arange(9)[x[1]],
    "isnan": lambda x, lib: x.isnan(),
    "floor": lambda x, lib: x.floor(), "clone": lambda x, lib: x.clone(),
    "repeat": lambda x, lib: x.repeat_interleave(2), "isclose": lambda x, lib: lib.isclose(x, x),
    "gather": lambda x, lib: lib.arange(9).gather(0, x), "signbit": lambda x, lib: x.signbit(),
    "std": lambda x, lib: x.std(), "too large": lambda x, lib: lib.tensor(2**64, dtype=x.dtype),
}


@unsigned
@pytest.mark.parametrize("what", CALLS)
def test_calls(name, what):
    def run(lib):
        return CALLS[what](lib.tensor([1, 5, 3], dtype=getattr(lib, name)), lib)
    ours, theirs = outcome(tl, run), outcome(torch, run)
    if ours is None or theirs is None or ours[0] != "float32":
        assert ours == theirs
    else:
        np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-6)
