"""Where the values of a machine lie: over each other, in what is given out, or in the arena."""

import gc

import pytest
from cases import each

import tensorlib as tl
from tensorlib import program
from tensorlib.program.passes import enabled
from tensorlib.program.run.plan import plan

F = tl.nn.functional


@pytest.fixture
def no_reuse():
    enabled["reuse"] = False
    yield
    enabled["reuse"] = True


def machine_of(f, *inputs):
    p = program.trace(f, *inputs)
    wanted = p.outputs if type(p.outputs) is tuple else (p.outputs,)
    lasting = p.persistables()
    fed = [*p.inputs, *lasting]
    given = (*inputs, *(x.value for x in lasting))
    return plan(p.block.ops, dict(zip(fed, given)), wanted), given


def peak(f):
    """The most bytes in use while `f` runs."""
    gc.collect()
    tl.memory.reset_peak()
    f()
    return tl.memory.stats()["peak"]


def perceptron(activation, width=128, batch=128, layers=5):
    tl.manual_seed(0)
    parts = [part for _ in range(layers) for part in (tl.nn.Linear(width, width), activation())]
    model = tl.nn.Sequential(*parts, tl.nn.Linear(width, 10))
    return model, tl.randn(batch, width), tl.randint(0, 10, (batch,))


def images():
    tl.manual_seed(0)
    model = tl.nn.Sequential(
        tl.nn.Conv2d(3, 8, 3, padding=1), tl.nn.BatchNorm2d(8), tl.nn.ReLU(), tl.nn.MaxPool2d(2),
        tl.nn.Conv2d(8, 16, 3, padding=1), tl.nn.ReLU(), tl.nn.Flatten(), tl.nn.Linear(1024, 10))
    return model, tl.randn(16, 3, 16, 16), tl.randint(0, 10, (16,))


def training(made):
    model, x, y = made
    optimizer = tl.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return model, step, (x, y)


MODELS = {"relu": lambda: perceptron(tl.nn.ReLU), "gelu": lambda: perceptron(tl.nn.GELU),
          "wide batch": lambda: perceptron(tl.nn.Sigmoid, 64, 512), "images": images}


@pytest.mark.parametrize("name", MODELS)
def test_a_replayed_step_takes_no_more_memory_than_an_eager_one_and_has_its_bits(name):
    def measured(change):
        """The peak of a step, and the bits of what is there after one more."""
        model, step, args = training(MODELS[name]())
        step = change(step)
        for _ in range(2):
            step(*args)
        most = peak(lambda: step(*args))
        return most, [x.numpy().tobytes() for x in (*model.state_dict().values(), step(*args))]

    eager, wanted = measured(lambda step: step)
    replay, found = measured(tl.compile)
    assert wanted == found
    assert replay <= eager * 1.02


def test_an_operand_that_nobody_reads_any_more_is_written_over():
    def f(x):
        return ((x @ x).tanh() @ x).sin() @ x

    x = tl.randn(64, 64) * 0.1
    machine, given = machine_of(f, x)
    assert machine.unshared_bytes == 2 * x.nbytes      # the products; tanh and sin lie over them
    assert tl.equal(machine(given)[0], f(x)) and tl.equal(machine(given)[0], f(x))


def test_each_value_has_its_own_memory_where_the_pass_is_off(no_reuse):
    def f(x):
        return ((x @ x).tanh() @ x).sin() @ x

    x = tl.randn(64, 64) * 0.1
    machine, given = machine_of(f, x)
    assert machine.unshared_bytes == 4 * x.nbytes
    assert tl.equal(machine(given)[0], f(x))


