"""lerp goes from the nearer end, so that neither end is lost to rounding."""

import numpy as np
import pytest
from cases import each
import tensorlib as tl

FLOATS = [tl.float16, tl.bfloat16, tl.float32, tl.float64]


@each("dtype", FLOATS)
@each("as_tensor", [False, True])
def test_the_ends_are_exact(dtype, as_tensor):
    start = tl.tensor([1e4, 1.0, -3e4, 0.1], dtype=dtype)
    end = tl.tensor([1.0, 1e4, 1e-3, 3e4], dtype=dtype)

    def lerp(weight):
        return tl.lerp(start, end, tl.full((4,), weight, dtype=dtype) if as_tensor else weight)

    assert lerp(0.0).tolist() == start.tolist()
    assert lerp(1.0).tolist() == end.tolist()
    assert lerp(0.5).tolist() == start.lerp(end, 0.5).tolist()
    assert tl.lerp(start, end, 1.0).dtype is dtype


def test_both_formulas_as_in_pytorch():
    start, end = tl.tensor(1e4), tl.tensor(1.0)
    weights = [0.3, 0.5, 0.7, 1.0, -3.0, 0.49999997]
    # from PyTorch 2.13
    expected = [7000.2998046875, 5000.5, 3000.7001953125, 1.0, 39997.0, 5000.50048828125]
    assert [tl.lerp(start, end, w).item() for w in weights] == expected
    assert tl.lerp(start, end, tl.tensor(weights)).tolist() == expected


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_numbers_go_from_the_nearer_end(dtype):
    rng = np.random.default_rng(5)
    a, b, w = ((rng.normal(size=97) + 1j * rng.normal(size=97)).astype(dtype) for _ in range(3))
    w[::5], w[1::5] = 0, 1
    found = tl.lerp(*map(tl.from_numpy, (a, b, w))).numpy()
    assert (found[::5] == a[::5]).all() and (found[1::5] == b[1::5]).all()
    expected = a.astype(complex) + w.astype(complex) * (b.astype(complex) - a)
    assert np.abs(found - expected).max() < 40 * np.finfo(dtype).eps


@each("dtype", [tl.float32, tl.float64])
@each("weight", [0.0, 0.25, 0.5, 1.0, 3.0])
def test_derivatives(dtype, weight):
    start, end, w = (tl.tensor([v], dtype=dtype, requires_grad=True) for v in (1e8, 1.0, weight))
    tl.lerp(start, end, w).backward()
    assert [x.grad.item() for x in (start, end, w)] == [1 - weight, weight, np.float32(1 - 1e8)
                                                         if dtype is tl.float32 else 1 - 1e8]
    number = tl.tensor([1e8], dtype=dtype, requires_grad=True)
    number.lerp(end, weight).backward()
    assert number.grad.item() == 1 - weight
    _, tangent = tl.func.jvp(lambda a: tl.lerp(a, end, weight), (start,), (tl.ones_like(start),))
    assert tangent.item() == 1 - weight


def test_refused():
    ones = tl.ones(2)
    with pytest.raises(RuntimeError, match="lerp: expects floating-point tensors"):
        tl.lerp(ones.long(), ones.long(), 0.5)
    with pytest.raises(RuntimeError, match="for end, got tensorlib.float64"):
        tl.lerp(ones, ones.double(), 0.5)
    with pytest.raises(RuntimeError, match="for weight, got tensorlib.float64"):
        tl.lerp(ones, ones, ones.double())
    with pytest.raises(TypeError, match="lerp: end must be a Tensor"):
        tl.lerp(ones, 2.0, 0.5)
    assert tl.lerp(ones, ones, tl.tensor(0.5, dtype=tl.float64)).dtype is tl.float32
