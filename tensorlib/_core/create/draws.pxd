from tensorlib._core.tensor.tensor cimport Tensor

cdef enum:
    DRAW_GRAIN = 1 << 13         # elements a thread draws at once: 5 us, whole groups of the kernel

cdef Tensor with_room(str name, Tensor x)
