"""DistributedDataParallel under `mpiexec`: against one process, and the bits of its training."""

import re

import pytest
from ranks import needs_mpi, passes

pytestmark = needs_mpi


@pytest.mark.parametrize("count", [2, 3])
def test_training_is_that_of_one_process(count):
    passes(count, "data_parallel")


def test_the_bits_of_training_are_the_same_for_any_number_of_ranks():
    found = {re.search(r"bits (.*)", passes(count, "deterministic"))[1] for count in (1, 2, 3, 4)}
    assert len(found) == 1
