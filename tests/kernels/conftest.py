"""The loops of each instruction set that this processor runs."""

import pytest
from loops import LEVELS, loops


@pytest.fixture(scope="session", params=LEVELS)
def level(request):
    return request.param


@pytest.fixture(scope="session")
def table(level):
    return loops(level)
