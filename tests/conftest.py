"""The hypothesis profile of all tests."""

import os

from hypothesis import HealthCheck, settings

# No deadline: the time of one example says more about the machine than about the code. Runs by hand
# look at new examples each time; those that decide what lands look at the same.
settings.register_profile(
    "tensorlib",
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("tensorlib")
