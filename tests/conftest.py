"""What all tests share: the hypothesis profile, all operations, little for the collector to do."""

import gc

from hypothesis import HealthCheck, settings

from tensorlib.ops.late import declare_all

# No deadline: the time of one example says more about the machine than about the code.
settings.register_profile(
    "tensorlib",
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("tensorlib")

declare_all()       # tests are made from what is declared; how it is, tests/ops/test_late.py tries


BETWEEN = 1000      # tests
ran = []            # since objects were frozen


def pytest_collection_finish(session):
    """Tests that collect garbage, or look who refers to what, need not go through the tests
    themselves, some 20,000 in each process."""
    gc.collect()
    gc.freeze()


def pytest_runtest_setup(item):
    """Nor through the reports of those that ran: between files these are frozen, too."""
    if len(ran) >= BETWEEN and ran[-1].path != item.path:
        gc.collect()
        gc.freeze()
        ran.clear()
    ran.append(item)
