from libc.stdint cimport uint64_t

from tensorlib._core.base.pool cimport range_fn
from tensorlib._core.tensor.tensor cimport Tensor

cdef struct Bits:                # of one element of any dtype, from the lowest byte
    uint64_t low
    uint64_t high                # of what has 16 bytes

cdef int chosen_dtype(str name, object dtype, object out, int otherwise) except -1
cdef int check_options(str name, object layout, object device, object pin_memory) except -1
cdef object offered_new(str name, tuple args, dict options, object layout, object device,
                        object pin_memory, object requires_grad, object like=*,
                        object memory_format=*)
cdef Tensor sized(str name, tuple size, object size_keyword, int dtype, object device,
                  Tensor beside=*)
cpdef object plain_number(str name, str argument, object value)
cdef object finish(str name, Tensor x, object out, object requires_grad)
cdef int fill_number(str name, Tensor x, object value) except -1
cdef Tensor allotted(str name, int dtype, int ndim, const Py_ssize_t* dims, object device,
                     Tensor beside=*)
cdef int run_over(range_fn run, void* context, Tensor x, Py_ssize_t grain) except -1
cdef int zero(Tensor x) except -1
cdef int number_bits(str name, object value, int dtype, Bits* bits) except -1
cdef Tensor alike(str name, object input, object dtype, object layout, object device,
                  object pin_memory, object memory_format, bint whole=*)
