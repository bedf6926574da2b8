"""NumPy's functions on Tensors: NumPy's own values, gradients, and what is refused."""

import inspect
import re

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib.io import protocol  # noqa: F401  fills COUNTERPARTS
from tensorlib.io.arrays import CONVERSIONS
from tensorlib.io.operands import name_of
from tensorlib.io.table import COUNTERPARTS
from tensorlib.testing import assert_close, gradcheck

RNG = np.random.default_rng(0)
# Vectors, matrices and three dims, inside the domain of every function and away from kinks.
V = RNG.uniform(0.2, 0.8, 4)
W = RNG.uniform(1.1, 1.9, 4)
M = RNG.uniform(0.2, 0.8, (3, 4))
N = RNG.uniform(1.1, 1.9, (4, 3))
C = RNG.uniform(0.2, 0.8, (2, 3, 4))
Z = V + 1j * W
FLAT = np.array([3.0, 1.0, 2.0, 0.5])
HOLES = np.array([1.0, np.nan, 3.0, np.nan])
WILD = np.array([1.0, np.nan, np.inf, -np.inf])
INTS = np.array([5, 3, 6, 1])
BITS = np.array([1, 2, 1, 3])
FACTS = np.array([True, False, True, True])

UNARY = ("absolute arccos arcsin arcsinh arctan arctanh ceil conjugate cos cosh degrees deg2rad "
         "exp exp2 expm1 fabs floor isfinite isinf isnan log log10 log1p log2 logical_not "
         "negative positive radians rad2deg reciprocal rint sign sin sinh sqrt square tan tanh "
         "trunc").split()
BINARY = ("add arctan2 copysign divide divmod equal floor_divide fmax fmin fmod greater "
          "greater_equal hypot less less_equal logaddexp logaddexp2 logical_and logical_or "
          "logical_xor maximum minimum multiply not_equal power remainder subtract").split()

# For each row of the table, calls on arrays; the same call is made on Tensors.
CASES = {f: [(f, V), (f, M)] for f in (getattr(np, name) for name in UNARY)}
CASES |= {f: [(f, V, W), (f, M, V), (lambda x, f=f: f(2.5, x), V), (lambda x, f=f: f(x, 2.5), V)]
          for f in (getattr(np, name) for name in BINARY)}
CASES |= {f: [(f, INTS, BITS)]
          for f in (np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.left_shift, np.right_shift,
                    np.gcd, np.lcm)}
