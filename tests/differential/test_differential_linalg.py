"""Functions of matrices, and einsum, beside PyTorch: values, gradients and errors.

Vectors of decompositions are compared by what does not depend on their signs.
"""

import numpy as np
import pytest
from cases import each
from peer import disagreement, gradients, run, tensor

import tensorlib as tl

torch = pytest.importorskip("torch")

rng = np.random.default_rng(5)
SQUARE = rng.normal(size=(2, 4, 4)) + 3 * np.eye(4)
ONE = SQUARE[0]
SINGULAR = np.outer([1.0, 2.0, 3.0], [2.0, 1.0, -1.0])
DEFINITE = SQUARE @ SQUARE.swapaxes(-1, -2)
INDEFINITE = np.array([[0.0, 2.0, 1.0], [2.0, 0.0, 3.0], [1.0, 3.0, 0.0]])
TALL, WIDE = rng.normal(size=(4, 2)), rng.normal(size=(2, 4))
RIGHT, VECTOR = rng.normal(size=(4, 3)), rng.normal(size=4)
BIG = rng.normal(size=(20, 20)) + 5 * np.eye(20)


def symmetric(x):
    return (x + x.mT) * 0.5


def around(vectors, weights):
    """What is the same for either sign of each column."""
    return (vectors * weights.unsqueeze(-2)) @ vectors.mT


def of_eigh(values, vectors):
    return values, around(vectors, values.exp())


def of_svd(L, x, full):
    u, s, vh = L.linalg.svd(x, full_matrices=full)
    k = s.shape[-1]
    return (u[..., :k] * (s * s).unsqueeze(-2)) @ vh[..., :k, :], around(u[..., :k], s)


