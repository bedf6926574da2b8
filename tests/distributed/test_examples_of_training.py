"""The examples run as one process and as many, with equal losses, and equal bits where asked."""

import re
import subprocess
import sys

import pytest
from ranks import ROOT, environment, mpiexec, needs_mpi

EXAMPLES = ROOT / "examples" / "distributed"
pytestmark = [needs_mpi, pytest.mark.skipif(not EXAMPLES.is_dir(), reason="needs the repository")]


def outcome(name, count, *arguments):
    """The loss after 50 steps, and the bits of the parameters; count 0 is without a launcher."""
    launcher = [mpiexec(), "-n", str(count)] if count else []
    done = subprocess.run([*launcher, sys.executable, str(EXAMPLES / f"{name}.py"), "--steps", "50",
                           "--batch", "16", *arguments], text=True, timeout=120,
                          capture_output=True, env=environment(), stdin=subprocess.DEVNULL)
    assert not done.returncode, done.stdout + done.stderr
    size, loss, bits = re.search(r"(\d+) processes, loss (\S+), bits (\w+)", done.stdout).groups()
    assert int(size) == max(count, 1)
    return float(loss), bits


@pytest.mark.parametrize("name", ["train_digits", "train_gpt"])
def test_losses_are_equal(name):
    assert outcome(name, 2)[0] == pytest.approx(outcome(name, 0)[0], abs=1e-6)


@pytest.mark.parametrize("name", ["train_digits", "train_gpt"])
def test_bits_are_equal(name):
    assert outcome(name, 0, "--deterministic") == outcome(name, 2, "--deterministic")
