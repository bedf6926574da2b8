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
from tensorlib.program.reads.local_variables import (
    CannotSplit, LocalVariables, definitely_assigned, named, names_in_target, names_stored,
    upward_exposed,
)
from tensorlib.program.run.dispatch import Chooser

DETACHED, REMAINDER, STORED = "detached ", "remainder ", "stored "     # no names of a user's

# Context managers that propagate each exception, of the library by their names and of Python's:
# after any other `with`, the statements in it may have failed.
PROPAGATING = {"no_grad", "enable_grad", "inference_mode", "set_grad_enabled", "autocast", "device",
               "detect_anomaly", "fork_rng", "profile", "record_function", "sdpa_kernel"}
# Functions that read all of an iterator before they return.
CONSUMING = all, any, dict, frozenset, list, max, min, set, sorted, sum, tuple
PROPAGATING_PYTHON = open, contextlib.nullcontext, contextlib.redirect_stdout


def detached(x: Any) -> Any:
    """A tensor without its graph; anything else as it is."""
    return x.detach() if type(x) is Tensor else x


REVIEWED_CALLS = 8, 64       # which calls check whether a part of the function is replayed


class SplitFunction(Chooser):
    """A function split into parts, which are captured, and a remainder, which calls them.

    spans: the first and the last line of each part. compiled: compiles a part, given as a function
    and its definition. definition: of the function, if it is a part itself and has no source.
    Raises: CannotSplit, NoSource.
    """

    def __init__(self, f: FunctionType, line: int, compiled: Callable[[Any, Any], Any],
                 definition: tuple[str, str | None, Any] | None = None):
        self.f, self.code = f, sources.original_code(f)
        self.defaults, self.named = f.__defaults__, f.__kwdefaults__
        self.calls, self.gave_up = 0, False
        self.parts: list[Any] = []
        self.spans: list[tuple[int, int]] = []
        path, kind, node = definition or sources.definition_of(f)
        node = with_value_apart(node, line)
        splitter = Splitter(node, self.code, f.__globals__)
        body = splitter.split(node.body, line, splitter.variables.parameters, ())
        if not splitter.functions:
            raise CannotSplit("no statement is left that could be captured")
        remainder = function_at(node, REMAINDER, node.args, body)
        codes = compile_functions([*splitter.functions, remainder], splitter.variables.free, kind,
                                  path, self.code.co_flags)
        cells = dict(zip(self.code.co_freevars, f.__closure__ or ()))
        cells[DETACHED] = CellType(detached)
        for part in splitter.functions:
            plain, instrumented = (self.with_name_of_whole(code) for code in codes[part.name])
            sources.register(plain, instrumented)
            g = FunctionType(plain, f.__globals__, f.__name__, None, closure(plain, cells))
            self.parts.append(compiled(g, (path, kind, part)))
            self.spans.append((part.body[0].lineno, part.end_lineno or 0))
            cells[part.name] = CellType(self.parts[-1])
        plain = self.with_name_of_whole(codes[REMAINDER][0])
        self.g = FunctionType(plain, f.__globals__, f.__name__, f.__defaults__,
                              closure(plain, cells))
        self.g.__kwdefaults__ = f.__kwdefaults__

    def with_name_of_whole(self, code: CodeType) -> CodeType:
        """The code of a part, which a traceback shows under the name of the function."""
        return code.replace(co_name=self.code.co_name, co_qualname=self.code.co_qualname)

    def _choice(self) -> Any:
        f = self.f
        if self.calls <= REVIEWED_CALLS[-1]:
            self.calls += 1
            self.gave_up = self.gave_up or (
                self.calls in REVIEWED_CALLS and not self.may_replay())
        if self.gave_up or f.__code__ is not self.code or (
                f.__defaults__ is not self.defaults or f.__kwdefaults__ is not self.named):
            return f                         # it has other code, or no part is replayed
        return self.g

    def may_replay(self) -> bool:
        """Whether a part is replayed, or has not been called yet."""
        return any(part._may_replay() for part in self.parts)


