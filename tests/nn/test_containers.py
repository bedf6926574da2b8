"""Sequences and dicts of modules and parameters."""

from collections import OrderedDict

import pytest
from cases import each

import tensorlib as tl
from tensorlib import nn
from tensorlib.nn.modules.module import register_module_parameter_registration_hook
from tensorlib.nn.parameter import Parameter


def test_a_sequential_as_a_list():
    a, b, c = nn.Linear(2, 2), nn.ReLU(), nn.Tanh()
    net = nn.Sequential(a, b)
    assert len(net) == 2 and net[-1] is b and list(net[:1]) == [a] and a in net
    assert net.append(c) is net and list(net) == [a, b, c]
    assert net.insert(1, c) is net and list(net) == [a, c, b, c]
    assert list(net._modules) == ["0", "1", "2", "3"]
    assert net.pop(1) is c and list(net + [c]) == [a, b, c, c]
    del net[0]
    assert list(net._modules) == ["0", "1"] and net[0] is b
    del net[:1]
    net[0] = a
    assert list(net) == [a] and list(net * 2) == list(2 * net) == [a, a]
    net *= 2
    net += [b]
    assert net.extend([c]) is net and list(net) == [a, a, b, c]
    named = nn.Sequential(OrderedDict(one=a, two=b))
    assert named.one is a and list(named[1:]._modules) == ["two"]
    named[1] = c
    assert named.two is c


def test_lists_and_dicts_of_modules():
    a, b, c = nn.Linear(2, 2), nn.ReLU(), nn.Tanh()
    row = nn.ModuleList([a])
    row.insert(0, b)
    row += [c]
    assert list(row) == [b, a, c] and row[1:][0] is a and isinstance(row[1:], nn.ModuleList)
    assert row.pop(-1) is c and len(row + row) == 4
    named = nn.ModuleDict({"a": a})
    named.update([("b", b)])
    named["c"] = c
    assert list(named) == list(named.keys()) == ["a", "b", "c"] and "b" in named
    assert named.pop("b") is b and dict(named.items()) == {"a": a, "c": c} and len(named) == 2
    del named["a"]
    named.clear()
    assert not list(named.values())


def test_lists_and_dicts_of_parameters():
    row = nn.ParameterList([tl.ones(2), Parameter(tl.zeros(1))])
    row.append(tl.ones(3)).extend([tl.ones(4)])
    assert [len(p) for p in row] == [2, 1, 3, 4] and len(list(row.parameters())) == 4
    row[0] = tl.zeros(5)
    assert row[-4].shape == (5,) and len(row[1:3]) == 2
    named = nn.ParameterDict({"a": tl.ones(2)})
    named["b"] = Parameter(tl.zeros(1))
    assert [name for name, _ in named.named_parameters()] == ["a", "b"]
    assert named.pop("a").shape == (2,) and named.get("a") is None
    assert named.setdefault("c", tl.ones(3)) is named.c and list(reversed(named)) == ["c", "b"]
    assert list((named | nn.ParameterDict({"d": tl.ones(1)})).keys()) == ["b", "c", "d"]
    assert named.popitem()[0] == "c" and named.copy().b is named.b
    assert list(named.fromkeys(["x", "y"], 3).values()) == [3, 3]


def test_a_dict_of_parameters_sorts_the_names_of_a_plain_dict():
    entries = {"b": tl.ones(2), "a": tl.ones(1)}
    assert list(nn.ParameterDict(entries)) == ["a", "b"]
    for ordered in (OrderedDict(entries), list(entries.items()), nn.ParameterDict(
            list(entries.items()))):
        assert list(nn.ParameterDict(ordered)) == ["b", "a"]
    assert list(nn.ModuleDict({"b": nn.ReLU(), "a": nn.ReLU()})) == ["b", "a"]


