"""Ways to read variables, attributes, methods and functions.

A case is a class: `__init__` makes what is there, `read` reads it, each of `changes` changes it so
that `read` gives something else, and `other` changes what is not read.
"""

import enum
import functools
import types

import numpy as np

import tensorlib as tl

CASES = {}
GLOBAL = 2.0


def case(cls):
    CASES[cls.__name__] = cls
    return cls


class Thing:
    shared = 3.0

    def __init__(self, **values):
        vars(self).update(values)


@case
class GlobalVariable:
    def read(self, x):
        return x * GLOBAL

    def change(self):
        globals()["GLOBAL"] += 1


@case
class BuiltinThatIsShadowed:
    def __init__(self):
        globals().pop("abs", None)

    def read(self, x):
        return x * abs(-2.0)

    def change(self):
        globals()["abs"] = lambda v: 5.0

    def change_back(self):
        globals().pop("abs", None)


@case
class MethodsUnderModes:
    class Scaled:
        scale = 2.0

        @tl.no_grad()
        def __call__(self, x):
            return self.shifted(x * self.scale)

        @tl.enable_grad()
        def shifted(self, x):
            return x + self.shift

    def __init__(self):
        self.f = self.Scaled()
        self.f.shift = 1.0

    def read(self, x):
        return self.f(x)

    def change_scale(self):
        self.f.scale += 1

    def change_shift(self):
        self.f.shift += 1

    def other(self):
        self.f.name = "another"


@case
class CachedProperty:
    class Lazy:
        scale = 2.0

        @functools.cached_property
        def cached(self):
            return self.scale + 1

    def __init__(self):
        self.a = self.Lazy()
        self.a.cached

    def read(self, x):
        return x * self.a.cached

    def change(self):
        self.a.cached = 7.0

    def change_to_another(self):
        self.a = self.Lazy()
        self.a.scale = 5.0


@case
class VariableOfAFunctionAround:
    def __init__(self):
        scale = 2.0

        def read(x):
            return (lambda: x * scale)()

        def change():
            nonlocal scale
            scale += 1

        self.read, self.set = read, change

    def change(self):
        self.set()


@case
class Attributes:
    def __init__(self):
        self.a = Thing(b=Thing(c=2.0), unread=0)

    def read(self, x):
        return x * self.a.b.c

    def change_value(self):
        self.a.b.c += 1

    def change_object(self):
        self.a.b = Thing(c=7.0)

    def change_by_dict(self):
        vars(self.a.b)["c"] += 2

    def other(self):
        self.a.unread += 1


@case
class AttributesOfClasses:
    def read(self, x):
        return x * Thing.shared + Thing().shared

    def change(self):
        Thing.shared += 1


@case
class AttributeThatIsNotThere:
    def __init__(self):
        self.a = Thing()

    def read(self, x):
        return x * getattr(self.a, "scale", 2.0) + hasattr(self.a, "more")

    def change(self):
        self.a.scale = 3.0

    def change_more(self):
        self.a.more = 1


@case
class InstanceAttributeOverTheClass:
    def __init__(self):
        self.a = Thing()

    def read(self, x):
        return x * self.a.shared

    def change(self):
        self.a.shared = 9.0


@case
class Slots:
    class Slotted:
        __slots__ = ("v", "u")

    def __init__(self):
        self.a = self.Slotted()
        self.a.v, self.a.u = 1.0, 2.0

    def read(self, x):
        return x * self.a.v

    def change(self):
        self.a.v += 1

    def other(self):
        self.a.u += 1


@case
class SlotOfAnArray:
    class Slotted:
        __slots__ = ("v",)

    def __init__(self):
        self.a = self.Slotted()
        self.a.v = np.array([1.0])

    def read(self, x):
        return x * float(self.a.v.ravel()[0])

    def change(self):
        self.a.v = np.array([3.0])

    def change_element(self):
        self.a.v[0] += 1


@case
class PropertiesAndGetattr:
    class Odd:
        def __init__(self):
            self.inner, self.table = 2.0, {"far": 3.0}

        @property
        def near(self):
            return self.inner

        def __getattr__(self, name):
            return self.table[name]

    def __init__(self):
        self.a = self.Odd()

    def read(self, x):
        return x * self.a.near + self.a.far

    def change_near(self):
        self.a.inner += 1

    def change_far(self):
        self.a.table["far"] += 1


@case
class Descriptors:
    class Kept:
        def __init__(self):
            self.values = {}

        def __get__(self, owner, kind=None):
            return self.values.get("v", 1.0)

    class Owner:
        pass

    def __init__(self):
        self.Owner.v = self.kept = self.Kept()

    def read(self, x):
        return x * self.Owner().v

    def change(self):
        self.kept.values["v"] = self.kept.values.get("v", 1.0) + 1


