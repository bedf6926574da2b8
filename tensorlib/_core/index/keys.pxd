from tensorlib._core.tensor.tensor cimport Tensor

# A parsed index expression, for all tensors of the shape that it was parsed for. Its positions and
# its mask are checked copies, which no one else may see, since they could write to them. An index
# is advanced if it has positions, or one mask and nothing else; otherwise it gives a view.
cdef class Index:
    cdef tuple basic           # the key of the view: nothing but ints, slices, None and Ellipsis
    cdef tuple positions       # for each dim of the view a packed int64 Tensor or None
    cdef tuple sizes           # for each dim of the view the size that positions were checked for
    cdef Tensor mask           # packed bytes, 0 or 1, over dims of the view from `first_dim` on
    cdef Py_ssize_t n_true     # the number of ones in the mask
    cdef int first_dim
    cdef int result_dim        # where the indexed dims stand in the result

cdef Index new_index()
cpdef Index parse(Tensor x, object key)
cdef Index of_view(Index index)
cpdef Tensor take(Tensor x, Index index)
cpdef int put(Tensor x, Index index, Tensor values, bint accumulate) except -1
cdef bint is_indexed(Index index, int d)
cdef int n_index_dims(Index index)