CASES |= {
    np.arccosh: [(lambda x: np.arccosh(x + 1.5), V)],
    np.bitwise_not: [(np.bitwise_not, INTS), (np.invert, FACTS)],
    np.matmul: [(np.matmul, M, N), (np.matmul, V, N), (np.matmul, C, N)],
    np.vecdot: [(np.vecdot, V, W), (np.vecdot, M, V)],

    np.sum: [(np.sum, M), (lambda x: np.sum(x, axis=0), M),
             (lambda x: np.sum(x, (0, 2), keepdims=True), C), (np.sum, INTS), (np.sum, FACTS)],
    np.nansum: [(np.nansum, V), (lambda x: np.nansum(x, axis=1, keepdims=True), M)],
    np.prod: [(np.prod, V), (lambda x: np.prod(x, axis=1), M), (np.prod, INTS),
              (lambda x: np.prod(x, axis=(0, -1), keepdims=True), C)],
    np.mean: [(np.mean, M), (lambda x: np.mean(x, axis=-1, keepdims=True), M)],
    np.average: [(np.average, V), (lambda x, w: np.average(x, weights=w), V, W),
                 (lambda x, w: np.average(x, 1, w), M, W), (lambda x: np.average(x, axis=0), M)],
    np.var: [(np.var, V), (lambda x: np.var(x, axis=0, ddof=1), M),
             (lambda x: np.var(x, 1, keepdims=True, correction=1), M)],
    np.std: [(np.std, V), (lambda x: np.std(x, axis=0, ddof=1), M)],
    np.max: [(np.max, V), (lambda x: np.max(x, axis=1), M),
             (lambda x: np.max(x, axis=(0, 2), keepdims=True), C)],
    np.amax: [(np.amax, M)],
    np.min: [(np.min, V), (lambda x: np.min(x, 0), M)],
    np.amin: [(np.amin, M)],
    np.ptp: [(np.ptp, V), (lambda x: np.ptp(x, axis=1), M)],
    np.argmax: [(np.argmax, M), (lambda x: np.argmax(x, axis=0, keepdims=True), M)],
    np.argmin: [(np.argmin, M), (lambda x: np.argmin(x, axis=1), M)],
    np.all: [(np.all, FACTS), (lambda x: np.all(x > 0.4, axis=0), M)],
    np.any: [(np.any, FACTS), (lambda x: np.any(x > 0.7, axis=1, keepdims=True), M)],
    np.count_nonzero: [(np.count_nonzero, FACTS), (lambda x: np.count_nonzero(x, axis=0), M)],
    np.cumsum: [(np.cumsum, M), (lambda x: np.cumsum(x, axis=1), M)],
    np.diff: [(np.diff, V), (lambda x: np.diff(x, n=2, axis=0), M), (lambda x: np.diff(x, 5), V)],
    np.trace: [(np.trace, M), (lambda x: np.trace(x, 1, 1, 2), C)],

    np.dot: [(np.dot, V, W), (np.dot, M, V), (np.dot, M, N), (np.dot, C, N),
             (lambda a, b: np.dot(a, b), N, C), (lambda x: np.dot(x, 2.0), M)],
    np.vdot: [(np.vdot, V, W), (np.vdot, M, N)],
    np.inner: [(np.inner, V, W), (np.inner, M, V), (np.inner, C, M)],
    np.outer: [(np.outer, V, W), (np.outer, M, V)],
    np.kron: [(np.kron, V, W), (np.kron, M, N), (np.kron, V, M)],
    np.tensordot: [(np.tensordot, C, C[0]), (lambda a, b: np.tensordot(a, b, axes=1), M, N),
                   (lambda a, b: np.tensordot(a, b, ((0, 1), (1, 0))), M, N),
                   (lambda a, b: np.tensordot(a, b, 0), V, M)],
    np.linalg.norm: [(np.linalg.norm, V), (np.linalg.norm, M), (lambda x: np.linalg.norm(x, 1), V),
                     (lambda x: np.linalg.norm(x, axis=1, keepdims=True), M),
                     (lambda x: np.linalg.norm(x, np.inf, 0), M)],

    np.where: [(lambda x, y: np.where(x > 0.5, x, y), M, V), (lambda x: np.where(x > 0.5, x, 0), V),
               (lambda x: np.where([1, 0, 2, 0], x, 1.0), V), (np.where, FACTS)],
    np.select: [(lambda x, y: np.select([x > 0.6, x > 0.4], [x, y], 0.5), V, W)],
    np.clip: [(lambda x: np.clip(x, 0.3, 0.6), M), (lambda x: np.clip(x, None, 0.6), M),
              (lambda x, low: np.clip(x, low, 5.0), N.T, V)],
    np.nan_to_num: [(np.nan_to_num, WILD), (lambda x: np.nan_to_num(x, nan=2.0, posinf=1), WILD),
                    (np.nan_to_num, V), (np.nan_to_num, INTS)],
    np.take: [(lambda x: np.take(x, [2, 0, 2]), M), (lambda x: np.take(x, [[2, 0], [1, 1]], 0), M)],
    np.take_along_axis: [
        (lambda x: np.take_along_axis(x, np.array([[0, 1], [3, 3], [2, 0]]), axis=1), M)],
    np.compress: [(lambda x: np.compress([True, False, True], x, axis=0), M),
                  (lambda x: np.compress([False, True], x), M)],
    np.nonzero: [(np.nonzero, FACTS), (lambda x: np.nonzero(x > 0.5), M)],
    np.argwhere: [(np.argwhere, FACTS)],
    np.flatnonzero: [(lambda x: np.flatnonzero(x > 0.5), M)],
    np.round: [(np.round, M), (lambda x: np.round(x, 1), M), (lambda x: np.round(x, -1), INTS * 0)],
    np.around: [(np.around, M)],
    np.copy: [(np.copy, M)],
    np.zeros_like: [(np.zeros_like, M), (lambda x: np.zeros_like(x, dtype=np.int32), M)],
    np.ones_like: [(np.ones_like, M)],
    np.empty_like: [(lambda x: np.empty_like(x).shape, M)],
    np.full_like: [(lambda x: np.full_like(x, 3), M), (lambda x: np.full_like(x, V), M)],
    np.shape: [(np.shape, M)],
    np.ndim: [(np.ndim, M)],
    np.size: [(np.size, M), (lambda x: np.size(x, 1), M)],
    np.isclose: [(lambda x: np.isclose(x, x + 1e-9), M), (lambda x: np.isclose(x, WILD), WILD),
                 (lambda x: np.isclose(x, WILD, equal_nan=True), WILD)],
    np.allclose: [(np.allclose, M, M + 1e-9), (np.allclose, M, M + 1e-2)],
    np.array_equal: [(np.array_equal, M, M), (np.array_equal, M, V)],

    np.reshape: [(lambda x: np.reshape(x, (2, 6)), M), (lambda x: np.reshape(x, -1), M)],
    np.ravel: [(np.ravel, M)],
    np.transpose: [(np.transpose, M), (lambda x: np.transpose(x, (1, 2, 0)), C)],
    np.matrix_transpose: [(np.matrix_transpose, C)],
    np.swapaxes: [(lambda x: np.swapaxes(x, 0, -1), C)],
    np.moveaxis: [(lambda x: np.moveaxis(x, 0, -1), C),
                  (lambda x: np.moveaxis(x, (0, 1), (2, 0)), C)],
    np.squeeze: [(np.squeeze, M[None]), (lambda x: np.squeeze(x, 1), M[:, None])],
    np.expand_dims: [(lambda x: np.expand_dims(x, 1), M),
                     (lambda x: np.expand_dims(x, (0, -1)), M)],
    np.broadcast_to: [(lambda x: np.broadcast_to(x, (2, 3, 4)), M)],
    np.broadcast_arrays: [(np.broadcast_arrays, M, V)],
    np.atleast_1d: [(np.atleast_1d, V[0]), (np.atleast_1d, M, V)],
    np.atleast_2d: [(np.atleast_2d, V), (np.atleast_2d, M)],
    np.atleast_3d: [(np.atleast_3d, V), (np.atleast_3d, M), (np.atleast_3d, C)],
    np.meshgrid: [(np.meshgrid, V, FLAT[:3]), (lambda x, y: np.meshgrid(x, y, indexing="ij"), V, W),
                  (np.meshgrid, V, W, FLAT[:2]), (np.meshgrid, V), (np.meshgrid, V, np.arange(3))],
    np.concatenate: [(lambda x, y: np.concatenate([x, y]), V, W),
                     (lambda x, y: np.concatenate((x, y), axis=1), M, N.T),
                     (lambda x, y: np.concatenate((x, y), axis=None), M, V),
                     (lambda x: np.concatenate((x, [1.0, 2.0])), V)],
    np.stack: [(lambda x, y: np.stack([x, y]), V, W), (lambda x, y: np.stack([x, y], -1), V, W)],
    np.vstack: [(lambda x, y: np.vstack([x, y]), V, M)],
    np.hstack: [(lambda x, y: np.hstack([x, y]), V, W), (lambda x, y: np.hstack([x, y]), M, N.T)],
    np.dstack: [(lambda x, y: np.dstack([x, y]), M, N.T), (lambda x, y: np.dstack([x, y]), V, W)],
    np.column_stack: [(lambda x, y: np.column_stack([x, y]), V, N)],
    np.append: [(lambda x: np.append(x, [1.0, 2.0]), M), (lambda x, y: np.append(x, y, 1), M, N.T)],
    np.tile: [(lambda x: np.tile(x, 2), V), (lambda x: np.tile(x, (2, 3)), V),
              (lambda x: np.tile(x, 2), M)],
    np.repeat: [(lambda x: np.repeat(x, 2), M), (lambda x: np.repeat(x, [1, 0, 2], axis=0), M)],
    np.split: [(lambda x: np.split(x, 2), V), (lambda x: np.split(x, [1, 3], axis=1), M)],
    np.array_split: [(lambda x: np.array_split(x, 3), V), (lambda x: np.array_split(x, 3, 1), M)],
    np.hsplit: [(lambda x: np.hsplit(x, 2), M), (lambda x: np.hsplit(x, 2), V)],
    np.vsplit: [(lambda x: np.vsplit(x, 3), M)],
    np.dsplit: [(lambda x: np.dsplit(x, [1]), C)],
    np.flip: [(np.flip, M), (lambda x: np.flip(x, 1), M), (lambda x: np.flip(x, (0, -1)), C)],
    np.flipud: [(np.flipud, M)],
    np.fliplr: [(np.fliplr, M)],
    np.roll: [(lambda x: np.roll(x, 3), M), (lambda x: np.roll(x, -1, axis=1), M),
              (lambda x: np.roll(x, (1, 2), axis=(0, 1)), M)],
    np.diag: [(np.diag, V), (np.diag, M), (lambda x: np.diag(x, -1), V),
              (lambda x: np.diag(x, 1), M)],
    np.diagonal: [(np.diagonal, M), (lambda x: np.diagonal(x, 1, 1, 2), C)],
    np.tril: [(np.tril, M), (lambda x: np.tril(x, -1), M), (np.tril, V)],
    np.triu: [(np.triu, M), (lambda x: np.triu(x, 1), C), (np.triu, V)],
}

