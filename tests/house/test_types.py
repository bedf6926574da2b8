"""What type checkers see of the package: typical programs pass their strict modes, mistakes do not.

Each checker's tests run where it is installed: mypy, and pyright (which fetches its program once).
"""

import ast
import doctest
import importlib
import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tensorlib as tl

ROOT = Path(__file__).parents[2]
PACKAGE = Path(tl.__file__).parent
TYPING = ROOT / "tests" / "typing"
PAGES = ("README.md", "docs/first_steps.md", "docs/gradients.md", "docs/transforms.md")
PYTHON_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder of the package as it is installed: with the stubs of modules under other names."""
    setup = ROOT / "setup.py"
    if not setup.exists():
        return PACKAGE.parent
    folder = tmp_path_factory.mktemp("installed")
    for suffix in ("py", "pyi", "typed"):
        for path in PACKAGE.rglob(f"*.{suffix}"):
            write(folder / "tensorlib" / path.relative_to(PACKAGE), path.read_text())
    for place, text in of_setup(setup, "OTHER_NAMES", "stubs_of_other_names")(PACKAGE):
        write(folder / "tensorlib" / place, text)
    return folder


def of_setup(path, *names):
    """The last of some definitions of `setup.py`, which imports what only a build needs."""
    found = {"Path": Path}
    body = [x for x in ast.parse(path.read_text()).body if getattr(x, "name", None) in names or (
        isinstance(x, ast.Assign) and ast.unparse(x.targets[0]) in names)]
    exec(compile(ast.Module(body, []), str(path), "exec"), found)
    return found[names[-1]]


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def program_of(block):
    """The statements of a session, with what it shows printed, and Any for what has no types."""
    body = []
    for example in doctest.DocTestParser().get_examples(block):
        body += ast.parse(example.source).body
        last = body[-1]
        if example.want and isinstance(last, ast.Expr) and not (
                example.exc_msg and isinstance(last.value, ast.Call)):
            last.value = ast.Call(ast.Name("print"), [last.value], [])
    for node in ast.walk(module := ast.Module(body, [])):
        if isinstance(node, ast.FunctionDef):
            none = node.name == "__init__"
            node.returns = node.returns or ast.Name("None" if none else "Any")
            for parameter in node.args.args:
                parameter.annotation = parameter.annotation or ast.Name("Any")
    text = ast.unparse(ast.fix_missing_locations(module))
    used = [line for line, name in (("from typing import Any", "Any"), ("import numpy as np", "np"),
                                    ("import tensorlib as tl", "tl"))
            if re.search(rf"\b{name}\b", text) and line not in text]
    return "\n".join([*used, text, ""])


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """A folder with the blocks of the first pages, the examples and typical calls, as programs."""
    folder = tmp_path_factory.mktemp("typed")
    for i, name in enumerate(PAGES):
        blocks = [match[1] for match in PYTHON_BLOCK.finditer((ROOT / name).read_text())]
        (folder / f"page_{i}.py").write_text(program_of("\n".join(blocks)))
    for path in [*TYPING.glob("*.py"), *(ROOT / "examples").glob("*.py")]:
        (folder / path.name).write_text(path.read_text())
    return folder


def run_mypy(folder, names, installed):
    """The lines that mypy reports, by file."""
    pytest.importorskip("mypy")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent",
         "--disable-error-code=import-untyped",
         "--disable-error-code=no-untyped-call",      # of distributions, which have no types yet
         "--no-error-summary", "--hide-error-context",
         f"--cache-dir={os.devnull}", *names], cwd=folder, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(installed)})
    assert not done.stderr, done.stderr
    return [line for line in done.stdout.splitlines() if ": error: " in line]


def run_pyright(folder, names, installed):
    """The lines that pyright reports."""
    pytest.importorskip("pyright")
    (folder / "pyrightconfig.json").write_text(json.dumps(
        {"typeCheckingMode": "strict", "extraPaths": [str(installed)]}))
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, *names],
        cwd=folder, capture_output=True, text=True,
        env={**os.environ, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"})
    found = json.loads(done.stdout)["generalDiagnostics"]
    return [f"{Path(each['file']).name}:{each['range']['start']['line'] + 1}: error: "
            f"{each['message']}" for each in found if each["severity"] == "error"]


CHECKERS = pytest.mark.parametrize("run", [run_mypy, run_pyright], ids=["mypy", "pyright"])


@CHECKERS
def test_programs_pass_in_strict_mode_and_every_mistake_is_found(programs, installed, run):
    """In one run, which reads the stubs and those of NumPy once."""
    pytest.importorskip("matplotlib")       # the example uses its types
    lines = (TYPING / "wrong.py").read_text().splitlines()
    wrong = {number for number, line in enumerate(lines, 1) if line.endswith("# wrong")}
    assert len(wrong) > 30
    errors = run(programs, sorted(path.name for path in programs.glob("*.py")), installed)
    mistakes = [error for error in errors if error.startswith("wrong.py:")]
    assert [error for error in errors if error not in mistakes] == []
    assert {int(error.split(":")[1]) for error in mistakes} == wrong


def test_the_mistakes_are_mistakes():
    """Each line marked wrong raises; the types refuse nothing that runs."""
    text = (TYPING / "wrong.py").read_text()
    head, *calls = re.split(r"\n(?=.*# wrong\n)", text)
    names = {}
    exec(compile(head, "wrong.py", "exec"), names)
    fine = []
    for call in calls:
        try:
            exec(call, names)
        except Exception:
            continue
        fine.append(call)
    assert [call for call in fine if not call.startswith("text: str")] == []


def test_the_typical_calls_run():
    text = (TYPING / "right.py").read_text()
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(PACKAGE.parent)})
    assert done.returncode == 0, done.stderr


# ---- stubs that are written by hand --------------------------------------------------------------

WRITTEN = [path for path in sorted(PACKAGE.rglob("*.pyi"))
           if "Generated by" not in path.read_text()]


def functions_of(tree, prefix=""):
    """Each function of a stub with its qualified name, those of classes too."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield prefix + node.name, node
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from functions_of(node, f"{node.name}.")


def parameters_of(node):
    given = node.args
    return {x.arg for x in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg,
                            given.kwarg) if x is not None}


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_written_stub_has_the_parameters_of_the_module(path):
    home = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
    module, found = importlib.import_module(home), {}
    for name, node in functions_of(ast.parse(path.read_text())):
        found.setdefault(name, []).append(parameters_of(node))
    assert found
    for name, forms in found.items():
        owner, _, own = name.rpartition(".")
        value = getattr(module, owner) if owner else module
        if own in ("__getattr__", "__setattr__"):       # of what users put there
            continue
        value = inspect.getattr_static(value, own)
        if isinstance(value, property):
            continue
        live = set(inspect.signature(getattr(value, "__func__", value)).parameters)
        if forms == [{"args", "kwargs"}]:               # what subclasses write
            continue
        assert set().union(*forms) - {"self", "cls"} == live - {"self", "cls"}, name
