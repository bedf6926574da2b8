"""Containers as their leaves and their structure, under the names of `torch.utils._pytree`.

>>> from tensorlib.utils._pytree import tree_map
>>> tree_map(lambda x: 2 * x, {"a": [1, 2], "b": (3,)})
{'a': [2, 4], 'b': (6,)}

Tuples, named tuples, sizes, lists, dicts, ordered and default dicts and deques are containers, and
those of `register_pytree_node`; all else, also None, is a leaf.
"""

from collections import OrderedDict, namedtuple
from dataclasses import fields, is_dataclass
from typing import Any

from tensorlib.autograd.containers import NODES, GetAttrKey, MappingKey, Node, SequenceKey
from tensorlib.ops.foreign import members

__all__ = [
    "GetAttrKey", "LeafSpec", "MappingKey", "SequenceKey", "TreeSpec", "key_get", "keystr",
    "register_dataclass", "register_pytree_node", "tree_all", "tree_all_only", "tree_any",
    "tree_any_only", "tree_flatten", "tree_flatten_with_path", "tree_is_leaf", "tree_iter",
    "tree_leaves", "tree_leaves_with_path", "tree_map", "tree_map_", "tree_map_only",
    "tree_map_only_", "tree_map_with_path", "tree_structure", "tree_unflatten",
]


def register_pytree_node(cls, flatten_fn, unflatten_fn, *, flatten_with_keys_fn=None, **names):
    """Makes a class a container: `flatten_fn` gives its children and a context, `unflatten_fn`
    makes it of both. Raises: ValueError for one that is registered.

    flatten_with_keys_fn: gives pairs of places and children, and a context, for the functions
    `..._with_path`.
    """
    if cls in NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    NODES[cls] = Node(flatten_fn, unflatten_fn, flatten_with_keys_fn)


def register_dataclass(cls, *, field_names=None, drop_field_names=(), **names):
    """Makes a dataclass a container of the fields that its `__init__` takes.

    field_names: which these are; a class that is no dataclass needs them. drop_field_names: those
    that are no children, and have their defaults in what is made again.
    Raises: ValueError for one that is registered, another class without `field_names`, and
    `field_names` that are not those of a dataclass.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Point:
    ...     x: int
    ...     y: int
    >>> register_dataclass(Point)
    >>> tree_map(lambda c: c + 1, Point(1, 2))
    Point(x=2, y=3)
    """
    own = [field.name for field in fields(cls) if field.init and field.name not in drop_field_names
           ] if is_dataclass(cls) else field_names
    if own is None:
        raise ValueError(f"register_dataclass: {cls!r} is no dataclass: field_names must be given")
    kept = own if field_names is None else list(field_names)
    if set(kept) != set(own):
        raise ValueError(f"register_dataclass: {cls.__name__} has the fields {own}, got {kept}")

    def flatten(x):
        return [getattr(x, name) for name in kept], None

    def flatten_with_keys(x):
        return [(GetAttrKey(name), getattr(x, name)) for name in kept], None

    register_pytree_node(cls, flatten, lambda children, _: cls(**dict(zip(kept, children))),
                         flatten_with_keys_fn=flatten_with_keys)


def kind_of(tree):
    """The kind of a container, or None of a leaf."""
    kind = type(tree)
    if kind in NODES:
        return kind
    return namedtuple if is_namedtuple_class(kind) else None


def is_namedtuple_class(cls):
    """Whether it is a class of named tuples."""
    return isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "_fields")


def is_structseq_class(cls):
    """Whether it is a class of tuples such as `time.struct_time`: those that C code has made."""
    counts = ("n_fields", "n_sequence_fields", "n_unnamed_fields")
    return isinstance(cls, type) and cls.__bases__ == (tuple,) and all(
        isinstance(getattr(cls, name, None), int) for name in counts)


def is_namedtuple_instance(obj):
    """Whether it is a named tuple."""
    return is_namedtuple_class(type(obj))


def is_structseq_instance(obj):
    """Whether it is a tuple of a class that C code has made."""
    return is_structseq_class(type(obj))


