# Products and sums of sizes, strides and offsets are computed here, or are those of a tensor that
# exists. The nonzero sizes of every tensor have a product of at most MAX_NUMEL (`widen` checks that
# when tensors are made), and its elements are in its storage. So no product of some of its sizes,
# of these and the bytes of an element, or of a stride and an index can overflow.

cdef enum:
    MAX_NDIM = 64

cdef extern from *:
    """
    #define MAX_NUMEL ((Py_ssize_t)1 << 59)
    """
    const Py_ssize_t MAX_NUMEL       # their bytes fit in a Py_ssize_t
    const Py_ssize_t LARGEST "PY_SSIZE_T_MAX"

cdef extern from "Python.h":
    Py_ssize_t clipped "PyNumber_AsSsize_t" (object value, void* error) except? -1   # NULL: to fit

cdef extern from * nogil:
    bint __builtin_mul_overflow(Py_ssize_t a, Py_ssize_t b, Py_ssize_t* product)
    bint __builtin_add_overflow(Py_ssize_t a, Py_ssize_t b, Py_ssize_t* total)

cdef inline Py_ssize_t times(Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    """a * b of sizes, saturating: an amount of work."""
    cdef Py_ssize_t product
    return LARGEST if __builtin_mul_overflow(a, b, &product) else product

cdef inline bint widen(Py_ssize_t* span, Py_ssize_t size) noexcept nogil:
    """span *= size unless that is 0. False for a negative size or too large a product."""
    cdef bint overflow = __builtin_mul_overflow(span[0], size + (size == 0), span)
    return not overflow and size >= 0 and span[0] <= MAX_NUMEL

cdef inline bint reach(Py_ssize_t* low, Py_ssize_t* high, Py_ssize_t size,
                       Py_ssize_t step) noexcept nogil:
    """Extends the bounds of the elements by a dim of this size. False on overflow."""
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
