"""Modules: what they have, how it is put there and found, copies, pickles and texts."""

import copy
import gc
import io
import pickle
import weakref

import pytest
from cases import each

import tensorlib as tl
from tensorlib import nn
from tensorlib.nn.parameter import Buffer, Parameter


class Net(nn.Module):
    """Something of each kind."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.scale = Parameter(tl.ones(4))
        self.register_buffer("count", tl.zeros(()))
        self.register_buffer("scratch", tl.zeros(2), persistent=False)
        self.register_parameter("absent", None)
        self.rest = nn.Sequential(nn.ReLU(), nn.Linear(4, 2, bias=False))
        self.note = "plain"

    def forward(self, x):
        return self.rest(self.first(x) * self.scale)


class Wrapper(nn.Module):
    """Gives what it has not from what it wraps, as many scripts do."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.module, name)


class Doubling(nn.Module):
    """Its `__getattr__` is asked for its members, and gives the weight twice as large."""

    def __init__(self):
        super().__init__()
        self.weight, self.inner, self.plain = Parameter(tl.ones(2)), nn.Linear(2, 2), 3
        self.register_buffer("shift", tl.zeros(2))
        self.asked = []

    def __getattr__(self, name):
        found = super().__getattr__(name)
        if name in ("weight", "inner", "shift"):
            self.asked.append(name)
        return found * 2 if name == "weight" else found

    def forward(self, x):
        return self.inner(x) * self.weight + self.shift * self.plain


def test_members_are_asked_of_a_getattr_of_the_class():
    module = Doubling()
    assert module.weight.tolist() == [2, 2] and module.shift.tolist() == [0, 0]
    assert module.asked == ["weight", "shift"] and isinstance(module.inner, nn.Linear)
    assert {"weight", "inner", "shift", "plain"} <= set(dir(module))
    assert not {"weight", "inner", "shift"} & set(vars(module))
    for name, value in (("weight", 3), ("inner", 3), ("shift", 3)):
        with pytest.raises(TypeError, match=f"cannot assign 'int' as .* '{name}'"):
            setattr(module, name, value)
    module.shift = tl.ones(2)
    assert module.shift is next(module.buffers())
    copied = copy.deepcopy(module)
    copied.weight = Parameter(tl.full((2,), 5.0))
    assert copied.weight.tolist() == [10, 10] and module.weight.tolist() == [2, 2]
    del module.shift
    assert not hasattr(module, "shift") and hasattr(copied, "shift")


def test_an_object_that_becomes_of_such_a_class_and_no_longer_is():
    plain = nn.Linear(2, 2)
    asking = type("Asking", (nn.Linear,), {"__getattr__": lambda self, name: nn.Linear.__getattr__(
        self, name)})
    for kind in (asking, nn.Linear):
        plain.__class__ = kind
        assert ("weight" in vars(plain)) is (kind is nn.Linear)
        assert plain.weight is plain._parameters["weight"]
    plain.__class__ = asking
    del plain.weight
    assert not hasattr(plain, "weight")
    plain.register_parameter("weight", None)


def test_members_that_are_made_while_they_are_listed_are_all_there():
    module = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    found = module._named_members(lambda m: ((name, p * 2) for name, p in m._parameters.items()))
    assert [name for name, _ in found] == ["0.weight", "0.bias", "1.weight", "1.bias"]


# ---- parameters ----------------------------------------------------------------------------------

def test_a_parameter_is_a_leaf_that_shares_memory():
    data = tl.ones(3)
    parameter = Parameter(data)
    assert isinstance(parameter, tl.Tensor) and parameter.is_leaf and parameter.requires_grad
    with tl.no_grad():
        parameter += 1
    assert data.tolist() == [2, 2, 2] and not data.requires_grad
    assert type(parameter * 1) is type(parameter.detach()) is tl.Tensor
    assert not Parameter(tl.arange(3), requires_grad=False).requires_grad
    assert repr(parameter) == "Parameter containing:\ntensor([2., 2., 2.], requires_grad=True)"
    named = type("Named", (nn.Parameter,), {})(tl.ones(1))
    assert repr(named) == "Parameter containing:\nParameter(Named([1.], requires_grad=True))"
    made = (tl.ones(2, requires_grad=True) * 2)
    assert Parameter(made).is_leaf and Parameter().shape == (0,)


