"""What is missing of PyTorch's names has a reason, on a page that is true."""

import pytest


def test_every_missing_name_has_a_reason(capsys):
    pytest.importorskip("torch")
    from tools import missing_names

    assert missing_names.main(["--check"]) == 0, capsys.readouterr().out
