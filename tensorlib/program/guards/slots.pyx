"""Slots: places outside of a function in which calls find one tensor after the other, such as the
attribute of a state. What is in one is given to each replay, as arguments are."""

cimport cython
from cpython.dict cimport PyDict_GetItemWithError
from cpython.object cimport PyObject

from tensorlib._core.tensor.tensor cimport Tensor
from tensorlib.program.guards.guarded cimport CellGuard, DictGuard, Guards

from tensorlib.program.guards.guarded import in_cell
from tensorlib.program.guards.values import MISSING


@cython.binding(False)            # methods check their `self`
cdef class Slot:
    """An attribute of `holder` ("attr"), what a dict has under a key ("key"), or what is in the
    cell of a closure ("cell")."""

    def __init__(self, holder, str kind, key):
        self.holder, self.kind, self.key = holder, kind, key

    cpdef object found(self):
        """What is there now; MISSING for nothing."""
        cdef PyObject* value
        if self.kind == "cell":
            return in_cell(self.holder)
        own = object.__getattribute__(self.holder, "__dict__") if self.kind == "attr" else (
            self.holder)
        value = PyDict_GetItemWithError(own, self.key)
        return MISSING if value == NULL else <object>value


def replaced_tensors(Guards guards):
    """The slots by what identifies them, where another tensor is now than the one that was read."""
    cdef dict found = {}
    for guard in guards.all:
        if type(guard) is CellGuard:
            if is_replaced((<CellGuard>guard).read, in_cell((<CellGuard>guard).holder)):
                add(found, (<CellGuard>guard).holder, "cell", None)
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
    """Whether a tensor stands in the place of another one, none of which has a gradient."""
    return before is not now and type(before) is Tensor and type(now) is Tensor and not (
        before.requires_grad or now.requires_grad)
