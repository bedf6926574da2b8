# Sizes, strides and offsets are multiplied and added here, or are those of a tensor that exists.
# The sizes of every tensor, those of 0 left out, multiply to at most MAX_NUMEL (`widen` sees to it
# where tensors are made), and its elements lie in its storage. So no product of some of its sizes,
# of those and the bytes of an element, or of a step and the places of its dim can overflow.

cdef enum:
    MAX_NDIM = 64

cdef extern from *:
    """
    #define MAX_NUMEL ((Py_ssize_t)1 << 59)
    """
    const Py_ssize_t MAX_NUMEL       # the bytes of so many elements can be counted
    const Py_ssize_t LARGEST "PY_SSIZE_T_MAX"

cdef extern from "Python.h":
    Py_ssize_t clipped "PyNumber_AsSsize_t" (object value, void* error) except? -1   # NULL: to fit

cdef extern from * nogil:
    bint __builtin_mul_overflow(Py_ssize_t a, Py_ssize_t b, Py_ssize_t* product)
    bint __builtin_add_overflow(Py_ssize_t a, Py_ssize_t b, Py_ssize_t* total)

cdef inline Py_ssize_t times(Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    """a * b of sizes, or the largest number: how much work something is."""
    cdef Py_ssize_t product
    return LARGEST if __builtin_mul_overflow(a, b, &product) else product

cdef inline bint widen(Py_ssize_t* span, Py_ssize_t size) noexcept nogil:
    """span *= size, a size of 0 left out. False for a negative size or too large a product."""
    cdef bint overflow = __builtin_mul_overflow(span[0], size + (size == 0), span)
    return not overflow and size >= 0 and span[0] <= MAX_NUMEL

cdef inline bint reach(Py_ssize_t* low, Py_ssize_t* high, Py_ssize_t size,
                       Py_ssize_t step) noexcept nogil:
    """Moves the bounds of where elements lie by a dim of `size` places. False on overflow."""
    cdef Py_ssize_t way
    if __builtin_mul_overflow(size - 1, step, &way):
        return False
    return not (__builtin_add_overflow(low[0], way, low) if way < 0
                else __builtin_add_overflow(high[0], way, high))

cdef Py_ssize_t check_rows(Py_ssize_t rows) except -1
cdef int refuse_size(str name, int ndim, const Py_ssize_t* dims) except -1
cdef int refuse_place(int ndim, const Py_ssize_t* dims, const Py_ssize_t* steps,
                      Py_ssize_t nbytes) except -1
cdef Py_ssize_t add_sizes(str name, Py_ssize_t a, Py_ssize_t b) except -1

cdef object make_size(int ndim, const Py_ssize_t* dims)
cdef tuple sizes_of(int ndim, const Py_ssize_t* dims)
cdef Py_ssize_t count(str name, int ndim, const Py_ssize_t* dims) except -1
cdef tuple items(object sequence, Py_ssize_t most)
cdef int parse_shape(str name, object given, Py_ssize_t* dims) except -1
cdef object settled(object dim)
cdef int wrap_dim(str name, object dim, int ndim) except -1
cdef int parse_dims(str name, object dim, int ndim, int* dims) except -1
cdef void row_major(int ndim, const Py_ssize_t* dims, Py_ssize_t* strides) noexcept nogil
cdef int broadcast(str name, int ndim_a, const Py_ssize_t* a, int ndim_b, const Py_ssize_t* b,
                   Py_ssize_t* dims) except -1
