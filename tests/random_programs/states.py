"""Draws functions that read held values in drawn ways, with changes of these between calls.

A program is a list of units. Each puts a leaf into holders, under a root, and says how the function
reads it and what it does with it. A program is data, so that it can be made smaller.
"""

import random
import textwrap
from dataclasses import dataclass, replace

from .holders import ENTERED, HOLDERS
from .leaves import DEFINED, LEAVES

IMPORTS = (
    "collections", "contextvars", "dataclasses", "functools", "itertools", "math", "operator", "os",
    "random", "types", "weakref")
ROOTS = ("global", "cell", "default", "keyword", "argument", "function", "own", "class", "module")
FORMS = ("function", "function", "method", "object", "wrapped")
HELPERS = ("", "", "helper", "given", "decorated")
VIAS = {
    "plain": "v = {p}", "twice": "v = {p}\nv = {p}", "lambda": "v = (lambda: {p})()",
    "list": "v = [{p} for _ in range(1)][0]", "generator": "v = next(iter([{p}]))",
    "inner": "def inner():\n    return {p}\nv = inner()",
    "inner default": "def inner(k={p}):\n    return k\nv = inner()",
    "walrus": "v = (k := {p})", "try": "try:\n    v = {p}\nfinally:\n    pass",
    "in a class": "class Inside:\n    k = {p}\nv = Inside.k",
    "conditional": "v = {p} if True else 1",
    "with": "with contextlib.suppress(ZeroDivisionError):\n    v = {p}",
    "partial": "v = functools.partial(lambda k: k, {p})()",
    "cached": "v = functools.lru_cache(None)(lambda: {p})()",
    "exec": "inside = {{}}\nexec('made = 1', inside)\nv = {p}",
}


@dataclass(frozen=True)
class Unit:
    """Of the names in the tables of holders and leaves; numbers choose among what these have."""

    root: str
    holders: tuple          # of (name, how it is read), the outer one first
    leaf: tuple             # of (name, which value)
    used: int
    via: str
    helped: str             # "": read in the function itself; else in a helper of this kind
    changes: tuple = ()     # of (level, which text, which value)


@dataclass(frozen=True)
class Drawn:
    """A program. order: which changes are made before each call, as (unit, change)."""

    units: tuple
    order: tuple
    form: str = "function"
    grad: bool = False


def drawn(seed, number):
    """The program of this number."""
    rng = random.Random(f"{seed} {number}")
    units = tuple(drawn_unit(rng) for _ in range(rng.choice([1, 1, 2, 3])))
    order = [()]
    places = [(i, j) for i, unit in enumerate(units) for j in range(len(unit.changes))]
    for _ in range(rng.randint(3, 7)):
        order.append(tuple(rng.sample(places, min(len(places), rng.choice([0, 1, 1, 2])))))
    return Drawn(units, tuple(order), rng.choice(FORMS), rng.random() < 0.3)


def drawn_unit(rng):
    holders = tuple((name, rng.randrange(100))
                    for name in rng.choices(list(HOLDERS), k=rng.choice([0, 1, 1, 2, 2, 3])))
    leaf = rng.choice(list(LEAVES))
    changes = tuple((rng.randrange(-1, len(holders) + 1), rng.randrange(100), rng.randrange(100))
                    for _ in range(rng.choice([0, 1, 2, 3])))
    return Unit(rng.choice(ROOTS), holders, (leaf, rng.randrange(100)), rng.randrange(100),
                rng.choice(list(VIAS)), rng.choice(HELPERS), changes)


def pick(texts, number):
    return texts[number % len(texts)]


def value_of(unit, number, level=0):
    """The text of the value from this level of holders on."""
    text = pick(LEAVES[unit.leaf[0]].made, number).format()
    for name, _ in reversed(unit.holders[level:]):
        text = HOLDERS[name].made.format(v=text)
    return text


def path_of(unit, root, level):
    """The text that reads what the holders down to a level hold."""
    text = root
    for name, how in unit.holders[:level]:
        text = pick(HOLDERS[name].read, how).format(h=text)
    return text


