"""All cases, in the order of the table."""

from benchmarks import (
    graphs, kernels, layers, loading, optimizers, overhead, peaks, sequences, sparse, spectra,
    training, transforms,
)
from benchmarks.case import REGISTERED, Case

GROUPS = {"overhead": overhead, "kernels": kernels, "layers": layers, "graph": graphs,
          "training": training, "sequences": sequences, "optimizers": optimizers,
          "loading": loading, "transforms": transforms,
          "sparse": sparse, "spectra": spectra, "memory": peaks}


def in_order() -> list[Case]:
    return sorted(REGISTERED.values(), key=lambda case: list(GROUPS).index(case.group))
