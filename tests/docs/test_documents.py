"""What the documents say holds: their examples run, their links lead somewhere."""

import re
import textwrap
from importlib.util import find_spec
from pathlib import Path

from cases import each
from process import run_each

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(
    path for path in [*ROOT.glob("*.md"), *ROOT.glob("*/*.md"), *ROOT.glob("*/*/*.md")]
    if not path.relative_to(ROOT).parts[0].startswith((".", "build")))
PYTHON_BLOCK = re.compile(r"^( *)```python\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)

# Each in a process of its own, as an example may register an operation.
RUN = f"""
import doctest, os, sys, tensorlib
import tensorlib.nn, tensorlib.optim, tensorlib.program.reads.instrumenting     # as many of them do
os.chdir({str(ROOT)!r})               # where the paths in examples begin
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE     # lines may be broken for the reader
def run(name, text):
    test = doctest.DocTestParser().get_doctest(text, {{}}, name, name, 0)
    failed, attempted = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=sys.stderr.write)
    assert attempted and not failed, f"{{name}}: {{failed}} of {{attempted}} examples failed"
"""


def session(path, whole=False):
    """The examples of a document that begin with >>>, as one session.

    Without those that export where the package onnx is not installed, unless `whole`.
    """
    blocks = (textwrap.dedent(match[2]) for match in PYTHON_BLOCK.finditer(path.read_text()))
    return "\n".join(block for block in blocks if ">>>" in block and (
        whole or find_spec("onnx") or ".onnx.export(" not in block))


def name_of(path):
    return str(path.relative_to(ROOT))


FOLDERS = sorted({path.parent for path in DOCUMENTS if session(path)})


@each("folder", FOLDERS, ids=name_of)
def test_the_examples_run(folder):
    run_each(RUN, [f"run({name_of(path)!r}, {session(path)!r})" for path in DOCUMENTS
                   if path.parent == folder and session(path)])


@each("path", DOCUMENTS, ids=name_of)
def test_every_example_is_run(path):
    shown = path.read_text().count(">>> ")
    mentioned = path.read_text().count("`>>>`")
    assert session(path, whole=True).count(">>> ") == shown - mentioned


def anchors(path):
    """What links to the headings of a document end with, as GitHub makes it."""
    return {re.sub(r"[^\w\- ]", "", text.lower()).strip().replace(" ", "-")
            for text in HEADING.findall(path.read_text())}


@each("path", DOCUMENTS, ids=name_of)
def test_links_lead_to_files_and_headings(path):
    for link, heading in LINK.findall(path.read_text()):
        target = path.parent / link if link else path
        assert target.exists(), link
        assert not heading or heading in anchors(target), f"{link}#{heading}"
