"""NumPy's ufunc objects: their tables of inner loops, public in `numpy/ufuncobject.h`."""

cdef extern from "numpy/arrayobject.h":
    pass

cdef extern from "numpy/ufuncobject.h":
    ctypedef void (*ufunc_loop "PyUFuncGenericFunction")(
        char** args, const Py_ssize_t* dimensions, const Py_ssize_t* steps,
        void* data) noexcept nogil
    ctypedef struct PyUFuncObject:
        int nin
        int nout
        int nargs
        int ntypes
        ufunc_loop* functions
        void** data                # NULL if no loop needs any
        const char* types          # type numbers, nargs for each loop
