"""Products of matrices with their own transpose, and the covariances that are made of them."""

import numpy as np
import pytest
from cases import each

import tensorlib as tl

gram = tl.ops.registry["gram_matrix"].function


@each("shape", [(1, 1), (64, 3), (65, 40), (200, 300), (1100, 20), (3, 70, 50), (2, 70, 0)])
@each("dtype", [tl.float32, tl.float64], ids=str)
def test_both_halves_are_the_product(shape, dtype):
    x = tl.tensor(np.random.default_rng(0).normal(size=shape)).to(dtype)
    for laid_out in (x, x.mT.contiguous().mT):
        found, wanted = gram(laid_out), x.double() @ x.double().mT
        assert tl.equal(found, found.mT)
        size = wanted.abs().max() if wanted.numel() else 1
        assert (found - wanted).abs().max() <= 10 * tl.finfo(dtype).eps * size


@each("dtype", [tl.float32, tl.float64], ids=str)
def test_bits_are_the_same_by_any_number_of_threads(dtype):
    x = tl.randn(300, 400, dtype=dtype)
    found, threads = [], tl.get_num_threads()
    try:
        for count in (1, 2, 3):
            tl.set_num_threads(count)
            found.append(gram(x))
    finally:
        tl.set_num_threads(threads)
    assert tl.equal(found[0], found[1]) and tl.equal(found[0], found[2])


@each("dtype", [tl.float32, tl.float64, tl.bfloat16, tl.complex128], ids=str)
def test_covariances_of_many_variables(dtype):
    x = tl.randn(90, 40, dtype=tl.complex128 if dtype.is_complex else tl.float64).to(dtype)
    exact = x.to(tl.complex128 if dtype.is_complex else tl.float64).numpy()
    bound = 20 * (tl.finfo(tl.float64) if dtype.is_complex else tl.finfo(dtype)).eps
    found = tl.cov(x).to(tl.complex128 if dtype.is_complex else tl.float64).numpy()
    assert np.abs(found - np.cov(exact)).max() < bound
    together = tl.corrcoef(x).to(tl.complex128 if dtype.is_complex else tl.float64).numpy()
    assert np.abs(together - np.corrcoef(exact)).max() < bound


def test_gradients_of_any_order():
    x = tl.randn(3, 4, dtype=tl.float64, requires_grad=True)
    assert tl.autograd.gradcheck(gram, (x,)) and tl.autograd.gradgradcheck(gram, (x,))
    tall = tl.randn(70, 5, dtype=tl.float64, requires_grad=True)
    g = tl.randn(70, 70, dtype=tl.float64)
    tl.cov(tall).backward(g)
    away = tall.detach() - tall.detach().mean(1, True)
    slope = (g + g.mT) @ away / 4
    assert tl.allclose(tall.grad, slope - slope.mean(1, True))


def test_what_is_refused():
    for x in (tl.ones(3), tl.ones(3, 3, dtype=tl.int64), tl.ones(3, 3).half()):
        with pytest.raises(RuntimeError, match="gram_matrix: "):
            gram(x)
