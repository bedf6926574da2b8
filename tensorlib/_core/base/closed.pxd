"""Restrictions on the types of the core, their allocation, and how methods are added to them.

Python code can neither instantiate nor copy closed types: only compiled code sets their fields.
`T.__new__(T)` in the module of `T` calls the function behind the slot, as usual.

Objects of quiet types are allocated without triggering a garbage collection. Before Python 3.12 any
allocation of a tracked object may collect, and so run a finalizer, which may replace the memory of
a tensor whose address and sizes an operation has already read. Free-threaded interpreters do not
collect there, and threads would switch collections on and off for each other.
"""

from cpython.object cimport PyObject
from cpython.type cimport PyType_Modified

cdef extern from *:
    """
    static PyObject* allocate_quietly(PyTypeObject* type, Py_ssize_t n) {
        int collected = PyGC_Disable();
        PyObject* made = PyType_GenericAlloc(type, n);
        if (collected) PyGC_Enable();
        return made;
    }
    #ifdef Py_GIL_DISABLED
    #define quiet_type(type) ((void)allocate_quietly)
    #else
    #define quiet_type(type) (((PyTypeObject*)(type))->tp_alloc = allocate_quietly)
    #endif
    #define open_type(type) (((PyTypeObject*)(type))->tp_flags &= ~Py_TPFLAGS_IMMUTABLETYPE)
    """
    void quiet_type(object type)
    void open_type(object type)          # its attributes can be set, as those of a Python class

cdef extern from "Python.h":
    struct ClosedType "_typeobject"
    ctypedef PyObject* (*newfunc)(ClosedType* type, PyObject* args, PyObject* kwargs) except NULL
    struct ClosedType "_typeobject":
        const char* tp_name
        newfunc tp_new
        void* tp_vectorcall
        PyObject* tp_dict
    int PyDict_SetItem(PyObject* d, object key, object value) except -1


cdef inline PyObject* refuse_new(ClosedType* type, PyObject* args, PyObject* kwargs) except NULL:
    name = type.tp_name.decode()
    raise TypeError(f"cannot create {name.rpartition('.')[2]!r} instances")


cdef inline void close_type(object type) noexcept:
    (<ClosedType*><PyObject*>type).tp_new = refuse_new
    (<ClosedType*><PyObject*>type).tp_vectorcall = NULL       # it would bypass `tp_new`


cdef inline int attach_to(object type, str name, object value) except -1:
    """Adds a method or property to a type's dict; it is as fast as one defined in the body."""
    PyDict_SetItem((<ClosedType*><PyObject*>type).tp_dict, name, value)
    PyType_Modified(type)
    return 0
