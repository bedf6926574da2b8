"""The arguments of public functions beside those of PyTorch's, name by name."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("torch")


def test_every_argument_of_pytorch_is_taken_or_has_a_reason(capsys):
    from tools import compare_signatures

    assert compare_signatures.main(check=True) is False, capsys.readouterr().out
    compared = int(capsys.readouterr().out.splitlines()[-1].split()[0])
    assert compared > 500


def test_the_list_of_pytorchs_defaults_is_not_stale():
    """In a process of its own: what other tests import adds names to both libraries."""
    from tools import peer_defaults

    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c",
         "import gc; gc.disable(); from tools import peer_defaults as peer; "
         "print(*peer.lines(), sep='\\n')"],
        cwd=peer_defaults.PATH.parents[1], env={**os.environ, "PYTHONPATH": os.pathsep.join(
            filter(None, sys.path))}, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == peer_defaults.PATH.read_text().splitlines()
