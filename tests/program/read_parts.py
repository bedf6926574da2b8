"""Ways to read containers, texts, arrays, tensors and modules; defaults and code of functions."""

import collections
import contextlib
import dataclasses
import enum
import functools
import itertools
import math
import operator
import types

import numpy as np

import tensorlib as tl
from read_cases import Thing, case
from tensorlib import nn


@case
class Dicts:
    def __init__(self):
        self.d = {"a": 1.0, "b": {"c": 2.0}, "unread": 0}

    def read(self, x):
        return x * self.d["a"] + self.d["b"]["c"] + self.d.get("e", 5.0) + ("f" in self.d)

    def change_a(self):
        self.d["a"] += 1

    def change_c(self):
        self.d["b"]["c"] += 1

    def change_e(self):
        self.d["e"] = 6.0

    def change_f(self):
        self.d["f"] = None

    def other(self):
        self.d["unread"] += 1


@case
class DictsInOrder:
    def __init__(self):
        self.d = {"a": 1.0, "b": 2.0}

    def read(self, x):
        for key, v in self.d.items():
            x = x * v + len(key) + ord(key)
        return x

    def change(self):
        self.d["c"] = 1.0

    def change_order(self):
        self.d["a"] = self.d.pop("a")


@case
class Lists:
    def __init__(self):
        self.values = [1.0, 2.0, [3.0], 0]

    def read(self, x):
        return x * self.values[0] + self.values[2][0]

    def change_first(self):
        self.values[0] += 1

    def change_inner(self):
        self.values[2][0] += 1

    def other(self):
        self.values[3] += 1


@case
class ListsInWhole:
    def __init__(self):
        self.values = [1.0, 2.0]

    def read(self, x):
        first, *rest = self.values
        return x * sum(self.values) + first + max(rest) + len(self.values) + [1.0].count(first)

    def change(self):
        self.values.append(3.0)

    def change_sign_of_zero(self):
        self.values[:] = [0.0, 1.0]


@case
class TruthOfAList:
    def __init__(self):
        self.values = []

    def read(self, x):
        return x * 2 if self.values else x * 3

    def change(self):
        self.values.append(1)

    def other(self):
        if self.values:
            self.values.append(2)


@case
class NestedUnpacking:
    def __init__(self):
        self.pairs = [[1.0, [2.0]], [3.0, [4.0]]]

    def read(self, x):
        for a, (b,) in self.pairs:
            x = x * a + b
        return sum((a * b[0] for a, b in zip(*zip(*self.pairs))), x)

    def change(self):
        self.pairs[1][1][0] += 1


@case
class SetsAndDeques:
    def __init__(self):
        self.s, self.d = {1, 2}, collections.deque([1.0, 2.0])

    def read(self, x):
        return x * sum(self.s) + self.d[-1] + (3 in self.s)

    def change_set(self):
        self.s.add(3)

    def change_deque(self):
        self.d.append(5.0)


@case
class KeywordExpansion:
    def __init__(self):
        self.kw, self.args = {"scale": 2.0}, [3.0]

    def read(self, x):
        def f(x, *args, scale=1.0, offset=0.0):
            return x * scale + offset + sum(args)
        return f(x, *self.args, **self.kw)

    def change_value(self):
        self.kw["scale"] += 1

    def change_key(self):
        self.kw["offset"] = 4.0

    def change_args(self):
        self.args.append(1.0)


def with_defaults(x, scale=2.0, *, offset=1.0, table={"k": 1.0}):  # noqa: B006
    return x * scale + offset + table["k"]


@case
class Defaults:
    def __init__(self):
        with_defaults.__defaults__ = (2.0,)
        with_defaults.__kwdefaults__ = {"offset": 1.0, "table": {"k": 1.0}}

    def read(self, x):
        return with_defaults(x)

    def change(self):
        with_defaults.__defaults__ = (3.0,)

    def change_named(self):
        with_defaults.__kwdefaults__["offset"] = 2.0

    def change_inside(self):
        with_defaults.__kwdefaults__["table"]["k"] += 1


@case
class CodeOfAFunction:
    def __init__(self):
        self.f = types.FunctionType((lambda x: x * 2).__code__, globals())

    def read(self, x):
        return self.f(x)

    def change(self):
        self.f.__code__ = (lambda x: x * 3).__code__


@case
class DecoratorsAndPartials:
    def __init__(self):
        self.config = {"scale": 2.0}

        def scaled(f):
            @functools.wraps(f)
            def inner(x):
                return f(x) * self.config["scale"]
            return inner

        self.f = scaled(lambda x: x + 1)
        self.g = functools.partial(operator.mul, 3.0)

    def read(self, x):
        return self.f(x) + self.g(2.0)

    def change(self):
        self.config["scale"] += 1

    def change_partial(self):
        self.g = functools.partial(operator.mul, 4.0)


@case
class ContextManagers:
    class Scaling:
        def __init__(self):
            self.v = 2.0

        def __enter__(self):
            return self.v

        def __exit__(self, *error):
            return False

    def __init__(self):
        self.a, self.table = self.Scaling(), {"v": 3.0}

    @contextlib.contextmanager
    def scaled(self):
        yield self.table["v"]

    def read(self, x):
        with self.a as v, self.scaled() as w:
            return x * v + w

    def change(self):
        self.a.v += 1

    def change_generator(self):
        self.table["v"] += 1