def with_value_apart(node: Any, line: int) -> Any:
    """The definition of a function in which an assignment at a line, that stores a value in an
    object, follows one that computes it: this one need not run in Python."""
    def stores(x: Any) -> bool:
        return isinstance(x, ast.Assign) and x.lineno <= line <= x.end_lineno and does_work(
            [x.value]) and any(isinstance(y, (ast.Attribute, ast.Subscript))
                               for target in x.targets for y in ast.walk(target))

    class Apart(ast.NodeTransformer):
        def visit_Assign(self, x: Any) -> Any:
            if not stores(x):
                return x
            value = ast.copy_location(ast.Assign([ast.Name(STORED, ast.Store())], x.value), x)
            x.value = ast.copy_location(ast.Name(STORED, ast.Load()), x.value)
            return [ast.fix_missing_locations(value), x]

        def visit_FunctionDef(self, x: Any) -> Any:
            return x                             # which is a function of its own

        visit_AsyncFunctionDef = visit_ClassDef = visit_FunctionDef

    if not any(map(stores, ast.walk(node))):
        return node
    made = deepcopy(node)
    Apart().generic_visit(made)
    return made


def is_value_apart(x: ast.stmt) -> bool:
    """Whether a statement computes a value that the next one stores."""
    return isinstance(x, ast.Assign) and isinstance(x.targets[0], ast.Name) and (
        x.targets[0].id == STORED)


def closure(code: CodeType, cells: dict[str, Any]) -> tuple[Any, ...]:
    """The closure of a function with a code, out of cells by the names of variables."""
    return tuple(cells[name] for name in code.co_freevars)


def compile_functions(functions: list[Any], free: list[str], kind: str | None, path: str,
                      flags: int) -> dict[str, tuple[CodeType, CodeType]]:
    """The codes of functions by their names, as they are and instrumented.

    free: the variables of functions around them. kind: the name of the class around, or None.
    """
    names = [*dict.fromkeys((*free, DETACHED, *(x.name for x in functions)))]
    around = function_at(functions[0], "around", parameters(names), functions)
    found: list[dict[str, CodeType]] = []
    for instruments in (False, True):
        statement: Any = deepcopy(around)
        if kind is not None:
            statement = ast.parse(f"class {kind}: 0").body[0]
            statement.body = [deepcopy(around)]
        ast.fix_missing_locations(statement)
        code = sources.compile_statement(statement, instruments, path, flags)
        while code.co_name != "around":
            code = next(x for x in code.co_consts if isinstance(x, CodeType))
        found.append({x.co_name: x for x in code.co_consts if isinstance(x, CodeType)})
    return {name: (code, found[1][name]) for name, code in found[0].items()}


def function_at(node: Any, name: str, args: ast.arguments, body: list[Any]) -> Any:
    """The definition of a function at the place of another one in the source."""
    made = copy(node)
    made.name, made.args, made.body, made.decorator_list, made.returns = name, args, body, [], None
    return made


def parameters(names: list[str]) -> ast.arguments:
    """Parameters of these names."""
    return ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])


