"""Types that Python code can neither make nor copy: their fields are set by compiled code alone.

`T.__new__(T)` in the module of `T` calls the function behind the slot, as before.
"""

from cpython.object cimport PyObject

ctypedef PyObject* (*newfunc)(PyObject* type, PyObject* args, PyObject* kwargs) except NULL

cdef extern from "Python.h":
    struct ClosedType "_typeobject":
        const char* tp_name
        newfunc tp_new
        void* tp_vectorcall


cdef inline PyObject* refuse_new(PyObject* type, PyObject* args, PyObject* kwargs) except NULL:
    name = (<ClosedType*>type).tp_name.decode()
    raise TypeError(f"cannot create {name.rpartition('.')[2]!r} instances")


cdef inline void close_type(object type) noexcept:
    (<ClosedType*><PyObject*>type).tp_new = refuse_new
    (<ClosedType*><PyObject*>type).tp_vectorcall = NULL       # would make one without `tp_new`
