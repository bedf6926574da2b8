"""Finding the functions of kernel modules, once, when the modules that call them are imported."""

from tensorlib._core.base.dtypes cimport dtype_id

from tensorlib import _kernels
from tensorlib._core.base.dtypes import BY_NAME


cdef void* find_function(str module, str name, str dtype, bint optional=False) except? NULL:
    """The function of a kernel module for a dtype. Raises: KeyError where there is none; NULL if
    it is `optional`."""
    cdef dict functions = _kernels.functions(module)
    cdef size_t address
    if optional and (name, dtype) not in functions:
        return NULL
    address = functions[name, dtype]
    return <void*>address


cdef int find_pairs(str module, tuple names, void** found) except -1:
    """found := of each name the functions for float32 and for float64."""
    cdef size_t address
    cdef int i
    for i in range(2 * len(names)):
        address = _kernels.functions(module)[names[i // 2], _kernels.FLOATS[i % 2]]
        found[i] = <void*>address
    return 0


cdef int find_by_dtype(str module, str name, void** found) except -1:
    """found[dtype] := the function of this name for each dtype that has it."""
    cdef size_t address
    for (other, dtype), address in _kernels.functions(module).items():
        if other == name:
            found[dtype_id(BY_NAME[dtype])] = <void*>address
    return 0
