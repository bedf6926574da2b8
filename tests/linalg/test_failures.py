"""What is refused, and matrices that have not what is asked for."""

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib.linalg import LinAlgError, lapack

ones = tl.ones(2, 2)
indefinite = tl.tensor([[1.0, 2.0], [2.0, 1.0]])


@each("n", [2, 20])             # by a kernel, and by LAPACK
@each("call, message", [
    (lambda x: tl.linalg.inv(x), r"linalg\.inv: the diagonal element 2 is zero, the inversion"),
    (lambda x: tl.inverse(x), "linalg.inv"),
    (lambda x: tl.linalg.solve(x, x), r"linalg\.solve: the diagonal element 2 is zero"),
    (lambda x: tl.linalg.solve(tl.stack([x * 0 + tl.tensor(np.eye(len(x))).float(), x]), x),
     r"\(Batch element 1\)"),
    (lambda x: tl.linalg.cholesky(-x), r"order 1 is not positive"),
    (lambda x: tl.linalg.cholesky(x), r"order 2 is not positive"),
    (lambda x: tl.linalg.lu_factor(x), r"U\[2,2\] is zero"),
    (lambda x: tl.linalg.eigh(x * float("nan")), "failed to converge"),
    (lambda x: tl.linalg.svd(x * float("nan")), "failed to converge"),
    (lambda x: tl.linalg.svdvals(x * float("nan")), "failed to converge"),
])
def test_failures_are_named(call, message, n):
    with pytest.raises(LinAlgError, match=message):
        call(tl.ones(n, n))
    assert issubclass(LinAlgError, RuntimeError) and issubclass(LinAlgError, np.linalg.LinAlgError)


@pytest.mark.parametrize("n", [2, 20])
def test_infos(n):
    eye = tl.tensor(np.eye(n))
    x = tl.stack([eye, tl.ones(n, n).double()])
    inverse, info = tl.linalg.inv_ex(x)
    assert info.tolist() == [0, 2] and inverse[1].isnan().all() and info.dtype is tl.int32
    assert tl.linalg.solve_ex(x, x).info.tolist() == [0, 2]
    factor, info = tl.linalg.cholesky_ex(tl.stack([eye, eye * 0]))
    assert info.tolist() == [0, 1] and factor[1].isnan().all() and (factor[0] == eye).all()


@pytest.mark.parametrize("function", [
    lambda a, b: tl.linalg.inv_ex(a), lambda a, b: tl.linalg.solve_ex(a, b),
    lambda a, b: tl.linalg.cholesky_ex(a @ a.mT)], ids=["inv", "solve", "cholesky"])
