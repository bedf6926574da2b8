"""Splits a function around a statement that can't be captured, so that the rest is replayed.

The statements before and after the one that ended the capture, and those in its bodies if it has
any, are compiled as functions: their arguments are the variables that they read, their results
those that are read later. The remaining function calls them, and runs the statement itself in
Python.
"""

import ast
import builtins
import contextlib
from collections.abc import Callable
from copy import copy, deepcopy
from types import CellType, CodeType, FunctionType
from typing import Any

from tensorlib._core.tensor.tensor import Tensor
from tensorlib.program.reads import sources
from tensorlib.program.reads.known import is_of_library
from tensorlib.program.reads.names import (
    Names, Unfit, assigned, exposed, named, names_in, stores_of,
)
from tensorlib.program.run.dispatch import Chooser

DETACHED, LEFT = "detached ", "left "         # no names that a user can write

# What lets each exception pass, of the library by its names and of Python: after any other `with`,
# the statements in it may have failed.
LETS_PASS = {"no_grad", "enable_grad", "inference_mode", "set_grad_enabled", "autocast", "device",
             "detect_anomaly", "fork_rng", "profile", "record_function", "sdpa_kernel"}
OF_ELEMENTS = all, any, dict, frozenset, list, max, min, set, sorted, sum, tuple   # of iterators
OF_PYTHON = open, contextlib.nullcontext, contextlib.redirect_stdout


def detached(x: Any) -> Any:
    """A tensor without its graph; anything else as it is."""
    return x.detach() if type(x) is Tensor else x


LOOKS = 8, 64            # calls of a function at which it is asked whether its parts are replayed


class Parted(Chooser):
    """A function in parts. parts: what is captured of it, with its first and its last line.

    definition: where it is defined, as of `sources.definition_of`, which is not asked then.
    Raises: Unfit, NoSource.
    """

    def __init__(self, f: FunctionType, line: int, compiled: Callable[[Any, Any], Any],
                 definition: tuple[str, str | None, Any] | None = None):
        self.f, self.code = f, sources.own_code(f)
        self.defaults, self.named = f.__defaults__, f.__kwdefaults__
        self.calls, self.as_it_stands = 0, False
        self.parts: list[Any] = []
        self.spans: list[tuple[int, int]] = []
        path, kind, node = definition or sources.definition_of(f)
        cutter = Cutter(node, self.code, f.__globals__)
        body = cutter.cut(node.body, line, cutter.names.parameters, ())
        if not cutter.made:
            raise Unfit("no statement is left that could be captured")
        left = function_like(node, LEFT, node.args, body)
        made = codes_of([*cutter.made, left], cutter.names.free, kind, path, self.code.co_flags)
        cells = dict(zip(self.code.co_freevars, f.__closure__ or ()))
        cells[DETACHED] = CellType(detached)
        for part in cutter.made:
            plain, telling = (self.named_as_whole(code) for code in made[part.name])
            sources.register(plain, telling)
            g = FunctionType(plain, f.__globals__, f.__name__, None, closure(plain, cells))
            self.parts.append(compiled(g, (path, kind, part)))
            self.spans.append((part.body[0].lineno, part.end_lineno or 0))
            cells[part.name] = CellType(self.parts[-1])
        plain = self.named_as_whole(made[LEFT][0])
        self.g = FunctionType(plain, f.__globals__, f.__name__, f.__defaults__,
                              closure(plain, cells))
        self.g.__kwdefaults__ = f.__kwdefaults__

    def named_as_whole(self, code: CodeType) -> CodeType:
        """The code of a part, which a traceback shows under the name of the function."""
        return code.replace(co_name=self.code.co_name, co_qualname=self.code.co_qualname)

    def _choice(self) -> Any:
        f = self.f
        if self.calls <= LOOKS[-1]:
            self.calls += 1
            self.as_it_stands = self.as_it_stands or (
                self.calls in LOOKS and not self.may_replay())
        if self.as_it_stands or f.__code__ is not self.code or (
                f.__defaults__ is not self.defaults or f.__kwdefaults__ is not self.named):
            return f                         # it has other code, or no part is replayed
        return self.g

    def may_replay(self) -> bool:
        """Whether a part is replayed, or was not called yet."""
        return any(part._may_replay() for part in self.parts)


