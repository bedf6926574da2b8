from tensorlib.program.run.steps cimport Root

cdef int fuse(list steps, dict root_of) except -1
