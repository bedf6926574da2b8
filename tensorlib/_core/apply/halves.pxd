from tensorlib._core.base.dtypes cimport BFLOAT16, FLOAT16

cdef inline bint is_half(int id) noexcept nogil:
    return id == FLOAT16 or id == BFLOAT16

cdef object widened(object function, tuple args, dict kwargs)
cdef object in_float32(object x)