@pytest.mark.parametrize("copied", [
    copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p)),
    lambda p: pickle.loads(pickle.dumps(p, protocol=2))])
def test_copies_of_parameters_and_buffers(copied):
    for tensor in (Parameter(tl.ones(2)), Parameter(tl.ones(2), False), Buffer(tl.ones(2)),
                   Buffer(tl.ones(2), persistent=False)):
        other = copied(tensor)
        assert type(other) is type(tensor) and tl.equal(other, tensor)
        assert other.requires_grad == tensor.requires_grad
        assert other.data_ptr() != tensor.data_ptr()
        if isinstance(tensor, Buffer):
            assert other.persistent == tensor.persistent


@pytest.mark.parametrize("make, error, text", [
    (lambda: Parameter([1.0]), TypeError, "Parameter: takes a Tensor, got list"),
    (lambda: Parameter(tl.arange(3)), RuntimeError, "floating-point"),
    (lambda: Buffer(2), TypeError, "Buffer: takes a Tensor, got int"),
    (lambda: nn.UninitializedParameter().shape, RuntimeError, "not known"),
])
def test_bad_parameters(make, error, text):
    with pytest.raises(error, match=text):
        make()


# ---- registration --------------------------------------------------------------------------------

def test_what_a_module_has():
    net = Net()
    assert [name for name, _ in net.named_parameters()] == [
        "scale", "first.weight", "first.bias", "rest.1.weight"]
    assert [name for name, _ in net.named_parameters("net", recurse=False)] == ["net.scale"]
    assert [name for name, _ in net.named_buffers()] == ["count", "scratch"]
    assert list(net.state_dict()) == [
        "scale", "count", "first.weight", "first.bias", "rest.1.weight"]
    assert [name for name, _ in net.named_modules()] == ["", "first", "rest", "rest.0", "rest.1"]
    assert [name for name, _ in net.named_children()] == ["first", "rest"]
    assert list(net.children()) == [net.first, net.rest]
    assert next(net.modules()) is net
    assert net.absent is None and net.note == "plain"


def test_attributes_and_tables_are_the_same():
    """However something is put there, it is found both ways."""
    net = nn.Module()
    weight, layer = Parameter(tl.ones(2)), nn.Linear(2, 2)
    net._parameters["a"] = weight
    net._modules.update(b=layer)
    net._buffers.setdefault("c", tl.zeros(1))
    assert net.a is weight and net.b is layer and net.c is net._buffers["c"]
    assert net._parameters.pop("a") is weight and not hasattr(net, "a")
    assert net._modules.popitem() == ("b", layer) and not hasattr(net, "b")
    net._buffers.clear()
    assert not hasattr(net, "c")
    net._parameters |= {"d": weight}
    assert net.d is weight and isinstance(net._parameters, dict)
    net.e = layer
    net._modules.move_to_end("e", last=False)
    assert list(net._modules) == ["e"] and net._modules.copy() == {"e": layer}
    del net.e
    assert net._modules == {} and net._modules.pop("e", 3) == 3
    with pytest.raises(KeyError):
        net._modules.pop("e")
    table = net._parameters
    del net
    gc.collect()
    table["f"] = weight                      # of a module that is gone: a dict like any other


def test_another_dict_of_members():
    """Libraries put a dict of their own in the place of a table: it says what the module has."""
    layer, other = nn.Linear(2, 1), Parameter(tl.full((1, 2), 3.0))
    layer._parameters = {"weight": other, "bias": None}
    assert layer.weight is other and layer.bias is None
    assert layer(tl.ones(2)).tolist() == [6.0] and list(layer.parameters()) == [other]
    layer._parameters["weight"] = Parameter(tl.ones(1, 2))
    assert layer(tl.ones(2)).tolist() == [2.0]
    layer._parameters = {}
    with pytest.raises(AttributeError, match="'Linear' object has no attribute 'weight'"):
        layer.weight
    with pytest.raises(TypeError, match="cannot assign list as '_parameters': expected a dict"):
        layer._parameters = [other]
    object.__setattr__(layer, "_parameters", {"weight": other})     # past Module.__setattr__
    assert layer.weight is other
    layer._parameters["weight"] = vars(layer)["_parameters"]["bias"] = None
    assert layer.weight is None and layer.bias is None


