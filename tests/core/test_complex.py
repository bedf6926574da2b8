"""Complex numbers: made, shown, promoted, cast, indexed and viewed; and what is refused."""

import copy
import pickle

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib.testing import assert_close, gradcheck, gradgradcheck

INF, NAN = float("inf"), float("nan")


def numbers(*shape, dtype=np.complex128, seed=0):
    """Random complex numbers as an array."""
    rng = np.random.default_rng(seed)
    return (rng.uniform(-2, 2, shape) + 1j * rng.uniform(-2, 2, shape)).astype(dtype)


def leaf(*shape, seed=0):
    """A complex128 leaf of random numbers."""
    return tl.tensor(numbers(*shape, seed=seed), requires_grad=True)


# ---- made and shown ------------------------------------------------------------------------------

def test_numbers_of_python_and_numpy_become_complex_tensors():
    assert tl.tensor(1j).dtype == tl.complex64
    assert tl.tensor([1, 2.5, 3j]).tolist() == [1 + 0j, 2.5 + 0j, 3j]
    assert tl.tensor([True, 1j]).dtype == tl.complex64
    assert tl.tensor(np.complex128(1j)).dtype == tl.complex128
    assert tl.tensor([[1j, 2]], dtype=tl.complex128).numpy().dtype == np.complex128
    assert tl.tensor([1.5, 2], dtype=tl.cfloat).tolist() == [1.5 + 0j, 2 + 0j]
    assert tl.full((2, 2), 1 + 2j).tolist() == [[1 + 2j] * 2] * 2
    assert tl.full((3000,), 1 - 2j, dtype=tl.complex128).sum().item() == 3000 - 6000j
    assert tl.ones(3, dtype=tl.cdouble).tolist() == [1 + 0j] * 3
    assert tl.eye(2, dtype=tl.complex128).tolist() == [[1, 0], [0, 1]]
    default = tl.get_default_dtype()
    tl.set_default_dtype(tl.float64)
    try:
        assert tl.tensor(1j).dtype == tl.complex128
    finally:
        tl.set_default_dtype(default)


def test_complex_memory_is_shared_and_carried():
    array = numbers(3, 4)
    x = tl.from_numpy(array)
    x[0, 0] = 7j
    assert array[0, 0] == 7j and x.T.numpy().base is not None
    assert np.from_dlpack(tl.from_dlpack(array)).tolist() == array.tolist()
    assert np.asarray(memoryview(x)).dtype == np.complex128
    for y in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
        assert y.dtype == x.dtype and tl.equal(x, y)
    assert x[1, 2].item() == complex(x[1, 2]) == array[1, 2]


def test_files_hold_complex_tensors(tmp_path):
    x = tl.tensor(numbers(2, 3))
    tl.save({"x": x, "y": x.cfloat()}, tmp_path / "x.pt")
    back = tl.load(tmp_path / "x.pt")
    assert tl.equal(back["x"], x) and back["y"].dtype == tl.complex64


@each("made, text", [
    ([1 + 2j, 3 - 0.5j], "tensor([1.+2.0000j, 3.-0.5000j])"),
    ([1 + 10j, complex(-0.0, -2)], "tensor([1.+10.j, -0.-2.j])"),
    (1j, "tensor(0.+1.j)"),
    ([100.5 + 2j, -1.5 - 22j], "tensor([100.5000+2.j,  -1.5000-22.j])"),
    ([complex(NAN, INF), 1], "tensor([nan+infj, 1.+0.j])"),
])
def test_complex_tensors_print_as_pytorch_prints_them(made, text):
    assert repr(tl.tensor(made)) == text
    wide = tl.tensor(made, dtype=tl.complex128)
    assert repr(wide) == text[:-1] + ", dtype=tensorlib.complex128)"


# ---- promotion and casts -------------------------------------------------------------------------

