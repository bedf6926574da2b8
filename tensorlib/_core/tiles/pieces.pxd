from tensorlib._core.tiles.plan cimport Operand, Plan

cdef void move_rows(const Plan* plan, const Operand* operand, const Py_ssize_t* index,
                    Py_ssize_t* at, char* pieces, Py_ssize_t count, bint back) noexcept nogil
cdef void repeat_row(const Operand* operand, Py_ssize_t first, Py_ssize_t row, char* pieces,
                     Py_ssize_t count) noexcept nogil
cdef void write_out(const char* x, Py_ssize_t down, Py_ssize_t along, int dtype, char* pieces,
                    Py_ssize_t row, Py_ssize_t rows) noexcept nogil