def test_a_member_gives_way_to_another_kind():
    net = nn.Module()
    net.x = 3
    net.x = Buffer(tl.ones(1), persistent=False)
    assert list(net._buffers) == ["x"] and list(net.state_dict()) == []
    net.x = tl.zeros(3)
    assert list(net._buffers) == ["x"] and net.x.shape == (3,)
    net.x = None
    assert net.x is None and list(net._buffers) == ["x"]
    net.x = nn.Identity()
    assert list(net._modules) == ["x"] and not net._buffers
    net.x = Parameter(tl.ones(1))
    assert list(net._parameters) == ["x"] and not net._modules and list(net.state_dict()) == ["x"]
    del net.x
    assert not hasattr(net, "x") and not net._non_persistent_buffers_set


def test_a_buffer_that_was_deleted_leaves_nothing_to_the_next_of_its_name():
    net = nn.Module()
    net.register_buffer("x", tl.ones(1), persistent=False)
    del net.x
    assert not net._non_persistent_buffers_set
    net._buffers["x"] = tl.ones(1)
    assert list(net.state_dict()) == ["x"]


MEMBERS = {"Parameter": lambda: Parameter(tl.ones(1)), "Module": nn.Identity,
           "Tensor": lambda: Buffer(tl.ones(1))}


@pytest.mark.parametrize("first, then", [
    ("Parameter", "Module"), ("Parameter", "Tensor"), ("Module", "Tensor")])
def test_a_member_does_not_give_way_to_a_kind_after_its_own(first, then):
    """A slip of the name would take a parameter out of what is learnt, without a word."""
    net = nn.Module()
    net.x = member = MEMBERS[first]()
    before = copy.copy(vars(net))
    with pytest.raises(TypeError, match=f"cannot assign .* 'x' .{first} or"):
        net.x = MEMBERS[then]()
    assert net.x is member and vars(net) == before


def test_a_shared_member_is_found_once():
    layer = nn.Linear(2, 2)
    net = nn.ModuleList([layer, layer, nn.Linear(2, 2)])
    net[2].weight = layer.weight
    assert len(list(net.parameters())) == 3 and len(list(net.modules())) == 3
    assert len(list(net.named_parameters(remove_duplicate=False))) == 6
    assert list(net.state_dict())[:3] == ["0.weight", "0.bias", "1.weight"]
    assert net.load_state_dict(net.state_dict()) == ([], [])


@each("act, error, text", [
    (lambda m: m.register_parameter("a.b", None), KeyError, r'contain "\.", got "a.b"'),
    (lambda m: m.register_parameter("", None), KeyError, "empty string"),
    (lambda m: m.register_parameter(3, None), TypeError, "must be a str, got int"),
    (lambda m: m.register_parameter("first", None), KeyError, "attribute 'first' already exists"),
    (lambda m: m.register_parameter("forward", None), KeyError, "already exists"),
    (lambda m: m.register_parameter("a", tl.ones(1)), TypeError, "must be a Parameter or None"),
    (lambda m: m.register_buffer("a", 3), TypeError, "must be a Tensor or None, got int"),
    (lambda m: m.add_module("a", 3), TypeError, "must be a Module or None, got int"),
    (lambda m: setattr(m, "scale", tl.ones(4)), TypeError, ".Parameter or None expected"),
    (lambda m: setattr(m, "first", 3), TypeError, "cannot assign 'int' as child module 'first'"),
    (lambda m: setattr(m, "count", 3), TypeError, ".Tensor or None expected"),
    (lambda m: m.nothing, AttributeError, "'Net' object has no attribute 'nothing'"),
    (lambda m: delattr(m, "nothing"), AttributeError, "nothing"),
    (lambda m: m.train("yes"), ValueError, "True or False"),
    (lambda m: m.to(tl.int64), TypeError, "only floating-point and complex dtypes"),
    (lambda m: m.to(nowhere=3), TypeError, "nowhere"),
    (lambda m: m.to("cuda"), RuntimeError, "cuda"),
    (lambda m: m.to(3), TypeError, "takes a dtype, a device or a tensor, got int"),
    (lambda m: m.get_submodule("first.zero"), AttributeError, "Linear has no attribute 'zero'"),
    (lambda m: m.get_submodule("first.weight"), AttributeError, "not a Module"),
    (lambda m: m.get_parameter("count"), AttributeError, "not a Parameter"),
    (lambda m: m.get_buffer("scale"), AttributeError, "not a buffer"),
    (lambda m: m.set_submodule("", m), ValueError, "empty"),
    (lambda m: m.set_submodule("first", 3), ValueError, "expected a Module"),
    (lambda m: m.set_submodule("zero", nn.ReLU(), strict=True), AttributeError, "zero"),
    (lambda m: nn.Module()(3), NotImplementedError, "missing the required \"forward\""),
    (lambda m: nn.Module(3), TypeError, "takes no arguments"),
    (lambda m: m(tl.ones(2)), RuntimeError, "linear"),
])
def test_bad_input_changes_nothing(act, error, text):
    net = Net()
    before = dict(vars(net))
    with pytest.raises(error, match=text):
        act(net)
    assert vars(net) == before and list(net._parameters) == ["scale", "absent"]


