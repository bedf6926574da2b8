"""Graphs that are long, wide or knotted: the backward sweep must be linear in all of them."""

from functools import partial
from time import perf_counter_ns

from benchmarks.case import case, measured, uniform
from benchmarks.resident import peak_bytes, resident_bytes


@case("graph", "fan-out: one tensor used 1,000 times")
def fan_out(lib):
    a = uniform(lib, 16).requires_grad_()

    def run():
        a.grad = None
        total = a
        for _ in range(1_000):
            total = total + a
        total.sum().backward()
        return a.grad
    return run


@case("graph", "100 diamonds in a row")
def diamonds(lib):
    """A sweep that visits a node once for each path would visit 2 ** 100."""
    a = uniform(lib, 16).requires_grad_()

    def run():
        a.grad = None
        y = a
        for _ in range(100):
            y = (y + y) * 0.5
        y.sum().backward()
        return a.grad
    return run


def build_sweep_free(lib, n):
    """The nanoseconds that a chain of n operations takes in each stage, and its gradient."""
    a, c = uniform(lib, 16).requires_grad_(), uniform(lib, 16, seed=1)
    b = -lib.ones(16)  # the products stay exact and the sums bounded, however long the chain
    start = perf_counter_ns()
    y = a
    for _ in range(n // 2):
        y = y * b + c
    built = perf_counter_ns()
    y.sum().backward(retain_graph=True)  # or the sweep would free part of the graph
    swept = perf_counter_ns()
    del y
    freed = perf_counter_ns()
    return (built - start, swept - built, freed - swept), a.grad


def chain(n, lib):
    """Figures for one operation of a chain of n, and its growth over a chain of n / 10."""
    short, _ = build_sweep_free(lib, n // 10)
    before = resident_bytes()
    stages, gradient = build_sweep_free(lib, n)
    figures = dict(zip(("build", "sweep", "free"), (taken / n for taken in stages)))
    figures["memory"] = (peak_bytes() - before) / n
    figures["growth"] = sum(stages) / (10 * sum(short))
    return figures, gradient


for length, size in {10_000: "", 1_000_000: "large", 10_000_000: "huge"}.items():
    measured("graph", f"chain of {length:,}", partial(chain, length), size=size)
