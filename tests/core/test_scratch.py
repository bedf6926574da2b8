"""The memory that kernels work in: kept for the next one, and what happens where there is none."""

import numpy as np
import pytest

import tensorlib as tl
from tensorlib._core.base.scratch import is_kept, refuse_scratch
from tensorlib._core.convolutions import convolution
from tensorlib._core.products.panel_products import use_way
from tensorlib.nn import functional as F


def drawn(*shapes):
    rng = np.random.default_rng(0)
    return [tl.from_numpy(rng.standard_normal(shape).astype("float32")) for shape in shapes]


@pytest.fixture
def none_left():
    refuse_scratch(True)
    yield
    refuse_scratch(False)


def passes_of(image, kernel, options):
    """The three passes of a convolution."""
    x, weight, g = drawn(image, kernel, (
        image[0], kernel[0], *(n + 2 * pad - k + 1 for n, k, pad in zip(
            image[2:], kernel[2:], options[1]))))
    return [lambda: convolution.convolve(x, weight, tuple(g.shape[2:]), options),
            lambda: convolution.convolve_input(g, weight, image[2:], options),
            lambda: convolution.convolve_weight(g, x, kernel[2:], options)]


OPTIONS = ((1, 1), (1, 1), (1, 1), 1)
CALLS = [*passes_of((2, 3, 9, 9), (4, 3, 3, 3), OPTIONS),              # by columns
         *passes_of((4, 20, 16, 16), (24, 20, 3, 3), OPTIONS),         # by fewer multiplications
         passes_of((2, 30, 9, 9), (9, 30, 3, 2), OPTIONS)[0]]          # where windows lie


@pytest.mark.parametrize("call", CALLS)
def test_convolutions_without_memory_say_so(call, none_left):
    with pytest.raises(MemoryError, match="convolution: no memory for the"):
        call()


@pytest.mark.parametrize("dtype", [tl.float32, tl.float64], ids=str)
def test_attention_without_memory_says_so(dtype):
    q, k, v = (x.to(dtype).requires_grad_() for x in drawn((2, 5, 4), (2, 7, 4), (2, 7, 3)))
    y = F.scaled_dot_product_attention(q, k, v)
    refuse_scratch(True)
    try:
        with pytest.raises(MemoryError, match="attention: no memory"):
            F.scaled_dot_product_attention(q, k, v)
        with pytest.raises(MemoryError, match="attention: no memory"):
            y.sum().backward()
    finally:
        refuse_scratch(False)
    F.scaled_dot_product_attention(q, k, v).sum().backward()
    assert q.grad is not None


def test_products_without_memory_go_by_the_blas():
    a, b = ((x * 4).round() for x in drawn((300, 200), (200, 250)))       # whole numbers
    before = use_way("panels")
    try:
        wanted = a @ b
        refuse_scratch(True)
        assert tl.equal(a @ b, wanted)
    finally:
        refuse_scratch(False)
        use_way(before)


def test_it_is_kept_and_given_back():
    tl.memory.empty_cache()
    assert tl.memory.stats()["kept"] == 0
    (_, _, weight_pass), runs = CALLS[:3], 3
    for _ in range(runs):
        weight_pass()
        kept = tl.memory.stats()["kept"]
    assert (kept >= 1 << 16) == is_kept         # a sanitized build keeps none
    tl.memory.empty_cache()
    assert tl.memory.stats()["kept"] == 0
