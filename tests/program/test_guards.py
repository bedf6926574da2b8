"""Compiled functions see what is around them as eager ones do: modes, numbers in tensors."""

import operator
import warnings

import pytest
from cases import each

import tensorlib as tl
from tensorlib import nn
from test_compile_agrees import kept
from test_compile_agrees import same as same_elements


def same(x, y):
    """Whether two tensors are the same, to the bits."""
    return same_elements(kept(x), kept(y))


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


@each("name", BY_NUMBERS)
def test_numbers_of_tensors_are_those_of_each_call(name):
    f, x = BY_NUMBERS[name], tl.arange(4.0)
    around = tl.tensor(0)
    by_argument, by_name = compiled_quietly(f), compiled_quietly(lambda x: f(x, around))
    for n in (3, 1, 20):
        wanted = f(x, tl.tensor(n))
        around.fill_(n)
        assert same(by_argument(x, tl.tensor(n)), wanted) and same(by_name(x), wanted)


# ---- what is found by name -----------------------------------------------------------------------

class Trainer:
    """What a compiled method reads of itself, and what it does not."""

    def __init__(self):
        self.scale, self.offset, self.options = 2.0, tl.ones(2), {"power": 1}
        self.layer = nn.Linear(2, 2)
        self.step, self.loss = 0, None

    def powered(self, x):
        return x ** self.options["power"]

    def forward(self, x):
        return self.powered(self.layer(x)) * self.scale + self.offset

    def wanted(self, x):
        return self.layer(x) ** self.options["power"] * self.scale + self.offset


