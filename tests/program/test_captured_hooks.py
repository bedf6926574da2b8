"""Hooks before and after the `forward` of modules in compiled functions."""

import functools

import pytest
from beside_eager import seen

import tensorlib as tl
from tensorlib import nn

SCALE = {"all": 2.0}


def scaled(module, args, output):
    return output * SCALE["all"]


def moved(module, args):
    return (args[0] + 1,)


def by_name(module, args, kwargs):
    return args, {"scale": kwargs.get("scale", 1.0) * 3}


class Scaling:
    def __init__(self):
        self.by = 3.0

    def __call__(self, module, args, output):
        return output * self.by

    def added(self, module, args, output):
        return output + self.by


class Layer(nn.Linear):
    def forward(self, x, scale=1.0):
        return super().forward(x) * scale


def value_in_the_place(model):
    hooks = model[0]._forward_hooks
    hooks[next(iter(hooks))] = lambda module, args, output: output * 9


# What is done to a model before some of its calls, from the third one on.
CHANGES = {
    "after": [lambda m: m[0].register_forward_hook(scaled), lambda m: SCALE.update(all=5.0)],
    "before": [lambda m: m[2].register_forward_pre_hook(moved),
               lambda m: m[2].register_forward_pre_hook(lambda m, args: (args[0] * 2,),
                                                        prepend=True)],
    "with names": [lambda m: m[0].register_forward_pre_hook(by_name, with_kwargs=True)],
    "an object": [lambda m: m[0].register_forward_hook(Scaling()),
                  lambda m: setattr(next(iter(m[0]._forward_hooks.values())), "by", 7.0)],
    "a method": [lambda m: m[0].register_forward_hook(Scaling().added)],
    "a partial": [lambda m: m[0].register_forward_hook(
        functools.partial(lambda k, m, args, output: output * k, 7.0))],
    "nothing": [lambda m: m.register_forward_hook(lambda *given: None)],
    "in place": [lambda m: m[0].register_forward_hook(lambda m, args, output: output.mul_(2))],
    "another in its place": [lambda m: m[0].register_forward_hook(scaled), value_in_the_place,
                             lambda m: m[0]._forward_hooks.clear()],
}


@pytest.mark.parametrize("name", CHANGES)
def test_hooks_of_a_module_are_captured_with_it(name, monkeypatch):
    found = []
    for wrap in (lambda f: f, functools.partial(tl.compile, fullgraph=True)):
        monkeypatch.setitem(SCALE, "all", 2.0)
        tl.manual_seed(0)
        model = nn.Sequential(Layer(3, 3), nn.ReLU(), Layer(3, 2))
        f, log = wrap(model), []
        for change in (lambda m: None, *CHANGES[name]):
            change(model)
            for _ in range(3):
                model.zero_grad()
                y = f(tl.linspace(-1, 1, 6).reshape(2, 3))
                y.sum().backward()
                log += [seen(y), *(seen(x.grad) for x in model.parameters())]
        found.append(log)
    assert found[0] == found[1]
    assert all(way.replay for way in f._entries)


@pytest.mark.filterwarnings("ignore:compile:RuntimeWarning")
@pytest.mark.parametrize("keeps", [
    lambda log: lambda m, args, output: log.append(output.shape),
    lambda log: lambda m, args, output: log.append(output.detach().tolist()),
    lambda log: lambda m, args, output: 1 / len(log),
])
def test_what_hooks_keep_and_raise_is_that_of_eager_calls(keeps):
    found = []
    for wrap in (lambda f: f, tl.compile):
        tl.manual_seed(0)
        model, log, results = nn.Sequential(nn.Linear(3, 3), nn.Tanh()), [], []
        f = wrap(model)
        model[0].register_forward_hook(keeps(log))
        for _ in range(5):
            try:
                results.append(f(tl.ones(2, 3)).tolist())
            except ZeroDivisionError as error:
                results.append((str(error), error.__notes__))
        found.append((log, results))
    assert found[0] == found[1]
