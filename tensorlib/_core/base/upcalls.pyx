"""The table of upcalls (see upcalls.pxd), whose entries raise until it is filled."""

# The names of the operations, in the order of the enum `OpSlot`.
OPERATIONS = (
    "add", "sub", "mul", "div", "floor_divide", "remainder", "pow", "matmul", "bitwise_and",
    "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift",
    "lt", "le", "eq", "ne", "gt", "ge",
    "neg", "abs", "bitwise_not",
    "getitem", "put_index", "copy", "view_scatter", "strided_part", "view_as_real",
    "view_as_complex",
    "zmul", "sum_to_size", "to", "conjugated", "real_part")


cdef int raise_unfilled(str what) except -1:
    raise RuntimeError(
        f"{what}: called before tensorlib.ops and tensorlib.autograd were imported, which fill the "
        "table of upcalls")


cdef str slot_name(OpSlot which):
    return OPERATIONS[<int>which]


cdef object no_binary(OpSlot which, object a, object b):
    raise_unfilled(slot_name(which))


cdef object no_inplace(OpSlot which, object a, object b):
    raise_unfilled(f"{slot_name(which)}_")


cdef object no_unary(OpSlot which, object a):
    raise_unfilled(slot_name(which))


cdef object no_getitem(object x, object key):
    raise_unfilled("getitem")


cdef int no_setitem(object x, object key, object value) except -1:
    raise_unfilled("setitem")


cdef object no_tensor(object data, int dtype_or_minus1):
    raise_unfilled("tensor")


cdef object no_item(object x):
    raise_unfilled("item")


cdef int no_buffer(object x, Py_buffer* buffer, int flags) except -1:
    raise_unfilled("memoryview")


cdef int no_track_held(object holder, object held) except -1:
    raise_unfilled("setattr")


cdef int no_told(str name, object x) except -1:
    raise_unfilled(name)


cdef object no_offered(object op, str name, tuple args, dict kwargs):
    raise_unfilled(name)


def no_function(op):
    """Raises RuntimeError: the entry of a function before the table is filled."""
    raise_unfilled(op.name)


upcalls.binary = no_binary
upcalls.inplace = no_inplace
upcalls.unary = no_unary
upcalls.getitem = no_getitem
upcalls.setitem = no_setitem
upcalls.constructed = no_tensor
upcalls.item = upcalls.number = no_item
upcalls.fill_buffer = no_buffer
upcalls.track_held = no_track_held
upcalls.leaving = upcalls.effect = no_told
upcalls.offered = no_offered
upcalls.needs_of = upcalls.gradient_of = upcalls.tangent_of = <PyObject*>no_function