# PyTorch's names, by which libraries register containers that are like these
SUPPORTED_NODES, _get_node_type, Context, PyTree = NODES, kind_of, Any, Any
_dict_flatten, _dict_unflatten, _dict_flatten_with_keys = NODES[dict]
_list_flatten, _list_unflatten, _list_flatten_with_keys = NODES[list]
_tuple_flatten, _tuple_unflatten, _tuple_flatten_with_keys = NODES[tuple]
_namedtuple_flatten, _namedtuple_unflatten, _namedtuple_flatten_with_keys = NODES[namedtuple]
_register_pytree_node = register_pytree_node


class TreeSpec:
    """What a container is without its leaves. Two compare equal where leaves fit either."""

    def __init__(self, type, context, children_specs):
        self.type, self.context, self.children_specs = type, context, list(children_specs)
        self.num_children = len(self.children_specs)
        self.num_leaves = sum(child.num_leaves for child in self.children_specs)
        self.num_nodes = 1 + sum(child.num_nodes for child in self.children_specs)

    def is_leaf(self):
        """Whether it is that of a leaf."""
        return False

    def children(self):
        """Those of its children."""
        return list(self.children_specs)

    def child(self, index):
        """That of one child."""
        return self.children_specs[index]

    def unflatten(self, leaves):
        """The container with these leaves. Raises: ValueError for another number of them."""
        leaves = list(members("unflatten", leaves))
        if len(leaves) != self.num_leaves:
            raise ValueError(f"unflatten: expected {self.num_leaves} leaves, got {len(leaves)}")
        return self._built(iter(leaves))

    def _built(self, leaves):
        children = [child._built(leaves) for child in self.children_specs]
        return NODES[self.type].unflatten_fn(children, self.context)

    def flatten_up_to(self, tree):
        """The parts of a container that lie where this one has leaves.

        Raises: ValueError for one of another structure.
        """
        if kind_of(tree) is not self.type:
            raise ValueError(f"expected a {self.type.__name__}, got {type(tree).__name__}")
        children, context = NODES[self.type].flatten_fn(tree)
        if len(children) != self.num_children:
            raise ValueError(f"expected {self.num_children} children, got {len(children)}")
        if self.type in (dict, OrderedDict) and set(context) == set(self.context):
            children = [tree[key] for key in self.context]
        elif context != self.context:
            raise ValueError(f"expected a container of {self.context}, got {context}")
        return [part for spec, child in zip(self.children_specs, children)
                for part in spec.flatten_up_to(child)]

    def __eq__(self, other):
        return (type(other) is type(self) and (self.type, self.context, self.children_specs)
                == (other.type, other.context, other.children_specs))

    def __hash__(self):
        return hash((self.type, repr(self.context), tuple(self.children_specs)))

    def __repr__(self):
        return f"TreeSpec({self.type.__name__}, {self.context}, {self.children_specs})"


class LeafSpec(TreeSpec):
    """The structure of a leaf."""

    def __init__(self):
        super().__init__(None, None, [])
        self.num_leaves = 1

    def is_leaf(self):
        return True

    def _built(self, leaves):
        return next(leaves)

    def flatten_up_to(self, tree):
        return [tree]

    def __repr__(self):
        return "*"


# ---- functions -----------------------------------------------------------------------------------

def tree_is_leaf(tree, is_leaf=None):
    """Whether this is a leaf, by its kind or by a function that says so."""
    return is_leaf is not None and is_leaf(tree) or kind_of(tree) is None


_is_leaf = tree_is_leaf


def tree_flatten(tree, is_leaf=None):
    """The leaves of a container in order, and its structure."""
    leaves = []
    return leaves, collected(tree, leaves, is_leaf)


def collected(tree, leaves, is_leaf):
    """The structure of a container, whose leaves are added to `leaves`."""
    if tree_is_leaf(tree, is_leaf):
        leaves.append(tree)
        return LeafSpec()
    kind = kind_of(tree)
    children, context = NODES[kind].flatten_fn(tree)
    return TreeSpec(kind, context, [collected(child, leaves, is_leaf) for child in children])


