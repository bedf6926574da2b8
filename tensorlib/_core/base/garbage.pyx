"""Pauses of the garbage collector, which may overlap in several threads."""

from tensorlib._core.base.locks cimport Lock, drop, hold

from tensorlib._core.base.settings import Held

cdef extern from "Python.h":
    int PyGC_Enable()         # both return whether the collector was on
    int PyGC_Disable()

cdef Py_ssize_t pauses = 0          # that have begun and not ended, in all threads
cdef Lock counting                  # of both
cdef bint collected = False         # whether the collector was on before the first


def add_pauses(Py_ssize_t count):
    """Begins a pause (1) or ends one (-1); returns what undoes that. The collector is off during
    pauses; after the last one it is on again if it was before."""
    global pauses, collected
    cdef Py_ssize_t before
    hold(&counting)
    before = pauses
    pauses += count
    if pauses > 0:
        was_on = PyGC_Disable()      # also if other code switched it on since
        if before <= 0:
            collected = was_on
    elif before > 0 and collected:
        PyGC_Enable()
    drop(&counting)
    return -count


def without_collections():
    """A context in which the collector does not run, for code that makes many lasting objects."""
    return Held((add_pauses,), (1,))
