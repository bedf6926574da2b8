from tensorlib._core.tiles.loops cimport Loop

cdef enum:
    TILE = 512               # elements; a slot of a tile takes at most 8 KiB
    GRAIN = 32768            # elements of one parallel chunk, of the cheapest loop on runs
    RELEASE_GIL = 16384      # elements from which on the GIL is released

cdef int run_with_single(const Loop* loop, char** inputs, int place, char* output,
                         Py_ssize_t n) except -1
cdef int run_loop(const Loop* loop, char** inputs, const bint* is_scalar, char* output,
                  Py_ssize_t n) except -1
