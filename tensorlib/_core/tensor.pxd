from cpython.buffer cimport Py_buffer
from cpython.object cimport PyObject

from tensorlib._core.memory cimport Storage

cdef enum:
    INLINE_NDIM = 5

# What an operator slot of Tensor stands for; the ops floor fills the table `late`.
cdef enum Operator:
    ADD, SUB, MUL, TRUEDIV, FLOORDIV, MOD, POW, MATMUL, AND, OR, XOR, LSHIFT, RSHIFT
    LT, LE, EQ, NE, GT, GE
    NEG, ABS, INVERT
    N_OPERATORS

ctypedef object (*binary_slot)(Operator which, object a, object b)
ctypedef object (*unary_slot)(Operator which, object a)
ctypedef object (*getitem_slot)(Tensor x, object key)
ctypedef int (*setitem_slot)(Tensor x, object key, object value) except -1
ctypedef Tensor (*from_data_slot)(object data, int dtype_or_minus1)
ctypedef object (*item_slot)(Tensor x)
ctypedef int (*buffer_slot)(Tensor x, Py_buffer* buffer, int flags) except -1

cdef struct Late:
    binary_slot binary
    binary_slot inplace
    unary_slot unary
    getitem_slot getitem
    setitem_slot setitem
    from_data_slot from_data
    item_slot item
    buffer_slot fill_buffer

cdef Late* late

# How a view was made. A write in place into one that was not made alone is refused, as in PyTorch.
cdef enum Origin:
    ALONE
    UNRECORDED                      # while operations were not recorded
    AMONG_OTHERS                    # by an operation that gives several views

cdef class Tensor:
    cdef char* data_pointer
    cdef Py_ssize_t* dims           # sizes
    cdef Py_ssize_t* steps          # strides in elements
    cdef Py_ssize_t numel_
    cdef int ndim_
    cdef int type                   # dtype id
    cdef int slot                   # which output of grad_fn this is
    cdef bint packed                # row-major without gaps
    cdef bint wants_grad            # a leaf that requires grad
    cdef bint keeps_grad            # retain_grad was called
    cdef bint is_scalar             # stands for a Python number in promotion
    cdef Origin origin              # of a view: what a write in place into it must know
    cdef Py_ssize_t inline_dims[2 * INLINE_NDIM]
    cdef Storage storage
    cdef object grad_node           # Node or None
    cdef void* accumulator          # the AccumulateGrad node of a leaf, borrowed
    cdef object gradient            # Tensor or None
    cdef object base_               # for a view: the tensor whose storage it looks at, or None
    # The live views of a tensor are a linked list, so that a write in place can tell each of them
    # that its history has changed.
    cdef PyObject* first_view
    cdef PyObject* next_view
    cdef PyObject** view_link       # what points to this view in the list
    cdef object hooks
    cdef object label               # a name that the user gave, or None
    cdef object __weakref__

cdef inline bint requires_grad(Tensor x) noexcept:
    return x.wants_grad or x.grad_node is not None

cdef void watch_tensor(Tensor x) noexcept
cdef Tensor new_tensor(int dtype, int ndim, const Py_ssize_t* dims)
cdef Tensor new_like(Tensor x, int dtype)
cdef Tensor new_scalar(int dtype)
cdef Tensor new_view(Tensor x, int ndim, const Py_ssize_t* dims, const Py_ssize_t* steps,
                     char* data)
cdef Tensor over_storage(Storage storage, char* data, int dtype, int ndim,
                         const Py_ssize_t* dims, const Py_ssize_t* steps)
cdef Tensor alias(Tensor x)
cdef bint is_packed(int ndim, const Py_ssize_t* dims, const Py_ssize_t* steps) noexcept nogil
cdef bint same_shape(Tensor a, Tensor b) noexcept
cdef void replace(Tensor x, Tensor other)
cdef void set_base(Tensor view, Tensor x) noexcept
