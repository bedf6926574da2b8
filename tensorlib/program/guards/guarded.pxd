from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

cdef class Guard:
    cdef readonly object holder      # what was read
    cdef readonly str line           # of the user's, where it was read first
    cdef bint holds(self) except -1

cdef class DictGuard(Guard):
    cdef readonly dict read          # what was under each name, or MISSING
    cdef readonly object owner
    cdef readonly tuple keys, values # of a whole dict: its keys and values, in order
    cdef uint64_t* now
    cdef uint64_t version
    cdef bint are_same(self) except -1

cdef class TypeGuard(Guard):
    cdef readonly dict read
    cdef readonly tuple classes      # the class and those above it
    cdef list wrapped                # properties and the like, each with its functions
    cdef unsigned int tag
    cdef bint are_same(self) except -1

cdef class ListGuard(Guard):
    cdef readonly dict read          # of single elements, by their index
    cdef readonly tuple whole

cdef class CellGuard(Guard):
    cdef readonly object read

cdef class FunctionGuard(Guard):
    cdef readonly object code, own, defaults, named

cdef class ValueGuard(Guard):
    cdef readonly object accessor, key, read

cdef class LayoutGuard(ValueGuard):
    pass

cdef enum:
    SLOW, BY_VERSION, BY_CLASS

cdef struct FastCheck:           # by which a guard is seen to hold without a call of it
    PyObject* holder             # which the guard holds, as it does the owner
    PyObject* owner
    uint64_t* now                # where the version of a dict lies
    uint64_t state               # the version of a dict; where the class of an object lies
    int kind

cdef class Guards:
    cdef readonly list all
    cdef list hooks
    cdef FastCheck* fast_checks
    cdef Py_ssize_t n_fast_checks
    cdef int fill_fast_checks(self) except -1
    cdef bint hold(self) except -1

cdef class KindGuard(Guard):
    cdef readonly object kind
