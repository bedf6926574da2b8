"""Normalisation of the columns of matrices, outside autograd."""

from tensorlib._core.tensor.tensor cimport Tensor

# Whether the channels of (B, C, *) lie beside each other, or have one element each.
cdef bint are_columns(Tensor x) noexcept

# An uninitialised result for `x`, in its layout.
cdef Tensor new_result(Tensor x, bint lanes)

# The columns of `count` matrices, each of its groups normalised, times `w` plus `b`. The vectors
# are in the dtype of the computation; `mean` and `var`, of one matrix, are written if given.
cdef Tensor normal_columns(Tensor x, Tensor w, Tensor b, Py_ssize_t count, Py_ssize_t groups,
                           double eps, Tensor mean, Tensor var)

# The gradients of the input, the weight and the bias, the last two in float64; `flat`: of the
# affine map alone, without statistics.
cdef tuple columns_backward(bint flat, Tensor g, Tensor x, Tensor w, Py_ssize_t count,
                            Py_ssize_t groups, double eps)
