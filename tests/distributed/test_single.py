"""A group of one process without MPI: the programs that `mpiexec` runs, and what it refuses."""

import subprocess
import sys

import pytest
import tensorlib.distributed as dist
from ranks import HERE, environment

WITHOUT_MPI = "import sys; sys.modules['mpi4py'] = None\n"      # also where it is installed


def run_alone(text, **more):
    """A program without a launcher and without mpi4py."""
    done = subprocess.run([sys.executable, "-c", WITHOUT_MPI + text], text=True, timeout=120,
                          capture_output=True, cwd=HERE / "programs",
                          env=environment(PYTHONWARNINGS="ignore", **more))
    assert not done.returncode, done.stderr
    return done.stdout


def test_names_that_libraries_ask_for():
    assert isinstance(dist.ReduceOp.SUM, dist.ReduceOp.RedOpType)
    assert dist.Backend.default_device_backend_map["cpu"] == dist.Backend.GLOO
    assert dist.Backend.NCCL == dist.Backend("NCCL") == "nccl"
    assert dist.distributed_c10d.default_pg_timeout == dist.constants.default_pg_timeout
    assert not dist.is_torchelastic_launched()
    assert dist._rank_not_in_group(dist.GroupMember.NON_GROUP_MEMBER)
    assert not dist._rank_not_in_group(None)


def test_the_programs_of_many_ranks_run_as_one():
    programs = ("collectives", "gradients", "sharding", "data_parallel")
    text = run_alone(f"""
import runpy
for name in {programs}:
    runpy.run_path(name + ".py", run_name="__main__")
""", RANK="0", WORLD_SIZE="1")
    assert text.count("passed") == len(programs)


def test_what_one_process_can_and_can_not():
    run_alone("""
import tensorlib as tl
from common import raised
from tensorlib import distributed as dist
assert dist.is_available() and not dist.is_mpi_available()
assert not dist.is_backend_available("gloo")                    # for more than one
dist.init_process_group("gloo", "tcp://localhost:23456", world_size=1, rank=0)
raised(ValueError, lambda: dist.send(tl.ones(2), 0), "is this rank itself")
group = dist.new_group([0])
dist.all_gather_object(found := [None], {"a": 1}, group)
assert found == [{"a": 1}]
x = tl.arange(6.0).reshape(2, 3).t()
dist.all_gather(into := [tl.zeros(3, 2)], x)
assert tl.equal(into[0], x)
work = dist.all_reduce(x, op=dist.ReduceOp.AVG, async_op=True)
assert work.wait() and x.tolist() == [[0, 3], [1, 4], [2, 5]]
dist.destroy_process_group()
""")


def test_an_unanswered_call_ends_after_its_timeout():
    with pytest.raises(AssertionError, match="DistTimeoutError: irecv: rank 0 waited for 0.05 s"):
        run_alone("""
import tensorlib as tl
from tensorlib import distributed as dist
dist.init_process_group(world_size=1, rank=0, timeout=0.05)
dist.recv(tl.ones(2))
""")


@pytest.mark.parametrize("variables, part", [
    ({"PMI_RANK": "0"}, "mpi4py is not installed"),
    ({"RANK": "0", "WORLD_SIZE": "2"}, "not started by a launcher"),
    ({"RANK": "1", "WORLD_SIZE": "1"}, "not started by a launcher"),
])
def test_more_than_one_need_mpi(variables, part):
    run_alone(f"""
from common import raised
from tensorlib import distributed as dist
raised(RuntimeError, dist.init_process_group, {part!r})
""", **variables)