@each("result, wanted", [
    (lambda: tl.ones(2) * 1j, "complex64"),
    (lambda: 1j + tl.ones(2, dtype=tl.float64), "complex128"),
    (lambda: tl.ones(2, dtype=tl.int64) * 1j, "complex64"),
    (lambda: tl.ones(2, dtype=tl.float16) * 1j, "complex64"),
    (lambda: tl.ones(2) + tl.tensor(1j, dtype=tl.complex128), "complex64"),
    (lambda: tl.ones(2, dtype=tl.float64) + tl.ones(2, dtype=tl.complex64), "complex128"),
    (lambda: tl.ones(2, dtype=tl.int32) + tl.ones(2, dtype=tl.complex64), "complex64"),
    (lambda: tl.ones(2, dtype=tl.complex64) * 2.5, "complex64"),
    (lambda: tl.where(tl.tensor([True, False]), tl.ones(2), 1j), "complex64"),
])
def test_promotion_is_that_of_pytorch(result, wanted):
    assert str(result().dtype) == f"tensorlib.{wanted}"


def test_a_cast_to_a_real_dtype_warns_and_takes_the_real_part():
    x = tl.tensor([1.5 + 2j, -3j])
    with pytest.warns(np.exceptions.ComplexWarning, match="imaginary"):
        assert x.float().tolist() == [1.5, 0]
    with pytest.warns(UserWarning):
        assert x.to(tl.int32).tolist() == [1, 0]
    assert x.bool().tolist() == [True, True] and tl.tensor([0j]).bool().tolist() == [False]
    assert tl.tensor([3, -2], dtype=tl.int8).to(tl.complex64).tolist() == [3, -2]
    for name in ("bool", "uint8", "int16", "uint64", "float16", "bfloat16", "float64"):
        ours = tl.ones(3, dtype=getattr(tl, name))
        assert ours.to(tl.complex128).tolist() == [1 + 0j] * 3


def test_dtypes_know_their_parts():
    assert tl.complex64.is_complex and not tl.complex64.is_floating_point
    assert tl.complex128.to_real() is tl.float64 and tl.float32.to_complex() is tl.complex64
    assert tl.complex64.itemsize == 8 and tl.finfo(tl.complex64).eps == tl.finfo(tl.float32).eps
    assert tl.is_complex(tl.tensor(1j)) and not tl.is_complex(tl.tensor(1.0))
    with pytest.raises(RuntimeError, match="to_real: takes floating and complex"):
        tl.int32.to_real()
    with pytest.raises(TypeError, match="iinfo"):
        tl.iinfo(tl.complex64)


# ---- views and positions -------------------------------------------------------------------------

def test_parts_are_views():
    z = tl.tensor(numbers(3, 4))
    z.real[0] = 0
    z.imag += 1
    assert (z[0].real == 0).all() and z.real.stride() == (8, 2)
    pairs = tl.view_as_real(z.T)
    assert pairs.shape == (4, 3, 2) and tl.equal(tl.view_as_complex(pairs), z.T)
    z.imag = tl.zeros(4)
    assert tl.isreal(z).all() and tl.equal(z.conj(), z)
    assert tl.equal(tl.complex(z.real, z.imag), z)
    for kind in (np.complex64, np.complex128):           # so many are joined piece by piece
        many = numbers(3, 70_001, dtype=kind)
        parts = tl.tensor(many.real.copy()), tl.tensor(many.imag.copy())
        np.testing.assert_array_equal(tl.complex(*parts).numpy(), many)
    x = tl.ones(2)
    assert x.real is x and x.conj() is x
    for wrong in (lambda: x.imag, lambda: tl.view_as_real(x), lambda: tl.view_as_complex(x[:1]),
                  lambda: tl.view_as_complex(tl.ones(3)[1:]),
                  lambda: tl.complex(x, x.double()), lambda: tl.polar(x, x.double())):
        with pytest.raises(RuntimeError):
            wrong()


