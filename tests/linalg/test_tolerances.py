"""Tolerances are numbers or tensors: a list could change while NumPy reads it, which crashes."""

import pytest

import tensorlib as tl


@pytest.mark.parametrize("call", [
    lambda t: tl.pinverse(tl.eye(2), t), lambda t: tl.linalg.pinv(tl.eye(2), rtol=t),
    lambda t: tl.linalg.matrix_rank(tl.eye(2), atol=t), lambda t: tl.linalg.lstsq(
        tl.eye(2), tl.ones(2, 1), rcond=t)])
def test_lists_are_refused(call):
    with pytest.raises(TypeError):
        call([0.1, 0.2])
    call(0.1)
