"""Sharded optimisers, parameters and checkpoints under `mpiexec`."""

from ranks import needs_mpi, passes

pytestmark = needs_mpi


def test_training_is_that_of_one_process():
    passes(4, "sharding")


def test_checkpoints_load_with_other_numbers_of_ranks(tmp_path):
    passes(3, "sharding", "save", str(tmp_path / "state"))
    for count in (1, 2):
        passes(count, "sharding", "load", str(tmp_path / "state"))