@each("dtype", (np.complex64, np.complex128))
def test_positions_move_whole_numbers(dtype):
    a = numbers(5, 6, dtype=dtype)
    x, rows = tl.tensor(a), [4, 0, 4]
    assert x[rows].numpy().tolist() == a[rows].tolist()
    assert x[:, ::2][x[:, ::2].abs() > 1].tolist() == a[:, ::2][np.abs(a[:, ::2]) > 1].tolist()
    assert x.gather(1, tl.tensor([[1], [5], [0], [2], [2]])).tolist() == np.take_along_axis(
        a, np.array([[1], [5], [0], [2], [2]]), 1).tolist()
    assert x.index_select(1, tl.tensor([3, 3])).tolist() == a[:, [3, 3]].tolist()
    assert x.flatten()[tl.tensor([7, 29])].tolist() == a.reshape(-1)[[7, 29]].tolist()
    y, b = x.clone(), a.copy()
    y[rows], b[rows] = 1 - 1j, 1 - 1j
    y[y.real > 1], b[b.real > 1] = 5j, 5j
    y.index_put_((tl.tensor([0, 0]),), tl.ones(6, dtype=x.dtype), accumulate=True)
    b[0] += 2
    y.scatter_add_(1, tl.tensor([[1, 1]]), tl.tensor([[1j, 2j]], dtype=x.dtype))
    b[0, 1] += 3j
    assert_close(y.numpy(), b)
    assert x.nonzero().shape == (30, 2) and x.masked_fill(x.imag < 0, 0).imag.min() >= 0
    assert tl.cat((x, x.T.reshape(5, 6))).shape == (10, 6) and x.flip(0)[0, 0] == x[4, 0]
    assert x.tril().tolist() == np.tril(a).tolist() and x.roll(1, 1)[0, 0] == x[0, 5]
    assert tl.nn.functional.pad(x, (1, 1), value=2j)[0, 0] == 2j


# ---- values --------------------------------------------------------------------------------------

def test_functions_have_the_values_of_the_c_standard_at_their_edges():
    """Annex G of C99, and signed zeros on branch cuts."""
    edges = [complex(a, b) for a in (0.0, -0.0, 1.0, -1.0, INF, -INF, NAN)
             for b in (0.0, -0.0, 1.0, -1.0, INF, -INF, NAN)]
    z = np.array(edges)
    x = tl.tensor(z)
    for name, numpy_name in (("sqrt", "sqrt"), ("log", "log"), ("asin", "arcsin"),
                             ("atanh", "arctanh"), ("acosh", "arccosh"), ("cosh", "cosh")):
        with np.errstate(all="ignore"):
            wanted = getattr(np, numpy_name)(z)
        assert_close(getattr(x, name)().numpy(), wanted, equal_nan=True)
    assert tl.tensor(complex(-INF, NAN)).exp().item() == 0
    assert tl.tensor(complex(INF, 0.0)).exp().item() == complex(INF, 0)
    assert np.isinf(tl.tensor(complex(INF, NAN)).exp().item().real)
    assert tl.tensor(complex(NAN, INF)).abs().item() == INF
    assert (tl.tensor(1 + 1j) / tl.tensor(complex(INF, 1))).item() == 0
    assert np.isinf((tl.tensor(1 + 0j) / tl.tensor(0j)).item().real)
    assert tl.tensor(-1 + 0j).sqrt().item() == 1j
    assert tl.tensor(complex(-1, -0.0)).sqrt().item() == -1j


