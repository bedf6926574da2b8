"""Instruments a syntax tree: each read becomes a call of a hook, for which a placeholder stands.

Placeholders are constants, so that they can clash with no name of the user's; sources.py replaces
them by the functions of hooks.py. The meaning of the code does not change: each part is evaluated
once, in the same order, with the same names.
"""

import ast
from typing import Any

from tensorlib.program.reads.scopes import Scope

PLACEHOLDER = "\0read "        # what a placeholder begins with
SINGLETONS = bool, type(None), type(...)     # of whose objects nobody can make another one
NAMES_OF_COMPILER = {"super", "__class__", "__debug__"}      # which it compiles in its own way


def placeholder(hook: str, name: str = "") -> str:
    """The constant that stands for a hook; with a name, for the one made for that variable."""
    return f"{PLACEHOLDER}{hook} {name}"


def mangle(name: str, class_name: str | None) -> str:
    """A name as Python mangles it in the body of a class."""
    if class_name is None or not name.startswith("__") or name.endswith("__") or "." in name:
        return name
    stripped = class_name.lstrip("_")
    return f"_{stripped}{name}" if stripped else name


class Instrumenter(ast.NodeTransformer):
    """Instruments the functions in a statement of a module. What is outside of them stays."""

    def __init__(self) -> None:
        self.scope: Scope | None = None
        self.class_name: str | None = None     # of the class around, for mangled names
        self.location: Any = None              # the node whose line and column new nodes have

    def visit(self, node: ast.AST) -> Any:
        before, self.location = self.location, node if hasattr(node, "lineno") else self.location
        try:
            return super().visit(node)
        finally:
            self.location = before

    def hook_call(self, hook: str, *args: Any, name: str = "", keywords: Any = ()) -> ast.Call:
        """A call of a hook (hooks.py) with these expressions; `name` is that of `placeholder`."""
        # the compiler warns of a constant that is called, not of a choice that it makes itself
        function = ast.IfExp(ast.Constant(True), ast.Constant(placeholder(hook, name)),
                             ast.Constant(None))
        call = ast.Call(function, list(args), list(keywords))
        for x in (call, function, function.test, function.body, function.orelse):
            ast.copy_location(x, self.location)
        for x in args:
            if not hasattr(x, "lineno"):
                ast.copy_location(x, self.location)
        return call

    def operand(self, node: ast.expr) -> Any:
        """An expression whose value C code looks into: an operand or a part of a formatted text."""
        found = self.visit(node)
        if isinstance(node, (ast.Constant, ast.JoinedStr)) or self.scope is None:
            return found
        return self.hook_call("operand", found)

    def tested(self, node: ast.expr) -> Any:
        """An expression that is asked whether it is true."""
        found = self.visit(node)
        if isinstance(node, (ast.Constant, ast.Compare)) or self.scope is None:
            return found
        return self.hook_call("tested", found)

    def iterated(self, node: ast.expr, unpacks: bool = False) -> Any:
        """An expression that is iterated over."""
        found = self.visit(node)
        if self.scope is None or isinstance(node, ast.Constant):
            return found
        return self.hook_call("unpacked" if unpacks else "iterated", found)

    # ---- scopes

    def in_scope(self, node: ast.AST) -> "InScope":
        return InScope(self, node)

    def visit_FunctionDef(self, node: Any) -> Any:
        node.decorator_list = list(map(self.decorator, node.decorator_list))
        self.visit_defaults(node.args)
        with self.in_scope(node):
            first = isinstance(node.body[0], ast.Expr) and isinstance(
                node.body[0].value, ast.Constant) and isinstance(node.body[0].value.value, str)
            body = self.block(node.body[first:])
            node.body = [*node.body[:first], *self.prologue(node), *body] or node.body
        return node

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        self.visit_defaults(node.args)
        with self.in_scope(node):
            node.body = self.visit(node.body)
        return node

    def decorator(self, node: ast.expr) -> Any:
        """A decorator, in its place: the code of what it decorates begins there."""
        found = self.visit(node)
        if self.scope is None:
            return found
        return ast.copy_location(self.hook_call("decorator", found), node)

    def visit_defaults(self, args: ast.arguments) -> None:
        args.defaults = [self.visit(x) for x in args.defaults]
        args.kw_defaults = [x and self.visit(x) for x in args.kw_defaults]

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        node.bases = [self.visit(x) for x in node.bases]
        node.keywords = [self.visit(x) for x in node.keywords]
        node.decorator_list = list(map(self.decorator, node.decorator_list))
        before, self.class_name = self.class_name, node.name
        with self.in_scope(node):
            node.body = self.block(node.body)
        self.class_name = before
        return node

    def visit_comprehension_of(self, node: Any) -> Any:
        first = node.generators[0]
        iterable = self.iterated(first.iter, is_unpacking(first.target))
        with self.in_scope(node):
            for k, x in enumerate(node.generators):
                x.iter = iterable if k == 0 else self.iterated(x.iter, is_unpacking(x.target))
                x.target = self.visit(x.target)
                x.ifs = [self.tested(test) for test in x.ifs]
            for part in ("elt", "key", "value"):
                if hasattr(node, part):
                    setattr(node, part, self.visit(getattr(node, part)))
        creates = self.scope is not None and not isinstance(node, ast.GeneratorExp)
        return self.hook_call("created", node) if creates else node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_comprehension_of

    def prologue(self, node: Any) -> list[ast.stmt]:
        """The hook calls with which a function begins: they report the variables around it that it
        may write to, and the dict of its arguments by name."""
        found: list[Any] = []
        for x in ast.walk(node):
            if isinstance(x, ast.Global):
                found += [self.hook_call("written_global",
                                         ast.Constant(mangle(name, self.class_name)), name="*")
                          for name in x.names]
            elif isinstance(x, ast.Nonlocal):
                found += [self.hook_call("written_cell", name=mangle(name, self.class_name))
                          for name in x.names]
        if node.args.kwarg is not None:
            found.append(self.hook_call("created", ast.Name(node.args.kwarg.arg, ast.Load())))
        return [ast.copy_location(ast.Expr(x), node.body[0]) for x in found]

    def block(self, body: list[Any]) -> list[Any]:
        """Instrumented statements, with the hook calls that have to come before them."""
        found: list[Any] = []
        for x in body:
            if self.scope is not None:
                found += self.calls_before(x)
            found.append(self.visit(x))
        return found

    def generic_visit(self, node: Any) -> Any:
        for field, old in ast.iter_fields(node):
            if isinstance(old, list) and old and isinstance(old[0], ast.stmt):
                setattr(node, field, self.block(old))
            elif isinstance(old, list):
                setattr(node, field, [
                    self.visit(x) if isinstance(x, ast.AST) else x for x in old])
            elif isinstance(old, ast.AST):
                setattr(node, field, self.visit(old))
        return node

    def calls_before(self, node: ast.stmt) -> list[ast.stmt]:
        """Hook calls before a statement, for reads that no expression of it can report."""
        before, self.location = self.location, node
        found: list[Any] = []
        if isinstance(node, ast.Import):
            found = [self.hook_call("imported", ast.Constant(x.name), name="*") for x in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [ast.Constant(x.name) for x in node.names]
            found = [self.hook_call("imported", ast.Constant(node.module or ""),
                                    ast.Constant(node.level), *names, name="*")]
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            found = [self.hook_call("operand", self.visit(ast.copy_location(
                ast.Name(node.target.id, ast.Load()), node.target)))]
        elif isinstance(node, ast.Match):
            for x in ast.walk(node):
                if isinstance(x, (ast.MatchClass, ast.MatchValue)):
                    name = x.cls if isinstance(x, ast.MatchClass) else x.value
                    if isinstance(x, ast.MatchClass):
                        found.append(self.hook_call("matched_class", self.visit(clone(name))))
                    elif not isinstance(name, ast.Constant):
                        found.append(self.visit(clone(name)))
        self.location = before
        return [ast.fix_missing_locations(ast.copy_location(ast.Expr(x), node)) for x in found]

    # ---- names

    def visit_Name(self, node: ast.Name) -> Any:
        if not isinstance(node.ctx, ast.Load) or self.scope is None or node.id in NAMES_OF_COMPILER:
            return node
        name = mangle(node.id, self.class_name)
        kind = self.scope.kind_of(node.id)
        if kind == "global":
            return self.hook_call("read_global", ast.Constant(name), name="*")
        if kind == "free":
            return self.hook_call("read_cell", node, name=name)
        return node

    # ---- expressions

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        node.value = self.visit(node.value)
        if self.scope is None:
            return node
        name = ast.Constant(mangle(node.attr, self.class_name))
        if isinstance(node.ctx, ast.Load):
            return self.hook_call("attribute", node.value, name)
        node.value = self.hook_call("written_attribute", node.value, name)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        node.value = self.visit(node.value)
        if self.scope is None:
            node.slice = self.visit(node.slice)
            return node
        if not isinstance(node.ctx, ast.Load):
            node.value = self.hook_call("written_part", node.value)
            node.slice = self.visit(node.slice)
            return node
        return self.hook_call("element", node.value, self.subscript(node.slice))

    def subscript(self, node: ast.expr) -> Any:
        """What stands in square brackets, as an expression."""
        if isinstance(node, ast.Slice):
            parts = [self.visit(x) if x else ast.copy_location(ast.Constant(None), node)
                     for x in (node.lower, node.upper, node.step)]
            return self.hook_call("slice", *parts)
        if isinstance(node, ast.Tuple):
            node.elts = [self.subscript(x) for x in node.elts]
            return node
        return self.visit(node)

    def visit_Call(self, node: ast.Call) -> Any:
        if self.scope is None:
            return self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args:
            return node
        args = [self.visit(x) for x in node.args]
        for x in node.keywords:
            x.value = self.visit(x.value)
            if x.arg is None:
                x.value = self.hook_call("iterated", x.value)
        return self.hook_call("call", self.visit(node.func), *args, keywords=node.keywords)

    def visit_Starred(self, node: ast.Starred) -> Any:
        if isinstance(node.ctx, ast.Load) and self.scope is not None:
            node.value = self.iterated(node.value)
            return node
        return self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        node.left, node.right = self.operand(node.left), self.operand(node.right)
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        is_not = isinstance(node.op, ast.Not)
        node.operand = (self.tested if is_not else self.operand)(node.operand)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        node.values = [self.tested(x) for x in node.values]
        return node

    def visit_Compare(self, node: ast.Compare) -> Any:
        constant = any(isinstance(x, ast.Constant) and type(x.value) in SINGLETONS
                       for x in (node.left, *node.comparators))
        hook = {ast.In: "contains", ast.NotIn: "contains", ast.Is: "identical",
                ast.IsNot: "identical"}.get(type(node.ops[0]))
        if hook and len(node.ops) == 1 and self.scope is not None and not (
                constant and hook == "identical"):
            found = self.hook_call(hook, self.visit(node.left), self.visit(node.comparators[0]))
            if isinstance(node.ops[0], (ast.In, ast.Is)):
                return found
            return ast.copy_location(ast.UnaryOp(ast.Not(), found), node)
        if len(node.ops) == 1 and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            return self.generic_visit(node)
        identified = self.scope is not None and any(
            isinstance(x, (ast.Is, ast.IsNot)) for x in node.ops)
        node.left, *node.comparators = [
            self.hook_call("identified", self.operand(x)) if identified else self.operand(x)
            for x in (node.left, *node.comparators)]
        return node

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        node.test = self.tested(node.test)
        node.body, node.orelse = self.visit(node.body), self.visit(node.orelse)
        return node

    def visit_FormattedValue(self, node: ast.FormattedValue) -> Any:
        if node.format_spec is None or self.scope is None or node.conversion != -1:
            node.value = self.operand(node.value)
        else:
            parts = node.format_spec.values
            last = parts[-1].value if parts and isinstance(parts[-1], ast.Constant) else "n"
            node.value = self.hook_call("formatted", self.visit(node.value), ast.Constant(last))
        if node.format_spec is not None:
            node.format_spec = self.visit(node.format_spec)
        return node

    def visit_Dict(self, node: ast.Dict) -> Any:
        node.keys = [x and self.hashed(x) for x in node.keys]
        node.values = [
            self.hook_call("iterated", self.visit(x)) if key is None and self.scope
            else self.visit(x) for key, x in zip(node.keys, node.values)]
        return self.hook_call("created", node) if self.scope else node

    def visit_Set(self, node: ast.Set) -> Any:
        node.elts = [self.visit(x) if isinstance(x, ast.Starred) else self.hashed(x)
                     for x in node.elts]
        return node

    def hashed(self, node: ast.expr) -> Any:
        """An expression whose value becomes a key of a dict, or a member of a set."""
        found = self.visit(node)
        if isinstance(node, ast.Constant) or self.scope is None:
            return found
        return self.hook_call("hashed", found)

    def visit_List(self, node: ast.List) -> Any:
        node.elts = [self.visit(x) for x in node.elts]
        creates = self.scope is not None and isinstance(node.ctx, ast.Load)
        return self.hook_call("created", node) if creates else node

    def visit_YieldFrom(self, node: ast.YieldFrom) -> Any:
        node.value = self.iterated(node.value)
        return node

    # ---- statements

    def visit_test(self, node: Any) -> Any:
        node.test = self.tested(node.test)
        node.body = self.block(node.body)
        node.orelse = self.block(node.orelse)
        return node

    visit_If = visit_While = visit_test

    def visit_Assert(self, node: ast.Assert) -> Any:
        node.test = self.tested(node.test)
        node.msg = node.msg and self.visit(node.msg)
        return node

    def visit_Try(self, node: Any) -> Any:
        self.generic_visit(node)
        for body in (*(x.body for x in node.handlers), node.finalbody):
            if body and self.scope is not None:
                body.insert(0, self.caught(body[0]))
        return node

    def caught(self, at: ast.stmt) -> Any:
        """A hook call before a statement at which code of the user's may look at an error."""
        call = ast.Expr(self.hook_call("caught"))
        return ast.fix_missing_locations(ast.copy_location(call, at))

    visit_TryStar = visit_Try

    def visit_For(self, node: ast.For) -> Any:
        node.iter = self.iterated(node.iter, is_unpacking(node.target))
        node.target = self.visit(node.target)
        node.body, node.orelse = self.block(node.body), self.block(node.orelse)
        return node

    def visit_Assign(self, node: ast.Assign) -> Any:
        unpacked = any(map(is_unpacking, node.targets))
        node.value = self.iterated(node.value, True) if unpacked else self.visit(node.value)
        node.targets = [self.visit(x) for x in node.targets]
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        node.value = node.value and self.visit(node.value)
        node.target = self.visit(node.target)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        if self.scope is None:
            return self.generic_visit(node)
        if isinstance(node.target, ast.Attribute):
            node.target.value = self.hook_call(
                "augmented_attribute", self.visit(node.target.value),
                ast.Constant(mangle(node.target.attr, self.class_name)))
        elif isinstance(node.target, ast.Subscript):
            node.target.value = self.hook_call("augmented_part", self.visit(node.target.value))
            node.target.slice = self.visit(node.target.slice)
        node.value = self.operand(node.value)
        return node

    def visit_withitem(self, node: ast.withitem) -> Any:
        node.context_expr = self.visit(node.context_expr)
        if self.scope is not None:
            node.context_expr = self.hook_call("entered", node.context_expr)
        if node.optional_vars is not None:
            node.optional_vars = self.visit(node.optional_vars)
        return node

    def visit_With(self, node: Any) -> Any:
        self.generic_visit(node)
        if self.scope is not None:           # an `__exit__` may look at the error
            first = node.body[0]
            handler = ast.ExceptHandler(None, None, [self.caught(first), ast.Raise()])
            guarded = ast.copy_location(ast.Try(node.body, [handler], [], []), first)
            node.body = [ast.fix_missing_locations(guarded)]
        return node

    visit_AsyncWith = visit_With

    def visit_Match(self, node: ast.Match) -> Any:
        node.subject = self.visit(node.subject)
        if self.scope is not None:
            node.subject = self.hook_call("matched", node.subject)
        for case in node.cases:
            if case.guard is not None:
                case.guard = self.tested(case.guard)
            case.body = self.block(case.body)
        return node

    def visit_TypeAlias(self, node: Any) -> Any:
        return node


class InScope:
    """The scope of a node, under `with`."""

    def __init__(self, instrumenter: Instrumenter, node: ast.AST):
        self.instrumenter, self.node = instrumenter, node

    def __enter__(self) -> None:
        instrumenter, self.before = self.instrumenter, self.instrumenter.scope
        around = self.before
        if isinstance(self.node, ast.ClassDef) and around is None:
            return                       # the body of a class of a module is never run anew
        instrumenter.scope = Scope(self.node, around)

    def __exit__(self, *error: Any) -> None:
        self.instrumenter.scope = self.before


def is_unpacking(target: ast.AST) -> bool:
    """Whether an assignment to a target unpacks its value."""
    return isinstance(target, (ast.Tuple, ast.List))


def clone(node: Any) -> Any:
    """A copy of a dotted name."""
    fields = {name: clone(x) if isinstance(x, ast.AST) else x for name, x in ast.iter_fields(node)}
    return ast.copy_location(type(node)(**fields), node)


def instrument(statement: ast.stmt) -> ast.stmt:
    """A statement of a module, changed in place: its functions call hooks for what they read."""
    found: ast.stmt = ast.fix_missing_locations(Instrumenter().visit(statement))
    return found
