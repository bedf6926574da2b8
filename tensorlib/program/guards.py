"""Guards of a captured function: what it reads by name, a change of which has it captured anew.

The names are read from the code of the function, of the functions that it names, of methods, and of
the `forward` of modules (reads.py). What they stand for in closures, in globals, in attributes of
objects, in dicts and in lists is guarded: numbers, objects, and tensors that the program reads.
"""

import sys
from functools import lru_cache, partial
from operator import is_
from types import FunctionType, MethodType, ModuleType
from typing import Any

from tensorlib._core.graph import owners
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.program.dispatch import Dispatcher
from tensorlib.program.call_forms import HOME
from tensorlib.program.plan import Unplanned
from tensorlib.program.reads import Chain, functions_of, reads_of
from tensorlib.program.guarded import DictGuard, Guards

MEMBERS = ("_parameters", "_buffers", "_modules")
ALWAYS = {"training", "_hooks", "_compiled_call", *MEMBERS}      # what each call of a module reads
LARGEST = 256                # elements of a list that is guarded
MOST = 10_000                # things that are visited, beside modules


class Search:
    """The functions and objects that are found from a function and its arguments, and what the code
    reads of them. Made before the function runs.

    others: the arguments that are no tensors and no containers; a signature compares those itself.
    earlier: what was in cells, lists and objects then, by their id. What the function changes as it
    runs, such as a count of its calls, has no guard: a replay does not change it.
    """

    def __init__(self, f: Any, args: tuple[Any, ...], others: list[Any]):
        self.ran: set[int] = set()
        self.tensors: set[int] = set()
        self.seen: set[tuple[Any, ...]] = set()
        self.left = MOST
        self.cells: list[Any] = []
        self.objects: dict[int, tuple[Any, set[str]]] = {}      # with the names that are read
        self.lists: list[list[Any]] = []
        self.anywhere: set[str] = set()
        is_object = bool(args) and any(args[0] is x for x in others)
        self.run(f, args[0] if is_object else () if args else None)
        for x in others:
            self.see(x, ())
        self.follow()
        self.earlier: dict[int, Any] = {
            **{id(cell): content_of(cell) for cell in self.cells},
            **{id(x): tuple(x) for x in self.lists},
            **{id(x): dict(parts_of(x)) for x, _ in self.objects.values()}}

    def guards(self, ran: list[tuple[Any, bool]], tensors: list[Tensor]) -> Guards | None:
        """The guards, after the function ran; None for nothing.

        ran: the modules that ran, with `training` by then. tensors: those that the program reads.
        No other tensor has a guard. Raises: Unplanned for a module that is set to another mode, and
        for more than can be guarded.
        """
        modules = [x for x, _ in ran]
        self.ran = {id(x) for x in modules}
        self.tensors = {id(x) for x in tensors}
        for x, training in ran:
            self.see(x, ())
            earlier = self.earlier.setdefault(id(x), {**vars(x), "training": training})
            if x.training is not earlier["training"]:
                raise Unplanned(f"it sets {type(x).__name__} to another mode")
        self.follow()
        if self.left < 0:
            raise Unplanned(f"its code reads more than {MOST} things by name")
        hooks = [vars(vars(x)["_hooks"]) for x in modules if vars(x).get("_hooks") is not None]
        if modules:
            hooks.append(vars(owners.modules.hooks_of_all))
        cells = [cell for cell in self.cells if self.matters(content_of(cell))
                 and content_of(cell) is self.earlier.get(id(cell), content_of(cell))]
        lists = [x for x in self.lists if all(
            map(is_, x, self.earlier.get(id(x), x))) and len(x) == len(self.earlier.get(id(x), x))]
        found = cells, self.dict_guards(), lists, hooks
        return Guards(*found) if any(found) else None

    def run(self, f: Any, owner: Any = None) -> None:
        """Looks at what a function reads. owner: its first argument, if that is known."""
        if isinstance(f, MethodType):
            self.run(f.__func__, f.__self__)
        elif isinstance(f, partial):
            for part in (f.func, *f.args, *f.keywords.values()):
                self.see(part, ())
        elif isinstance(f, Dispatcher):
            self.run(f._f, owner)
        elif not isinstance(f, FunctionType):
            self.see(f, ())
        elif self.is_new(f, id(owner), whose=owner) and not is_foreign(f.__code__.co_filename):
            reads = reads_of(f.__code__)
            self.anywhere |= reads.anywhere
            for chain in reads.globals:
                self.see(f.__globals__, chain)
            self.see_cells(f, reads.cells)
            for chain in reads.own if owner is not None else ():
                self.see(owner, chain)
            if owner is None:
                self.anywhere.update(name for chain in reads.own for name in chain)

    def see_cells(self, f: FunctionType, chains: set[Chain]) -> None:
        """Looks at what a function reads of its closure."""
        by_name = dict(zip(f.__code__.co_freevars, f.__closure__ or ()))
        for name, *rest in chains:
            cell = by_name[name]
            content = content_of(cell)
            if self.is_new(cell):
                self.cells.append(cell)
            self.see(content, tuple(rest))

    def see(self, x: Any, chain: Chain) -> None:
        """Looks at something that was found, and at what the chain leads to from there."""
        if not self.is_new(x, chain, whose=x) or issubclass(type(x), (Tensor, type)):
            return
        if issubclass(type(x), (FunctionType, MethodType, partial, Dispatcher)):
            self.run(x)
        elif type(x) in (list, tuple) and len(x) <= LARGEST:
            if type(x) is list and self.is_new(x):
                self.lists.append(x)
            for part in x:
                self.see(part, ())
        elif is_looked_into(x):
            _, names = self.objects.setdefault(id(x), (x, set()))
            for part in vars(x)["_modules"].values() if is_module(x) else ():
                self.see(part, ())
            own = functions_of(type(x))
            for name in ("forward", "__call__"):
                if name in own:
                    self.run(own[name], x)
            if chain:
                names.add(chain[0])
                self.see(parts_of(x).get(chain[0]), chain[1:])
                if chain[0] in own:
                    self.run(own[chain[0]], x)

    def is_new(self, *what: Any, whose: Any = None) -> bool:
        """Whether this was not visited before, and fewer than `MOST` were. The first is an object.

        whose: what it belongs to. What belongs to modules does not count.
        """
        key = id(what[0]), *what[1:]
        if key in self.seen:
            return False
        if not is_module(whose):
            self.left -= 1
        self.seen.add(key)
        return self.left >= 0

    def follow(self) -> None:
        """Adds the names in `anywhere`, which are read of unknown objects, of all objects found,
        until nothing is added any more."""
        size = None
        while size != (size := (len(self.objects), len(self.anywhere))):
            for x, _ in list(self.objects.values()):
                if not is_globals(x):
                    for name in (parts_of(x).keys() | functions_of(type(x)).keys()) & self.anywhere:
                        self.see(x, (name,))

    def dict_guards(self) -> list[DictGuard]:
        """The guards of the objects found: a dict each, with the names that are read of it."""
        found = []
        for x, names in self.objects.values():
            inside = parts_of(x)
            read = names & inside.keys()
            if is_module(x):
                read = self.read_of_module(x, read)
            earlier = self.earlier.get(id(x), inside)
            read = {name for name in read if self.matters(inside.get(name))
                    and inside.get(name) is earlier.get(name)}
            if read:
                found.append(DictGuard(inside, read))
            if id(x) in self.ran and inside["_modules"]:
                # a container runs those too that come later
                found.append(DictGuard(inside["_modules"], inside["_modules"], whole=True))
        return found

    def read_of_module(self, x: Any, names: set[str]) -> set[str]:
        """The names that a call of a module reads; `names` and `training` if it did not run."""
        if id(x) not in self.ran:
            return names | {"training"}
        inside = vars(x)
        members = [name for kind in MEMBERS for name in inside[kind]]
        return {*names, *members, *names_of_library(type(x)) & inside.keys(), *ALWAYS}

    def matters(self, x: Any) -> bool:
        """Whether a value needs a guard: all but tensors that the program does not read."""
        return not issubclass(type(x), Tensor) or id(x) in self.tensors


