# Functions that call themselves for what is nested enter and leave: what is nested too deeply, as a
# list that holds itself, is a RecursionError as in Python's own functions, and no crash.

cdef extern from "Python.h":
    int enter "Py_EnterRecursiveCall"(const char* where) except 1
    void leave "Py_LeaveRecursiveCall"()
