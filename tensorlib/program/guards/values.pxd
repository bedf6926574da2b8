from cpython.object cimport PyObject

cdef object from_new(PyObject* reference)
cpdef in_class(kind, str name)
cdef bint is_same(x, y) except -1
cdef object settled(value)
cpdef dict fields_of(value)
cpdef dict items_of(x)
cpdef members_of(x)
