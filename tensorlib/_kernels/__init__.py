"""Loops over raw memory, compiled once per instruction set.

A kernel module `name.pyx` knows no Tensor, needs no GIL and allocates nothing. It is compiled into
the shared object `_kernels/<level>` for each level of `setup.py`; `load(name)` gives the best one
for this processor; on v4 that is the code of v3 where wider vectors bring no gain.
`TENSORLIB_ISA=v2` (or v3, v4, base) selects another level, for tests. A build has only the level of
its machine, or those that `TENSORLIB_LEVELS` names: all of them in a wheel (setup.py).

The interface of a module is the function `table()`, with one tuple for each loop,

    (name, input dtypes, output dtype, address)

for instance `("tanh", ("float32",), "float32", <size_t>&tanh_run[float])`. The core looks up
addresses by name and dtype, so a new loop needs just its line in `table()`. Functions that are not
element-wise are listed with the dtype that they are compiled for as their only input.

Calling convention of an element-wise loop with one, two or three inputs: typed pointers to
contiguous runs of n elements, inputs first, the output next, the count last,

    void run(const T* a, U* y, Py_ssize_t n)
    void run(const T* a, const T* b, U* y, Py_ssize_t n)
    void run(const T* a, const T* b, const T* c, U* y, Py_ssize_t n)

bool is one byte, 0 or 1; float16 and bfloat16 are uint16 bit patterns. `y` either is one of the
inputs exactly or does not overlap any of them.
"""

import os
from functools import lru_cache
from importlib.machinery import EXTENSION_SUFFIXES

# before all that lies in its object
from tensorlib._kernels.compiled import FROM_BELOW, NEEDED, load_from
from tensorlib._kernels.cpu import supported_levels


def path_of(level):
    """The shared object of the kernels of a level."""
    return os.path.join(os.path.dirname(__file__), level + EXTENSION_SUFFIXES[0])


def _choose_level():
    """The instruction set whose kernels are imported."""
    usable = available_levels()
    asked = os.environ.get("TENSORLIB_ISA")
    if not asked:
        return usable[0]
    if asked not in usable:
        raise ImportError(
            f"TENSORLIB_ISA={asked!r} is not a level that was built and that this processor runs, "
            f"which are {', '.join(usable)}; a build has those that TENSORLIB_LEVELS names"
        )
    return asked


def available_levels():
    """Names of the levels that are built and run on this processor, the best first."""
    supported = supported_levels()
    usable = [level for level in supported if os.path.exists(path_of(level))]
    if not usable:
        raise ImportError(
            "tensorlib was built for other processors than this one, which runs "
            f"{', '.join(supported)}; build it here, or there with TENSORLIB_LEVELS=all"
        )
    if missing := missing_flags(NEEDED):
        raise ImportError(
            "tensorlib was built for all instructions of another processor; this one lacks "
            f"{', '.join(missing)}; build it here, or without TENSORLIB_LEVELS=native"
        )
    return usable


def missing_flags(needed, path="/proc/cpuinfo"):
    """Those of these processor flags, by Linux's names, that this processor lacks."""
    if not needed:
        return []
    with open(path) as file:
        flags = next((line.partition(":")[2] for line in file if line.startswith("flags")), "")
    return sorted(set(needed) - set(flags.split()))


level = _choose_level()


def load(name, level=level):
    """The kernel module `name`, compiled for a level, by default the chosen one."""
    if level == "v4" and name in FROM_BELOW:
        level = "v3"
    return load_from(path_of(level), f"tensorlib._kernels.{level}.{name}")


@lru_cache(maxsize=4)      # a caller mostly looks up several functions of a module
def functions(name):
    """The address of each function of a kernel module, by its name and its first dtype."""
    return {(kind, (*inputs, output)[0]): address
            for kind, inputs, output, address in load(name).table()}


FLOATS, HALVES = ("float32", "float64"), ("float16", "bfloat16")
COMPLEX = ("complex64", "complex128")


def rows_for(dtypes, loops, inputs=1, output=None):
    """The rows of a `table()` for loops of so many inputs of one dtype, which is the output's too.

    loops: the name of each, and its addresses for these dtypes.
    """
    return [(name, (dtype,) * inputs, output or dtype, address)
            for name, *addresses in loops for dtype, address in zip(dtypes, addresses)]


# the modules whose tables hold element-wise loops, casts and moves
ELEMENTWISE = ("unary", "exponential", "trigonometric", "gamma", "normal", "bessel", "bessel_jyk",
               "binary", "division", "bounds", "fused", "halves", "moves", "cast",
               "complex_arithmetic", "complex_functions")
