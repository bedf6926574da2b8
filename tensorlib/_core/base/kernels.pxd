cdef void* find_function(str module, str name, str dtype, bint optional=*) except? NULL
cdef int find_pairs(str module, tuple names, void** found) except -1
cdef int find_by_dtype(str module, str name, void** found) except -1
