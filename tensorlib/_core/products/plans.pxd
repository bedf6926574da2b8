from tensorlib._kernels.fourier.fourier_plan cimport Job, Place, Plan


ctypedef struct Functions:                       # of `_kernels/fourier/fourier.pyx`, for one dtype
    Py_ssize_t (*lanes)() noexcept nogil         # rows of a vector
    Py_ssize_t (*plan_size)(Plan* plan) noexcept nogil
    void (*fill)(Plan* plan, char* memory) noexcept nogil
    void (*fill_chirp)(const Plan* plan, char* room) noexcept nogil
    Py_ssize_t (*points_size)(const Plan* plan) noexcept nogil
    Py_ssize_t (*table_size)(const Plan* plan, int kind) noexcept nogil
    void (*transform)(const Job* job, Py_ssize_t count, char* room) noexcept nogil
    void (*part)(const Job* job, Place source, Place target, int part, Py_ssize_t begin,
                 Py_ssize_t end, char* shared, char* rooms) noexcept nogil

cdef class FourierPlan:
    cdef Plan plan
    cdef char* memory
    cdef readonly Py_ssize_t nbytes
    cdef Py_ssize_t lanes
    cdef FourierPlan inner
    cdef int fill_chirp(self, Py_ssize_t n, bint double_) except -1
    cdef Functions* functions

cdef bint has_plan(Py_ssize_t n)
cdef FourierPlan plan_of(Py_ssize_t n, bint double_, bint few, bint along)
cdef FourierPlan chirp_of(Py_ssize_t n, bint double_)
