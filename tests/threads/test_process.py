"""What a process goes on doing: it tries an allocation again, works in parallel after a fork, lets
other threads run during large work."""

import pytest
from process import run_forked

# Blocks of one size are kept after use; with all addresses given to them, another size fits only
# once they have been given back.
TRIED_AGAIN = """
import resource
import tensorlib as tl
from tensorlib import memory
tl.set_num_threads(1)
room, size, other = 96 << 20, int(__import__("sys").argv[1]), int(__import__("sys").argv[2])
tl.ones(10).sum()
used = int(open("/proc/self/statm").read().split()[0]) * 4096
resource.setrlimit(resource.RLIMIT_AS, (used + room, used + room))
kept = []
try:
    while True:
        kept.append(tl.empty(size, dtype=tl.uint8))
except tl.OutOfMemoryError:
    n = len(kept)
assert n * size > room // 2, n
kept.clear()
x = tl.empty(other, dtype=tl.uint8).fill_(1)
assert x.numel() == other
print("done")
"""


@pytest.mark.parametrize("size, other", [(8 << 20, 24 << 20), (1 << 20, 40 << 20),
                                         (24 << 20, 3 << 20)])
def test_an_allocation_is_tried_again_without_the_blocks_kept(size, other):
    assert run_forked(TRIED_AGAIN, str(size), str(other)) == "done\n"


# A chunk waits until another thread has begun one: so both must take part.
TOGETHER = """
import ctypes, os, threading, time
import tensorlib as tl
from tensorlib._core.base import pool
FN = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_ssize_t)
capsule = pool.__pyx_capi__["parallel_for"]
get = ctypes.pythonapi.PyCapsule_GetPointer
get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
name = ctypes.pythonapi.PyCapsule_GetName
name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
parallel_for = ctypes.CFUNCTYPE(None, FN, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_ssize_t)(
    get(capsule, name(capsule)))

def workers():
    seen = set()
    def note(context, begin, end):
        seen.add(threading.get_ident())
        stop = time.monotonic() + 10
        while len(seen) < 2 and time.monotonic() < stop:
            time.sleep(0.001)
    parallel_for(FN(note), None, 4, 1)
    return len(seen)

tl.set_num_threads(2)
assert workers() >= 2
"""

FORKED_WHILE_BUSY = TOGETHER + """
inside, leave, status = threading.Event(), threading.Event(), []
def wait(context, begin, end):
    inside.set()
    leave.wait(30)
thread = threading.Thread(target=parallel_for, args=(FN(wait), None, 2, 1))
thread.start()
assert inside.wait(30)
child = os.fork()
if child == 0:
    os._exit(0 if workers() >= 2 else 1)
_, status = os.waitpid(child, 0)
leave.set()
thread.join()
assert os.waitstatus_to_exitcode(status) == 0
assert workers() >= 2
print("done")
"""


def test_a_child_forked_while_the_pool_was_busy_works_in_parallel():
    assert run_forked(FORKED_WHILE_BUSY) == "done\n"


# With an interval this long no thread gives up the GIL unless it releases it itself, so the other
# one counts only while work runs without it. It may need several tries to wake up in time.
OTHERS_RUN = """
import sys, threading, time
import tensorlib as tl
tl.set_num_threads(1)
x, ints = tl.rand(500, 500), tl.randint(9, (300, 300))
big, order = tl.rand(1_000_000), tl.randperm(1_000_000)
mask, wide = big > 0.5, big.reshape(1000, 1000)
out = tl.empty(1_000_000)
KINDS = [
    "x @ x", "ints @ ints", "x @ x[0]", "tl.outer(x[0], big[:9000])", "big.exp()", "big + big",
    "tl.add(big, wide[0, 0], out=out)", "big.mul_(1.0)", "big.to(tl.float64)", "wide.t() + wide",
    "wide + wide[0]", "big.sum()", "wide.sum(0)", "big.argmax()", "big.var()", "mask.any()",
    "mask.count_nonzero()", "wide.softmax(1)", "wide.t().contiguous()", "out.copy_(big)",
    "big.clone()", "out.fill_(1.0)", "tl.ones(1_000_000)", "big[order]", "big.gather(0, order)",
    "big[mask]", "mask.nonzero()", "big.masked_fill(mask, 0.0)", "tl.cat([big, big])",
    "tl.rand(1_000_000)", "tl.randn(1_000_000)", "tl.randint(9, (1_000_000,))",
    "tl.randperm(1_000_000)", "tl.arange(1_000_000)", "tl.linspace(0, 1, 1_000_000)",
]
counted, go, stop = 0, threading.Event(), False
def count():
    global counted
    go.set()
    while not stop:
        counted += 1
        time.sleep(0)
sys.setswitchinterval(1000)
thread = threading.Thread(target=count)
thread.start()
go.wait()
for kind in KINDS:
    work = eval("lambda: " + kind)
    before, end = counted, time.monotonic() + 4
    while counted == before and time.monotonic() < end:
        work()
    if counted == before:
        print(kind)
stop = True
thread.join()
"""


def test_other_threads_run_during_large_work_of_every_kind():
    assert run_forked(OTHERS_RUN).splitlines() == []
