"""Functions and methods of the library that a user replaces after a function was captured."""

import builtins
import warnings

import pytest
from beside_eager import seen
from cases import each

import tensorlib as tl
from tensorlib import nn
from tensorlib.nn import functional as F
from tensorlib.program import CaptureError


def of_modules(*modules):
    return lambda: (nn.Sequential(*modules), tl.linspace(-1, 1, 12).reshape(3, 4))


def step():
    w = nn.Parameter(tl.ones(3))
    optimizer = tl.optim.SGD([w], lr=0.1)

    def f(x):
        optimizer.zero_grad()
        (x * w).sum().backward()
        optimizer.step()
        return w.detach() * 1
    return f, tl.ones(3)


def density():
    return lambda x: tl.distributions.Normal(x, 1.0).log_prob(x * 2), tl.ones(3)


def on_a_square(f):
    return lambda: (f, tl.arange(4.0).reshape(2, 2))


# The place, the name, what is put there, and what uses it.
REPLACED = {
    "an activation": (F, "relu", lambda x, inplace=False: x * 7, of_modules(nn.ReLU())),
    "a function that others import": (F, "linear", lambda x, w, b=None: x * 7,
                                      of_modules(nn.Linear(4, 4))),
    "a method": (nn.Linear, "forward", lambda self, x: x * 7, of_modules(nn.Linear(4, 4))),
    "a method of a part": (nn.Linear, "forward", lambda self, x: x * 7, of_modules(
        nn.Sequential(nn.Linear(4, 4), nn.Tanh()))),
    "a method put on a class that inherited it": (
        nn.Sequential, "__call__", lambda self, x: x * 7, of_modules(nn.Tanh())),
    "an optimiser's step": (tl.optim.SGD, "step", lambda self, closure=None: None, step),
    "a distribution's method": (
        tl.distributions.Normal, "log_prob", lambda self, x: x * 7, density),
    "a class": (tl.distributions, "Normal", tl.distributions.Laplace, density),
    "a sum": (tl.Tensor, "__add__", lambda x, y: x * 7, on_a_square(lambda x: x + x)),
    "a product": (tl.Tensor, "__matmul__", lambda x, y: x * 7, on_a_square(lambda x: x @ x)),
    "an element": (tl.Tensor, "__getitem__", lambda x, key: x * 7, on_a_square(lambda x: x[0])),
    "a sign": (tl.Tensor, "__neg__", lambda x: x * 7, on_a_square(lambda x: -x)),
    "a comparison": (tl.Tensor, "__gt__", lambda x, y: x * 7, on_a_square(lambda x: x > 1)),
    "an operator with a number before it": (
        tl.Tensor, "__rsub__", lambda x, y: x * 7, on_a_square(lambda x: 1 - x)),
    "an operator in the library's code": (
        tl.Tensor, "__add__", lambda x, y: x * 7, of_modules(nn.TransformerEncoderLayer(4, 1, 4))),
    "a norm": (F, "layer_norm", lambda x, *rest: x * 7, of_modules(nn.LayerNorm(4))),
}


@each("name", REPLACED)
def test_what_is_replaced_is_noticed(name):
    holder, attribute, other, build = REPLACED[name]
    found = []
    for wrap in (lambda f: f, tl.compile):
        tl.manual_seed(0)
        function, x = build()
        f, log = wrap(function), []
        with pytest.MonkeyPatch.context() as patch:
            log += [seen(f(x)) for _ in range(3)]
            patch.setattr(holder, attribute, other)
            log += [seen(f(x)) for _ in range(2)]
        found.append([*log, seen(f(x))])
    assert found[0] == found[1]
    if wrap is tl.compile:
        assert any(way.replay for way in f._entries)


FACTOR = {"by": 7.0}


