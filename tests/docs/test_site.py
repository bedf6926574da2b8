"""What the documentation site is made of, without building it."""

import re
import sys
from pathlib import Path

import pytest

import tensorlib as tl
from process import run_forked

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))
from tools.reference import MODULES  # noqa: E402  no part of the package
from tools.site import documents, examples, figures, pictures, reference  # noqa: E402
from tools.site.docstrings import markdown  # noqa: E402


def test_docstrings_become_markdown():
    text = markdown("What `x_` gives.\n\nShapes: (*, N) -> (*, N).\nargs_: what_it takes.\n"
                    "\nArgs:\n    input, dim: two things.\n\n>>> f(1)\n2", ["input", "dim"])
    assert text.startswith("What `x_` gives.\n\n**Shapes**: (\\*, N) -\\> (\\*, N).")
    assert "- `input`, `dim`: two things." in text
    assert text.endswith("```python\n>>> f(1)\n2\n```")


def test_links_lead_to_pages_pictures_and_copies_of_files(tmp_path):
    known = {**documents.pages(), **documents.REPLACED}
    text = documents.relinked(
        "[a](../benchmarks/README.md#figures) ![b](graph.svg) [`c`](../setup.py) "
        "[d](operations.md#matrix-products)\n\n```python\nf[0](x)\n\n```\n", "docs/data.md", known,
        tmp_path)
    assert "[a](benchmarks.md#figures)" in text and "![b](pictures/docs/graph.svg)" in text
    assert '<a class="source" href="source/setup.py.txt">`c`</a>' in text
    assert "[d](reference/index.md)" in text and "```python\nf[0](x)\n```" in text
    assert (tmp_path / "pictures/docs/graph.svg").read_bytes().startswith(b"<")
    assert (tmp_path / "files/source/setup.py.txt").read_text() == (ROOT / "setup.py").read_text()


def test_links_of_the_reference_lead_to_pages(tmp_path):
    for _, title, text in MODULES:
        shown = reference.group_page(reference.Group(title, [], text), {}, tmp_path)
        assert re.findall(r"\]\((?!index)([^)#]*)", shown) == [
            f"../{documents.pages()[f'docs/{name}']}.md"
            for name in re.findall(r"\]\(([^)#]*)", text)], title


def test_the_first_page_lists_every_page():
    listed = documents.with_unlisted((ROOT / "docs" / "index.md").read_text()).split()
    assert {name for name in documents.pages().values() if name != "index"} <= set(listed)
    lists = re.findall(r"{toctree}\n(.*?)```", (ROOT / "docs" / "index.md").read_text(), re.DOTALL)
    for name in re.findall(r"^[\w/]+$", "".join(lists), re.MULTILINE):
        assert name in {*documents.pages().values(), "tour", "reference/index"}, name


def test_a_picture_breaks_where_a_function_has_no_value():
    drawn = pictures.picture("log", tl.log)
    values = re.search(r'class="value" d="([^"]*)"', drawn)[1]
    assert values.count("M") == 1 and values.count("L") > 150      # nothing left of zero
    assert "its derivative" in drawn and "derivative" not in pictures.picture("isnan", tl.isnan)
    assert pictures.picture("sum", tl.sum) is None


def test_examples_are_what_calls_gave():
    assert examples.session(["x = tl.ones(2)", "x * 2"]) == (
        ">>> x = tl.ones(2)\n>>> x * 2\ntensor([2., 2.])")
    assert examples.session(["tl.ones(2) @ tl.ones(3)"]) is None
    text = "with tl.no_grad():\n    tl.is_grad_enabled()\ntl.ones(2) @ tl.ones(3)"
    shown = examples.session(examples.statements_of(text), raises=True)
    assert shown.startswith(">>> with tl.no_grad():\n...     tl.is_grad_enabled()\nFalse\n>>> tl.")
    assert shown.endswith("\nTraceback (most recent call last):\n    ...\nRuntimeError: matmul: "
                          "inner dimensions differ: (2,) @ (3,)")
    with pytest.raises(AssertionError, match="no error is raised by 1"):
        examples.session(["1"], raises=True)


# In a process of its own, as some sessions register operations. The site is not built if a page has
# no example.
EXAMPLES = """
from tools.site import examples, reference
entries = {entry.qualified: entry for group in reference.groups() for entry in group.entries}
written = examples.written()
assert not written.keys() - entries.keys(), written.keys() - entries.keys()
unseen = [name for name in written if examples.has_example(entries[name])]
assert not unseen, f"the docstrings of these have examples: {unseen}"
rest = [name for name, entry in entries.items() if name not in written and not entry.alias_of
        and not examples.has_example(entry)]
lacking = []
for name in [*written, *rest]:
    try:
        if not examples.example(entries[name]):
            lacking.append(name)
    except ImportError:             # a package that the extra `docs` has
        assert name in written
assert not lacking, f"no example of {lacking}: add one to its docstring or to tools/site/sessions"
"""


def test_every_page_of_the_reference_has_an_example_that_runs():
    run_forked(EXAMPLES)


def test_figures_are_found_by_the_names_of_operations():
    assert [dtype for dtype, *_ in figures.errors()["tanh"]] == [
        "float32", "float64", "complex64", "complex128"]
    assert figures.speeds()["matmul"] and "a.tanh(), 65,536" in dict(
        (case, ratio) for case, *_, ratio in figures.speeds()["tanh"])
    assert "## Accuracy" in figures.tables("exp") and figures.tables("no_such_name") == ""
    assert [figures.duration(ns) for ns in (66.4, 1520, 5e6)] == ["66.4 ns", "1.52 us", "5 ms"]