@each("dtype, rtol", ((np.complex64, 5e-7), (np.complex128, 1e-15)))
def test_exponentials_and_quotients_are_right_where_their_parts_overflow(dtype, rtol):
    high = 88.9 if dtype == np.complex64 else 709.9
    z = np.array([high + 0.7j, high - 0.7j, -high + 3j, 1e-3j, 30 + 1e5j, -2.5 + 2j], dtype)
    wanted = np.exp(z.astype(np.clongdouble))
    found = tl.tensor(z).exp().numpy()
    tiny = np.finfo(dtype).tiny
    assert (np.abs(found - wanted) <= rtol * np.maximum(np.abs(wanted), tiny)).all()
    big = np.array([1e38 + 1e38j, 1e-38 - 1e-38j, 3e30 + 1e-30j], dtype)
    if dtype == np.complex128:
        big = np.array([1e308 + 1e308j, 1e-307 - 1e-307j, 3e300 + 1e-300j])
    quotient = (tl.tensor(big) / tl.tensor(big)).numpy()
    assert (np.abs(quotient - 1) <= 4 * rtol).all()
    assert_close(tl.tensor(big).abs().numpy(), np.abs(big), rtol=4 * rtol, atol=0)


def test_sums_of_exponentials_neither_overflow_nor_turn_to_nan():
    for dtype in (tl.complex64, tl.complex128):
        z = tl.tensor([1000 + 1j, 1000 + 1j, -1000 - 3j], dtype=dtype)
        wanted = complex(1000 + np.log(2), 1)
        for found in (z.logsumexp(0), z.logcumsumexp(0)[2], tl.logaddexp(z[0], z[1])):
            assert found.dtype == dtype
            assert_close(found.item(), wanted, rtol=1e-6, atol=0)
        rows = tl.stack((z, z - 5j))
        assert_close(rows.logsumexp(1, True)[:, 0], rows.logsumexp(-1))
        assert_close(rows.T.logsumexp((0, 1)), rows.logsumexp(()), rtol=1e-6, atol=1e-6)
        none = tl.full((2, 3), complex(-INF, 0), dtype=dtype)
        none[0, 1] = 2 - 2j
        assert tl.equal(none.logsumexp(1)[0], none[0, 1]) and none.logsumexp(1)[1].real == -INF
        assert tl.equal(none.logcumsumexp(1)[0, 1:], none[0, 1:2].expand(2))
        assert none[:, :0].logsumexp(1).real.tolist() == [-INF, -INF]
        for bad in (complex(NAN, 0), complex(0, NAN)):
            assert tl.logaddexp(tl.tensor(bad, dtype=dtype), z)[0].isnan()
        assert z.logsumexp(0).shape == tl.tensor(1j).logsumexp(0).shape == ()
    assert tl.tensor(2j).logsumexp(0).item() == pytest.approx(2j, abs=1e-6)


def test_a_softmax_of_the_real_parts_is_asked_for_by_its_dtype():
    z = leaf(2, 3)
    with pytest.warns(np.exceptions.ComplexWarning, match="imaginary"):
        for name in ("softmax", "log_softmax"):
            found = getattr(z, name)(1, dtype=tl.float64)
            assert_close(found, getattr(z.real, name)(1))
            grad, = tl.autograd.grad((found * found).sum(), z)
            real = z.detach().real.clone().requires_grad_()
            out = getattr(real, name)(1)
            assert_close(grad, tl.autograd.grad((out * out).sum(), real)[0].to(z.dtype))
    with pytest.raises(NotImplementedError, match="softmax: not implemented for .*complex128"):
        z.softmax(1)


def test_powers_of_whole_numbers_are_exact_and_those_of_zero_are_zero():
    for dtype in (tl.complex64, tl.complex128):
        z = tl.tensor([1 + 2j, 1j, -3.0, complex(2, -0.0)], dtype=dtype)
        assert (z ** 3).tolist() == [-11 - 2j, -1j, -27, 8] and (z ** 1).imag[3].signbit()
        assert (z ** -2)[1:].tolist() == [-1, 1 / 9 if dtype == tl.complex128 else
                                          complex(np.float32(1) / 9), 0.25]
        zero = tl.zeros((), dtype=dtype)
        assert (zero ** 0).item() == 1 and (zero ** (2 + 1j)).item() == 0
        assert (zero ** -1).isinf() and (zero ** -0.5).isinf() and (zero ** 2j).isnan()
        assert (z ** 0.5)[2].item() == pytest.approx(3 ** 0.5 * 1j, abs=1e-6)


