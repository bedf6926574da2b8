"""Tests that run for each registered operation, and names for operations of the tests' own."""

import functools
import inspect
import itertools

import pytest
from cases import go_through

from tensorlib.ops import registry
from tensorlib.testing.catalogue import ASPECTS, waived


def operations(aspect, choose=lambda op: True):
    """Marks a test as one for every operation that `choose` picks and that does not waive it."""
    assert aspect in ASPECTS
    return for_each([op for op in registry.values() if choose(op) and aspect not in waived(op)
                     and op.testing.get("samples") and op.testing.get("reference")])


def for_each(chosen):
    """Marks a test as one for each of these operations: `op`, or `name` for a list of names.

    One test goes through those of a room, such as `ops.pointwise`. A failure says which operations
    it was; `pytest --op NAME` runs the tests with one of them alone.
    """
    rooms = {}
    for value in chosen:
        op = registry[value] if isinstance(value, str) else value
        rooms.setdefault(room_of(op), {})[op.name] = value

    def decorate(test):
        signature = inspect.signature(test)
        (name,) = {"op", "name"} & set(signature.parameters)

        @functools.wraps(test)
        def whole_room(*args, room, **kwargs):
            names = list(room)
            go_through(room.values(), lambda value: test(*args, **kwargs, **{name: value}),
                       names.__getitem__)

        whole_room.__signature__ = signature.replace(parameters=[
            parameter.replace(name="room") if parameter.name == name else parameter
            for parameter in signature.parameters.values()])
        return pytest.mark.parametrize("room", rooms.values(), ids=rooms)(whole_room)

    return decorate


def room_of(op):
    """Where an operation is declared: the folder of its module, such as `ops.pointwise`."""
    parts = op.family.split(".")
    return ".".join(parts[1:-1] if parts[0] == "tensorlib" else parts)


numbers = itertools.count()


def fresh(name="mine"):
    """A name that no operation has: the registry never forgets one."""
    return f"{name}_{next(numbers)}"


def named(fun):
    """The function, after it got a name that no operation has."""
    fun.__name__ = fresh(fun.__name__.strip("<>"))
    return fun
