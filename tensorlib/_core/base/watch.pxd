# What observes operations before they run, as bits. Nearly always it is 0, and then reading it is
# the only cost of interpreters, profiles and tensors without memory.
cdef enum:
    INTERPRETERS = 1    # a thread has an interpreter on its stack
    PROFILES = 2        # a profile is being taken
    META = 4            # this process has had a tensor without memory
    OVERRIDES = 8       # there is a subclass of Tensor that overrides operations
    FUNCTIONS = 16      # a thread has an interpreter that handles public functions

cdef int watched
