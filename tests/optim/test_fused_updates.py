"""Steps in one pass: fused loops and traced formulas are what the formulas say on tensors.

For any layout, size and dtype, with any number of threads.
"""

import numpy as np
import pytest
from cases import each
from optim_cases import EVERY, OPTIONS, USED_MOST, given_tensors, results, shown, trajectory
from tensorlib._core.apply.optimizer_step import run_update
from tensorlib._core.tiles.update import Update

import tensorlib as tl
from tensorlib import optim
from tensorlib.optim.formula import FormulaOptimizer, trace_update
from tensorlib.testing import assert_close


def traced(kind):
    """The optimiser without its fused loops."""
    return type(kind.__name__, (kind,), {"fused": {}})


def assert_same(one, other, **tolerance):
    for mine, theirs in zip(results(one), results(other), strict=True):
        assert mine.dtype == theirs.dtype
        assert_close(mine.numpy(), theirs.numpy(), **tolerance)


def assert_same_bits(one, other):
    for mine, theirs in zip(results(one), results(other), strict=True):
        np.testing.assert_array_equal(mine.double().numpy(), theirs.double().numpy())


def test_every_formula_is_here():
    kinds = {kind for kind in vars(optim).values()
             if isinstance(kind, type) and issubclass(kind, FormulaOptimizer)}
    assert kinds == {kind for kind, _ in OPTIONS}
    for kind in kinds:                       # and every fused loop
        loops = {kind._updates[key].fused for key in kind._updates}
        assert loops <= {*kind.fused.values(), None}


@EVERY
def test_formulas_on_tensors_and_in_one_pass_agree(kind, options):
    shapes = (3, 5), (), (700,)
    on_tensors = trajectory(kind, options, *given_tensors(*shapes), differentiable=True)
    for one in (kind, traced(kind)):
        assert_same(trajectory(one, options, *given_tensors(*shapes)), on_tensors, rtol=1e-12,
                    atol=1e-13)


@each(
    "kind, options", [case for case in OPTIONS if case[0] is not optim.Rprop], ids=shown)
def test_float32_follows_float64(kind, options):
    """Rprop goes by signs, which can't be nearly right."""
    single, exact = (trajectory(kind, options, *given_tensors((40,), dtype=dtype))
                     for dtype in ("float32", "float64"))
    for mine, theirs in zip(results(single), results(exact), strict=True):
        assert_close(mine.double().numpy(), theirs.double().numpy(), rtol=2e-4, atol=2e-6)


@USED_MOST
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_types_are_rounded_once(kind, options, dtype):
    """Each step computes in float32, and rounds what it writes."""
    if kind is optim.Rprop:                  # its steps begin as rounded numbers
        options = {**options, "lr": 0.0625}
    params, gradients = given_tensors((600,), dtype=dtype, steps=1)
    wide = [p.detach().float().requires_grad_() for p in params]
    half = trajectory(kind, options, params, gradients)
    single = trajectory(kind, options, wide, [[g.float() for g in one] for one in gradients])
    for mine, theirs in zip(results(half), results(single), strict=True):
        if mine.ndim:
            np.testing.assert_array_equal(
                mine.float().numpy(), theirs.to(mine.dtype).float().numpy())


