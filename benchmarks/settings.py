"""The cases of `benchmarks.catalogue`: an expression, on tensors of a size, dtype and layout.

A case is known by its name alone, since a worker that runs PyTorch has no registry to find it in.
"""

import math
from functools import lru_cache

import numpy as np

from benchmarks.case import Case, Timed, prepared

SIZES = (1_024, 65_536, 1_048_576)
USUAL = 65_536
DTYPES = ("float32", "float64", "float16", "bfloat16", "int64", "int32", "uint8", "bool",
          "complex64")
LAYOUTS = ("plain", "transposed", "sliced", "strided")
DIRECTIONS = ("forward", "backward")
HALF = ("float16", "bfloat16")


def settings():
    """(size, dtype, layout, direction) of each variant: float32 in full, and one thing varied."""
    for size in SIZES:
        for direction in DIRECTIONS:
            yield size, "float32", "plain", direction
    for dtype in DTYPES[1:]:
        yield USUAL, dtype, "plain", "forward"
    for dtype in ("float64", "float16"):
        yield USUAL, dtype, "plain", "backward"
    for layout in LAYOUTS[1:]:
        yield USUAL, "float32", layout, "forward"
    yield USUAL, "float32", "transposed", "backward"


def broadcast_settings():
    """Those of operands that are broadcast."""
    for size in SIZES:
        yield size, "float32", "plain", "forward"
    yield USUAL, "float32", "plain", "backward"
    for dtype in ("float64", "float16", "int64"):
        yield USUAL, dtype, "plain", "forward"


def module_settings(shape):
    """Those of a module or a loss, on an input of one shape such as "32x64"."""
    for direction in DIRECTIONS:
        yield shape, "float32", "module", direction


def name_of(op, code, size, dtype, layout, direction):
    """The name of a case, which says all of it."""
    size = size if isinstance(size, str) else f"{size:,}"
    return f"{op}: {code}; {size} {dtype} {layout} {direction}"


def parts_of(name):
    """The operation, the code, and the setting of a case as it stands in its name."""
    op, _, rest = name.partition(": ")
    code, setting = rest.rsplit("; ", 1)
    return op, code, setting.split()


def case_named(name):
    """The case of this name."""
    _, code, (size, dtype, layout, direction) = parts_of(name)
    return Case(name, "catalogue", lambda lib: prepare(lib, code, size, dtype, layout, direction),
                rtol=5e-2 if dtype in HALF else 1e-3 if layout == "module" else 1e-4)


# ---- what an expression runs on ------------------------------------------------------------------

