"""Functions that worked under NumPy's name only."""

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib.func import grad, jvp, vmap
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


@pytest.mark.parametrize("function", [
    lambda x: tl.hypot(x, x + 1), lambda x: tl.logaddexp(x, 2 * x), lambda x: tl.fmax(x, x * x),
    lambda x: tl.diff(x), lambda x: tl.kron(x, x), lambda x: tl.tensordot(x, x, 1),
    lambda x: tl.hstack([x, x * x]), lambda x: tl.vstack([x, x * x]), lambda x: tl.nan_to_num(x),
    lambda x: tl.dstack([x, x]), lambda x: tl.column_stack([x, x * x]), lambda x: tl.deg2rad(x),
    lambda x: tl.meshgrid(x, x * x)[1], lambda x: tl.take(x, tl.tensor([0, 2, 0])),
    lambda x: tl.tensor_split(x, 2)[0], lambda x: tl.broadcast_tensors(x, tl.ones(2, 1))[0],
    lambda x: tl.atleast_2d(x), lambda x: tl.flipud(x)])
def test_it_has_gradients_forward_mode_and_batches(function):
    x, v = tl.tensor([0.3, 1.7, -0.4], dtype=tl.float64), tl.tensor([1.0, -2.0, 0.5]).double()

    def total(x):
        return (function(x) * 1.5).sum()
    slope = (total(x + 1e-6 * v) - total(x - 1e-6 * v)) / 2e-6
    assert (grad(total)(x) * v).sum().item() == pytest.approx(slope.item(), abs=1e-6)
    assert jvp(total, (x,), (v,))[1].item() == pytest.approx(slope.item(), abs=1e-6)
    batch = tl.stack([x, v])
    assert np.allclose(vmap(function)(batch), tl.stack([function(x), function(v)]))


def test_stacks_of_tensors_without_dims():
    x = tl.tensor(1.0)
    for name in ("hstack", "vstack", "dstack", "column_stack"):
        found, wanted = getattr(tl, name)([x, x]), getattr(np, name)([np.float32(1)] * 2)
        assert found.tolist() == wanted.tolist(), name


def test_edges_of_the_new_functions():
    inf, nan = float("inf"), float("nan")
    x = tl.tensor([inf, -inf, nan, 1.0])
    assert x.nan_to_num().tolist()[2:] == [0, 1] and x.nan_to_num().isfinite().all()
    assert x.nan_to_num(5.0, 6.0, 7.0).tolist() == [6, 7, 5, 1]
    for dtype in (tl.float16, tl.float64):
        found = x.to(dtype).nan_to_num().tolist()
        assert found == np.nan_to_num(x.to(dtype).numpy()).tolist()
    assert tl.tensor([2, 3]).nan_to_num().tolist() == [2, 3]
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
