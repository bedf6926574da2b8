"""Types in C: those that Python code can neither make nor copy, whose fields are set by compiled
code alone; and methods for them that are not in their bodies.

`T.__new__(T)` in the module of `T` calls the function behind the slot, as before.
"""

from cpython.object cimport PyObject
from cpython.type cimport PyType_Modified

ctypedef PyObject* (*newfunc)(PyObject* type, PyObject* args, PyObject* kwargs) except NULL

cdef extern from "Python.h":
    struct ClosedType "_typeobject":
        const char* tp_name
        newfunc tp_new
        void* tp_vectorcall
        PyObject* tp_dict
    int PyDict_SetItem(PyObject* d, object key, object value) except -1


cdef inline PyObject* refuse_new(PyObject* type, PyObject* args, PyObject* kwargs) except NULL:
    name = (<ClosedType*>type).tp_name.decode()
    raise TypeError(f"cannot create {name.rpartition('.')[2]!r} instances")


cdef inline void close_type(object type) noexcept:
    (<ClosedType*><PyObject*>type).tp_new = refuse_new
    (<ClosedType*><PyObject*>type).tp_vectorcall = NULL       # would make one without `tp_new`


cdef inline int attach_to(object type, str name, object value) except -1:
    """Adds a method or property. The type's dict has it, so that it costs what one in the body does."""
    PyDict_SetItem((<ClosedType*><PyObject*>type).tp_dict, name, value)
    PyType_Modified(type)
    return 0
