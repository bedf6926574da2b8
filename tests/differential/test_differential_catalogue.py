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

AS_THEY_ARE, OF_FEW_VALUES = ["--most", "2"], ["--most", "4", "--ties"]


def test_samples_of_the_catalogue_give_what_pytorch_gives():
    """In a process of its own, as the catalogue has a million objects, which the collector need not
    go through; in one, as it takes long to import."""
    code = f"""if True:
        import gc
        gc.disable()
        from tests.agreement.catalogue import main
        gc.freeze()
        gc.enable()
        main({AS_THEY_ARE})
        main({OF_FEW_VALUES})
        """
    done = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(" 0 differ, ") == 2, done.stdout
