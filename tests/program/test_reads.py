"""Each way to read something in Python: its change is seen, and that of what is not read is not."""

import collections
import contextlib
import datetime
import io
import operator
import os
import random
import sys
import time
import warnings

import numpy as np
import pytest

import read_contexts
import read_parts
from cases import each
import tensorlib as tl
from read_cases import CASES, Thing
from test_compile_agrees import kept
from test_compile_agrees import same as same_elements

assert read_parts.Lists is CASES["Lists"] and read_contexts.OfAThread is CASES["OfAThread"]
GLOBAL = 2.0


def changes_of(cls):
    return [name for name in vars(cls) if name.startswith("change")]


@each("name, change", [
    (name, change) for name, cls in CASES.items() for change in (*changes_of(cls), "other", None)
    if change is None or hasattr(cls, change)])
def test_what_is_read_is_seen_when_it_changes(name, change):
    cls, x = CASES[name], tl.arange(1.0, 3.0)
    around = vars(sys.modules[cls.__module__])
    before = dict(around)
    try:
        holder = cls()
        compiled = tl.compile(holder.read, fullgraph=True)
        for k in range(6):
            with tl.no_grad():
                wanted = holder.read(x)
                assert same_elements(kept(compiled(x)), kept(wanted)), (k, wanted)
            if change == "other" or change is not None and k == 2:
                getattr(holder, change)()
        assert len(compiled._entries) == 1 or change is not None
        if change == "other":
            assert len(compiled._entries) <= 2
    finally:
        for key in set(around) - set(before):
            del around[key]
        around.update(before)


# ---- what can't be guarded ----------------------------------------------------------------------

ARRAY = np.ones(3)
DATE = datetime.datetime
SECONDS = "M8[s]"
WORDS = np.array(["now"])
ITERATOR = iter([1.0] * 100)

UNKNOWN = {
    "random.random": lambda x: x * random.random(),
    "operator.call": lambda x: x * operator.call(random.random),
    "iter": lambda x: x * next(iter(random.random, 2)),
    "defaultdict": lambda x: x * collections.defaultdict(random.random)[0],
    "defaultdict of a clock": lambda x: x * collections.defaultdict(DATE.now)[0].year,
    "map of a clock": lambda x: x * next(map(DATE.now, [None])).year,
    "np.datetime64": lambda x: (x, np.datetime64("now"))[0],
    "a clock in np.array": lambda x: (x, np.array("today", dtype="M8[s]"))[0],
    "a clock in a list": lambda x: x * int(np.array(["now"], dtype="M8[s]").astype(int)[0] > 0),
    "a clock in an array": lambda x: x * int(WORDS.astype("M8[s]").astype(int)[0] > 0),
    "a clock in bytes": lambda x: x * int(np.datetime64(b"now").astype(int) > 0),
    "a clock by name": lambda x: x * np.full(2, fill_value="now", dtype=SECONDS).astype(int).sum(),
    "workdays": lambda x: x * int(np.is_busday([DATE(2024, 1, 1).date()])[0]),
    "a time zone": lambda x: x * DATE(2024, 1, 1).astimezone().hour,
    "a time zone of a number": lambda x: x * DATE.fromtimestamp(0).hour,
    "np.info": lambda x: (np.info(np.ones, output=io.StringIO()), x)[1],
    "map of a setting": lambda x: x * len([*map(tl.set_default_dtype, [tl.float32])]),
    "np.random.rand": lambda x: x * float(np.random.rand()),
    "time.time": lambda x: x * time.time(),
    "print": lambda x: (print("told"), x)[1],
    "id": lambda x: x * id(x),
    "next": lambda x: x * next(ITERATOR),
    "os.getpid": lambda x: x * os.getpid(),
    "eval": lambda x: eval("x * 2"),
    "globals": lambda x: x * globals()["GLOBAL"],
}


@each("name", UNKNOWN)
def test_what_nobody_knows_runs_eagerly_and_says_so_once(name):
    compiled = tl.compile(UNKNOWN[name])
    with pytest.warns(RuntimeWarning, match=r"runs eagerly: .*test_reads.py:\d+") as caught:
        for _ in range(3):
            compiled(tl.ones(2))
    assert len(caught) == 1 and compiled._entries[0].replay is None


