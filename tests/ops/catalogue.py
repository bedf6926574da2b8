"""Tests that run for each registered operation, and names for operations of the tests' own."""

import itertools

import pytest

from tensorlib.ops import registry
from tensorlib.testing.catalogue import ASPECTS, waived


def operations(aspect, choose=lambda op: True):
    """Marks a test as one for every operation that `choose` picks and that does not waive it."""
    assert aspect in ASPECTS
    chosen = [op for op in registry.values() if choose(op) and aspect not in waived(op)
              and op.testing.get("samples") and op.testing.get("reference")]
    return pytest.mark.parametrize("op", chosen, ids=lambda op: op.name)


numbers = itertools.count()


def fresh(name="mine"):
    """A name that no operation has: the registry never forgets one."""
    return f"{name}_{next(numbers)}"


def named(fun):
    """The function, after it got a name that no operation has."""
    fun.__name__ = fresh(fun.__name__.strip("<>"))
    return fun
