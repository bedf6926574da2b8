"""Elimination and factors of Cholesky in batches of small complex matrices."""

from tensorlib._core.tensor.tensor cimport Tensor

cdef bint is_small_complex(Tensor a) noexcept
cdef int factor_all(Tensor a, Tensor x) except -1
cdef int eliminate_all(Tensor a, Tensor b, Tensor x, Tensor determinants) except -1
