"""Every function and class of the package that has a public name says what it is."""

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "tensorlib"
KINDS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def undocumented(text):
    """The names without a leading underscore that a module defines without a docstring."""
    return [node.name for node in ast.parse(text).body if isinstance(node, KINDS)
            and not node.name.startswith("_") and not ast.get_docstring(node)]


def test_a_missing_docstring_is_noticed():
    assert undocumented('def f():\n    """x"""\nclass A:\n    pass\ndef _g():\n    pass') == ["A"]


def test_functions_and_classes_have_docstrings():
    paths = sorted(PACKAGE.rglob("*.py"))
    assert len(paths) > 100
    missing = [f"{path.relative_to(PACKAGE)}: {name}"
               for path in paths for name in undocumented(path.read_text())]
    assert not missing, "\n".join(missing)
