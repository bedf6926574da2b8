from tensorlib._core.tensor.tensor cimport Tensor

# The kinds of parts of a key.
cdef enum Kind:
    INTEGER, SLICE, NEW, ELLIPSIS, ADVANCED

cdef Kind kind_of(object part)
cdef object as_parts(object key)
cdef object with_plain_integers(object given, Kind kind)
cdef int require_dims(Py_ssize_t used, Tensor x) except -1
cdef Tensor basic_view(Tensor x, object key)
