"""`tensorlib.compile`: what is captured, when it is captured anew, and what runs eagerly."""

import copy
import gc
import pickle
import threading
import warnings
from functools import partial

import pytest

import tensorlib as tl
from cases import each
from process import run_python
from tensorlib import nn, optim
from tensorlib.program import CaptureError
from tensorlib.program.compiled import compiling


def entries(compiled):
    return compiled._entries


def is_replayed(compiled):
    return all(entry.replay is not None for entry in entries(compiled))


@pytest.fixture(autouse=True)
def errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


# ---- functions -----------------------------------------------------------------------------------

def test_a_function_is_captured_once_for_each_kind_of_arguments():
    @tl.compile
    def f(x, scale, flag=False):
        return x * scale if flag else {"a": [x + scale, (x,)]}

    x = tl.arange(3.0)
    for _ in range(3):
        assert tl.equal(f(x, 2, flag=True), x * 2)
    assert len(entries(f)) == 1
    for _ in range(2):
        out = f(x, 3)
        assert tl.equal(out["a"][0], x + 3) and out["a"][1][0] is x
    assert len(entries(f)) == 2
    f(tl.arange(4.0), 3)
    f(tl.arange(3), 3)
    f(tl.ones(3, 2).t()[0], 3)
    assert len(entries(f)) == 5
    with tl.no_grad():
        f(x, 3)
    assert len(entries(f)) == 6 and is_replayed(f)


def test_results_are_tensors_of_their_own():
    f = tl.compile(lambda x: (x + 1, (x + 1) * 2))
    first = f(tl.zeros(3))
    second, third = f(tl.ones(3)), f(tl.full((3,), 2.0))
    assert tl.equal(first[0], tl.ones(3)) and tl.equal(second[1], tl.full((3,), 4.0))
    assert tl.equal(third[0], tl.full((3,), 3.0))


def test_the_same_tensor_twice_is_another_kind():
    f = tl.compile(lambda a, b: a.clone().add_(b))
    x, y = tl.ones(2), tl.full((2,), 5.0)
    for _ in range(2):
        assert tl.equal(f(x, x), x * 2) and tl.equal(f(x, y), x + y)
    assert len(entries(f)) == 2


def test_captured_tensors_are_read_at_each_call():
    w = tl.ones(3)
    f = tl.compile(lambda x: x * w + w[1:].sum())
    f(tl.ones(3))
    w[1] = 5
    assert tl.equal(f(tl.ones(3)), w + 6)
    w.data = tl.full((3,), 2.0)
    assert tl.equal(f(tl.ones(3)), tl.full((3,), 6.0))
    w.data = tl.full((1,), 2.0)                       # of another shape: captured anew
    assert tl.equal(f(tl.ones(3)), tl.full((3,), 2.0))
    assert len(entries(f)) == 2


def test_writes_into_arguments_and_captured_tensors_happen_at_each_call():
    total = tl.zeros(2)

    @tl.compile
    def f(x):
        total.add_(x)
        x.mul_(2)
        return x + 0

    for i in range(4):
        x = tl.ones(2)
        assert tl.equal(f(x), tl.full((2,), 2.0)) and tl.equal(x, tl.full((2,), 2.0))
        assert tl.equal(total, tl.full((2,), i + 1.0))


def test_random_numbers_are_those_of_the_eager_call():
    def f(x):
        return nn.functional.dropout(x, 0.5) + tl.rand(3) + tl.rand_like(x)

    compiled = tl.compile(f)
    tl.manual_seed(3)
    wanted = [f(tl.ones(3)) for _ in range(4)]
    tl.manual_seed(3)
    assert all(tl.equal(compiled(tl.ones(3)), x) for x in wanted)


# ---- gradients -----------------------------------------------------------------------------------

