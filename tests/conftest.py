"""The hypothesis profile of all tests, and a garbage collector with less to go through."""

import gc

from hypothesis import HealthCheck, settings

# No deadline: the time of one example says more about the machine than about the code.
settings.register_profile(
    "tensorlib",
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("tensorlib")


def pytest_collection_finish(session):
    """Tests that collect garbage need not go through the tests themselves, some 20,000."""
    gc.collect()
    gc.freeze()