@pytest.mark.parametrize("value", [Parameter(tl.ones(1)), nn.ReLU(), Buffer(tl.ones(1))])
def test_a_constructor_that_forgot_the_one_above(value):
    class Forgetful(nn.Module):
        def __init__(self):
            self.plain = 3
            self.member = value

    with pytest.raises(AttributeError, match=r"call super\(\).__init__\(\) first in Forgetful"):
        Forgetful()


def test_a_constructor_that_never_called_the_one_above():
    class Forgetful(nn.Module):
        def __init__(self):
            pass

        def forward(self, x):
            return x

    assert Forgetful()(3) == 3
    for ask in (lambda m: list(m.parameters()), lambda m: m.training, lambda m: m.state_dict(),
                repr):
        with pytest.raises(AttributeError, match=r"super\(\).__init__\(\)"):
            ask(Forgetful())


def test_a_property_reports_its_own_error():
    class Broken(nn.Module):
        @property
        def inner(self):
            return self.no_such_thing

    with pytest.raises(AttributeError, match="no_such_thing"):
        Broken().inner


def test_a_property_with_a_setter_takes_what_is_assigned():
    class Halved(nn.Module):
        @property
        def half(self):
            return self.kept

        @half.setter
        def half(self, value):
            self.kept = value

    net = Halved()
    net.half = Parameter(tl.ones(1))
    assert list(net._parameters) == ["kept"] and net.half is net.kept


def test_attributes_of_what_is_wrapped():
    net = Wrapper(Net())
    assert net.note == "plain" and net.scale is net.module.scale
    with pytest.raises(AttributeError, match="'Net' object has no attribute 'nothing'"):
        net.nothing


def test_members_by_dotted_name():
    net = Net()
    assert net.get_submodule("rest.1") is net.rest[1] and net.get_submodule("") is net
    assert net.get_parameter("rest.1.weight") is net.rest[1].weight
    assert net.get_buffer("count") is net.count
    net.set_submodule("rest.0", nn.Tanh())
    assert isinstance(net.rest[0], nn.Tanh)
    net.set_submodule("rest.added", nn.Tanh())
    assert "rest.added" in dict(net.named_modules())


# ---- all parts at once ---------------------------------------------------------------------------

def test_modes_and_gradients():
    net, seen = Net(), []
    assert net.eval() is net and not any(part.training for part in net.modules())
    assert net.train().training and net.rest[1].training
    net.apply(lambda part: seen.append(type(part).__name__))
    assert seen == ["Linear", "ReLU", "Linear", "Sequential", "Net"]
    net(tl.ones(3)).sum().backward()
    net.zero_grad(set_to_none=False)
    assert net.scale.grad.tolist() == [0] * 4
    net.zero_grad()
    assert net.scale.grad is None
    assert net.requires_grad_(False) is net and not net.scale.requires_grad


