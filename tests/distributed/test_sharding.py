"""Sharded optimisers, parameters and checkpoints under `mpiexec`."""

import pytest
from ranks import needs_mpi, passes

pytestmark = needs_mpi


@pytest.mark.parametrize("count", [1, 4])
def test_training_is_that_of_one_process(count):
    passes(count, "sharding")


def test_checkpoints_load_with_other_numbers_of_ranks(tmp_path):
    passes(3, "sharding", "save", str(tmp_path / "state"))
    for count in (2, 3):
        passes(count, "sharding", "load", str(tmp_path / "state"))
