"""Results of replays have the versions of eager results: how often they were written to."""

import pytest

import tensorlib as tl


def written_once(x, w):
    y = x * 2
    y.add_(1)
    return y


def a_view_and_its_base(x, w):
    y = x * 1
    v = y.view(-1)
    v.add_(1)
    return y, v, y.detach()


def an_argument_and_a_result(x, w):
    x.mul_(2)
    y = x + 1
    y[0] = 5
    return x, y


def saved_for_a_gradient(x, w):
    y = x * w
    y.add_(1)
    return y, y.exp()


def a_gradient(x, w):
    return tl.autograd.grad((x * w * w).sum(), w)[0]


@pytest.mark.parametrize("f", [written_once, a_view_and_its_base, an_argument_and_a_result,
                               saved_for_a_gradient, a_gradient])
def test_a_replay_gives_the_versions_of_the_eager_call(f):
    run, w = tl.compile(f, fullgraph=True), tl.ones(2, 2, requires_grad=True)

    def versions(call):
        x = tl.ones(2, 2)
        found = call(x, w)
        return [y._version for y in (x, *(found if isinstance(found, tuple) else (found,)))]

    for _ in range(3):
        assert versions(run) == versions(f)


def test_gradients_of_results_that_were_written_to():
    w = tl.ones(2, requires_grad=True)
    run = tl.compile(saved_for_a_gradient, fullgraph=True)
    for _ in range(3):
        y, z = run(tl.ones(2), w)
        first, = tl.autograd.grad((y * z).sum(), w, create_graph=True)
        again, = tl.autograd.grad(first.sum(), w)
        y, z = saved_for_a_gradient(tl.ones(2), w)
        expected, = tl.autograd.grad((y * z).sum(), w, create_graph=True)
        assert tl.equal(first, expected)
        assert tl.equal(again, tl.autograd.grad(expected.sum(), w)[0])
        y, z = run(tl.ones(2), w)
        z.add_(1)
        with pytest.raises(RuntimeError, match="modified"):
            z.sum().backward()


def test_a_call_that_is_undone_and_runs_eagerly_counts_its_writes_once():
    def step(x, y):
        x.add_(1)
        return tl.linalg.cholesky(y) + x

    run = tl.compile(step)
    for bad in (False, False, True):
        x = tl.ones(2, 2)
        if bad:
            with pytest.raises(tl.linalg.LinAlgError):
                run(x, -tl.eye(2))
        else:
            run(x, tl.eye(2))
        assert x._version == 1


@pytest.mark.parametrize("name", ["SGD", "AdamW"])
def test_a_step_taken_past_its_hooks_is_taken_in_each_call(name):
    p = tl.ones(2, requires_grad=True)
    optimizer = getattr(tl.optim, name)([p], lr=0.5)
    taken = type(optimizer).step.__wrapped__

    def step():
        optimizer.zero_grad()
        (p * 2).sum().backward()
        taken(optimizer)

    run, seen = tl.compile(step), set()
    with pytest.warns(RuntimeWarning, match="step"):
        for _ in range(3):
            run()
            seen.add(p[0].item())
    assert len(seen) == 3
