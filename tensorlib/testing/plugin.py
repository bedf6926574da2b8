"""A plugin of pytest: a fixture that seeds what is random, and a line that says with what.

    pytest_plugins = ["tensorlib.testing.plugin"]       # in the conftest.py of your tests

A test that takes the fixture `tensorlib_seed` draws the same numbers in each run, from tensorlib,
NumPy's older functions and `random`, and leaves their states as they were. `--tensorlib-seed N`
tries others.
"""

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tensorlib as tl


def pytest_addoption(parser: Any) -> None:
    """Adds `--tensorlib-seed`."""
    parser.getgroup("tensorlib").addoption(
        "--tensorlib-seed", type=int, default=0, metavar="N",
        help="what the fixture tensorlib_seed seeds with")


def pytest_report_header(config: Any) -> str:
    """What a failure may depend on."""
    return (f"tensorlib: {tl.__version__}, {tl.get_num_threads()} threads, seed "
            f"{config.getoption('--tensorlib-seed')}")


@pytest.fixture
def tensorlib_seed(request: Any) -> Iterator[int]:
    """The seed, after all generators were seeded with it; they are set back after the test."""
    seed: int = request.config.getoption("--tensorlib-seed")
    states = tl.get_rng_state(), np.random.get_state(), random.getstate()
    tl.manual_seed(seed)
    np.random.seed(seed % 2**32)
    random.seed(seed)
    yield seed
    tl.set_rng_state(states[0])
    np.random.set_state(states[1])
    random.setstate(states[2])
