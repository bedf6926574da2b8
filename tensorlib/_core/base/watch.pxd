# What observes operations before they run, as bits. It is 0 nearly always, and then one look at it
# is all that an operation pays for interpreters, profiles and tensors without memory.
cdef enum:
    INTERPRETERS = 1    # a thread has an interpreter on its stack
    PROFILES = 2        # a profile is being taken
    META = 4            # this process has had a tensor without memory
    OVERRIDES = 8       # there is a subclass of Tensor that takes part in operations
    FUNCTIONS = 16      # a thread has an interpreter that is given functions as they are called

cdef int watched
