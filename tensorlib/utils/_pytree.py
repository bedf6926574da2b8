"""Containers as their leaves and their structure, under the names of `torch.utils._pytree`.

>>> from tensorlib.utils._pytree import tree_map
>>> tree_map(lambda x: 2 * x, {"a": [1, 2], "b": (3,)})
{'a': [2, 4], 'b': (6,)}

Tuples, named tuples, sizes, lists, dicts, ordered and default dicts and deques are containers, and
those of `register_pytree_node`; all else, also None, is a leaf.
"""

from collections import OrderedDict, defaultdict, deque, namedtuple
from typing import Any, NamedTuple

from tensorlib._core.base.registry import Registry
from tensorlib._core.base.shape import Size
from tensorlib.ops.foreign import members

__all__ = [
    "LeafSpec", "TreeSpec", "register_pytree_node", "tree_all", "tree_all_only", "tree_any",
    "tree_any_only", "tree_flatten", "tree_is_leaf", "tree_iter", "tree_leaves", "tree_map",
    "tree_map_", "tree_map_only", "tree_map_only_", "tree_structure", "tree_unflatten",
]


class Node(NamedTuple):
    """A kind of container: to its children and what else it has, and back."""

    flatten_fn: object
    unflatten_fn: object


def of_dict(x):
    return list(x.values()), list(x)


NODES = Registry({
    tuple: Node(lambda x: (list(x), None), lambda children, _: tuple(children)),
    Size: Node(lambda x: (list(x), None), lambda children, _: tuple(children)),  # as PyTorch
    list: Node(lambda x: (list(x), None), lambda children, _: list(children)),
    dict: Node(of_dict, lambda children, keys: dict(zip(keys, children))),
    OrderedDict: Node(of_dict, lambda children, keys: OrderedDict(zip(keys, children))),
    defaultdict: Node(lambda x: (list(x.values()), [x.default_factory, list(x)]),
                      lambda children, of: defaultdict(of[0], zip(of[1], children))),
    deque: Node(lambda x: (list(x), x.maxlen), lambda children, most: deque(children, most)),
    namedtuple: Node(lambda x: (list(x), type(x)), lambda children, kind: kind(*children)),
})


def register_pytree_node(cls, flatten_fn, unflatten_fn, **names):
    """Makes a class a container: `flatten_fn` gives its children and a context, `unflatten_fn`
    makes it of both. Raises: ValueError for one that is registered.
    """
    if cls in NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    NODES[cls] = Node(flatten_fn, unflatten_fn)


def kind_of(tree):
    """The kind of a container, or None of a leaf."""
    kind = type(tree)
    if kind in NODES:
        return kind
    return namedtuple if isinstance(tree, tuple) and hasattr(kind, "_fields") else None


class MappingKey(NamedTuple):
    """A place in a dict."""

    key: Any


# PyTorch's names, by which libraries register containers that are like these
SUPPORTED_NODES, _get_node_type, Context, PyTree = NODES, kind_of, Any, Any
_dict_flatten, _dict_unflatten = NODES[dict]
_list_flatten, _list_unflatten = NODES[list]
_tuple_flatten, _tuple_unflatten = NODES[tuple]
_namedtuple_flatten, _namedtuple_unflatten = NODES[namedtuple]
_register_pytree_node = register_pytree_node


def _dict_flatten_with_keys(d):
    """The places and values of a dict, and its keys."""
    return [(MappingKey(key), value) for key, value in d.items()], list(d)


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
