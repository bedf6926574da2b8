"""A growing array of borrowed pointers to objects, without the checks of a Python list."""

from cpython.object cimport PyObject
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

cdef enum:
    FEW = 16

cdef struct Pointers:
    PyObject** items
    Py_ssize_t n, room
    PyObject* few[FEW]             # a few are stored inline


cdef inline void start(Pointers* array) noexcept:
    array.items = array.few
    array.n, array.room = 0, FEW


cdef inline void stop(Pointers* array) noexcept:
    if array.items != array.few:
        free(array.items)


cdef inline bint append(Pointers* array, PyObject* value) noexcept:
    """Adds a pointer; False where there is no memory for it."""
    cdef PyObject** grown
    if array.n == array.room:
        grown = <PyObject**>realloc(NULL if array.items == array.few else array.items,
                                    2 * array.room * sizeof(PyObject*))
        if grown == NULL:
            return False
        if array.items == array.few:
            memcpy(grown, array.few, FEW * sizeof(PyObject*))
        array.items = grown
        array.room *= 2
    array.items[array.n] = value
    array.n += 1
    return True