def tree_unflatten(leaves, treespec):
    """The container of this structure with these leaves. Raises: ValueError, TypeError."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"tree_unflatten: expected a TreeSpec, got {type(treespec).__name__}")
    return treespec.unflatten(leaves)


def _broadcast_to_and_flatten(tree, treespec, is_leaf=None):
    """The leaves of `tree`, each as often as the structure has leaves where it stands.

    None where `tree` is not the upper part of that structure.
    """
    leaves, upper = tree_flatten(tree, is_leaf)
    try:
        parts = upper.flatten_up_to(tree_unflatten([0] * treespec.num_leaves, treespec))
    except ValueError:
        return None
    return [x for x, part in zip(leaves, parts) for _ in tree_leaves(part)]


def tree_leaves(tree, is_leaf=None):
    """The leaves of a container in order."""
    return tree_flatten(tree, is_leaf)[0]


def tree_iter(tree, is_leaf=None):
    """An iterator over the leaves."""
    return iter(tree_leaves(tree, is_leaf))


def tree_structure(tree, is_leaf=None):
    """The structure of a container."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func, tree, *rests, is_leaf=None):
    """The container with `func` of each leaf, and of the parts of others in its place."""
    leaves, spec = tree_flatten(tree, is_leaf)
    return spec.unflatten(map(func, leaves, *(spec.flatten_up_to(rest) for rest in rests)))


def tree_map_(func, tree, *rests, is_leaf=None):
    """The container itself, after a call of `func` for each leaf."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def only(kinds, func):
    """`func` for leaves of some types, or that a function picks, and the leaf itself for others."""
    picks = kinds if callable(kinds) and not isinstance(kinds, type) else (
        lambda x: isinstance(x, kinds))
    return lambda x: func(x) if picks(x) else x


def tree_map_only(type_or_types_or_pred, func, tree, is_leaf=None):
    """`tree_map` for leaves of some types, or that a function picks."""
    return tree_map(only(type_or_types_or_pred, func), tree, is_leaf=is_leaf)


def tree_map_only_(type_or_types_or_pred, func, tree, is_leaf=None):
    """`tree_map_` for leaves of some types, or that a function picks."""
    return tree_map_(only(type_or_types_or_pred, func), tree, is_leaf=is_leaf)


def tree_all(pred, tree, is_leaf=None):
    """Whether `pred` holds for all leaves."""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred, tree, is_leaf=None):
    """Whether `pred` holds for some leaf."""
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(type_or_types, pred, tree, is_leaf=None):
    """Whether `pred` holds for all leaves of some types."""
    return all(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


def tree_any_only(type_or_types, pred, tree, is_leaf=None):
    """Whether `pred` holds for some leaf of some types."""
    return any(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


# ---- with places ---------------------------------------------------------------------------------

def tree_leaves_with_path(tree, is_leaf=None):
    """The leaves of a container in order, each with the tuple of places that leads to it.

    Raises: ValueError for a class that was registered without places.

    >>> tree_leaves_with_path({"a": [5]})
    [((MappingKey(key='a'), SequenceKey(idx=0)), 5)]
    """
    return list(placed(tree, (), is_leaf))


def placed(tree, path, is_leaf):
    """The leaves of the container to which a path leads, each with its path."""
    if tree_is_leaf(tree, is_leaf):
        yield path, tree
        return
    kind = kind_of(tree)
    flatten = NODES[kind].flatten_with_keys_fn
    if flatten is None:
        raise ValueError(f"{kind.__name__} was registered without flatten_with_keys_fn: its "
                         "children have no places")
    for key, child in flatten(tree)[0]:
        yield from placed(child, (*path, key), is_leaf)


def tree_flatten_with_path(tree, is_leaf=None):
    """The leaves of a container with the places that lead to them, and its structure.

    Raises: ValueError for a class that was registered without places.
    """
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(func, tree, *rests, is_leaf=None):
    """As `tree_map`, where `func` is given the tuple of places that leads to a leaf first.

    Raises: ValueError for a class that was registered without places, and another structure.

    >>> tree_map_with_path(lambda path, x: keystr(path) + "=" + str(x), {"a": [5, 6]})
    {'a': ["['a'][0]=5", "['a'][1]=6"]}
    """
    leaves, spec = tree_flatten_with_path(tree, is_leaf)
    return spec.unflatten(func(path, leaf, *others) for (path, leaf), *others in zip(
        leaves, *(spec.flatten_up_to(rest) for rest in rests)))


def keystr(kp):
    """A path of places as Python writes it: `['a'][0].b`."""
    return "".join(map(str, kp))


def key_get(obj, kp):
    """What lies in a container where a path of places leads to."""
    for key in kp:
        obj = key.get(obj)
    return obj
