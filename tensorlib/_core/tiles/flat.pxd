from tensorlib._core.tiles.loops cimport Loop

cdef int run_loop(const Loop* loop, char** inputs, const bint* is_scalar, char* output,
                  Py_ssize_t n) except -1