def values(dtype, shape, seed):
    """An array of numbers from 0.1 to 0.9, or pairs of these, or from 1 to 9, or of bools."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtype in ("int64", "int32", "uint8"):
        return rng.integers(1, 10, shape)
    real = rng.random(shape, dtype=np.float32) * np.float32(0.8) + np.float32(0.1)
    return (real + 1j * real[..., ::-1]).astype(dtype) if dtype == "complex64" else real


def matrix(lib, n, dtype, layout, seed):
    """The same matrix in either library, on memory of the layout."""
    shape = {"sliced": (n, n + 8), "strided": (n, 2 * n)}.get(layout, (n, n))
    x = lib.from_numpy(values(dtype, shape, seed)).to(getattr(lib, dtype))
    return {"sliced": lambda: x[:, 4:-4], "strided": lambda: x[:, ::2],
            "transposed": x.t, "plain": lambda: x}[layout]()


@lru_cache(1)                                 # the cases of one setting come one after the other
def arguments(lib, size, dtype, layout):
    """What the names in an expression stand for (`rows.ROWS`)."""
    n = math.isqrt(int(size.replace(",", "")))
    x, y, z = (matrix(lib, n, dtype, layout, seed) for seed in range(3))
    p, q = (matrix(lib, n, "bool", layout, seed) for seed in (3, 4))
    rng = np.random.default_rng(5)
    u, v = x.reshape(-1, 4, 4), x.reshape(16, -1, 16)
    if layout == "transposed":                # of three dims: permuted
        u, v = (w.permute(1, 2, 0).contiguous().permute(2, 0, 1) for w in (u, v))
    return {
        "lib": lib, "n": n, "x": x, "y": y, "z": z, "p": p, "q": q, "o": p[0].contiguous(),
        "u": u, "v": v, "a": x[0].contiguous(), "b": y[0].contiguous(), "c": x[:, 1:2],
        "i": lib.from_numpy(rng.permutation(n)),
        "j": lib.from_numpy(rng.integers(0, n, (n, n))),
    }


def module_arguments(lib, code, shape):
    """The module or function `m` that the code makes, an input `x`, another `y`, and its classes.

    In the code `t` are classes, one for each example and place, and `s` are signs.
    """
    sizes = tuple(map(int, shape.split("x")))
    x, y = (lib.from_numpy(values("float32", sizes, seed)) for seed in range(2))
    rng = np.random.default_rng(5)
    classes = sizes[1] if sizes[1:] else 2
    t = lib.from_numpy(rng.integers(0, classes, sizes[:1] + sizes[2:]))
    s = lib.from_numpy(rng.integers(0, 2, sizes[:1]) * 2 - 1)
    names = {"lib": lib, "nn": lib.nn, "F": lib.nn.functional, "x": x, "y": y, "t": t, "s": s}
    m = eval(code, names)
    return names | {"m": prepared(lib, m) if isinstance(m, lib.nn.Module) else m}


def as_leaf(x):
    return x.detach().requires_grad_()


class Refused(Exception):
    """This library has no such case."""


def prepare(lib, code, size, dtype, layout, direction):
    """A Timed for one case. Raises Refused where the library does not do it."""
    try:
        if layout == "module":
            names, code, parameters = module_arguments(lib, code, size), "m(x)", ()
            parameters = names["m"].parameters() if isinstance(names["m"], lib.nn.Module) else ()
        else:
            names, parameters = dict(arguments(lib, size, dtype, layout)), ()
    except REFUSALS as error:
        raise Refused(f"{type(error).__name__}: {error}") from None
    if direction == "backward":
        leaves = {key: as_leaf(names[key]) for key in "xyabcuv" if key in names_of(code)
                  and names[key].dtype.is_floating_point}
        names |= leaves
        result = value_of(code, names)
        if not leaves or result is None or not result.requires_grad:
            raise Refused("no gradient")
        names |= {"given": result.detach() * 0 + 1, "leaves": [*leaves.values(), *parameters]}
        several = "[0]" if isinstance(eval(code, names), tuple) else ""
        code = f"lib.autograd.grad(({code}){several}, leaves, given)"
    return Compared(code, names)


REFUSALS = (RuntimeError, TypeError, NotImplementedError, ValueError, AttributeError, IndexError,
            NameError)


def value_of(code, names):
    """The first result. Raises Refused where the library refuses the dtype or the shape."""
    try:
        result = eval(code, names)
    except REFUSALS as error:
        raise Refused(f"{type(error).__name__}: {error}") from None
    while isinstance(result, (tuple, list)) and result:
        result = result[0]
    return result


def names_of(code):
    return set(compile(code, "row", "eval").co_names)


class Compared(Timed):
    """A Timed whose result is one tensor: what was written to, or the first of several."""

    def result(self):
        result = value_of(self._code, self._names)
        result = self._names["z"] if result is None else result
        lib = self._names["lib"]
        if not isinstance(result, lib.Tensor):
            raise Refused("no tensor")
        return result.float() if result.dtype in (lib.float16, lib.bfloat16) else result

    def work(self):
        """(bytes, operations): operands and results once each; what products are to compute.

        With a gradient also what arrives and what comes out.
        """
        lib, used = self._names["lib"], names_of(self._code)
        back = "leaves" in used
        held = [value for name, value in self._names.items()
                if name in used - {"given"} and isinstance(value, lib.Tensor)]
        with lib.utils.flop_counter.FlopCounterMode(display=False) as counter:
            result = value_of(self._code, self._names)
        if back:
            held += [*self._names["leaves"], *[self._names["given"]] * 2]
        elif isinstance(result, lib.Tensor):
            held.append(result)
        return sum(x.numel() * x.element_size() for x in held), counter.get_total_flops()
