"""The local variables of a function: which statements read them, bind them, and can be moved."""

import ast
from collections.abc import Iterator
from types import CodeType, ModuleType
from typing import Any

from tensorlib.program.reads.known import is_of_library
from tensorlib.program.reads.scopes import (
    FUNCTIONS, NEW_SCOPES, Scope, arguments, name_bound, parts_in_scope, nodes_in_same_scope,
)

# What reads the frame that calls it.
FRAME_NAMES = {"locals", "vars", "dir", "eval", "exec", "super", "__class__"}
FRAME_ATTRIBUTES = {"_getframe", "currentframe", "stack"}
# What finds the variables of the frame that calls it, unless it is given so many arguments.
OF_VARIABLES = {"locals": 1, "vars": 1, "dir": 1, "eval": 2, "exec": 2}
OWN_FRAME = (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith, ast.Global,
             ast.Nonlocal, ast.Delete, ast.Import, ast.ImportFrom)


class CannotSplit(Exception):
    """A function can't be split into parts."""


class LocalVariables:
    """The variables of a function. local: its own; free: those of functions around it.

    others: those that are free, or declared as globals. parameters: those that have a value from
    the start. closures: functions in it, each with the variables that it captures. around: what
    names stand for that are none of these. Raises: CannotSplit.
    """

    def __init__(self, node: Any, code: CodeType):
        self.node = node
        self.around: dict[str, Any] = {}
        if isinstance(node, ast.AsyncFunctionDef) or code.co_flags & 0x2A0:     # generators
            raise CannotSplit("it is a generator")
        scope = Scope(node, None)
        self.parameters = {x.arg for x in arguments(node.args)}
        self.local, self.free = scope.bound, list(code.co_freevars)
        self.others = {*self.free, *(name for x in ast.walk(node) if isinstance(x, ast.Global)
                                     for name in x.names)}
        for x in ast.walk(node):
            if isinstance(x, (ast.Delete, ast.Nonlocal)):
                raise CannotSplit("it unbinds variables, or binds those of others")
        if self.looks_at_variables():
            raise CannotSplit("it looks at all of its variables, of which a part has some")
        self.uses = list(loads_of(node.body))
        self.order = order_of(node.body)
        counts: dict[str, int] = dict.fromkeys(self.parameters, 1)
        for statement in node.body:
            for name in names_stored(statement):
                counts[name] = counts.get(name, 0) + 1
        self.counts = counts
        self.handled = {x.name for x in ast.walk(node) if isinstance(x, ast.ExceptHandler)} - {None}
        if any(counts.get(name, 0) > 1 for name in self.handled):
            raise CannotSplit("it binds a variable that an exception is bound to, too")
        for statement in node.body:
            for x in nodes_in_same_scope(statement):
                if isinstance(x, (ast.For, ast.While)):          # which bind what they do again
                    for name in names_stored(x):
                        counts[name] += 1
        self.closures = [(x, captured_names(x) & self.local) for statement in node.body
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

    def cannot_move(self, body: list[Any], returns: bool = False) -> bool:
        """Whether statements can't be moved into a function. returns: they are the last ones."""
        return any(map(self.needs_own_frame, body)) or any(
            may_exit(x, returns, False) for x in body)

    def needs_own_frame(self, statement: ast.stmt) -> bool:
        """Whether a statement reads its frame, or has to run in the function itself."""
        for x in ast.walk(statement):
            if isinstance(x, OWN_FRAME) or isinstance(x, ast.Name) and x.id in FRAME_NAMES or (
                    isinstance(x, ast.Attribute) and x.attr in FRAME_ATTRIBUTES
                    and not is_of_library(named(x, self.around))) or (
                    isinstance(x, ast.keyword) and x.arg == "stacklevel"):
                return True
            if isinstance(x, ast.Name) and not isinstance(x.ctx, ast.Load) and (
                    x.id in self.others):
                return True
        return False

    def live_after(self, body: list[Any], loops: tuple[Any, ...]) -> set[str]:
        """The variables that are live after some statements: these or others may read them later.

        loops: the loops around the statements.
        """
        found = set(upward_exposed(body)) if loops else set()
        for x, _ in self.uses:
            if self.is_after(x, body) or loops and self.is_before(x, body) and (
                    not self.is_before(x, [loops[0]])):
                found.add(x.id)
        return found & self.local

    def uses_outside(self, name: str, body: list[Any]) -> Iterator[tuple[ast.Name, list[ast.AST]]]:
        """The loads of a variable in other statements, each with the nodes around it."""
        for x, around in self.uses:
            if x.id == name and (self.is_before(x, body) or self.is_after(x, body)):
                yield x, around

    def is_before(self, x: ast.AST, body: list[Any]) -> bool:
        """Whether a node comes before some statements."""
        return self.order[id(x)][0] < self.order[id(body[0])][0]

    def is_after(self, x: ast.AST, body: list[Any]) -> bool:
        """Whether a node comes after some statements."""
        return self.order[id(x)][0] >= self.order[id(body[-1])][1]

    def shares_cells(self, body: list[Any]) -> bool:
        """Whether statements share the cell of a variable with the rest of the function: a closure
        in them captures one that is bound more than once, or one elsewhere what they bind."""
        bound = set().union(*map(names_stored, body))
        for x, names in self.closures:
            if self.is_before(x, body) or self.is_after(x, body):
                if names & bound:
                    return True
            elif any(self.counts.get(name, 0) > 1 for name in names):
                return True
        return False


def order_of(body: list[Any]) -> dict[int, tuple[int, int]]:
    """By the id of each node in statements its number, in the order of the source, and the number
    of the node after it. Lines and columns give no order: a line may have several statements, and
    the parts of formatted strings have positions of their own."""
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


def loads_of(body: list[Any]) -> Iterator[tuple[ast.Name, list[ast.AST]]]:
    """The loads of names in statements, each with the nodes around it."""
    waiting: list[tuple[Any, list[ast.AST]]] = [(x, []) for x in body]
    while waiting:
        x, around = waiting.pop()
        if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Load):
            yield x, around
        elif isinstance(x, ast.AugAssign) and isinstance(x.target, ast.Name):
            yield x.target, [*around, x]
        waiting += [(y, [*around, x]) for y in ast.iter_child_nodes(x)]


