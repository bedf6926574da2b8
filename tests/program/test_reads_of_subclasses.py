"""Functions that read objects of users' classes of containers and of other classes in C: what such
an object has in it is noticed however it is read, or the function runs eagerly."""

import array
import collections
import io
import itertools
import random
import types

import pytest
from cases import each

import tensorlib as tl

CONTAINERS = {
    dict: lambda x: x.update({7: 1}), collections.OrderedDict: lambda x: x.update({7: 1}),
    collections.Counter: lambda x: x.update([7]), list: lambda x: x.append(7),
    set: lambda x: x.add(7), collections.deque: lambda x: x.append(7),
    bytearray: lambda x: x.append(7), collections.UserDict: lambda x: x.update({7: 1}),
    collections.UserList: lambda x: x.append(7)}
USES = {
    "if": lambda x: 1 if x else 0, "not": lambda x: int(not x), "or": lambda x: len(x or [0] * 9),
    "bool": lambda x: int(bool(x)), "len": len, "sum": lambda x: sum(x), "in": lambda x: 7 in x,
    "list": lambda x: len(list(x)), "any": lambda x: int(any(x)), "repr": lambda x: len(repr(x)),
    "star": lambda x: (lambda *given: len(given))(*x), "text": lambda x: len(f"{x}"),
    "max": lambda x: max(x, default=0), "sorted": lambda x: len(sorted(x)),
    "zip": lambda x: len(list(zip(x, x))), "comprehension": lambda x: len([y for y in x]),
    "unpacked": lambda x: len([*x]), "copy": lambda x: len(type(x)(x)),
}


@each("base", CONTAINERS, ids=lambda base: base.__name__)
@each("derived", [False, True], ids=["itself", "subclass"])
@each("filled", [False, True], ids=["empty", "filled"])
@pytest.mark.filterwarnings("ignore:compile")
def test_contents_that_change_are_noticed(base, derived, filled):
    kind = type("Own", (base,), {}) if derived else base
    for name, use in USES.items():
        held = kind()
        if filled:
            CONTAINERS[base](held)

        def f(x, use=use, held=held):
            return x * 1 + float(use(held))

        compiled = tl.compile(f)
        x = tl.ones(2)
        for change in (None, CONTAINERS[base], lambda x: x.clear(), CONTAINERS[base]):
            if change is not None:
                change(held)
            for _ in range(2):
                assert compiled(x).tolist() == f(x).tolist(), name


class OwnArray(array.array):
    pass


class Steps(itertools.count):
    pass


class Text(io.StringIO):
    pass


class Drawn(random.Random):
    pass


class Space(types.SimpleNamespace):
    pass


class Failure(ValueError):
    pass


@each("make, use, change", [
    (lambda: OwnArray("i", [1]), len, lambda x: x.append(2)),
    (lambda: OwnArray("i", [1]), sum, lambda x: x.append(2)),
    (lambda: Steps(1), next, lambda x: None),
    (lambda: Text("ab"), lambda x: len(x.getvalue()), lambda x: x.write("abcd")),
    (lambda: Drawn(1), lambda x: x.random(), lambda x: None),
    (lambda: Space(n=1), lambda x: len(str(x)), lambda x: setattr(x, "n", 100)),
    (lambda: Failure(1), lambda x: int(str(x)), lambda x: setattr(x, "args", (7,))),
    (lambda: Failure(1), lambda x: x.args[0], lambda x: setattr(x, "args", (7,))),
    (lambda: ValueError(1), lambda x: int(f"{x}"), lambda x: setattr(x, "args", (7,))),
    (lambda: OSError(1, "a"), lambda x: len(str(x)), lambda x: setattr(x, "strerror", "abcd")),
], ids=["length", "sum", "next", "text", "random", "namespace", "error", "args", "f", "OSError"])
@pytest.mark.filterwarnings("ignore:compile")
def test_what_classes_in_c_keep_is_noticed(make, use, change):
    twins = make(), make()
    x = tl.ones(2)
    eager, compiled = (
        lambda x, held=held: x * 1 + float(use(held)) for held in twins)
    compiled = tl.compile(compiled)
    for _ in range(2):
        for _ in range(3):
            assert compiled(x).tolist() == eager(x).tolist()
        for held in twins:
            change(held)


def test_a_class_that_takes_part_is_asked_as_often_as_by_the_eager_call():
    asked = []

    class Asked(tl.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            asked.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    weight, x = tl.ones(2).as_subclass(Asked), tl.ones(2)
    compiled = tl.compile(lambda x: (x + weight).exp())
    with pytest.warns(RuntimeWarning, match="__torch_function__"):
        found = compiled(x)
    assert asked == ["add", "exp"] and type(found) is Asked
    compiled(x)
    assert asked == ["add", "exp"] * 2
