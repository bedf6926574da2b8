"""The hypothesis profile of all tests."""

from hypothesis import HealthCheck, settings

# No deadline: the time of one example says more about the machine than about the code.
settings.register_profile(
    "tensorlib",
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("tensorlib")
