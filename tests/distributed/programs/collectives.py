"""Every collective against what one process computes from the inputs of all ranks."""

import os
from functools import reduce

from common import all_parts, drawn, raised

import tensorlib as tl
from tensorlib import distributed as dist

DTYPES = [tl.uint8, tl.int8, tl.int16, tl.int32, tl.int64, tl.float16, tl.bfloat16, tl.float32,
          tl.float64]
FOLDS = {"sum": tl.add, "product": tl.mul, "min": tl.minimum, "max": tl.maximum}
BITS = {"band": tl.bitwise_and, "bor": tl.bitwise_or, "bxor": tl.bitwise_xor}


def assert_same(found, expected):
    assert found.dtype == expected.dtype and found.shape == expected.shape, (found, expected)
    assert tl.equal(found, expected), (found, expected)


def test_reductions(rank, size):
    for dtype in DTYPES:
        inputs = [drawn(r, 3, 4).abs().to(dtype) for r in range(size)]
        folds = FOLDS if dtype.is_floating_point else {**FOLDS, **BITS}
        for name, fold in folds.items():
            expected = reduce(fold, inputs)
            x = inputs[rank].clone()
            assert dist.all_reduce(x, getattr(dist.ReduceOp, name.upper())) is None
            assert_same(x, expected)
            x = inputs[rank].clone()
            dist.reduce(x, size - 1, name)
            assert_same(x, expected if rank == size - 1 else inputs[rank])
        if dtype.is_floating_point:
            x = inputs[rank].clone()
            dist.all_reduce(x, dist.ReduceOp.AVG)
            assert_same(x, reduce(tl.add, inputs) / size)
        else:
            raised(TypeError, lambda: dist.all_reduce(inputs[rank].clone(), "avg"), "AVG")
    x = tl.tensor([rank == 0, True, False])
    dist.all_reduce(x)
    assert x.tolist() == [True, True, False]
    dist.all_reduce(x, "min")
    assert x.tolist() == [True, True, False]
    raised(TypeError, lambda: dist.all_reduce(tl.ones(2), "band"), "BAND is not defined")


def test_halves_are_summed_in_float32(rank, size):
    x = tl.full((3,), 2048.0 if rank == 0 else 1.0, dtype=tl.float16)
    dist.all_reduce(x)
    assert x.tolist() == [2048.0 + (2 if size > 2 else 0)] * 3 or size < 4, x
    x = tl.full((2,), 300.0, dtype=tl.float16)
    dist.all_reduce(x, "product")
    assert x.tolist() == [300.0 if size == 1 else tl.inf] * 2


def test_views_are_packed_and_go_back_to_their_place(rank, size):
    whole = drawn(rank, 4, 6)
    before = whole.clone()
    dist.all_reduce(whole.t()[1:5:2])
    total = reduce(tl.add, [drawn(r, 4, 6) for r in range(size)])
    for column in range(6):
        assert_same(whole[:, column], (total if column in (1, 3) else before)[:, column])
    assert_same(whole, tl.where(tl.tensor([0, 1, 0, 1, 0, 0]) > 0, total, before))


def test_contiguous_tensors_go_by_their_memory(rank, size):
    x = tl.full((1 << 20,), float(rank))
    place, version = x.data_ptr(), x._version

    work = dist.all_reduce(x, async_op=True)
    assert work.wait() and work.is_completed() and work.is_success()
    assert x.data_ptr() == place and x._version > version
    assert_same(x, tl.full((1 << 20,), float(sum(range(size)))))


def test_a_value_that_the_graph_keeps_is_not_overwritten_unnoticed(rank, size):
    w = tl.ones(3, requires_grad=True)
    kept = tl.ones(3)
    loss = (w * kept).sum()
    dist.all_reduce(kept)
    raised(RuntimeError, loss.backward, "mul")


