"""Upcalls: the table of functions in higher layers that the core calls.

Imports run downwards only, but `Tensor.__add__` runs the registered operation `add`, and a sweep
that is recorded sums gradients by it. All such functions are in this table. It is filled at once,
by `fill_upcalls` in `_core/apply/fill_upcalls.pyx`, when `autograd` is imported; a call before that
raises RuntimeError.
"""

from cpython.buffer cimport Py_buffer
from cpython.object cimport PyObject

from tensorlib._core.base.watch cimport watched

# The operations that the core calls, in the order of OPERATIONS in upcalls.pyx: for Python's
# operators, for subscripts and in-place writes, for the end of gradient rules.
cdef enum OpSlot:
    ADD, SUB, MUL, TRUEDIV, FLOORDIV, MOD, POW, MATMUL, AND, OR, XOR, LSHIFT, RSHIFT
    LT, LE, EQ, NE, GT, GE
    NEG, ABS, INVERT
    GETITEM, INDEX_PUT, COPY, VIEW_SCATTER, AS_STRIDED, AS_REAL, AS_COMPLEX
    ZMUL, SUM_TO_SIZE, TO, CONJUGATED, REAL_PART
    N_OP_SLOTS

# A tensor is an `object` here, since the table is below its type.
ctypedef object (*binary_function)(OpSlot which, object a, object b)
ctypedef object (*unary_function)(OpSlot which, object a)
ctypedef object (*getitem_function)(object x, object key)
ctypedef int (*setitem_function)(object x, object key, object value) except -1
ctypedef object (*construct_function)(object data, int dtype_or_minus1)
ctypedef object (*item_function)(object x)
ctypedef int (*buffer_function)(object x, Py_buffer* buffer, int flags) except -1
ctypedef int (*held_function)(object holder, object held) except -1
ctypedef int (*told_function)(str name, object x) except -1
ctypedef object (*offered_function)(object op, str name, tuple args, dict kwargs)
ctypedef object (*called_function)(object function, tuple args, dict kwargs)
ctypedef bint (*asks_function)(PyObject* const* args, Py_ssize_t n) noexcept

cdef struct Upcalls:
    # called by the slots of the Tensor type
    binary_function binary
    binary_function inplace
    unary_function unary
    getitem_function getitem
    setitem_function setitem
    construct_function constructed
    item_function item
    item_function number
    buffer_function fill_buffer
    held_function track_held
    # notifications of interpreters, and calls offered to them, by the room `tensor`
    told_function leaving
    told_function effect
    offered_function offered
    called_function called           # ... and any public function, with its arguments as passed
    # what a class makes of a call, too, and whether any among the arguments is no Tensor and may
    called_function whole
    asks_function asks
    # records of operations, each an `Op`
    PyObject* operations[N_OP_SLOTS]
    # functions of an `Op`: what its gradient needs, its backward operation, its forward-mode rule
    PyObject* needs_of
    PyObject* gradient_of
    PyObject* tangent_of
    # declares the families of operations that are not declared yet
    PyObject* declare_all

cdef Upcalls upcalls

cdef int raise_unfilled(str what) except -1
cdef str slot_name(OpSlot which)

cdef inline object registered(OpSlot which):
    """The record of an operation, an `Op`. Raises RuntimeError before the table is filled."""
    if upcalls.operations[<int>which] == NULL:
        raise_unfilled(slot_name(which))
    return <object>upcalls.operations[<int>which]

cdef inline int effect(str name, object x) except -1:
    """Notifies interpreters of a change of `x` that is no operation."""
    return upcalls.effect(name, x) if watched else 0
