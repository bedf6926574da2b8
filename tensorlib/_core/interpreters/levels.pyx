"""The batches that a thread maps over: the levels of `vmap` that run, the outermost first."""

from cpython.object cimport PyObject
from cpython.ref cimport Py_XDECREF, Py_XINCREF

cdef extern from * nogil:
    """
    static __thread PyObject* thread_levels = NULL;          /* owned, a tuple; NULL: none */
    static PyObject* current_levels(void) { return thread_levels; }
    static void store_levels(PyObject* levels) { thread_levels = levels; }
    """
    PyObject* current_levels()
    void store_levels(PyObject* levels)


cdef bint maps_over_batches() noexcept:
    """Whether this thread runs a function for the examples of a batch."""
    return current_levels() != NULL


def running_levels():
    """The batches that this thread maps over now, the outermost first."""
    cdef PyObject* held = current_levels()
    return () if held == NULL else <object>held


def set_levels(tuple levels not None):
    """Sets the batches that this thread maps over, and returns those before.

    It does not allocate, so that restoring them cannot fail.
    """
    cdef PyObject* held = current_levels()
    before = () if held == NULL else <object>held
    cdef PyObject* wanted = <PyObject*>levels if levels else NULL
    Py_XINCREF(wanted)
    store_levels(wanted)
    Py_XDECREF(held)
    return before
