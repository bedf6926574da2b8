"""What all tests share: the hypothesis profile and default state before every test."""

import pytest
from hypothesis import HealthCheck, settings

import tensorlib as tl

# No deadline: the time of one example says more about the machine than about the code.
settings.register_profile(
    "tensorlib",
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("tensorlib")


@pytest.fixture(autouse=True)
def _unchanged_grad_mode():
    """A test that leaves gradients switched off would make the next ones pass for nothing."""
    yield
    assert tl.is_grad_enabled()
