"""Guards of dicts: whichever way a dict is written to, the next call sees it."""

import gc
from collections import OrderedDict
from types import ModuleType, SimpleNamespace

from cases import each

import tensorlib as tl
from tensorlib.program.guards.guarded import DictGuard
from tensorlib.program.guards.values import MISSING


def guard_of(d, owner=None):
    guard = DictGuard(d, {"a": d.get("a", MISSING), "b": d.get("b", MISSING)}, list(d.items()), "",
                      owner)
    assert guard.check() and guard.check()
    return guard


WRITES = {
    "setitem": lambda d: d.__setitem__("a", 2),
    "a new key": lambda d: d.__setitem__("c", 2),
    "delitem": lambda d: d.__delitem__("a"),
    "pop": lambda d: d.pop("a"),
    "popitem": lambda d: d.popitem(),
    "setdefault": lambda d: d.setdefault("b2", 1),
    "update": lambda d: d.update(a=3),
    "update with keys of no text": lambda d: d.update({7: 1}),
    "ior": lambda d: d.__ior__({"b": 3}),
    "init": lambda d: d.__init__(b=3),
    "clear": lambda d: d.clear(),
}


@each("kind", [dict, OrderedDict])
@each("write", WRITES.values(), ids=WRITES)
def test_every_way_to_write_is_seen(write, kind):
    d = kind(a=1, b=2)
    guard = guard_of(d)
    write(d)
    assert not guard.check()
    d.clear()
    d.update(a=1, b=2)
    assert guard.check()                       # as it was, be it written to in between


def test_an_empty_dict_that_is_filled_from_another():
    d = {}
    guard = guard_of(d)
    d.update({"a": 1})
    assert not guard.check()


class Slotless:
    def __init__(self):
        self.a, self.b = 1, 2


@each("make", [Slotless, lambda: SimpleNamespace(a=1, b=2)])
@each("write", [
    lambda x: setattr(x, "a", 3), lambda x: delattr(x, "b"), lambda x: setattr(x, "c", 3),
    lambda x: vars(x).update(a=4), lambda x: x.__init__(**dict(b=9)) if not isinstance(x, Slotless)
    else x.__setattr__("b", 9)])
def test_attributes_are_seen(make, write):
    x = make()
    guard = guard_of(vars(x), x)
    write(x)
    assert not guard.check()


def test_attributes_set_by_code_that_runs_often():
    """As the interpreter specialises it."""
    def store(x, value):
        x.a = value

    objects = [Slotless() for _ in range(50)]
    for x in objects:
        store(x, 1)
    guards = [guard_of(vars(x), x) for x in objects]
    for i, x in enumerate(objects):
        store(x, 1 + i % 2)
    assert [guard.check() for guard in guards] == [i % 2 == 0 for i in range(50)]


def test_another_dict_of_an_object():
    x = Slotless()
    guard = guard_of(vars(x), x)
    x.__dict__ = dict(vars(x))
    assert not guard.check()


def test_globals_that_a_function_writes():
    module = ModuleType("module")
    module.a, module.b = 1, 2
    exec("def f():\n    global a\n    a = 5", vars(module))
    guard = guard_of(vars(module))
    module.f()
    assert not guard.check()


def test_many_dicts_that_come_and_go():
    """Of each only its own writes count, also after others had its place in memory."""
    kept = []
    for i in range(2000):
        d = {"a": i}
        guards = [guard_of(d), guard_of(d)]
        if i % 3 == 0:
            kept.append((d, guards))
        if i % 7 == 0:
            kept[i % len(kept)][0]["a"] = -1
    del d, guards
    gc.collect()
    for d, guards in kept:
        assert [x.check() for x in guards] == [d["a"] != -1] * 2
    for d, guards in kept[::2]:
        guards.pop()
    for d, guards in kept:
        before = guards[0].check()
        d["b"] = 1
        assert not guards[0].check()
        del d["b"]
        assert guards[0].check() == before


def test_a_guard_that_outlives_nothing():
    """A cycle of a dict and its guard is collected, and others may have the place of the dict."""
    for _ in range(100):
        d = {"a": 1}
        d["guard"] = DictGuard(d, {"a": 1}, None, "")
        assert d["guard"].check()
    del d
    gc.collect()
    d = {"a": 1}
    guard = guard_of(d)
    d["a"] = 2
    assert not guard.check()


def test_a_compiled_function_sees_what_it_reads_of_a_dict():
    settings = {"scale": 2.0}
    f = tl.compile(lambda x: x * settings["scale"])
    x = tl.ones(2)
    for scale in (2.0, 2.0, 3.0, 3.0, 2.0):
        settings["scale"] = scale
        assert f(x).tolist() == [scale, scale]
