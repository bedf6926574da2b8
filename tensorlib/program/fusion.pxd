from tensorlib.program.steps cimport Root

cdef int fuse(list steps, dict root_of) except -1
