"""`embedding_bag` of parts of a vector: sums and means by a kernel."""

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib.nn.functional.embedding_bags import sums_formula
from tensorlib.testing import assert_close, gradcheck, gradgradcheck

F = tl.nn.functional


@each("dtype", ["float32", "float64"])
@each("mode", ["sum", "mean"])
def test_bags_are_those_of_their_rows(mode, dtype):
    rng = np.random.default_rng(0)
    for offsets, end in (([0, 0, 3, 3, 40, 50], False), ([0, 7, 7, 31], True), ([0], False)):
        w = tl.from_numpy(rng.standard_normal((9, 2 * 13)).astype(dtype))[:, ::2].requires_grad_()
        places = tl.from_numpy(rng.integers(0, 9, 100))[::2]
        found = F.embedding_bag(places, w, tl.tensor(offsets), mode=mode, include_last_offset=end)
        bounds = offsets if end else [*offsets, 50]
        rows = [w[places[a:b]].sum(0) / (max(1, b - a) if mode == "mean" else 1)
                for a, b in zip(bounds, bounds[1:])]
        wanted = tl.stack(rows)
        assert_close(found, wanted)
        assert_close(sums_formula(w, places, tl.tensor(offsets), mode == "mean", end), wanted)
        g = tl.linspace(-1, 1, wanted.numel(), dtype=w.dtype).reshape(wanted.shape)
        assert_close(*(tl.autograd.grad(out, w, g)[0] for out in (found, wanted)))
        assert tl.equal(F.embedding_bag(places.int(), w, tl.tensor(offsets).int(), mode=mode,
                                        include_last_offset=end), found)


@each("mode", ["sum", "mean", "max"])
def test_bags_of_a_matrix_of_any_sizes_and_with_factors(mode):
    rng = np.random.default_rng(1)
    w = tl.from_numpy(rng.integers(-3, 4, (9, 5)) / 2).requires_grad_()      # with ties
    places, factors = tl.from_numpy(rng.integers(0, 9, (7, 6))), tl.from_numpy(rng.random((7, 6)))
    offsets = [0, 1, 1, 4, 4, 10, 25, 26]
    for given, begins, bounds in ((places, None, range(0, 43, 6)), (
            places.reshape(-1), tl.tensor(offsets), [*offsets, 42])):
        for scale in (None, factors.reshape(given.shape).requires_grad_()):
            if scale is not None and mode != "sum":
                continue
            rows = w[places.reshape(-1)] * (1 if scale is None else scale.reshape(-1, 1))
            function = {"sum": lambda x: x.sum(0), "mean": lambda x: x.mean(0),
                        "max": lambda x: x.max(0).values}[mode]
            wanted = tl.stack([function(rows[a:b]) if a < b else w[0] * 0
                               for a, b in zip(bounds, bounds[1:])])
            found = F.embedding_bag(given, w, begins, mode=mode, per_sample_weights=scale)
            assert_close(found, wanted)
            g, leaves = tl.from_numpy(rng.random(wanted.shape)), [w, *[scale] * (scale is not None)]
            for ours, theirs in zip(*(tl.autograd.grad(out, leaves, g) for out in (found, wanted))):
                assert_close(ours, theirs)


def test_bags_have_derivatives_of_any_kind_and_the_same_bits_by_any_number_of_threads():
    w = tl.randn(500, 40, dtype=tl.float64).requires_grad_()
    places, offsets = tl.randint(0, 500, (3000,)), tl.arange(0, 3000, 11)

    def bags(x):
        return F.embedding_bag(places, x, offsets, mode="mean")
    small = tl.randn(4, 2, dtype=tl.float64).requires_grad_()

    def few(x):
        return F.embedding_bag(tl.tensor([0, 3, 3, 1]), x, tl.tensor([0, 3, 3]))
    assert gradcheck(few, small) and gradgradcheck(lambda x: few(x).square(), small)
    assert_close(tl.func.jvp(few, (small.detach(),), (tl.ones(4, 2).double(),))[1][:, 0],
                 tl.tensor([1.0, 0.0, 1.0]).double())
    assert_close(tl.func.vmap(few)(tl.stack([small, small * 2])),
                 tl.stack([few(small), few(small * 2)]))
    threads, found = tl.get_num_threads(), []
    for count in (1, 3):
        tl.set_num_threads(count)
        found.append((bags(w), tl.autograd.grad(bags(w).sum(), w)[0]))
    tl.set_num_threads(threads)
    assert all(tl.equal(one, other) for one, other in zip(*found))
    compiled = tl.compile(lambda x: tl.autograd.grad(bags(x).sum(), x)[0])
    for _ in range(3):
        assert tl.equal(compiled(w), found[0][1])


def test_what_is_no_place_or_no_offset_is_refused():
    w, places = tl.ones(4, 2), tl.tensor([0, 3, 1])
    for offsets in ([1], [0, 2, 1], [0, 4], [0, -1]):
        with pytest.raises(RuntimeError, match="embedding_bag: offsets must begin with 0"):
            F.embedding_bag(places, w, tl.tensor(offsets))
    for wrong in (4, -1):
        for error in (IndexError, RuntimeError):
            with pytest.raises(error, match=f"index out of range in self: {wrong}"):
                F.embedding_bag(tl.tensor([0, wrong]), w, tl.tensor([0, 1]))
    from tensorlib._core.layers import bags
    for call in (lambda: bags.bag_sums(tl.ones(4), places, places, False, False),
                 lambda: bags.bag_sums(w.long(), places, places, False, False),
                 lambda: bags.bag_sums_backward(w, places, tl.tensor([0]), 4, False, False),
                 lambda: bags.bag_sums_backward(w, places, tl.arange(4), -1, False, False)):
        with pytest.raises(RuntimeError, match="embedding_bag"):
            call()
    with pytest.raises(IndexError):
        bags.bag_sums_backward(tl.ones(1, 2), places, tl.tensor([0]), 2, False, False)
    assert F.embedding_bag(places[:0], w, places[:0], include_last_offset=True).shape == (0, 2)


@each("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("places, offsets, options", [
    ([2, 2], [0, 1], {"padding_idx": 2}), ([], [0, 0], {}), ([], [], {})])
def test_bags_that_are_all_empty_are_a_part_of_the_graph(mode, places, offsets, options):
    weight = tl.ones(3, 2, requires_grad=True)
    found = F.embedding_bag(tl.tensor(places, dtype=tl.int64), weight,
                            tl.tensor(offsets, dtype=tl.int64), mode=mode, **options)
    assert found.tolist() == [[0.0, 0.0]] * len(offsets)
    found.sum().backward()
    assert tl.equal(weight.grad, tl.zeros_like(weight))