class Splitter:
    """Splits the body of a function. functions: the definitions of its parts."""

    def __init__(self, node: Any, code: CodeType, around: dict[str, Any]):
        self.variables = LocalVariables(node, code)
        own = {*self.variables.local, *self.variables.free}
        self.around = {name: x for name, x in {**vars(builtins), **around}.items()
                       if name not in own}
        self.variables.around = self.around
        for x in ast.walk(node):
            if isinstance(x, ast.With):
                x.propagates = not may_swallow(x, self.around)      # type: ignore[attr-defined]
        at_once = {id(y) for x in ast.walk(node) if isinstance(x, ast.Call) for y in x.args
                   if any(named(x.func, self.around) is f for f in CONSUMING)}
        self.variables.closures = [x for x in self.variables.closures if id(x[0]) not in at_once]
        self.functions: list[Any] = []
        self.may_continue = False        # after a part has failed, and so has given nothing

    def split(self, body: list[Any], line: int, bound: set[str], loops: tuple[Any, ...],
              inner: bool = False) -> list[Any]:
        """Statements around a line, with calls of parts in the place of what can be one.

        bound: the variables that have a value before. loops: the statements around that repeat
        these. inner: all statements are to be parts.
        """
        at = next((i for i, x in enumerate(body) if x.lineno <= line <= x.end_lineno
                   and not is_value_apart(x)), -1)
        if at < 0 and not inner:
            raise CannotSplit("the line is not the function's own")
        if at < 0:
            return self.parts(body, bound, loops)
        first = self.parts(body[:at], bound, loops)
        bound = bound.union(*map(definitely_assigned, body[:at]))
        middle = self.split_bodies(body[at], line, bound, loops)
        rest = self.parts(body[at + 1:], bound | definitely_assigned(body[at]), loops,
                          not loops and not inner and body is self.variables.node.body)
        return [*first, middle, *rest]

    def split_bodies(self, x: Any, line: int, bound: set[str], loops: tuple[Any, ...]) -> Any:
        """A statement whose bodies are split into parts."""
        if isinstance(x, (ast.For, ast.While)):
            loops = (*loops, x)
        if isinstance(x, ast.For):
            bound = bound | names_in_target(x.target)
        if isinstance(x, ast.With):
            bound = bound.union(*(names_in_target(y.optional_vars) for y in x.items
                                  if y.optional_vars))
        before = self.may_continue
        if isinstance(x, (ast.If, ast.For, ast.While, ast.With)):
            self.may_continue = before or may_swallow(x, self.around)
            fields = {name: self.split(getattr(x, name), line, bound, loops, inner=True)
                      for name in ("body", "orelse") if getattr(x, name, None)}
            self.may_continue = before
            made = type(x)(**{**dict(ast.iter_fields(x)), **fields})
            return ast.copy_location(made, x)
        return x

    def parts(self, body: list[Any], bound: set[str], loops: tuple[Any, ...],
              ends: bool = False) -> list[Any]:
        """Statements, with calls of parts in the place of runs of them that can be moved.

        ends: they are the end of the function.
        """
        found: list[Any] = []
        run: list[Any] = []
        for k, x in enumerate(body):
            if ends and not self.variables.cannot_move(body[k:], returns=True):
                rest = [*run, *body[k:]]
                return [*found, *self.part(rest, bound, loops, True)]
            if self.variables.cannot_move([x]):
                found += self.part(run, bound, loops)
                bound = bound.union(*map(definitely_assigned, run), definitely_assigned(x))
                run = []
                found.append(x)
            else:
                run.append(x)
        return [*found, *self.part(run, bound, loops)]

    def part(self, body: list[Any], bound: set[str], loops: tuple[Any, ...],
             ends: bool = False) -> list[Any]:
        """The call of a new part in the place of statements, or these if they can't be one."""
        if not body or not does_work(body):
            return body
        variables = self.variables
        own = upward_exposed(body) & variables.local
        after = variables.live_after(body, loops)
        given = sorted(after & set().union(*map(names_stored, body)))
        if given and self.may_continue:
            return body
        certain = set().union(*map(definitely_assigned, body))
        own |= {name for name in given if name not in certain}
        if not own <= bound or variables.shares_cells(body) or variables.handled & {*own, *given}:
            return body
        name = f"part {len(self.functions)}"
        statements = [*body]
        if not ends:
            values = [self.given(x, body, loops) for x in given]
            statements.append(ast.Return(ast.Tuple(values, ast.Load())))
        made = function_at(variables.node, name, parameters(sorted(own)), statements)
        ast.copy_location(made, body[0])
        made.end_lineno = body[-1].end_lineno
        for x in statements[len(body):]:
            ast.fix_missing_locations(ast.copy_location(x, body[-1]))
        self.functions.append(made)
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
        """What a part returns for a variable: without a graph, if only elements are read of it."""
        value: Any = ast.Name(name, ast.Load())
        if not (loops and name in upward_exposed(body)) and all(
                reads_element(around) for _, around in self.variables.uses_outside(name, body)):
            value = ast.Call(ast.Name(DETACHED, ast.Load()), [value], [])
        return value


def may_swallow(x: ast.stmt, around: dict[str, Any]) -> bool:
    """Whether a statement may complete though one in it raised. around: its globals."""
    if not isinstance(x, ast.With):
        return False
    calls = [y.context_expr for y in x.items]
    found = [named(y.func, around) if isinstance(y, ast.Call) else None for y in calls]
    return not all(any(y is z for z in PROPAGATING_PYTHON) or is_of_library(y) and (
        getattr(y, "__name__", "") in PROPAGATING) for y in found)


def reads_element(around: list[ast.AST]) -> bool:
    """Whether a load only reads an element of a tensor, or detaches it: the nodes around it."""
    attribute, call = around[-1], around[-2] if len(around) > 1 else None
    return isinstance(attribute, ast.Attribute) and attribute.attr in ("item", "detach") and (
        isinstance(call, ast.Call) and call.func is attribute)


def does_work(body: list[Any]) -> bool:
    """Whether statements do enough to be worth a part."""
    return any(isinstance(x, (ast.Call, ast.BinOp, ast.UnaryOp)) for statement in body
               for x in ast.walk(statement))
