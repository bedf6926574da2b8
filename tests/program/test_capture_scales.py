"""Captures do work in proportion to the operations that they capture: they count calls, as times
depend on what else runs."""

import cProfile

from cases import each

import tensorlib as tl
from tensorlib import func, nn


def norms(n):
    return nn.Sequential(*[nn.BatchNorm1d(2) for _ in range(n)]), tl.ones(3, 2)


def layers(n):
    parts = nn.ModuleList([nn.Linear(2, 2) for _ in range(n)])

    def step(x):
        for part in parts:
            x = part(x).tanh() + x
        parts.zero_grad()
        x.sum().backward()
        return [part.weight for part in parts]

    return step, tl.ones(3, 2)


def states(n):
    held = [tl.zeros(2) for _ in range(n)]

    def step(x):
        for y in held:
            y.mul_(0.9).add_(x)
        return held[0] + x

    return step, tl.ones(2)


def second_order(n):
    def cost(x):
        for _ in range(n):
            x = x.sin() * 2
        return x.sum()

    return func.grad(lambda x: func.grad(cost)(x).square().sum()), tl.ones(2)


def calls_in_capture(make, n):
    """How many functions are called by a capture, after another one."""
    f, x = make(n)
    tl.compile(f)(x)
    compiled, profile = tl.compile(f), cProfile.Profile()
    profile.runcall(compiled, x)
    assert compiled._entries[0].replay is not None
    return sum(entry.callcount for entry in profile.getstats())


@each("make", [norms, layers, states, second_order])
def test_a_capture_takes_work_in_proportion_to_its_operations(make):
    few, many = (calls_in_capture(make, n) for n in (25, 100))
    assert many < 5 * few, f"{few} and {many} calls"