def test_broadcast_gather_and_scatter(rank, size):
    for root in range(size):
        x = drawn(rank, 2, 3).t()
        dist.broadcast(x, root)
        assert_same(x, drawn(root, 2, 3).t())
        parts = [tl.empty(2, 2) for _ in range(size)] if rank == root else None
        dist.gather(tl.full((2, 2), float(rank)), parts, dst=root)
        if rank == root:
            for r, part in enumerate(parts):
                assert_same(part, tl.full((2, 2), float(r)))
        parts = [drawn(10 + r, 5) for r in range(size)] if rank == root else None
        x = tl.empty(5)
        dist.scatter(x, parts, group_src=root)
        assert_same(x, drawn(10 + rank, 5))


def test_all_gather(rank, size):
    parts = [tl.empty(2, r + 1) for r in range(size)]          # of different shapes
    dist.all_gather(parts, drawn(rank, 2, rank + 1))
    for r, part in enumerate(parts):
        assert_same(part, drawn(r, 2, r + 1))
    out = tl.empty(size, 2, 3)
    dist.all_gather(list(out), drawn(rank, 2, 3))              # rows of one tensor
    dist.all_gather_into_tensor(whole := tl.empty(size * 2, 3), drawn(rank, 2, 3))
    assert_same(out.flatten(0, 1), whole)
    assert_same(out, tl.stack([drawn(r, 2, 3) for r in range(size)]))


def test_reduce_scatter(rank, size):
    inputs = [drawn(r, size, 2, 3) for r in range(size)]
    expected = reduce(tl.add, inputs)[rank]
    dist.reduce_scatter(x := tl.empty(2, 3), list(inputs[rank]))
    assert_same(x, expected)
    dist.reduce_scatter_tensor(x := tl.empty(2, 3), inputs[rank].flatten(0, 1), "avg")
    assert_same(x, expected / size)
    uneven = [drawn(50 + r, r + 1) for r in range(size)]
    dist.reduce_scatter(x := tl.empty(rank + 1), uneven, "max")
    assert_same(x, uneven[rank])


def test_all_to_all(rank, size):
    sent = [drawn(100 * rank + r, r + 1) for r in range(size)]
    taken = [tl.empty(rank + 1) for _ in range(size)]
    dist.all_to_all(taken, sent)
    for r, x in enumerate(taken):
        assert_same(x, drawn(100 * r + rank, rank + 1))
    x = tl.arange(2 * size * 2).reshape(2 * size, 2) + 1000 * rank
    dist.all_to_all_single(out := tl.empty_like(x), x)
    assert_same(out,
                tl.cat([tl.arange(4).reshape(2, 2) + 4 * rank + 1000 * r for r in range(size)]))
    splits = [r + 1 for r in range(size)]
    x = tl.full((sum(splits),), float(rank))
    out = tl.empty(size * (rank + 1))
    dist.all_to_all_single(out, x, [rank + 1] * size, splits)
    assert_same(out, tl.arange(size).repeat_interleave(rank + 1).float())


def test_empty_and_numbers(rank, size):
    x = tl.empty(0, 3)
    dist.all_reduce(x)
    dist.broadcast(x, 0)
    one = tl.tensor(2.5)
    dist.all_reduce(one)
    assert one.item() == 2.5 * size
    dist.all_gather_into_tensor(out := tl.empty(size), tl.tensor(float(rank)))
    assert out.tolist() == list(range(size))


def test_asynchronous_calls(rank, size):
    xs = [tl.full((1000 + i,), float(i)) for i in range(5)]
    works = [dist.all_reduce(x, async_op=True) for x in xs]
    for x, work in reversed(list(zip(xs, works))):
        assert work.wait()
        assert_same(x, tl.full(x.shape, x.shape[0] - 1000.0) * size)
    future = dist.all_reduce(tl.ones(2), async_op=True).get_future()
    assert future.then(lambda f: f.value()[0] * 2).wait().tolist() == [2.0 * size] * 2
    assert dist.barrier(async_op=True).wait()


