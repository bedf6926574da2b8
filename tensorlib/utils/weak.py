"""Mappings whose keys are objects themselves, equal or not, and that let go of them.

>>> from tensorlib.utils.weak import WeakIdKeyDictionary
>>> x = tensorlib.ones(2)
>>> notes = WeakIdKeyDictionary({x: "first"})
>>> notes[x], tensorlib.ones(2) in notes
('first', False)
>>> del x
>>> len(notes)
0
"""

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from copy import deepcopy
from typing import Any
from weakref import ref

__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary"]


class WeakIdRef(ref[Any]):
    """A weak reference that is equal to others of the same object, alive or not."""

    __slots__ = ("_id",)

    def __new__(cls, key: Any, callback: Callable[[Any], Any] | None = None) -> "WeakIdRef":
        made = super().__new__(cls, key, callback)
        made._id = id(key)
        return made

    def __init__(self, key: Any, callback: Callable[[Any], Any] | None = None) -> None:
        super().__init__(key, callback)

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        mine, theirs = self(), other() if isinstance(other, ref) else None
        return self is other if mine is None or theirs is None else mine is theirs


class WeakIdKeyDictionary(MutableMapping[Any, Any]):
    """A mapping from objects themselves; what is kept of one goes when it does."""

    def __init__(self, dict: Mapping[Any, Any] | None = None, ref_type: Any = WeakIdRef) -> None:
        self.data: Any = {}
        self.ref_type = ref_type
        self.update(dict or {})

    def __getitem__(self, key: Any) -> Any:
        return self.data[self.ref_type(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        data = self.data                       # not the mapping, which the callback would keep
        self.data[self.ref_type(key, lambda gone: data.pop(gone, None))] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[self.ref_type(key)]

    def __contains__(self, key: object) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:                      # there are no weak references to it
            return False

    def __iter__(self) -> Iterator[Any]:
        for each in list(self.data):
            key = each()
            if key is not None:
                yield key

    def __len__(self) -> int:
        return len(self.data)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self)}>"

    def keyrefs(self) -> list[Any]:
        """The weak references to the keys, some of which may be gone by the time they are used."""
        return list(self.data)

    def copy(self) -> "WeakIdKeyDictionary":
        """A mapping of the same objects."""
        return type(self)(self, self.ref_type)

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> "WeakIdKeyDictionary":
        copies = type(self)(ref_type=self.ref_type)
        for key, value in self.items():        # tensors are not the keys of a dict: `==` is theirs
            copies[key] = deepcopy(value, memo)
        return copies


WeakTensorKeyDictionary = WeakIdKeyDictionary


class TensorWeakRef:
    """A weak reference to a tensor: a call gives it, or None when it is gone."""

    __slots__ = ("ref",)

    def __init__(self, tensor: Any) -> None:
        self.ref = WeakIdRef(tensor)

    def __call__(self) -> Any:
        return self.ref()
