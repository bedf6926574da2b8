cdef object largest(int dtype)
