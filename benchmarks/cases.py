"""All cases, in the order of the table."""

from benchmarks import graphs, kernels, loading, overhead, training, transforms
from benchmarks.case import REGISTERED, Case

GROUPS = {"overhead": overhead, "kernels": kernels, "graph": graphs, "training": training,
          "loading": loading, "transforms": transforms}


def in_order() -> list[Case]:
    return sorted(REGISTERED.values(), key=lambda case: list(GROUPS).index(case.group))