CASES |= {f: [(f, V), (lambda x, f=f: f(x, 3, axis=0, norm="ortho"), M)]
          for f in (np.fft.fft, np.fft.ifft, np.fft.rfft, np.fft.irfft, np.fft.hfft, np.fft.ihfft)}
CASES |= {f: [(f, M), (lambda x, f=f: f(x, axes=(0, 1)), C)]
          for f in (np.fft.fft2, np.fft.ifft2, np.fft.rfft2, np.fft.irfft2, np.fft.fftn,
                    np.fft.ifftn, np.fft.rfftn, np.fft.irfftn)}
CASES |= {f: [(f, V), (lambda x, f=f: f(x, axes=1), M)]
          for f in (np.fft.fftshift, np.fft.ifftshift)}

# complex numbers, of which no part may be lost
for _function in (np.conjugate, np.mean, np.average, np.var, np.std, np.linalg.norm, np.nan_to_num):
    CASES[_function].append((_function, Z))
for _function in (np.vdot, np.vecdot):
    CASES[_function].append((_function, Z, 1j * Z))

# what has no value to compare: texts
TEXTS = {np.array_repr, np.array_str, np.array2string}

ROWS = {f"{name_of(function)}-{i}": (call, arrays)
        for function, calls in CASES.items() for i, (call, *arrays) in enumerate(calls)}


