"""Errors of wrong arguments under the name of the operation that was called.

The functions of all operations of one kind are closures of one `function`, and that is the name in
Cython's own errors. So they are entered through `call_named`, which does nothing more unless the
call has failed.
"""

from cpython.exc cimport PyErr_ExceptionMatches, PyErr_Fetch, PyErr_Restore, PyErr_SetObject
from cpython.object cimport PyObject
from cpython.ref cimport Py_XDECREF

cdef extern from "Python.h":
    ctypedef PyObject* (*vectorcallfunc)(PyObject*, PyObject**, size_t, PyObject*) noexcept
    vectorcallfunc PyVectorcall_Function(object function)
    struct CallableType "_typeobject":
        Py_ssize_t tp_vectorcall_offset
    CallableType* Py_TYPE(object value)

cdef vectorcallfunc enter = NULL   # how Cython enters a function that takes keywords


cdef PyObject* call_named(PyObject* function, PyObject** args, size_t n,
                          PyObject* names) noexcept:
    cdef PyObject* result = enter(function, args, n, names)
    if result == NULL and PyErr_ExceptionMatches(TypeError):
        rename(function)
    return result


cdef void rename(PyObject* function) noexcept:
    """Puts the function's own name into the error that is set, if it is one of Cython's."""
    cdef PyObject* kind = NULL
    cdef PyObject* value = NULL
    cdef PyObject* trace = NULL
    PyErr_Fetch(&kind, &value, &trace)
    text = str(<object>value) if value != NULL else ""
    if not text.startswith("function() "):
        PyErr_Restore(kind, value, trace)
        return
    PyErr_SetObject(TypeError, (<object>function).__name__ + text[len("function"):])
    Py_XDECREF(kind)
    Py_XDECREF(value)
    Py_XDECREF(trace)


def name_errors(function):
    """The compiled function itself, after Cython's errors about its arguments got its name."""
    global enter
    cdef vectorcallfunc found = PyVectorcall_Function(function)
    cdef char* place = <char*><PyObject*>function + Py_TYPE(function).tp_vectorcall_offset
    if found != NULL and (enter == NULL or found == enter):
        enter = found
        (<vectorcallfunc*>place)[0] = call_named
    return function
