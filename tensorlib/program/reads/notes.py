"""Records of what is read, by the object that was read, and the guards that are made of them.

Only objects from before the call need a guard. Those that the call makes are recognised by their
age: the garbage collector is off during a capture, so they all belong to its youngest generation.
"""

import gc
import sys
from collections.abc import Sequence
from types import GeneratorType, MemberDescriptorType
from typing import Any

from tensorlib._core.tensor.tensor import Tensor
from tensorlib.program.guards.guarded import (
    CellGuard,
    DictGuard,
    FunctionGuard,
    Guard,
    KindGuard,
    ListGuard,
    TypeGuard,
    ValueGuard,
    Youngest,
    is_written_in_python,
    youngest,
)
from tensorlib.program.guards.values import MISSING, fields_of, in_class
from tensorlib.program.ir.call_forms import user_line
from tensorlib.program.reads.caches import Hit
from tensorlib.program.reads.known import ATOMS, is_trusted
from tensorlib.program.reads.sources import own_code
from tensorlib.program.run.plan import Unplanned

# The attributes of a tensor that a signature compares, and what is the same for all tensors.
OF_SIGNATURES = frozenset("""shape dtype ndim requires_grad device layout itemsize nbytes names
    is_cuda is_sparse is_quantized is_nested is_meta is_mps is_xpu""".split())
WHOLE = ("dict", "attrs", "list")        # notes of all that a container has
EMPTY = ()                               # the one tuple of no elements, which is also all arguments
                                         # of a call by names
MOST = 1_000_000               # notes of one capture


class Notes:
    """What was read, each with what was there when it was read first.

    is_inside: whether the call made a tensor. covered: by their ids the arguments, and what is in
    them, of which a signature compares the contents.
    """

    def __init__(self, is_inside: Any, covered: dict[int, Any]):
        self.is_inside, self.covered = is_inside, covered
        self.notes: dict[tuple[int, str, Any], tuple[Any, str, Any, Any, str]] = {}
        self.made: dict[int, Any] = {}            # by the call, by their ids
        self.old: dict[int, Any] = {}             # and what is known to be older
        self.dicts: dict[int, tuple[Any, Any]] = {}      # of attributes: each with its object
        self.must_be_new: dict[int, tuple[Any, str]] = {}
        self.tensors: dict[int, Tensor] = {}      # from outside, that were read
        self.hit: Any = None                      # what the call that runs finds in a cache
        self.hits: list[Hit] = []
        self.why = ""                             # why the capture is no good
        self.root: Any = None                     # the function that is captured
        self.at = 0                               # the line of it that is to blame

    def fail(self, why: str) -> None:
        """Notes why the capture is no good, which is the first reason that there is."""
        self.at = self.at or line_in(self.root)
        self.why = self.why or why

    def begin(self) -> None:
        """Is called before the function runs, where collections are off."""
        gc.collect(1)
        self.old.update((id(x), x) for x in youngest())
        self.old.pop(id(self.old), None)

    def end(self) -> None:
        """Is called after it ran."""
        self.young = Youngest()
        young = (*self.made.values(), *(x for x, _ in self.must_be_new.values()))
        if any([has_an_end_to_come(x) for x in young if type(x) is GeneratorType]):
            self.fail("a generator has not come to its end, and what it does then is not known")

    def note(self, holder: Any, kind: str, key: Any, value: Any) -> None:
        """Records what was read, unless that was recorded before."""
        place = id(holder), kind, key
        if place in self.notes or id(holder) in self.made:
            return
        if len(self.notes) > MOST:
            self.fail(f"its code reads more than {MOST} things, {user_line()}")
            return
        if type(holder) is dict and not gc.is_tracked(holder) and id(holder) not in self.dicts:
            self.old[id(holder)] = holder
        self.notes[place] = holder, kind, key, value, user_line()

    def found_in_cache(self, found: Any) -> None:
        """Records what a call found in the cache of its function."""
        hit, self.hit = self.hit, None
        hit.found = found
        self.hits.append(hit)
        self.note(hit.f, "value", (hit, None), found)

    def is_noted(self, holder: Any, kind: str, key: Any = None) -> bool:
        """Whether something was recorded before, or need not be."""
        return (id(holder), kind, key) in self.notes or id(holder) in self.made

    def require_new(self, x: Any, why: str) -> None:
        """Records that an object whose state nobody knows has to be made by the call."""
        if id(x) not in self.made and id(x) not in self.must_be_new:
            self.must_be_new[id(x)] = x, f"{why}, {user_line()}"

    def is_old(self, x: Any) -> bool:
        """Whether an object was there before the call, as all may have been that the garbage
        collector does not look after and no statement made."""
        if id(x) in self.old:
            return True
        if id(x) in self.made:
            return False
        if id(x) in self.dicts:
            return self.is_old(self.dicts[id(x)][1])
        if issubclass(type(x), Tensor):
            return not self.is_inside(x)
        return not gc.is_tracked(x) or x not in self.young

    def guards(self, arguments: Sequence[Any]) -> list[Guard]:
        """The guards of what was there before the call.

        arguments: the tensors among them. Raises: Unplanned for what has no guard.
        """
        passed = {id(x) for x in arguments}
        dicts: dict[int, list[Any]] = {}
        owners: dict[int, Any] = {}
        lists: dict[int, list[Any]] = {}
        types: dict[int, list[Any]] = {}
        found: list[Guard] = []
        last: list[Guard] = []                 # which count that they are asked
        for holder, kind, key, value, line in (*self.notes.values(), *self.above_young_classes()):
            if not self.is_old(holder):
                continue
            self.outdate(holder, kind, value, passed, line)
            if id(holder) in self.covered:
                if id(holder) in passed:
                    check_argument(kind, key, line)
                elif kind == "value":
                    check_slot(holder, key[1], line)
                continue
            if kind in ("attr", "attrs"):
                owner, holder = holder, vars_of(holder)
                if holder is vars_of(owner):             # it has a dict of its own
                    owners[id(holder)] = owner
                kind = "dict" if kind == "attrs" else "key"
            if kind in ("key", "dict"):
                add(dicts, holder, key, value, kind == "dict", line)
            elif kind in ("item", "list"):
                add(lists, holder, key, value, kind == "list", line)
            elif kind == "class":
                add(types, holder, key, value, False, line)
            elif kind == "cell":
                found.append(CellGuard(holder, value, line))
            elif kind == "function":
                found.append(FunctionGuard(holder, value, own_code, line))
            elif kind == "kind":
                found.append(KindGuard(holder, value, line))
            else:
                (last if type(key[0]) is Hit else found).append(
                    ValueGuard(holder, key[0], key[1], value, line))
        for x, why in self.must_be_new.values():
            if self.is_old(x):
                raise Unplanned(why)
        found += [DictGuard(*x, owners.get(key)) for key, x in dicts.items()]
        found += [ListGuard(*x) for x in lists.values()]
        found += [TypeGuard(holder, read, line) for holder, read, _, line in types.values()]
        return [*found, *last]

    def above_young_classes(self) -> list[Any]:
        """What was looked up in a class that the call made, noted of those above it that are
        older. Raises: Unplanned where such a class has changed since."""
        found: list[Any] = []
        for holder, kind, key, value, line in self.notes.values():
            if kind == "class" and not self.is_old(holder):
                if in_class(holder, key) is not value:
                    raise Unplanned(f"{key} of a class that it makes is changed, {line}")
                found += [(cls, kind, key, in_class(cls, key), line) for cls in holder.__mro__[1:]
                          if is_written_in_python(cls) and self.is_old(cls)]
        return found

    def forget(self) -> None:
        """Lets go of all that was read."""
        for found in (self.notes, self.made, self.old, self.must_be_new, self.covered,
                      self.dicts, self.tensors):
            found.clear()

    def outdate(self, holder: Any, kind: str, value: Any, passed: set[int], line: str) -> None:
        """Records that what was found in something old is old."""
        if kind == "attrs":
            self.old[id(vars_of(holder))] = holder
        found = [value]                           # with what is in tuples, as members are
        for x in found:
            if type(x) is tuple or x is value and kind in WHOLE:
                found += x
            if id(type(x)) in ATOMS or x is MISSING or x is EMPTY or x is value and kind in WHOLE:
                continue
            if issubclass(type(x), Tensor) and id(x) not in passed:
                self.tensors[id(x)] = x
            if id(holder) not in self.covered:
                if id(x) in passed:
                    raise Unplanned("a tensor is an argument, and is read from outside as well, "
                                    f"{line}")
                if id(x) in self.covered and id(x) not in self.old:
                    raise Unplanned(f"a {type(x).__name__} is an argument, and is read from "
                                    f"outside as well, {line}")
            self.old[id(x)] = x


