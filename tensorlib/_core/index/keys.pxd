from tensorlib._core.tensor.tensor cimport Tensor

# A parsed index expression, for all tensors of the shape that it was parsed for. Its positions and
# its mask are copies that were checked: nobody else may ever see them, since they could be written.
# It is advanced if it has positions or a mask; else it gives a view.
cdef class Index:
    cdef tuple basic           # the key of the view: nothing but ints, slices, None and Ellipsis
    cdef tuple positions       # for each dim of the view a packed int64 Tensor or None
    cdef tuple sizes           # for each dim of the view the size that positions were checked for
    cdef Tensor mask           # or a lone mask of packed 0/1 bytes ...
    cdef Py_ssize_t n_true     # with so many ones ...
    cdef int first_dim         # over the dims of the view from here on
    cdef int result_dim        # where the indexed dims stand in the result

cdef Index new_index()
cpdef Index parse(Tensor x, object key)
cdef Index of_view(Index index)
cpdef Tensor take(Tensor x, Index index)
cpdef int put(Tensor x, Index index, Tensor values, bint accumulate) except -1
cdef bint is_indexed(Index index, int d)
cdef int n_index_dims(Index index)
