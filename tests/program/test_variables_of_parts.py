"""Functions in parts whose inner functions read variables that are bound again later."""

import warnings

import tensorlib as tl
from cases import each


def bound_after_the_function(x):
    def inner(y):
        return y * v

    float(x[0])
    v = x * 2
    return inner(x), v


def bound_again(x):
    def inner(y):
        return y * v

    v = x.sum().item()
    first = inner(x)
    v = v + 1
    return first, inner(x)


def bound_in_a_loop(x):
    kept = []
    for k in range(3):
        v = x * k
        float(v[0])
        kept.append(lambda: v * k)
    return [f() for f in kept]


def carried_by_a_loop(x):
    def inner():
        return v

    v, found = x, []
    for k in range(3):
        float(x[0])
        v = v * 2 + k
        found.append(inner() + 1)
    return found


def read_by_a_generator(x):
    found = []
    for k in range(3):
        float(x[0])
        y = x * k
        found.append(y * j for j in range(2))
    return [[*g] for g in found]


def read_by_a_method(x):
    class Inner:
        def get(self):
            return v

    float(x[0])
    v = x * 3
    first = Inner().get() * 2
    v = x * 4
    return first, Inner().get() * 2


def summed_at_once(x):
    total = 0.0
    for k in range(3):
        y = x * k
        loss = sum((y * j).sum() for j in range(3))
        total += loss.item()
    return total, loss


def with_a_function_as_a_default(x, twice=lambda z: z * 2):
    y = x * 3
    total = y.sum().item()
    return twice(y) + total


def listed(x):
    y = x * 2
    float(x[0])
    z = y + 1
    return z, sorted(locals())


def evaluated(x):
    y = x * 3
    x = x + len(y)
    float(x[0])
    return eval("y + 1"), x


def asked_of_another(x):
    y = x * 2
    float(x[0])
    return y, len(vars(tl.nn.Identity())) > 0


def stacked(x):
    y = tl.stack([x, x * 2]).exp()
    float(x[0])
    return tl.stack([y, y])


KINDS = {f.__name__: f for f in (
    bound_after_the_function, bound_again, bound_in_a_loop, carried_by_a_loop, read_by_a_generator,
    read_by_a_method, summed_at_once, with_a_function_as_a_default,
    listed, evaluated, asked_of_another, stacked)}


@each("name", KINDS)
def test_inner_functions_read_the_variables_as_they_are_then(name):
    f = KINDS[name]
    compiled = tl.compile(f)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for k in range(4):
            x = tl.arange(3.0) + k
            assert repr(compiled(x)) == repr(f(x))


@each("f", [summed_at_once, asked_of_another, stacked])
def test_parts_are_replayed_around_what_is_at_once_or_of_no_frame(f):
    compiled = tl.compile(f)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(3):
            compiled(tl.ones(3))
    (parts,) = [way.parts for way in compiled._entries]
    assert any(way.replay for part in parts.parts for way in part._entries)


# ---- which parts there are -----------------------------------------------------------------------

W, TARGET = tl.ones(3, requires_grad=True), tl.zeros(3)
OPTIMIZER = tl.optim.SGD([W], lr=0.1)


def bound_in_a_mode(x):
    with tl.no_grad():
        aim = x * 2
    loss = ((x * W - aim) ** 2).sum()
    OPTIMIZER.zero_grad()
    loss.backward()
    OPTIMIZER.step()
    return loss.item()


def written_by_way_of_data(x):
    loss = ((x * W) ** 2).sum()
    OPTIMIZER.zero_grad()
    loss.backward()
    OPTIMIZER.step()
    TARGET.data.mul_(0.5).add_(W.data)
    return loss.item() + float(TARGET.sum())


@each("f", [bound_in_a_mode, written_by_way_of_data])
def test_training_steps_are_replayed_up_to_what_runs_in_python(f):
    logs = []
    for g in (f, tl.compile(f)):
        with tl.no_grad():
            W.fill_(1)
            TARGET.zero_()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            logs.append([(g(tl.ones(3) * k), W.tolist(), TARGET.tolist()) for k in range(1, 6)])
    assert logs[0] == logs[1]
    assert any(captured_training(g))


def captured_training(compiled):
    """For each replay of a compiled function and its parts, whether it has an optimiser's step."""
    for way in compiled._entries:
        if way.replay is not None:
            yield any(call.type == "optimizer_step" for call in way.replay.calls)
        for part in way.parts.parts if way.parts is not None else ():
            yield from captured_training(part)


class Swallowing:
    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        return kind is ZeroDivisionError


def test_what_a_with_may_leave_unbound_is_bound_as_it_was():
    def f(x, k):
        y = x * 3
        with Swallowing():
            y = x / x.sum() * (1 / k)
            z = y + 1
        return y.sum().item(), z.sum().item() if k else 0

    compiled = tl.compile(f)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for k in (1, 2, 0, 1, 0, 0):
            assert compiled(tl.ones(3), k) == f(tl.ones(3), k)


def test_a_part_of_few_operations_runs_eagerly():
    def f(x):
        y = x * 2
        n = float(y.sum())
        z = y.sin() + y.cos() * y.exp() - n
        return z * y

    compiled = tl.compile(f)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(3):
            assert compiled(tl.ones(3)).tolist() == f(tl.ones(3)).tolist()
    assert [part._may_replay() for part in compiled._entries[0].parts.parts] == [False, True]


def sampled(x):
    y = (x * 2).sin().exp() + x
    n = float(y.sum())
    return y * n + W


class Sampler(tl.nn.Module):
    @tl.no_grad()
    def forward(self, x):
        y = (x * W).cos().exp() + x
        return y * float(y.sum())

    @tl.inference_mode()
    @tl.enable_grad()
    def sample(self, x):
        y = (x * W).sin().exp() + x
        return y * float(y.sum())


@each("f, inference", [
    (tl.no_grad()(sampled), False), (tl.inference_mode()(sampled), True), (Sampler(), False),
    (Sampler().sample, True), (tl.no_grad()(tl.enable_grad()(sampled)), False)])
def test_functions_under_a_decorated_mode_are_replayed_in_parts(f, inference):
    compiled = tl.compile(f)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for k in range(4):
            x = (tl.arange(3.0) + k).requires_grad_()
            found, wanted = compiled(x), f(x)
            assert found.tolist() == wanted.tolist()
            assert found.requires_grad == wanted.requires_grad
            assert found.is_inference() == wanted.is_inference() == inference
    assert any(part._may_replay() for parted in compiled._parts.values() for part in parted.parts)
