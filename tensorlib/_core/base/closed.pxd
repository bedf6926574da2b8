"""How types of the core are made and allocated, and how methods are added to them.

Closed types can be neither made nor copied by Python code: their fields are set by compiled code
alone. `T.__new__(T)` in the module of `T` calls the function behind the slot, as before.

Objects of quiet types are allocated without a collection. Before Python 3.12 any allocation of what
the collector looks after may collect, and so run a finalizer, which may give a tensor other memory
while an operation that has its address and sizes makes its result. Interpreters without a global
lock do not, and there threads would switch collections on and off for each other.
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
    (<ClosedType*><PyObject*>type).tp_vectorcall = NULL       # would make one without `tp_new`


cdef inline int attach_to(object type, str name, object value) except -1:
    """Adds a method or property to a type's dict, so that it costs what one in the body costs."""
    PyDict_SetItem((<ClosedType*><PyObject*>type).tp_dict, name, value)
    PyType_Modified(type)
    return 0