def root_of(unit, i, inside):
    """How a unit's root is read, in the function or outside of it."""
    own = "self" if inside else "home"
    return {"global": f"G{i}", "cell": f"c{i}",
            "default": f"d{i}" if inside else f"plain.__defaults__[{i}]",
            "keyword": f"k{i}" if inside else f"plain.__kwdefaults__['k{i}']",
            "argument": f"a{i}" if inside else f"given['a{i}']", "function": f"noted.k{i}",
            "own": f"{own}.k{i}", "class": f"Home.c{i}", "module": f"other.k{i}"}[unit.root]


def change_of(unit, i, change, form):
    """The statements of a change, or None where the level takes none."""
    level, how, number = change
    root = root_of(unit, i, False)
    depth = len(unit.holders)
    if level < 0:                                    # the root itself
        value = value_of(unit, number)
        if unit.root == "default":
            return (f"plain.__defaults__ = tuple({value} if i == {i} else v "
                    "for i, v in enumerate(plain.__defaults__))")
        return f"{root} = {value}"
    if level >= depth:
        texts = LEAVES[unit.leaf[0]].changed
        return pick(texts, how).format(p=path_of(unit, root, depth)) if texts else None
    texts = HOLDERS[unit.holders[level][0]].written
    return pick(texts, how).format(h=path_of(unit, root, level),
                                   v=value_of(unit, number, level + 1)) if texts else None


def text_of(program):
    """The program as the text of a module."""
    units = list(enumerate(program.units))
    lines = [f"import {name}" for name in IMPORTS] + [
        "import contextlib", "import numpy as np", "import tensorlib as tl",
        "from tensorlib import nn"]
    names = dict.fromkeys(name for unit in program.units for name, _ in unit.holders)
    lines += [HOLDERS[name].defined for name in names] + [DEFINED, ENTERED, """
def decorated(f):
    @functools.wraps(f)
    def inside(*args, **kwargs):
        return f(*args, **kwargs)
    return inside
def noted():
    pass
other = types.ModuleType('other')
class Home:
    pass
"""]
    built = ["home = Home()"]
    body, signature, keywords, given = ["y = x * 1"], [], [], []
    for i, unit in units:
        value = value_of(unit, unit.leaf[1])
        root = root_of(unit, i, False)
        if unit.root == "global":
            lines.append(f"{root} = {value}")
        elif unit.root == "argument":
            given.append(f"a{i}={value}")
        elif unit.root == "keyword":
            keywords.append(f"k{i}={value}")
        elif unit.root != "default":
            built.append(f"{root} = {value}")
        signature.append(f"d{i}={value}" if unit.root == "default" else f"d{i}=None")
        if unit.root == "argument":
            keywords.append(f"a{i}")
        body += reading(unit, i, lines)
    body.append("return y")
    star = ["*", *keywords] if keywords else []
    parameters = ", ".join(["self", "x", *signature, *star] if program.form == "method" or any(
        unit.root == "own" for unit in program.units) else ["x", *signature, *star])
    takes_self = parameters.startswith("self")
    if takes_self:
        built[0] = "home = Home()\nplain = Home.call"
        shape = [f"def call({parameters}):", *indented(body)]
        defined = [*shape, "Home.call = call", "plain = call"]
        bound = {"object": "f = Called(home)", "wrapped": "f = functools.partial(call, home)"}.get(
            program.form, "f = home.call")
        built = ["home = Home()"] + built[1:] + defined + [bound]
    else:
        built = built + [f"def f({parameters}):", *indented(body), "plain = f"]
        if program.form == "wrapped":
            built.append("f = decorated(f)")
        elif program.form == "object":
            built.append("f = functools.partial(f)")
    if takes_self and program.form == "object":
        lines.append("class Called:\n    def __init__(self, home):\n        self.home = home\n"
                     "    def __call__(self, *a, **k):\n        return self.home.call(*a, **k)")
    built.append(f"given = dict({', '.join(given)})")
    built += steps_of(program)
    looks = ", ".join(root_of(unit, i, False) for i, unit in units)
    names = [f"c{i}" for i, unit in units if unit.root == "cell"]
    built += ["def look():", f"    return [{looks}]", "return f, steps, look"]
    return "\n".join([*lines, "def build():", *indented(built)]) + "\n"


