"""What worker processes are made of, tried in one process: messages, replies, seeds, ends."""

import multiprocessing
import os
import pickle
import random
import signal
import threading
import types

import numpy as np
import pytest

import tensorlib as tl
from tensorlib.utils.data import (
    ConcatDataset,
    DataLoader,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    default_collate,
    transport,
    worker,
)
from tensorlib.utils.data.pool import Pool, WorkerDied, end
from tensorlib.utils.data.transport import ALIGNMENT, INLINE, Channel
from tensorlib.utils.data.worker import Plan, Reply, Task, Work, answer, seed_all


@pytest.fixture
def pair():
    """Both ends of a connection; all that is opened is closed."""
    ends = [Channel(end) for end in multiprocessing.Pipe(duplex=True)]
    yield ends
    for channel in ends:
        channel.shut()


def descriptors():
    """Open files; those of loaders that other tests left may be closed at any time."""
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0


# ---- messages ------------------------------------------------------------------------------------

@pytest.fixture
def memories(monkeypatch):
    """How many pieces of shared memory were made."""
    made, make = [], transport.unnamed_memory
    monkeypatch.setattr(transport, "unnamed_memory", lambda: made.append(1) or make())
    return made


@pytest.mark.parametrize("extra, shared", [(0, 0), (1, 1)])
def test_small_messages_travel_inline_and_larger_ones_as_memory(extra, shared, pair, memories):
    ours, theirs = pair
    head = len(pickle.dumps(np.zeros(20_000, np.uint8), 5, buffer_callback=lambda _: None))
    message = np.arange(INLINE - head + extra, dtype=np.uint8)
    before = descriptors()
    ours.send(7, message)
    epoch, opened = theirs.receive()
    found = opened()
    assert epoch == 7 and np.array_equal(found, message) and len(memories) == shared
    assert found.flags.writeable and descriptors() <= before
    found[0] += 1
    assert message[0] == 0


def test_parts_of_a_message_lie_aligned():
    assert transport.starts_of([]) == [0]
    assert transport.starts_of([1, ALIGNMENT, ALIGNMENT + 1, 0]) == [
        0, ALIGNMENT, 2 * ALIGNMENT, 4 * ALIGNMENT, 4 * ALIGNMENT]


@pytest.mark.parametrize("named", [False, True])
def test_memory_is_written_and_read_piece_by_piece(named, monkeypatch):
    if not named:                       # a file without a name stands for it where there is none
        monkeypatch.delattr(os, "memfd_create", raising=False)
    write, read = os.pwrite, os.preadv
    monkeypatch.setattr(os, "pwrite", lambda f, data, at: write(f, data[:7], at))
    monkeypatch.setattr(os, "preadv", lambda f, parts, at: read(f, [parts[0][:11]], at))
    parts = [memoryview(bytes(range(100))), memoryview(b""), memoryview(np.arange(30, dtype="i2"))]
    before = descriptors()
    memory = transport.unnamed_memory()
    try:
        transport.write_all(memory, parts)
        found = transport.read_all(memory, [part.nbytes for part in parts])
        assert [bytes(x) for x in found] == [bytes(part) for part in parts]
        assert os.fstat(memory).st_size == 3 * ALIGNMENT
        os.ftruncate(memory, 50)
        with pytest.raises(EOFError):
            transport.read_all(memory, [100])
    finally:
        os.close(memory)
    assert descriptors() <= before


def test_a_connection_is_shut_once_and_for_both():
    ours, theirs = (Channel(end) for end in multiprocessing.Pipe(duplex=True))
    before = descriptors()
    ours.shut()
    ours.shut()
    with pytest.raises(EOFError):
        theirs.receive()
    with pytest.raises(OSError):
        theirs.send(1, "a")
    theirs.shut()
    assert descriptors() <= before - 2 or not before


# ---- a worker's answers --------------------------------------------------------------------------

def plan(dataset=range(10), iterable=False, init=None, drop_last=False):
    return Plan(dataset, iterable, True, list, drop_last, 2, 5, init)


def test_replies_of_a_worker():
    work = Work(plan(), 1)
    assert work.reply_to(Task(1, [3, 4])) == Reply([3, 4])
    assert work.reply_to(Task(2, [])) == Reply([]) and work.epoch == 2
    kinds, text = work.reply_to(Task(2, [99])).error
    assert ("builtins", "IndexError") in kinds and ("builtins", "BaseException") not in kinds
    assert text.startswith("Caught IndexError in DataLoader worker process 1.\nOriginal Traceback")
    kinds, text = work.reply_to(Task(2, None, LookupError("made elsewhere"))).error
    assert kinds[0] == ("builtins", "LookupError") and "made elsewhere" in text
    assert work.reply_to(Task(2, [5])) == Reply([5])