def closure(code: CodeType, cells: dict[str, Any]) -> tuple[Any, ...]:
    """The cells that a code has around it."""
    return tuple(cells[name] for name in code.co_freevars)


def codes_of(functions: list[Any], free: list[str], kind: str | None, path: str,
             flags: int) -> dict[str, tuple[CodeType, CodeType]]:
    """The codes of functions by name, as they stand and such that they tell what they read."""
    names = [*free, DETACHED, *(x.name for x in functions)]
    around = function_like(functions[0], "around", parameters(names), functions)
    found: list[dict[str, CodeType]] = []
    for tells in (False, True):
        statement: Any = deepcopy(around)
        if kind is not None:
            statement = ast.parse(f"class {kind}: 0").body[0]
            statement.body = [deepcopy(around)]
        ast.fix_missing_locations(statement)
        code = sources.compiled_alone(statement, tells, path, flags)
        while code.co_name != "around":
            code = next(x for x in code.co_consts if isinstance(x, CodeType))
        found.append({x.co_name: x for x in code.co_consts if isinstance(x, CodeType)})
    return {name: (code, found[1][name]) for name, code in found[0].items()}


def function_like(node: Any, name: str, args: ast.arguments, body: list[Any]) -> Any:
    """A function that stands where another one does."""
    made = copy(node)
    made.name, made.args, made.body, made.decorator_list, made.returns = name, args, body, [], None
    return made


def parameters(names: list[str]) -> ast.arguments:
    """Parameters of these names."""
    return ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])


