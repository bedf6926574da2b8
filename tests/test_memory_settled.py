"""Ints that are others each time they are asked, in the place of every int of every operation."""

import pytest
from process import run_python

CALLS = """
import itertools, sys, warnings
import tensorlib as tl
from tensorlib.ops.late import declare_all
from tensorlib.testing.catalogue import call, samples, Sample, prepared

class Changing:
    def __init__(self, first, then, times):
        self.first, self.then, self.times = first, then, times

    def __index__(self):
        self.times -= 1
        return self.first if self.times >= 0 else self.then

def operator(name):
    return lambda self, *others: getattr(int, name)(self.__index__(), *[
        x.__index__() if isinstance(x, Changing) else x for x in others])

for name in ("eq ne lt le gt ge add radd sub rsub mul rmul floordiv rfloordiv mod rmod neg abs "
             "hash bool").split():
    setattr(Changing, f"__{name}__", operator(f"__{name}__"))

def places(value, path=()):
    "Where the ints are in arguments, at any depth."
    if type(value) is int:
        yield path
    elif isinstance(value, (tuple, list)):
        for i, part in enumerate(value):
            yield from places(part, (*path, i))
    elif isinstance(value, dict):
        for name, part in value.items():
            yield from places(part, (*path, name))

def replaced(value, path, make):
    if not path:
        return make(value)
    if isinstance(value, dict):
        return {k: replaced(v, path[1:], make) if k == path[0] else v for k, v in value.items()}
    found = [replaced(v, path[1:], make) if i == path[0] else v for i, v in enumerate(value)]
    return type(value)(found) if type(value) in (tuple, list) else tuple(found)

warnings.simplefilter("ignore")
declare_all()
calls = outcomes = 0
for number, op in enumerate(list(tl.ops.registry.values())):
    if number % PARTS != PART or not op.testing.get("samples"):
        continue
    for sample in samples(op):
        try:
            args, kwargs = prepared(op, sample.tensors())
        except Exception:
            continue
        for path in places((args, kwargs)):
            for times, more in itertools.product((1, 2, 3, 5, 8, 13), (-1, 1, 700)):
                given = replaced((tuple(args), kwargs), path,
                                 lambda n: Changing(n, n + more, times))
                calls += 1
                try:
                    op.function(*given[0], **given[1])
                    outcomes += 1
                except Exception:
                    pass
print(calls > 1000, outcomes > 100)
"""


@pytest.mark.parametrize("part", range(3))
def test_what_is_checked_is_what_is_used(part):
    """An operation may refuse such a number or take one of its values; it may not crash."""
    assert run_python(f"PART, PARTS = {part}, 3\n{CALLS}") == "True True\n"
