# What looks at operations before they run, as bits. It is 0 nearly always, and then one look at it
# is all that an operation pays for captures, profiles and tensors without memory.
cdef enum:
    CAPTURES = 1        # a thread has a capture attached
    PROFILES = 2        # a profile is being taken
    META = 4            # this process has had a tensor without memory

cdef int watched
