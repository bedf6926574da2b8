"""Sweeps through replayed calls that raise midway, and in which order hooks are called.

What ran until then is that of the graph of the eager call: gradients that were accumulated, values
that were released, and what later sweeps give.
"""

import itertools

import pytest
from cases import each

import tensorlib as tl

FUNCTIONS = {
    "products": lambda x, v, w: (x * v, x.log() * w, (x + v).exp() * w),
    "chains": lambda x, v, w: ((x * v).sin().mul(w).cos(), (v.exp() * x).tanh()),
    "apart": lambda x, v, w: (x.sin() * 2, v.sin() * 3, w.sin() * 4),
    "one": lambda x, v, w: (((x.sin() * v).sin() * w).sin(),),
    "a result of another": lambda x, v, w: (lambda y: (y, y * v, y.sin() * w))(x.exp()),
    "a sum": lambda x, v, w: (w.sin() + (v.sin() + x.sin()),),
    "views": lambda x, v, w: (x.view(-1), (v * w).cumprod(0)),
    "masks": lambda x, v, w: (x.relu(), x.softmax(0) * w, v.max(0)[0] * x),
}
each_function = pytest.mark.parametrize("name", FUNCTIONS)


def leaves():
    return [tl.arange(1.0, 4.0).div(2).requires_grad_() for _ in range(3)]


def as_lists(found):
    return [None if x is None else x.tolist() for x in found]


def told(f, *args, **kwargs):
    """What a call gives, as lists, or what it raises."""
    try:
        found = f(*args, **kwargs)
    except (RuntimeError, ValueError) as error:
        return str(error)
    return found if found is None else as_lists(found)


def assert_agree(name, seen):
    """Whether all that is seen of replays is that of eager calls."""
    compiled = tl.compile(FUNCTIONS[name])
    assert [seen(compiled) for _ in range(3)] == [seen(FUNCTIONS[name])] * 3
    assert compiled._entries[0].replay is not None


def refuse(g):
    raise ValueError("a hook")


@each_function
@each("place", range(3))
@pytest.mark.parametrize("cause", ["write", "leaf", "accumulated", "result"])
@each("used", [(0,), (0, 1), (0, 1, 2)])
def test_a_sweep_that_raises_midway(name, cause, place, used):
    def seen(f):
        given = leaves()
        results = f(*given)
        ends = [results[i].sum() for i in used if i < len(results)]
        if cause == "write":
            with tl.no_grad():
                given[place].mul_(1.5)
        else:
            x = results[place % len(results)] if cause == "result" else given[place]
            handle = (x.register_post_accumulate_grad_hook if cause == "accumulated"
                      else x.register_hook)(refuse)
        log = []
        for _ in range(2):
            log += [told(tl.autograd.backward, ends), as_lists([x.grad for x in given])]
            if cause != "write":
                handle.remove()
        return log, [told(tl.autograd.grad, y.sum(), x, retain_graph=True, allow_unused=True)
                     for y in results for x in given if cause in ("write", "result")]

    assert_agree(name, seen)


def backward(results, given, i):
    results[i % len(results)].sum().backward()
    return [x.grad for x in given]


def gradient(results, given, i):
    return tl.autograd.grad(results[i % len(results)].sum(), given, retain_graph=True,
                            allow_unused=True)


def second(results, given, i):
    y = results[i % len(results)]
    first = tl.autograd.grad((y * y).sum(), given, create_graph=True, allow_unused=True)
    return [*first, *tl.autograd.grad(sum(g.sin().sum() for g in first if g is not None), given,
                                      retain_graph=True, allow_unused=True)]


def write_result(results, given, i):
    with tl.no_grad():
        results[i % len(results)].mul_(1.5)
    return []


def write_argument(results, given, i):
    with tl.no_grad():
        given[i].add_(0.5)
    return []


ACTS = [(f, i) for f in (backward, gradient, second, write_result, write_argument) for i in (0, 1)]


@each_function
@each("first", ACTS, ids=lambda act: f"{act[0].__name__} {act[1]}")
def test_sweeps_with_a_graph_after_writes_and_other_sweeps(name, first):
    """They need what eager ones need, see who wrote into results, and add in the same order."""
    compiled = tl.compile(FUNCTIONS[name])
    compiled(*leaves())                             # which captures; what follows is replayed
    for acts in itertools.product([first], ACTS, [(backward, 1), (second, 0), (second, 1)]):
        def seen(f, acts=acts):
            given = leaves()
            results = f(*given)
            return [told(act, results, given, i) for act, i in acts]

        assert seen(compiled) == seen(FUNCTIONS[name]), acts


@each_function
@each("kinds", ["hook", "accumulated", "result", "hook result", "accumulated result"])
def test_hooks_are_called_in_the_order_of_eager_nodes(name, kinds):
    def seen(f):
        given, order = leaves(), []
        results = f(*given)
        for i, x in enumerate(given):
            if "hook" in kinds:
                x.register_hook(lambda g, i=i: order.append(("leaf", i)))
            if "accumulated" in kinds:
                x.register_post_accumulate_grad_hook(
                    lambda x, i=i: order.append((i, [y.grad is not None for y in given])))
        for i, y in enumerate(results if "result" in kinds else ()):
            y.register_hook(lambda g, i=i: order.append(("result", i)))
        tl.autograd.backward([y.sum() for y in results])
        return order

    assert_agree(name, seen)
