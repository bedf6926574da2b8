"""What tests of the core share."""

import pytest
import tensorlib as tl


@pytest.fixture(scope="module")
def two_threads():
    """Two threads, as many as there were afterwards."""
    before = tl.get_num_threads()
    tl.set_num_threads(2)
    yield
    tl.set_num_threads(before)
