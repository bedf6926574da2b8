"""Steps in one pass: fused loops and traced formulas are what the formulas say on tensors.

For any layout, size and dtype, with any number of threads; and nothing that a state may hold does
harm.
"""

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensorlib as tl
from tensorlib import optim
from tensorlib.optim.formula import FormulaOptimizer
from tensorlib.testing import assert_close

# Options of each optimiser that a formula defines, all its branches among them.
OPTIONS = [
    (optim.SGD, {}), (optim.SGD, {"weight_decay": 0.1}), (optim.SGD, {"momentum": 0.9}),
    (optim.SGD, {"momentum": 0.9, "weight_decay": 0.1, "dampening": 0.2}),
    (optim.SGD, {"momentum": 0.9, "nesterov": True}),
    (optim.SGD, {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    (optim.SGD, {"momentum": 0.9, "maximize": True}),
    (optim.Adam, {}), (optim.Adam, {"weight_decay": 0.1}), (optim.Adam, {"amsgrad": True}),
    (optim.Adam, {"amsgrad": True, "maximize": True, "weight_decay": 0.1}),
    (optim.AdamW, {}), (optim.AdamW, {"amsgrad": True}), (optim.AdamW, {"weight_decay": 0}),
    (optim.NAdam, {}), (optim.NAdam, {"weight_decay": 0.1}),
    (optim.NAdam, {"weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True}),
    (optim.RAdam, {"betas": (0.8, 0.9)}), (optim.RAdam, {"weight_decay": 0.1}),
    (optim.RAdam, {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    (optim.Adamax, {}), (optim.Adamax, {"weight_decay": 0.1}),
    (optim.Adagrad, {}), (optim.Adagrad, {"lr_decay": 0.1, "weight_decay": 0.1}),
    (optim.Adadelta, {"lr": 0.5}), (optim.Adadelta, {"weight_decay": 0.1, "maximize": True}),
    (optim.RMSprop, {}), (optim.RMSprop, {"weight_decay": 0.1}), (optim.RMSprop, {"momentum": 0.9}),
    (optim.RMSprop, {"centered": True}), (optim.RMSprop, {"centered": True, "momentum": 0.9}),
    (optim.Rprop, {}), (optim.Rprop, {"step_sizes": (1e-3, 0.02)}),
    (optim.ASGD, {}), (optim.ASGD, {"t0": 2, "lambd": 0.01, "weight_decay": 0.1}),
]


def shown(value):
    return getattr(value, "__name__", str(value))


EVERY = pytest.mark.parametrize("kind, options", OPTIONS, ids=shown)
USED_MOST = pytest.mark.parametrize("kind, options", [
    (optim.SGD, {"momentum": 0.9}), (optim.Adam, {}), (optim.Adam, {"amsgrad": True}),
    (optim.RMSprop, {"centered": True, "momentum": 0.9}), (optim.Rprop, {})],
    ids=shown)


def numbers(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).normal(size=shape)


def trajectory(kind, options, params, gradients, **how):
    """The parameters and their states after a step for each of several lists of gradients."""
    optimizer = kind(params, **{"lr": 0.05, **options, **how})
    with tl.no_grad():
        for of_step in gradients:
            for p, g in zip(params, of_step):
                p.grad = g
            optimizer.step()
    return optimizer


def results(optimizer):
    """All tensors that the optimiser has written."""
    found = []
    for p in optimizer.param_groups[0]["params"]:
        found += [p.detach(), *(x for x in optimizer.state[p].values() if isinstance(x, tl.Tensor))]
    return found


def given_tensors(*shapes, steps=4, dtype="float64"):
    """Parameters, and gradients for some steps."""
    params = [tl.tensor(numbers(*shape), dtype=getattr(tl, dtype)).requires_grad_()
              for shape in shapes]
    gradients = [[tl.tensor(numbers(*shape, seed=step + 1), dtype=getattr(tl, dtype))
                  for shape in shapes] for step in range(steps)]
    return params, gradients


def traced(kind):
    """The optimiser without its fused loops."""
    return type(kind.__name__, (kind,), {"fused": {}})


def same(one, other, **tolerance):
    for mine, theirs in zip(results(one), results(other), strict=True):
        assert mine.dtype == theirs.dtype
        assert_close(mine.numpy(), theirs.numpy(), **tolerance)


def same_bits(one, other):
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
    for each in (kind, traced(kind)):
        same(trajectory(each, options, *given_tensors(*shapes)), on_tensors, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(
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
    single = trajectory(kind, options, wide, [[g.float() for g in each] for each in gradients])
    for mine, theirs in zip(results(half), results(single), strict=True):
        if mine.ndim:
            np.testing.assert_array_equal(
                mine.float().numpy(), theirs.to(mine.dtype).float().numpy())


@USED_MOST
@pytest.mark.parametrize("n", [0, 1, 2, 511, 512, 513, 1024, 16383, 16384, 16385, 40000])
def test_sizes_around_tiles_and_chunks(kind, options, n):
    for each in (kind, traced(kind)):
        whole = trajectory(each, options, *given_tensors((n,), dtype="float32", steps=2))
        params, gradients = given_tensors((n,), dtype="float32", steps=2)
        cut = [n // 3, n // 2]
        parts = trajectory(each, options, [part.clone().detach().requires_grad_()
                                           for part in params[0].detach().tensor_split(cut)],
                           [each_step[0].tensor_split(cut) for each_step in gradients])
        found = tl.cat([p.detach() for p in parts.param_groups[0]["params"]])
        assert_close(found.numpy(), results(whole)[0].numpy(), rtol=1e-6, atol=1e-6)


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
@pytest.mark.parametrize("shape", [(6, 7), (3, 100), (600, 3)])
@pytest.mark.parametrize("of_p", ["packed", "transposed", "strided", "reversed"])
def test_layouts(kind, options, shape, of_p):
    ways = layouts(shape)
    expected = trajectory(traced(kind), options, *given_tensors(shape))
    for of_g in ways:
        params, gradients = given_tensors(shape)
        p = ways[of_p](params[0].detach().numpy()).detach()
        p.requires_grad_()
        laid_out = trajectory(kind, options, [p], [[ways[of_g](g.numpy())] for [g] in gradients])
        same(laid_out, expected, rtol=1e-12, atol=1e-13)


@USED_MOST
def test_states_in_another_layout(kind, options):
    shape = (20, 30)
    packed, odd = (trajectory(kind, options, *given_tensors(shape)) for _ in range(2))
    (p,) = odd.param_groups[0]["params"]
    for name, value in odd.state[p].items():
        if value.ndim == 2:
            odd.state[p][name] = value.mT.contiguous().mT
    for each in (packed, odd):
        each.step()
    same(odd, packed, rtol=1e-12, atol=1e-13)


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
    same_bits(*found)


# ---- what a step respects ------------------------------------------------------------------------

def stepped(kind=optim.Adam, **options):
    p = tl.tensor([1.0, 2.0], requires_grad=True)
    p.grad = tl.ones(2)
    optimizer = kind([p], lr=0.1, **options)
    optimizer.step()
    return p, optimizer


def test_versions_are_counted():
    p = tl.tensor([1.0, 2.0], requires_grad=True)
    loss = (p * p).sum()
    p.grad = tl.ones(2)
    before = p._version
    optimizer = optim.Adam([p])
    optimizer.step()
    assert p._version == before + 1
    assert optimizer.state[p]["exp_avg"]._version >= 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation|in place|in-place"):
        loss.backward()


def test_parameters_without_a_gradient_stay():
    p, q = (tl.ones(2, requires_grad=True) for _ in range(2))
    p.grad = tl.ones(2)
    optimizer = optim.Adam([p, q])
    optimizer.step()
    assert q not in optimizer.state and q.tolist() == [1, 1] and p.tolist() != [1, 1]


def test_the_gradient_is_left_as_it_was():
    for kind, options in OPTIONS:
        p = tl.tensor([1.0, 2.0], requires_grad=True)
        p.grad = g = tl.tensor([0.5, -3.0])
        kind([p], **options).step()
        assert p.grad is g and g.tolist() == [0.5, -3.0], kind


def test_views_show_the_new_values():
    x = tl.arange(6.0).reshape(2, 3)
    p = x[1].detach().requires_grad_()
    p.grad = tl.ones(3)
    optim.SGD([p], lr=1.0).step()
    assert x.tolist() == [[0, 1, 2], [2, 3, 4]]


def test_a_gradient_in_the_memory_of_the_parameter():
    for kind, options in OPTIONS:
        apart, shared = (tl.tensor([1.0, 2.0, 3.0], requires_grad=True) for _ in range(2))
        apart.grad, shared.grad = apart.detach().clone(), shared.detach()
        for p in (apart, shared):
            kind([p], **options).step()
        assert apart.tolist() == shared.tolist(), kind


def test_a_gradient_that_overlaps_the_parameter():
    room = tl.arange(100000.0)
    p = room[:90000].detach().requires_grad_()
    p.grad = room[5:90005].detach()
    expected = np.arange(90000.0) - (np.arange(90000.0) + 5)
    optim.SGD([p], lr=1.0).step()
    np.testing.assert_array_equal(p.detach().numpy(), expected)


def test_an_expanded_gradient():
    p = tl.zeros(3, 4, requires_grad=True)
    p.grad = tl.tensor([[1.0], [2.0], [3.0]]).expand(3, 4)
    optim.SGD([p], lr=1.0).step()
    assert p[:, 3].tolist() == [-1, -2, -3]


def test_a_parameter_given_twice_is_updated_twice():
    p = tl.zeros(1, requires_grad=True)
    p.grad = tl.ones(1)
    with pytest.warns(UserWarning, match="duplicate parameters"):
        optimizer = optim.SGD([p, p], lr=1.0)
    optimizer.step()
    assert p.item() == -2


def test_rates_may_be_tensors():
    for kind in (optim.SGD, optim.Adam, optim.RMSprop, optim.NAdam, optim.ASGD, optim.Rprop):
        values = []
        for lr in (0.25, tl.tensor(0.25), tl.tensor([0.25])):
            p = tl.tensor([1.0, 2.0], requires_grad=True)
            p.grad = tl.ones(2)
            kind([p], lr=lr).step()
            values.append(p.tolist())
        assert values[0] == values[1] == values[2], kind


def test_a_step_that_is_differentiated():
    """With `differentiable=True` a step is recorded, so a rate can be learnt."""
    for kind in (optim.SGD, optim.Adam, optim.RMSprop, optim.Adagrad):
        lr = tl.tensor(0.1, dtype=tl.float64, requires_grad=True)

        def moved(lr):
            p = tl.tensor([1.0, 2.0], dtype=tl.float64, requires_grad=True).clone()
            p.grad = tl.tensor([3.0, 4.0], dtype=tl.float64)
            kind([p], lr=lr, differentiable=True).step()
            return p.sum()

        moved(lr).backward()
        with tl.no_grad():
            slope = (moved(tl.tensor(0.1001, dtype=tl.float64)) - moved(
                tl.tensor(0.0999, dtype=tl.float64))) / 2e-4
        assert_close(lr.grad.numpy(), slope.numpy(), rtol=1e-6, atol=1e-8)


def test_two_threads_step_at_once():
    params = [tl.ones(100000, requires_grad=True) for _ in range(2)]
    optimizers = [optim.Adam([p], lr=0.01) for p in params]
    for p in params:
        p.grad = tl.ones(100000)

    def run(optimizer):
        for _ in range(5):
            optimizer.step()

    threads = [threading.Thread(target=run, args=(each,)) for each in optimizers]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    run(alone := optim.Adam([p := tl.ones(100000, requires_grad=True)], lr=0.01))
    p.grad = tl.ones(100000)
    run(alone)
    for each in params:
        np.testing.assert_array_equal(each.detach().numpy(), p.detach().numpy())


# ---- what does not fit ---------------------------------------------------------------------------

NOT_STATES = [
    None, 3.0, "text", [1.0, 2.0], tl.ones(3), tl.ones(2, 1), tl.ones(()), tl.ones(2).double(),
    tl.ones(2).half(), tl.ones(2).long(), tl.ones(2).bool(), tl.zeros(1).expand(2), np.ones(2),
]


@pytest.mark.parametrize("name", ["exp_avg", "exp_avg_sq", "step"])
def test_a_state_that_does_not_fit_is_refused(name):
    for value in NOT_STATES:
        if value is None or (name == "step" and value is NOT_STATES[6]):
            continue
        p, optimizer = stepped()
        optimizer.state[p][name] = value
        before = p.tolist()
        with pytest.raises((TypeError, RuntimeError), match="Adam"):
            optimizer.step()
        assert p.tolist() == before


def test_what_is_missing_in_a_state_is_made_anew():
    p, optimizer = stepped()
    optimizer.state[p]["exp_avg"] = None
    optimizer.step()
    assert optimizer.state[p]["step"].item() == 2 and optimizer.state[p]["exp_avg"].shape == (2,)


def test_states_that_share_memory_are_refused():
    p, optimizer = stepped()
    optimizer.state[p]["exp_avg_sq"] = optimizer.state[p]["exp_avg"]
    with pytest.raises(RuntimeError, match="shares memory"):
        optimizer.step()
    p, optimizer = stepped()
    optimizer.state[p]["exp_avg"] = p.detach()
    with pytest.raises(RuntimeError, match="shares memory"):
        optimizer.step()


def test_an_error_leaves_all_parameters_as_they_were():
    params = [tl.ones(2, requires_grad=True) for _ in range(3)]
    for p in params:
        p.grad = tl.ones(2)
    optimizer = optim.Adam(params)
    optimizer.step()
    before = [x.tolist() for x in results(optimizer)]
    optimizer.state[params[2]]["exp_avg"] = tl.ones(5)
    with pytest.raises(RuntimeError, match="shape"):
        optimizer.step()
    optimizer.state[params[2]]["exp_avg"] = tl.tensor([0.1, 0.1])
    assert [x.tolist() for x in results(optimizer)[:8]] == before[:8]


def test_what_can_not_be_written_is_refused():
    frozen = np.ones(2, dtype="float32")
    frozen.flags.writeable = False
    p = tl.from_numpy(frozen).requires_grad_()
    p.grad = tl.ones(2)
    with pytest.raises(RuntimeError, match="read-only"):
        optim.SGD([p]).step()
    p = tl.zeros(1).expand(3).detach().requires_grad_()
    p.grad = tl.ones(3)
    with pytest.raises(RuntimeError, match="expanded"):
        optim.SGD([p]).step()
    with tl.inference_mode():
        p = tl.ones(2)
        p.grad = tl.ones(2)
    with pytest.raises(RuntimeError, match="inference"):
        optim.SGD([p]).step()


def test_integers_are_no_parameters():
    p = tl.tensor([1, 2])
    p.grad = tl.tensor([1, 2])
    with pytest.raises(TypeError, match="floating-point"):
        optim.SGD([p]).step()


def test_changes_while_a_step_is_prepared():
    """Rates whose conversion runs code that gives the parameter other memory."""
    p = tl.ones(1000, requires_grad=True)
    p.grad = tl.ones(1000)

    class Rate(float):
        def __float__(self):
            p.data = tl.zeros(3)
            return 0.5

    optimizer = optim.SGD([p], lr=0.1)
    optimizer.param_groups[0]["lr"] = Rate(0.5)
    with pytest.raises(RuntimeError, match="shape"):
        optimizer.step()


@pytest.mark.parametrize("lr", ["fast", None, [0.1], object()])
def test_rates_that_are_no_numbers(lr):
    p, optimizer = stepped(optim.SGD)
    optimizer.param_groups[0]["lr"] = lr
    before = p.tolist()
    with pytest.raises(TypeError if lr != "fast" else ValueError):
        optimizer.step()
    assert p.tolist() == before


PARTS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3),
    st.sampled_from(["float16", "bfloat16", "float32", "float64", "int64", "bool"]).flatmap(
        lambda dtype: st.lists(st.integers(0, 4), max_size=3).map(
            lambda shape: tl.ones(shape, dtype=getattr(tl, dtype)))))


@given(st.dictionaries(
    st.sampled_from(["step", "exp_avg", "exp_avg_sq", "momentum_buffer", "mu_product"]), PARTS),
       st.sampled_from([optim.Adam, optim.SGD, optim.NAdam]))
def test_any_state_is_taken_or_refused(state, kind):
    p = tl.ones(2, requires_grad=True)
    p.grad = tl.ones(2)
    optimizer = kind([p], **({"momentum": 0.9} if kind is optim.SGD else {}))
    optimizer.state[p] = dict(state)
    try:
        optimizer.step()
    except (TypeError, RuntimeError, ValueError, ZeroDivisionError, OverflowError):
        pass
    assert p.shape == (2,)
