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
cdef Lock taking                     # of the profile that begins, ends, or gets an event
cdef list events = None              # of the profile, in the order in which they ended
cdef dict innermost = {}             # the event that is open on each thread
cdef dict making = {}                # what a thread is making: name, beginning, bytes then

# The places of an event's facts.
cdef enum Fact:
    NAME, BEGIN, END, PARENT, THREAD, STACK, BYTES, SHAPES, RESULT


cdef long long now() noexcept:
    """Nanoseconds of a clock that only goes forward, as `time.perf_counter_ns`."""
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
        if not code.co_filename.startswith((HERE, "<frozen ")):     # ours, and Python's imports
            lines.append((code.co_filename, frame.f_lineno, code.co_name))
            if not takes_stacks:
                break
        frame = frame.f_back
    return tuple(lines)


cdef list begin_event(str name, object tensors):
    """An event that begins now, on tensors whose shapes are recorded if the profile asks for it."""
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
    """Ends an event, which belongs to the profile from here on; nothing for None."""
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
    """Records that a tensor of sizes alone begins to be made, by the function `name`."""
    making[PyThread_get_thread_ident()] = (name, now(), in_use())
    return 0


cdef int end_making(str name, object made) except -1:
    """Makes an event of what `begin_making` noted, where that was for this function.

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
    """Ends the profile. What is still open on any thread does not belong to it."""
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
    """Ends what `begin` gave."""
    end_event(event)