def test_a_replay_is_one_node_of_the_graph():
    w = tl.tensor([1.0, 2.0], requires_grad=True)

    def f(x, y):
        return (x * w).tanh().sum() * y, x.detach() * 2

    compiled = tl.compile(f)
    for _ in range(3):
        grads = []
        for function in (f, compiled):
            x = tl.tensor([3.0, 4.0], requires_grad=True)
            y = tl.tensor(2.0)
            inner = (x * 1.5).exp() * 0.01
            out, other = function(inner, y)
            assert not other.requires_grad
            grads.append(tl.autograd.grad((out * 3).sum(), (x, w)))
        assert all(map(tl.equal, *grads))
    assert out.grad_fn.next_functions[0][0] is not None


def test_two_calls_before_the_sweep_keep_their_own_values():
    f = tl.compile(lambda x: x.sin().exp())
    f(tl.ones(2, requires_grad=True))
    x, y = (tl.tensor([v], requires_grad=True) for v in (0.5, 0.7))
    first, second = f(x), f(y)
    (second + first).sum().backward()
    for v in (x, y):
        u = v.detach().requires_grad_()
        u.sin().exp().sum().backward()
        assert tl.equal(u.grad, v.grad)


W = tl.tensor([0.3, -0.7, 1.1], dtype=tl.float64, requires_grad=True)
TWICE = {
    "cubes": lambda x: (x ** 3 * W).sum(),
    "product": lambda x: ((x * W).tanh() @ W).sin(),
    "dropout": lambda x: nn.functional.dropout(x * W, 0.5).sin().sum(),
    "noise": lambda x: ((x + tl.rand(3)).sin() * W).sum(),
    "branch": lambda x: tl.cond(x.sum() > 0, lambda: (x ** 3 * W).sum(),
                                lambda: (x * W).sin().sum()),
    "loop": lambda x: tl.scan(lambda c, r: ((c * r + W[0]).tanh(), c),
                              tl.tensor(0.5, dtype=tl.float64), x)[0],
}


@pytest.mark.parametrize("name", TWICE)
def test_gradients_of_gradients_to_third_order(name):
    def derivatives(f, k):
        tl.manual_seed(k)
        x = tl.tensor([0.5 + k, -1.5, 0.7], dtype=tl.float64, requires_grad=True)
        a, b = tl.autograd.grad(f(x), [x, W], create_graph=True)
        c, d = tl.autograd.grad((a * a).sum() + (b ** 3).sum(), [x, W], create_graph=True)
        return [a, b, c, d, *tl.autograd.grad(c.sum() + (d * d).sum(), [x, W])]

    compiled = tl.compile(TWICE[name])
    for k in range(3):
        wanted, found = derivatives(TWICE[name], k), derivatives(compiled, k)
        assert all(tl.allclose(x, y, rtol=1e-12, atol=1e-12) for x, y in zip(wanted, found))
    assert is_replayed(compiled) and len(entries(compiled)) == 1


def test_hessians_and_gradients_of_transforms():
    f = tl.compile(lambda x: (x ** 3).sum())
    x = tl.tensor([1.0, 2.0], dtype=tl.float64)
    f(x)
    assert tl.equal(tl.autograd.functional.hessian(f, x), tl.diag(6 * x))
    assert tl.equal(tl.func.jacrev(tl.func.grad(f))(x), tl.diag(6 * x))
    assert tl.autograd.gradgradcheck(f, (x.clone().requires_grad_(),))


def test_what_the_function_writes_over_and_no_gradient_needs_may_be_differentiated():
    def f(x):
        y = x * 2
        x.data.mul_(2)
        return y.sum()

    compiled = tl.compile(f)
    for _ in range(2):
        x = tl.ones(2, requires_grad=True)
        out = compiled(x)
    g, = tl.autograd.grad(out, x, create_graph=True)
    assert g.tolist() == [2, 2]


def test_transforms_see_the_function_itself():
    f = tl.compile(lambda x: (x * x).sum())
    x = tl.tensor([1.0, 2.0])
    f(x)
    assert tl.equal(tl.func.vmap(f)(tl.eye(2)), tl.ones(2))


# ---- training steps ------------------------------------------------------------------------------

