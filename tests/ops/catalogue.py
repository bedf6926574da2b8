"""Tests that run for each registered operation."""

import pytest

from tensorlib.ops import registry
from tensorlib.testing.catalogue import ASPECTS, waived


def operations(aspect, choose=lambda op: True):
    """Marks a test as one for every operation that `choose` picks and that does not waive it."""
    assert aspect in ASPECTS
    chosen = [op for op in registry.values() if choose(op) and aspect not in waived(op)
              and op.testing.get("samples") and op.testing.get("reference")]
    return pytest.mark.parametrize("op", chosen, ids=lambda op: op.name)