def test_a_parameter_that_is_refused_leaves_no_gap():
    def refuses(module, name, parameter):
        raise RuntimeError("no more")

    listed, named = nn.ParameterList([tl.ones(1)]), nn.ParameterDict({"a": tl.ones(1)})
    with register_module_parameter_registration_hook(refuses):
        for act in (lambda: listed.append(tl.ones(2)), lambda: named.update({"b": tl.ones(2)})):
            with pytest.raises(RuntimeError, match="no more"):
                act()
    assert len(listed) == len(list(listed)) == 1 and list(named) == ["a"] and "b" not in named


@each("act, error, text", [
    (lambda: nn.Sequential(nn.ReLU())[2], IndexError, "index 2 is out of range for 1"),
    (lambda: nn.Sequential(3), TypeError, "must be a Module or None, got int"),
    (lambda: nn.Sequential(nn.ReLU()) * 0, ValueError, "1 or more times"),
    (lambda: nn.Sequential(nn.ReLU()).insert(2, nn.ReLU()), IndexError, "index 2 is out of range"),
    (lambda: nn.Sequential(nn.ReLU()).insert(-2, nn.ReLU()), IndexError, "index -2 is out of"),
    (lambda: nn.Sequential() + 3, TypeError, "unsupported operand"),
    (lambda: nn.ModuleList(3), TypeError, "expected modules, got int"),
    (lambda: nn.ModuleList([3]), TypeError, "must be a Module"),
    (lambda: nn.Sequential(nn.ReLU), TypeError, r"the class ReLU: ReLU\(\) makes a module of it"),
    (lambda: nn.ModuleList().insert(0, 3), TypeError, "expected a Module"),
    (lambda: nn.ModuleList()["a"], TypeError, "str"),
    (lambda: nn.ModuleDict(3), TypeError, "expected a dict or pairs"),
    (lambda: nn.ModuleDict([3]), TypeError, "entry 0 must be a pair"),
    (lambda: nn.ModuleDict([(1, 2, 3)]), ValueError, "got 3 values"),
    (lambda: nn.ModuleDict({"forward": nn.ReLU()}), KeyError, "already exists"),
    (lambda: nn.ModuleDict()["a"], KeyError, "a"),
    (lambda: nn.ParameterList(tl.ones(2)), TypeError, "several values"),
    (lambda: nn.ParameterList()[0], IndexError, "out of range"),
    (lambda: nn.ParameterList()(3), RuntimeError, "not to be called"),
    (lambda: nn.ParameterDict({3: tl.ones(1)}), TypeError, "names are strings"),
    (lambda: nn.ParameterDict()["a"], KeyError, "a"),
    (lambda: nn.ModuleList()(3), NotImplementedError, "ModuleList"),
])
def test_bad_input_of_containers(act, error, text):
    with pytest.raises(error, match=text):
        act()


def test_dicts_and_lists_of_parameters_grow_and_are_emptied():
    named, listed = nn.ParameterDict({"a": tl.ones(1)}), nn.ParameterList([tl.ones(1)])
    same, row = named, listed
    named |= {"c": tl.ones(3), "b": tl.ones(2)}
    listed += [tl.ones(2), Parameter(tl.ones(3))]
    assert named is same and list(named) == ["a", "b", "c"] and len(named["c"]) == 3
    assert listed is row and [len(p) for p in listed] == [1, 2, 3]
    named.clear()
    assert not len(named) and not list(named.parameters()) and not hasattr(named, "a")
    named["a"] = tl.ones(5)
    assert len(named.a) == 5


def test_modules_by_keywords():
    a, b = nn.ReLU(), nn.Linear(2, 2)
    made = nn.Container(a=a, b=b)
    assert dict(made.named_children()) == {"a": a, "b": b} and made.b is b
    assert len(list(made.parameters())) == 2 and not list(nn.Container().children())


def test_tensors_in_containers_of_parameters_are_learnt():
    listed, named = nn.ParameterList([tl.ones(1)]), nn.ParameterDict({"a": tl.ones(1)})
    listed.append(tl.ones(1))
    listed[0] = tl.zeros(1)
    named["b"] = tl.ones(1)
    for module in (listed, named, named.copy()):
        assert [p.requires_grad for p in module.parameters()] == [True, True]
    with pytest.raises(RuntimeError, match="only floating-point"):
        nn.ParameterList([tl.tensor([1])])
