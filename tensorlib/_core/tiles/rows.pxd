from tensorlib._core.tiles.plan cimport Walk

cdef enum:
    TILE = 512               # elements; a slot of a tile takes at most 4 KiB
    WIDE_TILE = 16384        # bytes; three of them fit in the scratch memory of a tile
    SHORT_ROW = 64           # rows shorter than this are gathered several to a tile

cdef bint goes_by_rows(const Walk* walk) noexcept nogil
cdef void run_whole_rows(const Walk* walk, const Py_ssize_t* index, char* scratch,
                         Py_ssize_t rows) noexcept nogil
