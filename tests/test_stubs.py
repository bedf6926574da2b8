"""The type stubs and the table of operations: what is checked in is what the package is."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tensorlib as tl

ROOT = Path(__file__).parents[1]

GOOD = """
import numpy as np

import tensorlib as tl
from tensorlib import Tensor


def loss(w: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return ((x @ w - y) ** 2).mean()


x = tl.randn(4, 3, dtype=tl.float32, generator=tl.Generator().manual_seed(3))
y = tl.zeros((4, 1)) + 1
w = tl.full((3, 1), 0.5, requires_grad=True)
loss(w, x, y).backward()
g: Tensor | None = w.grad
n: int = x.ndim + x.shape[0]
a: np.ndarray = x.detach().numpy()
with tl.no_grad():
    w -= 0.1 * x.sum()
parts: tuple[Tensor, ...] = x.split(2)
tl.set_num_threads(tl.get_num_threads())
peak: int = tl.memory.stats()["peak"]
z = tl.add(x, 2, alpha=3).tanh_().to(tl.float64).reshape(2, -1).sum(dim=(0, 1), keepdim=True)
q = tl.pow(2, x) + tl.clamp(x, min=0) + tl.where(x > 0, x, 0.0)
tl.cat([tl.arange(10.0), tl.linspace(0, 1, 5)], dim=0)
"""

BAD = {
    'tl.zeros("a")': "arg-type",
    "tl.ones(2).tanh(3)": "call-arg",
    "tl.no_such_function()": "attr-defined",
    "tl.ones(2).no_such_method()": "attr-defined",
    "x: str = tl.ones(2)": "assignment",
    "tl.sum(tl.ones(2), keepdim=[])": "arg-type",
}


@pytest.mark.parametrize("command", ["stubs", "operations", "path_of_a_call"])
@pytest.mark.skipif(not (ROOT / "tools").is_dir(), reason="needs the repository")
def test_what_is_generated_is_not_stale(command):
    path = os.pathsep.join([str(Path(tl.__file__).parents[1]), str(ROOT)])
    done = subprocess.run([sys.executable, "-m", f"tools.{command}", "--check"], cwd=ROOT,
                          capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_program_passes_the_type_checker_and_mistakes_do_not(tmp_path, monkeypatch):
    """Both in one run, which reads the stubs once."""
    monkeypatch.setenv("MYPYPATH", str(Path(tl.__file__).parents[1]))
    good, bad = tmp_path / "good.py", tmp_path / "bad.py"
    good.write_text(GOOD)
    bad.write_text("\n".join(["import tensorlib as tl", *BAD]))
    done = subprocess.run(
        [sys.executable, "-m", "mypy", good, bad, "--follow-imports=silent", "--strict-equality",
         f"--cache-dir={tmp_path / 'cache'}"], capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    assert done.returncode == 1 and not done.stderr, done.stderr
    assert "checked 2 source files" in lines[-1]
    assert not [text for text in lines if text.startswith(str(good))]
    for line, (call, kind) in enumerate(BAD.items(), 2):
        found = [text for text in lines if text.startswith(f"{bad}:{line}:")]
        assert any(f"[{kind}]" in text for text in found), (call, found)


def test_the_package_says_that_it_is_typed():
    assert (Path(tl.__file__).parent / "py.typed").exists()


@pytest.mark.skipif(not (ROOT / "docs").is_dir(), reason="needs the repository")
class TestThePageOfOperations:
    page = (ROOT / "docs/operations.md").read_text() if (ROOT / "docs").is_dir() else ""
    rows = dict(re.findall(r"^\| \[`(\w+)`\]\([^)]*\)`\(.*\| ([^|]*) \|$", page, re.MULTILINE))

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
        assert f"| [`{name}`](../tensorlib/ops/{home}.py)" in self.page
