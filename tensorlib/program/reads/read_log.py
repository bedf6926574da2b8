"""The log of what a function reads, by the object that is read, and the guards made of it.

Only objects from before the call need a guard. Those that the call creates are recognised by their
age: the garbage collector is off during a capture, so they all belong to its youngest generation.
"""

import gc
import sys
from collections.abc import Sequence
from types import GeneratorType, MemberDescriptorType
from typing import Any

from tensorlib._core.tensor.tensor import Tensor
from tensorlib.program.guards.guarded import (
    CellGuard, DictGuard, FunctionGuard, Guard, KindGuard, LayoutGuard, ListGuard, TypeGuard,
    ValueGuard, Youngest, is_written_in_python, layout_of, youngest,
)
from tensorlib.program.guards.slots import Slot
from tensorlib.program.guards.values import MISSING, fields_of, in_class, names_in
from tensorlib.program.ir.call_forms import user_line
from tensorlib.program.reads.caches import CacheHit
from tensorlib.program.reads.known import ATOMS, is_definition_of_library, is_trusted
from tensorlib.program.reads.sources import original_code
from tensorlib.program.run.plan import Unplanned

# The attributes of a tensor that a signature compares, and what is the same for all tensors.
OF_SIGNATURES = frozenset("""shape dtype ndim requires_grad device layout itemsize nbytes names
    is_cuda is_sparse is_quantized is_nested is_meta is_mps is_xpu""".split())
WHOLE = ("dict", "attrs", "list")         # entries of all that a container has
EMPTY = ()                               # the one tuple of no elements, which is also all arguments
                                         # of a call by names
MAX_ENTRIES = 1_000_000                  # of the log of one capture


