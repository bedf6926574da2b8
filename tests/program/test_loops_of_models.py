"""Loops and branches as models use them: an LSTM, Newton's method, a tree, an adaptive integrator.

Each is captured, differentiated, printed and read, saved and loaded.
"""

import gc

import pytest

import tensorlib as tl
from tensorlib import nn, program


def reread(made, tmp_path):
    """The program, as its text and as its file give it."""
    path = tmp_path / "program.safetensors"
    made.save(path)
    return [made, program.parse(str(made), made.values()), program.load(path), made.clone()]


def agree(found, expected, rtol=1e-9):
    """Whether pairs of tensors are as good as equal."""
    return len(found) == len(expected) and all(
        tl.allclose(x, y.detach(), rtol=rtol, atol=1e-12) for x, y in zip(found, expected))


# ---- an LSTM -------------------------------------------------------------------------------------

T, B, IN, WIDTH = 6, 2, 3, 4


def layer():
    tl.manual_seed(3)
    return nn.LSTM(IN, WIDTH).double()


def step(lstm, x, h, c):
    """A step of an LSTM, by the formulas of Hochreiter and Schmidhuber."""
    gates = (x @ lstm.weight_ih_l0.T + lstm.bias_ih_l0
             + h @ lstm.weight_hh_l0.T + lstm.bias_hh_l0)
    i, f, g, o = gates.chunk(4, -1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def by_scan(lstm, x):
    zeros = tl.zeros(B, WIDTH, dtype=x.dtype)

    def body(state, now):
        h, c = step(lstm, now, *state)
        return (h, c), h

    (h, c), hs = tl.scan(body, (zeros, zeros), x)
    return hs, h, c


def by_while_loop(lstm, x):
    zeros = tl.zeros(B, WIDTH, dtype=x.dtype)

    def body(t, h, c, hs):
        h, c = step(lstm, x.index_select(0, t.reshape(1))[0], h, c)
        return t + 1, h, c, hs.index_copy(0, t.reshape(1), h.unsqueeze(0))

    _, h, c, hs = tl.while_loop(lambda t, h, c, hs: t < T, body,
                                (tl.tensor(0), zeros, zeros, zeros.expand(T, B, WIDTH) * 1))
    return hs, h, c


@pytest.mark.parametrize("loop", [by_scan, by_while_loop])
def test_an_lstm_as_a_loop_is_the_layer(loop, tmp_path):
    lstm = layer()
    x = tl.randn(T, B, IN, dtype=tl.float64, requires_grad=True)
    hs, (h, c) = lstm(x)
    expected = [hs, h[0], c[0]]
    wanted = [x, *lstm.parameters()]
    loss = sum((y * y).sum() for y in expected)
    slopes = tl.autograd.grad(loss, wanted)

    made = program.trace(lambda x: loop(lstm, x), x)
    outputs = made.outputs
    with made:
        total = sum((y * y).sum() for y in outputs)
    names = {id(y.value): y for y in made.persistables()}
    found = program.gradients(total, [made.inputs[0], *(names[id(w)] for w in lstm.parameters())])
    fetch = [y.name for y in (*outputs, *found)]
    for one in reread(made, tmp_path):
        assert agree(one.run({"x": x.detach()}, fetch), [*expected, *slopes])


# ---- Newton's method -----------------------------------------------------------------------------

def newton(a):
    """The root of x + x**5 / 5 = a."""
    def going(x, change):
        return change.abs() > 1e-12

    def body(x, change):
        change = (x + x ** 5 / 5 - a) / (1 + x ** 4)
        return x - change, change

    return tl.while_loop(going, body, (a, a * 0 + 1))[0]


def test_newtons_method_has_the_derivative_of_the_implicit_function(tmp_path):
    """x'(a) = 1 / (1 + x**4), and x''(a) = -4 x**3 / (1 + x**4)**3."""
    made = program.trace(newton, tl.tensor(0.5, dtype=tl.float64))
    (slope,) = program.gradients(made.outputs, made.inputs)
    (curvature,) = program.gradients(slope, made.inputs)
    counts = set()
    for one in reread(made, tmp_path):
        for a in (0.1, 2.0, -30.0):
            x, first, second = one.run(
                {"a": tl.tensor(a, dtype=tl.float64)},
                [made.outputs.name, slope.name, curvature.name])
            assert tl.allclose(x + x ** 5 / 5, tl.tensor(a, dtype=tl.float64), rtol=1e-10)
            assert tl.allclose(first, 1 / (1 + x ** 4), rtol=1e-9)
            assert tl.allclose(second, -4 * x ** 3 / (1 + x ** 4) ** 3, rtol=1e-7)
            counts.add(round(float(x), 6))
    assert len(counts) == 3


# ---- a decision tree -----------------------------------------------------------------------------

def grown(depth, rng):
    """A tree as nested tuples: (feature, threshold, left, right), and leaves of weights."""
    if depth == 0:
        return tl.randn(3, dtype=tl.float64, generator=rng).requires_grad_()
    return (int(tl.randint(0, 3, (), generator=rng)),
            tl.randn((), dtype=tl.float64, generator=rng) * 0.5,
            grown(depth - 1, rng), grown(depth - 1, rng))


def leaves_of(tree):
    return leaves_of(tree[2]) + leaves_of(tree[3]) if isinstance(tree, tuple) else [tree]


def decided(tree, x):
    """What a tree says: a leaf is a linear function that bends."""
    if not isinstance(tree, tuple):
        return (tree * x).sum().tanh()
    feature, threshold, left, right = tree
    return tl.cond(x[feature] < threshold, lambda: decided(left, x), lambda: decided(right, x))


def test_a_tree_of_branches_asks_what_it_has_to_and_differentiates_one_leaf(tmp_path):
    rng = tl.Generator().manual_seed(5)
    tree = grown(3, rng)
    weights = leaves_of(tree)
    made = program.trace(lambda x: decided(tree, x), tl.zeros(3, dtype=tl.float64))
    assert len(made.blocks) == 1 + 2 * 7
    names = {id(y.value): y for y in made.persistables()}
    slopes = program.gradients(made.outputs, [made.inputs[0], *(names[id(w)] for w in weights)])
    fetch = [made.outputs.name, *(g.name for g in slopes)]
    reached = set()
    for one in reread(made, tmp_path):
        for _ in range(12):
            x = tl.randn(3, dtype=tl.float64, generator=rng).requires_grad_()
            expected = decided(tree, x)
            grads = tl.autograd.grad(expected, [x, *weights], materialize_grads=True)
            assert agree(one.run({"x": x.detach()}, fetch), [expected, *grads])
            reached.add(next(i for i, g in enumerate(grads[1:]) if g.any()))
    assert len(reached) > 2


# ---- an integrator that chooses its steps --------------------------------------------------------

TOLERANCE = 2e-5


def integrated(start, rate):
    """y(2) and the number of steps, for y' = -rate * y + sin(t), y(0) = start; by Heun and Euler.
    """
    zero = tl.tensor(0.0, dtype=tl.float64)

    def f(t, y):
        return -rate * y + t.sin()

    def body(t, h, y, count):
        h = tl.minimum(h, 2.0 - t)
        k1 = f(t, y)
        k2 = f(t + h, y + h * k1)
        error = ((k2 - k1) * h / 2).abs().amax().detach()
        t, y = tl.cond(error <= TOLERANCE, lambda: (t + h, y + h * (k1 + k2) / 2), lambda: (t, y))
        return t, h * (0.9 * (TOLERANCE / (error + 1e-15)).sqrt()).clamp(0.2, 3.0), y, count + 1

    found = tl.while_loop(lambda t, h, y, n: t < 2.0, body,
                          (zero, zero + 0.1, start, tl.tensor(0)))
    return found[2], found[3]


def exact(y, r, t=2.0):
    t = tl.tensor(t, dtype=tl.float64)
    return ((y + 1 / (1 + r * r)) * (-r * t).exp() + (r * t.sin() - t.cos()) / (1 + r * r))


def test_an_integrator_with_adaptive_steps_is_differentiated_through_its_steps(tmp_path):
    start = tl.tensor([0.5, -1.0], dtype=tl.float64, requires_grad=True)
    rate = tl.tensor([1.0, 3.0], dtype=tl.float64, requires_grad=True)
    made = program.trace(integrated, start, rate)
    y, count = made.outputs
    slopes = program.gradients(y, made.inputs)
    other = [tl.tensor(v, dtype=tl.float64, requires_grad=True) for v in ([2.0, 0.1], [0.3, 6.0])]
    counts = set()
    for values in ([start, rate], other):
        eager, steps = integrated(*values)
        eager_slopes = tl.autograd.grad(eager.sum(), values)
        true = exact(*values)
        true_slopes = tl.autograd.grad(true.sum(), values)
        assert agree([eager], [true], 1e-3) and agree(eager_slopes, true_slopes, 1e-2)
        feed = dict(zip(("start", "rate"), (v.detach() for v in values)))
        for one in reread(made, tmp_path):
            found = one.run(feed, [y.name, count.name, *(g.name for g in slopes)])
            assert agree([found[0], *found[2:]], [eager, *eager_slopes])
            assert found[1] == steps
        counts.add(int(steps))
    assert len(counts) == 2


# ---- memory --------------------------------------------------------------------------------------

def counted(made, fetch, steps):
    """The bytes of tensors that were in use at the most while a program ran.

    What other tests left in cycles is collected before: if it is released meanwhile, less is
    counted.
    """
    gc.collect()
    tl.memory.empty_cache()
    tl.memory.reset_peak()
    before = tl.memory.stats()["in_use"]
    made.run({"x": tl.ones(1000), "steps": tl.tensor(steps)}, fetch)
    return tl.memory.stats()["peak"] - before


def test_a_loop_takes_flat_memory_without_a_gradient_and_as_much_as_its_steps_with_one():
    def function(x, steps):
        return tl.while_loop(lambda n, a: n < steps, lambda n, a: (n + 1, (a * 0.5).sin() + 1),
                             (tl.tensor(0), x))[1].sum()

    plain = program.trace(function, tl.ones(1000), tl.tensor(3))
    few, many = (counted(plain, plain.outputs, steps) for steps in (20, 400))
    assert many == few
    (slope,) = program.gradients(plain.outputs, plain.inputs[:1])
    assert counted(plain, plain.outputs, 400) > 0
    few, many = (counted(plain, slope, steps) for steps in (100, 400))
    assert 3.0 * few < many < 4.5 * few
