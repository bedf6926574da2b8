"""Compiled modules cimport only names that they use; ruff says so of Python modules."""

import re
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "tensorlib"
FROM = re.compile(r"^from [\w.]+ c?import (?P<names>\([^)]*\)|[\w, ]+)", re.MULTILINE)


def unused(text):
    """The names that a compiled module imports and uses nowhere."""
    found = []
    for statement in FROM.finditer(text):
        rest = text[:statement.start()] + text[statement.end():]
        names = re.sub(r"#.*", "", statement["names"]).strip("()").split(",")
        found += [name for name in (part.split(" as ")[-1].strip() for part in names)
                  if name and not re.search(rf"\b{name}\b", rest)]
    return found


def test_an_unused_name_is_noticed():
    assert unused("from a cimport (\n    b, c as d,\n)\nfrom e import f\n\nb(f)\n") == ["d"]


def test_compiled_modules_use_what_they_import():
    found = {str(path.relative_to(PACKAGE)): unused(path.read_text())
             for path in sorted(PACKAGE.rglob("*.pyx"))}
    assert len(found) > 100
    assert not {path: names for path, names in found.items() if names}
