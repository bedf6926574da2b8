"""What an import of the package does: few files, nothing that is rarely used, no collections."""

import importlib
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import ModuleType

import pytest
from process import run_each, run_python

from tensorlib import _kernels
from tensorlib._core.base.importing import later
from tensorlib._kernels.compiled import MODULES, Finder

FILES = """
import sys, tensorlib
print(*{module.__file__ for name, module in sys.modules.items()
        if name.startswith("tensorlib.") and not module.__file__.endswith(".py")})
"""
LAZY = {
    "tensorlib.autograd": ("Function", "checkpoint", "forward_ad", "function", "functional",
                           "gradcheck", "gradgradcheck"),
    "tensorlib.func": ("grad", "hessian", "jacrev", "jvp", "vjp"),
    "tensorlib.graph": ("Summary", "dot", "draw", "summary"),
    "tensorlib.io.files": ("LoadError", "add_safe_globals", "safe_globals"),
    "tensorlib.utils": ("checkpoint", "data"),
}
RARE = {"copy", "threading", "traceback", "tensorlib.autograd.batch", "tensorlib.autograd.run",
        "tensorlib.autograd.function", "tensorlib.graph.picture", "tensorlib.io.functions"}


def test_the_compiled_modules_lie_in_few_shared_objects():
    """One for each level of the kernels, of which those are opened that are used, and one for all
    others."""
    below = {"v3"} if _kernels.level == "v4" and _kernels.FROM_BELOW else set()
    assert {Path(path).name for path in run_python(FILES).split()} == {
        name + EXTENSION_SUFFIXES[0] for name in {"compiled", _kernels.level} | below}
    assert {"tensorlib._core.tensor.tensor", "tensorlib._kernels.cpu"} <= MODULES


@pytest.mark.parametrize("name", ["os", "tensorlib", "tensorlib.ops", "tensorlib._core.none"])
def test_the_finder_leaves_alone_what_is_not_in_there(name):
    assert Finder.find_spec(name) is None


def test_modules_have_names_within_the_package():
    """A compiled module adds itself to the table under the name that it was translated with."""
    names = run_python("import tensorlib, sys, os; print(*[name for name, module in "
                       "sys.modules.items() if (getattr(module, '__file__', None) or '')"
                       ".startswith(os.path.dirname(tensorlib.__file__))])").split()
    assert len(names) > 100 and {name.partition(".")[0] for name in names} == {"tensorlib"}


def test_what_is_rarely_used_is_not_imported():
    loaded, of_numpy = (set(run_python(f"import {name}, sys; print(*sys.modules)").split())
                        for name in ("tensorlib", "numpy"))
    assert not loaded & RARE - of_numpy


@pytest.mark.parametrize("module", LAZY)
def test_lazy_names_are_there_when_asked_for(module):
    said = run_each(f"import {module} as m", [f"print({name!r} in dir(m)); m.{name}"
                                             for name in LAZY[module]])
    assert said == ["True\n"] * len(LAZY[module])
    found = importlib.import_module(module)
    assert all(getattr(found, name) is getattr(found, name) for name in found.__all__)
    with pytest.raises(AttributeError, match=f"module '{module}' has no attribute 'nothing'"):
        found.nothing


@pytest.mark.parametrize("statement, enabled", [("", "True"), ("gc.disable()", "False")])
def test_the_garbage_collector_is_as_it_was(statement, enabled):
    said = run_python(f"import gc\n{statement}\nimport tensorlib\nprint(gc.isenabled())")
    assert said.split() == [enabled]


def test_numpys_functions_are_there_from_the_first_call_on():
    said = run_python("""
import numpy as np, tensorlib as tl
x = tl.ones(2)
print(float(np.sum(x)), type(np.exp(x)).__name__, tl.Tensor.__array_function__.__name__)
""")
    assert said.split() == ["2.0", "Tensor", "array_function"]


def test_a_module_that_comes_later_is_that_module_in_all_it_shows():
    found = later("tensorlib.version")
    module = importlib.import_module("tensorlib.version")
    assert isinstance(found, ModuleType) and found is not module
    assert dir(found) == dir(module) and repr(found) == repr(module)
    assert found.__name__ == "tensorlib.version" and found.__file__ == module.__file__
    found.kept = 3
    assert module.kept == found.kept == 3
    del found.kept
    assert not hasattr(module, "kept")
    with pytest.raises(AttributeError, match="'tensorlib.version' has no attribute 'nothing'"):
        found.nothing


@pytest.mark.parametrize("module", [
    "tensorlib.special", "tensorlib.linalg", "tensorlib.nn.functional",
    "tensorlib.optim.lr_scheduler", "tensorlib.optim.swa_utils"])
def test_a_module_shows_its_public_names_alone(module):
    found = importlib.import_module(module)
    assert dir(found) == sorted(found.__all__) and len(set(dir(found))) == len(dir(found)) > 5
    assert all(hasattr(found, name) for name in dir(found))
