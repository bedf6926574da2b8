"""The same random programs on tensorlib and on PyTorch: values, derivatives, what is refused."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from program_steps import HOOKS
from programs import DIRECTIONS, LEAVES, Machine, programs, weighted_sum

import tensorlib as tl

torch = pytest.importorskip("torch")
for _name in ("torch.func", "torch.utils.checkpoint"):
    pytest.importorskip(_name)

OVERWRITTEN = "modified by an inplace operation"
# Where one library alone refuses a sweep. Each line says why.
REFUSED_BY_ONE = {
    "PyTorch": (OVERWRITTEN, "it saves a value that the gradient can do without"),
    "tensorlib": ("checkpoint: ", "it compares the values of the second run with the first"),
}


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def leaves_of(library, values=LEAVES):
    return [library.tensor(x, dtype=library.float64, requires_grad=True) for x in values]


def numbers(x):
    return None if x is None else x.detach().numpy()


def outcome(call):
    """("returned", numbers of each result or None) or ("raised", error)."""
    try:
        return "returned", [numbers(x) for x in call()]
    except RuntimeError as error:
        return "raised", error


class Run:
    """What one library makes of a program: its values, and its derivatives as asked for."""

    def __init__(self, library, program):
        self.library = library
        self.machine = Machine(library, leaves_of(library))
        self.machine.run(program)
        self.roots = [x for x in self.machine.values[2:] if x.requires_grad][-3:]
        self.directions = [library.tensor(v, dtype=library.float64) for v in DIRECTIONS]

    def facts(self):
        return [(name, number) for number, name, _ in self.machine.refused], [
            (x.requires_grad, x.is_leaf, tuple(x.shape)) for x in self.machine.values]

    def weights(self):
        """New ones each time: PyTorch may accumulate into a gradient that it was given."""
        return [self.machine.spread(x.shape, 0.4) for x in self.roots]

    def backward(self):
        """The `.grad` of leaves, and of all that keeps it, after two sweeps from several roots."""
        for _ in range(2):
            self.library.autograd.backward(self.roots, self.weights(), retain_graph=True)
        kept = [x.grad for x in self.machine.values if x.retains_grad]
        return [x.grad for x in self.machine.leaves] + kept

    def second(self):
        """First derivatives, and those of their product with the directions."""
        grad, leaves = self.library.autograd.grad, self.machine.leaves
        slopes = grad(self.roots, leaves, self.weights(), create_graph=True, allow_unused=True)
        products = [(g * v).sum() for g, v in zip(slopes, self.directions)
                    if g is not None and g.requires_grad]
        # zero may be computed, or known
        again = grad(sum(products), leaves, materialize_grads=True) if products else ()
        return [*slopes, *again]


def agree(ours, theirs):
    """Whether two outcomes are the same, or one library alone has a reason to refuse."""
    (verb, mine), (their_verb, other) = ours, theirs
    if verb != their_verb:
        who, error = ("tensorlib", mine) if verb == "raised" else ("PyTorch", other)
        return REFUSED_BY_ONE[who][0] in str(error)
    return verb == "raised" or len(mine) == len(other) and all(map(same, mine, other))


def same(a, b):
    if a is None or b is None:
        return a is b
    return a.shape == b.shape and np.allclose(a, b, rtol=1e-7, atol=1e-9, equal_nan=True)


@given(programs())
def test_values_and_derivatives(program):
    ours, theirs = Run(tl, program), Run(torch, program)
    assert ours.facts() == theirs.facts()
    for (_, name, mine), (_, _, other) in zip(ours.machine.refused, theirs.machine.refused):
        assert isinstance(mine, type(other)), name
    assert all(map(same, *(map(numbers, run.machine.values) for run in (ours, theirs))))
    if ours.roots:
        assert agree(outcome(ours.backward), outcome(theirs.backward))
        assert agree(outcome(ours.second), outcome(theirs.second))


def tangent_by_reverse_mode(program):
    """The derivative of the weighted sum along the directions, by two sweeps of PyTorch's.

    A product with the Jacobian is the derivative of the gradient for the weight of the output.
    """
    leaves = leaves_of(torch)
    machine = Machine(torch, leaves)
    machine.run(program)
    out = weighted_sum(machine)
    weight = torch.ones((), dtype=torch.float64, requires_grad=True)
    slopes = torch.autograd.grad(out, leaves, weight, create_graph=True)
    moved = sum((g * torch.tensor(v, dtype=g.dtype)).sum() for g, v in zip(slopes, DIRECTIONS))
    return out.item(), torch.autograd.grad(moved, weight)[0].item()


@given(programs(without=HOOKS))
def test_forward_mode(program):
    def function(*leaves):
        machine = Machine(tl, leaves)
        machine.run(program)
        return weighted_sum(machine)

    point, along = ([tl.tensor(x, dtype=tl.float64) for x in values]
                    for values in (LEAVES, DIRECTIONS))
    try:
        found = [x.item() for x in tl.func.jvp(function, tuple(point), tuple(along))]
        wanted = tangent_by_reverse_mode(program)
    except RuntimeError as error:
        assert OVERWRITTEN in str(error)
        return
    if math.isfinite(wanted[1]):
        assert found == pytest.approx(wanted, rel=1e-8, abs=1e-9)
