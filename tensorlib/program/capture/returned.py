"""The result of a captured function as leaves and a structure that rebuilds it from other leaves.

A replay runs no user code to make an object of a class written in Python: a new object gets the
items, attributes and slots of that of the captured call, as by `copy.copy`.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Set
from types import MemberDescriptorType, SimpleNamespace
from typing import Any, NamedTuple

from tensorlib._core.graph import owners
from tensorlib.autograd.tree import Structure, flatten
from tensorlib.program.guards.guarded import is_written_in_python
from tensorlib.program.guards.values import MISSING, in_class, items_of, members_of
from tensorlib.program.reads.known import base_of, is_foreign, is_of_library
from tensorlib.program.reads.read_log import vars_of
from tensorlib.program.run.plan import Unplanned

BASES = object, OrderedDict, dict, list, SimpleNamespace     # of classes of such objects
CONTAINERS = dict, list, tuple


def is_plain_object(x: Any) -> bool:
    """Whether an object consists only of its items, if it is a dict or list, and its attributes."""
    kind = type(x)
    if kind is OrderedDict or kind is SimpleNamespace:
        return True
    return (is_written_in_python(kind) and not is_of_library(kind) and base_of(kind) in BASES
            and in_class(kind, "__del__") is MISSING
            and not issubclass(kind, (owners.modules.base, owners.optimizers.base)))


def slots_of(x: Any) -> dict[MemberDescriptorType, Any]:
    """The values of the slots of an object, by their descriptors."""
    found = {}
    for cls in type(x).__mro__:
        for slot in () if is_foreign(cls) else vars(cls).values():
            if type(slot) is MemberDescriptorType:
                try:
                    found[slot] = slot.__get__(x, type(x))
                except AttributeError:
                    pass
    return found


def keys_and_items(x: Any) -> tuple[tuple[Any, ...], list[Any]]:
    """The keys of a dict and its values; of another container no keys, and its items."""
    if issubclass(type(x), dict):
        items = items_of(x)
        return tuple(items), list(items.values())
    return (), list(members_of(x)) if issubclass(type(x), CONTAINERS) else []


def parts_of(x: Any, is_object: bool) -> list[Any]:
    """The items of a container; of an object also its attributes and slots."""
    found = keys_and_items(x)[1]
    return [*found, *vars_of(x).values(), *slots_of(x).values()] if is_object else found


def plain_objects(result: Any, wanted: Callable[[Any], bool] = lambda x: True) -> set[int]:
    """The ids of the wanted plain objects in a result, at any depth."""
    found, seen, waiting = set(), set(), [result]
    while waiting:
        x = waiting.pop()
        if id(x) in seen:
            continue
        seen.add(id(x))
        is_object = is_plain_object(x) and wanted(x)
        if is_object:
            found.add(id(x))
        if is_object or issubclass(type(x), CONTAINERS):
            waiting += parts_of(x, is_object)
    return found


class Recipe(NamedTuple):
    """How a container or an object is rebuilt: its parts are recipes, too.

    number: by which other recipes refer to the same object.
    """

    kind: type
    number: int
    keys: tuple[Any, ...]
    items: list[Any]
    attributes: dict[str, Any]
    slots: dict[MemberDescriptorType, Any]

    def made(self, leaves: Iterator[Any], others: dict[int, Any]) -> Any:
        """The rebuilt object, with the next leaves. others: objects rebuilt before, by number."""
        items = [made(x, leaves, others) for x in self.items]
        kind = self.kind
        if issubclass(kind, tuple):
            found = tuple.__new__(kind, items)
        else:
            base: Any = base_of(kind)
            found = base.__new__(kind)
            if issubclass(kind, dict):
                for key, item in zip(self.keys, items):
                    base.__setitem__(found, key, item)
            elif issubclass(kind, list):
                list.extend(found, items)
            for name, part in self.attributes.items():
                vars_of(found)[name] = made(part, leaves, others)
            for slot, part in self.slots.items():
                slot.__set__(found, made(part, leaves, others))
        others[self.number] = found
        return found


def made(recipe: Any, leaves: Iterator[Any], others: dict[int, Any]) -> Any:
    """The object of a recipe, or of the number of an earlier one; for None the next leaf."""
    if recipe is None:
        return next(leaves)
    return others[recipe] if type(recipe) is int else recipe.made(leaves, others)


class RebuiltStructure(Structure):
    """The structure of a result that contains objects."""

    def __init__(self, recipe: Recipe, count: int):
        super().__init__(RebuiltStructure)
        self.recipe, self.count = recipe, count

    def build(self, leaves: list[Any]) -> Any:
        """The result with these leaves."""
        return self.recipe.made(iter(leaves), {})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RebuiltStructure) and self.recipe == other.recipe

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return str(self.recipe)


def flatten_result(result: Any, objects: Set[int]) -> tuple[list[Any], Structure]:
    """The leaves of a result in order, and its structure.

    objects: the ids of objects that are rebuilt, and so are no leaves.
    Raises: Unplanned for a result that contains itself.
    """
    flattener = Flattener(objects)
    recipe = flattener.recipe_of(result)
    if not flattener.needed:
        return flatten(result)
    return flattener.leaves, RebuiltStructure(recipe, len(flattener.leaves))


class Flattener:
    """Flattens a result, preserving the identity of objects that occur several times."""

    def __init__(self, objects: Set[int]):
        self.objects = objects
        self.leaves: list[Any] = []
        self.needed = False                       # whether there is an object, or a repeated one
        self.numbers: dict[int, int] = {}         # of flattened objects, by id
        self.around: set[int] = set()             # the ids of objects being flattened

    def recipe_of(self, x: Any) -> Any:
        """The recipe of a value; None for a leaf."""
        kind = type(x)
        is_object = id(x) in self.objects
        if not is_object and not issubclass(kind, CONTAINERS):
            self.leaves.append(x)
            return None
        if id(x) in self.around:
            raise Unplanned(f"it returns a {kind.__name__} that contains itself")
        if id(x) in self.numbers:
            self.needed |= issubclass(kind, (dict, list))
            return self.numbers[id(x)]
        number = self.numbers[id(x)] = len(self.numbers)
        self.needed |= is_object or issubclass(kind, tuple) and kind is not tuple
        self.around.add(id(x))
        keys, items = keys_and_items(x)
        found = Recipe(
            kind, number, keys, [self.recipe_of(y) for y in items],
            {name: self.recipe_of(y) for name, y in vars_of(x).items()} if is_object else {},
            {slot: self.recipe_of(y) for slot, y in slots_of(x).items()} if is_object else {})
        self.around.remove(id(x))
        return found
