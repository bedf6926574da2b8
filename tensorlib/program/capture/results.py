"""Results of a captured function other than tensors: a replay returns the same objects, or makes
new ones."""

from collections.abc import Iterable, Set
from enum import Enum
from itertools import combinations
from types import BuiltinFunctionType, EllipsisType, FunctionType, NoneType
from typing import Any

import numpy as np

from tensorlib._core.base.device import device
from tensorlib._core.base.dtypes import dtype
from tensorlib._core.base.formats import Format
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.program.capture.returned import CONTAINERS, keys_and_items, parts_of, plain_objects
from tensorlib.program.guards.guarded import is_written_in_python
from tensorlib.program.guards.signatures import is_borrowed, storage_of
from tensorlib.program.guards.values import MISSING, fields_of, in_class, is_mutable_value
from tensorlib.program.run.arena import do_meet
from tensorlib.program.run.plan import Unplanned

# Immutable types, whose instances each replay may return.
KEYS = (int, float, complex, str, bytes, tuple, Enum, type, dtype, device, NoneType)
CONSTANTS = (int, float, complex, str, bytes, range, slice, Enum, type, dtype, device, Format,
             np.generic, BuiltinFunctionType, EllipsisType, NoneType, Tensor)


def objects_made(result: Any, arguments: Any, reads: Any) -> set[int]:
    """The ids of the plain objects in a result that the call made, of classes from before the call:
    each replay makes new ones."""
    given = set(map(id, things_in(arguments)))
    return plain_objects(result, lambda x: id(x) not in given and (
        not reads.is_old(x) and reads.is_old(type(x))))


def refuse_to_return(result: Any, arguments: Any, objects: Set[int]) -> None:
    """Raises: Unplanned unless a result consists of tensors, numbers and the like, plain containers
    of these, arguments, and objects that replays make anew, whose ids are in `objects`.

    A generator can run only once, and the caller may change a list or an object, or compare it
    with an argument by identity.
    """
    given = things_in(arguments)
    alike = {id(x) for x in given if issubclass(type(x), (list, dict)) or is_mutable_value(x)
             or fields_of(x) is not None}
    others = {id(x) for x in given} - alike | set(objects)
    for x in things_in(result, objects):
        if id(x) in alike:                      # of which others are as good, as arguments
            raise Unplanned(f"it returns a {type(x).__name__} that is an argument")
        if id(x) not in others and not is_constant(x):
            raise Unplanned(f"it returns a {type(x).__name__}, which a replay can't make anew")
        for key in keys_and_items(x)[0]:
            if not all(issubclass(type(y), KEYS) for y in things_in(key)):
                raise Unplanned(f"it returns a dict with a {type(key).__name__} among its keys, "
                                "which a replay can't make anew")


def is_constant(x: Any) -> bool:
    """Whether replays can return a result: it is a plain container, or immutable."""
    kind = type(x)
    if kind is slice:
        return all(is_constant(y) and not issubclass(type(y), Tensor)
                   for y in (x.start, x.stop, x.step))
    if issubclass(kind, (dict, list)):
        return kind is dict or kind is list
    if issubclass(kind, tuple):
        return not fields_of(x)
    return issubclass(kind, CONSTANTS) or kind is FunctionType and x.__closure__ is None


def things_in(value: Any, objects: Set[int] = frozenset()) -> list[Any]:
    """A value and, if it is a container or one of these objects, everything nested in it; each
    object is entered once."""
    found, inside = [value], set()
    for x in found:
        if (id(x) in objects or issubclass(type(x), CONTAINERS)) and id(x) not in inside:
            inside.add(id(x))
            found += parts_of(x, id(x) in objects)
    return found


def refuse_by_age(result: Any, reads: Any, objects: Set[int]) -> None:
    """Raises: Unplanned for a list or a dict in a result that was there before the call, for which
    a replay would give another one; and for what may be given attributes and was not, of which a
    replay would give the same one again."""
    for x in things_in(result, objects):
        kind = type(x)
        if id(x) in objects:
            continue
        if issubclass(kind, (list, dict)):
            if reads.is_old(x):
                raise Unplanned(f"it returns a {kind.__name__} that was there before")
        elif not issubclass(kind, Tensor) and has_attributes(x) and not reads.is_old(x):
            raise Unplanned(f"it returns a {kind.__name__} that it makes, of which each call makes "
                            "another")


def refuse_borrowed(leaves: list[Any], constants: Iterable[Tensor]) -> None:
    """Raises: Unplanned if a result lies in the memory of an object of another library, as what
    `from_numpy` gives: a replay would make a copy. constants: what the call made."""
    places = {storage_of(x) for x in constants if is_borrowed(x)}
    if places and any(issubclass(type(x), Tensor) and storage_of(x) in places
                      for x in leaves):
        raise Unplanned("it returns a tensor that lies in the memory of an array")


def has_attributes(x: Any) -> bool:
    """Whether an object is mutable, so that its identity matters."""
    return issubclass(type(x), (type, FunctionType, BuiltinFunctionType)) or (
        in_class(type(x), "__dict__") is not MISSING) or (
        not issubclass(type(x), tuple) and is_written_in_python(type(x)))     # which has slots


def refuse_views(result: Any, given: list[Tensor]) -> None:
    """Raises: Unplanned if a part of a split function returns a view, with a gradient, of an
    argument or another result: the next part may write to it, which is not possible for results of
    replays."""
    places = {storage_of(x) for x in given}
    found = {id(x): x for x in things_in(result) if issubclass(type(x), Tensor) and x.requires_grad
             and not any(x is y for y in given)}
    if any(storage_of(x) in places for x in found.values()) or any(
            storage_of(x) == storage_of(y) and do_meet(x, y)
            for x, y in combinations(found.values(), 2)):
        raise Unplanned("a part gives a view, which has a gradient, of what it is given or gives")
