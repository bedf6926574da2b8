from tensorlib._core.tiles.plan cimport Plan
from tensorlib._core.tiles.program cimport Step, TileLoops

cdef Py_ssize_t scratch_bytes(const TileLoops* program) noexcept nogil
cdef char* begin_tiles(const TileLoops* program, Py_ssize_t* filled, char* scratch) noexcept nogil
cdef void run_tile(const Plan* plan, char** pointers, const Py_ssize_t* steps, Py_ssize_t* filled,
                   char* scratch, Py_ssize_t n) noexcept nogil
cdef int number_of(const Plan* plan, const Step* step, const Py_ssize_t* steps) noexcept nogil
cdef char* fetch(const Plan* plan, int i, char* pointer, Py_ssize_t step, Py_ssize_t* filled,
                 char* scratch, Py_ssize_t n) noexcept nogil
cdef void convert(int have, int want, char* pointer, Py_ssize_t step, char* target, char* aside,
                  Py_ssize_t n) noexcept nogil
cdef char* repeat_constant(const TileLoops* program, int slot, Py_ssize_t* filled, char* scratch,
                           Py_ssize_t n) noexcept nogil