@case
class Generators:
    def __init__(self):
        self.values = [1.0, 2.0]

    def produce(self):
        yield from (v * 2 for v in self.values)

    def read(self, x):
        for v in self.produce():
            x = x * v
        return x + sum(v for v in map(lambda v: v + len(self.values), self.values))

    def change(self):
        self.values[1] += 1


@case
class Comprehensions:
    def __init__(self):
        self.d = {"a": 1.0, "b": 2.0}

    def read(self, x):
        found = {k: v for k, v in self.d.items() if v > 0}
        return x * sum([v for v in found.values()]) + len({*found})

    def change(self):
        self.d["c"] = 3.0


@case
class Texts:
    def __init__(self):
        self.a = Thing(name="ab", parts=["x", "yz"])

    def read(self, x):
        return x * len(f"{self.a.name}!") + len("-".join(self.a.parts)) + len(f"{self.a.parts}")

    def change_name(self):
        self.a.name += "c"

    def change_parts(self):
        self.a.parts.append("w")


@dataclasses.dataclass
class Config:
    scale: float
    parts: list = dataclasses.field(default_factory=list)


@case
class Matching:
    def __init__(self):
        self.a = {"kind": "add", "config": Config(2.0, [1.0])}

    def read(self, x):
        match self.a:
            case {"kind": "add", "config": Config(scale=s, parts=[p, *_])}:
                return x + s * p
            case {"kind": "mul", "config": Config(scale=s)}:
                return x * s
        return x

    def change_kind(self):
        self.a["kind"] = "mul"

    def change_scale(self):
        self.a["config"].scale += 1

    def change_none(self):
        self.a["kind"] = "none"


@case
class MatchingModules:
    class Scaled(tl.nn.Module):
        scale = 2.0

    def __init__(self):
        self.a = [tl.nn.Linear(2, 2), self.Scaled()]

    def read(self, x):
        match self.a:
            case [tl.nn.Linear(out_features=n), self.Scaled(scale=s)]:
                return x * s + n
        return x

    def change(self):
        self.a[1].scale += 1

    def change_size(self):
        self.a[0].out_features += 1

    def change_class(self):
        self.Scaled.scale += 1


@case
class DataclassesAndTuples:
    Pair = collections.namedtuple("Pair", "a b")

    def __init__(self):
        self.c, self.p = Config(2.0), self.Pair(1.0, [2.0])

    def read(self, x):
        return x * self.c.scale + self.p.b[0] + (self.c == Config(3.0)) + self.p.a

    def change(self):
        self.c.scale += 1

    def change_tuple(self):
        self.p.b[0] += 1

    def change_another(self):
        self.p = self.p._replace(a=8.0)


class Color(enum.Enum):
    RED = 1.0
    BLUE = 2.0


@case
class Enums:
    def __init__(self):
        self.c = Color.RED

    def read(self, x):
        return x * self.c.value + (self.c is Color.BLUE)

    def change(self):
        self.c = Color.BLUE


@case
class ModulesOfPython:
    def __init__(self):
        self.m = types.ModuleType("made")
        self.m.v = 1.0

    def read(self, x):
        return x * self.m.v + math.sqrt(4.0)

    def change(self):
        self.m.v += 1


@case
class Arrays:
    def __init__(self):
        self.a = np.arange(3.0)

    def read(self, x):
        return x * float(self.a[1]) + float(self.a.sum())

    def change(self):
        self.a[1] += 1


@case
class IteratorsOfTheCall:
    def __init__(self):
        self.values = [1.0, 2.0, 3.0]

    def read(self, x):
        it = iter(self.values)
        x = x * next(it)
        for i, v in enumerate(it):
            x = x + i * v
        for a, b in itertools.pairwise(self.values):
            x = x * (a - b)
        return x

    def change(self):
        self.values[2] += 1


@case
class TensorsFromOutside:
    def __init__(self):
        self.w, self.unread = tl.ones(2), tl.ones(2)

    def read(self, x):
        return x * self.w + self.w.shape[0] + self.w.requires_grad

    def change_elements(self):
        self.w.add_(1)

    def change_tensor(self):
        self.w = tl.full((2,), 5.0)

    def change_shape(self):
        self.w = tl.ones(1)

    def change_mode(self):
        self.w = self.w.detach().requires_grad_()

    def other(self):
        self.unread = tl.zeros(3)


@case
class ModulesOfTheUser:
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.scale, self.names = nn.Linear(2, 2), 2.0, ["first"]

        def forward(self, x):
            for name in self.names:
                x = getattr(self, name)(x) * self.scale
            return x if self.training else x + 1

    def __init__(self):
        tl.manual_seed(0)
        self.net, self.step = self.Net(), 0

    def read(self, x):
        return self.net(x)

    def change_scale(self):
        self.net.scale += 1

    def change_mode(self):
        self.net.eval()

    def change_names(self):
        self.net.names.append("first")

    def change_by_dict(self):
        vars(self.net)["scale"] = 7.0

    def change_weight(self):
        self.net.first.weight = nn.Parameter(tl.ones(2, 2))

    def change_forward(self):
        self.net.first.forward = lambda x: x * 3

    def other(self):
        self.net.unread = self.step = self.step + 1
