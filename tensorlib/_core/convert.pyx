"""Between Python's world and tensors: scalars, nested sequences, NumPy arrays, buffers, pickles.

All of it is raw: nothing here is recorded for gradients. Elements are read and written by direct
walks in C; a change of dtype of a whole array goes through NumPy, which is not a hot path here.
"""

cimport numpy as cnp
from cpython.buffer cimport PyBUF_FORMAT, PyBUF_ND, PyBUF_STRIDES, PyBUF_WRITABLE, PyObject_CheckBuffer
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_Check, PyFloat_CheckExact
from cpython.list cimport PyList_New, PyList_SET_ITEM
from cpython.long cimport PyLong_CheckExact
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.sequence cimport PySequence_Check
from libc.math cimport isnan, ldexp
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t
from libc.stdlib cimport malloc
from libc.string cimport memcpy

import copyreg
import pickle

import numpy as np

from tensorlib._core.dtypes cimport (
    BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, FLOAT_KIND, INT16, INT32, INT64, INT8,
    INTEGER_KIND, ITEMSIZE, KIND, N_DTYPES, UINT8,
    default_float, dtype_id, dtype_object, from_numpy_dtype, promote, to_numpy_dtype,
)
from tensorlib._core.memory cimport Storage, borrow
from tensorlib._core.shape cimport MAX_NDIM
from tensorlib._core.strided cimport packed_copy
from tensorlib._core.tensor cimport (
    Tensor, alias, late, new_like, new_scalar, new_tensor, over_storage, replace, requires_grad,
)