def indented(lines):
    return textwrap.indent("\n".join(lines), "    ").split("\n")


def reading(unit, i, lines):
    """The lines that read a unit in the function; a helper's go to `lines`."""
    root = root_of(unit, i, True)
    depth = len(unit.holders)
    path = path_of(unit, root, depth)
    via = VIAS[unit.via]
    if unit.via == "eval" and ('"' in path or unit.root == "cell"):
        via = VIAS["plain"]
    before = []
    if unit.helped == "helper" and unit.root in ("global", "module", "function", "class"):
        lines += [f"def helper{i}():", *indented(via.format(p=path).split("\n")), "    return v"]
        before = [f"v = helper{i}()"]
    elif unit.helped:
        lines += (["@decorated"] if unit.helped == "decorated" else []) + [
            f"def helper{i}(h):",
            *indented(via.format(p=path_of(unit, "h", depth)).split("\n")), "    return v"]
        before = [f"v = helper{i}({root})"]
    else:
        before = via.format(p=path).split("\n")
    used = pick(LEAVES[unit.leaf[0]].used, unit.used).format(p="v")
    return before + used.split("\n")


def steps_of(program):
    """The lines that list the steps: calls, and changes between them."""
    lines, names = [], []
    cells = ", ".join(f"c{i}" for i, unit in enumerate(program.units) if unit.root == "cell")
    globals_ = ", ".join(f"G{i}" for i, unit in enumerate(program.units) if unit.root == "global")
    for number, changes in enumerate(program.order):
        texts = []
        for i, j in changes:
            unit = program.units[i]
            text = change_of(unit, i, unit.changes[j], program.form)
            if text is not None:
                texts += text.split("\n")
        if texts:
            lines += [f"def change{number}():"]
            lines += [f"    nonlocal {cells}"] if cells else []
            lines += [f"    global {globals_}"] if globals_ else []
            lines += ["    with contextlib.suppress(Exception):", *indented(indented(texts))]
            names.append(f"change{number}")
        grad = ", requires_grad=True" if program.grad else ""
        names.append(f"dict(also=given, x=lambda: tl.tensor([0.3, -0.7, {number + 1}.1]{grad}))")
    return lines + ["steps = [" + ",\n    ".join(names) + "]"]


def smaller(program):
    """Programs with one thing less, the least first."""
    units, order = program.units, program.order
    for i in range(len(units)):
        if len(units) > 1:
            yield replace(program, units=units[:i] + units[i + 1:], order=tuple(
                tuple((a - (a > i), b) for a, b in step if a != i) for step in order))
    for i in range(1, len(order)):
        if len(order) > 2:
            yield replace(program, order=order[:i] + order[i + 1:])
        for j in range(len(order[i])):
            less = order[i][:j] + order[i][j + 1:]
            yield replace(program, order=order[:i] + (less,) + order[i + 1:])
    for i, unit in enumerate(units):
        for less in smaller_unit(unit):
            yield replace(program, units=units[:i] + (less,) + units[i + 1:])
    if program.form != "function":
        yield replace(program, form="function")
    if program.grad:
        yield replace(program, grad=False)


def smaller_unit(unit):
    for k in range(len(unit.holders)):
        yield replace(unit, holders=unit.holders[:k] + unit.holders[k + 1:], changes=tuple(
            (level - (level > k), how, value) for level, how, value in unit.changes))
        if unit.holders[k][1] != 0:
            simple = (unit.holders[k][0], 0)
            yield replace(unit, holders=unit.holders[:k] + (simple,) + unit.holders[k + 1:])
    if unit.via != "plain":
        yield replace(unit, via="plain")
    if unit.helped:
        yield replace(unit, helped="")
    for root in ("global", "cell"):
        if unit.root not in ("global", "cell"):
            yield replace(unit, root=root)
    if unit.used:
        yield replace(unit, used=0)
    if unit.leaf[1]:
        yield replace(unit, leaf=(unit.leaf[0], 0))


def shrunk(kind, program, fails):
    """The smallest program of a kind (this module, say) found that still fails."""
    while True:
        for less in kind.smaller(program):
            if fails(less):
                program = less
                break
        else:
            return program