def parts(result):
    """The results of a call as a list; it may give one or several."""
    return list(result) if isinstance(result, (tuple, list)) else [result]


def test_every_row_has_cases():
    assert set(COUNTERPARTS) == set(CASES) | TEXTS


@each("call, arrays", ROWS.values(), ids=ROWS)
def test_the_values_are_those_of_numpy(call, arrays):
    wanted = call(*arrays)
    got = call(*(tl.tensor(x) for x in arrays))
    assert len(parts(got)) == len(parts(wanted))
    for ours, theirs in zip(parts(got), parts(wanted)):
        if isinstance(theirs, (bool, int)):
            assert type(ours) is type(theirs) and ours == theirs
            continue
        assert isinstance(ours, np.ndarray if call in CONVERSIONS else tl.Tensor)
        assert tuple(ours.shape) == theirs.shape
        assert np.allclose(np.asarray(ours), theirs, rtol=1e-13, atol=1e-14, equal_nan=True)


def leaves(arrays):
    return [tl.tensor(x, requires_grad=x.dtype.kind == "f") for x in arrays]


def in_the_graph(call, values):
    """The results of a row that have a gradient."""
    results = [x for x in parts(call(*values)) if isinstance(x, tl.Tensor)]
    return tuple(x for x in results if x.requires_grad)


def has_gradient(call, arrays):
    return not any(np.isnan(x).any() for x in arrays) and in_the_graph(call, leaves(arrays))


@each("call, arrays", ROWS.values(), ids=ROWS)
def test_the_gradients_are_those_of_finite_differences(call, arrays):
    if has_gradient(call, arrays):
        assert gradcheck(lambda *values: in_the_graph(call, values), leaves(arrays))


NOT_DIFFERENTIABLE = {getattr(np, name) for name in (
    "all allclose any argmax argmin argwhere array_equal bitwise_and bitwise_not bitwise_or "
    "bitwise_xor count_nonzero empty_like equal flatnonzero full_like gcd greater greater_equal "
    "lcm isclose isfinite isinf isnan left_shift less less_equal logical_and logical_not "
    "logical_or logical_xor ndim nonzero not_equal ones_like right_shift shape size "
    "zeros_like").split()}


