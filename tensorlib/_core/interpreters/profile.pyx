"""The events of a profile: which operations ran, when, from where, on how much memory.

An event begins where an operation is entered and ends where it is left, by an error too. Events of
one thread lie inside of each other, as calls do.
"""

from cpython.object cimport PyObject
from libc.time cimport time_t

from tensorlib._core.base cimport watch
from tensorlib._core.base.locks cimport Lock, add_bits, drop, hold, take_bits
from tensorlib._core.tensor.tensor cimport Tensor

import os

from tensorlib import _core
from tensorlib._core.base.storage import in_use

cdef extern from "<time.h>" nogil:
    struct timespec:
        time_t tv_sec
        long tv_nsec
    int CLOCK_MONOTONIC
    int clock_gettime(int clock, timespec* time)

cdef extern from "Python.h":
    struct Frame "_frame"
    Frame* PyEval_GetFrame()
    unsigned long PyThread_get_thread_ident()

cdef str HERE = os.path.dirname(_core.__path__[0]) + os.sep
cdef bint takes_shapes = False, takes_stacks = False
cdef Lock taking                     # held while a profile begins, ends, or gets an event
cdef list events = None              # of the profile, in the order in which they ended
cdef dict innermost = {}             # the event that is open on each thread
cdef dict making = {}                # tensors being made by threads: name, start, bytes then

# The fields of an event, by position.
cdef enum Fact:
    NAME, BEGIN, END, PARENT, THREAD, STACK, BYTES, SHAPES, RESULT


cdef long long now() noexcept:
    """Nanoseconds of a monotonic clock, that of `time.perf_counter_ns`."""
    cdef timespec time
    clock_gettime(CLOCK_MONOTONIC, &time)
    return time.tv_sec * 1_000_000_000LL + time.tv_nsec


cdef tuple users_lines():
    """Where the user's code is: (file, line, function) of the innermost frame, or of all."""
    cdef Frame* found = PyEval_GetFrame()
    cdef list lines = []
    frame = None if found == NULL else <object><PyObject*>found
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith((HERE, "<frozen ")):     # ours, or of imports
            lines.append((code.co_filename, frame.f_lineno, code.co_name))
            if not takes_stacks:
                break
        frame = frame.f_back
    return tuple(lines)


cdef list begin_event(str name, object tensors):
    """Begins an event; the shapes of the tensors are recorded if the profile asks for it."""
    cdef unsigned long thread = PyThread_get_thread_ident()
    cdef list shapes = None, event
    if takes_shapes:
        shapes = [tuple(x.shape) for x in tensors if isinstance(x, Tensor)]
    event = [name, 0, 0, innermost.get(thread), thread, users_lines(), in_use(), shapes, None]
    innermost[thread] = event
    event[BEGIN] = now()
    return event


cdef int note_result(list event, object out) except -1:
    """Records the shape of an operation's (first) result, if shapes are recorded."""
    if event is None:
        return 0
    if takes_shapes and isinstance(out, tuple) and out:
        out = out[0]
    if takes_shapes and isinstance(out, Tensor):
        event[RESULT] = tuple(out.shape)
    return 0


cdef int end_event(list event) except -1:
    """Ends an event and adds it to the profile; does nothing for None."""
    if event is None:
        return 0
    event[END] = now()
    event[BYTES] = in_use() - event[BYTES]
    if event[PARENT] is None:
        innermost.pop(event[THREAD], None)
    else:
        innermost[event[THREAD]] = event[PARENT]
    hold(&taking)
    try:
        if events is not None:
            events.append(event)
    finally:
        drop(&taking)
    return 0


cdef int begin_making(str name) except -1:
    """Records that the function `name` begins to make a tensor."""
    making[PyThread_get_thread_ident()] = (name, now(), in_use())
    return 0


cdef int end_making(str name, object made) except -1:
    """Adds the event that `begin_making` began, if that was for this function.

    So an error in between leaves no event open.
    """
    cdef long long end = now()
    cdef object noted = making.pop(PyThread_get_thread_ident(), None)
    cdef list event
    if noted is None or noted[0] != name:
        return 0
    event = begin_event(name, ())
    event[BEGIN], event[BYTES] = noted[1:]
    note_result(event, made)
    end_event(event)
    event[END] = end
    return 0


def observe(bint shapes=False, bint stacks=False):
    """Begins a profile; returns the list to which each event is added as it ends.

    shapes: those of the tensors are recorded. stacks: all frames of the user's code, not one.
    Raises: RuntimeError while there is another.
    """
    global observing, takes_shapes, takes_stacks, events
    cdef list fresh = []
    cdef bint refused
    hold(&taking)
    refused = observing
    if not refused:
        events, takes_shapes, takes_stacks, observing = fresh, shapes, stacks, True
    drop(&taking)
    if refused:
        raise RuntimeError("profile: another profile is being taken; stop it first")
    innermost.clear()
    making.clear()
    add_bits(&watch.watched, watch.PROFILES)
    return fresh


def leave_alone():
    """Ends the profile. Events that are still open on any thread are dropped."""
    global observing, events
    cdef list before
    hold(&taking)
    before = events
    observing, events = False, None
    drop(&taking)
    take_bits(&watch.watched, watch.PROFILES)
    innermost.clear()
    making.clear()


def is_observed():
    """Whether a profile is being taken."""
    return observing


def begin(str name):
    """Begins an event of the user's own, while a profile is taken; else None."""
    return begin_event(name, ()) if observing else None


def end(list event or None):
    """Ends an event that `begin` returned."""
    end_event(event)