def may_exit(x: Any, returns: bool, in_loop: bool) -> bool:
    """Whether a statement may leave the function, or a loop around it.

    returns: a return statement need not count. in_loop: a loop is around that is moved, too.
    """
    if isinstance(x, ast.Return):
        return not returns
    if isinstance(x, (ast.Break, ast.Continue)):
        return not in_loop
    if isinstance(x, (*FUNCTIONS, ast.ClassDef)):
        return False
    loops = in_loop or isinstance(x, (ast.For, ast.While))
    return any(may_exit(y, returns, loops and y not in getattr(x, "orelse", ()) or in_loop)
               for y in ast.iter_child_nodes(x) if isinstance(
                   y, (ast.stmt, ast.ExceptHandler, ast.match_case)))


def captured_names(node: Any) -> set[str]:
    """The names of the scopes around it that a function reads."""
    inner = Scope(node, None)
    return {name for x in parts_in_scope(node) for name in names_loaded(x)
            if name not in inner.bound}


def names_loaded(node: Any) -> Iterator[str]:
    """The names of its own scope that a node reads."""
    for x in nodes_in_same_scope(node):
        if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Load):
            yield x.id
        elif isinstance(x, NEW_SCOPES):
            inner = Scope(x, None)
            for y in parts_in_scope(x):
                yield from (name for name in names_loaded(y) if name not in inner.bound)
        elif isinstance(x, ast.AugAssign) and isinstance(x.target, ast.Name):
            yield x.target.id


def names_stored(node: Any) -> Iterator[str]:
    """The names of its own scope that a node may bind, each as often as it does."""
    return filter(None, map(name_bound, nodes_in_same_scope(node)))


def names_in_target(target: Any) -> set[str]:
    """The names that an assignment to a target binds."""
    return {x.id for x in ast.walk(target)
            if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store)}


def definitely_assigned(x: Any) -> set[str]:
    """The names that a statement binds whenever it completes. A `with` marked as `propagates`
    completes only if its body does."""
    if isinstance(x, ast.With):
        found = set().union(*(names_in_target(y.optional_vars) for y in x.items
                              if y.optional_vars))
        return found.union(*map(definitely_assigned, x.body if getattr(
            x, "propagates", False) else ()))
    if isinstance(x, ast.Assign):
        return set().union(*map(names_in_target, x.targets))
    if isinstance(x, ast.AugAssign) or isinstance(x, ast.AnnAssign) and x.value is not None:
        return names_in_target(x.target)
    if isinstance(x, (ast.FunctionDef, ast.ClassDef)):
        return {x.name}
    if isinstance(x, ast.If):
        both = [set().union(*map(definitely_assigned, body)) for body in (x.body, x.orelse)]
        return both[0] & both[1]
    return set()


def upward_exposed(body: list[Any]) -> set[str]:
    """The names that statements may read before they have bound them."""
    found: set[str] = set()
    bound: set[str] = set()
    for x in body:
        found |= upward_exposed_in(x) - bound
        bound |= definitely_assigned(x)
    return found


def upward_exposed_in(x: Any) -> set[str]:
    """The names that one statement may read before it has bound them."""
    found: set[str] = set()
    inner = ("body", "orelse", "finalbody")
    own = names_in_target(x.target) if isinstance(x, ast.For) else set().union(*(
        names_in_target(y.optional_vars) for y in x.items if y.optional_vars)) if (
            isinstance(x, ast.With)) else set()
    if not isinstance(x, (ast.For, ast.While, ast.If, ast.With, ast.Try)):
        return set(names_loaded(x))
    for field, part in ast.iter_fields(x):
        if field in inner:
            found |= upward_exposed(part) - (own if field == "body" else set())
        elif field == "handlers":
            for handler in part:
                found |= upward_exposed(handler.body) - {handler.name}
                found |= set(names_loaded(handler.type)) if handler.type else set()
        else:
            for y in part if isinstance(part, list) else [part]:
                found |= set(names_loaded(y)) if isinstance(y, ast.AST) else set()
    return found


def named(x: ast.expr, around: dict[str, Any]) -> Any:
    """What a name, or one in a module, stands for where the globals are these; None for others."""
    if isinstance(x, ast.Name):
        return around.get(x.id)
    owner = named(x.value, around) if isinstance(x, ast.Attribute) else None
    return getattr(owner, x.attr, None) if isinstance(owner, ModuleType) else None
