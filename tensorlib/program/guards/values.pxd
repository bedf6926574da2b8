from cpython.object cimport PyObject

cdef object owned_object(PyObject* reference)
cpdef in_class(kind, str name)
cpdef tuple names_in(kind)
cpdef tuple functions_in(x)
cpdef bint is_same(x, y) except -1
cdef object snapshot(value)
cpdef dict fields_of(value)
cpdef dict items_of(x)
cpdef members_of(x)
