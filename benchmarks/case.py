"""What a benchmark case is, and the three ways to declare one.

    expression("overhead", "a + b", a=(16,), b=(16,), target=6)

is timed without the cost of a Python call. What needs more is a function that takes the library and
returns the function to time, whose result both libraries must agree on:

    @case("overhead", "sum, backward", target=12)
    def sum_backward(lib):
        a = uniform(lib, 16).requires_grad_()
        def run():
            a.grad = None
            a.sum().backward()
            return a.grad
        return run

A `measured` function runs once in a process of its own and returns its figures and its result.
"""

import timeit
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter_ns

import numpy as np


@dataclass(frozen=True)
class Case:
    name: str
    group: str
    prepare: Callable  # of the library; returns a Timed or a Measured
    target: float | None = None  # how many times as fast as the peer this is to be
    no_slower_than: str | None = None  # a case whose time here bounds the time of this one
    alone: bool = False  # each round in a fresh process
    rtol: float = 1e-4  # how far the libraries may be apart
    size: str = ""  # "large": not in a quick run; "huge": only when asked for, without the peer


REGISTERED: dict[str, Case] = {}


class Timed:
    """A statement, timed in a loop with the garbage collector off."""

    def __init__(self, code: str, names: dict):
        self._code, self._names = code, names
        self._timer = timeit.Timer(code, timer=perf_counter_ns, globals=names)
        self._loops = 1

    def result(self):
        return eval(self._code, self._names)

    def calibrate(self, budget_ns: int) -> None:
        """Sets how often one batch runs the statement, for a batch of about budget_ns."""
        while (taken := self._timer.timeit(self._loops)) < budget_ns:
            self._loops = max(self._loops * 2, int(self._loops * budget_ns / max(taken, 1)))
        self._loops = max(1, self._loops * budget_ns // taken)

    def measure(self, batches: int) -> dict[str, float]:
        """The nanoseconds of one run, in the fastest batch."""
        return {"time": min(self._timer.repeat(batches, self._loops)) / self._loops}


class Measured:
    """A function that measures itself, once."""

    def __init__(self, function: Callable, lib):
        self._function, self._lib = function, lib

    def result(self):
        self._figures, result = self._function(self._lib)
        return result

    def calibrate(self, budget_ns: int) -> None:
        """Nothing: the size of the case is fixed."""

    def measure(self, batches: int) -> dict[str, float]:
        return self._figures


def register(case: Case) -> None:
    if case.name in REGISTERED:
        raise ValueError(f"benchmarks: two cases are named {case.name!r}")
    REGISTERED[case.name] = case


def expression(group, code, *, name=None, grad=False, low=-1.0, high=1.0, target=None,
               no_slower_than=None, **shapes) -> None:
    """A case that times `code` on one uniform random tensor for each of `shapes`."""
    def prepare(lib):
        tensors = {
            key: uniform(lib, *shape, low=low, high=high, seed=seed).requires_grad_(grad)
            for seed, (key, shape) in enumerate(shapes.items())
        }
        return Timed(code, {"lib": lib, **tensors})
    register(Case(name or code, group, prepare, target, no_slower_than))


def case(group, name, **options):
    """A case from a function that takes the library and returns the function to time."""
    def declare(function):
        register(Case(name, group, lambda lib: Timed("run()", {"run": function(lib)}), **options))
        return function
    return declare


def measured(group, name, function, **options) -> None:
    """A case from a function that takes the library and returns its figures and its result."""
    register(Case(name, group, lambda lib: Measured(function, lib), alone=True, **options))


def uniform(lib, *shape, low=-1.0, high=1.0, seed=0):
    """The same random float32 tensor in either library."""
    values = np.random.default_rng(seed).random(shape, dtype=np.float32)
    return lib.from_numpy(values * np.float32(high - low) + np.float32(low))


def prepared(lib, model):
    """The model, with parameters that are the same in both libraries."""
    with lib.no_grad():
        for seed, parameter in enumerate(model.parameters()):
            parameter.copy_(uniform(lib, *parameter.shape, low=-0.1, high=0.1, seed=seed))
    return model
