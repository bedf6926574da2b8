"""Instrumented code, compiled from the source of a function and installed in place of its own.

While a capture runs, the functions that it instruments have that code, whoever calls them,
including Python's own C code. Other threads that run them meanwhile behave as before.
"""

import __future__

import ast
import linecache
import sys
import weakref
from collections.abc import Callable
from threading import RLock
from types import CodeType, FunctionType
from typing import Any

from tensorlib.program.guards.values import is_same
from tensorlib.program.reads.instrumenting import PLACEHOLDER, instrument
from tensorlib.program.reads.scopes import nodes_of_scope

FUTURES = 0
for feature in __future__.all_feature_names:
    FUTURES |= getattr(__future__, feature).compiler_flag


class NoSource(Exception):
    """No source is known from which a function was compiled."""


class SourceFile:
    """A source file, with the codes of its functions: as they are, and instrumented.

    pairs: by the statement of the module, with the flags of the compiler, which codes belong
    together.
    """

    def __init__(self, lines: list[str]):
        self.lines = lines
        tree = ast.parse("".join(lines))
        self.spans = [(first_line(x), x.end_lineno or 0) for x in tree.body]
        self.imports = sorted({x.asname or x.name.split(".")[0] for x in nodes_of_scope(tree)
                               if isinstance(x, ast.alias)} - {"*"})
        self.pairs: dict[tuple[int, int, int], dict[CodeType, CodeType]] = {}

    def instrumented_code(self, code: CodeType) -> CodeType:
        """The instrumented code of a function of this file. Raises: NoSource."""
        for first, last in self.spans:
            if first <= code.co_firstlineno <= last:
                key = first, last, code.co_flags & FUTURES
                if key not in self.pairs:
                    text = "\n" * (first - 1) + "".join(self.lines[first - 1:last])
                    self.pairs[key] = code_pairs(text, self.imports, code.co_filename,
                                                 key[2])
                found = self.pairs[key].get(code)
                if found is not None:
                    return found
        raise NoSource("its source is not what runs")


files: dict[str, SourceFile] = {}
# By the id of a code, which is referred to weakly: the instrumented one, or why there is none.
code_cache: dict[int, tuple[Any, CodeType | str]] = {}


def instrumented_code_of(f: FunctionType, code: CodeType) -> CodeType:
    """The instrumented code of a function whose original code is given, with placeholders for the
    hooks.

    Raises: NoSource.
    """
    known = code_cache.get(id(code))
    if known is None or known[0]() is not code:
        try:
            found: CodeType | str = with_constants_of(
                source_file_of(f).instrumented_code(code), code)
        except (NoSource, SyntaxError) as error:       # or a warning that was made an error
            found = str(error)             # with its frames it would keep what these held
        known = add_to_cache(code, found)
    if isinstance(known[1], str):
        raise NoSource(known[1])
    return known[1]


def with_constants_of(code: CodeType, own: CodeType) -> CodeType:
    """A code with the very constants that another one has, where they are equal: `is` tells the
    objects apart."""
    inner = [x for x in own.co_consts if isinstance(x, CodeType)]
    if len(inner) != sum(isinstance(x, CodeType) for x in code.co_consts):
        return code
    codes = iter(inner)
    return code.replace(co_consts=tuple(
        with_constants_of(x, next(codes)) if isinstance(x, CodeType)
        else next((y for y in own.co_consts if is_same(x, y)), x) for x in code.co_consts))


def add_to_cache(code: CodeType, found: CodeType | str) -> tuple[Any, CodeType | str]:
    """Adds an entry to the cache, which is removed with the code; the entry."""
    entry = weakref.ref(code, lambda _, key=id(code): code_cache.pop(key, None)), found
    code_cache[id(code)] = entry
    return entry


def source_file_of(f: FunctionType) -> SourceFile:
    """The source file of a function. Raises: NoSource."""
    path = f.__code__.co_filename
    if path.startswith("<frozen "):
        path = f.__globals__.get("__file__") or path
    lines = linecache.getlines(path, f.__globals__)
    if path == "<string>" and f.__globals__.get("__name__") == "__main__":
        lines = lines or command_line_source()
    if not lines:
        raise NoSource("its source code is not available")
    found = files.get(path)
    if found is None or found.lines is not lines and found.lines != lines:
        try:
            found = files[path] = SourceFile(lines)
        except (SyntaxError, ValueError, RecursionError):
            raise NoSource("its source is not what runs") from None
    return found


def definition_of(f: FunctionType) -> tuple[str, str | None, Any]:
    """Where a function is defined: its path, the class around it, and its statement, parsed anew.

    Raises: NoSource.
    """
    code = original_code(f)
    file = source_file_of(f)
    for first, last in file.spans:
        if first <= code.co_firstlineno <= last:
            tree = ast.parse("\n" * (first - 1) + "".join(file.lines[first - 1:last]))
            waiting: list[tuple[Any, str | None]] = [(tree, None)]
            for x, kind in waiting:
                if isinstance(x, ast.FunctionDef) and x.name == code.co_name and (
                        first_line(x) == code.co_firstlineno):
                    return code.co_filename, kind, x
                kind = x.name if isinstance(x, ast.ClassDef) else kind
                waiting += [(y, kind) for y in ast.iter_child_nodes(x)]
    raise NoSource("it is no function of statements")