VALUES = {
    "cholesky": (lambda L, x: L.linalg.cholesky(symmetric(x)), DEFINITE),
    "cholesky upper": (lambda L, x: L.linalg.cholesky(symmetric(x), upper=True), DEFINITE),
    "torch.cholesky": (lambda L, x: L.cholesky(symmetric(x)), DEFINITE),
    "inv": (lambda L, x: L.linalg.inv(x), SQUARE), "inverse": (lambda L, x: x.inverse(), BIG),
    "det": (lambda L, x: L.linalg.det(x), SQUARE), "det singular": (lambda L, x: x.det(), SINGULAR),
    "slogdet": (lambda L, x: L.linalg.slogdet(x)[1], SQUARE),
    "logdet": (lambda L, x: L.logdet(x), ONE),
    "solve": (lambda L, a, b: L.linalg.solve(a, b), SQUARE, RIGHT),
    "solve vector": (lambda L, a, b: L.linalg.solve(a, b), ONE, VECTOR),
    "solve right": (lambda L, a, b: L.linalg.solve(a, b, left=False), ONE, WIDE),
    "solve big": (lambda L, a, b: L.linalg.solve(a, b), BIG, BIG[:, :3]),
    "triangular": (lambda L, a, b: L.linalg.solve_triangular(a, b, upper=True), ONE, RIGHT),
    "triangular right": (lambda L, a, b: L.linalg.solve_triangular(
        a, b, upper=False, left=False, unitriangular=True), ONE, WIDE),
    "triangular_solve": (lambda L, b, a: L.triangular_solve(b, a, transpose=True)[0], RIGHT, ONE),
    "cholesky_solve": (lambda L, b, a: L.cholesky_solve(b, a.tril()), RIGHT, ONE),
    "cholesky_inverse": (lambda L, a: L.cholesky_inverse(a.triu(), upper=True), ONE),
    "eigh": (lambda L, x: of_eigh(*L.linalg.eigh(symmetric(x))), ONE),
    "eigvalsh": (lambda L, x: L.linalg.eigvalsh(symmetric(x)), BIG),
    "svd": (lambda L, x: of_svd(L, x, True), ONE),
    "svd tall": (lambda L, x: of_svd(L, x, False), TALL),
    "svd wide": (lambda L, x: of_svd(L, x, False), WIDE),
    "svdvals": (lambda L, x: L.linalg.svdvals(x), SQUARE),
    "qr": (lambda L, x: L.linalg.qr(x), ONE), "qr tall": (lambda L, x: L.linalg.qr(x), TALL),
    "qr wide": (lambda L, x: L.linalg.qr(x), WIDE), "torch.qr": (lambda L, x: L.qr(x), TALL),
    "lu_factor": (lambda L, x: L.linalg.lu_factor(x)[0], SQUARE),
    "lu tall": (lambda L, x: L.linalg.lu(x)[1:], TALL),
    "lu wide": (lambda L, x: L.linalg.lu(x)[1:], WIDE),
    "lu_solve": (lambda L, a, b: L.linalg.lu_solve(*L.linalg.lu_factor(a), b), ONE, RIGHT),
    "lu_solve adjoint": (lambda L, a, b: L.linalg.lu_solve(
        *L.linalg.lu_factor(a), b, adjoint=True, left=False), ONE, WIDE),
    "pinv": (lambda L, x: L.linalg.pinv(x), TALL),
    "pinv rcond": (lambda L, x: L.linalg.pinv(x, 0.5), TALL),
    "pinverse": (lambda L, x: L.pinverse(x), WIDE),
    "pinv hermitian": (lambda L, x: L.linalg.pinv(symmetric(x), hermitian=True), ONE),
    "lstsq": (lambda L, a, b: L.linalg.lstsq(a, b)[0], rng.normal(size=(4, 3)), RIGHT),
    "lstsq wide": (lambda L, a, b: L.linalg.lstsq(a, b)[0], WIDE, rng.normal(size=(2, 1))),
    "matrix_exp": (lambda L, x: L.linalg.matrix_exp(x), SQUARE / 2),
    "matrix_exp large": (lambda L, x: L.matrix_exp(x), ONE * 3),
    "matrix_power": (lambda L, x: L.matrix_power(x, 5), ONE),
    "matrix_power -2": (lambda L, x: L.linalg.matrix_power(x, -2), ONE),
    "multi_dot": (lambda L, a, b, c: L.linalg.multi_dot([a, b, c]), TALL, WIDE, VECTOR),
    "cross": (lambda L, a, b: L.linalg.cross(a, b, dim=0), RIGHT[:3], RIGHT[1:]),
    "vecdot": (lambda L, a, b: L.linalg.vecdot(a, b), ONE, VECTOR),
    "vander": (lambda L, x: L.linalg.vander(x, N=3), VECTOR),
    "householder": (lambda L, a, t: L.linalg.householder_product(a, t), TALL, VECTOR[:2]),
    "tensorinv": (lambda L, x: L.linalg.tensorinv(x.reshape(4, 2, 2), 1), ONE),
    "tensorsolve": (lambda L, a, b: L.linalg.tensorsolve(a.reshape(2, 2, 4), b), ONE, ONE[:2, :2]),
    **{f"norm {p}": (lambda L, x, p=p: L.linalg.norm(x, p), ONE)
       for p in (None, "fro", "nuc", 1, -1, 2, -2, float("inf"), -float("inf"))},
    **{f"vector_norm {p}": (lambda L, x, p=p: L.linalg.vector_norm(x, p, dim=(0, 2)), SQUARE)
       for p in (1, 2, 3.5, -1, float("inf"))},
    **{f"cond {p}": (lambda L, x, p=p: L.linalg.cond(x, p), ONE) for p in (None, -2)},
    "matrix_norm": (lambda L, x: L.linalg.matrix_norm(x, "nuc", (0, 2), True), SQUARE),
    "cdist": (lambda L, a, b: L.cdist(a, b), ONE, TALL.T @ RIGHT[:, :1] * VECTOR),
    "cdist 1": (lambda L, a, b: L.cdist(a, b, 1.0), SQUARE, WIDE),
    "cdist by a product": (lambda L, a, b: L.cdist(a, b), BIG[:, :4].repeat(2, 0)[1:], WIDE),
    "cdist of one row": (lambda L, a: L.cdist(a, a), VECTOR[None]),
    "dist": (lambda L, a, b: L.dist(a, b, 3), ONE, VECTOR),
    "renorm": (lambda L, x: L.renorm(x, 2, 1, 1.5), ONE),
    "cov": (lambda L, x: L.cov(x), RIGHT), "cov 0": (lambda L, x: L.cov(x, correction=0), VECTOR),
    "cov weighted": (lambda L, x: L.cov(
        x, fweights=L.tensor([1, 0, 3]), aweights=L.tensor([0.5, 2.0, 1.0]).to(x.dtype)),
        RIGHT),
    "corrcoef": (lambda L, x: L.corrcoef(x), WIDE),
    **{equation: (lambda L, a, b, equation=equation: L.einsum(equation, a, b), ONE, SQUARE)
       for equation in ("ij,bjk->bik", "ij,...kj", "ii,bkk->b", "ij,bik->", "ab,cde->dbeca",
                        "...,...->...")},
}
UNSTABLE = ("det singular", "cond -2")       # as float32


@each("name", VALUES)
def test_values_and_gradients(name):
    call, *arrays = VALUES[name]
    for dtype in ("float64",) if name in UNSTABLE else ("float32", "float64"):
        found = [run(lambda L, call=call, dtype=dtype: call(
            L, *[tensor(L, x, dtype) for x in arrays]), L) for L in (tl, torch)]
        assert found[0][0] == "returned", found[0][1]
        difference = disagreement(*found, kind="gradient") if dtype == "float64" else None
        assert difference is None, difference
    ours, theirs = (gradients(call, L, arrays) for L in (tl, torch))
    for mine, other in zip(ours, theirs):
        if other is None:
            assert mine is None or not mine.any()
        else:
            np.testing.assert_allclose(mine.numpy(), other.numpy(), rtol=1e-6, atol=1e-7)