@each("change, dtype", [
    (lambda m: m.double(), "float64"), (lambda m: m.half(), "float16"),
    (lambda m: m.bfloat16(), "bfloat16"), (lambda m: m.double().float(), "float32"),
    (lambda m: m.to(tl.float64), "float64"), (lambda m: m.to("cpu", tl.float64), "float64"),
    (lambda m: m.to(tl.zeros(1, dtype=tl.float64)), "float64"), (lambda m: m.cpu(), "float32"),
    (lambda m: m.to(device="cpu", dtype=tl.float16, non_blocking=True), "float16"),
    (lambda m: m.to("cpu"), "float32"), (lambda m: m.type(tl.float64), "float64")])
def test_other_dtypes_keep_the_parameters(change, dtype):
    """An optimiser that has them goes on to."""
    net = Net()
    net.register_buffer("steps", tl.tensor(3))
    net(tl.ones(3)).sum().backward()
    weight = net.first.weight
    assert change(net) is net
    assert net.first.weight is weight and weight.is_leaf and weight.requires_grad
    wanted = getattr(tl, dtype)
    assert weight.dtype == net.count.dtype == weight.grad.dtype == wanted
    assert net.steps.dtype == (wanted if "type" in str(change.__code__.co_names) else tl.int64)
    net.zero_grad()
    net(tl.ones(3, dtype=wanted)).sum().backward()
    assert weight.grad.dtype == wanted


def test_memory_that_is_not_written_yet():
    net = Net()
    before = net.scale.data_ptr()
    assert net.to_empty(device="cpu") is net and net.scale.data_ptr() != before


# ---- copies, pickles, lives ----------------------------------------------------------------------

@pytest.mark.parametrize("copied", [
    copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m)),
    lambda m: pickle.load(io.BytesIO(pickle.dumps(m, protocol=2)))])
def test_a_copy_has_members_of_its_own(copied):
    net = Net()
    net.twin = net.first
    other = copied(net)
    x = tl.ones(3)
    assert tl.equal(other(x), net(x)) and type(other) is Net
    assert other.twin is other.first and other.first is not net.first
    with tl.no_grad():
        other.first.weight += 1
    assert not tl.equal(other(x), net(x))
    other.first = nn.Linear(3, 4)
    assert other._modules["first"] is other.first and net.first is not other.first
    assert list(other.state_dict()) == list(net.state_dict())


def test_a_shallow_copy_shares_members_and_not_tables():
    net = Net()
    other = copy.copy(net)
    assert other.first is net.first and other.scale is net.scale
    other.scale = Parameter(tl.zeros(4))
    assert net.scale.tolist() == [1] * 4


def test_classes_that_pickle_in_their_own_way():
    net = pickle.loads(pickle.dumps(Peculiar()))
    assert net.made_anew and net.layer.weight is net.layer._parameters["weight"]
    net.layer = nn.Linear(1, 1)
    assert net._modules["layer"] is net.layer
    net._modules["layer"] = other = nn.Linear(1, 1)
    assert net.layer is other


class Peculiar(nn.Module):
    """Keeps part of its attributes, and sets them by itself."""

    def __init__(self):
        super().__init__()
        self.layer, self.open_file = nn.Linear(2, 2), lambda: None

    def __getstate__(self):
        return {name: value for name, value in vars(self).items() if name != "open_file"}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self.made_anew = True


def test_a_module_that_nobody_holds_is_gone_at_once():
    """Its memory does not wait for the collector."""
    gc.collect()
    gc.disable()
    try:
        net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.ReLU())
        net(tl.ones(3, 2)).sum().backward()
        gone = weakref.ref(net), weakref.ref(net[0])
        del net
        assert [each() for each in gone] == [None, None]
    finally:
        gc.enable()


def test_operations_as_attributes_of_a_class_are_no_methods():
    class Model(tl.nn.Module):
        act, product, own = tl.relu, tl.einsum, tl.nn.functional.relu

        def forward(self, x):
            return self.product("i,i->", self.act(x), x)

    assert Model()(tl.tensor([-1.0, 2.0])).item() == 4.0 and Model.act is tl.relu
    with pytest.raises(TypeError):
        Model().own()                              # a function of Python's, there as here

    class Wave(tl.nn.Module):
        forward = tl.sin

    assert tl.equal(Wave()(tl.ones(2)), tl.ones(2).sin())
