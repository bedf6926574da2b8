"""Containers as leaves and structure, and other small names that scripts import."""

import pickle
from collections import OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass, field

import pytest
from cases import each

import tensorlib as tl
from tensorlib.utils import _pytree as pytree

Pair = namedtuple("Pair", "a b")
TREES = [3, None, (), [1, (2, 3)], {"b": 1, "a": [2, None]}, Pair(1, [2]), OrderedDict(x=1, y=2),
         deque([1, 2], maxlen=3), tl.return_types.max(1, 2)]


@each("tree", TREES, ids=repr)
def test_containers_and_back(tree):
    leaves, spec = pytree.tree_flatten(tree)
    back = pytree.tree_unflatten(leaves, spec)
    assert back == tree and type(back) is type(tree)
    assert pytree.tree_structure(back) == spec and hash(pytree.tree_structure(back)) == hash(spec)
    assert spec.num_leaves == len(leaves) == len(pytree.tree_leaves(tree))
    texts = pytree.tree_map(str, tree)
    assert pytree.tree_leaves(texts) == [str(leaf) for leaf in leaves]
    assert pytree.tree_map(lambda a, b: (a, b) == (b, a), tree, tree) == pytree.tree_map(
        lambda leaf: True, tree)


def test_leaves_are_in_the_order_of_pytorchs():
    torch = pytest.importorskip("torch")
    from torch.utils import _pytree as theirs
    assert torch is not None
    for tree in TREES[:-1]:
        assert pytree.tree_leaves(tree) == theirs.tree_leaves(tree)
        assert pytree.tree_map(str, tree) == theirs.tree_map(str, tree)


def test_sizes_are_containers():
    doubled = pytree.tree_map(lambda n: 2 * n, [tl.ones(2, 3).shape])
    assert doubled == [(4, 6)] and type(doubled[0]) is tuple


@dataclass
class Point:
    x: object
    y: object = 2
    label: str = field(default="p", init=False)


pytree.register_dataclass(Point)


def test_places_of_leaves():
    tree = {"a": [1, (2, Point([5], None))], "b": Pair(1, deque([3])),
            "c": defaultdict(int, {3: 4}), "d": ()}
    paths, spec = pytree.tree_flatten_with_path(tree)
    assert [pytree.keystr(path) for path, _ in paths] == [
        "['a'][0]", "['a'][1][0]", "['a'][1][1].x[0]", "['a'][1][1].y", "['b'].a", "['b'].b[0]",
        "['c'][3]"]
    assert [leaf for _, leaf in paths] == pytree.tree_leaves(tree)
    assert spec == pytree.tree_structure(tree)
    for path, leaf in pytree.tree_leaves_with_path(tree):
        assert pytree.key_get(tree, path) is leaf
    names = pytree.tree_map_with_path(lambda path, x, y: (len(path), x is y), tree, tree)
    assert names["a"] == [(2, True), ((3, True), Point([(5, True)], (4, True)))]
    assert pytree.tree_leaves_with_path(3) == [((), 3)]
    assert pytree.tree_leaves_with_path([[1], 2], is_leaf=lambda x: x == [1]) == [
        ((pytree.SequenceKey(0),), [1]), ((pytree.SequenceKey(1),), 2)]


def test_places_are_pytorchs():
    theirs = pytest.importorskip("torch.utils._pytree")
    for tree in TREES[:-1]:
        assert str(pytree.tree_leaves_with_path(tree)) == str(theirs.tree_leaves_with_path(tree))


def test_classes_without_places():
    class Box:
        content = 1

    pytree.register_pytree_node(Box, lambda box: ([box.content], None), lambda children, _: Box())
    assert pytree.tree_leaves(Box()) == [1]
    with pytest.raises(ValueError, match="Box was registered without flatten_with_keys_fn"):
        pytree.tree_leaves_with_path([Box()])


