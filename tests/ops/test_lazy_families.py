"""Families that are declared when they are first used: each in a process that has not used it."""

import pytest
from process import run_each, run_forked

from tensorlib.ops import registry
from tensorlib.ops.lazy import FAMILIES, operations

PUBLISHED = """
import importlib, sys, tensorlib as tl
from tensorlib.ops.lazy import FAMILIES, Placeholder
from tensorlib.ops.publish import FUNCTIONS
places = {"functions": FUNCTIONS, "methods": vars(tl.Tensor), "package": vars(tl)}
before = {place: set(names) for place, names in places.items()}
"""
OF_A_FAMILY = """
importlib.import_module(family)
for place, names in places.items():
    left = [name for name, value in names.items()
            if type(value) is Placeholder and value.family == family]
    new = {name for name in set(names) - before[place]     # but for modules, which it imports
           if not isinstance(names[name], type(sys))}
    print(place, left, new or "all listed")
"""


def test_a_family_publishes_the_names_in_the_table():
    said = run_each(PUBLISHED, [f"family = {family!r}{OF_A_FAMILY}" for family in FAMILIES])
    for family, lines in zip(FAMILIES, said, strict=True):
        assert lines.splitlines() == [
            f"{place} [] all listed" for place in ("functions", "methods", "package")], family


def test_a_family_is_imported_when_a_name_of_it_is_used():
    said = run_forked("""
import sys, tensorlib as tl
def loaded():
    return [name[14:] for name in tl.ops.lazy.FAMILIES if name in sys.modules]
print(loaded())
x = tl.tensor([180.0])
kept = tl.flip
print(kept(x, [0]).tolist(), loaded())
print(x.deg2rad_().tolist(), loaded())
""")
    assert said.splitlines() == [
        "[]", "[180.0] ['shape.repeating']",
        "[3.1415927410125732] ['pointwise.rare', 'shape.repeating']"]


def test_a_stand_in_looks_like_its_function():
    said = run_forked("""
import copy, inspect, pickle, tensorlib as tl
kept = [tl.flip, tl.diff, tl.roll, tl.kron, tl.trace]
print(kept[0].__name__, kept[0].__module__, pickle.loads(pickle.dumps(kept[0])) is kept[0])
print(*inspect.signature(kept[1]).parameters, copy.copy(kept[1]) is kept[1])
print(kept[2].__doc__[:15], repr(kept[3]).split(" at ")[0], kept[4].op)
print(tl.Tensor.hsplit.__name__, hasattr(kept[0], "nothing"))
""")
    assert said.splitlines() == [
        "flip tensorlib True", "input n dim prepend append out True",
        "`input` shifted <cyfunction kron <Op trace(input)>", "hsplit False"]


def test_the_stand_in_of_a_method_alone_is_that_of_no_function():
    said = run_forked("""
import inspect, tensorlib as tl
for name in ("cuda", "geometric_"):
    print(inspect.signature(inspect.getattr_static(tl.Tensor, name)))
""")
    assert said.splitlines() == [
        "(self, device=None, non_blocking=False, memory_format=None)",
        "(self, p, *, generator=None)"]


def test_the_registry_knows_all_operations():
    said = run_forked("""
import tensorlib as tl
print("kron" in tl.ops.registry, tl.ops.registry["trace"].name, len(tl.ops.registry))
""")
    ours = [name for name in registry if "." not in name]
    assert said.split() == ["True", "trace", str(len(ours))]


def test_a_name_that_is_near_is_offered_once_where_it_is_declared_by_now():
    assert registry["all_gather"].name == "all_gather"
    with pytest.raises(AttributeError, match="no operation named 'gahter'") as error:
        operations.gahter
    offered = str(error.value).partition("did you mean ")[2].strip("?").split(" or ")
    assert "all_gather" in offered and len(offered) == len(set(offered))


def test_names_of_families_that_are_not_declared_are_protected():
    said = run_forked("""
import tensorlib as tl
from tensorlib import ops
def kron(x):
    return x
for declare in (ops.primitive, ops.op(), lambda f: ops.compose("kron", f)):
    try:
        declare(kron)
    except ValueError as error:
        print(error)
print(tl.kron(tl.ones(2), tl.ones(2)).shape)
""")
    assert said.splitlines() == ["ops: an operation named 'kron' exists already"] * 3 + [
        "tensorlib.Size([4])"]


def test_families_are_declared_beside_operations_from_outside():
    assert run_forked("""
import tensorlib as tl
@tl.ops.primitive
def kron_of_ones(x):
    return x
print(tl.kron(tl.ones(1), tl.ones(2)).tolist(), tl.ops.registry["kron_of_ones"].name)
""").split() == ["[1.0,", "1.0]", "__main__.kron_of_ones"]


def test_numpys_functions_find_operations_that_are_not_declared():
    assert run_forked("""
import numpy as np, tensorlib as tl
x = tl.tensor([180.0], requires_grad=True)
print(type(np.deg2rad(x).grad_fn).__name__, type(np.positive(x)).__name__)
""").split() == ["MulBackward0", "Tensor"]


def test_transforms_use_families_that_are_not_declared():
    assert run_forked("""
import tensorlib as tl
print(tl.vmap(lambda x: tl.flip(x, [0]).diff())(tl.tensor([[1.0, 2.0, 4.0]])).tolist(),
      tl.func.grad(lambda x: tl.roll(x, 1)[0])(tl.ones(2)).tolist())
""").strip() == "[[-2.0, -1.0]] [0.0, 1.0]"


def test_a_family_that_fails_is_declared_anew_by_the_next_use():
    said = run_forked("""
import sys, tensorlib as tl
from tensorlib.ops import samples
from tensorlib.ops.lazy import Placeholder
true, left = samples.given, 3
def given(*cases):
    global left
    left -= 1
    if not left:
        raise MemoryError("no room")
    return true(*cases)
samples.given = given
try:
    tl.flip(tl.ones(2), [0])
except MemoryError as error:
    print(error, "tensorlib.ops.shape.repeating" in sys.modules,
          type(vars(tl.Tensor)["flip"]).__name__)
print(tl.ones(2).flip(0).shape, tl.roll(tl.ones(3), 1).shape, isinstance(tl.flip, Placeholder))
""")
    assert said.splitlines() == [
        "no room False Placeholder", "tensorlib.Size([2]) tensorlib.Size([3]) False"]


def test_threads_may_ask_for_one_family_at_once():
    assert run_forked("""
import threading, tensorlib as tl
x, found = tl.ones(2, 2), []
def use():
    found.append((tl.flip(x, [0]).shape, x.trace().item(), x.repeat(2, 1).shape))
threads = [threading.Thread(target=use) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len(found), len(set(found)))
""").split() == ["8", "1"]
