"""Scopes of a syntax tree: whether a name is local, from an enclosing function, or global."""

import ast
from collections.abc import Iterator

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
NEW_SCOPES = (*FUNCTIONS, *COMPREHENSIONS, ast.ClassDef)


class Scope:
    """The names that a function, a comprehension or the body of a class binds.

    around: the enclosing scope; None for a module. is_class: the functions in a class don't see its
    names.
    """

    def __init__(self, node: ast.AST, around: "Scope | None"):
        self.around = around
        self.is_class = isinstance(node, ast.ClassDef)
        self.bound: set[str] = set()
        self.globals: set[str] = set()
        self.nonlocals: set[str] = set()
        if isinstance(node, FUNCTIONS):
            self.bound |= {x.arg for x in arguments(node.args)}
        for x in nodes_of_scope(node):
            if isinstance(x, ast.Global):
                self.globals.update(x.names)
            elif isinstance(x, ast.Nonlocal):
                self.nonlocals.update(x.names)
            elif name := name_bound(x):
                self.bound.add(name)
        self.bound -= self.globals | self.nonlocals

    def kind_of(self, name: str) -> str:
        """How a name is resolved that is read here: "local", "free" or "global"."""
        if name in self.bound:
            return "local"
        if name in self.globals:
            return "global"
        scope = self.around
        while scope is not None:
            if name in scope.globals and not scope.is_class:
                return "global"
            if name in scope.bound and not scope.is_class:
                return "free"
            scope = scope.around
        return "global"


def name_bound(x: ast.AST) -> str | None:
    """The name that a node binds in the scope that it lies in; None, or "", for none."""
    if isinstance(x, ast.Name):
        return None if isinstance(x.ctx, ast.Load) else x.id
    if isinstance(x, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler,
                      ast.MatchAs, ast.MatchStar)):
        return x.name
    if isinstance(x, ast.alias):
        return x.asname or x.name.split(".")[0]
    return x.rest if isinstance(x, ast.MatchMapping) else None


def arguments(args: ast.arguments) -> Iterator[ast.arg]:
    """All parameters of a function."""
    yield from (*args.posonlyargs, *args.args, *args.kwonlyargs)
    for x in (args.vararg, args.kwarg):
        if x is not None:
            yield x


def nodes_of_scope(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a scope; of the scopes in it only those that belong to this one."""
    for x in parts_in_scope(node):
        yield from nodes_in_same_scope(x)


def nodes_in_same_scope(node: ast.AST) -> Iterator[ast.AST]:
    """A node and those in it that belong to the same scope."""
    waiting = [node]
    while waiting:
        x = waiting.pop()
        yield x
        if isinstance(x, NEW_SCOPES):
            waiting += parts_in_outer_scope(x)
        else:
            waiting += ast.iter_child_nodes(x)


def parts_in_scope(node: ast.AST) -> list[ast.AST]:
    """The parts of a node with a scope that belong to that scope."""
    if isinstance(node, ast.Lambda):
        return [node.body]
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)):
        return list(node.body)
    found = [x for x in ast.iter_child_nodes(node) if not isinstance(x, ast.comprehension)]
    for k, x in enumerate(node.generators):           # type: ignore[attr-defined]
        found += [x.target, *x.ifs, *([x.iter] if k else [])]
    return found


def parts_in_outer_scope(node: ast.AST) -> list[ast.AST]:
    """The parts of a node with a scope that belong to the scope around it."""
    if isinstance(node, ast.ClassDef):
        return [*node.bases, *node.keywords, *node.decorator_list]
    if isinstance(node, COMPREHENSIONS):
        # a walrus in a comprehension binds in the function around it
        return [node.generators[0].iter, *(
            x.target for x in ast.walk(node) if isinstance(x, ast.NamedExpr))]
    found: list[ast.AST] = [*node.args.defaults, *filter(None, node.args.kw_defaults)]
    if not isinstance(node, ast.Lambda):
        found += node.decorator_list
    return found
