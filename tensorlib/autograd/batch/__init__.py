"""Batched values, by which `vmap` and batched derivatives work."""

from tensorlib.autograd.batch import adjoints, indexing, matrices, ordering, scattering
from tensorlib.autograd.batch.rules import one_by_one, warn_of_loop
from tensorlib.autograd.batch.values import (
    Batched,
    Level,
    VmapInfo,
    as_example,
    has_rule,
    innermost,
    is_at,
    outside_of_all,
    seen,
    batch_of,
)

__all__ = ["Batched", "Level", "VmapInfo", "adjoints", "as_example", "batch_of", "has_rule",
           "indexing", "innermost", "is_at", "matrices", "one_by_one", "ordering", "outside_of_all",
           "scattering", "seen", "warn_of_loop"]