class Letters(IterableDataset):
    def __iter__(self):
        return iter("abc")


@pytest.mark.parametrize("drop_last", [False, True])
def test_replies_of_an_iterable_dataset(drop_last):
    work = Work(plan(Letters(), True, drop_last=drop_last), 0)
    for epoch in (1, 2):                          # each begins anew
        rest = [] if drop_last else [Reply(["c"])]
        found = [work.reply_to(Task(epoch, [None, None])) for _ in range(4)]
        assert found == [Reply(["a", "b"]), *rest, *[Reply(ended=True)] * (3 - len(rest))]
        assert work.ended


class Broken(IterableDataset):
    """Its iterator can't be made in the first epoch."""
    times = 0

    def __iter__(self):
        Broken.times += 1
        if Broken.times == 1:
            raise ValueError("not yet")
        return iter("ab")


def test_an_iterator_that_was_not_made_is_no_endless_error():
    work = Work(plan(Broken(), True), 0)
    assert "not yet" in work.reply_to(Task(1, [None])).error[1]
    assert work.reply_to(Task(1, [None])) == Reply(ended=True)
    assert work.reply_to(Task(2, [None])) == Reply(["a"])


def test_a_start_that_failed_is_the_answer_to_all():
    def fails(id):
        raise KeyError(f"start {id}")

    work = Work(plan(init=fails), 3)
    first, second = (work.reply_to(Task(1, [0])) for _ in range(2))
    assert first == second and first.batch is None and "'start 3'" in first.error[1]
    seen = []
    Work(plan(init=seen.append), 3)
    assert seen == [3]


def test_what_can_not_be_sent_is_answered_by_an_error(pair):
    ours, theirs = pair
    answer(theirs, 4, Reply(lambda: 0), "in a worker")
    epoch, opened = ours.receive()
    reply = opened()
    assert epoch == 4 and reply.batch is None and "in a worker" in reply.error[1]
    ours.shut()
    with pytest.raises(OSError):
        answer(theirs, 4, Reply(1), "in a worker")


def test_all_generators_are_seeded():
    state = tl.get_rng_state(), random.getstate(), np.random.get_state()
    try:
        drawn = []
        for seed in (3, 3, 4):
            seed_all(seed)
            assert tl.initial_seed() == seed
            drawn.append((tl.rand(1).item(), random.random(), np.random.rand()))
        assert drawn[0] == drawn[1] and all(a != b for a, b in zip(drawn[0], drawn[2]))
    finally:
        tl.set_rng_state(state[0])
        random.setstate(state[1])
        np.random.set_state(state[2])


def test_a_worker_runs_its_tasks_in_their_epoch(pair, monkeypatch):
    """The life of a worker, in this process: of an epoch that was given up nothing is fetched."""
    ours, theirs = pair
    monkeypatch.setattr(worker, "current", None)
    left = threading.Event()
    monkeypatch.setattr(worker.os, "_exit", lambda code: left.set())
    monkeypatch.setattr(worker, "LEAVE_WITHIN", 0)
    state, threads = (random.getstate(), np.random.get_state()), tl.get_num_threads()
    before, started = signal.getsignal(signal.SIGINT), []
    generator = tl.get_rng_state()
    try:
        ours.send(1, [0, 1])
        ours.send(2, [2, 3])
        ours.send(2, [4])
        ours.connection.close()
        received = []
        monkeypatch.setattr(worker, "answer", lambda channel, epoch, reply, place: received.append(
            (epoch, reply.batch, place)))
        worker.run(theirs, plan(init=started.append), 1)
        assert [r for r in received if r[0] == 2] == [
            (2, [2, 3], "in DataLoader worker process 1"),
            (2, [4], "in DataLoader worker process 1")]
        assert left.wait(20)                      # its thread would end the process
        assert started == [1] and worker.current.seed == 6 == tl.initial_seed()
        assert worker.current.id == 1 and worker.current.num_workers == 2
        assert tl.get_num_threads() == 1
    finally:
        signal.signal(signal.SIGINT, before)
        tl.set_num_threads(threads)
        tl.set_rng_state(generator)
        random.setstate(state[0])
        np.random.set_state(state[1])


# ---- the pool ------------------------------------------------------------------------------------

