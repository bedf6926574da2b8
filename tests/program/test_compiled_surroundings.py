"""Compiled functions see what is around them as eager ones do: modes, numbers in tensors."""

import warnings

import pytest

import tensorlib as tl
from tensorlib import nn
from test_compile_agrees import same


def compiled_quietly(f):
    """`f` compiled, for calls that may warn that they run eagerly."""
    compiled = tl.compile(f)

    def call(*args, **kwargs):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return compiled(*args, **kwargs)

    return call


# ---- modes ---------------------------------------------------------------------------------------

def gradients_of_steps(kind, wrap):
    """The gradients of each of some steps of a recurrent layer."""
    tl.manual_seed(0)
    layer = getattr(nn, kind)(3, 4)
    inputs = [tl.randn(5, 2, 3) for _ in range(3)]

    @wrap
    def step(x):
        layer.zero_grad()
        layer(x)[0].square().mean().backward()

    found = []
    for x in inputs:
        step(x)
        found += [p.grad for p in layer.parameters()]
    return found


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_a_captured_sweep_calls_the_functions_of_an_eager_one(kind):
    # by a kernel where nobody differentiates the sweep, by formulas that round otherwise where so
    wanted, found = (gradients_of_steps(kind, wrap) for wrap in (lambda f: f, tl.compile))
    assert all(map(same, wanted, found))


# ---- numbers that are taken of tensors -----------------------------------------------------------

BY_NUMBERS = {
    "arange": lambda x, n: tl.arange(n) + x[0],
    "full": lambda x, n: x + tl.full((4,), n),
    "linspace": lambda x, n: tl.linspace(0, n, 4) + x,
    "renorm": lambda x, n: x.view(2, 2).renorm(2, 0, n),
    "norm": lambda x, n: x.norm(p=n),
    "cdist": lambda x, n: tl.cdist(x.view(2, 2), x.view(2, 2) + 1, p=n),
    "item": lambda x, n: x * n.item(),
    "int": lambda x, n: x * int(n),
    "if": lambda x, n: x if n > 2 else -x,
    "tolist": lambda x, n: x * n.tolist(),
    "tensor": lambda x, n: x * tl.tensor(n),
    "repr": lambda x, n: x * len(repr(n)),
}


@pytest.mark.parametrize("name", BY_NUMBERS)
def test_numbers_of_tensors_are_those_of_each_call(name):
    f, x = BY_NUMBERS[name], tl.arange(4.0)
    around = tl.tensor(0)
    by_argument, by_name = compiled_quietly(f), compiled_quietly(lambda x: f(x, around))
    for n in (3, 1, 20):
        wanted = f(x, tl.tensor(n))
        around.fill_(n)
        assert same(by_argument(x, tl.tensor(n)), wanted) and same(by_name(x), wanted)