def test_dataclasses_are_registered_by_their_fields():
    @dataclass
    class Scaled:
        x: object
        scale: float = 1.0

    class Plain:
        def __init__(self, x):
            self.x = x

    with pytest.raises(ValueError, match=r"has the fields \['x', 'scale'\], got \['x'\]"):
        pytree.register_dataclass(Scaled, field_names=["x"])
    pytree.register_dataclass(Scaled, drop_field_names=["scale"])
    assert pytree.tree_map(str, Scaled(1, 5.0)) == Scaled("1", 1.0)
    with pytest.raises(ValueError, match="already registered"):
        pytree.register_dataclass(Scaled)
    with pytest.raises(ValueError, match="no dataclass: field_names must be given"):
        pytree.register_dataclass(Plain)
    pytree.register_dataclass(Plain, field_names=["x"])
    assert pytree.tree_map(str, Plain([1, 2])).x == ["1", "2"]


def test_functions_of_some_leaves():
    tree = [1, "a", {"b": 2.0}]
    assert pytree.tree_map_only(int, lambda x: -x, tree) == [-1, "a", {"b": 2.0}]
    assert pytree.tree_map_only(lambda x: x != 1, str, tree) == [1, "a", {"b": "2.0"}]
    assert pytree.tree_map(len, [[1, 2], [3]], is_leaf=lambda x: len(x) < 3 and x != [[1, 2], [3]]
                           ) == [2, 1]
    assert pytree.tree_all(bool, tree) and pytree.tree_any(lambda x: x == "a", tree)
    assert pytree.tree_all_only(int, lambda x: x == 1, tree)
    assert not pytree.tree_any_only((int, float), lambda x: x > 2, tree)
    assert pytree.tree_map_(print, []) == [] and list(pytree.tree_iter(tree)) == [1, "a", 2.0]
    factory = pytree.tree_map(str, defaultdict(list, a=1))
    assert factory == {"a": "1"} and factory.default_factory is list


def test_containers_of_ones_own():
    class Box:
        def __init__(self, *values):
            self.values = values

    pytree.register_pytree_node(Box, lambda box: (list(box.values), "box"),
                                lambda values, context: Box(*values))
    assert pytree.tree_map(lambda x: x + 1, [Box(1, 2)])[0].values == (2, 3)
    with pytest.raises(ValueError, match="already"):
        pytree.register_pytree_node(Box, None, None)


@pytest.mark.parametrize("call, error", [
    (lambda: pytree.tree_unflatten([1], pytree.tree_structure([1, 2])), ValueError),
    (lambda: pytree.tree_unflatten([1], [1]), TypeError),
    (lambda: pytree.tree_map(max, [1], (1,)), ValueError),
    (lambda: pytree.tree_map(max, [1], [1, 2]), ValueError),
    (lambda: pytree.tree_map(max, {"a": 1}, {"b": 1}), ValueError),
])
def test_structures_that_differ(call, error):
    with pytest.raises(error):
        call()


def test_results_have_the_named_types():
    for name in dir(tl.return_types):
        kind = getattr(tl.return_types, name)
        assert issubclass(kind, tuple) and kind._fields
    x = tl.eye(2)
    for name, found in {"max": x.max(0), "sort": x.sort(), "topk": x.topk(1), "qr": tl.qr(x),
                        "linalg_qr": tl.linalg.qr(x), "lu_unpack": tl.lu_unpack(*tl.lu(x)),
                        "linalg_eigh": tl.linalg.eigh(x), "slogdet": tl.slogdet(x),
                        "aminmax": tl.aminmax(x), "frexp": tl.frexp(x)}.items():
        assert isinstance(found, getattr(tl.return_types, name)), name
    with pytest.raises(AttributeError, match="return_types"):
        tl.return_types.nothing


def test_results_are_written_and_pickled_by_their_names():
    x = tl.eye(2)
    for found in (x.max(0), tl.linalg.eigh(x), tl.qr(x), tl.linalg.qr(x), tl.slogdet(x),
                  tl.frexp(x)):
        again = pickle.loads(pickle.dumps(found))
        assert type(again) is type(found) is getattr(tl.return_types, type(found).__name__)
        assert all(a.equal(b) for a, b in zip(again, found))
    assert repr(x.max(0)) == ("tensorlib.return_types.max(\nvalues=tensor([1., 1.]),\n"
                              "indices=tensor([0, 1]))")


def test_names_at_older_places():
    assert tl.autograd.profiler.profile is tl.profiler.profile
    assert tl.ones(2)[:, tl.newaxis].shape == (2, 1)
