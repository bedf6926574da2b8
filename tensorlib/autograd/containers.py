"""The kinds of containers that are taken apart and made again by functions, and places in them.

Users add kinds by `tensorlib.utils._pytree.register_pytree_node`.
"""

from collections import OrderedDict, defaultdict, deque, namedtuple
from typing import Any, NamedTuple

from tensorlib._core.base.registry import Registry
from tensorlib._core.base.shape import Size


class Node(NamedTuple):
    """A kind of container: to its children and what else it has, and back.

    flatten_with_keys_fn: as `flatten_fn`, where each child comes with its place; None where
    children have no places by which they could be found.
    """

    flatten_fn: object
    unflatten_fn: object
    flatten_with_keys_fn: object = None


# ---- places in a container -----------------------------------------------------------------------

class SequenceKey(NamedTuple):
    """The place of an item in a sequence."""

    idx: int

    def __str__(self):
        return f"[{self.idx!r}]"

    def get(self, sequence):
        """The item at this place."""
        return sequence[self.idx]


class MappingKey(NamedTuple):
    """The place of a value in a dict."""

    key: Any

    def __str__(self):
        return f"[{self.key!r}]"

    def get(self, mapping):
        """The value at this place."""
        return mapping[self.key]


class GetAttrKey(NamedTuple):
    """The place of an attribute in an object."""

    name: str

    def __str__(self):
        return f".{self.name}"

    def get(self, obj):
        """The attribute."""
        return getattr(obj, self.name)


def of_dict(x):
    """The values of a dict, and its keys."""
    return list(x.values()), list(x)


def of_defaultdict(x):
    """The values of a defaultdict, and what makes it one."""
    return list(x.values()), [x.default_factory, list(x)]


def with_indices(flatten):
    """What flattens a sequence into its places and items."""
    def flatten_with_keys(x):
        children, context = flatten(x)
        return [(SequenceKey(i), child) for i, child in enumerate(children)], context
    return flatten_with_keys


def with_names(x):
    """The names and items of a named tuple, and its class."""
    return [(GetAttrKey(name), child) for name, child in zip(x._fields, x)], type(x)


def with_mapping_keys(flatten):
    """What flattens a dict into its places and values."""
    def flatten_with_keys(x):
        return [(MappingKey(key), child) for key, child in x.items()], flatten(x)[1]
    return flatten_with_keys


def sequence(context, back):
    """The kind of a sequence, by what else it has than items, and what makes one of both."""
    def flatten(x):
        return list(x), context(x)
    return Node(flatten, back, with_indices(flatten))


def mapping(flatten, back):
    """The kind of a mapping, by what flattens it, and what makes one of both."""
    return Node(flatten, back, with_mapping_keys(flatten))


def nothing(x):
    """The context of what has items alone."""
    return None


NODES = Registry({
    tuple: sequence(nothing, lambda children, _: tuple(children)),
    Size: sequence(nothing, lambda children, _: tuple(children)),  # as PyTorch
    list: sequence(nothing, lambda children, _: list(children)),
    dict: mapping(of_dict, lambda children, keys: dict(zip(keys, children))),
    OrderedDict: mapping(of_dict, lambda children, keys: OrderedDict(zip(keys, children))),
    defaultdict: mapping(of_defaultdict,
                         lambda children, of: defaultdict(of[0], zip(of[1], children))),
    deque: sequence(lambda x: x.maxlen, lambda children, most: deque(children, most)),
    namedtuple: Node(lambda x: (list(x), type(x)), lambda children, kind: kind(*children),
                     with_names),
})
