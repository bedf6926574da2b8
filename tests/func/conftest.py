"""What the tests of the transforms share."""

import pytest

import tensorlib as tl


@pytest.fixture(autouse=True)
def _modes_are_put_back():
    """A transform that leaves the grad mode or its guard behind would spoil the next test."""
    yield
    assert tl.is_grad_enabled()
    tl.zeros(1).add_(1)
    captured = tl.zeros(1)
    assert not captured.add_(1).requires_grad


@pytest.fixture
def x():
    return tl.tensor([0.3, -0.7, 1.1], dtype=tl.float64)
