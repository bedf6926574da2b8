"""The local variables of a function: which statements read them, bind them, and may be moved."""

import ast
from collections.abc import Iterator
from types import CodeType, ModuleType
from typing import Any

from tensorlib.program.reads.known import is_of_library
from tensorlib.program.reads.scopes import (
    FUNCTIONS,
    NEW_SCOPES,
    Scope,
    arguments,
    bound_by,
    parts_inside,
    within,
)

# What looks at the frame that calls it.
OF_FRAMES = {"locals", "vars", "dir", "eval", "exec", "super", "__class__"}
OF_FRAME_MODULES = {"_getframe", "currentframe", "stack"}
# What finds the variables of the frame that calls it, unless it is given so many arguments.
OF_VARIABLES = {"locals": 1, "vars": 1, "dir": 1, "eval": 2, "exec": 2}
LEAVING = (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith, ast.Global,
           ast.Nonlocal, ast.Delete, ast.Import, ast.ImportFrom)


class Unfit(Exception):
    """A function can't be taken apart."""


class Names:
    """The variables of a function. local: its own; free: those of functions around it.

    others: those that are free, or declared as globals. parameters: those that have a value from
    the start. around: what names stand for that are none of these. Raises: Unfit.
    """

    def __init__(self, node: Any, code: CodeType):
        self.node = node
        self.around: dict[str, Any] = {}
        if isinstance(node, ast.AsyncFunctionDef) or code.co_flags & 0x2A0:     # generators
            raise Unfit("it is a generator")
        scope = Scope(node, None)
        self.parameters = {x.arg for x in arguments(node.args)}
        self.local, self.free = scope.bound, list(code.co_freevars)
        self.others = {*self.free, *(name for x in ast.walk(node) if isinstance(x, ast.Global)
                                     for name in x.names)}
        for x in ast.walk(node):
            if isinstance(x, (ast.Delete, ast.Nonlocal)):
                raise Unfit("it unbinds variables, or binds those of others")
        if self.looks_at_variables():
            raise Unfit("it looks at all of its variables, of which a part has some")
        self.uses = list(uses_of(node.body))
        self.order = order_of(node.body)
        counts: dict[str, int] = dict.fromkeys(self.parameters, 1)
        for statement in node.body:
            for name in stores_of(statement):
                counts[name] = counts.get(name, 0) + 1
        self.counts = counts
        self.handled = {x.name for x in ast.walk(node) if isinstance(x, ast.ExceptHandler)} - {None}
        if any(counts.get(name, 0) > 1 for name in self.handled):
            raise Unfit("it binds a variable that an exception is bound to, too")
        for statement in node.body:
            for x in within(statement):
                if isinstance(x, (ast.For, ast.While)):          # which bind what they do again
                    for name in stores_of(x):
                        counts[name] += 1
        self.keepers = [(x, kept_by(x) & self.local) for statement in node.body
                        for x in ast.walk(statement)
                        if isinstance(x, (*FUNCTIONS, ast.GeneratorExp, ast.ClassDef))]

    def looks_at_variables(self) -> bool:
        """Whether the function finds its variables in another way than by their names."""
        looking = OF_VARIABLES.keys() - self.local
        given = {id(x.func) for x in ast.walk(self.node) if isinstance(x, ast.Call)
                 and isinstance(x.func, ast.Name) and x.func.id in looking
                 and sum(not isinstance(y, ast.Starred) for y in x.args) >= (
                     OF_VARIABLES[x.func.id])}
        return any(isinstance(x, ast.Name) and x.id in looking and id(x) not in given
                   for x in ast.walk(self.node))

    def refuses(self, body: list[Any], returns: bool = False) -> bool:
        """Whether statements can be no part. returns: they are the end of the function."""
        return any(map(self.leaves, body)) or any(
            leaves_by(x, returns, False) for x in body)

    def leaves(self, statement: ast.stmt) -> bool:
        """Whether a statement looks at its frame, or does what only the function itself can."""
        for x in ast.walk(statement):
            if isinstance(x, LEAVING) or isinstance(x, ast.Name) and x.id in OF_FRAMES or (
                    isinstance(x, ast.Attribute) and x.attr in OF_FRAME_MODULES
                    and not is_of_library(named(x, self.around))) or (
                    isinstance(x, ast.keyword) and x.arg == "stacklevel"):
                return True
            if isinstance(x, ast.Name) and not isinstance(x.ctx, ast.Load) and (
                    x.id in self.others):
                return True
        return False

    def read_after(self, body: list[Any], loops: tuple[Any, ...]) -> set[str]:
        """The variables that are read after statements have run."""
        found = set(exposed(body)) if loops else set()
        for x, _ in self.uses:
            if self.is_behind(x, body) or loops and self.is_before(x, body) and (
                    not self.is_before(x, [loops[0]])):
                found.add(x.id)
        return found & self.local

    def uses_outside(self, name: str, body: list[Any]) -> Iterator[tuple[ast.Name, list[ast.AST]]]:
        """The uses of a variable in other statements, with what is around each."""
        for x, around in self.uses:
            if x.id == name and (self.is_before(x, body) or self.is_behind(x, body)):
                yield x, around

    def is_before(self, x: ast.AST, body: list[Any]) -> bool:
        """Whether a node stands before statements."""
        return self.order[id(x)][0] < self.order[id(body[0])][0]

    def is_behind(self, x: ast.AST, body: list[Any]) -> bool:
        """Whether a node stands behind statements."""
        return self.order[id(x)][0] >= self.order[id(body[-1])][1]

    def may_be_set_elsewhere(self, body: list[Any]) -> bool:
        """Whether a variable has to be the very one of this function: a function in statements has
        one that is bound more than once, or one elsewhere has what they bind."""
        bound = set().union(*map(stores_of, body))
        for x, names in self.keepers:
            if self.is_before(x, body) or self.is_behind(x, body):
                if names & bound:
                    return True
            elif any(self.counts.get(name, 0) > 1 for name in names):
                return True
        return False