@each("holder, attribute, other, module", [
    (F, "relu", lambda x, inplace=False: x * FACTOR["by"], nn.ReLU()),
    (F, "linear", lambda x, w, b=None: x * FACTOR["by"], nn.Linear(4, 4)),
    (nn.Linear, "forward", lambda self, x: x * FACTOR["by"], nn.Linear(4, 4)),
])
def test_what_is_put_there_is_captured_with_what_it_reads(
        monkeypatch, holder, attribute, other, module):
    f, x = tl.compile(nn.Sequential(module), fullgraph=True), tl.ones(2, 4)
    f(x)
    monkeypatch.setattr(holder, attribute, other)
    for factor in (7.0, 7.0, 3.0, 3.0):
        monkeypatch.setitem(FACTOR, "by", factor)
        assert tl.equal(f(x), x * factor)
    assert len(f._entries) == 3 and all(way.replay for way in f._entries)


@each("name", ["max", "len", "isinstance", "zip", "sorted", "ValueError", "dict"])
@each("captured_before", [False, True])
def test_a_builtin_function_that_is_replaced_is_called_by_no_capture_or_replay(
        monkeypatch, name, captured_before):
    calls, own, x = [], getattr(builtins, name), tl.ones(2, requires_grad=True)

    def f(x):
        return (x * 2).sin()

    def other(*args, **kwargs):
        calls.append(args)
        return own(*args, **kwargs)

    compiled = tl.compile(f)
    if captured_before:
        compiled(x)
    with monkeypatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setattr(builtins, name, other)
        compiled(x)
        calls.clear()                              # those of the warning, given once
        compiled(x).sum().backward()
        count = [*calls]
        x.grad = None
        calls.clear()
        f(x).sum().backward()
    assert count == calls
    compiled(x), compiled(x)
    assert compiled._entries[0].replay is not None


def test_a_builtin_function_that_is_replaced_is_named(monkeypatch):
    f = tl.compile(lambda x: x * 2)
    monkeypatch.setattr(builtins, "sorted", lambda *args, **kwargs: [])
    with pytest.warns(RuntimeWarning, match="runs eagerly: builtins.sorted was replaced"):
        f(tl.ones(2))
    with pytest.raises(CaptureError, match="builtins.sorted was replaced"):
        tl.compile(lambda x: x * 2, fullgraph=True)(tl.ones(2))


def test_what_prints_may_be_replaced(monkeypatch):
    monkeypatch.setattr(builtins, "print", lambda *args: None)
    f = tl.compile(lambda x: x * 2, fullgraph=True)
    assert tl.equal(f(tl.ones(2)), tl.full((2,), 2.0))


def trained(wrap, replace, own):
    """What six steps give, of which those from the third on have the step of `replace`."""
    class Own(tl.optim.SGD):
        def step(self, closure=None):
            self.param_groups[0]["params"][0].grad.mul_(0.5)
            return super().step(closure)

    w = tl.tensor([1.0, -2.0], requires_grad=True)
    optimizer = (Own if own else tl.optim.SGD)([w], lr=0.1)

    def step(x):
        optimizer.zero_grad()
        loss = (x * w).square().sum()
        loss.backward()
        optimizer.step()
        return loss

    run, found = wrap(step), []
    for i in range(6):
        if i == 2:
            replace(optimizer, w)
        found += [run(tl.tensor([1.0, i])).item(), *w.tolist(), *w.grad.tolist()]
    return found


def on_the_instance(optimizer, w):
    old = optimizer.step
    optimizer.step = lambda: (w.grad.mul_(3), old())[1]


def on_the_class(optimizer, w):
    old = type(optimizer).step
    type(optimizer).step = lambda self: (w.grad.mul_(3), old(self))[1]


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("replace", [on_the_instance, on_the_class])
def test_a_step_of_an_optimizer_that_is_replaced_is_taken_once(replace, own, monkeypatch):
    """The replay of a step that an attribute of the optimiser replaces did that twice."""
    monkeypatch.setattr(tl.optim.SGD, "step", tl.optim.SGD.step)        # put back at the end
    wanted = trained(lambda f: f, replace, own)
    monkeypatch.undo()
    monkeypatch.setattr(tl.optim.SGD, "step", tl.optim.SGD.step)
    assert trained(tl.compile, replace, own) == wanted
