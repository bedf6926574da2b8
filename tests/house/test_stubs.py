"""The type stubs and the table of operations: what is checked in is what the package is."""

import re
from pathlib import Path

import pytest
from process import run_each, run_python

import tensorlib as tl

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(not (ROOT / "tools").is_dir(), reason="needs the repository")
def test_what_is_generated_is_not_stale():
    """Tests declare operations that are no part of the package, so the tools have processes of
    their own."""
    run_each(f"""
import os, runpy, sys
os.chdir({str(ROOT)!r})
sys.path.insert(1, {str(ROOT)!r})
def run(command):
    sys.argv[1:], sys.stdout = ["--check"], sys.stderr
    try:
        runpy.run_module(f"tools.{{command}}", run_name="__main__")
    except SystemExit as end:
        assert not end.code, f"tools.{{command}} says what is stale, above"
""", [f"run({command!r})" for command in ("stubs", "operations", "path_of_a_call")])


@pytest.mark.skipif(not (ROOT / "tools").is_dir(), reason="needs the repository")
def test_stubs_say_what_functions_return():
    """A tensor, a tuple or something else, as for the samples of each operation."""
    run_python(f"import sys; sys.path.insert(1, {str(ROOT)!r})\n" + """
import warnings
import tensorlib as tl
from tensorlib.ops.declare import FUNCTIONS
from tensorlib.ops.lazy import declare_all
from tensorlib.testing.catalogue import call, dtypes_taken, in_dtype, samples
from tools.signatures import forms

warnings.simplefilter("ignore")
declare_all()
kinds = {"Tensor": tl.Tensor, "_bool": bool, "_int": int, "_Number": (int, float, complex)}
seen = 0
for name, function in FUNCTIONS.items():
    op, (found, *others) = getattr(function, "op", None), forms(name, function)
    if op is None or others or not op.testing.get("samples") or found[1] in ("Any", "_dtype"):
        continue
    dtype = "float64" if "float64" in dtypes_taken(op) else dtypes_taken(op)[0]
    result, seen = call(op, in_dtype(op, samples(op)[0], dtype)), seen + 1
    assert isinstance(result, kinds.get(found[1], tuple)), (name, found[1], type(result))
assert seen > 300
""")


def test_the_package_says_that_it_is_typed():
    assert (Path(tl.__file__).parent / "py.typed").exists()


def test_the_stub_has_all_public_names():
    """Other tests add names to the package of this process."""
    stub = Path(tl.__file__).with_suffix(".pyi").read_text()
    names = run_python("import tensorlib; print(*dir(tensorlib))").split()
    assert not set(names) - set(re.findall(r"\w+", stub))


@pytest.mark.skipif(not (ROOT / "docs").is_dir(), reason="needs the repository")
class TestTheReference:
    page = "".join(path.read_text() for path in sorted((ROOT / "docs/reference").glob("*.md")))
    rows = dict(reversed(re.findall(r"^\| \[`(\w+)`\]\([^)]*\)`\(.*\| ([^|]*) \|$", page,
                                    re.MULTILINE)))     # creation stands before other namespaces

    def test_it_lists_out_where_a_function_has_it(self):
        """It took the `out` in `layout` for one."""
        assert "out" in self.rows["zeros"] and "out" in self.rows["cat"]
        assert "out" not in self.rows["zeros_like"] + self.rows["tril_indices"] + self.rows[
            "from_numpy"]

    def test_it_lists_all_that_is_public(self):
        assert not [name for name in dir(tl) if callable(getattr(tl, name))
                    and f"[`{name}`](" not in self.page]
        for module in (tl.autograd, tl.func, tl.ops, tl.graph, tl.testing, tl.memory):
            missing = [name for name in module.__all__ if callable(getattr(module, name))
                       and f"[`{name}`](" not in self.page]
            assert not missing

    @pytest.mark.parametrize("name, home", [
        ("tanh", "pointwise/unary"), ("zeros", "create/creation"), ("asarray", "create/creation"),
        ("max", "reduce/extremes"), ("rand", "create/random"), ("manual_seed", "create/random"),
        ("where", "pointwise/comparison"), ("from_numpy", "create/creation"),
        ("stack", "shape/joining"), ("tile", "shape/repeating")])
    def test_a_function_stands_in_its_family(self, name, home):
        assert f"| [`{name}`](../../tensorlib/ops/{home}.py)" in self.page