def test_scaling_by_powers_of_two_keeps_what_is_infinite():
    z = tl.tensor([complex(INF, 1), complex(3, -INF)])
    assert tl.ldexp(z, tl.tensor([2, -1])).tolist() == [complex(INF, 4), complex(1.5, -INF)]
    assert_close(tl.ldexp(z.new_tensor(3j), 1j).item(), 3j * 2 ** 1j, rtol=1e-6, atol=0)


def test_the_sine_over_its_argument_vanishes_at_whole_numbers():
    for dtype in (tl.complex64, tl.complex128):
        found = tl.sinc(tl.tensor([0, 1, -20, 20.5, 1j], dtype=dtype))
        assert found[:3].tolist() == [1, 0, 0]
        assert_close(found[3:].to(tl.complex128), tl.tensor(
            [1 / (np.pi * 20.5), np.sinh(np.pi) / np.pi], dtype=tl.complex128), rtol=1e-6, atol=0)


def test_a_product_with_the_conjugate_has_no_imaginary_part():
    for dtype in (tl.complex64, tl.complex128):
        z = tl.tensor(numbers(1000), dtype=dtype)
        assert ((z * z.conj()).imag == 0).all()


@each("dtype", (np.complex64, np.complex128))
def test_reductions_and_products_equal_those_of_numpy(dtype):
    a, b = numbers(40, 30, dtype=dtype), numbers(30, 20, dtype=dtype, seed=1)
    x, y = tl.tensor(a), tl.tensor(b)
    tolerance = {"rtol": 1e-4, "atol": 1e-4} if dtype == np.complex64 else {}
    for dim in (None, 0, 1):
        assert_close(x.sum(dim).numpy(), a.sum(dim), **tolerance)
        assert_close(x.mean(dim).numpy(), a.mean(dim), **tolerance)
        assert_close(x.var(dim).numpy(), a.var(dim, ddof=1), **tolerance)
        assert_close(x.std(dim, correction=0).numpy(), a.std(dim), **tolerance)
    assert_close(x.T.sum(0).numpy(), a.sum(1), **tolerance)
    assert_close(x[:4].prod(0).numpy(), a[:4].prod(0), **tolerance)
    assert_close(x.cumsum(1).numpy(), a.cumsum(1), **tolerance)
    assert_close(x[:4].cumprod(0).numpy(), a[:4].cumprod(0), **tolerance)
    assert_close((x @ y).numpy(), a @ b, **tolerance)
    assert_close((x.mH @ x).numpy(), a.conj().T @ a, **tolerance)
    assert_close((y.T @ x.T).numpy(), (a @ b).T, **tolerance)
    assert_close(tl.einsum("ij,jk->ki", x, y).numpy(), (a @ b).T, **tolerance)
    assert_close(tl.vdot(x[0], x[1]).numpy(), np.vdot(a[0], a[1]), **tolerance)
    assert_close(x.norm().numpy(), np.linalg.norm(a), **tolerance)
    assert x.any() and x.all() and tl.allclose(x, x + 1e-9)
    assert tl.zeros(0, 2, dtype=x.dtype).prod(0).tolist() == [1, 1]


def test_random_numbers_are_complex_normal():
    tl.manual_seed(0)
    z = tl.randn(20000, dtype=tl.complex128)
    assert abs(z.mean().item()) < 0.03 and abs((z.abs() ** 2).mean().item() - 1) < 0.03
    assert abs((z * z).mean().item()) < 0.03          # its parts are independent
    u = tl.rand(1000, dtype=tl.complex64)
    assert 0 <= u.real.min() and u.imag.max() < 1


# ---- what is refused -----------------------------------------------------------------------------

