"""Worker processes: the same batches as without, their errors, and how they end."""

import multiprocessing
import os
import random
import warnings

import numpy as np
import pytest
from process import run_python

import tensorlib as tl
from tensorlib.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    TensorDataset,
    get_worker_info,
)
from tensorlib.utils.data.pool import error_of
from tensorlib.utils.data.worker import Reply

POINTS = TensorDataset(tl.arange(120.0).reshape(30, 4), tl.arange(30))
LARGE = TensorDataset(tl.rand(64, 5000), tl.arange(64))      # batches that travel as memory


def tolist(batches):
    return [[part.tolist() for part in batch] for batch in batches]


@pytest.mark.parametrize("dataset", [POINTS, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("in_order", [True, False])
def test_workers_change_nothing(dataset, in_order):
    def batches(**options):
        generator = tl.Generator().manual_seed(4)
        loader = DataLoader(dataset, 4, shuffle=True, generator=generator, **options)
        return tolist(loader) + tolist(loader)
    alone = batches()
    found = batches(num_workers=2, in_order=in_order, persistent_workers=True)
    assert found == alone if in_order else sorted(found) == sorted(alone)


def test_started_anew_they_are_told_all_they_need():
    """Under `spawn` a worker shares nothing with its parent but what is sent."""
    options = {"num_workers": 1, "multiprocessing_context": "spawn"}
    assert tolist(DataLoader(POINTS, 16, **options)) == tolist(DataLoader(POINTS, 16))


class Kinds(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return {"image": np.full((70, 70), index, np.float32), "name": f"{index}" * 40_000,
                "half": tl.ones(3).bfloat16() * index, "empty": tl.empty(0, 2),
                "turned": tl.rand(3, 2).t()}


def test_what_travels():
    (batch,) = DataLoader(Kinds(), 4, num_workers=1)
    assert batch["image"].mean((1, 2)).tolist() == [0, 1, 2, 3]
    assert batch["half"].dtype == tl.bfloat16 and batch["half"].sum(1).tolist() == [0, 3, 6, 9]
    assert [len(name) for name in batch["name"]] == [40_000] * 4
    assert batch["empty"].shape == (4, 0, 2) and batch["turned"].shape == (4, 2, 3)
    batch["image"] += 1                           # the memory is the receiver's own
    assert batch["image"].sum() == 4900 * 10


class Part(IterableDataset):
    """The numbers below n, shared out over the workers."""

    def __init__(self, n):
        self.n = n

    def __iter__(self):
        info = get_worker_info()
        return iter(range(info.id, self.n, info.num_workers))


@pytest.mark.parametrize("n, drop_last", [(17, False), (17, True), (3, False), (0, False)])
def test_iterable_datasets(n, drop_last):
    loader = DataLoader(Part(n), 2, num_workers=3, drop_last=drop_last, persistent_workers=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first, second = ([batch.tolist() for batch in loader] for _ in range(2))
    assert first == second
    if not drop_last:
        assert sorted(sum(first, [])) == list(range(n))
    assert first[:3] == [[0, 3], [1, 4], [2, 5]][:len(first)] or n == 3


class Draws(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        info = get_worker_info()
        return info.id, info.seed, tl.initial_seed(), int(tl.randint(0, 10**6, ())), \
            random.randrange(10**6), int(np.random.randint(10**6)), os.environ.get("STARTED", "")


def started(id):
    os.environ["STARTED"] = f"{id}"


def test_seeds_and_starts():
    def draws(seed):
        generator = tl.Generator().manual_seed(seed)
        return list(DataLoader(Draws(), None, num_workers=2, generator=generator,
                               worker_init_fn=started))
    first = draws(1)
    assert [row[0] for row in first] == [0, 1, 0, 1] and [row[-1] for row in first] == list("0101")
    assert first[1][1] == first[0][1] + 1 and all(row[1] == row[2] for row in first)
    assert first == draws(1) and first[0][1:6] != draws(2)[0][1:6]
    assert len({tuple(row[3:6]) for row in first}) == 4


class Fragile(Dataset):
    def __init__(self, error):
        self.error = error

    def __len__(self):
        return 4

    def __getitem__(self, index):
        if index == 1:
            raise self.error
        return index


class Awkward(Exception):
    def __init__(self, one, two):
        super().__init__(one, two)


@pytest.mark.parametrize("error, kind", [
    (ValueError("bad"), ValueError), (KeyError("bad"), KeyError), (Awkward("bad", 2), RuntimeError),
    (StopIteration("bad"), RuntimeError), (UnicodeDecodeError("utf8", b"bad", 0, 1, "bad"),
                                           RuntimeError)],
    ids=lambda value: type(value).__name__)
def test_errors_keep_their_type_and_traceback(error, kind):
    batches = iter(DataLoader(Fragile(error), 1, num_workers=2))
    assert next(batches).tolist() == [0]
    with pytest.raises(kind) as raised:
        next(batches)
    text = str(raised.value)
    assert "in DataLoader worker process 1" in text and "in __getitem__" in text and "bad" in text
    assert [batch.tolist() for batch in batches] == [[2], [3]]


def fails(id):
    raise ValueError(f"no start of {id}")


def test_a_start_that_fails_and_what_cannot_be_sent():
    with pytest.raises(ValueError, match="no start of 0"):
        list(DataLoader(POINTS, 4, num_workers=1, worker_init_fn=fails))
    with pytest.raises(Exception, match="(?s)worker process 0.*pickle"):
        list(DataLoader(range(1), 1, num_workers=1, collate_fn=function_of))


def function_of(examples):
    return lambda: examples


class Local:
    """What another process than the one that made it can't unpickle."""

    def __reduce__(self):
        return opened_by, (os.getpid(),)


def opened_by(pid):
    if pid != os.getpid():
        raise LookupError("made elsewhere")
    return Local()


def local(examples):
    return Local() if examples == [1] else examples[0]


def test_what_arrives_broken_is_an_error_and_no_hang():
    for dataset, keys in ((range(4), [[0], [1], [2]]), ({0: 0, 2: 2}, [[0], [Local()], [2]])):
        loader = DataLoader(dataset, batch_sampler=keys, num_workers=2, collate_fn=local)
        batches = iter(loader)
        assert next(batches) == 0
        with pytest.raises(LookupError, match="(?s)worker process 1.*made elsewhere"):
            next(batches)
        assert list(batches) == [2]


def test_queues_pass_tensors():
    queue = multiprocessing.get_context("fork").SimpleQueue()
    for x in (tl.arange(3), tl.rand(5, 4).t().bfloat16(), tl.ones(2, requires_grad=True)):
        queue.put(x)
        found = queue.get()
        assert found.dtype == x.dtype and found.requires_grad == x.requires_grad
        assert (found == x).all()


def test_types_of_errors_are_looked_up_not_imported():
    reply = Reply(error=([("no.such.module", "Error"), ("builtins", "OSError")], "text"))
    assert type(error_of(reply)) is OSError
    assert type(error_of(Reply(error=([("os", "system")], "true")))) is RuntimeError


# Programs that are not files: what they define is there in a forked process alone.
ENDINGS = """
import gc, multiprocessing, os, signal, sys, threading, time
import tensorlib as tl
from tensorlib.utils.data import DataLoader, Dataset

class Slow(Dataset):
    def __init__(self, seconds=0.0, victim=None):
        self.seconds, self.victim = seconds, victim
    def __len__(self):
        return 40
    def __getitem__(self, index):
        if index == self.victim:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(self.seconds)
        return tl.full((100, 200), float(index))

def children():
    return open(f"/proc/self/task/{os.getpid()}/children").read().split()

def files():
    return len(os.listdir("/proc/self/fd"))

multiprocessing.set_start_method("fork")
signal.signal(signal.SIGINT, signal.default_int_handler)      # which a job in the background lacks
list(DataLoader(Slow(), 8, num_workers=1))          # what is opened once is open now
before, shared = files(), os.listdir("/dev/shm")
begin = time.monotonic()
"""
AFTER = """
gc.collect()
assert not children(), children()
assert files() == before, (files(), before)
assert os.listdir("/dev/shm") == shared
assert time.monotonic() - begin < 15
begin = time.monotonic()
print({way!r})
"""
WAYS = {
    "kept": """
kept = list(DataLoader(Slow(), 4, num_workers=2))
""",
    "killed": """
try:
    list(DataLoader(Slow(victim=21), 4, num_workers=3))
except RuntimeError as error:
    assert "killed by signal 9 (SIGKILL)" in str(error) and "pid" in str(error), error
    assert tl.data.DataLoader                        # all else goes on
else:
    raise AssertionError
""",
    "exits": """
class Exits(Slow):
    def __getitem__(self, index):
        os._exit(3)
try:
    list(DataLoader(Exits(), 4, num_workers=1))
except RuntimeError as error:
    assert "ended with exit code 3" in str(error), error
else:
    raise AssertionError
""",
    "break": """
for batch in DataLoader(Slow(0.001), 4, num_workers=2, prefetch_factor=4):
    break
""",
    "deleted": """
loader = DataLoader(Slow(), 4, num_workers=2, persistent_workers=True)
assert len(list(loader)) == 10 and len(children()) == 2
kept = children()
next(iter(loader))
assert children() == kept and len(list(loader)) == 10 and children() == kept
del loader
""",
    "timeout": """
loader = DataLoader(Slow(30), 4, num_workers=2, timeout=0.2)
try:
    list(loader)
except RuntimeError as error:
    assert "timed out after 0.2 seconds" in str(error)
else:
    raise AssertionError
""",
    "Ctrl-C": """
threading.Timer(0.5, lambda: os.killpg(0, signal.SIGINT)).start()
try:
    for batch in DataLoader(Slow(0.3), 4, num_workers=2):
        pass
except KeyboardInterrupt:
    pass
else:
    raise AssertionError
""",
}


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="looks at Linux's /proc")
def test_nothing_is_left_however_it_ends():
    """One after the other in one process, which each leaves as it was."""
    steps = "".join(text + AFTER.replace("{way!r}", repr(way)) for way, text in WAYS.items())
    assert run_python(ENDINGS + steps).splitlines() == list(WAYS)


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="looks at Linux's /proc")
def test_workers_do_not_outlive_a_killed_parent():
    """Nor does one that leaves them running when it ends."""
    run_python(ENDINGS + """
for end in (lambda: os.kill(os.getpid(), signal.SIGKILL), sys.exit):
    out, into = os.pipe()
    if not (parent := os.fork()):
        batches = iter(DataLoader(Slow(0.05), 4, num_workers=2))
        next(batches)
        os.write(into, " ".join(children()).encode())
        end()
    workers = os.read(out, 1000).split()
    os.waitpid(parent, 0)
    assert len(workers) == 2
    while any(os.path.exists(f"/proc/{int(pid)}") and
              open(f"/proc/{int(pid)}/stat").read().split()[2] != "Z" for pid in workers):
        assert time.monotonic() - begin < 30
        time.sleep(0.05)
""")


def test_a_killed_worker_that_had_forked_is_noticed():
    """Its child holds the pipes of the worker open, until this process has ended."""
    assert run_python("""
import multiprocessing, os, signal
from tensorlib.utils.data import DataLoader
multiprocessing.set_start_method("fork")
out, into = os.pipe()

class Forking:
    def __len__(self):
        return 8

    def __getitem__(self, i):
        if i == 3:
            if not os.fork():
                os.close(into)
                os.read(out, 1)
                os._exit(0)
            os.kill(os.getpid(), signal.SIGKILL)
        return i

try:
    list(DataLoader(Forking(), num_workers=2))
except RuntimeError as error:
    print(error)
""").strip().endswith("was killed by signal 9 (SIGKILL)")