def test_a_pool_waits_says_who_died_and_ends():
    before = descriptors()
    pool = Pool(multiprocessing.get_context("fork"), plan())
    try:
        pool.new_epoch()
        with pytest.raises(RuntimeError, match="DataLoader timed out after 0.01 seconds"):
            pool.wait([0, 1], 0.01)
        pool.send(1, [5])
        assert pool.wait([0, 1], 20) == 1 and pool.replies[1].popleft() == Reply([5])
        pool.send(0, [6])
        pool.wait([0], 0)
        pool.new_epoch()
        assert not pool.replies[0]
        victim = pool.processes[0]
        os.kill(victim.pid, signal.SIGKILL)
        victim.join()
        with pytest.raises(WorkerDied, match=rf"DataLoader worker 0 \(pid {victim.pid}\) exited un"
                                             r"expectedly: it was killed by signal 9 \(SIGKILL\)"):
            while True:
                pool.send(0, [1])
        assert not pool.close.alive and victim not in multiprocessing.active_children()
    finally:
        pool.close()
    assert descriptors() <= before


def test_a_pool_that_can_not_start_leaves_nothing():
    context = multiprocessing.get_context("fork")
    made = []

    def process(**options):
        if made:
            raise OSError("no more processes")
        made.append(context.Process(**options))
        return made[0]

    before = descriptors()
    with pytest.raises(OSError, match="no more processes"):
        Pool(types.SimpleNamespace(Pipe=context.Pipe, Process=process), plan())
    assert len(made) == 1 and made[0] not in multiprocessing.active_children()
    assert descriptors() <= before


def test_a_fork_of_the_owner_ends_no_processes(pair):
    selector = types.SimpleNamespace(closed=0, close=lambda: setattr(selector, "closed", 1))
    end(os.getpid() + 1, pair, [object()], selector)
    assert selector.closed and not any(channel.connection.closed for channel in pair)


class Stops:
    """A sampler that fails at its third index."""

    def __iter__(self):
        yield from (0, 1)
        raise ArithmeticError("no third")

    def __len__(self):
        return 3


def test_a_loader_whose_sampler_fails_leaves_no_processes():
    loader = DataLoader(range(5), 1, sampler=Stops(), num_workers=2)
    before = {process.pid for process in multiprocessing.active_children()}
    with pytest.raises(ArithmeticError, match="no third") as raised:
        iter(loader)
    assert {process.pid for process in multiprocessing.active_children()} <= before
    assert raised.traceback                       # holds the loader, whose processes have ended


def test_an_epoch_that_has_ended_stays_at_its_end():
    batches = iter(DataLoader(range(3), 2, num_workers=1))
    assert [batch.tolist() for batch in batches] == [[0, 1], [2]]
    assert next(batches, "end") == next(batches, "end") == "end"


def test_the_context_of_a_loader():
    loader = DataLoader(range(3), num_workers=1, multiprocessing_context="spawn")
    assert loader.multiprocessing_context.get_start_method() == "spawn"
    assert DataLoader(range(3)).multiprocessing_context is None


# ---- datasets ------------------------------------------------------------------------------------

def test_lengths_and_old_names():
    both = ConcatDataset(["ab", "cde"])
    with pytest.warns(DeprecationWarning, match="renamed to cumulative_sizes") as caught:
        assert both.cummulative_sizes == [2, 5]
    assert caught[0].filename == __file__
    assert len(StackDataset("abc", range(3))) == 3 == len(StackDataset(a="abc", b=range(3)))
    assert StackDataset(a="abc", b=TensorDataset(tl.ones(3))).__getbatch__ is None
    assert StackDataset("abc", TensorDataset(tl.ones(3))).__getbatch__ is None
    assert set(tl.data.__all__) == set(dir(tl.data))


def test_a_list_of_positions_in_a_subset():
    x = tl.arange(10) * 10
    part = Subset(x, [7, 1, 4])
    assert part[[2, 0]].tolist() == [40, 70] and part[1].item() == 10


class Frozen(dict):
    """A mapping that is made of nothing."""

    def __init__(self, **values):
        super().__init__(values)

    def copy(self):
        raise TypeError

    __copy__ = copy


def test_a_mapping_that_takes_no_values_becomes_a_dict():
    found = default_collate([Frozen(a=1), Frozen(a=2)])
    assert type(found) is dict and found["a"].tolist() == [1, 2]
    kept = default_collate([types.MappingProxyType({"a": 1}), types.MappingProxyType({"a": 2})])
    assert type(kept) is types.MappingProxyType and kept["a"].tolist() == [1, 2]
