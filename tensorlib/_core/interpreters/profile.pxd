# Whether a profile is being taken.
cdef bint observing

cdef list begin_event(str name, object tensors)
cdef int note_result(list event, object out) except -1
cdef int end_event(list event) except -1
cdef int begin_making(str name) except -1
cdef int end_making(str name, object made) except -1
