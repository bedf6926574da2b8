"""Pytrees: nested tuples, lists, named tuples and dicts of leaves, and None, which has none.

`flatten` gives the leaves in order, and the structure, from which `unflatten` makes the container
again with other leaves. A dict's leaves are in the order of its keys as they were put in.

The transforms also take the containers of `NODES`, those of users among them. Programs do not: a
container of theirs holds variables, of which functions of users can make nothing.
"""

from collections import OrderedDict
from itertools import accumulate

import numpy as np

from tensorlib._core.arrays.convert import tensor
from tensorlib._core.base.error_names import type_name
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.autograd.containers import NODES

PLAIN = {tuple, list, dict, OrderedDict}        # whose structures this module knows itself


class Structure:
    """What a container is without its leaves. Two compare equal where leaves fit either.

    kind: the container's type, or None for a leaf. keys: of a dict. ordered: whether that is an
    OrderedDict, which fits where a dict does. build: what makes the container, of a subclass that
    knows better than this module.
    """

    build = None

    def __init__(self, kind, keys=(), children=(), ordered=False):
        self.kind = kind
        self.ordered = ordered
        self.keys = tuple(keys)
        self.children = tuple(children)
        self.count = sum([child.count for child in children]) if kind is not None else 1

    def __eq__(self, other):
        if not isinstance(other, Structure) or self.kind is not other.kind:
            return False
        if self.kind is dict:
            mine, others = dict(zip(self.keys, self.children)), dict(
                zip(other.keys, other.children))
            return mine == others
        return self.children == other.children

    __hash__ = None

    def __repr__(self):
        if self.kind is None:
            return "*"
        if self is NOTHING:
            return "None"
        if self.kind is dict:
            inside = ", ".join(f"{k!r}: {c!r}" for k, c in zip(self.keys, self.children))
            return f"{{{inside}}}"
        inside = ", ".join(map(repr, self.children))
        if self.kind is list:
            return f"[{inside}]"
        name = "" if self.kind is tuple else self.kind.__name__
        return f"{name}({inside}{',' if len(self.children) == 1 else ''})"


class NodeStructure(Structure):
    """That of a container of `NODES`. context: what it has beside its children."""

    def __init__(self, kind, node, children, context):
        super().__init__(kind, (), children)
        self.node, self.context = node, context

    def __eq__(self, other):
        return (type(other) is NodeStructure and self.kind is other.kind
                and self.context == other.context and self.children == other.children)

    __hash__ = None

    def __repr__(self):
        return f"{self.kind.__name__}({self.context}, {list(self.children)})"


LEAF = Structure(None)
NOTHING = Structure(type(None))
ONE = Structure(tuple, (), (LEAF,))         # of one argument, the common case


def flatten(container, what="flatten: the container", nodes=False):
    """The leaves of a container in order, and its structure.

    nodes: whether containers of `NODES` are none of the leaves.
    Raises: RecursionError that says `what` it is where it contains itself.
    """
    if isinstance(container, Tensor):
        return [container], LEAF
    if type(container) is tuple and len(container) == 1 and isinstance(container[0], Tensor):
        return [container[0]], ONE
    leaves = []
    try:
        return leaves, _collect(container, leaves, nodes)
    except RecursionError:
        raise RecursionError(f"{what} must not contain itself, nor be nested that deep") from None


def _collect(value, leaves, nodes):
    """The structure of a value, whose leaves are added to `leaves`."""
    if value is None:
        return NOTHING
    kind = type(value)
    if nodes and kind not in PLAIN and kind in NODES:
        children, context = NODES[kind].flatten_fn(value)
        return NodeStructure(kind, NODES[kind], [_collect(x, leaves, nodes) for x in children],
                             context)
    if isinstance(value, dict):
        return Structure(dict, value, [_collect(x, leaves, nodes) for x in value.values()],
                         kind is OrderedDict)
    if isinstance(value, (tuple, list)):
        return Structure(kind, (), [_collect(x, leaves, nodes) for x in value])
    leaves.append(value)
    return LEAF


def unflatten(structure, leaves):
    """The container of this structure with these leaves."""
    if structure is LEAF:
        return leaves[0]
    if structure.build is not None:
        return structure.build(leaves)
    return (leaves[0],) if structure is ONE else _build(structure, iter(leaves))


def _build(structure, leaves):
    """The container of this structure with the next of the leaves."""
    kind = structure.kind
    if kind is None:
        return next(leaves)
    if structure is NOTHING:
        return None
    children = [_build(child, leaves) for child in structure.children]
    if kind is dict:
        return (OrderedDict if structure.ordered else dict)(zip(structure.keys, children))
    if type(structure) is NodeStructure:
        return structure.node.unflatten_fn(children, structure.context)
    return kind(*children) if hasattr(kind, "_fields") else kind(children)


def flatten_as(name, what, container, structure, like):
    """The leaves of a container that must have this structure, in its order.

    Raises: RuntimeError that names the transform, what the container is, and what it must be like.
    """
    leaves, found = flatten(container, f"{name}: {what}", nodes=True)
    if found != structure:
        raise RuntimeError(f"{name}: {what} must have the structure of {like}: expected "
                           f"{structure}, got {found}")
    return [leaves[i] for i in _order(found, structure)]


def _order(found, structure, first=0):
    """The positions of the leaves of `structure` in `found`, since dicts may differ in order.

    first: the position of the first leaf of `found`.
    """
    if structure.kind is None:
        return [first]
    parts = list(zip(found.children, accumulate(
        [child.count for child in found.children], initial=first)))
    if structure.kind is dict:
        of_key = dict(zip(found.keys, parts))
        parts = [of_key[key] for key in structure.keys]
    return [i for (part, begin), child in zip(parts, structure.children)
            for i in _order(part, child, begin)]


def as_leaf(value, dtype=None):
    """A number or an array of NumPy's as a new tensor; anything else as it is.

    Python ints become floating tensors. Arrays are copied, since their owner may write to them
    while a graph needs the values.
    """
    if isinstance(value, Tensor) or not isinstance(
            value, (int, float, complex, np.generic, np.ndarray)):
        return value
    return tensor(float(value) if type(value) is int else value, dtype=dtype)


def flatten_tensors(name, what, container):
    """The leaves of a container of tensors, and its structure. Raises: RuntimeError for others."""
    leaves, structure = flatten(container, f"{name}: {what}", nodes=True)
    leaves = [as_leaf(leaf) for leaf in leaves]
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(f"{name}: {what} must be Tensors or containers of Tensors; got "
                               f"{type_name(leaf)}")
    return leaves, structure
