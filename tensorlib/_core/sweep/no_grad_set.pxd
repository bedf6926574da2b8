from tensorlib._core.sweep.state cimport Sweep

cdef dict cut_places(Sweep* sweep, object cut)
cdef int count_again(Sweep* sweep, tuple roots) except -1
