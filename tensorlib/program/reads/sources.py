"""Instrumented code, made from a function's source and installed in place of its code.

While a capture runs, the functions that it meets have that code, whoever calls them, including
Python's own C code. Other threads that run them meanwhile behave as before.
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

from tensorlib.program.reads.instrumenting import PLACEHOLDER, instrument
from tensorlib.program.reads.scopes import inside

FUTURES = 0
for feature in __future__.all_feature_names:
    FUTURES |= getattr(__future__, feature).compiler_flag


class NoSource(Exception):
    """There is no source that gives a function's code."""


class File:
    """A file's statements, with the pairs of codes that each gives: as it stands, and rewritten."""

    def __init__(self, lines: list[str]):
        self.lines = lines
        tree = ast.parse("".join(lines))
        self.spans = [(first_line(x), x.end_lineno or 0) for x in tree.body]
        self.imports = sorted({x.asname or x.name.split(".")[0] for x in inside(tree)
                               if isinstance(x, ast.alias)} - {"*"})
        self.pairs: dict[tuple[int, int, int], dict[CodeType, CodeType]] = {}

    def code_for(self, code: CodeType) -> CodeType:
        """The code that tells what it reads, for one that a statement gives."""
        for first, last in self.spans:
            if first <= code.co_firstlineno <= last:
                key = first, last, code.co_flags & FUTURES
                if key not in self.pairs:
                    text = "\n" * (first - 1) + "".join(self.lines[first - 1:last])
                    self.pairs[key] = pairs_of(text, self.imports, code.co_filename,
                                               key[2])
                found = self.pairs[key].get(code)
                if found is not None:
                    return found
        raise NoSource("its source is not what runs")


files: dict[str, File] = {}
made: dict[int, tuple[Any, CodeType | str]] = {}       # by the id of a code


def code_for(f: FunctionType, code: CodeType) -> CodeType:
    """For the own code of a function one that tells what it reads, with marks for the functions
    that it tells.

    Raises: NoSource.
    """
    known = made.get(id(code))
    if known is None or known[0]() is not code:
        try:
            found: CodeType | str = file_of(f).code_for(code)
        except (NoSource, SyntaxError) as error:       # or a warning that was made an error
            found = str(error)             # with its frames it would keep what these held
        known = made[id(code)] = weakref.ref(code, lambda _, key=id(code): made.pop(key, None)), (
            found)
    if isinstance(known[1], str):
        raise NoSource(known[1])
    return known[1]


def file_of(f: FunctionType) -> File:
    """The file that a function stands in. Raises: NoSource."""
    path = f.__code__.co_filename
    if path.startswith("<frozen "):
        path = f.__globals__.get("__file__") or path
    lines = linecache.getlines(path, f.__globals__)
    if path == "<string>" and f.__globals__.get("__name__") == "__main__":
        lines = lines or command_lines()
    if not lines:
        raise NoSource("its source code is not available")
    found = files.get(path)
    if found is None or found.lines is not lines and found.lines != lines:
        try:
            found = files[path] = File(lines)
        except (SyntaxError, ValueError, RecursionError):
            raise NoSource("its source is not what runs") from None
    return found


def definition_of(f: FunctionType) -> tuple[str, str | None, Any]:
    """Where a function is defined: the path, the class around, and the statement, newly parsed.

    Raises: NoSource.
    """
    code = own_code(f)
    file = file_of(f)
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


def compiled_alone(statement: Any, tells: bool, path: str, flags: int) -> CodeType:
    """The code of a statement, or of one that tells what it reads. Changes the statement."""
    tree = ast.Module([instrument(statement) if tells else statement], [])
    return compile(tree, path, "exec", flags & FUTURES, dont_inherit=True)


def register(plain: CodeType, telling: CodeType) -> None:
    """Has a code without a file, and those in it, be known with those that tell what they read."""
    found = {plain: telling}
    add_pairs(plain, telling, found)
    for code, other in found.items():
        made[id(code)] = weakref.ref(code, lambda _, key=id(code): made.pop(key, None)), other


def command_lines() -> list[str]:
    """The source that Python was given as `python -c source`."""
    given = sys.orig_argv
    return given[given.index("-c") + 1].splitlines(True) if "-c" in given[:-1] else []


