"""Operations are known by their records: few places compare their names with strings."""

import ast
import re
from pathlib import Path

import pytest

import tensorlib

PACKAGE = Path(tensorlib.__file__).parent

# Where operations are declared, a name is that of the block; there, and on the public floors, most
# strings are options that have the names of operations ("mean", "zeros").
BLOCKS = ("linalg", "distributed", "nn", "distributions", "optim", "data", "serialization",
          "testing", "shell")
ASKED = re.compile(r"\b(op|operation|record|call)\.(name|type)\b")
# What holds the name of an operation in a comparison.
OPERATION = re.compile(r"(\.|^|_)(name|type|type_|base|operation|stem|called|__name__|co_name)$")


def mentions(node, names):
    """The names of operations among the strings of an expression or a container."""
    parts = node.elts if isinstance(node, (ast.Tuple, ast.Set, ast.List)) else [node]
    return [part.value for part in parts
            if isinstance(part, ast.Constant) and part.value in names]


def tables(nodes, names):
    """Dicts, sets and tuples of names of operations, or mostly of such."""
    for node in nodes:
        parts = node.keys if isinstance(node, ast.Dict) else node.elts if isinstance(
            node, (ast.Tuple, ast.Set, ast.List)) else ()
        found = [part for part in parts if isinstance(part, ast.Constant) and part.value in names]
        if len(found) > 1 and 2 * len(found) >= len(parts):
            yield node.lineno


def comparisons(nodes, names):
    """Comparisons, and tests of membership, of what an operation is called."""
    for node in nodes:
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            if any(mentions(side, names) for side in sides) and any(
                    OPERATION.search(ast.unparse(side)) for side in sides):
                yield node.lineno
        elif isinstance(node, ast.Match) and OPERATION.search(ast.unparse(node.subject)):
            yield from (case.pattern.value.lineno for case in node.cases
                        if isinstance(case.pattern, ast.MatchValue)
                        and mentions(case.pattern.value, names))


def cython_comparisons(text, names):
    """The same in Cython, by the pattern of a line."""
    for number, line in enumerate(text.splitlines(), 1):
        found = re.search(
            r"\b(?:op|operation|record|call)\.(?:name|type)\s*(?:==|!=|in|not in)\s*(.*)", line)
        if found and set(re.findall(r'"(\w+)"', found[1])) & names:
            yield number


def known_by_name():
    names = {name for name in tensorlib.ops.registry if "." not in name}
    for path in sorted(x for suffix in ("*.py", "*.pyx") for x in PACKAGE.rglob(suffix)):
        text = path.read_text()
        if path.suffix == ".py":
            place = path.relative_to(PACKAGE).parts
            in_blocks = place[0] in BLOCKS or place[0] == "ops" and len(place) > 2
            if in_blocks and not ASKED.search(text):
                continue
            nodes = [*ast.walk(ast.parse(text))]
            found = {*comparisons(nodes, names), *(() if in_blocks else tables(nodes, names))}
            if in_blocks:
                found = {line for line in found if ASKED.search(text.splitlines()[line - 1])}
        else:
            found = cython_comparisons(text, names)
        yield from (f"{path.relative_to(PACKAGE)}:{line}: {text.splitlines()[line - 1].strip()}"
                    for line in sorted(found))


# What is left, with the reason.
BY_NAME = {
    "_core/apply/operators.pyx": "view(dtype) and view(*sizes) are two operations in a method",
    "_core/interpreters/stack.pyx": "`x[key]`, of a key as it is written",
    "shell/overrides.py": "`x[key]`, as PyTorch names it to a mode",
    "ops/proxies.py": "the operations that Python's operators stand for",
    # options, fields and parameters that have the name of an operation
    "_core/arrays/printing.py": "an option of printing",
    "_core/base/limits.py": "the fields of finfo",
    "autograd/graph.py": "the modes of hooks",
    "ops/publish.py": "names of parameters",
    "program/fx/code.py": "functions of Python's module `operator`, and their signs",
    "program/ir/call_types.py": "parameters of a method that draws",
    "program/parsing.py": "words of the text of programs",
}


def test_few_places_know_operations_by_their_names():
    """What passes, batches and exports must know is a field of the record."""
    found = list(known_by_name())
    assert len(found) <= 15, "\n".join(found)
    assert {line.partition(":")[0] for line in found} <= BY_NAME.keys(), "\n".join(found)


@pytest.mark.parametrize("text, count", [
    ("if op.name == 'tanh': pass", 1),
    ("if call.type in ('tanh', 'exp'): pass", 2),
    ("if base not in {'tanh'}: pass", 1),
    ("TABLE = {'tanh': 1, 'exp': 2}", 1),
    ("TABLE = frozenset(('tanh', 'exp', 'other'))", 1),
    ("if reduction == 'mean': pass", 0),
    ("rule(operations.tanh)(function)", 0),
])
def test_what_knows_an_operation_by_its_name_is_noticed(text, count):
    names, nodes = {"tanh", "exp", "mean"}, [*ast.walk(ast.parse(text))]
    assert len([*comparisons(nodes, names), *tables(nodes, names)]) == count


def test_a_comparison_with_a_name_is_noticed_in_cython():
    text = 'if op.name == "tanh":\n    pass\nif name == "tanh" or call.type in ("exp", "sin"):\n'
    assert list(cython_comparisons(text, {"tanh", "exp"})) == [1, 3]