@case
class Methods:
    def __init__(self):
        self.a = type("Part", (Thing,), {"f": lambda part, x: x * part.v})(v=2.0)

    def read(self, x):
        return self.a.f(x)

    def change_value(self):
        self.a.v += 1

    def change_method(self):
        type(self.a).f = lambda part, x: x * 11

    def change_instance(self):
        self.a.f = lambda x: x * 13


@case
class SuperMethods:
    class Base:
        scale = 2.0

        def f(self, x):
            return x * self.scale

    class Derived(Base):
        def f(self, x):
            return super().f(x) + 1

    def __init__(self):
        self.Base.f, self.Base.scale = lambda s, x: x * s.scale, 2.0
        self.a = self.Derived()

    def read(self, x):
        return self.a.f(x)

    def change_scale(self):
        self.Base.scale += 1

    def change_method(self):
        self.Base.f = lambda s, x: x * 100


@case
class ClassOfAnObject:
    class One:
        v = 1.0

    class Two:
        v = 2.0

    def __init__(self):
        self.a = self.One()

    def read(self, x):
        return x * self.a.v + isinstance(self.a, self.Two)

    def change(self):
        self.a.__class__ = self.Two


@case
class Operators:
    class Number:
        def __init__(self, v):
            self.v = v

        def __mul__(self, other):
            return self.v * other.v

        def __bool__(self):
            return self.v > 3

        def __len__(self):
            return int(self.v)

        def __contains__(self, v):
            return v == self.v

        def __getitem__(self, i):
            return self.v + i

        def __iter__(self):
            yield self.v

        def __call__(self, v):
            return self.v * v

        def __eq__(self, other):
            return self.v == other.v

    def __init__(self):
        self.a, self.b = self.Number(2.0), self.Number(3.0)

    def read(self, x):
        y = x * (self.a * self.b) + (1 if self.a else 2) + len(self.a) + (2.0 in self.a)
        return y + self.a[1] + sum(self.a) + self.b(2.0) + (self.a == self.b)

    def change_a(self):
        self.a.v += 1

    def change_b(self):
        self.b.v += 1

    def change_operator(self):
        self.Number.__mul__ = lambda a, b: 77.0


@case
class AttributesOfTensors:
    """Also those that are not there, of a tensor and of one of a class of its own."""

    def __init__(self):
        self.plain, self.param = tl.ones(2), tl.nn.Parameter(tl.ones(2))
        self.plain.mark_a = 2.0

    def read(self, x):
        try:
            y = x * self.plain.mark_b
        except AttributeError:
            y = x * self.plain.mark_a
        return y * (3 if hasattr(self.plain, "mark_c") else 1) + getattr(self.param, "mark_a", 0.0)

    def change_read(self):
        self.plain.mark_a = 5.0

    def change_tried(self):
        self.plain.mark_b = 7.0

    def change_asked(self):
        self.plain.mark_c = True

    def change_of_class(self):
        self.param.mark_a = 9.0

    def other(self):
        tl.ones(2).mark_b = 3.0


@case
class ClassOfAModule:
    class Own(types.ModuleType):
        @property
        def scale(self):
            return vars(self)["scale"] * 3

    def __init__(self):
        self.module = types.ModuleType("of_its_own")
        self.module.scale = 2.0

    def read(self, x):
        return x * self.module.scale

    def change(self):
        self.module.__class__ = self.Own


@case
class ClassesAbove:
    def __init__(self):
        self.kinds = [type(name, (), {}) for name in ("A", "B", "C")]
        self.derived = type("D", tuple(self.kinds[:2]), {})
        self.thing = self.derived()

    def read(self, x):
        return x * (2 if isinstance(self.thing, self.kinds[0]) else 3) * (
            5 if issubclass(self.derived, self.kinds[1]) else 7)

    def change_first(self):
        self.derived.__bases__ = tuple(self.kinds[1:])

    def change_second(self):
        self.derived.__bases__ = self.kinds[0], self.kinds[2]


@case
class MembersOfAnEnum:
    def __init__(self):
        self.kinds = enum.Enum("Kinds", {"FIRST": 2.0, "SECOND": 3.0})
        self.kind = self.kinds.FIRST

    def read(self, x):
        return x * self.kind.value * len(self.kind.name)

    def change_member(self):
        self.kind = self.kinds.SECOND

    def change_value(self):
        self.kind._value_ = 5.0

    def change_name(self):
        self.kind._name_ = "LONGER NAME"
