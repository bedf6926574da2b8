"""Guards: the values that a captured function read by name, and whether they are as they were."""

cimport cython
from cpython.dict cimport PyDict_GetItem, PyDict_Next, PyDict_Size
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from cpython.object cimport PyObject
from tensorlib.program.values cimport is_same

cdef extern from "Python.h":
    PyObject* PyCell_GET(PyObject* cell)

cdef object MISSING = object()


@cython.binding(False)            # methods check their `self`
cdef class DictGuard:
    """A guard of some names of a dict: attributes of an object, or globals of a module.

    all: what is under every name, in order, as it was when it was last looked at; so a small dict
    that nobody touched takes 2 ns for each name. None for a large one.
    whole: no other names may come to it.
    """

    def __init__(self, now, names, bint whole=False):
        self.now, self.names, self.whole = now, tuple(names), whole
        self.before = [now.get(name, MISSING) for name in self.names]
        self.all = list(now.values()) if len(now) <= 2 * len(self.names) + 8 else None

    cdef bint holds(self) except -1:
        """Whether what matters is as it was. One value that is the same as another will do."""
        cdef Py_ssize_t i
        cdef PyObject* found
        if self.all is not None and self.is_untouched():
            return True
        if self.whole and len(self.now) != len(self.names):
            return False
        for i in range(len(self.names)):
            found = PyDict_GetItem(self.now, self.names[i])
            if not is_same(self.before[i], MISSING if found == NULL else <object>found):
                return False
        if self.all is not None:
            self.all = list(self.now.values())
        return True

    cdef bint is_untouched(self) noexcept:
        """Whether each value is the very object that it was."""
        cdef Py_ssize_t place = 0, i = 0
        cdef PyObject* key
        cdef PyObject* value
        if PyDict_Size(self.now) != PyList_GET_SIZE(self.all):
            return False
        while PyDict_Next(self.now, &place, &key, &value):
            if value != <PyObject*>PyList_GET_ITEM(self.all, i):
                return False
            i += 1
        return True


@cython.binding(False)            # methods check their `self`
cdef class Guards:
    """All guards of a function. cells: of its closure. hooks: dicts of them by kind, of
    the modules that ran and of all modules."""

    def __init__(self, list cells, list dicts, list lists, list hooks):
        self.cells, self.dicts = cells, dicts
        self.lists = [(each, tuple(each)) for each in lists]
        self.contents = [content_of(<PyObject*>cell) for cell in cells]
        self.hooks = [(kinds, keys_in(kinds)) for kinds in map(list, map(dict.values, hooks))]

    cdef bint hold(self) except -1:
        cdef Py_ssize_t i
        cdef DictGuard each
        for i in range(len(self.cells)):
            if not is_same(self.contents[i], content_of(<PyObject*>self.cells[i])):
                return False
        for each in self.dicts:
            if not each.holds():
                return False
        for pair in self.lists:
            if not is_same(tuple(pair[0]), pair[1]):
                return False
        for pair in self.hooks:
            if not has_keys(<list>pair[0], <tuple>pair[1]):
                return False
        return True


cdef object content_of(PyObject* cell):
    """What is in a cell of a closure."""
    cdef PyObject* content = PyCell_GET(cell)
    return MISSING if content == NULL else <object>content


cdef tuple keys_in(list kinds):
    """Which hooks there are of some kinds: each has a key of its own."""
    return tuple([key for each in kinds for key in each])


cdef bint has_keys(list kinds, tuple keys) except -1:
    """Whether there are these hooks and no others. Mostly there are none, which is seen at once."""
    cdef Py_ssize_t count = 0
    for each in kinds:
        count += PyDict_Size(each)
    return count == len(keys) and (count == 0 or keys_in(kinds) == keys)