def test_messages(rank, size):
    right, left = (rank + 1) % size, (rank - 1) % size
    if size > 1:
        x, y = drawn(rank, 3, 2).t(), tl.empty(2, 3)
        works = dist.batch_isend_irecv([dist.P2POp(dist.isend, x, right),
                                        dist.P2POp(dist.irecv, y, left)])
        for work in works:
            work.wait()
        assert_same(y, drawn(left, 3, 2).t())
        if rank == 0:
            seen = {dist.recv(y) for _ in range(size - 1)}
            assert seen == set(range(1, size))
        else:
            dist.send(tl.ones(2, 3), 0)
        if rank == 0:
            large = dist.isend(tl.ones(300_000), 1, tag=7)
            dist.send(tl.ones(2), 1)
            large.wait()
        if rank == 1:
            dist.recv(two := tl.empty(2), 0)
            if os.environ["TENSORLIB_DISTRIBUTED_CHECK"] == "1":
                raised(RuntimeError, lambda: dist.recv(tl.empty(300_000, dtype=tl.int32), 0, tag=7),
                       "irecv: rank 0 sent float32[300000]", "int32[300000]")
            else:                    # sizes are compared always
                raised(RuntimeError, lambda: dist.recv(tl.empty(300_001), 0, tag=7),
                       "irecv: rank 0 sent 300000 elements", "300001")
            assert two.tolist() == [1, 1]
        dist.barrier()
        raised(ValueError, lambda: dist.send(x, rank), "this rank itself")
    raised(ValueError, lambda: dist.recv(tl.ones(1), size), f"src={size} is not in")


def test_objects(rank, size):
    found = [None] * size
    dist.all_gather_object(found, {"rank": rank, "long": "x" * (1000 * rank)})
    assert [each["rank"] for each in found] == list(range(size))
    assert all(len(each["long"]) == 1000 * r for r, each in enumerate(found))
    found = [None] * size if rank == 0 else None
    dist.gather_object((rank, tl.ones(2)), found)
    if rank == 0:
        assert [each[0] for each in found] == list(range(size)) and found[-1][1].tolist() == [1, 1]
    told = [{"lr": 0.5}, "two"] if rank == size - 1 else [None, None]
    dist.broadcast_object_list(told, src=size - 1)
    assert told == [{"lr": 0.5}, "two"]
    out = [None]
    dist.scatter_object_list(out, [f"for {r}" for r in range(size)] if rank == 0 else None)
    assert out == [f"for {rank}"]
    raised(ValueError, lambda: dist.all_gather_object([None] * (size + 1), 1), "places for")


def test_groups(rank, size):
    even = dist.new_group(list(range(0, size, 2)))
    alone = [dist.new_group([r]) for r in range(size)]
    x = tl.tensor([float(rank)])
    if rank % 2 == 0:
        dist.all_reduce(x, group=even)
        assert x.item() == sum(range(0, size, 2)) and dist.get_rank(even) == rank // 2
        assert dist.get_global_rank(even, dist.get_rank(even)) == rank
    else:
        assert dist.get_rank(even) == -1 and dist.get_world_size(even) == -1 and (
            dist._rank_not_in_group(even))
        raised(ValueError, lambda: dist.all_reduce(x, group=even),
               f"all_reduce: rank {rank} is not in group", "only its members")
    dist.all_reduce(y := tl.ones(2), group=alone[rank])
    assert y.tolist() == [1, 1]
    raised(ValueError, lambda: dist.new_group([size]), "not different ones")
    dist.destroy_process_group(alone[rank])
    raised(dist.NoGroupError, lambda: dist.all_reduce(y, group=alone[rank]), "was destroyed")
    if size % 2 == 0:
        own, groups = dist.new_subgroups(2)
        assert len(groups) == size // 2 and own.ranks == [rank - rank % 2, rank - rank % 2 + 1]


def test_barriers(rank, size):
    dist.barrier()
    dist.monitored_barrier(timeout=10)
    dist.monitored_barrier(wait_all_ranks=True)


if __name__ == "__main__":
    all_parts(globals())