CHANGES = {
    "a number": lambda t: setattr(t, "scale", 3.0),
    "a tensor": lambda t: setattr(t, "offset", tl.zeros(2)),
    "an entry of a dict, in a method": lambda t: t.options.update(power=2),
    "a module": lambda t: setattr(t, "layer", nn.Linear(2, 2)),
    "a parameter": lambda t: setattr(t.layer, "bias", nn.Parameter(tl.zeros(2))),
    "no parameter": lambda t: setattr(t.layer, "bias", None),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_changes_under_a_name_is_captured_anew(name):
    trainer, x = Trainer(), tl.ones(3, 2)
    forward = tl.compile(trainer.forward)
    for _ in range(2):
        assert same(forward(x), trainer.wanted(x)) and len(forward._entries) == 1
    CHANGES[name](trainer)
    for _ in range(2):
        assert same(forward(x), trainer.wanted(x)) and len(forward._entries) == 2


def test_what_is_not_read_may_change_at_each_call():
    trainer, x = Trainer(), tl.ones(3, 2)
    forward = tl.compile(trainer.forward)
    for k in range(20):
        trainer.step, trainer.loss, trainer.scale = k, forward(x), 1.0 + 1
    assert len(forward._entries) == 1


def test_attributes_that_are_called_as_methods_of_others_may_change():
    class Loop:
        def __init__(self):
            self.w = tl.ones(2, requires_grad=True)
            self.optimizer, self.step = tl.optim.SGD([self.w], lr=0.5), 0

        @tl.compile
        def update(self, x):
            self.optimizer.zero_grad()
            (self.w * x).sum().backward()
            self.optimizer.step()

    loop = Loop()
    for k in range(20):
        loop.step = k
        loop.update(tl.ones(2))
    assert len(Loop.update._entries) == 1 and tl.equal(loop.w, tl.full((2,), -9.0))


def test_elements_of_lists_and_rates_of_optimisers_that_are_read():
    w = tl.zeros(2, requires_grad=True)
    optimizer, factors = tl.optim.SGD([w], lr=1.0), [1.0, tl.ones(2)]

    @tl.compile
    def step(x):
        (g,) = tl.autograd.grad((w * x).sum(), w)
        with tl.no_grad():
            for group in optimizer.param_groups:
                w.sub_(g * group["lr"] * factors[0] * factors[1])

    expected = tl.zeros(2)
    for k in range(6):
        optimizer.param_groups[0]["lr"] = 1.0 + k // 2
        factors[0] = 2.0 if k == 3 else 1.0
        if k == 4:
            factors[1] = tl.full((2,), 2.0)
        step(tl.ones(2))
        expected = expected - (1.0 + k // 2) * factors[0] * factors[1]
        assert same(w, expected)


def test_an_optimiser_whose_steps_get_gradients():
    w = nn.Parameter(tl.ones(2))
    optimizer = tl.optim.SGD([w], lr=0.5)

    @compiled_quietly
    def step(x):
        optimizer.zero_grad()
        (x * w).sum().backward()
        optimizer.step()

    step(tl.ones(2)), step(tl.ones(2))
    optimizer.param_groups[0]["differentiable"] = True
    with pytest.raises(RuntimeError, match="leaf"):
        step(tl.ones(2))


@each("f", [
    lambda x, w: x * len(w), lambda x, w: x * tl.numel(w), lambda x, w: x * tl.Tensor.dim(w),
    lambda x, w: tl.zeros_like(w), lambda x, w: tl.empty_like(w).shape,
    lambda x, w: x.expand_as(w), lambda x, w: x.type_as(w), lambda x, w: x.to(w),
    lambda x, w: x * sum(range(len(w))), lambda x, w: x * operator.length_hint(w),
    lambda x, w: x * tl.is_same_size(x, w), lambda x, w: x * isinstance(w, tl.FloatTensor),
    lambda x, w: tl.full_like(w.detach(), 2), lambda x, w: x * len(w.unbind(0))])
def test_a_tensor_from_outside_of_which_only_the_layout_is_read(f):
    w = tl.ones(4)
    compiled = tl.compile(lambda x: f(x, w), fullgraph=True)

    def grow():
        w.resize_(6)

    for change in (grow, lambda: w.set_(tl.ones(3, 2)), lambda: setattr(w, "data", w.double()),
                   lambda: setattr(w, "data", w[:, :1]), lambda: None):
        for _ in range(2):
            found, wanted = compiled(tl.ones(1)), f(tl.ones(1), w)
            assert type(found) is type(wanted)
            if isinstance(wanted, tl.Tensor):
                assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
                assert tl.equal(found, wanted)
            else:
                assert found == wanted
        change()
    assert len(compiled._entries) == 5


def test_a_tensor_on_meta_from_outside_may_be_looked_at():
    w = tl.ones(4, 2, device="meta")
    f = tl.compile(lambda x: x.expand(w.shape[0]) * len(w), fullgraph=True)
    for _ in range(3):
        assert f(tl.ones(1)).tolist() == [4.0] * 4
    assert len(f._entries) == 1


def test_a_parameter_without_a_gradient_at_a_step_has_one_later():
    """The step writes over what the sweep after it needs, once it has a gradient to go by."""
    def build():
        w = tl.tensor([1.0, 2.0], requires_grad=True)
        optimizer = tl.optim.SGD([w], lr=0.1)

        def step(x):
            loss = (w.exp() * w * x).sum()
            optimizer.step()
            optimizer.zero_grad()
            loss.backward()
            return loss.detach()

        return step, w

    seen = []
    for wrap in (lambda f: f, tl.compile):
        step, w = build()
        step, found = wrap(step), []
        for k in range(4):
            try:
                found.append(step(tl.ones(2)).tolist())
            except RuntimeError as error:
                found.append(str(error)[:60])
            found.append((w.tolist(), None if w.grad is None else w.grad.tolist()))
        seen.append(found)
    assert seen[0] == seen[1] and any("backward: " in str(x) for x in seen[0])


def test_what_a_function_counts_is_counted_in_each_call():
    counts, seen = [0], []

    class Counting(nn.Linear):
        calls = 0

        def forward(self, x):
            self.calls += 1
            return super().forward(x)

    layer = Counting(2, 2)

    @compiled_quietly
    def f(x):
        nonlocal total
        counts[0] += 1
        total += 1
        seen.append(x.shape)
        return layer(x)

    total = 0
    for n in (1, 2, 3) * 8:
        f(tl.ones(n, 2))
    assert counts == [24] and len(seen) == total == layer.calls == 24


def test_what_is_set_in_the_first_call_alone_is_captured_in_the_next():
    class Lazy:
        scale = None

        def __call__(self, x):
            if self.scale is None:
                self.scale = 2.0
            return x * self.scale

    lazy = Lazy()
    f = tl.compile(lazy, fullgraph=True)
    for k in range(4):
        assert same(f(tl.ones(2)), tl.full((2,), 2.0)) and len(f._entries) == (k > 0)
    lazy.scale = None
    for k in range(3):
        assert same(f(tl.ones(2)), tl.full((2,), 2.0)) and lazy.scale == 2.0


def test_objects_that_cannot_be_looked_into():
    class Unhashable(type):
        __hash__ = None

        def __eq__(cls, other):
            return cls is other

    class Odd(metaclass=Unhashable):
        scale = 2.0

    class Evasive:
        @property
        def __class__(self):
            raise ZeroDivisionError

    class Keyless(dict):
        def keys(self):
            raise ZeroDivisionError

    for odd in (Odd(), Evasive(), Keyless(a=1)):
        f = tl.compile(lambda x: x * 2 if odd is not None else x)
        assert same(f(tl.ones(2)), tl.full((2,), 2.0)) and same(f(tl.ones(2)), tl.full((2,), 2.0))


def test_a_mode_that_is_set_inside_and_set_back():
    m, x = model(), tl.arange(12.0).reshape(4, 3)

    def evaluated(x):
        m.eval()
        y = m(x)
        m.train()
        return y

    f = tl.compile(evaluated, fullgraph=True)
    for _ in range(4):
        assert same(f(x), evaluated(x)) and m.training
    assert len(f._entries) == 1
    m.eval()
    for _ in range(2):
        assert same(f(x), evaluated(x)) and m.training
        m.eval()


FACTOR, NOISE = 2.0, tl.ones(2)


def scaled(x):
    return x * FACTOR + NOISE


def test_globals_of_functions_that_are_called_and_variables_of_closures(monkeypatch):
    power, bias = 2, tl.ones(2)
    f = tl.compile(lambda x: (scaled(x) ** power) + bias)
    x = tl.arange(2.0)
    assert same(f(x), (x * 2 + 1) ** 2 + 1) and same(f(x), (x * 2 + 1) ** 2 + 1)
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    assert same(f(x), (x * 3 + 1) ** 2 + 1)
    monkeypatch.setitem(globals(), "NOISE", tl.zeros(2))
    assert same(f(x), (x * 3) ** 2 + 1)
    power, bias = 3, tl.zeros(2)
    assert same(f(x), (x * 3) ** 3)
    assert len(f._entries) == 4


def model():
    tl.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Dropout(0.5), nn.Tanh())


TO_MODULES = {
    "weight": lambda m: setattr(m[0], "weight", nn.Parameter(tl.ones(3, 3))),
    "buffer": lambda m: setattr(m[1], "running_mean", tl.ones(3)),
    "assigned": lambda m: m[0].load_state_dict(
        {"weight": tl.ones(3, 3), "bias": tl.ones(3)}, assign=True),
    "part": lambda m: m.__setitem__(3, nn.Sigmoid()),
    "more": lambda m: m.append(nn.Sigmoid()),
    "less": lambda m: m.__delitem__(3),
    "momentum": lambda m: setattr(m[1], "momentum", 0.5),
    "p": lambda m: setattr(m[2], "p", 0.0),
    "hook": lambda m: m[0].register_forward_hook(lambda module, args, out: out * 2),
    "hook of all": lambda m: nn.modules.module.register_module_forward_hook(
        lambda module, args, out: out * 2),
}


@each("name", TO_MODULES)
@each("training", [True, False])
def test_modules_that_change(name, training):
    x, logs = tl.arange(12.0).reshape(4, 3), []
    for wrap in (lambda f: f, compiled_quietly):
        m = model().train(training)
        f, log = wrap(m), []
        for i in range(6):
            handle = TO_MODULES[name](m) if i == 3 else None
            log.append(f(x + i))
            if "all" in name and handle is not None:
                log += [f(x), f(x)]
                handle.remove()
        logs.append([*log, *m.state_dict().values()])
    assert all(map(same, *logs))


def test_a_method_of_a_module_reads_its_mode():
    class Noisy(nn.Module):
        def forward(self, x):
            return nn.functional.dropout(x, 0.5, self.training)

    m = Noisy()
    f, x = tl.compile(m.forward), tl.ones(100)
    assert not tl.equal(f(x), x) and not tl.equal(f(x), x)
    m.eval()
    assert tl.equal(f(x), x) and tl.equal(f(x), x)


def test_another_hook_in_the_place_of_one_on_gradients():
    m, x = nn.Linear(2, 2), tl.ones(1, 2, requires_grad=True)
    f = tl.compile(m)
    for factor in (2, 5):
        hook = m.register_full_backward_hook(lambda module, gi, go, k=factor: (gi[0] * k,))
        for _ in range(2):
            (g,) = tl.autograd.grad(f(x).sum(), x)
            assert same(g, m.weight.detach().sum(0)[None] * factor)
        hook.remove()


# ---- where tensors lie, and inference ------------------------------------------------------------

@pytest.mark.parametrize("f", [
    lambda x: x.as_strided((2,), (1,), 0) + x[0], lambda x: x * x.storage_offset(),
    lambda x: x[1:].as_strided((2,), (1,), 1) * 2])
def test_places_in_memory_are_those_of_each_call(f):
    rows, compiled = tl.arange(12.0).reshape(3, 4), compiled_quietly(f)
    for row in rows:
        assert same(compiled(row), f(row))


def test_memory_of_its_own_has_the_same_places_in_each_call():
    f = tl.compile(lambda x: (x * 2).as_strided((2,), (1,), 1), fullgraph=True)
    for row in tl.arange(12.0).reshape(3, 4):
        assert same(f(row), row[1:3] * 2)


def test_inference_is_captured_apart_from_no_grad():
    w = tl.ones(2, requires_grad=True)

    @tl.compile
    def f(x):
        with tl.enable_grad():
            return x * w

    x = tl.ones(2)
    for mode in (tl.no_grad, tl.inference_mode, tl.enable_grad) * 2:
        with mode():
            out = f(x)
            assert out.requires_grad == (mode is not tl.inference_mode)
            assert out.is_inference() == (mode is tl.inference_mode)


def test_all_modules_of_a_large_model_are_watched():
    parts = [nn.Sequential(nn.Identity(), nn.Hardtanh()) for _ in range(1000)]
    model = nn.Sequential(*parts, nn.Dropout(0.5))
    f = tl.compile(model, fullgraph=True)
    x = tl.ones(50)
    for _ in range(2):
        assert (f(x) == 0).any()
    model[-1].eval()
    assert f(x).tolist() == [1.0] * 50
    parts[-1][1].max_val = 0.25
    assert f(x).tolist() == [0.25] * 50


def test_a_function_reads_as_much_as_it_likes():
    class Point:
        def __init__(self, at):
            self.at = at

    rows = [[Point(1.0) for _ in range(200)] for _ in range(60)]
    f = tl.compile(lambda x: x * sum(p.at for row in rows for p in row), fullgraph=True)
    for _ in range(2):
        assert f(tl.ones(1)).item() == 12000.0
    rows[-1][-1].at = 2.0
    assert f(tl.ones(1)).item() == 12001.0
