"""Compiled functions that add to gradients which were there before the call, or read them."""

import pytest
from beside_eager import seen
from cases import each

import tensorlib as tl
from tensorlib import nn

X = tl.linspace(-1, 1, 12).reshape(3, 4)


def model():
    tl.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))


def backward(m, o):
    def f(x):
        loss = m(x).pow(2).mean()
        loss.backward()
        return loss
    return f


def step(m, o):
    def f(x):
        loss = m(x).pow(2).mean()
        loss.backward()
        nn.utils.clip_grad_norm_(m.parameters(), 0.1)
        o.step()
        return loss
    return f


def zeroed(m, o):
    def f(x):
        o.zero_grad(set_to_none=False)
        loss = m(x).pow(2).mean()
        loss.backward()
        o.step()
        return loss
    return f


def zeroed_afterwards(m, o):
    def f(x):
        m(x).pow(2).mean().backward()
        with tl.no_grad():
            for p in m.parameters():
                p -= p.grad * 0.1
                p.grad.zero_()
    return f


def in_a_loop(m, o):
    def f(x):
        for part in x.split(1):
            m(part).sum().backward()
        return [p.grad * 2 for p in m.parameters()]
    return f


def returned(m, o):
    def f(x):
        m(x).sum().backward()
        return [p.grad for p in m.parameters()]
    return f


def added_one(m, o):
    def f(x):
        m(x).sum().backward()
        for p in m.parameters():
            p.grad = p.grad + 1
    return f


def laid_out_anew(m):
    m[0].weight.grad = tl.ones(4, 4).t()


def laid_out_with_gaps(m):
    m[0].weight.grad = tl.ones(4, 8)[:, ::2]


def in_one_memory(m):
    memory = tl.zeros(sum(p.numel() for p in m.parameters()))
    start = 0
    for p in m.parameters():
        p.grad = memory[start:start + p.numel()].view_as(p)
        start += p.numel()


def none_of_one(m):
    m[2].bias.grad = None


FUNCTIONS = [backward, step, zeroed, zeroed_afterwards, in_a_loop, returned, added_one]
# What is done to the model between two calls.
BETWEEN = {
    "nothing": lambda m: None,
    "none": lambda m: m.zero_grad(),
    "zeros": lambda m: m.zero_grad(set_to_none=False),
    "none of one": none_of_one,
    "another layout": laid_out_anew,
    "gaps": laid_out_with_gaps,
    "one memory": in_one_memory,
    "a sweep": lambda m: m(X).sum().backward(),
}


@pytest.mark.filterwarnings("ignore:compile:RuntimeWarning")
@each("build", FUNCTIONS)
@each("between", BETWEEN)
def test_what_is_added_and_read_is_that_of_eager_calls(build, between):
    is_whole = between not in NOT_IN_PLACE and (build is not returned or "none" not in between)
    found = []
    for wrap in (lambda f: f, lambda f: tl.compile(f, fullgraph=is_whole)):
        m = model()
        o = tl.optim.SGD(m.parameters(), lr=0.1, momentum=0.9)
        f, log = wrap(build(m, o)), []
        m(X).sum().backward()
        for i in range(9):
            if i % 3 == 2:
                BETWEEN[between](m)
            before = [p.grad for p in m.parameters()]
            result = f(X * (i + 1))
            results = result if isinstance(result, list) else [] if result is None else [result]
            log.append([seen(x) for p in m.parameters() for x in (p, p.grad)])
            log.append([seen(g) for g in before if g is not None])
            log.append([seen(x) for x in results])
            log.append([p.grad is g for p, g in zip(m.parameters(), before)])
            log.append([x is p.grad for x, p in zip(results, m.parameters())])
        found.append(log)
    assert found[0] == found[1]
    assert not is_whole or all(way.replay for way in f._entries) and len(f._entries) <= 4

NOT_IN_PLACE = "another layout", "gaps"        # to which an eager call does not add in place


def cycle(micro):
    """How many captures a loop of training makes that adds up gradients of several calls."""
    m = model()
    o = tl.optim.Adam(m.parameters())
    f = tl.compile(backward(m, o))
    for i in range(6 * micro):
        f(X)
        if i % micro == micro - 1:
            o.step()
            o.zero_grad()
    return len(f._entries)


@pytest.mark.parametrize("micro", [1, 2, 5])
def test_gradients_that_each_step_makes_anew_are_of_one_kind(micro):
    assert cycle(micro) == min(micro, 2)


@pytest.mark.filterwarnings("ignore:compile:RuntimeWarning")
@each("change", [
    lambda a, b: setattr(a, "grad", b.grad),                          # one of two leaves
    lambda a, b: setattr(a, "grad", b.grad.detach()),
    lambda a, b: setattr(a, "grad", a.data),
    lambda a, b: setattr(a, "grad", tl.zeros(1).expand(3)),
    lambda a, b: (a ** 2 * b).sum().backward(create_graph=True),
    lambda a, b: a.register_hook(lambda g: g * 2),
    lambda a, b: a.requires_grad_(False),
])
@each("captured_before", [False, True])
def test_what_can_not_be_given_to_replays_runs_as_it_is(change, captured_before):
    found = []
    for wrap in (lambda f: f, tl.compile):
        a, b = (nn.Parameter(tl.full((3,), x)) for x in (1.0, 2.0))
        (a + b).sum().backward()
        f, log = wrap(lambda x: (a * x + b * x).sum().backward()), []
        for i in range(7):
            if i == 4 * captured_before:
                change(a, b)
            try:
                f(tl.ones(3) * i)
            except RuntimeError as error:
                log.append(str(error))
            log.append([seen(x) for x in (a, b, a.grad, b.grad) if x is not None])
        found.append(log)
    assert found[0] == found[1]


@pytest.mark.filterwarnings("ignore:compile:RuntimeWarning")
def test_a_gradient_that_is_an_argument_too_is_no_other_one():
    found = []
    for wrap in (lambda f: f, tl.compile):
        a = nn.Parameter(tl.ones(3))
        a.grad = tl.zeros(3)

        def f(x):
            (a * x).sum().backward()
            return x * 2

        f, log = wrap(f), []
        for i in range(9):
            log.append([seen(y) for y in (f(a.grad if i % 3 == 2 else tl.ones(3)), a.grad)])
        found.append(log)
    assert found[0] == found[1]


def test_a_call_that_fails_leaves_the_gradients_as_they_were():
    found = []
    for wrap in (lambda f: f, lambda f: tl.compile(f, fullgraph=True)):
        table = nn.Parameter(tl.ones(4, 3))

        def f(i):
            (table[:2] * 2).sum().backward()
            return nn.functional.nll_loss(table.log_softmax(1)[:2], i)

        f, log = wrap(f), []
        for i in (0, 1, 2, 7, 1, 2):
            try:
                log.append(f(tl.tensor([i, 0])).tolist())
            except (IndexError, RuntimeError, ValueError) as error:
                log.append(str(error))
            log.append(seen(table.grad))
        found.append(log)
    assert found[0] == found[1]


def test_views_of_gradients_that_the_call_takes_away():
    def results(wrap):
        m = model()

        def f(x):
            m(x).sum().backward()
            found = [p.grad.view(-1) for p in m.parameters()]
            m.zero_grad()
            return found

        run = wrap(f)
        return [[*map(seen, run(X * k)), *[p.grad for p in m.parameters()]] for k in (1, 2, 3, 4)]

    assert results(tl.compile) == results(lambda f: f)
