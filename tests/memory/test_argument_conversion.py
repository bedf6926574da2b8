"""Numbers and objects in the place of every int and every tensor of every operation.

The processes may end with a status of their own: in a build with sanitizers, at the first read of
memory that is nobody's.
"""

from process import run_each

ARGUMENTS = """
import itertools, sys, warnings
import tensorlib as tl
from tensorlib.ops.lazy import declare_all
from tensorlib.testing.catalogue import prepared, samples

def places(value, kind, path=()):
    "Where values of a type are in arguments, at any depth."
    if type(value) is kind:
        yield path
    elif isinstance(value, (tuple, list)):
        for i, part in enumerate(value):
            yield from places(part, kind, (*path, i))
    elif isinstance(value, dict):
        for name, part in value.items():
            yield from places(part, kind, (*path, name))

def replaced(value, path, make):
    if not path:
        return make(value)
    if isinstance(value, dict):
        return {k: replaced(v, path[1:], make) if k == path[0] else v for k, v in value.items()}
    found = [replaced(v, path[1:], make) if i == path[0] else v for i, v in enumerate(value)]
    return type(value)(found) if type(value) in (tuple, list) else tuple(found)

warnings.simplefilter("ignore")
declare_all()

def arguments():
    "Each operation with the arguments of its samples."
    for op in list(tl.ops.registry.values()):
        if op.testing.get("samples"):
            for sample in samples(op):
                try:
                    yield op, prepared(op, sample.tensors())
                except Exception:
                    pass

def returns(function, args, kwargs):
    try:
        function(*args, **kwargs)
        return True
    except Exception:
        return False
"""

CHANGING = """
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

calls = outcomes = 0
for op, given in arguments():
    for path in places(given, int):
        for times, more in itertools.product((1, 2, 3, 5, 8, 13), (-1, 1, 700)):
            args, kwargs = replaced(given, path, lambda n: Changing(n, n + more, times))
            calls += 1
            outcomes += returns(op.function, args, kwargs)
print(calls > 3000, outcomes > 300)
"""

NO_TENSORS = """
odd = [7, 2**62, -1.5, None, "abc", b"", (), [1], {}, object(), tl.float32, tl.zeros,
       tl.ones(2).storage_offset, slice(3), tl.ones(0, 3, dtype=tl.int8), tl.ones(()),
       tl.ones(2, 3, 4, dtype=tl.bool)[:, ::-1]]
calls = 0
for op, given in arguments():
    for path in places(given, tl.Tensor):
        for value in odd:
            args, kwargs = replaced(given, path, lambda x: value)
            calls += 1
            returns(op.function, args, kwargs)
            if op.forward is not None:
                returns(op.forward, (*args, *kwargs.values()), {})
print(calls > 3000)
"""


def test_what_is_checked_is_what_is_used():
    """An int may be another each time it is asked, and is refused then, or one of its values is
    taken. What is not a tensor is looked at as none, also by the forward functions alone, which
    take what was checked before."""
    assert run_each(ARGUMENTS, [CHANGING, NO_TENSORS]) == ["True True\n", "True\n"]