OTHERS = {
    "vector_norm 0": lambda L, t: L.linalg.vector_norm(t(ONE) * 0, 0),
    **{f"cond {p}": lambda L, t, p=p: L.linalg.cond(t(SQUARE), p) for p in (1, "fro", "nuc")},
    "cond singular": lambda L, t: L.linalg.cond(t(SINGULAR * 0), 1),
    "matrix_rank": lambda L, t: L.linalg.matrix_rank(t(SINGULAR)),
    "matrix_rank of zeros": lambda L, t: L.linalg.matrix_rank(t(SINGULAR) * 0),
    "matrix_rank atol": lambda L, t: L.linalg.matrix_rank(t(ONE), atol=2.0),
    "matrix_rank hermitian": lambda L, t: L.linalg.matrix_rank(t(DEFINITE), hermitian=True),
    "inv_ex": lambda L, t: L.linalg.inv_ex(t(ONE))[1],
    "lu pivots": lambda L, t: L.linalg.lu_factor(t(SQUARE))[1],
    "lu": lambda L, t: L.linalg.lu(t(TALL)), "lu wide": lambda L, t: L.linalg.lu(t(WIDE)),
    "torch.lu": lambda L, t: L.lu(t(ONE), get_infos=True),
    "lu_unpack": lambda L, t: L.lu_unpack(*L.linalg.lu_factor(t(ONE))),
    "ldl_factor": lambda L, t: L.linalg.ldl_factor(t(INDEFINITE)),
    "ldl_solve": lambda L, t: L.linalg.ldl_solve(*L.linalg.ldl_factor(t(INDEFINITE)), t(RIGHT[:3])),
    "geqrf": lambda L, t: L.geqrf(t(TALL)), "orgqr": lambda L, t: L.orgqr(*L.geqrf(t(TALL))),
    "ormqr": lambda L, t: L.ormqr(*L.geqrf(t(TALL)), t(RIGHT), transpose=True),
    "qr complete": lambda L, t: L.linalg.qr(t(TALL), "complete"),
    "qr r": lambda L, t: L.linalg.qr(t(TALL), "r"),
    "lstsq": lambda L, t: L.linalg.lstsq(t(TALL), t(RIGHT)),
    "lstsq gelsd": lambda L, t: L.linalg.lstsq(t(TALL), t(RIGHT), driver="gelsd"),
    "lstsq gels": lambda L, t: L.linalg.lstsq(t(TALL), t(VECTOR), driver="gels"),
    "det of nothing": lambda L, t: L.det(t(np.zeros((0, 0)))),
    "inv of nothing": lambda L, t: L.inverse(t(np.zeros((2, 0, 0)))),
    "svd of nothing": lambda L, t: L.linalg.svd(t(np.zeros((0, 3))))[:2],
    "multi_dot of one": lambda L, t: L.linalg.multi_dot([t(ONE)]),
    "chain_matmul": lambda L, t: L.chain_matmul(t(TALL), t(WIDE)),
    "svd without vectors": lambda L, t: L.svd(t(TALL), compute_uv=False),
    "inv not square": lambda L, t: L.linalg.inv(t(TALL)),
    "inv vector": lambda L, t: L.inverse(t(VECTOR)),
    "inv singular": lambda L, t: L.linalg.inv(t(SINGULAR * 0)),
    "cholesky indefinite": lambda L, t: L.linalg.cholesky(t(-DEFINITE)),
    "solve shapes": lambda L, t: L.linalg.solve(t(ONE), t(VECTOR[:3])),
    "triangular shapes": lambda L, t: L.linalg.solve_triangular(t(ONE), t(VECTOR), upper=True),
    "norm order": lambda L, t: L.linalg.norm(t(ONE), 3),
    "norm dims": lambda L, t: L.linalg.norm(t(SQUARE), 2),
    "norm dim": lambda L, t: L.linalg.norm(t(ONE), 2, 5),
    "cross sizes": lambda L, t: L.linalg.cross(t(ONE), t(ONE)),
    "tensorinv": lambda L, t: L.linalg.tensorinv(t(TALL), 1),
    "cdist sizes": lambda L, t: L.cdist(t(ONE), t(TALL)),
    "cdist p": lambda L, t: L.cdist(t(ONE), t(ONE), -1.0),
    "renorm p": lambda L, t: L.renorm(t(ONE), 0, 0, 1.0), "cov dims": lambda L, t: L.cov(t(SQUARE)),
    "einsum sublists": lambda L, t: L.einsum(t(TALL), [0, 1], t(WIDE), [1, 30], [30, 0]),
    "einsum sum": lambda L, t: L.einsum("ij->", t(TALL)),
    "einsum equation": lambda L, t: L.einsum("ij,jk", t(TALL)),
    "einsum letters": lambda L, t: L.einsum("i", t(TALL)),
    "einsum none": lambda L, t: L.einsum("i"),
}


@each("name", OTHERS)
def test_what_has_no_gradient_and_what_is_refused(name):
    ours, theirs = (run(lambda L: OTHERS[name](L, lambda x: tensor(L, x, "float64")), L)
                    for L in (tl, torch))
    assert disagreement(ours, theirs, kind="gradient") is None, (ours, theirs)