@each("function", [f for f in CASES if f not in NOT_DIFFERENTIABLE], ids=name_of)
def test_the_result_is_in_the_graph(function):
    """So that the gradient check above has something to check for every row that has one."""
    call, *arrays = CASES[function][0]
    inputs = [tl.tensor(np.nan_to_num(x), requires_grad=True) for x in arrays]
    if function is np.where:
        inputs = [tl.tensor(x, requires_grad=True) for x in (M, V)]
    assert any(x.requires_grad for x in parts(call(*inputs)))


@each("function", [f for f in COUNTERPARTS if not isinstance(f, np.ufunc)], ids=name_of)
def test_the_arguments_have_the_names_and_order_of_numpys(function):
    try:
        theirs = list(inspect.signature(function).parameters)
    except ValueError:
        theirs = ["arrays", "axis", "out", "dtype", "casting"]      # concatenate is compiled
    parameters = inspect.signature(COUNTERPARTS[function]).parameters.values()
    assert {p.name for p in parameters} <= set(theirs)
    by_place = [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY]
    assert by_place == theirs[:len(by_place)]


class TestUfuncMethods:
    @pytest.mark.parametrize("call", [
        lambda x: np.add.reduce(x), lambda x: np.add.reduce(x, axis=1, keepdims=True),
        lambda x: np.add.reduce(x, axis=None), lambda x: np.add.reduce(x, axis=(0, 1)),
        lambda x: np.multiply.reduce(x), lambda x: np.multiply.reduce(x, axis=None),
        lambda x: np.maximum.reduce(x, axis=1), lambda x: np.minimum.reduce(x),
        lambda x: np.add.accumulate(x), lambda x: np.add.accumulate(x, axis=1),
        lambda x: np.multiply.outer(x, x[0]), lambda x: np.subtract.outer(x, [1.0, 2.0]),
        lambda x: np.power.outer(V, x),
    ])
    def test_values_and_gradients(self, call):
        x = tl.tensor(M, requires_grad=True)
        assert np.allclose(call(x.detach()).numpy(), call(M), rtol=1e-14)
        assert gradcheck(call, (x,))

    def test_logic(self):
        x = tl.tensor([[True, False], [True, True]])
        assert np.logical_and.reduce(x).tolist() == [True, False]
        assert np.logical_or.reduce(x, axis=None).item() is True

    @pytest.mark.parametrize("call, name", [
        (lambda x: np.add.reduceat(x, [0, 1]), "numpy.add.reduceat"),
        (lambda x: np.add.at(x, [0], 1.0), "numpy.add.at"),
        (lambda x: np.subtract.reduce(x), "numpy.subtract.reduce"),
        (lambda x: np.multiply.accumulate(x), "numpy.multiply.accumulate"),
    ])
    def test_the_others_are_refused_by_name(self, call, name):
        with pytest.raises(TypeError, match=rf"{name}.*\.detach\(\)\.numpy\(\)"):
            call(tl.tensor(V, requires_grad=True))


OPERATORS = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
    "/": lambda a, b: a / b, "//": lambda a, b: a // b, "%": lambda a, b: a % b,
    "**": lambda a, b: a ** b, "<": lambda a, b: a < b, ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b,
}


class TestOperators:
    @pytest.mark.parametrize("name", OPERATORS)
    @pytest.mark.parametrize("array", [W, np.float64(1.5), np.array(1.5)], ids=["1d", "0d", "()"])
    def test_arrays_and_tensors_in_either_order(self, name, array):
        apply = OPERATORS[name]
        x = tl.tensor(V, requires_grad=True)
        for call in (lambda x: apply(array, x), lambda x: apply(x, array)):
            got = call(x)
            assert isinstance(got, tl.Tensor)
            assert np.allclose(got.detach().numpy(), call(V))
            if got.is_floating_point():
                assert gradcheck(call, (x,))

    def test_matrix_products(self):
        x = tl.tensor(V, requires_grad=True)
        assert gradcheck(lambda x: M @ x, (x,))
        assert gradcheck(lambda x: x @ N, (x,))

    def test_an_array_grows_in_place_by_a_tensor_outside_the_graph(self):
        array = V.copy()
        same = array
        array += tl.tensor(W)
        assert array is same and np.array_equal(array, V + W)

    def test_an_array_does_not_take_in_a_graph(self):
        array, x = V.copy(), tl.tensor(W, requires_grad=True)
        with pytest.raises(RuntimeError, match=r"numpy\.add.*leave the graph.*detach"):
            array += x
        assert np.array_equal(array, V)
        with pytest.raises(RuntimeError, match=r"numpy\.exp.*leave the graph"):
            np.exp(x, out=array)
        with tl.no_grad():
            array += x
        assert np.array_equal(array, V + W)

    def test_a_tensor_grows_in_place_by_an_array(self):
        x = tl.tensor(V, requires_grad=True)
        y = x * 1
        y += W
        assert_close(y.detach(), V + W)
        assert y.requires_grad


