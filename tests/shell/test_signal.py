"""`signal.windows`: the windows of PyTorch, symmetric unless told otherwise."""

import doctest
import math

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib.signal import windows

SIZES = (0, 1, 2, 5, 8)


@pytest.mark.parametrize("name, own", [
    ("hann", tl.hann_window), ("hamming", tl.hamming_window), ("blackman", tl.blackman_window),
    ("bartlett", tl.bartlett_window), ("kaiser", tl.kaiser_window)])
def test_windows_that_the_library_has_itself(name, own):
    for n in SIZES:
        for sym in (True, False):
            found = getattr(windows, name)(n, sym=sym, dtype=tl.float64)
            np.testing.assert_allclose(found, own(n, periodic=not sym, dtype=tl.float64),
                                       atol=1e-15)


def test_other_windows_are_their_formulas():
    for n in SIZES[2:]:
        for sym in (True, False):
            steps, places = n - sym, np.arange(n)
            x = 2 * np.pi * places / steps
            wanted = {
                "cosine": np.sin(np.pi * (places + 0.5) / (steps + 1)),
                "gaussian": np.exp(-(places - steps / 2) ** 2 / 2),
                "exponential": np.exp(-np.abs(places - steps / 2)),
                "general_hamming": 0.54 - 0.46 * np.cos(x),
                "nuttall": (0.3635819 - 0.4891775 * np.cos(x) + 0.1365995 * np.cos(2 * x)
                            - 0.0106411 * np.cos(3 * x))}
            for name, values in wanted.items():
                found = getattr(windows, name)(n, sym=sym, dtype=tl.float64)
                np.testing.assert_allclose(found, values, atol=1e-15, err_msg=name)


def test_options():
    w = windows.exponential(5, center=0, tau=2.0, sym=False, requires_grad=True)
    assert w.requires_grad and w.dtype is tl.float32 and w[2] == math.exp(-1.0)
    assert windows.gaussian(3, std=2.0)[0] == windows.gaussian(5, std=4.0)[0]
    assert windows.kaiser(4, beta=0.0).tolist() == [1, 1, 1, 1]


@each("call, error, text", [
    (lambda: windows.hann(-1), ValueError, "non-negative window length, got M=-1"),
    (lambda: windows.hann(3, dtype=tl.int64), ValueError, "float32 or float64"),
    (lambda: windows.hann(3, layout=tl.sparse_coo), ValueError, "strided"),
    (lambda: windows.gaussian(3, std=0), ValueError, "Standard deviation must be positive"),
    (lambda: windows.exponential(3, tau=-1), ValueError, "Tau must be positive"),
    (lambda: windows.exponential(3, center=1), ValueError, "Center must be None"),
    (lambda: windows.kaiser(3, beta=-1), ValueError, "beta must be non-negative"),
    (lambda: windows.general_cosine(3, a=3), TypeError, "list/tuple"),
    (lambda: windows.general_cosine(3, a=[]), ValueError, "empty")])
def test_refusals(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_examples():
    assert not doctest.testmod(tl.signal, extraglobs={"tensorlib": tl}).failed


@each("name", ["hann", "hamming", "blackman", "nuttall", "general_hamming"])
def test_an_error_names_the_window_that_was_called(name):
    with pytest.raises(ValueError, match=f"^{name}: requires non-negative window length"):
        getattr(windows, name)(-1)