def trained(kind, wrap, steps=6):
    tl.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 7), nn.BatchNorm1d(7), nn.ReLU(), nn.Dropout(0.3),
                          nn.Linear(7, 3))
    optimizer = {"sgd": lambda p: optim.SGD(p, lr=0.1, momentum=0.9), "adam": optim.Adam,
                 "adamw": optim.AdamW}[kind](model.parameters())

    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    run = wrap(step)
    tl.manual_seed(1)
    losses = []
    for i in range(steps):
        if i == 3:
            optimizer.param_groups[0]["lr"] *= 0.5
        losses.append(run(tl.randn(8, 5), tl.randint(0, 3, (8,))))
    return run, [*losses, *model.state_dict().values(), *[p.grad for p in model.parameters()]]


@pytest.mark.parametrize("kind", ["sgd", "adam", "adamw"])
def test_a_training_step_is_captured_whole(kind):
    _, wanted = trained(kind, lambda step: step)
    compiled, found = trained(kind, tl.compile)
    assert all(map(tl.equal, wanted, found))
    assert len(entries(compiled)) == 1 and is_replayed(compiled)


def test_gradients_that_are_let_go_of_are_not_there():
    w = tl.ones(3, requires_grad=True)
    optimizer = optim.SGD([w], lr=0.1)

    @tl.compile
    def step(x):
        (w * x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    for i in range(4):
        step(tl.ones(3))
        assert w.grad is None
        assert tl.allclose(w, tl.full((3,), 0.9 - 0.1 * i))


def test_training_and_evaluation_are_captured_apart():
    model = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))
    f = tl.compile(model)
    x = tl.ones(4, 2)
    with tl.no_grad():
        model.eval()
        assert tl.equal(f(x), f(x)) and tl.equal(f(x), model(x))
        model.train()
        f(x)
        model.eval()
        assert tl.equal(f(x), model(x))
    assert f[0] is model[0] if hasattr(type(f), "__getitem__") else f.training is False


# ---- what can't be captured ----------------------------------------------------------------------

def test_what_asks_for_elements_runs_eagerly_with_one_warning():
    runs = []

    @tl.compile
    def f(x):
        runs.append(1)
        return x * 2 if x.sum() > 0 else x

    with pytest.warns(RuntimeWarning, match=r"item.*test_compile.py:\d+") as caught:
        assert tl.equal(f(tl.ones(2)), tl.full((2,), 2.0))
    assert len(caught) == 1
    assert tl.equal(f(-tl.ones(2)), -tl.ones(2)) and len(runs) == 2


def test_fullgraph_makes_it_an_error():
    f = tl.compile(lambda x: x * x.sum().item(), fullgraph=True)
    with pytest.raises(CaptureError, match="item"):
        f(tl.ones(2))
    decorated = tl.compile(fullgraph=True)(lambda x: x + 1)
    assert tl.equal(decorated(tl.ones(1)), tl.full((1,), 2.0))


