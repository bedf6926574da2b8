"""A compiled function runs the code of its user as often as the eager one does: neither what
records its reads nor what compares them looks at an object by way of its own methods."""

import dataclasses
import threading
import types
import weakref

import pytest
from cases import each

import tensorlib as tl

COUNT = [0]


def counted(value):
    COUNT[0] += 1
    return value


class Field:
    def __get__(self, x, kind=None):
        return counted(3.0)

    def __set__(self, x, value):
        counted(None)


class WithField:
    k = Field()


class Asking:
    __slots__ = ("s",)

    def __init__(self):
        self.s = 3.0

    def __getattribute__(self, name):
        return counted(object.__getattribute__(self, name))


class AskingLast(Asking):
    def __getattr__(self, name):
        return counted(4.0)


class OfAnotherClass:
    k = 3.0

    @property
    def __class__(self):
        return counted(int)


class Refusing(type):
    def __getattr__(cls, name):
        raise ZeroDivisionError(name)


class OfRefusing(metaclass=Refusing):
    k = 3.0


@dataclasses.dataclass(slots=True)
class WithSlots:
    a: float = 3.0
    k = Field()


READS = {
    "nothing": lambda x, o: x * 2,
    "an attribute": lambda x, o: x * o.k if hasattr(type(o), "k") else x * o.s,
    "getattr": lambda x, o: x * getattr(o, "k", 5.0),
    "hasattr": lambda x, o: x * hasattr(o, "k"),
    "a slot": lambda x, o: x * getattr(o, "s", 5.0),
    "a list": lambda x, o: x * len([o]),
}


@each("kind", [
    WithField, Asking, AskingLast, OfAnotherClass, OfRefusing, WithSlots])
@each("name", READS)
@each("given", [True, False])
@pytest.mark.filterwarnings("ignore:compile")
def test_code_of_the_user_runs_as_often(kind, name, given):
    read, held = READS[name], kind()

    def of_outside(x):
        return read(x, held)

    counts = []
    for wrap in (lambda f: f, tl.compile):
        f = wrap(read if given else of_outside)
        COUNT[0], seen = 0, []
        for _ in range(4):
            try:
                found = f(tl.ones(2), held).tolist() if given else f(tl.ones(2)).tolist()
            except AttributeError as error:
                found = str(error)
            seen.append((found, COUNT[0]))
        counts.append(seen)
    assert counts[0] == counts[1]


def test_a_slot_that_is_read_by_code_of_the_user_is_guarded():
    o = Asking()
    f = tl.compile(lambda x: x * object.__getattribute__(o, "s"), fullgraph=True)
    for value in (3.0, 3.0, 4.0, 4.0):
        o.s = value
        assert f(tl.ones(1)).item() == value


def test_slots_with_a_private_name_are_looked_into():
    class Private:
        __slots__ = ("__k",)

        def __init__(self):
            self.set(2.0)

        def set(self, value):
            self.__k = value

        def times(self, x):
            return x * self.__k

    o = Private()
    f = tl.compile(lambda x: next(map(o.times, [x])), fullgraph=True)
    for value in (2.0, 2.0, 3.0):
        o.set(value)
        assert f(tl.ones(1)).item() == value


class Plain:
    pass


class OfThreads(threading.local):
    pass


class Slotted:
    __slots__ = ("kept",)


PLAIN = Plain()
HOLDERS = {
    "a thread's own": threading.local(), "of a subclass": OfThreads(), "a slot": Slotted(),
    "by reference": weakref.proxy(PLAIN), "a namespace": types.SimpleNamespace(),
    "a module": types.ModuleType("made"), "a function": lambda: None, "an error": ValueError(),
    "a module of nn": tl.nn.Identity(),
}


@pytest.mark.filterwarnings("ignore:compile:RuntimeWarning")
@each("name", HOLDERS)
def test_an_attribute_that_each_call_writes_is_what_it_wrote(name):
    holder = HOLDERS[name]

    @tl.compile
    def f(x):
        holder.kept = 5.0
        return x * 2

    for before in (5.0, 5.0, 5.0, 1.0, 1.0, 5.0, 1.0):
        holder.kept = before
        f(tl.ones(2))
        assert holder.kept == 5.0


def named(x):
    y = x * 2
    y.name = "twice"
    return y.name, y


NAMED, NOTED = tl.ones(2), ValueError()


@pytest.mark.filterwarnings("ignore:compile:RuntimeWarning")
@pytest.mark.parametrize("f, seen", [
    (lambda x: setattr(NAMED, "name", "called"), lambda found: (NAMED.name, found)),
    (lambda x: NOTED.add_note("called"), lambda found: (len(NOTED.__notes__), found)),
    (named, lambda found: (found[0], found[1].name)),
])
def test_what_is_named_and_noted_is_that_of_each_call(f, seen):
    logs = []
    for function in (f, tl.compile(f)):
        NOTED.__notes__ = []
        log = []
        for _ in range(5):
            NAMED.name = "before"
            log.append(seen(function(tl.ones(2))))
        logs.append(log)
    assert logs[0] == logs[1]
