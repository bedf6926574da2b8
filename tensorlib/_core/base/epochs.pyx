"""Memory that is in use without the GIL.

A kernel that runs without the GIL holds addresses, and meanwhile another thread may replace the
memory of a tensor (`x.data = y`). So code that releases the GIL marks the beginning and the end of
its work, and memory that a tensor releases is kept until all work that had begun by then has ended
(epoch-based reclamation). Work is counted in two alternating epochs: the list of an epoch waits
only for the work of that epoch, since an epoch begins only when the work of the one before the last
is over. Source: Fraser, "Practical lock-freedom", University of Cambridge, 2004.

That is enough for a kernel, but not for an operation of several passes, or one that copies some of
its inputs first: later passes would use sizes that are out of date. So the first time that a
tensor is to change while other threads work, the change waits until none does, and from then on
operations hold their inputs (`recording.apply_general`). Programs that never do this pay for one
test.
"""

import os

from tensorlib._core.base.locks cimport FREE_THREADED, Lock, drop, hold

cdef Lock work                       # of what follows
cdef Py_ssize_t[2] at_work
cdef tuple retired = ([], [])
cdef int this_epoch = 0


cdef int work_begins() noexcept:
    """Records that the caller is about to release the GIL; returns the argument of `work_ends`."""
    cdef int epoch
    hold(&work)
    epoch = this_epoch
    at_work[epoch] += 1
    drop(&work)
    return epoch


cdef int work_ends(int epoch) except -1:
    """Records that the caller has the GIL again, and frees memory that waited only for it."""
    global this_epoch
    if FREE_THREADED:
        return work_ends_alone(epoch)
    at_work[epoch] -= 1
    if at_work[epoch] == 0 and epoch != this_epoch:
        if retired[this_epoch]:
            this_epoch = epoch
        (<list>retired[epoch]).clear()
    return 0


cdef int work_ends_alone(int epoch) except -1:
    """`work_ends` without a GIL: memory is freed after the lock is released."""
    global this_epoch
    cdef list over = None, waiting = <list>retired[epoch]
    hold(&work)
    at_work[epoch] -= 1
    if at_work[epoch] == 0 and epoch != this_epoch:
        if retired[this_epoch]:
            this_epoch = epoch
        try:
            over = waiting[:]
            del waiting[:]
        finally:
            drop(&work)
        return 0
    drop(&work)
    return 0


cdef int retire(Storage storage) except -1:
    """Keeps a storage that a tensor is about to release as long as work may be using it."""
    global this_epoch
    hold(&work)
    try:
        if at_work[0] or at_work[1]:
            (<list>retired[this_epoch]).append(storage)
            if at_work[1 - this_epoch] == 0:
                this_epoch = 1 - this_epoch
    finally:
        drop(&work)
    return 0


cdef extern from "unistd.h" nogil:
    int usleep(unsigned int microseconds)

cdef enum:
    POLL = 50            # microseconds
    MOST_POLLS = 20000   # one second: new work may begin for ever, or it is the caller's own


cdef int before_change() except -1:
    """To be called, with the GIL, before the memory of a tensor is replaced."""
    global unsteady
    cdef int polls = 0
    if unsteady:
        return 0
    while (at_work[0] or at_work[1]) and polls < MOST_POLLS:
        unsteady = True
        polls += 1
        with nogil:
            usleep(POLL)
    return 0


def forget_work():
    """Resets the counts in a forked child, which has no other threads."""
    at_work[0] = at_work[1] = 0
    (<list>retired[0]).clear()
    (<list>retired[1]).clear()


os.register_at_fork(after_in_child=forget_work)
