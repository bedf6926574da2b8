"""PyTorch's own test catalogue, the first samples of each operation and dtype, in both libraries.

`python -m tests.agreement.catalogue` calls all samples. What differs on purpose is listed, with the
reason, in `tests/agreement/differences.py`.
"""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("expecttest")           # which PyTorch's catalogue imports


@pytest.mark.parametrize("options", [("--most", "2"), ("--most", "4", "--ties")],
                         ids=["as they are", "of few values"])
def test_samples_of_the_catalogue_give_what_pytorch_gives(options):
    """In a process of its own, as the catalogue has a million objects."""
    done = subprocess.run([sys.executable, "-m", "tests.agreement.catalogue", *options],
                          cwd=Path(__file__).parents[2], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert " 0 differ, " in done.stdout, done.stdout