@USED_MOST
@each("n", [0, 1, 2, 511, 512, 513, 1024, 16383, 16384, 16385, 40000])
def test_sizes_around_tiles_and_chunks(kind, options, n):
    for one in (kind, traced(kind)):
        whole = trajectory(one, options, *given_tensors((n,), dtype="float32", steps=2))
        params, gradients = given_tensors((n,), dtype="float32", steps=2)
        cut = [n // 3, n // 2]
        parts = trajectory(one, options, [part.clone().detach().requires_grad_()
                                           for part in params[0].detach().tensor_split(cut)],
                           [each_step[0].tensor_split(cut) for each_step in gradients])
        found = tl.cat([p.detach() for p in parts.param_groups[0]["params"]])
        assert_close(found.numpy(), results(whole)[0].numpy(), rtol=1e-6, atol=1e-6)


def test_half_parameters_with_states_in_float32():
    """As where a long running mean would be lost in the steps of a half type."""
    p = tl.ones(600, dtype=tl.bfloat16, requires_grad=True)
    optimizer = optim.Adam([p], lr=0.1)
    optimizer.state[p].update(step=tl.tensor(0.0), exp_avg=tl.zeros(600), exp_avg_sq=tl.zeros(600))
    for _ in range(3):
        p.grad = tl.full((600,), 1e-4, dtype=tl.bfloat16)
        optimizer.step()
    mean = optimizer.state[p]["exp_avg"]
    assert mean.dtype is tl.float32 and p.dtype is tl.bfloat16
    expected = np.full(600, p.grad[0].item() * (1 - 0.9**3), dtype="float32")
    assert_close(mean.numpy(), expected, rtol=1e-5, atol=0)


def layouts(shape):
    """Functions from a NumPy array to a tensor of its values, laid out in other ways."""
    def transposed(x):
        return tl.tensor(np.ascontiguousarray(x.T)).mT if x.ndim == 2 else tl.tensor(x)

    def strided(x):
        room = tl.zeros(*(2 * size for size in x.shape), dtype=tl.float64)
        view = room[tuple(slice(None, None, 2) for _ in x.shape)]
        view.copy_(tl.tensor(x))
        return view

    def reversed_(x):
        return tl.tensor(np.ascontiguousarray(x[::-1]))[::-1]

    return {"packed": tl.tensor, "transposed": transposed, "strided": strided,
            "reversed": reversed_}


@USED_MOST
@each("shape", [(6, 7), (3, 100), (600, 3)])
@each("of_p", ["packed", "transposed", "strided", "reversed"])
def test_layouts(kind, options, shape, of_p):
    ways = layouts(shape)
    expected = trajectory(traced(kind), options, *given_tensors(shape))
    for of_g in ways:
        params, gradients = given_tensors(shape)
        p = ways[of_p](params[0].detach().numpy()).detach()
        p.requires_grad_()
        laid_out = trajectory(kind, options, [p], [[ways[of_g](g.numpy())] for [g] in gradients])
        assert_same(laid_out, expected, rtol=1e-12, atol=1e-13)


@USED_MOST
def test_states_in_another_layout(kind, options):
    shape = (20, 30)
    packed, odd = (trajectory(kind, options, *given_tensors(shape)) for _ in range(2))
    (p,) = odd.param_groups[0]["params"]
    for name, value in odd.state[p].items():
        if value.ndim == 2:
            odd.state[p][name] = value.mT.contiguous().mT
    for one in (packed, odd):
        one.step()
    assert_same(odd, packed, rtol=1e-12, atol=1e-13)


@USED_MOST
def test_any_number_of_threads_gives_the_same_bits(kind, options):
    before = tl.get_num_threads()
    found = []
    try:
        for threads in (1, 2):
            tl.set_num_threads(threads)
            found.append(trajectory(kind, options, *given_tensors((90000,), (3,), dtype="float32")))
    finally:
        tl.set_num_threads(before)
    assert_same_bits(*found)


# ---- updates by themselves ----------------------------------------------------------------------

@each("states, numbers, steps, results, fused", [
    ((), (), [("add", (5, 0))], [0, 2], None), ((), (), [("add", (-1, 0))], [0, 2], None),
    ((), (), [("add", (0, 1))], [0, 9], None), ((), (), [("add", (0, 1))], [0], None),
    ((), ("lr",), [("mul", (0, 3))], [0, 3], None), ((), (), [("add", (2, 0))], [0, 2], None),
    ((), (), [("add", (0, 1))], [2, 1], None), ((), (), [("add", (0, 1))], [0, 0], None),
    (("a",), (), [("add", (0, 1))], [0, 3, 3], None), (("a",) * 9, (), [], range(11), None),
    ((), (), [("add", (0, 1))] * 99, [0, 2], None),
    ((), range(99), [], [0, 1], None), ((), (), (), [0, 1], "adam"), ((), (), (), [0, 1], "none")])
def test_updates_that_make_no_sense_are_refused(states, numbers, steps, results, fused):
    with pytest.raises(ValueError):
        Update("test", states, numbers, steps, results, fused=fused)


def test_a_loop_that_is_not_there():
    update = Update("test", (), (), [("no such loop", (0, 1))], [0, 2])
    p = tl.ones(2, requires_grad=True)
    p.grad = tl.ones(2)
    with pytest.raises(RuntimeError, match="no such loop"):
        run_update(update, {"params": [p]}, {}, lambda group, p: {},
                   lambda group, step, state: {})


def test_a_formula_may_exchange_its_states():
    """Old values are read before they are overwritten, whatever the order."""
    update = trace_update("test", lambda n, p, g, a, b: (a + b * n.two, b, p), ("a", "b"))
    p, a, b = (tl.tensor([float(i), 10.0 * i]) for i in (1, 2, 3))
    p.grad = tl.ones(2)
    run_update(update, {"params": [p]}, {p: {"a": a, "b": b}}, None,
               lambda group, step, state: {"two": 2.0})
    assert [x.tolist() for x in (p, a, b)] == [[8, 80], [3, 30], [1, 10]]