def compile_statement(statement: Any, instruments: bool, path: str, flags: int) -> CodeType:
    """The code of a statement, which is instrumented in place if that is asked for."""
    tree = ast.Module([instrument(statement) if instruments else statement], [])
    return compile(tree, path, "exec", flags & FUTURES, dont_inherit=True)


def register(plain: CodeType, instrumented: CodeType) -> None:
    """Adds to the cache a code that has no file, and those in it, with the instrumented ones."""
    found = {plain: instrumented}
    add_pairs(plain, instrumented, found)
    for code, other in found.items():
        add_to_cache(code, other)


def command_line_source() -> list[str]:
    """The lines of the source that Python was given as `python -c source`; [] for none."""
    given = sys.orig_argv
    return given[given.index("-c") + 1].splitlines(True) if "-c" in given[:-1] else []


def first_line(x: Any) -> int:
    """The line at which a statement begins, with its decorators."""
    return min([x.lineno, *(d.lineno for d in getattr(x, "decorator_list", ()))])


def code_pairs(text: str, imports: list[str], path: str, flags: int) -> dict[CodeType, CodeType]:
    """For the code of each function in some statements, the instrumented one.

    imports: the names that the module imports: the compiler calls their methods in another way.
    """
    trees = [ast.parse(text) for _ in range(2)]
    trees[1].body = list(map(instrument, trees[1].body))
    for tree in trees if imports else ():
        names: ast.stmt = ast.Import([ast.alias(name) for name in imports])
        tree.body.insert(0, ast.fix_missing_locations(names))
    plain, instrumented = (compile(x, path, "exec", flags, dont_inherit=True) for x in trees)
    found: dict[CodeType, CodeType] = {}
    add_pairs(plain, instrumented, found)
    return found


def add_pairs(plain: CodeType, instrumented: CodeType, found: dict[CodeType, CodeType]) -> None:
    """Adds the pairs of the functions in two codes that belong together."""
    inner = [[x for x in code.co_consts if isinstance(x, CodeType)]
             for code in (plain, instrumented)]
    if len(inner[0]) != len(inner[1]):
        return
    for x, y in zip(*inner):
        if (x.co_name, x.co_firstlineno, x.co_freevars, x.co_varnames[:x.co_argcount]) == (
                y.co_name, y.co_firstlineno, y.co_freevars, y.co_varnames[:y.co_argcount]):
            found[x] = y
            add_pairs(x, y, found)


def with_hooks(code: CodeType, cells: dict[str, Any], hook_for: Callable[[str, str], Any]) -> (
        CodeType):
    """A code with hooks in the place of its placeholders.

    cells: by the name of each free variable, the object whose methods are its hooks; None for a
    variable that the function created itself. hook_for: gives the hook of a placeholder, by the
    hook's name and that of the variable.
    """
    consts = []
    for x in code.co_consts:
        if isinstance(x, CodeType):
            inner = {name: None if name in code.co_cellvars else cells.get(name)
                     for name in x.co_freevars}
            x = with_hooks(x, inner, hook_for)
        elif isinstance(x, str) and x.startswith(PLACEHOLDER):
            hook, name = x[len(PLACEHOLDER):].split(" ", 1)
            cell = cells.get(name) if hook.endswith("_cell") else None
            x = hook_for(hook, name) if cell is None else getattr(cell, hook)
        consts.append(x)
    return code.replace(co_consts=tuple(consts))


# ---- in the place of a function's own code -------------------------------------------------------

# Who looks without the lock finds the original code, whatever other threads do meanwhile: a
# function is in `installed` before it gets the instrumented code, and until it has its own back. A
# collection of garbage may come while the lock is held, and end a capture.
lock = RLock()
# By the id of a function: the original code, the instrumented one, and how many captures use it.
installed: dict[int, tuple[FunctionType, CodeType, CodeType, int]] = {}


def install(f: FunctionType, make: Callable[[CodeType], CodeType]) -> CodeType:
    """Has a function run instrumented code until `uninstall`; the original code is returned.

    make: gives the code with hooks for one with placeholders. Raises: NoSource.
    """
    while True:
        own = original_code(f)
        code = instrumented_code_of(f, own)
        with lock:
            if id(f) in installed:                # by a capture of another thread
                _, own, instrumented, count = installed[id(f)]
                installed[id(f)] = f, own, instrumented, count + 1
                return own
            if f.__code__ is own:
                instrumented = make(code)
                installed[id(f)] = f, own, instrumented, 1
                f.__code__ = instrumented
                return own


def uninstall(f: FunctionType) -> None:
    """Gives a function its original code back, once no capture needs the other one any more."""
    with lock:
        _, own, instrumented, count = installed[id(f)]
        if count > 1:
            installed[id(f)] = f, own, instrumented, count - 1
            return
        if f.__code__ is instrumented:
            f.__code__ = own
        del installed[id(f)]


def original_code(f: FunctionType) -> CodeType:
    """The code that a function has where nothing is captured."""
    while True:
        code, known = f.__code__, installed.get(id(f))
        if known is not None and code is known[2]:
            return known[1]
        if f.__code__ is code:                   # nor was it installed or uninstalled just now
            return code
