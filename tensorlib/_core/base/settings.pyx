"""Settings that a `with` statement applies, entered and left in compiled code.

Python runs the handlers of signals between the instructions of its own code, so that Ctrl-C may end
an `__enter__` written in Python after it has set something, and an `__exit__` before it has set it
back. In compiled code there is no such point: a setting either applies or not. In case memory runs
out meanwhile, a setting is recorded before it is applied, and restoring it is tried until it
succeeds.
"""

cimport cython

cdef enum:
    MOST_TRIES = 1000


@cython.binding(False)            # methods check their `self`
@cython.embedsignature(True)
@cython.embedsignature.format("clinic")
cdef class Setting:
    """A context under which something of this thread has another value.

    A class of its own says what, by its attributes or properties `swaps` and `values`: each swap is
    a compiled function that sets a value and returns the one before. Nothing is set yet while
    `values` is asked for. earlier: what is set back at the end, where the setting held before the
    block began. given: what `as` names, by default the setting itself.
    """

    def __enter__(self):
        self.enter()
        return self if self.given is None else self.given

    def __exit__(self, kind=None, error=None, trace=None):
        self.leave()

    cdef int enter(self) except -1:
        """Where a swap fails, the ones before it are undone."""
        cdef tuple values = self.values, swaps = self.swaps
        cdef Py_ssize_t i = 0, n = len(swaps)
        cdef list before = [None] * n
        cdef list entry = [swaps, before if self.earlier is None else self.earlier, self.entered]
        if len(values) != n:
            raise ValueError(f"a setting has {n} swaps and {len(values)} values")
        self.entered = entry
        try:
            while i < n:
                before[i] = swaps[i](values[i])
                i += 1
        except BaseException:
            self.entered = entry[2]
            undo(swaps, before, i)
            raise
        return 0

    cdef int leave(self) except -1:
        cdef list entry = self.entered
        self.entered = entry[2]
        undo(entry[0], entry[1], len(entry[0]))
        return 0


cdef int undo(tuple swaps, values, Py_ssize_t n) except -1:
    """Sets n values back, the first one first: gradients are switched on where no inference mode
    is any more. Even that may want memory: then it is tried again."""
    cdef int tries = 0
    cdef Py_ssize_t i = 0
    while i < n:
        try:
            swaps[i](values[i])
            i += 1
        except MemoryError:
            tries += 1
            if tries == MOST_TRIES:
                raise
    return 0


class Held(Setting):
    """A context under which these swaps have set these values."""

    def __init__(self, swaps, values):
        self.swaps, self.values = swaps, values


@cython.final
@cython.binding(False)
cdef class AttributeSwap:
    """The swap of an attribute of an object."""

    cdef object owner
    cdef str name

    def __cinit__(self, owner, str name not None):
        self.owner, self.name = owner, name

    def __call__(self, value):
        before = getattr(self.owner, self.name)
        setattr(self.owner, self.name, value)
        return before


ABSENT = object()        # the value of an item that is not there


@cython.final
@cython.binding(False)
cdef class ItemSwap:
    """The swap of an item of a dict."""

    cdef object owner, key

    def __cinit__(self, owner, key):
        self.owner, self.key = owner, key

    def __call__(self, value):
        before = self.owner.get(self.key, ABSENT)
        if value is ABSENT:
            self.owner.pop(self.key, None)
        else:
            self.owner[self.key] = value
        return before
