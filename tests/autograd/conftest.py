"""What the tests of the graph share."""

import pytest

import tensorlib as tl


@pytest.fixture(autouse=True)
def _unchanged_grad_mode():
    """A test that leaves gradients switched off would make the next ones pass for nothing."""
    yield
    assert tl.is_grad_enabled()
