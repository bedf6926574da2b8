"""Random programs of loops and branches in each other, by hand and captured: values, and gradients
to second order, as eager code gives them."""

import random

import pytest

import tensorlib as tl
from tensorlib import program

DEPTH = 2
UNARY = ["tanh", "sin", "sigmoid", "exp_of_less", "square_of_less", "roll", "part_and_whole"]
BINARY = ["add", "mul", "sub", "maximum_smooth"]


def one(kind, x):
    """An operation that keeps the shape, and keeps values small."""
    if kind == "exp_of_less":
        return (x * 0.3).exp() - 1
    if kind == "square_of_less":
        return x.tanh() * x.tanh()
    if kind == "roll":
        return tl.cat([x[1:], x[:1]])
    if kind == "part_and_whole":
        return x * 0.5 + x[:2].sum() * 0.1
    return getattr(x, kind)()


def two(kind, x, y):
    if kind == "maximum_smooth":
        return tl.logaddexp(x, y)
    return getattr(tl, kind)(x, y) * 0.7


class Drawn:
    """A random function of two tensors, drawn once: what it does is a list of steps."""

    def __init__(self, rng, depth=DEPTH):
        self.steps = [self.step(rng, depth) for _ in range(2)]

    def step(self, rng, depth):
        kind = rng.choice(["unary", "binary", "cond", "while", "scan"] if depth else [
            "unary", "binary"])
        nested = kind in ("cond", "while", "scan")
        inner = [Drawn(rng, depth - 1) for _ in range(2)] if nested else []
        return (kind, rng.choice(UNARY if kind == "unary" else BINARY), rng.randrange(2),
                rng.randint(0, 3), rng.uniform(-0.5, 0.5), inner)

    def __call__(self, x, y):
        for kind, name, which, count, level, inner in self.steps:
            values = [x, y]
            if kind == "unary":
                found = one(name, values[which])
            elif kind == "binary":
                found = two(name, x, y)
            elif kind == "cond":
                found = tl.cond(values[which].sum() > level, lambda: inner[0](x, y),
                                lambda: inner[1](y, x))
            elif kind == "while":
                found = self.looped(inner[0], x, y, count)
            else:
                last, all_of_them = tl.scan(
                    lambda c, t: (inner[0](c, c * t), (c * t).sum()), x, y)
                found = last + all_of_them * 0.3
            values[which] = found
            x, y = values
        return x * 0.8 + y * 0.2

    def looped(self, body, x, y, count):
        """Up to `count` steps; of the carried values one is read from outside as well."""
        return tl.while_loop(
            lambda n, a, b: (n < count) & (a.sum().abs() < 50),
            lambda n, a, b: (n + 1, body(a, b) * 0.5 + x * 0.1, two("mul", a, y)),
            (tl.tensor(0), x, y))[1]


def inputs(rng):
    return [tl.tensor([rng.uniform(-1, 1) for _ in range(3)], dtype=tl.float64,
                      requires_grad=True) for _ in range(2)]


def by_hand(function):
    with program.Program() as p:
        x, y = (program.data(name, (3,), tl.float64) for name in ("x", "y"))
        p.outputs = function(x, y)
    return p


@pytest.mark.parametrize("hand", [False, True], ids=["captured", "by hand"])
@pytest.mark.parametrize("seed", range(4))
def test_random_loops_and_branches_are_as_eager(seed, hand, tmp_path):
    rng = random.Random(seed)
    function = Drawn(rng)
    made = by_hand(function) if hand else program.trace(function, *inputs(rng))
    slopes = program.gradients(made.outputs, made.inputs)
    with made:
        total = sum((g * g).sum() for g in slopes if g is not None)
    curvatures = program.gradients(total, made.inputs)
    fetch = [made.outputs.name, *(None if g is None else g.name for g in (*slopes, *curvatures))]
    again = program.parse(str(made), made.values())
    assert str(again) == str(made)
    for _ in range(3):                  # other values take other branches, and other counts
        given = inputs(rng)
        out = function(*given)
        first = tl.autograd.grad(out.sum(), given, create_graph=True, materialize_grads=True)
        second = tl.autograd.grad(sum((g * g).sum() for g in first) + 0 * sum(
            x.sum() for x in given), given)
        for one_program in (made, again):
            for name, expected in zip(fetch, (out, *first, *second)):
                if name is None:
                    assert not expected.any()
                    continue
                value = one_program.run(dict(zip(("x", "y"), (x.detach() for x in given))), name)
                assert tl.allclose(value, expected.detach(), rtol=1e-8, atol=1e-10)
