"""Threads, forked children and results that do not depend on the number of threads.

What may hang runs in a process of its own with a time limit.
"""

import threading

import pytest
from process import run_forked

import tensorlib as tl
from tensorlib.testing import assert_close

WORK = """
import tensorlib as tl
def work():
    x = tl.ones(300_000, requires_grad=True)
    y = tl.arange(90_000.0).reshape(300, 300) / 90_000
    loss = (x.tanh() * 2).sum() + (y @ y).sum()
    loss.backward()
    return loss.item()
"""

FORK = WORK + """
import os
tl.set_num_threads(2)
before = work()
for _ in range(4):
    child = os.fork()
    if child == 0:
        os._exit(0 if work() == before else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
assert work() == before
print("done")
"""

THREADS = WORK + """
import threading
tl.set_num_threads(2)
expected = work()
wrong = []
def loop():
    for _ in range(20):
        if work() != expected:
            wrong.append(1)
threads = [threading.Thread(target=loop) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert not wrong, len(wrong)
print("done")
"""

FORK_WHILE_BUSY = WORK + """
import os, threading
tl.set_num_threads(2)
expected = work()
stop = threading.Event()
def loop():
    while not stop.is_set():
        work()
thread = threading.Thread(target=loop)
thread.start()
for _ in range(4):
    child = os.fork()
    if child == 0:
        os._exit(0 if work() == expected else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
stop.set()
thread.join()
print("done")
"""

EXIT_WHILE_BUSY = WORK + """
import threading
tl.set_num_threads(2)
def loop():
    while True:
        work()
threading.Thread(target=loop, daemon=True).start()
work()
print("done")
"""

BITS = """
import sys
import zlib
import numpy as np
import tensorlib as tl
tl.set_num_threads(int(sys.argv[1]))
rng = np.random.default_rng(0)
def bits(x):
    return zlib.crc32(x.detach().numpy().tobytes())
for dtype in (np.float32, np.float64):
    for size in (1_000, 65_537, 1_000_003):
        x = tl.from_numpy(rng.normal(size=size).astype(dtype))
        print(bits(x.sum()), bits(x.mean()), bits(x.exp()), bits(x.prod()), bits(x.var()))
        print(bits(x.logsumexp(0)), bits(x.softmax(0)), bits(x.max()), bits(x * x + 1))
    for rows, columns in ((3, 100_001), (100_001, 3), (700, 700)):
        x = tl.from_numpy(rng.normal(size=(rows, columns)).astype(dtype))
        print(bits(x.sum(0)), bits(x.sum(1)), bits(x.std(1)), bits(x.softmax(1)))
    for m, k, n in ((1, 1500, 1500), (1500, 1500, 1), (700, 600, 500), (3, 50_000, 4), (9, 1, 9)):
        a = tl.from_numpy(rng.normal(size=(m, k)).astype(dtype)).requires_grad_()
        b = tl.from_numpy(rng.normal(size=(k, n)).astype(dtype)).requires_grad_()
        product = a @ b
        product.sum().backward()
        print(bits(product), bits(a.grad), bits(b.grad), bits(a.t().contiguous().t() @ b))
tl.manual_seed(3)
print(bits(tl.randn(300_000)), bits(tl.rand(300_000)), bits(tl.randperm(100_000)))
"""


def test_results_have_the_same_bits_for_any_number_of_threads():
    one, two, three = (run_forked(BITS, threads).splitlines() for threads in "123")
    assert len(one) > 20
    assert one == two == three


@pytest.mark.parametrize(
    "source", [FORK, THREADS, FORK_WHILE_BUSY, EXIT_WHILE_BUSY],
    ids=["fork", "threads", "fork while busy", "exit while busy"],
)
def test_nothing_hangs_or_crashes(source):
    assert run_forked(source) == "done\n"


def test_the_number_of_threads_can_be_changed_at_any_time():
    before = tl.get_num_threads()
    x = tl.ones(500_000)
    try:
        for count in (1, 2, 4, 1, 3):
            tl.set_num_threads(count)
            assert tl.get_num_threads() == count
            assert x.sum().item() == 500_000
    finally:
        tl.set_num_threads(before)


@pytest.mark.parametrize(
    "count, error", [(0, RuntimeError), (-1, RuntimeError), ("2", (RuntimeError, TypeError))]
)
def test_a_bad_number_of_threads_is_refused(count, error):
    before = tl.get_num_threads()
    with pytest.raises(error, match="set_num_threads"):
        tl.set_num_threads(count)
    assert tl.get_num_threads() == before


def test_threads_may_share_a_leaf():
    """Each thread builds and sweeps a graph of its own over the same weights."""
    weight = tl.ones(1000, dtype=tl.float64, requires_grad=True)
    failures = []

    def work(factor):
        for _ in range(50):
            (g,) = tl.autograd.grad((weight * factor).sum(), weight)
            if not bool((g == factor).all()):
                failures.append(factor)

    threads = [threading.Thread(target=work, args=(factor,)) for factor in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_a_graph_built_in_one_thread_is_swept_in_another():
    x = tl.ones(3, dtype=tl.float64, requires_grad=True)
    loss = (x.exp() * 2).sum()
    thread = threading.Thread(target=loss.backward)
    thread.start()
    thread.join()
    assert_close(x.grad, 2 * x.detach().exp())