class TestArguments:
    def test_dtypes_of_either_library(self):
        x = tl.ones(3)
        for dtype in (np.float64, "float64", np.dtype("f8"), tl.float64, float):
            assert np.sum(x, dtype=dtype).dtype == tl.float64
            assert np.add(x, 1, dtype=dtype).dtype == tl.float64
        assert np.add(x, tl.ones(3, dtype=tl.int64), dtype=np.int32).dtype == tl.int32
        assert np.less(x, 2, dtype=bool).tolist() == [True] * 3

    def test_arrays_and_tensors_of_several_dtypes_meet_in_the_larger(self):
        x = tl.ones(3, requires_grad=True)
        for result in (np.dot(np.ones((2, 3)), x), np.concatenate([np.ones(2), x]),
                       np.stack([x, np.ones(3)]), np.ones((2, 3)) @ x):
            assert result.dtype == tl.float64 and result.requires_grad

    def test_integers_have_means(self):
        assert np.mean(tl.tensor([1, 2])).item() == 1.5
        assert np.std(tl.tensor([1, 3])).item() == 1.0

    def test_out_is_a_tensor(self):
        x, out = tl.tensor(V), tl.zeros(4, dtype=tl.float64)
        assert np.exp(x, out=out) is out
        assert np.allclose(out.numpy(), np.exp(V))
        assert np.exp(V, out=out) is out
        total = tl.zeros((), dtype=tl.float64)
        assert np.sum(x, out=total) is total and total.item() == pytest.approx(V.sum())

    def test_out_that_would_leave_the_graph(self):
        x = tl.tensor(V, requires_grad=True)
        with pytest.raises(RuntimeError, match="numpy.exp.*out="):
            np.exp(x, out=tl.zeros(4, dtype=tl.float64))
        with pytest.raises(RuntimeError):
            np.sum(x, out=tl.zeros((), dtype=tl.float64))
        with pytest.raises(TypeError, match="numpy.sum: out must be a Tensor"):
            np.sum(x, out=np.zeros(()))
        with pytest.raises(RuntimeError, match="out has shape"):
            np.exp(x.detach(), out=tl.zeros(3, dtype=tl.float64))

    @pytest.mark.parametrize("call, words", [
        (lambda x: np.exp(x, where=[True, False, True, True]), "numpy.exp: where="),
        (lambda x: np.exp(x, casting="unsafe"), "numpy.exp: casting='unsafe'"),
        (lambda x: np.sum(x, where=[True] * 4), "numpy.sum: where"),
        (lambda x: np.sum(x, initial=2.0), "numpy.sum: initial"),
        (lambda x: np.add.reduce(x, initial=2.0), "numpy.add.reduce: initial=2.0"),
        (lambda x: np.reshape(x, (2, 2), order="F"), "numpy.reshape: order"),
        (lambda x: np.take(x, [0], mode="wrap"), "numpy.take: mode"),
        (lambda x: np.linalg.norm(np.reshape(x, (2, 2)), "nuc"), "numpy.linalg.norm: ord='nuc'"),
        (lambda x: np.linalg.norm(np.reshape(x, (2, 2)), 2), "numpy.linalg.norm: ord=2"),
    ])
    def test_arguments_without_a_counterpart_are_refused_by_name(self, call, words):
        with pytest.raises(TypeError) as error:
            call(tl.tensor(V, requires_grad=True))
        assert words in str(error.value) and ".detach().numpy()" in str(error.value)

    @pytest.mark.parametrize("call, error, words", [
        (lambda x: np.sum(x, axis=3), IndexError, "sum: Dimension out of range"),
        (lambda x: np.reshape(x, (3, 2)), RuntimeError, "invalid for input of size 4"),
        (lambda x: np.split(x, 3), ValueError,
         "numpy.split: 4 elements can't be split evenly in 3"),
        (lambda x: np.squeeze(x, 0), ValueError,
         "numpy.squeeze: axis 0 of shape (4,) has not size 1"),
        (lambda x: np.dot(x, np.ones(3)), RuntimeError, "inner dimensions differ: (4,) @ (3,)"),
        (lambda x: np.concatenate([x, np.ones((2, 2))]), RuntimeError,
         "must have same number of dimensions"),
        (lambda x: np.stack([x, np.ones(3)]), RuntimeError,
         "numpy.stack: the arrays must have one shape, got [(3,), (4,)]"),
        (lambda x: np.tensordot(x, np.ones(3), 1), RuntimeError, "differ in size or number"),
        (lambda x: np.average(x, weights=np.ones(3)), TypeError,
         "numpy.average: weights of another shape"),
        (lambda x: np.add(x, "a"), TypeError, "add: other must be a Tensor or a number, not str"),
        (lambda x: np.add(x, None), TypeError,
         "add: other must be a Tensor or a number, not NoneType"),
    ])
    def test_bad_input(self, call, error, words):
        with pytest.raises(error, match=re.escape(words)):
            call(tl.tensor(V, requires_grad=True))


