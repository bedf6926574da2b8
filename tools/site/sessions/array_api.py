# Examples for pages of the reference; tools/site/examples.py says how they are read.
# ---- array_api.abs array_api.negative array_api.positive array_api.sign array_api.square
# ---- array_api.signbit
from tensorlib import array_api as xp
xp.NAME(xp.asarray([-1.5, 0.0, 2.0]))
# ---- array_api.ceil array_api.floor array_api.round array_api.trunc
from tensorlib import array_api as xp
xp.NAME(xp.asarray([-1.5, 0.4, 2.5]))
# ---- array_api.acos array_api.asin array_api.asinh array_api.atan array_api.atanh array_api.cos
# ---- array_api.cosh array_api.exp array_api.log1p array_api.sin array_api.sinh
# ---- array_api.tan array_api.tanh
from tensorlib import array_api as xp
xp.NAME(xp.asarray([0.0, 0.25, 0.5]))
# ---- array_api.acosh array_api.log array_api.log10 array_api.log2 array_api.reciprocal
# ---- array_api.sqrt
from tensorlib import array_api as xp
xp.NAME(xp.asarray([1.0, 2.0, 10.0]))
# ---- array_api.isfinite array_api.isinf array_api.isnan
from tensorlib import array_api as xp
xp.NAME(xp.asarray([1.0, float("inf"), float("nan")]))
# ---- array_api.bitwise_invert
from tensorlib import array_api as xp
xp.bitwise_invert(xp.asarray([0, 1, 5]))
# ---- array_api.logical_not
from tensorlib import array_api as xp
xp.logical_not(xp.asarray([True, False]))
# ---- array_api.real array_api.imag
from tensorlib import array_api as xp
xp.NAME(xp.asarray([1 + 2j, 3 - 1j]))
# ---- array_api.add array_api.equal array_api.floor_divide array_api.greater
# ---- array_api.greater_equal array_api.hypot array_api.less array_api.less_equal
# ---- array_api.logaddexp array_api.maximum array_api.minimum array_api.multiply
# ---- array_api.not_equal array_api.pow array_api.remainder
# ---- array_api.subtract
from tensorlib import array_api as xp
xp.NAME(xp.asarray([3.0, 2.0, 7.0]), xp.asarray([2.0, 2.0, 4.0]))
# ---- array_api.bitwise_and array_api.bitwise_or array_api.bitwise_xor
from tensorlib import array_api as xp
xp.NAME(xp.asarray([0b1100, 7]), xp.asarray([0b1010, 2]))
# ---- array_api.bitwise_left_shift array_api.bitwise_right_shift
from tensorlib import array_api as xp
xp.NAME(xp.asarray([8, 5]), xp.asarray([1, 2]))
# ---- array_api.logical_and array_api.logical_or array_api.logical_xor
from tensorlib import array_api as xp
xp.NAME(xp.asarray([True, True, False]), xp.asarray([True, False, False]))
# ---- array_api.all array_api.any
from tensorlib import array_api as xp
xp.NAME(xp.asarray([[True, False], [True, True]]), axis=1)
# ---- array_api.argmax array_api.argmin array_api.max array_api.mean array_api.min
# ---- array_api.prod array_api.std array_api.sum array_api.var
from tensorlib import array_api as xp
x = xp.asarray([[1.0, 2.0, 6.0], [4.0, 5.0, 3.0]])
xp.NAME(x), xp.NAME(x, axis=0)
# ---- array_api.count_nonzero
from tensorlib import array_api as xp
xp.count_nonzero(xp.asarray([[0, 2, 0], [1, 1, 0]]), axis=1)
# ---- array_api.cumulative_prod array_api.cumulative_sum
from tensorlib import array_api as xp
xp.NAME(xp.asarray([1, 2, 3, 4]), include_initial=True)
# ---- array_api.diff
from tensorlib import array_api as xp
xp.diff(xp.asarray([1, 4, 9, 16]))
# ---- array_api.argsort array_api.sort
from tensorlib import array_api as xp
xp.NAME(xp.asarray([3, 1, 2]), descending=True)
# ---- array_api.searchsorted
from tensorlib import array_api as xp
xp.searchsorted(xp.asarray([1, 3, 5]), xp.asarray([0, 3, 9]))
# ---- array_api.isin
from tensorlib import array_api as xp
xp.isin(xp.asarray([1, 2, 3]), xp.asarray([2, 7]))
# ---- array_api.nonzero
from tensorlib import array_api as xp
xp.nonzero(xp.asarray([[0, 2], [3, 0]]))        # rows, and columns
# ---- array_api.unique_all array_api.unique_counts array_api.unique_inverse
# ---- array_api.unique_values
from tensorlib import array_api as xp
xp.NAME(xp.asarray([3, 1, 3, 2]))
# ---- array_api.where
from tensorlib import array_api as xp
x = xp.asarray([-1.0, 2.0])
xp.where(x > 0, x, xp.zeros(2))
# ---- array_api.clip
from tensorlib import array_api as xp
xp.clip(xp.asarray([-1.0, 0.5, 3.0]), 0.0, 1.0)
# ---- array_api.take
from tensorlib import array_api as xp
xp.take(xp.asarray([[1, 2, 3], [4, 5, 6]]), xp.asarray([2, 0]), axis=1)
# ---- array_api.take_along_axis
from tensorlib import array_api as xp
x = xp.asarray([[3, 1, 2], [4, 6, 5]])
xp.take_along_axis(x, xp.argsort(x, axis=1), axis=1)
# ---- array_api.matmul:
# ---- array_api.tensordot: , axes=1
from tensorlib import array_api as xp
xp.NAME(xp.ones((2, 3)), xp.ones((3, 4))VALUE)
# ---- array_api.vecdot
from tensorlib import array_api as xp
xp.vecdot(xp.asarray([[1.0, 2.0], [3.0, 4.0]]), xp.asarray([10.0, 1.0]))
# ---- array_api.matrix_transpose
from tensorlib import array_api as xp
xp.matrix_transpose(xp.asarray([[1, 2, 3], [4, 5, 6]]))
# ---- array_api.tril array_api.triu
from tensorlib import array_api as xp
xp.NAME(xp.ones((3, 3)))
# ---- array_api.arange
from tensorlib import array_api as xp
xp.arange(5), xp.arange(0, 1, 0.25)
# ---- array_api.asarray
from tensorlib import array_api as xp
xp.asarray([[1, 2], [3, 4]], dtype=xp.float64)
# ---- array_api.astype
from tensorlib import array_api as xp
xp.astype(xp.asarray([0.5, 2.7]), xp.int32)
# ---- array_api.empty
from tensorlib import array_api as xp
xp.empty((2, 3)).shape
# ---- array_api.empty_like
from tensorlib import array_api as xp
xp.empty_like(xp.ones((2, 3), dtype=xp.float64)).dtype
# ---- array_api.ones array_api.zeros
from tensorlib import array_api as xp
xp.NAME((2, 3))
# ---- array_api.ones_like array_api.zeros_like
from tensorlib import array_api as xp
xp.NAME(xp.asarray([[1, 2], [3, 4]]))
# ---- array_api.full
from tensorlib import array_api as xp
xp.full((2, 2), 7)
# ---- array_api.full_like
from tensorlib import array_api as xp
xp.full_like(xp.asarray([1.0, 2.0]), 7)
# ---- array_api.eye
from tensorlib import array_api as xp
xp.eye(2, 3, k=1)
# ---- array_api.linspace
from tensorlib import array_api as xp
xp.linspace(0, 1, 5)
# ---- array_api.meshgrid
from tensorlib import array_api as xp
xp.meshgrid(xp.asarray([1, 2]), xp.asarray([3, 4, 5]), indexing="ij")
# ---- array_api.from_dlpack
import numpy as np
from tensorlib import array_api as xp
xp.from_dlpack(np.asarray([1.0, 2.0]))
# ---- array_api.broadcast_arrays
from tensorlib import array_api as xp
xp.broadcast_arrays(xp.asarray([[1], [2]]), xp.asarray([3, 4]))
# ---- array_api.broadcast_shapes
from tensorlib import array_api as xp
xp.broadcast_shapes((2, 1), (3,))
# ---- array_api.broadcast_to
from tensorlib import array_api as xp
xp.broadcast_to(xp.asarray([1, 2]), (3, 2))
# ---- array_api.concat array_api.stack
from tensorlib import array_api as xp
xp.NAME([xp.asarray([1, 2]), xp.asarray([3, 4])])
# ---- array_api.unstack
from tensorlib import array_api as xp
xp.unstack(xp.asarray([[1, 2], [3, 4]]))
# ---- array_api.expand_dims
from tensorlib import array_api as xp
xp.expand_dims(xp.asarray([1, 2]), axis=1)
# ---- array_api.squeeze
from tensorlib import array_api as xp
xp.squeeze(xp.asarray([[1, 2]]), axis=0)
# ---- array_api.flip
from tensorlib import array_api as xp
xp.flip(xp.asarray([[1, 2], [3, 4]]), axis=1)
# ---- array_api.moveaxis
from tensorlib import array_api as xp
xp.moveaxis(xp.ones((2, 3, 4)), 0, -1).shape
# ---- array_api.permute_dims
from tensorlib import array_api as xp
xp.permute_dims(xp.ones((2, 3, 4)), (2, 0, 1)).shape
# ---- array_api.repeat
from tensorlib import array_api as xp
xp.repeat(xp.asarray([1, 2]), 3)
# ---- array_api.tile
from tensorlib import array_api as xp
xp.tile(xp.asarray([1, 2]), (2, 2))
# ---- array_api.reshape
from tensorlib import array_api as xp
xp.reshape(xp.arange(6), (2, 3))
# ---- array_api.roll
from tensorlib import array_api as xp
xp.roll(xp.asarray([1, 2, 3, 4]), 1)
# ---- array_api.can_cast
from tensorlib import array_api as xp
xp.can_cast(xp.float32, xp.float64), xp.can_cast(xp.float64, xp.float32)
# ---- array_api.result_type
from tensorlib import array_api as xp
xp.result_type(xp.float32, xp.asarray([1.0], dtype=xp.float64))
# ---- array_api.isdtype
from tensorlib import array_api as xp
xp.isdtype(xp.int16, "signed integer"), xp.isdtype(xp.int16, ("bool", "real floating"))
# ---- array_api.finfo
from tensorlib import array_api as xp
xp.finfo(xp.float32).eps
# ---- array_api.iinfo
from tensorlib import array_api as xp
xp.iinfo(xp.int16).max
# ---- array_api.__array_namespace_info__
from tensorlib import array_api as xp
info = xp.__array_namespace_info__()
info.default_device(), info.default_dtypes()["real floating"]
# ---- array_api.nextafter
from tensorlib import array_api as xp
xp.nextafter(xp.asarray([1.0]), xp.asarray([2.0])) - 1
