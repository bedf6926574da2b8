"""Settings that hold under `with`: they are entered and left in compiled code.

Python runs the handlers of signals between the instructions of its own code, so that Ctrl-C may end
an `__enter__` written in Python after it has set something, and an `__exit__` before it has set it
back. In compiled code there is no such place: a setting holds, or it does not.
"""

cimport cython


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

    def __cinit__(self, *args, **kwargs):
        self.left = []

    def __enter__(self):
        cdef tuple values = self.values, swaps = self.swaps, before
        before = swapped(swaps, values)
        self.left.append((swaps, before if self.earlier is None else self.earlier))
        return self if self.given is None else self.given

    def __exit__(self, *error):
        swaps, before = self.left.pop()
        swapped(swaps, before)


cdef tuple swapped(tuple swaps, tuple values):
    """What these swaps give for these values. Where one fails, the ones before it are undone."""
    cdef list before = []
    try:
        for swap, value in zip(swaps, values, strict=True):
            before.append(swap(value))
    except BaseException:
        for swap, value in zip(swaps, before):
            swap(value)
        raise
    return tuple(before)


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
