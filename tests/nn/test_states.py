"""States of modules: what they hold, what is loaded, what is refused, and hooks around both."""

import copy
import pickle
import warnings
from collections import OrderedDict

import pytest
from cases import each

import tensorlib as tl
from tensorlib import nn


class Counted(nn.Module):
    """Something of each kind, and a state of its own."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 3)
        self.gain = nn.Parameter(tl.tensor(2.0))
        self.register_buffer("steps", tl.zeros(1))
        self.register_buffer("scratch", tl.zeros(5), persistent=False)
        self.extra = {"epoch": 0}

    def get_extra_state(self):
        return dict(self.extra)

    def set_extra_state(self, state):
        self.extra = dict(state)


def values(net):
    return {name: value.tolist() if isinstance(value, tl.Tensor) else value
            for name, value in net.state_dict().items()}


def test_a_state_shows_the_tensors_outside_of_the_graph():
    net = Counted()
    state = net.state_dict()
    assert isinstance(state, OrderedDict) and list(state) == [
        "gain", "steps", "_extra_state", "layer.weight", "layer.bias"]
    assert type(state["gain"]) is tl.Tensor and not state["gain"].requires_grad
    assert state["gain"].data_ptr() == net.gain.data_ptr()
    assert net.state_dict(keep_vars=True)["gain"] is net.gain
    assert list(net.state_dict(prefix="net."))[0] == "net.gain"
    into = {"other": 1}
    assert net.state_dict(destination=into) is into and len(into) == 6
    assert state._metadata[""] == {"version": 1} and "layer" in state._metadata


def test_a_state_goes_from_one_module_to_another():
    net, other = Counted(), Counted()
    net.extra, before = {"epoch": 7}, other.gain
    with tl.no_grad():
        net.gain.fill_(5)
    state = pickle.loads(pickle.dumps(net.state_dict()))
    result = other.load_state_dict(state)
    assert result == ([], []) and repr(result) == "<All keys matched successfully>"
    assert values(other) == values(net) and other.gain is before and other.gain.requires_grad


def test_values_are_cast_to_the_module():
    net, other = Counted().double(), Counted()
    assert other.load_state_dict(net.state_dict()) and other.gain.dtype == tl.float32


def test_assigning_takes_the_tensors_themselves():
    net, other = Counted().double(), Counted()
    state = net.state_dict()
    learnt = nn.Parameter(tl.zeros((), dtype=tl.float16), requires_grad=False)
    state["gain"] = learnt
    other.layer.weight.requires_grad_(False)
    other.load_state_dict(state, assign=True)
    assert other.gain is learnt and other.steps is state["steps"]
    assert learnt.requires_grad                  # as what it takes the place of
    assert isinstance(other.layer.weight, nn.Parameter) and other.layer.weight.dtype == tl.float64
    assert other.layer.weight.data_ptr() == net.layer.weight.data_ptr()
    assert not other.layer.weight.requires_grad and other.layer.bias.requires_grad


def test_all_that_does_not_fit_is_reported_and_nothing_changes():
    net = Counted()
    state = Counted().state_dict()
    state["gain"] = tl.zeros(3, 1)
    state["layer.weight"] = tl.zeros(3, 3)
    state["layer.bias"] = [0.0, 0.0, 0.0]
    state["layer.extra"] = state["unknown"] = tl.zeros(1)
    del state["steps"]
    before = values(net)
    with pytest.raises(RuntimeError) as caught:
        net.load_state_dict(state)
    text = str(caught.value)
    assert text.startswith("Error(s) in loading state_dict for Counted:\n\tMissing key(s)")
    assert 'Missing key(s) in state_dict: "steps"' in text
    assert 'Unexpected key(s) in state_dict: "unknown", "layer.extra"' in text
    assert ("size mismatch for gain: copying a param with shape tensorlib.Size([3, 1]) from "
            "checkpoint, the shape in current model is tensorlib.Size([]).") in text
    assert "size mismatch for layer.weight" in text
    assert "layer.bias must be a Tensor, got list" in text
    assert values(net) == before


@each("assign", [False, True])
@each("spoil", [
    lambda state: state.pop("steps"), lambda state: state.pop("layer.bias"),
    lambda state: state.update(unknown=tl.zeros(1)),
    lambda state: state.update({"layer.more": tl.zeros(1)}),
    lambda state: state.update(gain=tl.zeros(3, 1)), lambda state: state.update(gain=3.0),
    lambda state: state.pop("_extra_state")])
def test_one_thing_that_does_not_fit_keeps_all_others_out(spoil, assign):
    net, state = Counted(), Counted().state_dict()
    for name, value in state.items():
        state[name] = tl.full_like(value, 7) if isinstance(value, tl.Tensor) else {"epoch": 7}
    spoil(state)
    before, members = values(net), list(net.parameters())
    with pytest.raises(RuntimeError, match="Error.* in loading state_dict for Counted"):
        net.load_state_dict(state, assign=assign)
    assert values(net) == before and all(a is b for a, b in zip(net.parameters(), members))


@pytest.mark.parametrize("key", ["layer", "layer.weight.more", "layer.nothing.weight", "steps.x"])
def test_names_beside_those_of_the_module(key):
    state = Counted().state_dict()
    state[key] = tl.zeros(1)
    with pytest.raises(RuntimeError, match="Unexpected"):
        Counted().load_state_dict(state)
    assert Counted().load_state_dict(state, strict=False).unexpected_keys == [key]


def test_without_strictness_the_rest_is_loaded():
    net, state = Counted(), Counted().state_dict()
    with tl.no_grad():
        state["gain"].fill_(9)
    del state["steps"], state["_extra_state"]
    state["unknown"] = tl.zeros(1)
    result = net.load_state_dict(state, strict=False)
    assert result.missing_keys == ["steps", "_extra_state"]
    assert result.unexpected_keys == ["unknown"] and net.gain.item() == 9
    assert "missing_keys=['steps'" in repr(result)
    with pytest.raises(RuntimeError, match="size mismatch"):
        net.load_state_dict({"gain": tl.zeros(2, 1)}, strict=False)
    assert list(state)[-1] == "unknown"              # the caller's dict is as it was


@pytest.mark.parametrize("state", [None, 3, [("gain", 3)], "gain"])
def test_what_is_no_state(state):
    with pytest.raises(TypeError, match="load_state_dict: expected a dict, got"):
        Counted().load_state_dict(state)


def test_a_number_may_be_a_vector_of_one():
    net = Counted()
    state = net.state_dict()
    state["gain"] = tl.tensor([4.0])
    net.load_state_dict(state)
    assert net.gain.item() == 4 and net.gain.shape == ()


@pytest.mark.parametrize("assign", [False, True])
def test_of_a_vector_a_number_takes_the_first(assign):
    module = nn.Module()
    module.a = nn.Parameter(tl.tensor(1.0))
    module.load_state_dict({"a": tl.tensor([4.0, 5.0])}, assign=assign)
    assert module.a.shape == () and module.a.item() == 4
    with pytest.raises(RuntimeError, match="size mismatch"):
        module.load_state_dict({"a": tl.empty(0)})


def test_half_of_an_extra_state():
    class Half(nn.Module):
        def get_extra_state(self):
            return 3

    net = Half()
    assert net.state_dict() == {"_extra_state": 3}
    with pytest.raises(RuntimeError, match="Unexpected"):
        net.load_state_dict(net.state_dict())


def test_batch_counts_are_new():
    """States from before there were any are loaded."""
    layer = nn.BatchNorm1d(2)
    layer(tl.randn(3, 2))
    state = {name: value for name, value in nn.BatchNorm1d(2).state_dict().items()
             if name != "num_batches_tracked"}
    assert layer.load_state_dict(state) == ([], []) and layer.num_batches_tracked.item() == 1
    full = nn.BatchNorm1d(2).state_dict()
    del full["num_batches_tracked"]                  # it says that it is new
    with pytest.raises(RuntimeError, match="num_batches_tracked"):
        layer.load_state_dict(full)


# ---- hooks -------------------------------------------------------------------------------------

def test_hooks_on_saving():
    net, seen = Counted(), []
    net.register_state_dict_pre_hook(lambda m, prefix, keep: seen.append((m, prefix, keep)))
    net.register_state_dict_post_hook(
        lambda m, state, prefix, local: state.update({prefix + "added": local["version"]}))
    outer = nn.ModuleList([net])
    assert outer.state_dict()["0.added"] == 1 and seen == [(net, "0.", False)]
    net._register_state_dict_hook(lambda m, state, prefix, local: {"other": 3})
    assert net.state_dict() == {"other": 3}
    bad = Counted()
    bad.register_state_dict_post_hook(lambda m, state, prefix, local: state)
    with pytest.raises(RuntimeError, match="returns None"):
        bad.state_dict()


def test_hooks_on_loading():
    net, state = Counted(), Counted().state_dict()
    with tl.no_grad():
        state["old_gain"] = state.pop("gain").clone().fill_(3)
    del state["layer.bias"]

    def renames(module, state, prefix, *rest):
        state[prefix + "gain"] = state.pop(prefix + "old_gain")

    def forgives(module, keys):
        assert module is net and net.gain.item() == 3
        keys.missing_keys.clear()

    handles = [net.register_load_state_dict_pre_hook(renames),
               net.register_load_state_dict_post_hook(forgives)]
    other = copy.deepcopy(net)
    assert net.load_state_dict(state) == ([], []) and "old_gain" in state
    with pytest.raises(AssertionError):              # the copy's hook is called with the copy
        other.load_state_dict(state)
    for handle in handles:
        handle.remove()
    with pytest.raises(RuntimeError, match='Missing.*"gain", "layer.bias"'):
        net.load_state_dict(state)
    seen = []
    net._register_load_state_dict_pre_hook(lambda *args: seen.append(len(args)))
    net._register_load_state_dict_pre_hook(lambda *args: seen.append(len(args)), with_module=True)
    net.load_state_dict(net.state_dict())
    assert seen == [7, 8]


def test_hooks_after_loading_go_from_the_inside_outwards():
    net, seen = nn.Sequential(nn.Linear(1, 1), nn.Sequential(nn.ReLU(), nn.Linear(1, 1))), []
    for name, part in net.named_modules():
        part.register_load_state_dict_post_hook(lambda m, keys, name=name: seen.append(name))
    net.load_state_dict(net.state_dict())
    assert seen == ["0", "1.0", "1.1", "1", ""]


@pytest.mark.parametrize("assign", [False, True])
def test_what_hooks_before_loading_are_told(assign):
    net, seen = nn.Linear(1, 1), []
    net.register_load_state_dict_pre_hook(lambda m, state, prefix, local, *rest: seen.append(local))
    net.load_state_dict(net.state_dict(), assign=assign)
    assert seen == [{"version": 1, **({"assign_to_params_buffers": True} if assign else {})}]


def test_a_class_that_loads_in_its_own_way():
    """By the method that scripts for PyTorch override."""
    class Transposed(nn.Linear):
        def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys,
                                  unexpected_keys, error_msgs):
            state_dict[prefix + "weight"] = state_dict[prefix + "weight"].mT
            super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing_keys,
                                          unexpected_keys, error_msgs)

    net = nn.Sequential(Transposed(2, 3))
    weight = tl.arange(6.0).reshape(2, 3)
    net.load_state_dict({"0.weight": weight, "0.bias": tl.zeros(3)})
    assert tl.equal(net[0].weight, weight.mT) and weight.shape == (2, 3)
    messages = []
    net[0]._load_from_state_dict({"weight": weight + 1, "bias": tl.zeros(3)}, "", {}, True, [], [],
                                 messages)
    assert tl.equal(net[0].weight, weight.mT + 1) and not messages


def test_names_in_a_state_are_strings():
    with pytest.raises(TypeError, match="names in a state are strings, got int"):
        Counted().load_state_dict({3: tl.ones(2)})


def test_a_state_for_parameters_without_elements_is_assigned_or_warned_of():
    state = {"weight": tl.ones(3, 2), "bias": tl.ones(3)}
    layer = nn.Linear(2, 3, device="meta")
    with pytest.warns(UserWarning, match="weight is on the device 'meta'") as told:
        layer.load_state_dict(state)
    assert len(told) == 2 and told[0].filename == __file__ and layer.weight.is_meta
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        layer.load_state_dict(layer.state_dict())
        layer.load_state_dict(state, assign=True)
        nn.LazyLinear(3, device="meta").load_state_dict(layer.state_dict())
    assert tl.equal(layer.weight, state["weight"])