@pytest.mark.filterwarnings("ignore:compile:RuntimeWarning")
@each("name", read_contexts.SETTINGS)
def test_settings_are_seen_where_they_change(name):
    f, context = read_contexts.SETTINGS[name]
    compiled, x = tl.compile(f), tl.ones(2)
    for is_within in (False, False, True, True, False):
        with np.errstate(all="ignore" if context is read_contexts.raising else "warn"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                with context() if is_within else contextlib.nullcontext():
                    assert compiled(x).tolist() == f(x).tolist()


def test_a_function_without_a_source_runs_eagerly():
    scope = {}
    # not of "<string>": what `python -c` was given is the source of that from 3.13 on
    exec(compile("def f(x):\n    return x * 2", "<made here>", "exec"), scope)
    with pytest.warns(RuntimeWarning, match="its source code is not available"):
        assert tl.compile(scope["f"])(tl.ones(1)).item() == 2


def test_functions_have_their_own_code_after_a_call():
    def inner(x):
        return x * 2

    def outer(x):
        return inner(x) + 1

    codes = inner.__code__, outer.__code__
    tl.compile(outer, fullgraph=True)(tl.ones(1))
    assert (inner.__code__, outer.__code__) == codes
    assert inner.__code__ is codes[0] and outer.__code__ is codes[1]


def test_errors_of_a_captured_function_show_its_lines():
    def broken(x):
        y = x * 2
        return y.no_such_thing

    with pytest.raises(AttributeError) as eager:
        broken(tl.ones(1))
    with pytest.raises(AttributeError) as found:
        tl.compile(broken)(tl.ones(1))
    assert str(found.value) == str(eager.value)
    lines = {entry.lineno + 1 for entry in found.traceback}
    assert eager.traceback[-1].lineno + 1 in lines


def test_an_object_of_an_equal_value_is_another_object():
    class Equal:
        def __init__(self, v):
            self.v = v

        def __eq__(self, other):
            return True

        __hash__ = None

    f = tl.compile(lambda x, a: x * a.v, fullgraph=True)
    for v in (1.0, 2.0, 1.0):
        assert f(tl.ones(1), Equal(v)).item() == v


def test_what_is_made_inside_may_be_written_to():
    def f(x):
        state, found = {"n": 0}, []
        made = Thing(v=1.0)
        for k in range(3):
            state["n"] += k
            found.append(x * k)
            made.v += state["n"]
        return sum(found) * made.v

    compiled = tl.compile(f, fullgraph=True)
    for _ in range(3):
        assert tl.equal(compiled(tl.ones(2)), f(tl.ones(2)))
    assert len(compiled._entries) == 1


def test_ranges_may_be_gone_through_from_their_end():
    f = tl.compile(lambda x: sum(x * k for k in reversed(range(1, 4))) + next(iter(range(7, 9))),
                   fullgraph=True)
    for k in range(3):
        assert f(tl.tensor(float(k))).item() == 6 * k + 7


def test_a_method_of_tensors_may_be_replaced(monkeypatch):
    f = tl.compile(lambda x: x.tanh(), fullgraph=True)
    assert f(tl.zeros(1)).item() == f(tl.zeros(1)).item() == 0
    monkeypatch.setattr(tl.Tensor, "tanh", lambda x: x + 3)
    assert f(tl.zeros(1)).item() == f(tl.zeros(1)).item() == 3


WRITING = {
    "tofile": lambda x, path: (ARRAY.tofile(path), x)[1],
    "dump": lambda x, path: (ARRAY.dump(path), x)[1],
    "ndarray.tofile": lambda x, path: (np.ndarray.tofile(ARRAY, path), x)[1],
}


@pytest.mark.parametrize("name", WRITING)
@pytest.mark.filterwarnings("ignore:compile")
def test_files_are_written_in_each_call(name, tmp_path):
    f, path = tl.compile(WRITING[name]), tmp_path / "file"
    for _ in range(3):
        f(tl.ones(1), str(path))
        assert path.read_bytes()
        path.unlink()


@pytest.mark.filterwarnings("ignore:compile")
def test_a_function_is_traced_inside_of_a_compiled_one():
    def f(x):
        return tl.program.trace(lambda y: y * 2 + 1, x)(x)

    compiled = tl.compile(f)
    for k in range(3):
        assert compiled(tl.full((2,), float(k))).tolist() == [2.0 * k + 1] * 2
    with pytest.raises(tl.program.CaptureError, match="can't be captured"):
        tl.compile(f, fullgraph=True)(tl.ones(1))
    with pytest.raises(RuntimeError, match="traced already"):
        tl.program.trace(f, tl.ones(1))


@pytest.mark.filterwarnings("ignore:compile")
def test_writes_that_are_told_of_are_counted_in_each_call():
    w = tl.ones(2)
    f = tl.compile(lambda x: (tl.autograd.graph.increment_version(w), x * w)[1])
    for k in range(1, 5):
        f(tl.ones(2))
        assert w._version == k