def test_what_fails_by_a_rounding_alone_has_an_info(function):
    """Whether a column that is the sum of others is found to be one depends on each rounding."""
    rng, failed = np.random.default_rng(0), 0
    for _ in range(400):
        n = int(rng.integers(2, 50))
        a = rng.normal(size=(n, n))
        a[:, -1] = a[:, 0] + a[:, n // 2]
        a = tl.tensor(a.astype(np.float32))
        found, info = function(a, tl.ones(n, 1))
        assert bool(found.isnan().any()) == bool(info)
        failed += int(info) > 0
    assert failed
    regular = tl.eye(20)
    assert not tl.linalg.solve_ex(regular, tl.full((20, 1), float("nan"))).info
    assert not tl.linalg.inv_ex(regular * float("nan")).info


def test_real_matrices_have_complex_eigenvalues():
    values, vectors = tl.linalg.eig(turn := tl.tensor([[0.0, 1.0], [-1.0, 0.0]]))
    assert values.tolist() == [1j, -1j]
    assert (turn.cfloat() @ vectors - vectors * values).abs().max() < 1e-6


@each("value", [np.nan, np.inf, -np.inf])
@each("function", [
    tl.linalg.eig, tl.linalg.eigvals, tl.linalg.svd, tl.linalg.svdvals, tl.linalg.pinv])
def test_what_is_not_finite_has_no_values(function, value):
    for n in (1, 3, 30):                # LAPACK itself would write anywhere, or never end
        x = np.eye(n) + 0.125
        x[0, 0] = value
        with pytest.raises(LinAlgError, match="Batch element 1.*NaN or infinite elements"):
            function(tl.tensor(np.stack([np.eye(n), x])))


@each("call, error", [
    (lambda: tl.linalg.inv(3), TypeError), (lambda: tl.linalg.solve(ones, [1.0, 2.0]), TypeError),
    (lambda: tl.linalg.eigh(ones, "X"), RuntimeError),
    (lambda: tl.linalg.eigh(ones, 3), RuntimeError),
    (lambda: tl.linalg.qr(ones, "full"), RuntimeError),
    (lambda: tl.linalg.matrix_power(ones, "2"), TypeError),
    (lambda: tl.linalg.solve(ones, tl.ones(3)), RuntimeError),
    (lambda: tl.linalg.solve(ones, tl.tensor(1.0)), RuntimeError),
    (lambda: tl.linalg.solve(ones, ones.double()), RuntimeError),
    (lambda: tl.linalg.solve(ones, tl.ones(2), left=False), RuntimeError),
    (lambda: tl.linalg.solve_triangular(ones, ones), TypeError),
    (lambda: tl.linalg.lu_factor(ones, pivot=False), RuntimeError),
    (lambda: tl.linalg.lu_solve(ones, tl.tensor([0, 1]), ones), RuntimeError),
    (lambda: tl.linalg.lu_solve(ones, tl.tensor([2**62, 1]), ones), RuntimeError),
    (lambda: tl.linalg.ldl_solve(ones, tl.tensor([3, 1]), ones), IndexError),
    (lambda: tl.linalg.ldl_solve(ones, tl.tensor([-2**63, 1]), ones), (IndexError, RuntimeError)),
    (lambda: tl.linalg.ldl_solve(ones, tl.tensor([0, 1]), ones), IndexError),
    (lambda: tl.lu_unpack(ones, tl.tensor([1.0, 2.0])), RuntimeError),
    (lambda: tl.linalg.lstsq(ones, ones, driver="best"), RuntimeError),
    (lambda: tl.linalg.vander(tl.ones(2), N=2**62), (MemoryError, RuntimeError)),
    (lambda: tl.linalg.multi_dot([]), RuntimeError),
    (lambda: tl.linalg.multi_dot([ones, 3]), TypeError),
    (lambda: tl.linalg.norm(ones, "fro", 0), RuntimeError),
    (lambda: tl.linalg.matrix_norm(ones, dim=(0, 0)), RuntimeError),
    (lambda: tl.linalg.vector_norm(tl.ones(0), float("inf")), RuntimeError),
    (lambda: tl.linalg.nothing, AttributeError),
])
def test_what_is_refused(call, error):
    with pytest.raises(error):
        call()


def test_by_numpys_loops_alone(monkeypatch):
    """Where the library that NumPy has loaded is none whose functions are known."""
    rng = np.random.default_rng(0)
    a, b = tl.tensor(rng.normal(size=(2, 20, 20))), tl.tensor(rng.normal(size=(2, 20, 3)))
    c = tl.complex(a, a.mT.contiguous())
    calls = [lambda: tl.linalg.lu_factor(a)[0], lambda: tl.linalg.lu_factor(a)[1],
             lambda: tl.linalg.lu(a[:, :5]).L, lambda: tl.linalg.qr(a)[0], lambda: tl.geqrf(b)[0],
             lambda: tl.linalg.qr(b, "complete")[0], lambda: tl.linalg.qr(b)[1],
             lambda: tl.linalg.qr(c)[0].real, lambda: tl.geqrf(c)[0].imag,
             lambda: tl.linalg.householder_product(c[..., :3], c[..., 0, :3]).real,
             lambda: tl.linalg.solve_triangular(a, b, upper=True),
             lambda: tl.linalg.solve_triangular(a, b, upper=False, unitriangular=True)]
    found = [call() for call in calls]
    monkeypatch.setattr(lapack, "LAPACK", False)
    for call, wanted in zip(calls, found):
        np.testing.assert_allclose(call().numpy(), wanted.numpy(), rtol=1e-6, atol=1e-6)
    with pytest.raises(NotImplementedError, match="ldl_factor"):
        tl.linalg.ldl_factor(a)


def test_results_have_the_same_bits_for_any_number_of_threads():
    x = tl.tensor(np.random.default_rng(0).normal(size=(300, 300)))
    before = tl.get_num_threads()
    try:
        found = []
        for threads in (1, 2):
            tl.set_num_threads(threads)
            found.append((tl.linalg.inv(x), tl.linalg.qr(x)[1], tl.linalg.svdvals(x)))
        assert all((one == two).all() for one, two in zip(*found))
    finally:
        tl.set_num_threads(before)


def test_rows_without_coordinates_and_wide_reflections():
    for p in (0, 1, 2, float("inf")):
        assert tl.cdist(tl.ones(2, 0), tl.ones(3, 0), p=p).tolist() == [[0.0] * 3] * 2
    wide = tl.rand(3, 5, dtype=tl.float64)
    q = tl.ormqr(*tl.geqrf(wide), tl.eye(3, dtype=tl.float64))
    assert tl.allclose(q.mT @ q, tl.eye(3, dtype=tl.float64))
    assert tl.allclose((q.mT @ wide).tril(-1), tl.zeros(3, 5, dtype=tl.float64), atol=1e-12)


@each("name", ["solve_triangles", "solve_matrices", "ldl_systems_solved"])
@each("shapes", [((2, 2), ()), ((2, 2), (2,)), ((), (2, 2)), ((2,), (2,)),
                 ((3, 2, 2), (2, 2, 2)), ((0, 2), (0, 2)), ((2**31, 0), ())])
def test_systems_of_other_shapes_are_refused_by_operations_themselves(name, shapes):
    """These are called with what was checked before; the registry hands them out without that."""
    op = tl.ops.registry[name]
    pivots = [tl.ones(2, dtype=tl.int32)] if name == "ldl_systems_solved" else []
    with pytest.raises((RuntimeError, ValueError, TypeError, IndexError)):
        op(tl.ones(shapes[0]), *pivots, tl.ones(shapes[1]), *([True] if "tri" in name else []))


def test_systems_of_two_dtypes_are_refused_by_the_operation_itself():
    with pytest.raises(ValueError, match="expected one dtype, got float64 and float32"):
        tl.ops.registry["solve_triangles"](tl.eye(3, dtype=tl.float64), tl.ones(3, 1), True)