class TestRefused:
    def test_other_libraries_arrays_decide_for_themselves(self):
        class Other:
            def __array_ufunc__(self, ufunc, method, *inputs, **options):
                return "theirs"

            def __array_function__(self, function, types, args, kwargs):
                return "theirs"

        x = tl.tensor(V, requires_grad=True)
        assert np.add(x, Other()) == "theirs"
        assert np.concatenate([x, Other()]) == "theirs"

    def test_arrays_of_tensors_are_made_as_before(self):
        x = tl.tensor(V, requires_grad=True)
        assert np.array_equal(np.asarray(x.detach()), V)
        assert np.shares_memory(np.asarray(x.detach()), x.detach().numpy())
        with pytest.raises(RuntimeError, match="detach"):
            np.asarray(x)
        with pytest.raises(RuntimeError, match="detach"):
            M.dot(x)

    def test_texts(self):
        assert np.array_repr(tl.ones(2)) == repr(tl.ones(2))


class TestLogisticRegression:
    """Written for NumPy alone; only the weights are made a Tensor, or the data as well."""

    inputs = np.array([[0.52, 1.12, 0.77], [0.88, -1.08, 0.15], [0.52, 0.06, -1.30],
                       [0.74, -2.49, 1.39]])
    targets = np.array([True, True, False, True])

    def loss(self, w, x):
        predictions = 0.5 * (np.tanh(x.dot(w)) + 1)
        likelihoods = predictions * self.targets + (1 - predictions) * (1 - self.targets)
        return -np.sum(np.log(likelihoods))

    def loss_by_function(self, w, x):
        predictions = 0.5 * (np.tanh(np.dot(x, w)) + 1)
        likelihoods = predictions * self.targets + (1 - predictions) * (1 - self.targets)
        return -np.sum(np.log(likelihoods))

    def test_the_gradient(self):
        w = tl.tensor([0.1, -0.2, 0.3], dtype=tl.float64, requires_grad=True)
        x = tl.tensor(self.inputs)
        assert self.loss(w, x).item() == pytest.approx(self.loss(w.detach().numpy(), self.inputs))
        assert gradcheck(lambda w: self.loss(w, x), (w,))
        assert gradcheck(lambda w: self.loss_by_function(w, self.inputs), (w,))

    def test_gradient_descent_learns(self):
        w = tl.zeros(3, dtype=tl.float64, requires_grad=True)
        before = self.loss_by_function(w, self.inputs).item()
        for _ in range(100):
            loss = self.loss_by_function(w, self.inputs)
            (g,) = tl.autograd.grad(loss, (w,))
            with tl.no_grad():
                w -= 0.1 * g
        assert loss.item() < before / 10

    def test_method_dot_is_numpys(self):
        for a, b in ((M, N), (C, N), (V, W), (M, V)):
            assert np.allclose(tl.tensor(a).dot(tl.tensor(b)).numpy(), a.dot(b))
        with pytest.raises(RuntimeError):
            tl.dot(tl.tensor(M), tl.tensor(V))
