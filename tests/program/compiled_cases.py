"""Functions to compile, each with what it is called with and the state that it changes."""

import collections

import tensorlib as tl

CASES = {}
COUNTER = {"n": 0}
Pair = collections.namedtuple("Pair", "first second")


def case(build):
    """Adds a case: `build()` gives a function, what makes the arguments of call i, and states."""
    CASES[build.__name__] = build
    return build


def of_tensors(*shapes, grad=True):
    """Adds a function of tensors of these shapes, under its name."""
    def register(f):
        add(f.__name__, f, *shapes, grad=grad)
        return f
    return register


def add(name, f, *shapes, grad=True):
    """Adds a function of tensors of these shapes."""
    def build():
        def make(i):
            return tuple(normal(*s, seed=10 * i + k, grad=grad) for k, s in enumerate(shapes))
        return f, make, []
    CASES[name] = build


def normal(*shape, seed=0, grad=True):
    """Normal numbers."""
    return tl.randn(*shape, generator=tl.Generator().manual_seed(seed)).requires_grad_(grad)
