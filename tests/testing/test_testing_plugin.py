"""The plugin of pytest, in a run of its own."""

from process import run_python

TESTS = """
import random
import numpy as np
import tensorlib as tl

def drawn():
    return tl.rand(1).item(), np.random.random(), random.random()

def test_first(tensorlib_seed):
    assert tensorlib_seed == 7
    tl.first = drawn()

def test_second(tensorlib_seed):
    assert drawn() == tl.first

def test_outside():
    before = tl.get_rng_state()
    assert drawn() != tl.first and not before.equal(tl.get_rng_state())
"""


def test_a_seeded_test_draws_the_same_and_leaves_the_states(tmp_path):
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["tensorlib.testing.plugin"]\n')
    (tmp_path / "test_drawn.py").write_text(TESTS)
    said = run_python(
        "import os, pytest, sys\nos.environ['PYTEST_DISABLE_PLUGIN_AUTOLOAD'] = '1'\n"
        "folder = sys.argv[1]\nsys.exit(pytest.main(['-p', 'no:cacheprovider', "
        "'--rootdir', folder, '--tensorlib-seed', '7', folder]))", str(tmp_path))
    assert "3 passed" in said and "threads, seed 7" in said
