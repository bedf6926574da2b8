# Recursive functions call `enter` and `leave`, so that values nested too deeply, such as a list
# that contains itself, raise RecursionError as in Python, and do not overflow the stack.

cdef extern from "Python.h":
    int enter "Py_EnterRecursiveCall"(const char* where) except 1
    void leave "Py_LeaveRecursiveCall"()