@each("name, call", [
    ("lt", lambda z: z < 1), ("ge", lambda z: 1 <= z), ("floor", lambda z: z.floor()),
    ("amax", lambda z: z.amax()), ("argmin", lambda z: z.argmin()), ("max", lambda z: z.max()),
    ("maximum", lambda z: tl.maximum(z, z)), ("clamp", lambda z: z.clamp(0, 1)),
    ("remainder", lambda z: z % 2), ("floor_divide", lambda z: z // 2), ("sign", tl.sign),
    ("round", tl.round), ("softmax", lambda z: z.softmax(0)), ("relu", tl.relu),
    ("argsort", lambda z: z.argsort()), ("log_softmax", lambda z: z.log_softmax(0)),
    ("dropout", lambda z: tl.nn.functional.dropout(z)),
    ("atan2", lambda z: tl.atan2(z, z)), ("erf", tl.erf), ("bitwise_and", lambda z: z & z),
])
def test_what_needs_an_order_is_refused_by_name(name, call):
    for dtype in (tl.complex64, tl.complex128):
        with pytest.raises((RuntimeError, TypeError), match="(?s)complex|floating"):
            call(tl.ones(3, dtype=dtype))


def test_complex_numbers_do_not_go_where_real_ones_are_wanted():
    x, z = tl.ones(2), tl.tensor([1j, 2])
    for wrong in (lambda: x.add_(z), lambda: tl.add(x, z, out=tl.ones(2)), lambda: x.mul_(1j),
                  lambda: x.fill_(1j), lambda: tl.full((2,), 1j, dtype=tl.float32),
                  lambda: float(z[0]), lambda: z.requires_grad_().sum().backward(),
                  lambda: z.detach().abs_(), lambda: tl.abs(z, out=tl.ones(2, dtype=tl.int64)),
                  lambda: tl.tensor([1j], dtype=tl.int64)):
        with pytest.raises((RuntimeError, TypeError, ValueError)):
            wrong()
    assert x.tolist() == [1, 1]


# ---- gradients -----------------------------------------------------------------------------------

FUNCTIONS = {
    "arithmetic": lambda z, w: (z * w + 1j) / (w - 2 * z) - z ** 3,
    "powers": lambda z, w: z ** w + z.sqrt() * w.square() + w.rsqrt() + z.reciprocal(),
    "exponentials": lambda z, w: z.exp() + w.log() + z.expm1() + w.log1p() + z.exp2() + w.log10(),
    "trigonometric": lambda z, w: z.sin() * w.cos() + z.tan() + w.tanh() + z.sinh() + w.cosh(),
    "inverses": lambda z, w: z.asin() + w.acos() + z.atan() + w.asinh() + z.acosh() + w.atanh(),
    "sizes": lambda z, w: z.abs() * w.angle() + (z * w).imag + z.sgn().real,
    "conjugates": lambda z, w: z.conj() * w + z * z.conj(),
    "reductions": lambda z, w: z.sum(0) * w.mean() + z.prod() + w.var() + z.norm() + w.std(0),
    "scans": lambda z, w: z.cumsum(0) * w.cumprod(0),
    "products": lambda z, w: z @ w.mH + tl.einsum("ij,kj->ik", z, w.conj()),
    "parts": lambda z, w: tl.view_as_complex(tl.view_as_real(z) * 2) + tl.complex(z.imag, w.real),
    "polar": lambda z, w: tl.polar(z.abs(), w.imag) * w,
    "positions": lambda z, w: z[[0, 1, 0]].sum(0) + w.gather(1, tl.tensor([[1], [0]])),
    "choices": lambda z, w: tl.where(z.detach().real > 0, z, w).reshape(-1)[1:] ** 2,
    "sigmoid": lambda z, w: z.sigmoid() * w,
    "sums of exponentials": lambda z, w: z.logsumexp(0) + tl.logaddexp(z, w).logcumsumexp(1),
    "layers": lambda z, w: tl.nn.functional.rms_norm(z, (2,), w[0]) + tl.nn.functional.normalize(
        w) * tl.nn.functional.softsign(z) + tl.nn.functional.conv1d(z[None], w[None])[0],
    "correlations": lambda z, w: tl.corrcoef(tl.cat((z, w), 1)) * (tl.ldexp(z, w) / 9).sinc(),
}


@each("name", FUNCTIONS)
def test_gradients_equal_differences_in_both_directions(name):
    function = FUNCTIONS[name]
    z, w = leaf(2, 2, seed=3), leaf(2, 2, seed=4)
    assert gradcheck(function, (z, w), check_forward_ad=True)
    assert gradgradcheck(function, (z, w))


def test_gradients_of_many_directions_at_once():
    z = leaf(3, seed=5)
    assert gradcheck(lambda z: (z * z).sin() * z.conj(), z, check_batched_grad=True,
                     check_forward_ad=True, check_batched_forward_grad=True)


def test_a_real_input_of_a_complex_result_has_a_real_gradient():
    a = tl.tensor([2.0, 3.0], dtype=tl.float64, requires_grad=True)
    z = leaf(2, seed=6)
    assert gradcheck(lambda a, z: a * z + (a + 1j) ** 2 + tl.complex(a, a * a), (a, z))
    assert gradgradcheck(lambda a, z: a * z * z, (a, z))
    (a * (3 + 4j)).sum().imag.backward()
    assert a.grad.dtype == tl.float64 and a.grad.tolist() == [4, 4]


def test_jacobians_of_complex_numbers_need_a_complex_derivative():
    z = tl.tensor(numbers(3, seed=7))
    pairs, real = (lambda z: z * z.conj()), (lambda z: (z * z).abs())
    for jacobian in (tl.func.jacrev, tl.func.jacfwd):
        found = jacobian(lambda z: z.exp() * z[0], holomorphic=True)(z)
        assert_close(found.diagonal()[1:], (z.exp() * z[0])[1:])
        assert_close(found[1:, 0], z.exp()[1:])
        with pytest.raises(RuntimeError, match=f"{jacobian.__name__}: .*to be real, got .*complex"):
            jacobian(pairs)(z)
        with pytest.raises(RuntimeError, match="holomorphic=True takes functions of complex"):
            jacobian(real, holomorphic=True)(z)
    for strategy in ("reverse-mode", "forward-mode"):
        with pytest.raises(RuntimeError, match="jacobian: expected all .* to be real"):
            tl.autograd.functional.jacobian(pairs, z, strategy=strategy)
    derivative = tl.func.grad(lambda z: (z * z * z).sum(), holomorphic=True)
    assert_close(derivative(z), 3 * z * z)
    assert_close(tl.func.grad(lambda z: derivative(z)[0], holomorphic=True)(z)[0], 6 * z[0])
    value, found = tl.func.value_and_grad(lambda z: z.exp().sum(), holomorphic=True)(z)
    assert_close(value, z.exp().sum())
    assert_close(found, z.exp())
    assert_close(tl.func.elementwise_grad(tl.sin, holomorphic=True)(z), z.cos())
    assert_close(tl.func.hessian(lambda z: (z ** 3).prod(), holomorphic=True)(z)[0, 1],
                 9 * (z[0] * z[1]) ** 2 * z[2] ** 3)
    for wrong in (real, lambda z: real(z).sum()):
        with pytest.raises(RuntimeError, match="holomorphic=True takes functions|scalar"):
            tl.func.grad(wrong, holomorphic=True)(z)
    with pytest.raises(RuntimeError, match="grad: .*complex128; holomorphic=True gives"):
        tl.func.grad(lambda z: z.sum())(z)
    gradients = tl.func.jacrev(real)(z)          # of real results they are the gradients
    assert_close(gradients.diagonal(), 2 * z, rtol=1e-12, atol=1e-12)
    x = tl.tensor([0.5, 2.0], dtype=tl.float64)
    assert_close(tl.func.jacfwd(lambda x: (1j * x).exp())(x).diagonal(), 1j * (1j * x).exp())


def test_zero_is_strong_for_complex_numbers():
    z = tl.tensor([0j, 1 + 1j], requires_grad=True)
    tl.where(tl.tensor([False, True]), z.log(), z).real.sum().backward()
    assert z.grad[0] == 1 and z.grad.isfinite().all()
    z.grad = None
    (z.abs().sum() + z.sgn().abs().sum()).backward()
    assert z.grad[0] == 0


@each("made", [
    lambda p: tl.optim.SGD(p, lr=0.1, momentum=0.9), lambda p: tl.optim.Adam(p, lr=0.1),
    lambda p: tl.optim.Adagrad(p, lr=0.1, initial_accumulator_value=0.1),
    lambda p: tl.optim.RMSprop(p, lr=0.1),
    lambda p: tl.optim.LBFGS(p, lr=0.5, max_iter=2),
], ids=["SGD", "Adam", "Adagrad", "RMSprop", "LBFGS"])
def test_optimisers_step_complex_parameters_as_pairs(made):
    """Also where real ones are in the same group."""
    z, x = tl.tensor([1 + 2j, -3j], requires_grad=True), tl.ones(2, requires_grad=True)
    pairs = tl.view_as_real(z.detach().clone()).requires_grad_()
    y = x.detach().clone().requires_grad_()
    for one, other in ((z, x), (pairs, y)):
        optimiser = made([one, other])

        def loss(one=one, other=other, optimiser=optimiser):
            optimiser.zero_grad()
            parts = tl.view_as_real(one) if one.is_complex() else one
            found = (parts ** 2).sum() + (parts[0] * other ** 2).sum()
            found.backward()
            return found
        for _ in range(5):
            optimiser.step(loss)
    assert_close(tl.view_as_real(z.detach()), pairs.detach())
    assert_close(x, y)


def test_modules_take_complex_dtypes():
    layer = tl.nn.Linear(2, 3).to(tl.complex64)
    out = layer(tl.tensor([[1j, 2.0]]))
    assert out.dtype == tl.complex64 and layer.weight.dtype == tl.complex64
    out.abs().sum().backward()
    total = tl.nn.utils.clip_grad_norm_(layer.parameters(), 0.5)
    norm = sum((p.grad.abs() ** 2).sum() for p in layer.parameters()).sqrt()
    assert total.dtype == tl.float32 and abs(norm.item() - 0.5) < 1e-5
    made = tl.testing.make_tensor(2, 3, dtype=tl.complex64, low=1, high=2)
    assert made.real.min() >= 1 and made.imag.max() <= 2


def test_compiled_functions_and_batches_carry_complex_numbers():
    z = tl.tensor(numbers(3, 4))

    def function(z):
        return ((z * 2j).exp() @ z.mH).abs() + z.real.sum()

    compiled = tl.compile(function)
    for _ in range(3):
        assert tl.equal(compiled(z), function(z))
    assert_close(tl.vmap(lambda row: (row * row.conj()).sum() * 1j)(z),
                 tl.stack([(row * row.conj()).sum() * 1j for row in z]))
    w = z.clone().requires_grad_()
    loss = tl.compile(lambda w: (w * w.conj() * 1j).exp().abs().sum() + (w * w).real.sum())
    for _ in range(3):
        w.grad = None
        loss(w).backward()
    assert_close(w.grad, 2 * z.conj() + z * 0, rtol=1e-6, atol=1e-6)


@each("dtype", (np.complex64, np.complex128))
def test_products_of_rows_of_any_length_are_those_of_numpy(dtype):
    for n in (1, 15, 16, 17, 63, 127, 128, 129, 191, 300):
        a = np.exp(1j * np.arange(3 * n) ** 2).reshape(3, n).astype(dtype)
        tolerance = 1e-4 if dtype == np.complex64 else 1e-12
        assert_close(tl.tensor(a).prod(1).numpy(), a.prod(1), rtol=tolerance, atol=tolerance)
        assert_close(tl.tensor(a).prod().numpy(), a.prod(), rtol=tolerance, atol=tolerance)
