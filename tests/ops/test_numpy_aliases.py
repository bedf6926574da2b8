"""Functions that NumPy and PyTorch have under one name: operations of the registry, as all."""

import numpy as np
from cases import each

import tensorlib as tl
from tensorlib.io.table import COUNTERPARTS

NAMES = ("argwhere atleast_1d atleast_2d atleast_3d broadcast_tensors column_stack deg2rad diff "
         "dsplit dstack fliplr flipud fmax fmin hsplit hstack hypot kron logaddexp meshgrid "
         "nan_to_num positive rad2deg row_stack swapaxes take tensor_split tensordot vsplit "
         "vstack").split()
# What PyTorch has no function for, or has by another name that we have.
ELSEWHERE = {
    "append", "around", "array2string", "array_equal", "array_repr", "array_split", "array_str",
    "average", "broadcast_arrays", "compress", "conjugate", "copy", "degrees", "divmod",
    "expand_dims", "fabs", "flatnonzero", "invert", "left_shift", "matrix_transpose", "ndim",
    "power", "ptp", "radians", "repeat", "right_shift", "rint", "shape", "size",
    "take_along_axis", "vecdot"}


@each("name", NAMES)
def test_the_function_is_an_operation_of_the_registry(name):
    assert getattr(tl, name).op.testing["reference"]


def test_no_other_function_of_numpy_lacks_pytorchs_name():
    names = {function.__name__ for function in COUNTERPARTS}
    lacking = {name for name in names if not hasattr(tl, name)}
    assert not lacking & set(NAMES)
    unknown = {name for name in ELSEWHERE if hasattr(tl, name) and name != "repeat"}
    assert unknown <= {"compress"}, unknown


def test_the_example_of_a_grid():
    x, y = tl.meshgrid(tl.tensor([1.0, 2.0]), tl.tensor([3.0, 4.0, 5.0]))
    assert x.shape == (2, 3) and y[1].tolist() == [3, 4, 5]
    x, y = tl.meshgrid([tl.ones(2), tl.ones(3)], indexing="xy")
    assert x.shape == y.shape == (3, 2)


def test_stacks_of_tensors_without_dims():
    x = tl.tensor(1.0)
    for name in ("hstack", "vstack", "dstack", "column_stack"):
        found, wanted = getattr(tl, name)([x, x]), getattr(np, name)([np.float32(1)] * 2)
        assert found.tolist() == wanted.tolist(), name


def test_edges():
    inf, nan = float("inf"), float("nan")
    x = tl.tensor([inf, -inf, nan, 1.0])
    assert x.nan_to_num().tolist()[2:] == [0, 1] and x.nan_to_num().isfinite().all()
    assert x.nan_to_num(5.0, 6.0, 7.0).tolist() == [6, 7, 5, 1]
    for dtype in (tl.float16, tl.float64):
        found = x.to(dtype).nan_to_num().tolist()
        assert found == np.nan_to_num(x.to(dtype).numpy()).tolist()
    assert tl.tensor([2, 3]).nan_to_num().tolist() == [2, 3]
    z = tl.tensor([[complex(nan, 1), complex(inf, nan)], [1 + 2j, complex(2, -inf)]]).mT
    assert z.nan_to_num().tolist() == np.nan_to_num(z.numpy()).tolist()
    assert tl.logaddexp(x, x).tolist()[:2] == [inf, -inf]
    y = x.clone().requires_grad_()
    tl.logaddexp(y, x).sum().backward()
    assert y.grad[:2].tolist() == [0.5, 0.5]
    assert tl.fmax(x, tl.zeros(4)).tolist() == [inf, 0, 0, 1]
    assert tl.diff(tl.tensor([True, False, False])).tolist() == [True, False]
    assert tl.diff(tl.ones(3), n=5).shape == (0,)
    assert tl.diff(tl.tensor([3]), prepend=tl.tensor([1]), append=tl.tensor([9])).tolist() == [2, 6]
    origin = tl.zeros(2, requires_grad=True)
    tl.hypot(origin, origin * 0).sum().backward()
    assert origin.grad.tolist() == [0, 0]
