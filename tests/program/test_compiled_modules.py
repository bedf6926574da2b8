"""A compiled module is a module: it can be a part of others, and is changed as the module it is."""

import copy
import pickle
from collections import OrderedDict

import pytest

import tensorlib as tl
from tensorlib import nn, optim


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale, self.inner = 2.0, nn.Linear(3, 3)

    def forward(self, x):
        return self.inner(x) * self.scale


def made(wrap):
    tl.manual_seed(0)
    return wrap(Scaled())


def holders(part):
    """Modules that a part is put into, each in another way."""
    class Holder(nn.Module):
        def __init__(self):
            super().__init__()
            self.part = part

        def forward(self, x):
            return self.part(x)

    replaced = nn.Sequential(nn.Linear(3, 3))
    replaced[0] = part
    named = nn.Module()
    named.add_module("part", part)
    named.forward = lambda x: named.part(x)
    return [Holder(), nn.Sequential(part), replaced, named, nn.ModuleDict({"part": part})]


def test_it_is_registered_where_it_is_assigned_and_trained():
    for plain, compiled in zip(holders(made(lambda m: m)), holders(made(tl.compile))):
        assert list(plain.state_dict()) == list(compiled.state_dict())
        assert len(list(compiled.parameters())) == 2
        compiled.load_state_dict(plain.state_dict())
        weights = []
        for model in (plain, compiled):
            f = model["part"] if isinstance(model, nn.ModuleDict) else model
            steps = optim.Adam(model.parameters())
            for k in range(3):
                steps.zero_grad()
                f(tl.ones(2, 3) * k).square().sum().backward()
                steps.step()
            weights.append(next(model.parameters()))
        assert tl.equal(*weights)
        compiled.eval()
        assert not next(compiled.children()).training


def test_states_with_pytorchs_mark_of_a_compiled_module():
    def marked(state, prefix):
        found = {key.replace(prefix, f"{prefix}_orig_mod.", 1) if key.startswith(prefix) else key: x
                 for key, x in state.items()}
        found = OrderedDict(found)
        found._metadata = {"": {}, f"{prefix}_orig_mod": {"version": 1}}
        return found

    plain, module = made(lambda m: m), Scaled()
    compiled = tl.compile(module)
    assert compiled._orig_mod is module and not hasattr(module, "_orig_mod")
    for state in marked(plain.state_dict(), ""), plain.state_dict():
        assert not any(compiled.load_state_dict(state))
        assert tl.equal(module.inner.weight, plain.inner.weight)
    holder = nn.Sequential(nn.Linear(3, 3), compiled)
    assert not any(holder.load_state_dict(marked(
        nn.Sequential(nn.Linear(3, 3), plain).state_dict(), "1.")))
    with pytest.raises(RuntimeError, match='(?s)for Scaled.*Unexpected.*"_orig_mod.inner'):
        module.load_state_dict(marked(plain.state_dict(), ""))
    with pytest.raises(RuntimeError, match='(?s)for Scaled.*Missing.*"inner.weight'):
        compiled.load_state_dict({})


def test_a_compiled_module_that_is_compiled_again_is_a_module():
    model = tl.nn.Linear(2, 1)
    twice = tl.compile(tl.compile(model))
    assert isinstance(twice, tl.nn.Linear) and twice.__class__ is tl.nn.Linear
    whole = tl.nn.Sequential(twice)
    assert list(whole.state_dict()) == ["0.weight", "0.bias"]
    twice.load_state_dict({"weight": tl.ones(1, 2), "bias": tl.zeros(1)})
    for scale in (1.0, 1.0, 2.0):
        with tl.no_grad():
            model.bias.fill_(scale)
        assert whole(tl.ones(2)).item() == 2 + scale
    assert twice.eval() is twice and not model.training


def test_what_is_set_on_it_is_set_on_the_module():
    f = made(tl.compile)
    module, x = f.inner, tl.ones(1, 3)
    before = f(x)
    f.scale = 4.0
    assert tl.equal(f(x), before * 2) and f.scale == 4.0
    f.inner = nn.Linear(3, 3)
    assert f.inner is not module and tl.equal(f(x), f.inner(x) * 4)
    del f.scale
    assert not hasattr(f, "scale")


def test_it_is_an_instance_and_has_what_a_container_has():
    f = tl.compile(nn.Sequential(nn.Linear(3, 2), nn.ReLU()))
    assert isinstance(f, nn.Module) and isinstance(f, nn.Sequential) and bool(f)
    assert len(f) == 2 and type(f[1]) is nn.ReLU and [type(x) for x in f] == [nn.Linear, nn.ReLU]
    f[1] = nn.Tanh()
    assert f[1] in f and "0.weight" in f.state_dict() and "append" in dir(f)
    assert tl.equal(f(tl.ones(1, 3)), f[0](tl.ones(1, 3)).tanh())
    with pytest.raises(TypeError, match="len"):
        len(tl.compile(nn.Linear(2, 2)))
    assert tl.compile(nn.Linear(2, 2))


def test_what_returns_the_module_returns_the_compiled_one():
    f = made(tl.compile)
    for g in (f.eval(), f.train(), f.to(tl.float64), f.float(), f.requires_grad_(False)):
        assert g is f
    assert f.inner.weight.dtype is tl.float32 and not f.inner.weight.requires_grad


def test_it_is_no_method_of_the_class_that_has_it():
    class Holder:
        part = made(tl.compile)

    assert Holder().part(tl.ones(1, 3)).shape == (1, 3)


def test_models_with_it_are_copied_and_pickled():
    model = nn.Sequential(made(tl.compile), nn.Linear(3, 1))
    x = tl.ones(2, 3)
    wanted = model(x)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert tl.equal(other(x), wanted) and tl.equal(other(x), wanted)
        assert other[0].inner is not model[0].inner and hasattr(other[0], "_entries")
    other = copy.copy(model[0])
    other.added = 7.0
    assert not hasattr(model[0], "added") and hasattr(other, "_entries")
    whole = tl.compile(model)
    assert tl.equal(whole(x), wanted) and tl.equal(whole(x), wanted)


def test_statistics_of_a_batch_whose_normalized_values_nobody_reads():
    found = []
    for wrap in (lambda f: f, tl.compile):
        norm = nn.BatchNorm1d(2)

        @wrap
        def f(x):
            norm(x)
            return x + 1
        for i in range(4):
            f(tl.tensor([[1.0, 2.0], [i, 4.0]]))
        found.append([x.tolist() for x in norm.buffers()])
    assert found[0] == found[1]


FACTORS = {"weight": 2.0}


class Factored(nn.Module):
    """Its `__getattr__` is asked for the weight, and gives it times a factor from elsewhere."""

    def __init__(self):
        super().__init__()
        self.weight, self.inner = nn.Parameter(tl.ones(3)), nn.Linear(3, 3)

    def __getattr__(self, name):
        found = super().__getattr__(name)
        return found * FACTORS[name] if name in FACTORS else found

    def forward(self, x):
        return self.inner(x) * self.weight


def test_what_a_getattr_of_the_class_gives_is_noticed():
    module, x = Factored(), tl.arange(3.0)
    compiled, read = tl.compile(module), tl.compile(lambda x: x * module.weight)

    def agree():
        for _ in range(2):
            assert compiled(x).tolist() == module(x).tolist()
            assert read(x).tolist() == (x * module.weight).tolist()

    agree()
    FACTORS["weight"] = 3.0
    agree()
    module.weight = nn.Parameter(tl.full((3,), -1.0))
    agree()
    module._parameters["weight"].data.mul_(5)
    agree()
    module.inner = nn.Linear(3, 3)
    agree()