def line_in(f: Any) -> int:
    """The line of a function that runs now, for the call that was first; 0 for none."""
    frame: Any = sys._getframe(2)
    found = 0
    code = getattr(f, "__code__", None)
    while frame is not None:
        if frame.f_code is code:
            found = frame.f_lineno
        frame = frame.f_back
    return found


def has_an_end_to_come(x: Any) -> bool:
    """Whether code of the user's may run where a generator is released."""
    return x.gi_frame is not None and (
        x.gi_code.co_name != "<genexpr>" and not is_trusted(x.gi_code.co_filename))


def check_argument(kind: str, key: Any, line: str) -> None:
    """Raises: Unplanned for an attribute of an argument of which a signature does not know."""
    name = key[1] if kind == "value" else key
    if name is not None and name not in OF_SIGNATURES:
        raise Unplanned(f"{name} of an argument is read, {line}; pass it as an argument")


def check_slot(x: Any, name: Any, line: str) -> None:
    """Raises: Unplanned for what is in a slot of an argument at which no signature looks."""
    if type(name) is str and type(in_class(type(x), name)) is MemberDescriptorType and (
            name not in (fields_of(x) or ())):
        raise Unplanned(f"{name} of an argument is read, {line}; pass it as an argument")


def add(found: dict[int, list[Any]], holder: Any, key: Any, value: Any, whole: bool,
        line: str) -> None:
    """Adds what was read of a container to what else was read of it."""
    each = found.setdefault(id(holder), [holder, {}, None, line])
    if whole:
        each[2] = value
    else:
        each[1][key] = value


def vars_of(x: Any) -> dict[str, Any]:
    """The dict of an object's attributes, whatever the object says of itself; {} for none."""
    try:
        found: dict[str, Any] = object.__getattribute__(x, "__dict__")
        return found
    except AttributeError:
        return {}
