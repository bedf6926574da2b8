"""NumPy's functions that have no counterpart for Tensors: on plain Tensors they give what NumPy
gives, and where a gradient would be lost they are refused by name.
"""

import io

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from process import run_forked
from tensorlib import ops
from tensorlib.func import grad, jvp, vmap
from tensorlib.io.table import COUNTERPARTS
from tensorlib.testing import gradcheck

RNG = np.random.default_rng(0)
# Two vectors, of which the second grows, and a matrix that has an inverse.
V, W = RNG.uniform(0.2, 2.0, 6), np.sort(RNG.uniform(0.2, 2.0, 6))
M = RNG.uniform(0.2, 2.0, (3, 3)) + 3 * np.eye(3)
INTS = np.array([3, 1, 3, 0, 1, 5])

# Calls whose result would have a gradient, by the name that the error gives.
LOSING = [
    ("numpy.sort", np.sort, V), ("numpy.median", np.median, V), ("numpy.spacing", np.spacing, V),
    ("numpy.linalg.svd", np.linalg.svd, M),
    ("numpy.linalg.inv", np.linalg.inv, M), ("numpy.linalg.solve", np.linalg.solve, M, M[0]),
    ("numpy.linalg.eigh", np.linalg.eigh, M + M.T), ("numpy.linalg.det", np.linalg.det, M),
    ("numpy.einsum", lambda x, y: np.einsum("ij,jk", x, y), M, M),
    ("numpy.interp", np.interp, V, W, V), ("numpy.sinc", np.sinc, V),
    ("numpy.unique", np.unique, V), ("numpy.histogram", np.histogram, V),
    ("numpy.polyfit", lambda x, y: np.polyfit(x, y, 2), V, W),
    ("numpy.percentile", lambda x: np.percentile(x, [25, 75]), V),
    ("numpy.quantile", lambda x: np.quantile(x, 0.3), V), ("numpy.convolve", np.convolve, V, W),
    ("numpy.gradient", np.gradient, V), ("numpy.cumprod", np.cumprod, V),
    ("numpy.cov", np.cov, M), ("numpy.corrcoef", np.corrcoef, M),
    ("numpy.block", lambda x, y: np.block([[x, y], [y, x]]), M, M),
    ("numpy.insert", lambda x: np.insert(x, 1, 5.0), V),
    ("numpy.delete", lambda x: np.delete(x, 1), V), ("numpy.cross", np.cross, M[0], M[1]),
    ("numpy.rot90", np.rot90, M), ("numpy.pad", lambda x: np.pad(x, 2), V),
    ("numpy.trapezoid", np.trapezoid, V, W), ("numpy.nanmean", np.nanmean, V),
    ("numpy.partition", lambda x: np.partition(x, 2), V), ("numpy.modf", np.modf, V),
    ("numpy.piecewise", lambda x: np.piecewise(x, [x < 1, x >= 1], [-1, lambda x: x]), V),
    ("numpy.apply_along_axis", lambda x: np.apply_along_axis(sum, 0, x), M),
    ("numpy.add.reduceat", lambda x: np.add.reduceat(x, [0, 2]), V),
    ("numpy.subtract.reduce", np.subtract.reduce, V),
    ("numpy.multiply.accumulate", np.multiply.accumulate, V),
    ("numpy.exp: where=", lambda x: np.exp(x, where=W > 0, out=None), V),
    ("numpy.sum: where", lambda x: np.sum(x, where=W > 1), V),
    ("numpy.sum: initial", lambda x: np.sum(x, initial=2.0), V),
    ("numpy.reshape: order", lambda x: np.reshape(x, (2, 3), "F"), V),
    ("numpy.linalg.norm: ord='nuc'", lambda x: np.linalg.norm(x, "nuc"), M),
    ("numpy.random", lambda x: np.random.default_rng(0).permutation(x), V),
]
# Calls whose result has none: predicates, dtypes, positions.
ANSWERED = [
    (np.argsort, V), (lambda x, y: np.searchsorted(y, x), V, W), (np.digitize, V, W),
    (lambda x: np.lexsort((x, x)), V), (np.isin, V, W), (np.array_equal, V, V),
    (lambda x: np.array_equal(x, x, equal_nan=True), V), (np.array_equiv, V, W),
    (np.allclose, V, V), (lambda x: np.allclose(x, V), V), (np.isclose, V, W),
    (np.iscomplexobj, V), (np.isrealobj, V), (np.isreal, V), (np.signbit, V),
    (lambda x: np.result_type(x, np.float32), V), (np.min_scalar_type, V), (np.common_type, V),
    (lambda x: np.can_cast(x.dtype, np.float32), V), (np.shape, M), (np.ndim, M), (np.size, M),
    (np.isposinf, V), (np.nanargmax, V),
]