def test_a_function_with_a_backward_of_its_own_runs_eagerly():
    class Five(tl.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 5

    f = tl.compile(lambda x: Five.apply(x * 1).sum())
    for i in range(3):
        x = tl.ones(2, requires_grad=True)
        with warnings.catch_warnings(record=True):
            warnings.simplefilter("always")
            f(x).backward()
        assert tl.equal(x.grad, tl.full((2,), 5.0))


def test_the_number_of_captures_is_bounded():
    f = tl.compile(lambda x: x + 1)
    with pytest.warns(RuntimeWarning, match="kinds of arguments"):
        for n in range(compiling.MOST_TRACES + 3):
            assert f(tl.zeros(n)).shape == (n,)
    assert len(entries(f)) == compiling.MOST_TRACES


def test_what_the_function_raises_is_raised_and_the_next_call_works():
    f = tl.compile(lambda x, y: x @ y)
    with pytest.raises(RuntimeError, match="matmul"):
        f(tl.ones(2, 3), tl.ones(2, 3))
    assert f(tl.ones(2, 3), tl.ones(3, 2)).shape == (2, 2)
    assert tl.equal(tl.ones(2) + 1, tl.full((2,), 2.0))


def test_bad_input():
    with pytest.raises(TypeError, match="compile"):
        tl.compile(3)
    assert tl.compile(max, disable=True) is max


# ---- memory and threads --------------------------------------------------------------------------

def test_memory_is_planned_once_and_what_went_in_is_let_go_of():
    def f(x):
        for _ in range(12):
            x = (x @ x).tanh()
        return x.sum()

    compiled = tl.compile(f)
    x = tl.full((40, 40), 0.01)
    compiled(x)
    compiled(x)
    machine = entries(compiled)[0].replay.machine
    assert machine.arena_bytes <= 3 * 40 * 40 * 4 < machine.unshared_bytes
    gc.collect()
    before = tl.memory.stats()["in_use"]
    for _ in range(5):
        compiled(tl.full((40, 40), 0.01))
    assert tl.memory.stats()["in_use"] == before


def test_threads_share_a_compiled_function():
    f = tl.compile(lambda x: ((x @ x).tanh() @ x).sum(0))
    inputs = [tl.full((60, 60), 0.001 * i) for i in range(1, 5)]
    wanted = [f(x) for x in inputs]
    wrong = []

    def work(x, result):
        for _ in range(30):
            if not tl.equal(f(x), result):
                wrong.append(1)

    threads = [threading.Thread(target=work, args=pair) for pair in zip(inputs, wanted)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_methods_can_be_compiled():
    class Scaled:
        def __init__(self, by):
            self.by = by

        @tl.compile
        def __call__(self, x):
            return x * self.by

    two, three = Scaled(2.0), Scaled(3.0)
    for _ in range(2):
        assert two(tl.ones(1)).item() == 2 and three(tl.ones(1)).item() == 3


class Scaling:
    by = 2.0

    def times(self, x):
        return x * self.by

    @classmethod
    def shared(cls, x):
        return x * cls.by


@each("give", [
    lambda f: Scaling.times, lambda f: f(Scaling.times), lambda f: Scaling().times,
    lambda f: Scaling.shared, lambda f: partial(Scaling.times, Scaling()),
    lambda f: staticmethod(abs), lambda f: staticmethod(lambda x: x * 3), lambda f: abs])
def test_what_was_compiled_binds_itself_as_it_did(give):
    found = []
    for wrap in (lambda f: f, tl.compile):
        class Holder(Scaling):
            by = 5.0
            run = wrap(give(wrap))

        holder = Holder()
        for get in (lambda: holder.run, lambda: Holder.run):
            for args in ((), (tl.ones(2),), (holder, tl.ones(2))):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    try:
                        found.append(str(get()(*args)))
                    except Exception as error:
                        found.append(type(error).__name__)
        found.append([holder.run == holder.run, getattr(holder.run, "__self__", None) is holder])
    assert found[:len(found) // 2] == found[len(found) // 2:]


IN_A_FRESH_PROCESS = """
import tensorlib as tl
model = tl.nn.Sequential(tl.nn.Linear(4, 8), tl.nn.LayerNorm(8), tl.nn.GELU(), tl.nn.Linear(8, 2))
updates = tl.optim.Adam(model.parameters())
def step(x):
    updates.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    updates.step()
    running.mul_(0.9).add_(loss.detach())
    return loss.detach()
running = tl.zeros(())
x = tl.ones(3, 4)
step(x)
from tensorlib.ops import lazy
before = set(lazy.waiting)
compiled = tl.compile(step, fullgraph=True)
compiled(x), compiled(x)
print(len(before) > 0, lazy.waiting == before)
"""


def test_a_capture_does_not_load_what_it_does_not_use():
    assert run_python(IN_A_FRESH_PROCESS).split() == ["True", "True"]


def test_a_compiled_module_is_copied_and_pickled_with_its_module():
    model = tl.compile(nn.Linear(3, 2))
    x = tl.ones(1, 3)
    model(x)
    expected = model(x)
    twin, pickled = copy.deepcopy(model), pickle.loads(pickle.dumps(model))
    with tl.no_grad():
        model.weight.zero_()
    for other in (twin, pickled):
        assert tl.equal(other(x), expected) and tl.equal(other(x), expected)
        assert is_replayed(other) and other.weight is not model.weight
