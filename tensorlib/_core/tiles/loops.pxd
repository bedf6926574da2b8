
cdef enum:
    MAX_LOOPS = 256
    MAX_ARITY = 4

ctypedef void (*loop1)(const void*, void*, Py_ssize_t) noexcept nogil
ctypedef void (*loop2)(const void*, const void*, void*, Py_ssize_t) noexcept nogil
ctypedef void (*loop3)(const void*, const void*, const void*, void*, Py_ssize_t) noexcept nogil
ctypedef void (*loop4)(const void*, const void*, const void*, const void*, void*,
                       Py_ssize_t) noexcept nogil

# Of three inputs, those whose bits `runs` has (1, 2, 4) are runs. The others are numbers: one of
# them, or the second and the third.
ctypedef void (*loop_mixed)(void* tag, const void*, const void*, const void*, void*, Py_ssize_t,
                            int runs) noexcept nogil

# A loop over contiguous runs. Ours take typed pointers and a count; NumPy's (`strided`) take its
# arrays of pointers, sizes and steps.
cdef struct Loop:
    void* run                      # NULL where the operation has no loop for the dtype
    void* data
    void* with_number              # the same where the second input is one number, or of three the
                                   # second and the third; may be NULL
    void* with_first               # the same where the first input is one number; may be NULL
    void* mixed                    # of three inputs, some of them numbers, or NULL: see loop_mixed
    void* with_single              # of a half type, the last input one float32; may be NULL
    bint commutes
    int arity
    int result                     # dtype id of the output
    bint strided
    int input_dtype
    int input_size                 # bytes of an element of the inputs
    int output_size
    int cost                       # of an element, in times of an addition

cdef Loop* find_loop(int loop, int dtype) noexcept nogil
cdef int loop_id(str name) except -1
cdef bint takes_number(const Loop* loop, int place) noexcept nogil
cdef int taken_runs(const Loop* loop, int runs) noexcept nogil
cdef loop2 numbered(const Loop* loop, int place) noexcept nogil
cdef void call_with_number(const Loop* loop, int place, char** inputs, char* output,
                           Py_ssize_t n) noexcept nogil
cdef void call_loop(const Loop* loop, char** inputs, char* output, Py_ssize_t n) noexcept nogil

ctypedef void (*cast_loop)(const void* x, void* y, Py_ssize_t n) noexcept nogil
ctypedef void (*gather_loop)(const char* x, Py_ssize_t step, void* y, Py_ssize_t n) noexcept nogil
ctypedef void (*reverse_loop)(const void* x, Py_ssize_t down, void* y, Py_ssize_t n,
                              Py_ssize_t rows) noexcept nogil
ctypedef void (*scatter_loop)(const void* x, char* y, Py_ssize_t step, Py_ssize_t n) noexcept nogil
ctypedef void (*transpose_loop)(const void* x, Py_ssize_t x_stride, void* y, Py_ssize_t y_stride,
                                Py_ssize_t rows, Py_ssize_t columns) noexcept nogil

cdef cast_loop find_cast(int source, int target) noexcept nogil
cdef gather_loop find_gather(int dtype) noexcept nogil
cdef reverse_loop find_reverse(int dtype) noexcept nogil     # NULL where there is none
cdef scatter_loop find_scatter(int dtype) noexcept nogil
cdef transpose_loop find_transpose(int dtype) noexcept nogil
