"""Slots: places outside of a function in which calls find one tensor after the other, such as the
attribute of a state. What is in one is given to each replay, as arguments are."""

cimport cython
from cpython.dict cimport PyDict_GetItemWithError
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from cpython.object cimport PyObject

from tensorlib._core.tensor.tensor cimport Tensor
from tensorlib.program.guards.guarded cimport CellGuard, DictGuard, Guards, ListGuard

from tensorlib.program.guards.guarded import in_cell
from tensorlib.program.guards.values import MISSING


@cython.binding(False)            # methods check their `self`
cdef class Slot:
    """An attribute of `holder` ("attr"), what a dict has under a key ("key"), an element of a list
    ("item"), or what is in the cell of a closure ("cell"); of a tuple of `size` there the element
    `index`, if that is not negative."""

    def __init__(self, holder, str kind, key, Py_ssize_t index=-1, Py_ssize_t size=0):
        self.holder, self.kind, self.key, self.index, self.size = holder, kind, key, index, size

    cpdef object found(self):
        """What is there now; MISSING for nothing."""
        value = self.whole()
        if self.index < 0:
            return value
        if type(value) is not tuple or len(<tuple>value) != self.size:
            return MISSING
        return (<tuple>value)[self.index]

    cdef object whole(self):
        cdef PyObject* value
        if self.kind == "cell":
            return in_cell(self.holder)
        if self.kind == "item":
            return element_of(self.holder, self.key)
        own = object.__getattribute__(self.holder, "__dict__") if self.kind == "attr" else (
            self.holder)
        value = PyDict_GetItemWithError(own, self.key)
        return MISSING if value == NULL else <object>value

    def parts(self, value):
        """The slots of the tensors in a value that was found here, each with its tensor: of itself,
        or of the elements of a tuple. [] for any other value."""
        if type(value) is not tuple:
            return [(self, value)]
        return [(Slot(self.holder, self.kind, self.key, i, len(value)), x)
                for i, x in enumerate(value)]


cdef object element_of(holder, Py_ssize_t place):
    """An element of a list, whatever its class overrides; MISSING for none."""
    cdef Py_ssize_t size = PyList_GET_SIZE(holder)
    if place < 0:
        place += size
    return <object>PyList_GET_ITEM(holder, place) if 0 <= place < size else MISSING


def replaced_tensors(Guards guards):
    """The slots by what identifies them, where another tensor is now than the one that was read."""
    cdef dict found = {}
    for guard in guards.all:
        if type(guard) is CellGuard:
            if is_replaced((<CellGuard>guard).read, in_cell((<CellGuard>guard).holder)):
                add(found, (<CellGuard>guard).holder, "cell", None)
        elif type(guard) is ListGuard and (<ListGuard>guard).read:
            for place, before in (<ListGuard>guard).read.items():
                if is_replaced(before, element_of((<ListGuard>guard).holder, place)):
                    add(found, (<ListGuard>guard).holder, "item", place)
        elif type(guard) is DictGuard:
            owner = (<DictGuard>guard).owner
            for name, before in (<DictGuard>guard).read.items():
                now = dict.get((<DictGuard>guard).holder, name, MISSING)
                if not is_replaced(before, now):
                    continue
                if owner is None:
                    add(found, (<DictGuard>guard).holder, "key", name)
                elif not isinstance(owner, Tensor):      # which tells a capture of its attributes
                    add(found, owner, "attr", name)
    return found


cdef int add(dict found, holder, str kind, key) except -1:
    """Adds a slot, under what identifies a read of it."""
    found[id(holder), kind, key] = Slot(holder, kind, key)
    return 0


cdef bint is_replaced(before, now) except -1:
    """Whether a tensor stands in the place of another one, none of which has a gradient, or a
    tuple of tensors in that of another one."""
    cdef Py_ssize_t i
    if type(before) is tuple and type(now) is tuple and before is not now:
        if len(<tuple>before) != len(<tuple>now) or not before:
            return False
        for x, y in zip(<tuple>before, <tuple>now):
            if type(x) is not Tensor or type(y) is not Tensor or x.requires_grad or y.requires_grad:
                return False
        return True
    return before is not now and type(before) is Tensor and type(now) is Tensor and not (
        before.requires_grad or now.requires_grad)
