"""Collectives, messages, groups and their errors, under `mpiexec` with 1 to 4 ranks."""

import os
import signal
import subprocess
import sys
import time

import pytest
from ranks import HERE, environment, mpiexec, needs_mpi, passes, run_ranks

pytestmark = needs_mpi


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_what_one_process_computes(count):
    passes(count, "collectives")


@pytest.mark.parametrize("count", [1, 3])
def test_gradients_are_those_of_all_ranks_in_one_process(count):
    passes(count, "gradients")


def test_calls_are_compared_only_if_asked_to():
    passes(2, "collectives", TENSORLIB_DISTRIBUTED_CHECK="0")


@pytest.mark.parametrize("case", ["differing_calls", "bad_arguments", "workers"])
def test_errors_on_every_rank(case):
    passes(3 if case == "differing_calls" else 2, "failures", case)


@pytest.mark.parametrize("case, parts", [
    ("one_raises", ["rank 1 ends the job", "KeyError: 'the reason of rank 1'"]),
    ("one_is_killed", []),
    ("one_never_comes", ["told of it"]),
    ("one_is_missed", ["told of it"]),
])
def test_a_rank_that_fails_ends_the_job(case, parts):
    start = time.monotonic()
    code, text = run_ranks(3 if case == "one_is_killed" else 2, "failures", case, seconds=30)
    assert code == 0 if case == "one_is_missed" else code, text
    assert all(part in text for part in parts), text
    assert time.monotonic() - start < 30


def test_an_interrupt_ends_all_ranks():
    process = subprocess.Popen(
        [mpiexec(), "-n", "2", sys.executable, "failures.py", "waits"], text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        env=environment(), cwd=HERE / "programs", start_new_session=True)
    assert process.stdout.readline()                 # one of them waits
    os.killpg(process.pid, signal.SIGINT)
    try:
        process.communicate(timeout=20)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode


def run_alone(text, *arguments, **more):
    """A program without a launcher."""
    done = subprocess.run([sys.executable, "-c", text, *arguments], text=True, timeout=60,
                          capture_output=True, env=environment(**more), cwd=HERE / "programs")
    assert not done.returncode, done.stderr
    return done.stdout


def test_outside_of_a_launcher():
    run_alone("""
import tensorlib as tl
from common import raised
from tensorlib import distributed as dist
raised(RuntimeError, dist.init_process_group, "not started by a launcher", "mpiexec -n 2")
raised(ValueError, lambda: dist.init_process_group("nccl"), "got 'nccl'")
raised(ValueError, lambda: dist.init_process_group(timeout=0), "more than 0")
raised(RuntimeError, lambda: dist.init_process_group(world_size=2, rank=0), "launcher")
raised(ValueError, dist.get_rank, "call init_process_group() first")
dist.init_process_group("gloo", world_size=1, rank=0)
dist.all_reduce(x := tl.ones(2))
assert x.tolist() == [1, 1] and dist.get_world_size() == 1 and dist.get_backend() == "mpi"
dist.destroy_process_group()
assert not dist.is_initialized()
dist.init_process_group(world_size=1)
""")


def test_an_mpi_without_threads_is_refused():
    run_alone("""
import mpi4py
mpi4py.rc.thread_level = "single"
from common import raised
from tensorlib import distributed as dist
raised(RuntimeError, lambda: dist.init_process_group(world_size=1, rank=0), "MPI_THREAD_MULTIPLE")
""")
