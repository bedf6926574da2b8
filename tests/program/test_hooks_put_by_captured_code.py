"""Hooks that a captured function puts on gradients of what it makes: a replay puts them, too."""

import warnings
from functools import partial

import pytest
from cases import each
from beside_eager import raised, seen

import tensorlib as tl
from tensorlib import nn
from tensorlib.program import CaptureError

SCALE = [2.0]


def tripled(g):
    return g * 3


def scaled(g):
    return g * SCALE[0]


def one(x, w, put):
    y = x * w
    put(y)
    return y.sin(), w * 2


def one_that_is_returned(x, w, put):
    y = x * w
    put(y)
    return y, y.cos()


def several(x, w, put):
    for _ in range(3):
        x = (x * w).sin()
        put(x)
    return x, w * x


def with_local(y):
    k = float(y.dim())
    y.register_hook(lambda g: g * k)


WHOLE = {
    "a function": lambda y: y.register_hook(tripled),
    "one that reads a global": lambda y: y.register_hook(scaled),
    "one that is made": lambda y: y.register_hook(lambda g, k=5.0: g * k * SCALE[0]),
    "one that holds a local": with_local,
    "a partial": lambda y: y.register_hook(partial(tl.mul, 5.0)),
    "two": lambda y: (y.register_hook(tripled), y.register_hook(scaled)),
    "retain_grad": lambda y: y.retain_grad(),
    "retain_grad and a hook": lambda y: (y.retain_grad(), y.register_hook(tripled)),
}


def once(total, x, w):
    total.backward()


def second(total, x, w):
    first = tl.autograd.grad(total, [x, w], create_graph=True)
    sum(g.sum() for g in first).backward()


def history(wrap, function, sweep):
    """All that calls of a function and sweeps after them give."""
    f, found = wrap(function), []
    for k in range(12):
        x, w = (tl.tensor([k, 1.0, v], requires_grad=True) for v in (2.0, -1.0))
        SCALE[0] = float(k)
        results = f(x, w)
        SCALE[0] = k + 1.0
        error = raised(sweep, sum(y.sum() for y in results), x, w)[1]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found.append((error, [None if y.grad is None else seen(y.grad)
                                  for y in (x, w, *results)], *map(seen, results)))
    return found


@each("put", WHOLE)
@each("function", [one, one_that_is_returned, several])
def test_a_function_that_puts_a_hook_is_captured_whole(function, put):
    def called(x, w):
        return function(x, w, WHOLE[put])

    for sweep in (once, second):
        assert history(partial(tl.compile, fullgraph=True), called, sweep) == history(
            lambda f: f, called, sweep)


def list_of_its_own(y, x):
    calls = []
    y.register_hook(lambda g: (calls.append(1), g * len(calls))[1])


def counts(y, x):
    n = 0

    def hook(g):
        nonlocal n
        n += 1
        return g * n
    y.register_hook(hook)


def set_later(y, x):
    k = 2.0
    y.register_hook(lambda g: g * k)
    k = 5.0


def taken_off(y, x):
    with y.register_hook(tripled):
        y.sin()


@pytest.mark.parametrize("put, why", [
    (lambda y, x: y.register_hook(lambda g: g * x), "holds an argument"),
    (lambda y, x: y.register_hook(lambda g, k=x * 2: g * k), "tensor which the function made"),
    (list_of_its_own, "what each call makes anew"),
    (lambda y, x: y.register_hook(lambda g, s=[]: (s.append(1), g * len(s))[1]), "makes anew"),
    (counts, "changes variables of the function"),
    (set_later, "set after it is put"),
    (taken_off, "taken off again"),
])
def test_a_hook_that_is_another_one_in_each_call_is_not(put, why):
    def function(x, w):
        y = x * w
        put(y, x)
        return y.sin(), w * 2

    with pytest.raises(CaptureError, match=why):
        tl.compile(function, fullgraph=True)(tl.ones(2), tl.ones(2, requires_grad=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert history(tl.compile, function, once) == history(lambda f: f, function, once)


class Remembers(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.grad = nn.Linear(3, 4), nn.Linear(4, 2), None

    def remember(self, g):
        self.grad = g

    def forward(self, x):
        h = self.first(x).relu()
        h.register_hook(self.remember)
        return self.second(h)


def test_a_model_that_keeps_the_gradient_of_an_activation_is_captured_whole():
    model = Remembers()
    f = tl.compile(model, fullgraph=True)
    for k in range(4):
        x, found = tl.rand(2, 3) * k, []
        for call in (f, model):
            model.zero_grad()
            call(x).square().sum().backward()
            found.append([seen(model.grad), *(seen(p.grad) for p in model.parameters())])
        assert found[0] == found[1]
