"""The pool of threads: shared ranges, forked processes, how many threads there are."""

import ctypes
import os
import statistics
import subprocess
import sys
import threading
import time

import pytest
from cases import each
from capi import c_function

import tensorlib as tl
from tensorlib._core.base import pool

RANGE_FN = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_ssize_t)
parallel_for = c_function(pool, "parallel_for", None, RANGE_FN, ctypes.c_void_p,
                          ctypes.c_ssize_t, ctypes.c_ssize_t)

pytestmark = pytest.mark.usefixtures("restore_threads")


def chunks_of(n, grain, pause=0.0):
    """The chunks of one parallel call, sorted, and the threads that worked."""
    seen, workers = [], set()

    def note(context, begin, end):
        seen.append((begin, end))
        workers.add(threading.get_ident())
        time.sleep(pause)

    parallel_for(RANGE_FN(note), None, n, grain)
    return sorted(seen), workers


@each("n, grain", [(0, 1), (1, 1), (5, 1), (10, 3), (9, 3), (3, 100), (1000, 7)])
def test_chunks_cover_the_range_once_and_ignore_the_number_of_threads(n, grain):
    wanted = [(i, min(i + grain, n)) for i in range(0, n, grain)]
    for threads in (1, 2, 5, 3, 1):
        pool.set_num_threads(threads)
        assert chunks_of(n, grain)[0] == wanted


def test_workers_take_part_and_surplus_ones_leave():
    pool.set_num_threads(4)
    assert len(chunks_of(12, 1, pause=0.02)[1]) == 4
    pool.set_num_threads(2)
    time.sleep(0.05)
    assert len(chunks_of(12, 1, pause=0.02)[1]) == 2
    pool.set_num_threads(1)
    assert chunks_of(12, 1)[1] == {threading.get_ident()}


def test_each_thread_begins_with_the_same_part_in_every_call():
    """So that it finds in its caches what it left there."""
    pool.set_num_threads(3)
    chunks_of(12, 1, pause=0.01)                 # until all are awake
    parts = []
    for _ in range(3):
        first = {}

        def note(context, begin, end, first=first):
            first.setdefault(threading.get_ident(), begin)
            time.sleep(0.02)

        parallel_for(RANGE_FN(note), None, 12, 1)
        parts.append(first)
    assert parts[0] == parts[1] == parts[2]
    assert sorted(parts[0].values()) == [0, 4, 8] and parts[0][threading.get_ident()] == 0


def share_of_the_worker(jobs=200):
    """The part of the chunks that the second thread does in a loop of one short job."""
    x = tl.ones(262_144)
    chunks = jobs * -(-x.numel() // 32_768)
    before = pool.chunks_by_workers()
    for _ in range(jobs):
        x + x
    return (pool.chunks_by_workers() - before) / chunks


@pytest.mark.skipif(pool.usable_processors() < 2, reason="needs two processors")
def test_the_worker_does_its_part_of_short_jobs():
    """One that was awake took a job that was still being written for done, and so did 2 in 1,000.

    Where other programs use the processors it may have to try again.
    """
    pool.set_num_threads(2)
    end = time.monotonic() + 30
    for _ in range(20):                          # until the worker stays awake between the jobs
        share_of_the_worker()
    while statistics.median(share_of_the_worker() for _ in range(10)) < 0.25:
        assert time.monotonic() < end


def test_many_small_jobs_in_a_row():
    pool.set_num_threads(4)
    total = 0

    def add(context, begin, end):
        nonlocal total
        with lock:
            total += end - begin

    lock = threading.Lock()
    fn = RANGE_FN(add)
    for _ in range(2000):
        parallel_for(fn, None, 20, 3)
    assert total == 40_000


def test_nested_calls_run_serially_within_their_thread():
    pool.set_num_threads(3)
    inner = []

    def nested(context, begin, end):
        inner.append((threading.get_ident(), chunks_of(4, 1)))

    parallel_for(RANGE_FN(nested), None, 6, 1)
    assert len(inner) == 6
    for thread, (chunks, workers) in inner:
        assert chunks == [(0, 1), (1, 2), (2, 3), (3, 4)]
        assert workers == {thread}


def test_callers_from_several_threads_do_not_disturb_each_other():
    pool.set_num_threads(3)
    results = []

    def caller():
        for _ in range(50):
            results.append(chunks_of(10, 2)[0])

    callers = [threading.Thread(target=caller) for _ in range(4)]
    for thread in callers:
        thread.start()
    for thread in callers:
        thread.join()
    assert results == [[(0, 2), (2, 4), (4, 6), (6, 8), (8, 10)]] * 200


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_has_a_pool_of_its_own():
    pool.set_num_threads(3)
    chunks_of(8, 1, pause=0.01)
    for _ in range(4):
        child = os.fork()
        if child == 0:
            good = len(chunks_of(9, 1, pause=0.02)[1]) == 3
            os._exit(0 if good else 1)
        assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("bad, error", [(0, RuntimeError), (-2, RuntimeError), (1.5, TypeError),
                                        ("2", TypeError), (True, TypeError),
                                        (1 << 40, RuntimeError)])
def test_bad_numbers_of_threads_are_refused(bad, error):
    before = pool.get_num_threads()
    with pytest.raises(error, match="set_num_threads expects"):
        pool.set_num_threads(bad)
    assert pool.get_num_threads() == before


def run_python(code, **environment):
    return subprocess.run([sys.executable, "-c", code], env={**os.environ, **environment},
                          capture_output=True, text=True, timeout=60, check=False)


def test_the_environment_sets_the_number_of_threads():
    show = "from tensorlib._core.base import pool; print(pool.get_num_threads())"
    assert run_python(show, TENSORLIB_NUM_THREADS="3").stdout == "3\n"
    refused = run_python(show, TENSORLIB_NUM_THREADS="many")
    assert "TENSORLIB_NUM_THREADS='many' is not a positive integer" in refused.stderr


def test_the_default_follows_affinity():
    if not hasattr(os, "sched_setaffinity"):
        pytest.skip("needs sched_setaffinity")
    show = ("import os; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])\n"
            "from tensorlib._core.base import pool; print(pool.usable_processors())")
    assert run_python(show).stdout == "1\n"


@pytest.mark.parametrize("files, limits", [
    ({"/proc/self/cgroup": "0::/a/b\n", "/sys/fs/cgroup/a/cpu.max": "250000 100000\n",
      "/sys/fs/cgroup/a/b/cpu.max": "max 100000\n"}, [3]),
    ({"/proc/self/cgroup": "5:cpuset:/\n4:cpu,cpuacct:/a\n",
      "/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us": "400000\n",
      "/sys/fs/cgroup/cpu/a/cpu.cfs_period_us": "100000\n",
      "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
      "/sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"}, [4]),
    ({"/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/cpu.max": "150000 100000\n"}, [2]),
    ({}, []),
])
def test_control_group_limits(files, limits, monkeypatch):
    monkeypatch.setattr(pool, "_read", lambda path: files.get(path, ""))
    assert list(pool._cgroup_limits()) == limits
