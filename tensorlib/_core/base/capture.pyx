"""Where a capture attaches: it is offered every operation, before that runs.

A capture is an object of some methods. `operation(op, name, args, kwargs)` does an operation in the
place of the library and returns what it gives; it may have the library do it, since it is not
offered what it does itself. `composed` and `function` do the same for composed operations and for
an `autograd.Function`. `leaving(name, x)` is told that elements of a tensor become numbers of
Python's or memory of another library, by the function of this name; it may raise. One that has a
method `made(x)` is told of a tensor that was made of numbers: a constant. One that has
`beside(name, x)` is told of what changes tensors, generators or graphs and is no operation. A
thread has at most one capture. One that has `parsed(index, key)` is told of the keys of indices.
"""

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF

from tensorlib._core.base cimport watch

cdef extern from * nogil:
    """
    static __thread void* thread_capture = 0;            /* owned; 0: there is none */
    static void* current_capture(void) { return thread_capture; }
    static void store_capture(void* capture) { thread_capture = capture; }
    """
    void* current_capture()
    void store_capture(void* capture)


def set_capture(capture):
    """Attaches a capture (None: detaches it) to this thread; returns the one before."""
    global attached
    cdef PyObject* held = <PyObject*>current_capture()
    before = None if held == NULL else <object>held
    attached += (capture is not None) - (before is not None)
    watch.watched = watch.watched & ~watch.CAPTURES | (watch.CAPTURES if attached else 0)
    if capture is not None:
        Py_INCREF(capture)
    store_capture(NULL if capture is None else <PyObject*>capture)
    Py_XDECREF(held)
    return before


def current():
    """The capture that is attached to this thread, or None."""
    cdef PyObject* held = <PyObject*>current_capture()
    return None if held == NULL else <object>held


cdef object offered(object op, str name, tuple args, dict kwargs):
    """What the capture of this thread gives for an operation; NotImplemented where there is none.

    `args` are canonical: the operation's tensors, then its attributes. `name` is that of the form
    that was called: the operation's own, or with `_` in place.
    """
    cdef object capture = set_capture(None)
    if capture is None:
        return NotImplemented
    try:
        return capture.operation(op, name, args, {} if kwargs is None else kwargs)
    finally:
        set_capture(capture)


cdef int made(object x) except -1:
    """Tells the capture of this thread of a tensor that was made of numbers."""
    told = getattr(current(), "made", None)
    if told is not None:
        told(x)
    return 0


cpdef int leaving(str name, object x) except -1:
    """Tells the capture of this thread that elements of a tensor leave the library."""
    cdef object capture = set_capture(None)
    if capture is None:
        return 0
    try:
        capture.leaving(name, x)
    finally:
        set_capture(capture)
    return 0


cpdef int beside(str name, object x=None) except -1:
    """Tells the capture of this thread of what is done to `x` and is no operation."""
    told = getattr(current(), "beside", None)
    if told is not None:
        told(name, x)
    return 0