def first_line(x: Any) -> int:
    """The line of a statement, or that of its first decorator."""
    return min([x.lineno, *(d.lineno for d in getattr(x, "decorator_list", ()))])


def pairs_of(text: str, imports: list[str], path: str, flags: int) -> dict[CodeType, CodeType]:
    """The codes of the functions in statements, and those that tell what they read.

    imports: the names that the module imports, which the compiler has methods of called otherwise.
    """
    trees = [ast.parse(text) for _ in range(2)]
    trees[1].body = list(map(instrument, trees[1].body))
    for tree in trees if imports else ():
        names: ast.stmt = ast.Import([ast.alias(name) for name in imports])
        tree.body.insert(0, ast.fix_missing_locations(names))
    plain, telling = (compile(x, path, "exec", flags, dont_inherit=True) for x in trees)
    found: dict[CodeType, CodeType] = {}
    add_pairs(plain, telling, found)
    return found


def add_pairs(plain: CodeType, telling: CodeType, found: dict[CodeType, CodeType]) -> None:
    """Adds the pairs of the functions that a code makes."""
    inner = [[x for x in code.co_consts if isinstance(x, CodeType)] for code in (plain, telling)]
    if len(inner[0]) != len(inner[1]):
        return
    for x, y in zip(*inner):
        if (x.co_name, x.co_firstlineno, x.co_freevars, x.co_varnames[:x.co_argcount]) == (
                y.co_name, y.co_firstlineno, y.co_freevars, y.co_varnames[:y.co_argcount]):
            found[x] = y
            add_pairs(x, y, found)


def filled(code: CodeType, readers: dict[str, Any], function: Callable[[str, str], Any]) -> (
        CodeType):
    """A code with functions in the place of its marks.

    readers: what reads each free variable, by its name; None for one that the function made itself.
    function: what stands for a mark, by what it says and its name.
    """
    consts = []
    for x in code.co_consts:
        if isinstance(x, CodeType):
            inner = {name: None if name in code.co_cellvars else readers.get(name)
                     for name in x.co_freevars}
            x = filled(x, inner, function)
        elif isinstance(x, str) and x.startswith(PLACEHOLDER):
            what, name = x[len(PLACEHOLDER):].split(" ", 1)
            cell = readers.get(name) if what.endswith("_cell") else None
            x = function(what, name) if cell is None else getattr(cell, what)
        consts.append(x)
    return code.replace(co_consts=tuple(consts))


# ---- in the place of a function's own code -------------------------------------------------------

# Who looks without the lock finds the own code, whatever other threads do meanwhile: what is
# replaced is recorded before a function gets the other code, and until it has its own one back. A
# collection of garbage may come while the lock is held, and end a capture.
lock = RLock()
replaced: dict[int, tuple[FunctionType, CodeType, CodeType, int]] = {}     # by id, with a count


def replace(f: FunctionType, make: Callable[[CodeType], CodeType]) -> CodeType:
    """Has a function run the code that is made of its own, which is returned, until `restore`."""
    while True:
        own = own_code(f)
        code = code_for(f, own)
        with lock:
            if id(f) in replaced:                # by a capture of another thread
                _, own, telling, count = replaced[id(f)]
                replaced[id(f)] = f, own, telling, count + 1
                return own
            if f.__code__ is own:
                telling = make(code)
                replaced[id(f)] = f, own, telling, 1
                f.__code__ = telling
                return own


def restore(f: FunctionType) -> None:
    """Gives a function its own code back, once nobody needs the other one any more."""
    with lock:
        _, own, telling, count = replaced[id(f)]
        if count > 1:
            replaced[id(f)] = f, own, telling, count - 1
            return
        if f.__code__ is telling:
            f.__code__ = own
        del replaced[id(f)]


def own_code(f: FunctionType) -> CodeType:
    """The code that a function has where nobody captures."""
    while True:
        code, known = f.__code__, replaced.get(id(f))
        if known is not None and code is known[2]:
            return known[1]
        if f.__code__ is code:                   # nor was it replaced or restored just now
            return code
