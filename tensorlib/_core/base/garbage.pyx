"""Pauses of the garbage collector, which may overlap in several threads."""

from tensorlib._core.base.locks cimport Lock, drop, hold

from tensorlib._core.base.settings import Held

cdef extern from "Python.h":
    int PyGC_Enable()         # both give whether collections were on
    int PyGC_Disable()

cdef Py_ssize_t pauses = 0          # of this moment, in all threads
cdef Lock counting                  # of both
cdef bint collected = False         # whether collections were on before the first of them


def add_pauses(Py_ssize_t count):
    """Begins a pause (1) or ends one (-1); gives what undoes that. Collections are off while there
    is a pause, and after the last one on if they were on before."""
    global pauses, collected
    cdef Py_ssize_t before
    hold(&counting)
    before = pauses
    pauses += count
    if pauses > 0:
        was_on = PyGC_Disable()      # also where somebody switched them on since the first pause
        if before <= 0:
            collected = was_on
    elif before > 0 and collected:
        PyGC_Enable()
    drop(&counting)
    return -count


def without_collections():
    """A context under which the collector does not run on what is made, of which nearly all
    stays."""
    return Held((add_pauses,), (1,))