@each("f", [
    lambda a: (a.sin() + a.sin().t()).exp(),              # read in two layouts
    lambda a: (a.sin()[:, :32] * a.cos()[:, 32:]).exp(),       # parts of a value
    lambda a: (a.sin(), a.sin().tanh(), (a @ a).relu()),
    lambda a: tl.where((a @ a) > 0, a @ a, (a @ a).neg()),
    lambda a: (lambda b: (b.tanh(), b))(a @ a),           # the operand is given out as well
    lambda a: (lambda b: b.t().exp() + b)(a @ a),
    lambda a: ((a @ a).double() * 2).float() + a,
    lambda a: ((a @ a) + (a @ a)[0]).tanh(),              # broadcast from itself
    lambda a: F.conv2d(a[None, None], tl.ones(1, 1, 3, 3), padding=1).tanh().exp(),
    lambda a: a.reshape(64, 64).exp().cumsum(0).sqrt().log(),
])
def test_bits_stay_whatever_is_written_over(f):
    a = tl.randn(64, 64)
    machine, given = machine_of(f, a)
    wanted = f(a)
    wanted = wanted if type(wanted) is tuple else (wanted,)
    kept = a.clone()
    for _ in range(2):
        found = machine(given)
        assert all(map(tl.equal, wanted, found)) and tl.equal(a, kept)


def test_what_a_run_gave_is_not_written_by_the_next():
    def f(x):
        y = (x @ x).tanh()
        return (y @ x).relu(), (y @ y).sin()

    x = tl.randn(64, 64)
    machine, given = machine_of(f, x)
    first = machine(given)
    kept = [y.clone() for y in first]
    machine((x * 2,))
    assert all(map(tl.equal, first, kept))


def test_gradients_lie_apart_and_row_by_row_as_in_an_eager_step():
    a, b = tl.ones(30, 40, requires_grad=True), tl.ones(30, 40, requires_grad=True)
    turned = tl.ones(40, 30, requires_grad=True)

    @tl.compile
    def step(x):
        a.grad = b.grad = turned.grad = None
        loss = ((a + b) * x).sum() + (turned.t() * x).sum()
        loss.backward()
        return loss.detach()

    x = tl.randn(30, 40)
    for _ in range(3):
        step(x)
    assert len({p.grad.data_ptr() for p in (a, b, turned)}) == 3
    assert all(p.grad.is_contiguous() for p in (a, b, turned))
    a.grad.zero_()
    assert tl.equal(b.grad, x) and tl.equal(turned.grad, x.t())


def test_gradients_that_the_caller_kept_stay():
    model, step, args = training(perceptron(tl.nn.ReLU))
    step = tl.compile(step)
    for _ in range(2):
        step(*args)
    grads = [p.grad for p in model.parameters()]
    kept = [g.clone() for g in grads]
    step(*args)
    assert all(map(tl.equal, grads, kept))
    assert not any(p.grad is g for p, g in zip(model.parameters(), grads))


def test_a_step_before_the_sweep_reads_the_gradients_that_were_there():
    w = tl.ones(3, requires_grad=True)
    optimizer = tl.optim.SGD([w], lr=0.5)

    def step(x):
        optimizer.step()
        optimizer.zero_grad()
        loss = (w * x).sum()
        loss.backward()
        return loss.detach()

    compiled = tl.compile(step)
    found = [compiled(tl.ones(3)).item() for _ in range(5)]
    with tl.no_grad():
        w.fill_(1.0)
    w.grad = None
    assert found == [step(tl.ones(3)).item() for _ in range(5)]


def test_small_values_share_the_places_of_those_that_are_over():
    """A value takes a place of its size that is free by then, whatever else is kept."""
    def f(x):
        kept = []
        for i in range(60):
            x = x @ q if i % 2 else (x @ q[:, :8]) @ q[:8]
            kept += [x] if i % 10 == 0 else []
        return sum(y.sum() for y in kept) + x

    tl.manual_seed(0)
    x, q = tl.randn(10, 10, dtype=tl.float64), tl.linalg.qr(tl.randn(10, 10, dtype=tl.float64))[0]
    machine, given = machine_of(f, x)
    assert machine.arena_bytes <= 12 * 832 < machine.unshared_bytes / 4      # in lines of 64 bytes
    assert tl.equal(machine(given)[0], f(x)) and tl.equal(machine(given)[0], f(x))
