"""The cases of `benchmarks.operations`: an expression, on matrices of a size, dtype and layout.

A case is known by its name alone, since a worker that runs PyTorch has no registry to find it in.
"""

import math
from functools import lru_cache

import numpy as np

from benchmarks.case import Case, Timed

SIZES = (16, 1_024, 65_536, 4_194_304)
USUAL = 65_536
DTYPES = ("float32", "float64", "int64", "bool", "float16", "bfloat16")
LAYOUTS = ("plain", "transposed", "sliced")
DIRECTIONS = ("forward", "backward")
HALF = ("float16", "bfloat16")


def settings():
    """(size, dtype, layout, direction) of each variant: float32 in full, and one thing varied."""
    for size in SIZES:
        for dtype in DTYPES if size < SIZES[-1] else ("float32", "int64"):
            yield size, dtype, "plain", "forward"
        yield size, "float32", "plain", "backward"
    for layout in LAYOUTS[1:]:
        for direction in DIRECTIONS:
            yield USUAL, "float32", layout, direction
    for dtype in ("float64", "float16"):
        yield USUAL, dtype, "plain", "backward"


def name_of(op, code, size, dtype, layout, direction):
    """The name of a case, which says all of it."""
    return f"{op}: {code}; {size:,} {dtype} {layout} {direction}"


def case_named(name):
    """The case of this name."""
    code, setting = name.partition(": ")[2].rsplit("; ", 1)
    size, dtype, layout, direction = setting.split()
    n = int(size.replace(",", ""))
    return Case(name, "operations", lambda lib: prepare(lib, code, n, dtype, layout, direction),
                rtol=5e-2 if dtype in HALF else 1e-4)


# ---- what an expression runs on ------------------------------------------------------------------

def matrix(lib, n, dtype, layout, seed):
    """The same matrix in either library, on memory of the layout."""
    rng = np.random.default_rng(seed)
    shape = (n, n + 8) if layout == "sliced" else (n, n)
    if dtype == "bool":
        values = rng.random(shape) < 0.5
    elif dtype == "int64":
        values = rng.integers(1, 10, shape)
    else:
        values = rng.random(shape, dtype=np.float32) * np.float32(0.8) + np.float32(0.1)
    x = lib.from_numpy(values).to(getattr(lib, dtype))
    return x[:, 4:-4] if layout == "sliced" else x.t() if layout == "transposed" else x


@lru_cache(1)                                 # the cases of one setting come one after the other
def arguments(lib, size, dtype, layout):
    """What the names in an expression stand for."""
    n = math.isqrt(size)
    x, y, z = (matrix(lib, n, dtype, layout, seed) for seed in range(3))
    p, q = (matrix(lib, n, "bool", layout, seed) for seed in (3, 4))
    rng = np.random.default_rng(5)
    return {
        "lib": lib, "n": n, "x": x, "y": y, "z": z, "p": p, "q": q, "o": p[0].contiguous(),
        "u": x.reshape(-1, 4, 4), "a": x[0].contiguous(), "b": y[0].contiguous(), "c": x[:, 1:2],
        "i": lib.from_numpy(rng.permutation(n)),
        "j": lib.from_numpy(rng.integers(0, n, (n, n))),
    }


def as_leaf(x):
    return x.detach().requires_grad_()


class Refused(Exception):
    """This library has no such case."""


def prepare(lib, code, size, dtype, layout, direction):
    """A Timed for one case. Raises Refused where the library does not do it."""
    names = dict(arguments(lib, size, dtype, layout))
    if direction == "backward":
        leaves = {key: as_leaf(names[key]) for key in "xyabcu" if key in names_of(code)}
        names |= leaves
        result = value_of(code, names)
        if not leaves or result is None or not result.requires_grad:
            raise Refused("no gradient")
        names |= {"given": result.detach() * 0 + 1, "leaves": list(leaves.values())}
        several = "[0]" if isinstance(eval(code, names), tuple) else ""
        code = f"lib.autograd.grad(({code}){several}, leaves, given)"
    return Compared(code, names)


def value_of(code, names):
    """The first result. Raises Refused where the library refuses the dtype."""
    try:
        result = eval(code, names)
    except (RuntimeError, TypeError, NotImplementedError, ValueError, AttributeError) as error:
        raise Refused(f"{type(error).__name__}: {error}") from None
    return result[0] if isinstance(result, tuple) else result


def names_of(code):
    return set(compile(code, "row", "eval").co_names)


class Compared(Timed):
    """A Timed whose result is one tensor: what was written to, or the first of several."""

    def result(self):
        result = value_of(self._code, self._names)
        result = self._names["z"] if result is None else result
        lib = self._names["lib"]
        return result.float() if result.dtype in (lib.float16, lib.bfloat16) else result
