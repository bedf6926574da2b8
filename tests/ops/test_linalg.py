"""Matrix products: what does not follow from the registry."""

import numpy as np
import pytest
from cases import each

import tensorlib as tl


def rand(*shape, dtype="float64"):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


@each("a, b", [
    (rand(6, 8)[:, ::2], rand(4, 5)),                            # no unit stride
    (rand(6, 8)[::-1, ::-1][:, :4], rand(4, 5)),                 # reversed
    (np.broadcast_to(rand(1, 4), (6, 4)), rand(4, 5)),           # expanded rows
    (rand(3, 2, 6, 4).transpose(1, 0, 2, 3), rand(3, 4, 5)),     # batch dims that do not join
    (rand(2, 3, 6, 4), rand(2, 1, 4, 5)),                        # one broadcast in the middle
    (rand(3, 6, 4), rand(4, 5)),                                 # rows of one tall matrix
    (rand(3, 6, 8)[..., 2:6], rand(4, 5).T.copy().T),            # rows with gaps
    (rand(6, 4), rand(9, 4, 1)),                                 # one matrix by many vectors
    (rand(4, 6).T, rand(2, 9, 4, 1)),
    (rand(6, 4), rand(1, 4, 9).transpose(2, 1, 0)),              # whose elements lie apart
    (rand(6, 4), rand(9, 8, 1)[::-1, ::2]),
    (rand(6, 4), np.broadcast_to(rand(4, 1), (9, 4, 1))),
    (rand(1, 6, 4), rand(3, 2, 4, 1).transpose(1, 0, 2, 3)),
    (rand(70, 90), rand(80, 90, 1)),
    (rand(12)[::3], rand(4, 5)),
    (rand(70, 90), rand(90, 80)),
])
@each("dtype", ["float32", "float64", "int32"])
def test_any_layout(a, b, dtype):
    a, b = (4 * a).astype(dtype), (4 * b).astype(dtype)
    np.testing.assert_allclose(
        (tl.from_numpy(a) @ tl.from_numpy(b)).numpy(), a @ b, rtol=1e-4, atol=1e-4)


def test_half_types_are_computed_in_float32():
    a = tl.tensor([[1.0] * 4096], dtype=tl.float16)
    assert float(a @ a.mT) == 4096.0           # adding in float16 stops at 2048
    assert (a @ a.mT).dtype == tl.float16


def test_dtypes_are_promoted():
    for a, b in ((tl.float32, tl.float64), (tl.int64, tl.float32)):
        assert (tl.tensor([[2]], dtype=a) @ tl.tensor([[3]], dtype=b)).dtype is b


def test_numbers_are_no_operands():
    with pytest.raises(TypeError):
        tl.tensor([[1.0]]) @ 2
    with pytest.raises(TypeError, match="mm: input must be a Tensor, not int"):
        tl.mm(2, tl.tensor([[1.0]]))


def test_arguments_by_pytorchs_names():
    a, b, v = (tl.from_numpy(x) for x in (rand(2, 3), rand(3, 4), rand(3)))
    assert tl.mm(a, mat2=b).tolist() == (a @ b).tolist()
    assert tl.mv(a, vec=v).tolist() == a.matmul(other=v).tolist()
    assert tl.dot(v, tensor=v).item() == tl.vdot(v, v).item()
    with pytest.raises(TypeError, match="mm: takes input, mat2 and out"):
        tl.mm(a, matrix=b)


def test_out():
    a, b = tl.from_numpy(rand(2, 3)), tl.from_numpy(rand(3, 4))
    out = tl.tensor([], dtype=tl.float64)
    assert tl.matmul(a, b, out=out) is out
    assert out.tolist() == (a @ b).tolist()
    square = tl.from_numpy(rand(3, 3))
    wanted = (square @ square).tolist()
    assert tl.mm(square, square, out=square).tolist() == wanted
    with pytest.raises(RuntimeError, match="mm: out has dtype"):
        tl.mm(a, b, out=tl.tensor([], dtype=tl.float32))


def test_beta_0_ignores_even_nan():
    a, b = tl.from_numpy(rand(2, 3)), tl.from_numpy(rand(3, 4))
    nan = tl.tensor([float("nan")], dtype=tl.float64)
    assert tl.addmm(nan, a, b, beta=0).tolist() == (a @ b).tolist()
    with pytest.raises(RuntimeError, match="addmm: input of shape"):
        tl.addmm(tl.from_numpy(rand(5, 2, 4)), a, b)


@pytest.mark.parametrize("a_shape, b_shape", [((5, 2, 3), (3, 4)), ((2, 4, 2, 3), (3,))])
def test_the_gradient_of_a_shared_matrix_is_one_product(a_shape, b_shape):
    a, b = rand(*a_shape), rand(*b_shape)
    x, w = tl.tensor(a, requires_grad=True), tl.tensor(b, requires_grad=True)
    out = x @ w
    g = rand(*out.shape)
    out.backward(tl.from_numpy(g))
    rows, g = a.reshape(-1, 3), g.reshape(-1, *b_shape[1:])
    np.testing.assert_allclose(w.grad.numpy(), rows.T @ g, rtol=1e-12)
    np.testing.assert_allclose(
        x.grad.numpy().reshape(-1, 3), g @ b.T if b.ndim > 1 else np.outer(g, b), rtol=1e-12)


@pytest.mark.parametrize("shape", [(5, 3, 1), (2, 4, 3, 1), (0, 3, 1)])
def test_the_gradient_of_a_matrix_by_many_vectors_is_one_product(shape):
    a, b = rand(7, 3), rand(*shape)
    x, w = tl.tensor(b, requires_grad=True), tl.tensor(a, requires_grad=True)
    out = w @ x
    g = rand(*out.shape)
    out.backward(tl.from_numpy(g))
    columns = g.reshape(-1, 7).T
    np.testing.assert_allclose(w.grad.numpy(), columns @ b.reshape(-1, 3), rtol=1e-12)
    np.testing.assert_allclose(x.grad.numpy(), a.T @ g, rtol=1e-12)
    if b.size:
        assert tl.testing.gradgradcheck(tl.matmul, (w, x))
