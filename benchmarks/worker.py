"""One library in one process: reads requests and writes replies, one JSON object per line.

    python -m benchmarks.worker LIBRARY THREADS

The first line it writes gives versions. A request is ["prepare", name of a case],
["calibrate", nanoseconds of a batch], ["measure", batches] or ["work", null]; the last three are
for that case.
"""

import importlib
import json
import platform
import sys

import numpy as np

from benchmarks.cases import in_order
from benchmarks.settings import case_named

CASES = {case.name: case for case in in_order()}


def summary(result) -> dict:
    """What is compared between the libraries: the shape, the mean, some elements."""
    array = np.asarray(result.detach().resolve_conj().numpy())
    flat = array.reshape(-1)
    if flat.dtype.kind == "c":
        flat = np.ascontiguousarray(flat).view(flat.real.dtype)
    return {
        "shape": list(array.shape),
        "dtype": str(array.dtype),
        "mean": float(flat.mean(dtype=np.float64)) if flat.size else 0.0,
        "elements": flat[:: max(1, flat.size // 64) | 1].astype(float).tolist(),
    }


class Session:
    """Answers requests about one case after another."""

    def __init__(self, lib):
        self._lib, self._probe = lib, None

    def prepare(self, name: str) -> dict:
        self._probe = None  # frees the inputs of the case before
        case = CASES.get(name) or case_named(name)
        self._probe = case.prepare(self._lib)
        return summary(self._probe.result())

    def calibrate(self, budget_ns: int) -> None:
        self._probe.calibrate(budget_ns)

    def measure(self, batches: int) -> dict[str, float]:
        return self._probe.measure(batches)

    def work(self, _) -> tuple[int, int]:
        """How many bytes the case touches, and how many operations its products take."""
        return self._probe.work()

    def answer(self, request: list) -> dict:
        action, argument = request
        try:
            return {"value": getattr(self, action)(argument)}
        except Exception as error:  # noqa: BLE001  the driver reports it and goes on
            return {"error": f"{type(error).__name__}: {error}"}


def main() -> None:
    name, threads = sys.argv[1], int(sys.argv[2])
    replies, sys.stdout = sys.stdout, sys.stderr  # a library that prints must not break the pipe

    def reply(message: dict) -> None:
        print(json.dumps(message), file=replies, flush=True)

    try:
        lib = importlib.import_module(name)
    except ImportError as error:
        reply({"error": f"{error}"})
        return
    lib.set_num_threads(threads)
    versions = {"python": platform.python_version(), "numpy": np.__version__,
                name: lib.__version__}
    reply({"value": versions})
    session = Session(lib)
    for line in sys.stdin:
        reply(session.answer(json.loads(line)))


if __name__ == "__main__":
    main()
