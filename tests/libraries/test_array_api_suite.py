"""The public suite of the array API standard, from a checkout of data-apis/array-api-tests:

    ARRAY_API_TESTS=folder python -m pytest tests/libraries/test_array_api_suite.py

It needs the suite's own requirements and its submodule. What is left out, and why, stands in
array_api_skips.txt.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tensorlib as tl

FOLDER = os.environ.get("ARRAY_API_TESTS")
SKIPS = Path(__file__).with_name("array_api_skips.txt")
EXAMPLES = os.environ.get("ARRAY_API_EXAMPLES", "20")
# operators, too, are the standard's there, where a tensor without axes is like any other
NAMESPACE = "exec('import tensorlib.array_api as xp; xp.standard_operators().__enter__()')"

pytestmark = pytest.mark.skipif(
    FOLDER is None, reason="ARRAY_API_TESTS names no checkout of data-apis/array-api-tests")
FILES = sorted(path.name for path in Path(FOLDER or ".", "array_api_tests").glob("test_*.py"))


def left_out():
    """The tests that are left out."""
    return [line for line in SKIPS.read_text().splitlines() if line and not line.startswith("#")]


@pytest.mark.parametrize("file", FILES)
def test_the_public_suite_passes(file):
    path = os.pathsep.join([str(Path(tl.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", FOLDER,
         "--disable-deadline", "--max-examples", EXAMPLES, "--skips-file", str(SKIPS),
         f"array_api_tests/{file}"],
        cwd=FOLDER, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": path, "ARRAY_API_TESTS_MODULE": NAMESPACE,
             "ARRAY_API_TESTS_MAX_ARRAY_SIZE": "256"})
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


def test_few_are_left_out():
    assert len(left_out()) < 10
