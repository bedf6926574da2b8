"""The product of gradients with complex numbers, for any count of elements."""

import pytest

import tensorlib as tl


@pytest.mark.parametrize("dtype", [tl.complex64, tl.complex128], ids=str)
def test_every_element_of_the_gradient_of_a_product_is_written(dtype):
    for n in (*range(1, 40), 64, 65, 200):
        z, w, g = (tl.randn(n, dtype=dtype) for _ in range(3))
        z.requires_grad_()
        g[n // 2] = 0
        found, = tl.autograd.grad(z * w, z, g)
        tl.testing.assert_close(found, g * w.conj())


@pytest.mark.parametrize("dtype", [tl.complex64, tl.complex128], ids=str)
def test_a_gradient_of_zero_stays_zero_beside_infinity(dtype):
    for n in (1, 3, 70):
        z = tl.ones(n, dtype=dtype, requires_grad=True)
        found, = tl.autograd.grad(z * tl.full((n,), float("inf"), dtype=dtype), z,
                                  tl.zeros(n, dtype=dtype))
        assert not found.abs().any()