def parts(result):
    return list(result) if isinstance(result, (tuple, list)) else [result]


def same(got, wanted):
    return len(parts(got)) == len(parts(wanted)) and all(
        np.array_equal(np.asarray(a), np.asarray(b)) for a, b in zip(parts(got), parts(wanted)))


def plain(array):
    return tl.from_numpy(array.copy())


def leaf(array):
    return plain(array).requires_grad_()


@pytest.mark.filterwarnings("ignore:'where' used without")
@pytest.mark.parametrize("name, call, arrays", [
    pytest.param(name, call, arrays, id=name) for name, call, *arrays in LOSING])
class TestLosing:
    def test_plain_tensors_give_what_arrays_give(self, name, call, arrays):
        wanted, got = call(*arrays), call(*map(plain, arrays))
        assert same(got, wanted)
        assert not any(isinstance(x, tl.Tensor) for x in parts(got))

    def test_a_gradient_is_not_lost(self, name, call, arrays):
        if name == "numpy.random":
            with pytest.raises(RuntimeError, match="detach"):
                call(*map(leaf, arrays))
            return
        with pytest.raises(TypeError, match=rf"^{name}.*\.detach\(\)\.numpy\(\)"):
            call(*map(leaf, arrays))
        assert same(call(*(leaf(x).detach() for x in arrays)), call(*arrays))
        with tl.no_grad():
            assert same(call(*map(leaf, arrays)), call(*arrays))

    def test_nor_inside_transforms(self, name, call, arrays):
        x, *others = map(plain, arrays)
        for run in (lambda: grad(lambda x: call(x, *others))(x),
                    lambda: jvp(lambda x: call(x, *others), (x,), (x,)),
                    lambda: vmap(lambda x: call(x, *others))(tl.stack([x, x]))):
            with pytest.raises((TypeError, RuntimeError), match="numpy|detach"):
                run()


@each("call, arrays", [(call, arrays) for call, *arrays in ANSWERED])
def test_what_has_no_gradient_is_answered_in_a_graph_too(call, arrays):
    wanted = call(*arrays)
    for make in (plain, leaf, lambda array: leaf(array) * 1):
        got = call(*map(make, arrays))
        assert same(got, wanted)


def test_what_is_said_of_memory_and_dtypes_holds_inside_vmap_too():
    seen = []

    def ask(x):
        seen.append((np.result_type(x, np.float32), np.iscomplexobj(x), np.shape(x)))
        return x

    vmap(ask)(tl.ones(2, 3, dtype=tl.float64))
    assert seen == [(np.dtype("float64"), False, (3,))]
    with pytest.raises(RuntimeError, match="vmap"):
        vmap(lambda x: np.array_equal(x, x))(tl.ones(2, 3))


def test_tensors_and_arrays_say_that_they_share_memory():
    x = leaf(V)
    assert np.may_share_memory(x, x.detach().numpy()) and np.shares_memory(x, x)
    assert not np.shares_memory(x, V)


@each("make", [plain, leaf])
def test_tensors_are_written_to_files(make):
    for write, read in (
            (lambda file, x: np.save(file, x), lambda file: np.load(file)),
            (lambda file, x: np.savez(file, x), lambda file: np.load(file)["arr_0"]),
            (lambda file, x: np.savez(file, name=x), lambda file: np.load(file)["name"]),
            (lambda file, x: np.savez_compressed(file, x), lambda file: np.load(file)["arr_0"]),
            (lambda file, x: np.savetxt(file, x, "%.17g"), lambda file: np.loadtxt(file))):
        file = io.BytesIO()
        write(file, make(M))
        file.seek(0)
        assert np.array_equal(read(file), M)


