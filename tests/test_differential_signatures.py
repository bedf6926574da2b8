"""The arguments of public functions beside those of PyTorch's, name by name."""

import pytest

pytest.importorskip("torch")


def test_every_argument_of_pytorch_is_taken_or_has_a_reason(capsys):
    from tools import compare_signatures

    assert compare_signatures.main(check=True) is False, capsys.readouterr().out
    compared = int(capsys.readouterr().out.splitlines()[-1].split()[0])
    assert compared > 500


def test_the_list_of_pytorchs_defaults_is_not_stale():
    from tools import peer_defaults

    assert peer_defaults.lines() == peer_defaults.PATH.read_text().splitlines()
