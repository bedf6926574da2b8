"""Fourier transforms by kernels of our own, and by NumPy's loops where there is none."""

import numpy as np
import pytest

import tensorlib as tl
from tensorlib.ops.fourier import transforms

# one point, passes of each factor and of several, rows that are tables, and large primes
SIZES = [1, 2, 3, 4, 6, 7, 8, 11, 13, 16, 17, 26, 30, 45, 63, 64, 65, 97, 100, 121, 128, 169, 224,
         240, 343, 384, 402, 509, 512, 715, 1000, 1024, 1499, 1500, 2002, 2048, 3125, 4096, 6561]
CHIRPS = {97, 402, 509, 1499}       # convolutions: errors of 2 units, and of 2.4 by NumPy
PARTED = [32768, 50050, 59049]      # whose rows are shared by threads, with turns that are products


def error(found, wanted):
    """The norm of the error, in units of the last place of the norm."""
    size = np.linalg.norm(wanted.ravel())
    return np.linalg.norm((found - wanted).ravel()) / size / np.finfo(found.real.dtype).eps


def laid_out(array, dim, layout):
    """The same numbers in memory in another order."""
    if layout == 0:
        return array
    if layout == 1:
        return np.moveaxis(np.ascontiguousarray(np.moveaxis(array, dim, 0)), 0, dim)
    spread = np.zeros([2 * n for n in array.shape], array.dtype)
    spread = spread[tuple(slice(None, None, 2) for _ in array.shape)]
    spread[...] = array
    return spread


def assert_equals_numpy(n, rows, rng, double):
    """All kinds of transforms of n points are NumPy's, for rows in either dim."""
    for place, name in enumerate(("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")):
        length = n // 2 + 1 if name in ("irfft", "hfft") else n
        for shape, dim in (((rows, length), 1), ((length, rows), 0)):
            wide = rng.uniform(-1, 1, shape)
            if name not in ("rfft", "ihfft"):
                wide = wide + 1j * rng.uniform(-1, 1, shape)
            given = wide if double else wide.astype("c8" if np.iscomplexobj(wide) else "f4")
            wanted = getattr(np.fft, name)(given.astype(wide.dtype), n, dim, "ortho")
            array = laid_out(given, dim, (place + n + dim) % 3)
            found = getattr(tl.fft, name)(tl.from_numpy(array), n, dim, "ortho").numpy()
            assert found.real.dtype == given.real.dtype
            assert error(found, wanted) < 3 + (n in CHIRPS), (name, n, shape, double)
            assert np.array_equal(array, given)


@pytest.mark.parametrize("double", [False, True])
def test_all_lengths_and_layouts(double):
    rng = np.random.default_rng(5)
    for n in SIZES:
        for rows in (1, 5 + n % (29 if n < 600 else 13)):
            assert_equals_numpy(n, rows, rng, double)
    for n in PARTED:
        assert_equals_numpy(n, 2, rng, double)


def test_the_number_of_threads_changes_nothing():
    rng, threads = np.random.default_rng(6), tl.get_num_threads()
    for shape in ((500, 120), (40, 2048), (1, 2**17), (3, 50050), (300, 97)):
        x = tl.from_numpy(rng.uniform(-1, 1, shape).astype("f4"))
        half = tl.fft.rfft(x)
        results = []
        for count in (1, 2, 5):
            tl.set_num_threads(count)
            results.append([tl.fft.rfft(x), tl.fft.fft(half), tl.fft.irfft(half, shape[-1]),
                            tl.fft.fft(x)])
        tl.set_num_threads(threads)
        for others in results[1:]:
            assert all(a.equal(b) for a, b in zip(results[0], others, strict=True))


def test_what_is_not_finite_stays_in_its_row():
    for n in (30, 97, 2048):
        x = tl.rand(13, n)
        spoilt = x.clone()
        spoilt[5, 3] = float("nan")
        for wanted, found in ((tl.fft.rfft(x), tl.fft.rfft(spoilt)),
                              (tl.fft.fft(x), tl.fft.fft(spoilt))):
            assert found[5].isnan().all()
            assert found[:5].equal(wanted[:5]) and found[6:].equal(wanted[6:])


def test_several_dims_are_transformed_in_place_of_the_first():
    rng = np.random.default_rng(7)
    for shape in ((8, 64, 64), (3, 100, 1), (2, 1600, 12), (1, 3000, 5), (4, 34, 19)):
        x = rng.uniform(-1, 1, shape) + 1j * rng.uniform(-1, 1, shape)
        assert error(tl.fft.fftn(tl.from_numpy(x)).numpy(), np.fft.fftn(x)) < 4
        assert error(tl.fft.irfftn(tl.fft.rfftn(tl.from_numpy(x.real)), shape).numpy(),
                     x.real) < 4


def test_plans_that_are_dropped_are_made_again():
    x = tl.rand(40, dtype=tl.float64)
    before = tl.fft.fft(x)
    for n in range(40, 140):                     # more than are kept
        tl.fft.fft(tl.ones(104 * n if n % 17 else n, dtype=tl.complex128))
    assert tl.fft.fft(x).equal(before)


def test_numpys_functions_stand_in(monkeypatch):
    x = tl.rand(3, 10)
    monkeypatch.setattr(transforms.loops, "has", lambda n, halved: False)
    assert error(tl.fft.rfft(x).numpy(), np.fft.rfft(x.numpy())) < 3
