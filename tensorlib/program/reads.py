"""The names that the byte code of a function reads: globals, closures, and attributes of these."""

import dis
from functools import lru_cache
from types import CodeType, FunctionType
from typing import NamedTuple

Chain = tuple[str, ...]                # `a.b["c"]` is ("a", "b", "c")
ROOTS = ("GLOBAL", "DEREF", "FAST")    # a global, a variable of a closure, and one of its own


class Reads(NamedTuple):
    """The chains that begin with a global, a variable of a closure, and the first argument; and the
    names that are read of what nobody knows before the function runs."""

    globals: set[Chain]
    cells: set[Chain]
    own: set[Chain]
    anywhere: set[str]


@lru_cache(1024)
def reads_of(code: CodeType) -> Reads:
    """What a function reads, and those that are defined in it."""
    found = Reads(set(), set(), set(), set())
    first = code.co_varnames[0] if code.co_argcount else ""
    add_reads(code, first, set(code.co_freevars), True, found)
    return found


def add_reads(code: CodeType, first: str, free: set[str], is_outer: bool, found: Reads) -> None:
    """Adds the reads of a function's code.

    first: the first argument of the outer function. free: what that has from around itself.
    """
    for kind, chain in chains_in(code):
        root = chain[0]
        if kind == "GLOBAL":
            found.globals.add(chain)
        elif kind == "DEREF" and root in free:
            found.cells.add(chain)
        elif root == first and (is_outer or kind == "DEREF"):
            found.own.add(chain[1:])
        else:                            # an argument, or what was assigned to a variable
            found.anywhere.update(chain[1:])
    for x in code.co_consts:
        if isinstance(x, CodeType):
            add_reads(x, first, free, False, found)


def chains_in(code: CodeType) -> list[tuple[str, Chain]]:
    """Each chain in a function's code, with what its root is, of ROOTS, or ""."""
    found: list[tuple[str, Chain]] = []
    kind, chain, text = "", ("",), None
    for step in dis.get_instructions(code):
        name, value = step.opname, step.argval
        if name in ("LOAD_ATTR", "LOAD_METHOD"):
            chain = (*chain, value)
        elif name == "BINARY_SUBSCR" and text is not None:
            chain = (*chain, text)
        elif name == "LOAD_CONST" and isinstance(value, str):
            text = value
            continue
        else:
            kind = next((x for x in ROOTS if name.startswith("LOAD_" + x)), "")
            chain = (value[-1] if type(value) is tuple else value,) if kind else ("",)
        text = None
        found.append((kind, chain))
    return found


@lru_cache(1024)
def functions_of(kind: type) -> dict[str, FunctionType]:
    """The methods of a class, and the functions of its properties, by name."""
    found = {}
    for base in reversed(kind.__mro__):
        for name, x in vars(base).items():
            x = x.fget if isinstance(x, property) else getattr(x, "__func__", x)
            if isinstance(x, FunctionType) and base is not object:
                found[name] = x
    return found