def order_of(body: list[Any]) -> dict[int, tuple[int, int]]:
    """By its id the number of each node in statements, as they are written, and that of what comes
    after it. Lines and columns would not tell: a line may have several statements, and parts of
    formatted strings have places of their own."""
    found: dict[int, tuple[int, int]] = {}
    count = 0
    waiting: list[tuple[ast.AST, bool]] = [(x, False) for x in reversed(body)]
    while waiting:
        x, ends = waiting.pop()
        if ends:
            found[id(x)] = found[id(x)][0], count
            continue
        found[id(x)] = count, count
        count += 1
        waiting += [(x, True), *((y, False) for y in reversed([*ast.iter_child_nodes(x)]))]
    return found


def uses_of(body: list[Any]) -> Iterator[tuple[ast.Name, list[ast.AST]]]:
    """The names that are read in statements, each with the nodes around it."""
    waiting: list[tuple[Any, list[ast.AST]]] = [(x, []) for x in body]
    while waiting:
        x, around = waiting.pop()
        if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Load):
            yield x, around
        elif isinstance(x, ast.AugAssign) and isinstance(x.target, ast.Name):
            yield x.target, [*around, x]
        waiting += [(y, [*around, x]) for y in ast.iter_child_nodes(x)]


def leaves_by(x: Any, returns: bool, in_loop: bool) -> bool:
    """Whether a statement may end what it stands in: the function, or a loop around it."""
    if isinstance(x, ast.Return):
        return not returns
    if isinstance(x, (ast.Break, ast.Continue)):
        return not in_loop
    if isinstance(x, (*FUNCTIONS, ast.ClassDef)):
        return False
    loops = in_loop or isinstance(x, (ast.For, ast.While))
    return any(leaves_by(y, returns, loops and y not in getattr(x, "orelse", ()) or in_loop)
               for y in ast.iter_child_nodes(x) if isinstance(
                   y, (ast.stmt, ast.ExceptHandler, ast.match_case)))


def kept_by(node: Any) -> set[str]:
    """The names of scopes around that a function reads whenever it runs."""
    inner = Scope(node, None)
    return {name for x in parts_inside(node) for name in reads_of(x) if name not in inner.bound}


def reads_of(node: Any) -> Iterator[str]:
    """The names of the scope around that a node reads."""
    for x in within(node):
        if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Load):
            yield x.id
        elif isinstance(x, NEW_SCOPES):
            inner = Scope(x, None)
            for y in parts_inside(x):
                yield from (name for name in reads_of(y) if name not in inner.bound)
        elif isinstance(x, ast.AugAssign) and isinstance(x.target, ast.Name):
            yield x.target.id


def stores_of(node: Any) -> Iterator[str]:
    """The names of the scope around that a node may bind, each as often as it does."""
    return filter(None, map(bound_by, within(node)))


def names_in(target: Any) -> set[str]:
    """The names that are bound in what is assigned to."""
    return {x.id for x in ast.walk(target)
            if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store)}


def assigned(x: Any) -> set[str]:
    """The names that a statement binds whenever it comes to its end."""
    if isinstance(x, ast.Assign):
        return set().union(*map(names_in, x.targets))
    if isinstance(x, ast.AugAssign) or isinstance(x, ast.AnnAssign) and x.value is not None:
        return names_in(x.target)
    if isinstance(x, (ast.FunctionDef, ast.ClassDef)):
        return {x.name}
    if isinstance(x, ast.If):
        both = [set().union(*map(assigned, body)) for body in (x.body, x.orelse)]
        return both[0] & both[1]
    return set()


def exposed(body: list[Any]) -> set[str]:
    """The names that statements may read before they have bound them."""
    found: set[str] = set()
    bound: set[str] = set()
    for x in body:
        found |= exposed_in(x) - bound
        bound |= assigned(x)
    return found


def exposed_in(x: Any) -> set[str]:
    """The names that one statement may read before it has bound them."""
    found: set[str] = set()
    inner = ("body", "orelse", "finalbody")
    own = names_in(x.target) if isinstance(x, ast.For) else set().union(*(
        names_in(y.optional_vars) for y in x.items if y.optional_vars)) if (
            isinstance(x, ast.With)) else set()
    if not isinstance(x, (ast.For, ast.While, ast.If, ast.With, ast.Try)):
        return set(reads_of(x))
    for field, part in ast.iter_fields(x):
        if field in inner:
            found |= exposed(part) - (own if field == "body" else set())
        elif field == "handlers":
            for handler in part:
                found |= exposed(handler.body) - {handler.name}
                found |= set(reads_of(handler.type)) if handler.type else set()
        else:
            for y in part if isinstance(part, list) else [part]:
                found |= set(reads_of(y)) if isinstance(y, ast.AST) else set()
    return found


def named(x: ast.expr, around: dict[str, Any]) -> Any:
    """What a name, or one in a module, stands for where the globals are these; None for others."""
    if isinstance(x, ast.Name):
        return around.get(x.id)
    owner = named(x.value, around) if isinstance(x, ast.Attribute) else None
    return getattr(owner, x.attr, None) if isinstance(owner, ModuleType) else None
