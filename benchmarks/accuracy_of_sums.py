"""Errors of float32 reductions on awkward data, as a table of docs/accuracy.md.

    python benchmarks/accuracy_of_sums.py             of tensorlib
    python benchmarks/accuracy_of_sums.py torch       of PyTorch, where it is installed
"""

import importlib
import sys

import numpy as np

ROWS = (7, 4096)                      # the shape: each row is reduced


def data():
    """The arrays by what they are."""
    normal = np.random.default_rng(0).normal(size=ROWS).astype(np.float32)
    return {"normal": normal, "times 1e18": normal * np.float32(1e18),
            "times 1e-30": normal * np.float32(1e-30), "plus 1e3": normal + np.float32(1e3),
            "plus 1e6": normal + np.float32(1e6),
            "all 0.1": np.full(ROWS, 0.1, np.float32), "all 1e8": np.full(ROWS, 1e8, np.float32)}


def functions(library):
    """Each reduction in the library, and in NumPy's float64."""
    functional = importlib.import_module(f"{library.__name__}.nn.functional")
    return {
        "sum": (lambda x: x.sum(1), lambda x: x.sum(1)),
        "mean": (lambda x: x.mean(1), lambda x: x.mean(1)),
        "var": (lambda x: x.var(1), lambda x: x.var(1, ddof=1)),
        "std": (lambda x: x.std(1), lambda x: x.std(1, ddof=1)),
        "norm": (lambda x: x.norm(dim=1), lambda x: np.linalg.norm(x, axis=1)),
        "softmax": (lambda x: x.softmax(1), lambda x: softmax(x)),
        "layer_norm": (lambda x: functional.layer_norm(x, x.shape[1:]), lambda x: (
            x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5))}


def softmax(x):
    """The softmax of rows."""
    exps = np.exp(x - x.max(1, keepdims=True))
    return exps / exps.sum(1, keepdims=True)


def error(found, exact):
    """The largest error relative to the exact value; where each row gives a row, to the largest of
    these, or to 1 where all are near 0."""
    with np.errstate(over="ignore"):
        found, exact = found.numpy().astype(np.float64), exact.astype(np.float32).astype(np.float64)
    if exact.shape == ROWS:
        most = np.max(np.abs(exact))
        return np.max(np.abs(found - exact)) / (most if most > 1e-6 else 1)
    scale = np.where(exact == 0, 1, np.abs(exact))
    return np.max(np.where(found == exact, 0, np.abs(found - exact) / scale))


def table(library):
    """The lines of the table."""
    made = functions(library)
    yield f"| float32 | {' | '.join(made)} |"
    yield f"|---|{'---|' * len(made)}"
    for what, array in data().items():
        with np.errstate(invalid="ignore"):
            errors = [error(own(library.tensor(array)), exact(array.astype(np.float64)))
                      for own, exact in made.values()]
        yield f"| {what} | {' | '.join(f'{x:.1g}' for x in errors)} |"


if __name__ == "__main__":
    print("\n".join(table(importlib.import_module(sys.argv[1] if sys.argv[1:] else "tensorlib"))))
