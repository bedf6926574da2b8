"""Windows and what can be asked of tensors, beside PyTorch."""

import itertools

import numpy as np
import pytest
from cases import each

import tensorlib as tl

torch = pytest.importorskip("torch")

DTYPES = ("bool", "uint8", "int8", "int64", "float16", "bfloat16", "float32", "float64")
WINDOWS = {"hann_window": [()], "blackman_window": [()], "bartlett_window": [()],
           "hamming_window": [(), (0.6,), (0.5, 0.3)], "kaiser_window": [(), (0.0,), (5.5,)]}


@each("name", WINDOWS)
def test_windows(name):
    for length, periodic, dtype, given in itertools.product(
            (0, 1, 2, 3, 8, 33), (True, False), (None, "float64", "float16"), WINDOWS[name]):
        ours, theirs = (getattr(lib, name)(length, periodic, *given, **(
            {} if dtype is None else {"dtype": getattr(lib, dtype)})) for lib in (tl, torch))
        assert str(ours.dtype)[10:] == str(theirs.dtype)[6:]
        np.testing.assert_allclose(ours.double().numpy(), theirs.double().numpy(), atol=3e-3
                                   if dtype == "float16" else 1e-6 if dtype is None else 1e-12)


def operands(lib):
    for dtype in DTYPES:
        for shape in ((2,), ()):
            yield lib.ones(shape, dtype=getattr(lib, dtype))
    yield from (True, 3, 2.5)


def test_result_types():
    for (a, b), (x, y) in zip(itertools.product(operands(tl), repeat=2),
                              itertools.product(operands(torch), repeat=2), strict=True):
        ours, theirs = tl.result_type(a, b), torch.result_type(x, y)
        assert str(ours)[10:] == str(theirs)[6:], (x, y)


def test_angles():
    values = [0.0, -0.0, -1.5, 2.0, float("nan"), float("inf"), float("-inf")]
    ours, theirs = (lib.tensor(values, requires_grad=True) for lib in (tl, torch))
    for lib, x in ((tl, ours), (torch, theirs)):
        lib.angle(x).sum().backward()
    np.testing.assert_array_equal(tl.angle(ours).detach().numpy(),
                                  torch.angle(theirs).detach().numpy())
    np.testing.assert_array_equal(ours.grad.numpy()[:4], theirs.grad.numpy()[:4])
    for dtype in ("bool", "int8", "int64"):
        ours, theirs = (lib.angle(lib.tensor([0, 1, -2]).to(getattr(lib, dtype)))
                        for lib in (tl, torch))
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