class ReadLog:
    """What was read, each with what was there when it was read first.

    is_inside: gives whether the call created a tensor. covered: by their ids the arguments, and
    what is in them, whose contents a signature compares.
    """

    def __init__(self, is_inside: Any, covered: dict[int, Any]):
        self.is_inside, self.covered = is_inside, covered
        self.entries: dict[tuple[int, str, Any], tuple[Any, str, Any, Any, str]] = {}
        self.created: dict[int, Any] = {}         # by their ids, objects that the call created
        self.old: dict[int, Any] = {}             # and those that are known to be older
        self.dicts: dict[int, tuple[Any, Any]] = {}         # of attributes: each with its object
        self.must_be_new: dict[int, tuple[Any, str]] = {}   # objects, or else why not
        self.must_be_old: dict[int, tuple[Any, str]] = {}
        self.tensors: dict[int, Tensor] = {}      # from outside, that were read
        self.slots: dict[tuple[int, str, Any], Slot] = {}   # whose tensors replays may be given
        self.meet_in_slot: Any = None             # says whether they are, and gives them
        self.given: set[tuple[int, str, Any]] = set()       # those whose tensors they are given
        self.written: dict[tuple[int, str], int] = {}       # lines that wrote attributes, by the
                                                  # id of the dict of these
        self.hit: Any = None                      # what the call that runs finds in a cache
        self.hits: list[CacheHit] = []
        self.why = ""                             # why the capture has ended
        self.root: Any = None                     # the function that is captured
        self.at = 0                               # the line of it that is to blame
        self.of_frames = False                    # whether frames were looked at

    def fail(self, why: str) -> None:
        """Ends the capture: the first reason that is given is kept."""
        self.at = self.at or line_in(self.root)
        self.why = self.why or why

    def begin(self) -> None:
        """Starts before the function runs, with the garbage collector off."""
        gc.collect(1)
        self.old.update((id(x), x) for x in youngest())
        self.old.pop(id(self.old), None)

    def end(self) -> None:
        """Ends after the function has run."""
        self.new_objects = Youngest()
        new = (*self.created.values(), *(x for x, _ in self.must_be_new.values()))
        if any([may_run_on_release(x) for x in new if type(x) is GeneratorType]):
            self.fail("a generator has not come to its end, and what it does then is not known")

    def record(self, holder: Any, kind: str, key: Any, value: Any) -> None:
        """Adds an entry for what a read of a kind gave for a key of a holder, unless it has one or
        is created by the call."""
        place = id(holder), kind, key
        if place in self.entries or id(holder) in self.created:
            return
        if len(self.entries) > MAX_ENTRIES:
            self.fail(f"its code reads more than {MAX_ENTRIES} things, {user_line()}")
            return
        if type(holder) is dict and not gc.is_tracked(holder) and id(holder) not in self.dicts:
            self.old[id(holder)] = holder
        self.entries[place] = holder, kind, key, value, user_line()
        if self.slots and place in self.slots and id(holder) not in self.covered and (
                self.meet_in_slot(self.slots[place], value)):
            self.given.add(place)
            found = (value, *value) if type(value) is tuple else (value,)
            self.covered.update((id(x), x) for x in found)

    def add_entry(self, holder: Any, kind: str, key: Any, value: Any, line: str) -> None:
        """Adds an entry for an object that is older than the call, unless it has one."""
        self.entries.setdefault((id(holder), kind, key), (holder, kind, key, value, line))

    def found_in_cache(self, found: Any) -> None:
        """Records what a call found in the cache of its function."""
        hit, self.hit = self.hit, None
        hit.found = found
        self.hits.append(hit)
        self.record(hit.f, "value", (hit, None), found)

    def is_recorded(self, holder: Any, kind: str, key: Any = None) -> bool:
        """Whether a place has an entry, or needs none."""
        return (id(holder), kind, key) in self.entries or id(holder) in self.created

    def require_new(self, x: Any, why: str) -> None:
        """Records that an object whose state can't be compared must be one that the call creates.

        why: why the call is not replayed if the object is older.
        """
        if id(x) not in self.created and id(x) not in self.must_be_new:
            self.must_be_new[id(x)] = x, f"{why}, {user_line()}"

    def require_old(self, x: Any, why: str) -> None:
        """Records that an object must be one that is older than the call, which is not replayed
        else, for this reason."""
        self.must_be_old.setdefault(id(x), (x, f"{why}, {user_line()}"))

    def line_that_stored(self, x: Any, holder: Any) -> int:
        """The line that put an object into an attribute, of those in a dict; 0 for none."""
        found = holder.items() if type(holder) is dict else ()
        return next((self.written.get((id(holder), name), 0) for name, y in found if x is y), 0)

    def is_old(self, x: Any) -> bool:
        """Whether an object was there before the call. So may be all that the garbage collector
        does not track, unless a statement of the call created it."""
        if id(x) in self.old:
            return True
        if id(x) in self.created:
            return False
        if id(x) in self.dicts:
            return self.is_old(self.dicts[id(x)][1])
        if issubclass(type(x), Tensor):
            return not self.is_inside(x)
        if issubclass(type(x), type) and is_definition_of_library(x):      # which was imported
            return True
        return not gc.is_tracked(x) or x not in self.new_objects

    def guards(self, arguments: Sequence[Any]) -> list[Guard]:
        """The guards of what was read of objects from before the call.

        arguments: the tensors that are arguments. Raises: Unplanned for what has no guard.
        """
        argument_ids = {id(x) for x in arguments}
        dicts: dict[int, list[Any]] = {}
        owners: dict[int, Any] = {}
        lists: dict[int, list[Any]] = {}
        types: dict[int, list[Any]] = {}
        found: list[Guard] = []
        last: list[Guard] = []                 # which count that they are asked
        for holder, kind, key, value, line in (*self.entries.values(), *self.above_new_classes()):
            if not self.is_old(holder):
                continue
            if self.given and (id(holder), kind, key) in self.given:
                if self.slots[id(holder), kind, key].found() is not value:
                    raise Unplanned(f"it replaces a tensor that it has read, {line}")
                continue
            self.mark_old(holder, kind, value, argument_ids, line)
            if id(holder) in self.covered:
                if id(holder) in argument_ids:
                    refuse_attribute_of_argument(kind, key, line)
                elif kind == "value":
                    refuse_slot_of_argument(holder, key[1], line)
                continue
            if kind in ("attr", "attrs"):
                owner, holder = holder, vars_of(holder)
                if holder is vars_of(owner):             # it has a dict of its own
                    owners[id(holder)] = owner
                kind = "dict" if kind == "attrs" else "key"
            if kind in ("key", "dict"):
                add_to_group(dicts, holder, key, value, kind == "dict", line)
            elif kind in ("item", "list"):
                add_to_group(lists, holder, key, value, kind == "list", line)
            elif kind == "class":
                add_to_group(types, holder, key, value, False, line)
            elif kind == "cell":
                found.append(CellGuard(holder, value, line))
            elif kind == "function":
                found.append(FunctionGuard(holder, value, original_code, line))
            elif kind == "kind":
                found.append(KindGuard(holder, value, line))
            elif key[0] is layout_of and has_usual_layout(holder):
                found.append(LayoutGuard(holder, *key, value, line))
            else:
                (last if type(key[0]) is CacheHit else found).append(
                    ValueGuard(holder, key[0], key[1], value, line))
        for x, why in self.must_be_new.values():
            if self.is_old(x):
                raise Unplanned(why)
        for x, why in self.must_be_old.values():
            if not self.is_old(x):
                raise Unplanned(why)
        found += [DictGuard(*x, owners.get(key)) for key, x in dicts.items()]
        found += [ListGuard(*x) for x in lists.values()]
        found += [TypeGuard(holder, read, line) for holder, read, _, line in types.values()]
        return [*found, *last]

    def above_new_classes(self) -> list[Any]:
        """Entries of old classes for what was looked up in classes below them that the call
        created. Raises: Unplanned where such a class has changed since."""
        found: list[Any] = []
        for holder, kind, key, value, line in self.entries.values():
            if kind == "class" and not self.is_old(holder):
                look_up = in_class if key else lambda cls, _: names_in(cls)
                if key and in_class(holder, key) is not value:
                    raise Unplanned(f"{key} of a class that it makes is changed, {line}")
                found += [(cls, kind, key, look_up(cls, key), line) for cls in holder.__mro__[1:]
                          if is_written_in_python(cls) and self.is_old(cls)]
        return found

    def forget(self) -> None:
        """Releases all that was read."""
        for found in (self.entries, self.created, self.old, self.must_be_new, self.must_be_old,
                      self.covered, self.dicts, self.tensors):
            found.clear()

    def mark_old(self, holder: Any, kind: str, value: Any, argument_ids: set[int],
                 line: str) -> None:
        """Marks what was found in an old object as old, too. Raises: Unplanned for an argument that
        was read from outside as well, and for what has a finaliser."""
        if kind == "attrs":
            self.old[id(vars_of(holder))] = holder
        found = [value]                           # with what is in tuples, as members are
        for x in found:
            if type(x) is tuple or x is value and kind in WHOLE:
                found += x
            if id(type(x)) in ATOMS or x is MISSING or x is EMPTY or x is value and kind in WHOLE:
                continue
            if issubclass(type(x), Tensor) and id(x) not in argument_ids:
                self.tensors[id(x)] = x
            refuse_finalised(x, line)
            if id(holder) not in self.covered:
                if id(x) in argument_ids:
                    raise Unplanned("a tensor is an argument, and is read from outside as well, "
                                    f"{line}")
                if id(x) in self.covered and id(x) not in self.old:
                    raise Unplanned(f"a {type(x).__name__} is an argument, and is read from "
                                    f"outside as well, {line}")
            self.old[id(x)] = x


