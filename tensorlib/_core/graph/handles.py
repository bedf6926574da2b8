"""Handles of hooks, the metadata of nodes, and the tensors that an object of the user's holds."""

from functools import partial
from itertools import count, islice
from types import FunctionType, MethodType, ModuleType

from tensorlib._core.tensor.tensor import Tensor

LOOKED_INTO = 1000       # objects, at most
numbers = count()        # of handles that a program made by itself
PLAIN = frozenset((int, float, bool, str, bytes, type(None)))


def contents(cell):
    """The content of a closure's cell as a tuple, which is empty for an empty cell."""
    try:
        return (cell.cell_contents,)
    except ValueError:
        return ()


def parts_of(thing):
    """The members of an object of common kinds (functions, containers, instances)."""
    if isinstance(thing, (list, tuple, set, frozenset)):
        return tuple(islice(thing, LOOKED_INTO))     # `__len__` may be wrong
    if isinstance(thing, dict):
        return tuple(thing.values())
    if isinstance(thing, (type, ModuleType)):
        return ()
    if isinstance(thing, FunctionType):
        cells = [part for cell in thing.__closure__ or () for part in contents(cell)]
        return (*cells, *(thing.__defaults__ or ()), *(thing.__kwdefaults__ or {}).values())
    if isinstance(thing, MethodType):
        return thing.__self__, thing.__func__
    if isinstance(thing, partial):
        return thing.func, *thing.args, *thing.keywords.values()
    return tuple(vars(thing).values()) if type(thing).__dictoffset__ else ()


def tensors_and_nodes(held, node_type):
    """The tensors and nodes in an object: in its closure, its attributes, its items and theirs."""
    stack, seen, found = [held], {}, []
    while stack and len(seen) < LOOKED_INTO:
        thing = stack.pop()
        if type(thing) in PLAIN or id(thing) in seen:
            continue
        seen[id(thing)] = thing
        if isinstance(thing, (Tensor, node_type)):
            found.append(thing)
        if type(thing) is not Tensor and not isinstance(thing, node_type):
            stack.extend(parts_of(thing))
    return found


class Notes(dict):
    """The metadata dict of a node, which calls `track` with each value that is stored."""

    def __init__(self, notes, track):
        super().__init__(notes)
        self.track = track

    def __setitem__(self, key, value):
        self.track(value)
        super().__setitem__(key, value)

    def setdefault(self, key, default=None):
        self.track(default)
        return super().setdefault(key, default)

    def update(self, *args, **kwargs):
        notes = dict(*args, **kwargs)
        self.track(notes)
        super().update(notes)


class RemovableHandle:
    """What registering a hook returns; `remove()` takes the hook off again.

    A program with hooks of its own puts them into `hooks_dict` under the handle's `id`, and into
    `extra_dict`, one dict or a list of them, what else goes with them.
    """

    def __init__(self, hooks_dict, key=None, *, extra_dict=None):
        self.hooks = hooks_dict
        self.key = next(numbers) if key is None else key
        self.id = self.key if isinstance(self.key, int) else next(numbers)
        self.others = [extra_dict] if isinstance(extra_dict, dict) else extra_dict or ()

    def remove(self):
        """Removes the hook. Doing so twice is not an error."""
        for hooks in (self.hooks, *self.others):
            hooks.pop(self.key, None)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.remove()