class Cutter:
    """Cuts the body of a function. made: the functions that its parts have become."""

    def __init__(self, node: Any, code: CodeType, around: dict[str, Any]):
        self.names = Names(node, code)
        own = {*self.names.local, *self.names.free}
        self.around = {name: x for name, x in {**vars(builtins), **around}.items()
                       if name not in own}
        self.names.around = self.around
        at_once = {id(y) for x in ast.walk(node) if isinstance(x, ast.Call) for y in x.args
                   if any(named(x.func, self.around) is f for f in OF_ELEMENTS)}
        self.names.keepers = [x for x in self.names.keepers if id(x[0]) not in at_once]
        self.made: list[Any] = []
        self.may_go_on = False           # after a part has failed, which has given nothing then

    def cut(self, body: list[Any], line: int, bound: set[str], loops: tuple[Any, ...],
            inner: bool = False) -> list[Any]:
        """Statements with parts in their place, around the one that the line is in.

        bound: the variables that have a value before. loops: the statements around that repeat
        these. inner: all statements are to be parts.
        """
        at = next((i for i, x in enumerate(body) if x.lineno <= line <= x.end_lineno), -1)
        if at < 0 and not inner:
            raise Unfit("the line is not the function's own")
        if at < 0:
            return self.parts(body, bound, loops)
        first = self.parts(body[:at], bound, loops)
        bound = bound.union(*map(assigned, body[:at]))
        middle = self.opened(body[at], line, bound, loops)
        rest = self.parts(body[at + 1:], bound | assigned(body[at]), loops,
                          not loops and not inner and body is self.names.node.body)
        return [*first, middle, *rest]

    def opened(self, x: Any, line: int, bound: set[str], loops: tuple[Any, ...]) -> Any:
        """A statement with parts in the place of its bodies."""
        if isinstance(x, (ast.For, ast.While)):
            loops = (*loops, x)
        if isinstance(x, ast.For):
            bound = bound | names_in(x.target)
        if isinstance(x, ast.With):
            bound = bound.union(*(names_in(y.optional_vars) for y in x.items if y.optional_vars))
        before = self.may_go_on
        if isinstance(x, (ast.If, ast.For, ast.While, ast.With)):
            self.may_go_on = before or may_swallow(x, self.around)
            fields = {name: self.cut(getattr(x, name), line, bound, loops, inner=True)
                      for name in ("body", "orelse") if getattr(x, name, None)}
            self.may_go_on = before
            made = type(x)(**{**dict(ast.iter_fields(x)), **fields})
            return ast.copy_location(made, x)
        return x

    def parts(self, body: list[Any], bound: set[str], loops: tuple[Any, ...],
              ends: bool = False) -> list[Any]:
        """Statements with calls of parts in the place of those that can be one."""
        found: list[Any] = []
        run: list[Any] = []
        for k, x in enumerate(body):
            if ends and not self.names.refuses(body[k:], returns=True):
                rest = [*run, *body[k:]]
                return [*found, *self.part(rest, bound, loops, True)]
            if self.names.refuses([x]):
                found += self.part(run, bound, loops)
                bound = bound.union(*map(assigned, run), assigned(x))
                run = []
                found.append(x)
            else:
                run.append(x)
        return [*found, *self.part(run, bound, loops)]

    def part(self, body: list[Any], bound: set[str], loops: tuple[Any, ...],
             ends: bool = False) -> list[Any]:
        """Statements as the call of a part, or as they are where they can be none."""
        if not body or not does_work(body):
            return body
        names = self.names
        own = exposed(body) & names.local
        after = names.read_after(body, loops)
        given = sorted(after & set().union(*map(stores_of, body)))
        if given and self.may_go_on:
            return body
        certain = set().union(*map(assigned, body))
        own |= {name for name in given if name not in certain}
        if not own <= bound or names.may_be_set_elsewhere(body) or names.handled & {*own, *given}:
            return body
        name = f"part {len(self.made)}"
        statements = [*body]
        if not ends:
            values = [self.given(x, body, loops) for x in given]
            statements.append(ast.Return(ast.Tuple(values, ast.Load())))
        made = function_like(names.node, name, parameters(sorted(own)), statements)
        ast.copy_location(made, body[0])
        made.end_lineno = body[-1].end_lineno
        for x in statements[len(body):]:
            ast.fix_missing_locations(ast.copy_location(x, body[-1]))
        self.made.append(made)
        call = ast.Call(ast.Name(name, ast.Load()),
                        [ast.Name(x, ast.Load()) for x in sorted(own)], [])
        if ends:
            statement: Any = ast.Return(call)
        elif given:
            statement = ast.Assign([ast.Tuple([ast.Name(x, ast.Store()) for x in given],
                                              ast.Store())], call)
        else:
            statement = ast.Expr(call)
        return [ast.fix_missing_locations(ast.copy_location(statement, body[0]))]

    def given(self, name: str, body: list[Any], loops: tuple[Any, ...]) -> Any:
        """What a part gives of a variable: where its elements alone are read, no graph."""
        value: Any = ast.Name(name, ast.Load())
        if not (loops and name in exposed(body)) and all(
                is_looked_at(around) for _, around in self.names.uses_outside(name, body)):
            value = ast.Call(ast.Name(DETACHED, ast.Load()), [value], [])
        return value


def may_swallow(x: ast.stmt, around: dict[str, Any]) -> bool:
    """Whether a statement may end well though statements in it failed. around: its globals."""
    if not isinstance(x, ast.With):
        return False
    calls = [y.context_expr for y in x.items]
    found = [named(y.func, around) if isinstance(y, ast.Call) else None for y in calls]
    return not all(any(y is z for z in OF_PYTHON) or is_of_library(y) and (
        getattr(y, "__name__", "") in LETS_PASS) for y in found)


def is_looked_at(around: list[ast.AST]) -> bool:
    """Whether a tensor's element is read, and nothing else is done with it."""
    attribute, call = around[-1], around[-2] if len(around) > 1 else None
    return isinstance(attribute, ast.Attribute) and attribute.attr in ("item", "detach") and (
        isinstance(call, ast.Call) and call.func is attribute)


def does_work(body: list[Any]) -> bool:
    """Whether statements do anything that is worth a part."""
    return any(isinstance(x, (ast.Call, ast.BinOp, ast.UnaryOp)) for statement in body
               for x in ast.walk(statement))
