"""The search along a line: what it finds meets the strong Wolfe conditions, after few looks."""

from math import cos, exp, sin

import pytest
from cases import each

import tensorlib as tl
from tensorlib.optim import lbfgs
from tensorlib.optim.line_search import DECREASE, FLATTENING, strong_wolfe

# a function of one number that falls at 0, and its derivative
LINES = {
    "parabola": (lambda t: (t - 3) ** 2, lambda t: 2 * (t - 3)),
    "narrow": (lambda t: (t - 0.01) ** 2, lambda t: 2 * (t - 0.01)),
    "wide": (lambda t: (t / 1e3 - 1) ** 2, lambda t: 2e-3 * (t / 1e3 - 1)),
    "quartic": (lambda t: (t - 2) ** 4 - t, lambda t: 4 * (t - 2) ** 3 - 1),
    "waves": (lambda t: sin(5 * t) - 6 * t + t * t, lambda t: 5 * cos(5 * t) - 6 + 2 * t),
    "steep": (lambda t: exp(4 * t) - 9 * t, lambda t: 4 * exp(4 * t) - 9),
    "kinked": (lambda t: abs(t - 1) ** 1.5 + 0.1 * t * t,
               lambda t: 1.5 * abs(t - 1) ** 0.5 * (1 if t > 1 else -1) + 0.2 * t),
    "two valleys": (lambda t: (t - 1) ** 2 * (t - 4) ** 2 - 2 * t,
                    lambda t: 2 * (t - 1) * (t - 4) * (2 * t - 5) - 2),
}


def searched(name, first, most=25):
    loss, slope = LINES[name]
    looks = []

    def look(t):
        looks.append(t)
        return loss(t), tl.tensor([slope(t)], dtype=tl.float64)

    direction = tl.ones(1, dtype=tl.float64)
    found = strong_wolfe(look, first, direction, *look(0.0), slope(0.0), most=most)
    return found, looks[1:]


@each("first", [1e-3, 0.1, 1.0, 2.5, 30.0])
@each("name", LINES)
def test_what_is_found_is_lower_and_flatter(name, first):
    (value, gradient, t, count), looks = searched(name, first)
    loss, slope = LINES[name]
    assert value == loss(t) and gradient.item() == slope(t) and t in looks and t > 0
    assert value <= loss(0) + DECREASE * t * slope(0)
    assert abs(slope(t)) <= -FLATTENING * slope(0)
    assert count == len(looks) <= 12


@each("most", [0, 1, 3])
@each("name", LINES)
def test_it_stops_after_the_looks_that_it_may_take(name, most):
    (value, _, t, count), looks = searched(name, 30.0, most)
    assert count == len(looks) <= most + 1 and value == LINES[name][0](t)


@pytest.mark.parametrize("t, bounds", [(0.1, {}), (2.0, {"c1": 0.3, "c2": 0.1}), (1e3, {}),
                                       (0.01, {"max_ls": 3}), (5.0, {"tolerance_change": 1.0})])
def test_other_libraries_search_by_pytorchs_name(t, bounds):
    torch = pytest.importorskip("torch")
    theirs = pytest.importorskip("torch.optim.lbfgs")
    found = []
    for lib, search in ((tl, lbfgs._strong_wolfe), (torch, theirs._strong_wolfe)):
        gradient = lib.zeros(2, dtype=lib.float64)            # written to anew at each point

        def look(x, t, d, gradient=gradient):
            y = x + t * d
            gradient.copy_(4 * y**3 - 2 * y)
            return float((y**4 - y**2).sum()), gradient

        x = lib.tensor([1.5, -2.0], dtype=lib.float64)
        loss, g = look(x, 0.0, x)
        d, g = -g, g.clone()
        loss, g, t_found, looks = search(look, x, t, d, loss, g, g.dot(d), **bounds)
        found.append([float(loss), *g.tolist(), float(t_found), looks])
    assert found[0] == pytest.approx(found[1], rel=1e-9)


@pytest.mark.parametrize("ends", [(0.0, 3.0, -2.0, 1.0, 2.5, 1.0), (1.0, 2.5, 1.0, 0.0, 3.0, -2.0),
                                  (0.0, 1.0, 1.0, 1.0, 3.0, 1.0)])
@pytest.mark.parametrize("bounds", [None, (0.0, 0.25)])
def test_other_libraries_interpolate_by_pytorchs_name(ends, bounds):
    torch = pytest.importorskip("torch")
    theirs = pytest.importorskip("torch.optim.lbfgs")
    found = [float(home._cubic_interpolate(*map(lib.tensor, ends), bounds)) for lib, home in (
        (tl, lbfgs), (torch, theirs))]
    assert found[0] == pytest.approx(found[1], rel=1e-6)
