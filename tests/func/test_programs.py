"""Random programs: fan-out, views, writes in place, dead branches, control flow on values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensorlib as tl
from tensorlib import func
from tensorlib.testing import assert_close


def written_through_a_view(a, b):
    whole = a.clone()
    whole.t()[1:].mul_(b.t()[1:])
    return whole


def assigned(a, b):
    whole = a * 1.5
    whole[0] = b[1]
    whole[:, 1] += a[:, 2]
    return whole


def masked(a, b):
    whole = a.clone()
    mask = b > 0.1
    whole[mask] = (a * b)[mask]
    return whole


STEPS = {
    "sin": lambda a, b: a.sin(), "tanh": lambda a, b: a.tanh(), "scaled": lambda a, b: a * -0.7,
    "add": lambda a, b: a + b, "mul": lambda a, b: a * b, "quotient": lambda a, b: a / (b * b + 1),
    "softmax": lambda a, b: a.softmax(1), "row": lambda a, b: a[0].expand(2, 3) + b,
    "transposed": lambda a, b: (a.t() @ b.sin())[:2], "reduced": lambda a, b: a - b.mean(0),
    "parted": lambda a, b: tl.cat([a[:, 1:], b[:, :1]], 1), "branch": lambda a, b: (
        a.cos() if b.sum().item() > 0 else b * b),
    "chosen": lambda a, b: tl.where(a > b, a.exp() * 0.3, b), "view": written_through_a_view,
    "assigned": assigned, "masked": masked, "in place": lambda a, b: (a * 1.0).mul_(b).add_(a),
    "detached": lambda a, b: a * b.detach() + b, "steps back": lambda a, b: a[:, ::-1] * b,
    "nested": lambda a, b: func.elementwise_grad(lambda x: (x * b).sin())(a),
}


@st.composite
def programs(draw):
    places = st.integers(0, 100)
    return draw(st.lists(st.tuples(st.sampled_from(sorted(STEPS)), places, places), min_size=1,
                         max_size=8))


def running(program):
    def function(x, y):
        values = [x, y]
        for name, i, j in program:
            values.append(STEPS[name](values[i % len(values)], values[j % len(values)]))
        return values[-1]
    return function


X = tl.tensor([[0.31, -0.62, 0.93], [-0.24, 0.55, 0.86]], dtype=tl.float64)
Y = tl.tensor([[-0.47, 0.78, 0.29], [0.61, -0.12, 0.43]], dtype=tl.float64)
V = tl.tensor([[0.5, -1.0, 0.7], [0.9, 0.3, -0.8]], dtype=tl.float64)


@given(programs())
def test_both_modes_agree(program):
    function = running(program)
    out, moved = func.jvp(function, (X, Y), (V, -V))
    again, pull = func.vjp(function, X, Y)
    assert_close(out, again)
    by_x, by_y = pull(V)
    assert (V * moved).sum().item() == pytest.approx((by_x * V - by_y * V).sum().item(), abs=1e-9)
    leaves = X.clone().requires_grad_(), Y.clone().requires_grad_()
    result = function(*leaves)
    if result.requires_grad:
        found = tl.autograd.grad(result, leaves, V, allow_unused=True)
        for a, b in zip(found, (by_x, by_y)):
            assert_close(tl.zeros_like(b) if a is None else a, b)


@given(programs())
def test_second_derivatives_agree(program):
    function = running(program)

    def scalar(x, y):
        return (function(x, y) * V).sum()

    _, forward = func.hvp(scalar, (X, Y), (V, Y))
    _, reverse = func.vhp(scalar, (X, Y), (V, Y))
    if not any(name == "detached" for name, _, _ in program):     # its Hessian is not symmetric
        for a, b in zip(forward, reverse):
            assert_close(a, b, rtol=1e-8, atol=1e-9)

    def along(x, y):
        return func.jvp(scalar, (x, y), (V, Y))[1]

    _, twice = func.jvp(along, (X, Y), (X, V))
    by_x, by_y = func.grad(along, (0, 1))(X, Y)
    assert twice.item() == pytest.approx((by_x * X + by_y * V).sum().item(), rel=1e-8, abs=1e-8)