def refuse_finalised(x: Any, line: str) -> None:
    """Raises: Unplanned for an object that has a finaliser, which a guard of it would delay."""
    if in_class(type(x), "__del__") is not MISSING:
        raise Unplanned(f"a {type(x).__qualname__} would be kept alive, whose class has a "
                        f"__del__, {line}")


def line_in(f: Any) -> int:
    """The line that a function is at, in the outermost call of it; 0 if it does not run."""
    frame: Any = sys._getframe(2)
    found = 0
    code = getattr(f, "__code__", None)
    while frame is not None:
        if frame.f_code is code:
            found = frame.f_lineno
        frame = frame.f_back
    return found


def may_run_on_release(x: Any) -> bool:
    """Whether the release of a generator may run code of the user's."""
    return x.gi_frame is not None and (
        x.gi_code.co_name != "<genexpr>" and not is_trusted(x.gi_code.co_filename))


def refuse_attribute_of_argument(kind: str, key: Any, line: str) -> None:
    """Raises: Unplanned for an attribute of an argument that no signature compares."""
    name = key[1] if kind == "value" else key
    if name is not None and name not in OF_SIGNATURES:
        raise Unplanned(f"{name} of an argument is read, {line}; pass it as an argument")


def refuse_slot_of_argument(x: Any, name: Any, line: str) -> None:
    """Raises: Unplanned for a slot of an argument that no signature compares."""
    if type(name) is str and type(in_class(type(x), name)) is MemberDescriptorType and (
            name not in (fields_of(x) or ())):
        raise Unplanned(f"{name} of an argument is read, {line}; pass it as an argument")


def add_to_group(found: dict[int, list[Any]], holder: Any, key: Any, value: Any, is_whole: bool,
                 line: str) -> None:
    """Adds what was read of a container to the group of all that was read of it."""
    each = found.setdefault(id(holder), [holder, {}, None, line])
    if is_whole:
        each[2] = value
    else:
        each[1][key] = value


def has_usual_layout(x: Any) -> bool:
    """Whether `layout_of` reads of a tensor what the class Tensor says, and no subclass."""
    return isinstance(x, Tensor) and all(
        in_class(type(x), name) is in_class(Tensor, name)
        for name in ("shape", "stride", "dtype", "requires_grad", "is_leaf"))


def vars_of(x: Any) -> dict[str, Any]:
    """The dict of an object's attributes, whatever the object says of itself; {} for none."""
    try:
        found: dict[str, Any] = object.__getattribute__(x, "__dict__")
        return found
    except AttributeError:
        return {}
