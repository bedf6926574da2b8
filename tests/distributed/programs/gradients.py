"""Collectives with gradients, against one process that computes what all ranks do."""

from common import all_parts, drawn, raised

import tensorlib as tl
import tensorlib.distributed.nn.functional as D
from tensorlib import distributed as dist


def weights(rank, *shape):
    return drawn(1000 + rank, *shape, dtype=tl.float64) + 0.5


def test_reductions_have_the_gradient_of_the_sum_of_all_losses(rank, size):
    for kind in ("sum", "avg", "max", "min", "product"):
        inputs = [drawn(r, 7, dtype=tl.float64).requires_grad_() for r in range(size)]
        stacked = tl.stack(inputs)
        out = {"sum": lambda: stacked.sum(0), "avg": lambda: stacked.mean(0),
               "max": lambda: stacked.amax(0), "min": lambda: stacked.amin(0),
               "product": lambda: stacked.prod(0)}[kind]()
        sum((out * weights(r, 7)).sum() for r in range(size)).backward()
        x = drawn(rank, 7, dtype=tl.float64).requires_grad_()
        found = D.all_reduce(x, kind)
        tl.testing.assert_close(found.detach(), out.detach())
        (found * weights(rank, 7)).sum().backward()
        tl.testing.assert_close(x.grad, inputs[rank].grad)


def test_moves(rank, size):
    x = drawn(rank, 3, 2, dtype=tl.float64).requires_grad_()
    loss = sum((part * weights(r, 3, 2)).sum() * (rank + 1)
               for r, part in enumerate(D.all_gather(x)))
    loss.backward()
    assert tl.equal(x.grad, weights(rank, 3, 2) * sum(range(1, size + 1)))

    x = drawn(rank, 3, dtype=tl.float64).requires_grad_()
    (D.broadcast(x, size - 1) * weights(rank, 3)).sum().backward()
    total = sum(weights(r, 3) for r in range(size))
    assert tl.equal(x.grad, total if rank == size - 1 else tl.zeros_like(total))

    xs = [drawn(r, 3, dtype=tl.float64).requires_grad_() for r in range(size)]
    part = D.reduce_scatter(tl.empty(3, dtype=tl.float64), xs)
    (part * weights(rank, 3)).sum().backward()
    assert all(tl.equal(x.grad, weights(r, 3)) for r, x in enumerate(xs))

    xs = [drawn(r, r + 1, dtype=tl.float64).requires_grad_() for r in range(size)]
    parts = D.all_to_all([tl.empty(rank + 1, dtype=tl.float64)] * size, xs)
    assert all(tl.equal(part, drawn(rank, rank + 1, dtype=tl.float64)) for part in parts)
    sum((part * (10 * rank + r)).sum() for r, part in enumerate(parts)).backward()
    assert all(x.grad.tolist() == [10 * r + rank] * (r + 1) for r, x in enumerate(xs))

    x = drawn(rank, 2, dtype=tl.float64).requires_grad_()
    parts = D.gather(x, 0)
    sum(part.sum() * (r + 1) for r, part in enumerate(parts)).backward()
    assert x.grad.tolist() == [rank + 1] * 2
    xs = [tl.ones(2, dtype=tl.float64, requires_grad=True) for _ in range(size)]
    (D.scatter(xs, 0) * (rank + 1)).sum().backward()
    assert [x.grad.tolist() for x in xs] == [
        [(r + 1) * (rank == 0)] * 2 for r in range(size)]


def test_gradients_of_gradients(rank, size):
    x = (tl.arange(3, dtype=tl.float64) + rank).requires_grad_()
    (g,) = tl.autograd.grad((D.all_reduce(x) ** 3).sum(), x, create_graph=True)
    g.sum().backward()                           # d/dx of size * 3 s^2, on all ranks
    s = sum(tl.arange(3, dtype=tl.float64) + r for r in range(size))
    assert tl.equal(x.grad, 6 * s * size * size)


def test_forward_mode(rank, size):
    x = tl.arange(3, dtype=tl.float64) + rank
    for kind in ("sum", "max", "product"):
        _, tangent = tl.func.jvp(lambda x: D.all_reduce(x, kind), (x,), (tl.ones_like(x),))
        s = tl.stack([tl.arange(3, dtype=tl.float64) + r for r in range(size)])
        _, expected = tl.func.jvp(lambda s: {"sum": lambda: s.sum(0), "max": lambda: s.amax(0),
                                             "product": lambda: s.prod(0)}[kind](),
                                  (s,), (tl.ones_like(s),))
        tl.testing.assert_close(tangent, expected)


def test_captured_in_programs(rank, size):
    @tl.compile(fullgraph=True)
    def step(x, w):
        return (D.all_reduce(x * w, "avg") ** 2).sum()

    for call in range(4):
        w = tl.full((3,), call + 1.0, requires_grad=True)
        x = tl.ones(3) * (rank + 1)
        found = step(x, w)
        found.backward()
        mean = sum(range(1, size + 1)) / size
        tl.testing.assert_close(found.detach(), tl.tensor(3 * (mean * (call + 1)) ** 2))
        expected = 2 * (rank + 1) * mean * (call + 1)
        tl.testing.assert_close(w.grad, tl.full((3,), float(expected)))
    assert "Compiled" in type(found.grad_fn).__name__ + repr(found.grad_fn)


def test_a_batch_is_sent_at_once(rank, size):
    """Of examples with and without dims, and of one batch in another."""
    vmap = tl.func.vmap
    x = drawn(rank, 3, 2 * size, 4, dtype=tl.float64)
    for call in (lambda x: D.all_reduce(x, "max"), D.all_reduce, lambda x: D.reduce(x, size - 1),
                 lambda x: D.broadcast(x, size - 1), lambda x: tl.cat(D.all_gather(x)),
                 lambda x: D.reduce_scatter(tl.empty_like(x[:2]), list(x.chunk(size))),
                 lambda x: tl.cat(D.all_to_all(
                     [tl.empty_like(part) for part in x.chunk(size)], list(x.chunk(size))))):
        tl.testing.assert_close(vmap(call)(x), tl.stack([call(part) for part in x]))
        columns = x.movedim(2, 0)
        tl.testing.assert_close(vmap(vmap(call), 2)(x), tl.stack([
            tl.stack([call(part) for part in column]) for column in columns]))
    for call in (D.all_reduce, lambda x: D.broadcast(x, 0)):
        tl.testing.assert_close(vmap(call)(x[0, 0]), call(x[0, 0]))


def test_calls_that_would_lose_a_gradient_are_refused(rank, size):
    w = tl.ones(2, requires_grad=True)
    raised(RuntimeError, lambda: dist.all_reduce(w * 2),
           "tensorlib.distributed.nn.functional.all_reduce has a gradient")
    raised(RuntimeError, lambda: dist.all_gather([tl.empty(2)] * size, w), "functional.all_gather")
    with tl.no_grad():
        dist.all_reduce(w)
    assert w.tolist() == [size, size]


if __name__ == "__main__":
    all_parts(globals())
