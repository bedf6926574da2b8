"""Operations whose operands get other memory while they run.

The calls are the rows of the catalogue of speeds, which follow from the registration, at a size at
which kernels run without the GIL: another thread gives all tensors in turn a few elements and as
many as before.
"""

import sys
import threading
import time
import warnings
from functools import cache

import tensorlib as tl
from benchmarks.catalogue import left_out
from benchmarks.rows import rows
from benchmarks.settings import SIZES, arguments

from . import judge

DTYPES = ["float32", "float64", "float16", "bfloat16", "int64", "uint8", "bool"]
LAYOUTS = ["plain", "transposed", "sliced", "strided"]
SIZE = "262,144"            # elements of a matrix
SECONDS = 0.1               # for which a call is repeated


@cache
def codes():
    return [code for name, code in rows() if not left_out(name, SIZES[-1], "int64")]


def replaced_call(rng):
    """A row, a dtype, a layout and a number of threads."""
    return ("run_replaced", [repr(rng.choice(codes())), repr(rng.choice(DTYPES)),
                             repr(rng.choice(LAYOUTS)), repr(rng.choice([1, 2]))], {})


def run_replaced(call):
    """Runs the row for a while beside a thread that replaces what it works on."""
    code, dtype, layout, n_threads = map(eval, call[1])
    names = arguments(tl, SIZE, dtype, layout)
    tensors = {name: x for name, x in names.items() if isinstance(x, tl.Tensor)}
    kept = {name: x.clone() for name, x in tensors.items()}
    stop, wrong = [], None

    def replace():
        while not stop:
            for name, x in tensors.items():
                x.data = kept[name].clone()
            for x in tensors.values():
                x.data = tl.zeros((2,) * x.dim(), dtype=x.dtype)

    before, interval = tl.get_num_threads(), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    tl.set_num_threads(n_threads)
    thread = threading.Thread(target=replace, daemon=True)
    thread.start()
    end = time.monotonic() + SECONDS
    try:
        with warnings.catch_warnings(action="ignore"):
            while wrong is None and time.monotonic() < end:
                try:
                    eval(code, dict(names))
                except SystemError as error:
                    wrong = f"SystemError: {error}"
                except Exception:
                    pass
    finally:
        stop.append(True)
        thread.join()
        sys.setswitchinterval(interval)
        tl.set_num_threads(before)
        judge.reset()
    return wrong