def test_integers_of_a_graph_lose_nothing():
    x = leaf(V)
    assert np.bincount((x * 3).long()).sum() == 6
    assert np.unique(INTS).tolist() == np.unique(plain(INTS)).tolist()


class TestWriting:
    def test_numpy_writes_into_a_plain_tensor_and_the_write_counts(self):
        for write in (lambda x: np.copyto(x, 2.0), lambda x: np.put(x, [0], 2.0),
                      lambda x: np.fill_diagonal(x, 2.0), lambda x: np.putmask(x, M > 0, 2.0),
                      lambda x: np.place(x, M > 0, [2.0]), lambda x: np.add.at(x, (0, 0), 1.0),
                      lambda x: np.copyto(dst=x, src=2.0),
                      lambda x: np.nan_to_num(x, copy=False), lambda x: np.spacing(x, out=x),
                      lambda x: np.median(M, axis=1, out=x[0]),
                      lambda x: np.cumprod(M, 1, None, x)):
            x, array = plain(M), M.copy()
            write(array)
            write(x)
            assert np.array_equal(x.numpy(), array)
            assert x._version == 1

    def test_a_saved_value_that_numpy_overwrote_is_noticed(self):
        w, x = leaf(V), plain(V)
        y = (w * x).sum()
        np.put(x, [0], 5.0)
        with pytest.raises(RuntimeError, match="modified"):
            y.backward()

    def test_a_write_that_fails_half_way_counts(self):
        x = plain(V)
        with pytest.raises(IndexError):
            np.put(x, [0, 100], 5.0)
        assert x._version == 1

    def test_out_is_returned(self):
        x, out = plain(V), tl.zeros(6, dtype=tl.float64)
        assert np.spacing(x, out=out) is out and np.array_equal(out.numpy(), np.spacing(V))
        whole = np.zeros(6)
        fraction, kept = np.modf(x, out=(out, whole))
        quotient, rest = tl.zeros(6, dtype=tl.float64), tl.zeros(6, dtype=tl.float64)
        assert np.divmod(x, 0.3, out=(quotient, rest))[1] is rest
        assert np.array_equal(quotient.numpy(), V // 0.3)
        assert fraction is out and kept is whole and np.array_equal(whole, np.modf(V)[1])

    def test_a_leaf_is_not_written(self):
        x = leaf(M)
        for write in (lambda: np.fill_diagonal(x, 0.0), lambda: np.copyto(x, M),
                      lambda: np.spacing(M, out=x), lambda: np.add.at(x, (0, 0), 1.0)):
            with pytest.raises(TypeError, match="numpy"):
                write()
        assert np.array_equal(x.detach().numpy(), M) and x._version == 0


def test_numpys_own_errors_are_shown_where_it_ran():
    with pytest.raises(np.exceptions.AxisError):
        np.sort(plain(V), axis=3)
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.inv(tl.zeros(2, 2))


def test_an_error_of_a_counterpart_stays():
    for x in (plain(V), leaf(V)):
        with pytest.raises(TypeError, match="^add"):
            np.add(x, "a")
        with pytest.raises(RuntimeError, match="reshape"):
            np.reshape(x, (4, 4))
    with pytest.raises(ZeroDivisionError):
        np.floor_divide(plain(INTS), np.zeros(6, int))


def test_none_beside_a_tensor():
    """matplotlib's `bar` broadcasts x, height and what was not given."""
    assert [x.dtype.kind for x in np.broadcast_arrays(plain(V), None)] == ["f", "O"]
    with pytest.raises(TypeError, match="^numpy.broadcast_arrays: None"):
        np.broadcast_arrays(leaf(V), None)


def test_complex_arrays_beside_plain_tensors():
    assert np.array_equal(1j * V * plain(W), 1j * V * W)
    assert (1j * V * leaf(W)).requires_grad


def test_the_conversions_of_numpy_give_arrays_unless_a_gradient_is_asked_for():
    """SciPy's optimisers ask the result for what only arrays have, such as `astype`."""
    for convert in (np.atleast_1d, np.atleast_2d, np.atleast_3d):
        x = plain(V)
        assert type(convert(x)) is np.ndarray and np.shares_memory(convert(x), x)
        assert convert(leaf(V)).requires_grad
        assert grad(lambda x: convert(x).sum())(x).tolist() == [1.0] * 6


def test_an_array_of_tensors_in_a_graph_names_stack():
    assert grad(lambda s: np.stack([s, s * s]).sum())(tl.tensor(3.0)).item() == 7.0
    for transform in (grad, vmap):
        with pytest.raises(RuntimeError, match=r"numpy\.stack"):
            transform(lambda s: np.array([s, s * s]).sum())(tl.tensor(3.0).expand(
                2 if transform is vmap else ()))


def test_the_remedy_works():
    """What the error advises: an operation around NumPy's function."""
    @ops.primitive
    def sorted_by_numpy(x):
        return np.sort(x)

    ops.defvjp(sorted_by_numpy, lambda g, ans, x: g[np.argsort(np.argsort(x))])
    assert gradcheck(sorted_by_numpy, (leaf(V),))


def test_a_ufunc_of_another_library_is_named_with_its_module():
    special = pytest.importorskip("scipy.special")
    for name in ("gammaln", "expit", "xlogy"):
        function = getattr(special, name)
        arrays = (V, W) if name == "xlogy" else (V,)
        assert same(function(*map(plain, arrays)), function(*arrays))
        with pytest.raises(TypeError, match=rf"^scipy\.special\.{name}: "):
            function(*map(leaf, arrays))


def test_numpys_dtypes_are_made_of_ours():
    for name in ("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64",
                 "float16", "float32", "float64"):
        ours = getattr(tl, name)
        assert np.dtype(ours) == np.dtype(name) == ours and np.zeros(2, ours).dtype == name
    with pytest.raises(TypeError, match="bfloat16"):
        np.dtype(tl.bfloat16)


def test_every_function_that_takes_tensors_of_a_graph_is_meant_to():
    """NumPy's other functions are refused, whatever they are called with."""
    x = leaf(M)
    called = {np.sort, np.median, np.trim_zeros, np.unwrap, np.vander, np.ediff1d, np.i0}
    assert not called & set(COUNTERPARTS)
    for function in called:
        with pytest.raises(TypeError, match=f"^numpy.{function.__name__}: "):
            function(x)


@each("call", [
    lambda x, out: np.cumsum(x, out=out), lambda x, out: np.cumprod(x, None, None, out),
    lambda x, out: np.cumsum(x.numpy(), out=out), lambda x, out: np.multiply.accumulate(x, out=out),
    lambda x, out: np.maximum.accumulate(x.numpy(), 0, None, out)])
def test_running_sums_into_a_number_are_refused(call):
    """NumPy itself reads past the dims of such an `out`."""
    with pytest.raises(ValueError, match="out must have the input's shape"):
        call(tl.arange(4), tl.tensor(1))


def test_an_error_that_numpy_goes_on_after_is_raised():
    """NumPy alone gives a SystemError."""
    for call in (lambda: np.put(tl.zeros(8), tl.tensor([1]), 1.0, 5),
                 lambda: np.take(tl.zeros(1, dtype=tl.int64), (0,), 2, mode=65)):
        with pytest.raises(ValueError, match="axis 2|clipmode"):
            call()


def test_an_operation_from_outside_does_not_stand_in_for_numpys():
    """Declared before the table of counterparts is made, which happens when it is first needed."""
    assert run_forked("""
import numpy as np, tensorlib as tl
from tensorlib import ops
def gap(input):
    "The distance to the next number."
def tanh_again(input):
    "The hyperbolic tangent again."
for function, reference in (gap, np.spacing), (tanh_again, np.tanh):
    ops.elementwise(kernel="tanh", reference=reference, to_float=True)(function)
print(np.spacing(tl.tensor([2.0**23])), np.tanh(tl.tensor([0.0])))
""") == "[1.] tensor([0.])\n"