def parts_of(x: Any) -> dict[str, Any]:
    """What an object has by name."""
    return x if type(x) is dict else vars(x)


def content_of(cell: Any) -> Any:
    """What is in a cell of a closure; None where there is nothing yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def is_globals(x: Any) -> bool:
    """Whether a dict is that of a module's globals, or an object is a module of Python."""
    return isinstance(x, ModuleType) or type(x) is dict and "__builtins__" in x


def is_module(x: Any) -> bool:
    """Whether an object is a module of `nn`."""
    return issubclass(type(x), owners.modules.base) and vars(x).keys() >= set(MEMBERS)


def is_looked_into(x: Any) -> bool:
    """Whether an object is a dict, a module of `nn`, an optimiser, or of the user's making, and one
    that can be looked into."""
    try:
        hash(type(x))
        return type(x) is dict or is_module(x) or is_optimizer(x) or is_of_user(x)
    except Exception:                    # of code of the user's, which an attribute may run
        return False


def is_optimizer(x: Any) -> bool:
    """Whether an object is an optimiser."""
    return isinstance(x, owners.optimizers.base)


def is_of_user(x: Any) -> bool:
    """Whether an object has attributes, and is of the user's making."""
    if isinstance(x, ModuleType):
        return not is_foreign(getattr(x, "__file__", None) or HOME)
    home = sys.modules.get(type(x).__module__)
    return isinstance(getattr(x, "__dict__", None), dict) and home is not None and not is_foreign(
        getattr(home, "__file__", None) or ("" if home.__name__ == "__main__" else HOME))


@lru_cache(1024)
def is_foreign(path: str) -> bool:
    """Whether a file is of this library, of Python's or of one that was installed."""
    return path.startswith((HOME, "<frozen", sys.base_prefix + "/lib/python")) or (
        "site-packages" in path)


@lru_cache(1024)
def names_of_library(kind: type) -> frozenset[str]:
    """The attributes that those methods of a class read which are the library's own."""
    found: set[str] = set()
    for f in functions_of(kind).values():
        if f.__code__.co_filename.startswith(HOME):
            reads = reads_of(f.__code__)
            found |= {chain[0] for chain in reads.own if chain} | reads.anywhere
    return frozenset(found)
