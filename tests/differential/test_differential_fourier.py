"""Fourier transforms, beside PyTorch: values, dtypes, errors and gradients of both orders."""

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from peer import disagreement, run

torch = pytest.importorskip("torch")

ONE = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
MANY = [f"{name}n" for name in ONE]
TWO = [f"{name}2" for name in ONE]
OF_REAL = ("rfft", "ihfft")
DTYPES = ("float32", "float64", "complex64", "complex128", "int64", "bool")
NORMS = (None, "backward", "ortho", "forward")


def called(name):
    """A function of a library that gives a result without PyTorch's lazy conjugation."""
    return lambda library, x, *args: getattr(library.fft, name)(x, *args).resolve_conj()


def drawn(shape, dtype, seed=0):
    """An array of numbers, also complex ones."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, shape) + 1j * rng.uniform(-1, 1, shape)
    return np.asarray(x if "complex" in dtype else 4 * x.real, dtype)


def beside(name, array, *args):
    """What differs between the libraries."""
    ours = run(called(name), tl, tl.tensor(array), *args)
    theirs = run(called(name), torch, torch.from_numpy(np.asarray(array)), *args)
    return disagreement(ours, theirs, "product")


@pytest.mark.parametrize("name", ONE)
def test_along_one_dim(name):
    cases = [((7,), ()), ((8,), (5,)), ((3, 4), (9, 0)), ((5, 1, 3), (None, -3)), ((2, 6), (1,)),
             ((1,), (1,)), ((37, 31), (29, 0))]
    for shape, args in cases:
        for norm in NORMS:
            for dtype in DTYPES:
                given = (*args, *(None, -1)[len(args):], norm)
                assert (found := beside(name, drawn(shape, dtype), *given)) is None, (
                    shape, given, dtype, found)


@each("name", MANY + TWO)
def test_along_several_dims(name):
    cases = [((3, 4), ()), ((2, 3, 4), (None, (0, 2))), ((2, 3, 4), ((4, 3), (1, 0))),
             ((2, 3, 5), ((-1, 4), (2, 1))), ((2, 3, 4), ((2, 7),)), ((5, 4), (None, (-1, 0)))]
    if name in MANY:
        cases += [((2, 3, 2, 3), ()), ((2, 3, 4), (None, (1,))), ((2, 3, 4), ((3, 2, 5),))]
    for shape, args in cases:
        for norm in NORMS:
            for dtype in DTYPES:
                given = args + ((-2, -1) if name in TWO else None,) if len(args) == 1 else args
                given = (*given, norm) if len(given) == 2 else args
                assert (found := beside(name, drawn(shape, dtype), *given)) is None, (
                    shape, given, dtype, found)


@each("name", ONE + MANY + TWO)
def test_what_is_refused(name):
    if name in ONE:
        cases = [((4,), (0,)), ((4,), (-2,)), ((4,), (-1,)), ((4,), (None, 1)), ((4,), (None, -2)),
                 ((4,), (None, 0, "no")), ((), ()), ((0,), ()), ((3, 0), (None, 1)),
                 ((4,), (2.5,)), ((4,), (None, 0.5))]
    else:
        cases = [((4, 4), ((2, 0),)), ((4, 4), (None, (0, 0))), ((4, 4), (None, (1, -1))),
                 ((4, 4), ((2,), (0, 1))), ((4, 4), (None, (0, 2))), ((4, 4), ((2, -2),)),
                 ((4, 4), (None, (0, 1), "no")), ((4,), ((2, 2), (0, 1))), ((4, 0), (None, (0, 1))),
                 ((4, 4), ((2.5, 2),))]
    for shape, args in cases:
        for dtype in ("float32",) if name.rstrip("n2") in OF_REAL else ("float32", "complex64"):
            array = drawn(shape, dtype)
            theirs = run(called(name), torch, torch.from_numpy(array), *args)
            ours = run(called(name), tl, tl.tensor(array), *args)
            assert disagreement(ours, theirs, "product") is None, (shape, args, dtype, ours, theirs)


@pytest.mark.parametrize("name", ["fftfreq", "rfftfreq"])
def test_frequencies(name):
    for args in ((1,), (2,), (7, 0.5), (8, 2), (5, -1.0), (3, 1)):
        for dtype in (None, "float64", "int64"):
            def frequencies(library, dtype=dtype, args=args):
                return getattr(library.fft, name)(*args, dtype=dtype and getattr(library, dtype))

            ours, theirs = run(frequencies, tl), run(frequencies, torch)
            assert (found := disagreement(ours, theirs)) is None, (args, dtype, found)


@pytest.mark.parametrize("name", ["fftshift", "ifftshift"])
def test_shifts(name):
    for shape, *args in (((5,),), ((4, 3),), ((4, 3), 0), ((2, 3, 4), (0, -1)), ((0, 3),),
                         ((3,), 1), ((4, 3), (0, 0))):
        for dtype in DTYPES:
            assert (found := beside(name, drawn(shape, dtype), *args)) is None, (shape, args, found)


def parts(library, x, *args, window=None, back=False, **options):
    """`stft` or `istft` of an array."""
    if window is not None:
        options["window"] = library.from_numpy(window)
    function = library.istft if back else library.stft
    return function(library.from_numpy(x), *args, **options).resolve_conj()


HANN = np.hanning(8) + 0.1
PARTS = [
    ((30,), (8,), {}), ((2, 30), (8, 3), {"center": False}),
    ((31,), (8, 4, 6), {"normalized": True}),
    ((30,), (9, 2), {"onesided": False, "pad_mode": "constant"}), ((30,), (8, 4), {"window": HANN}),
    ((30,), (12, 2, 8), {"window": HANN, "pad_mode": "replicate"}), ((2, 5), (5, 1), {}),
    ((30,), (12, 2, 8), {"window": HANN, "center": False, "align_to_window": True}),
    ((30,), (12, 2, 8), {"window": HANN, "center": False, "align_to_window": False}),
    ((30,), (8,), {"window": HANN * (1 + 1j)}), ((30,), (8,), {"return_complex": False})]


@pytest.mark.filterwarnings("ignore")
@each("shape, args, options", PARTS)
def test_parts_of_a_signal(shape, args, options):
    for dtype in ("float64", "complex128"):
        options = {"return_complex": True, **options}
        if dtype == "complex128" and not options["return_complex"]:
            continue
        x = drawn(shape, dtype)
        ours, theirs = (run(lambda library: parts(library, x, *args, **options), library)
                        for library in (tl, torch))
        assert ours[0] == theirs[0] == "returned", (ours, theirs)
        assert (found := disagreement(ours, theirs, "product")) is None, (dtype, found)


SPECTRA = [
    ((5, 7), (8,), {}), ((2, 5, 7), (8, 3), {"center": False}),
    ((5, 7), (8, 3), {"normalized": True}),
    ((8, 7), (8, 2), {}), ((8, 7), (8, 2), {"return_complex": True, "onesided": False}),
    ((5, 7), (8, 2), {"length": 9}), ((5, 7), (8, 2), {"length": 40}),
    ((7, 7), (12, 3, 8), {"window": HANN}), ((5, 7), (8, 2), {"window": HANN, "center": False})]


@pytest.mark.filterwarnings("ignore")
@each("shape, args, options", SPECTRA)
def test_signals_of_parts(shape, args, options):
    z = drawn(shape, "complex128")
    ours, theirs = (run(lambda library: parts(library, z, *args, back=True, **options), library)
                    for library in (tl, torch))
    assert ours[0] == theirs[0] == "returned", (ours, theirs)
    assert (found := disagreement(ours, theirs, "product")) is None, found


@pytest.mark.filterwarnings("ignore")
def test_what_parts_refuse():
    true = {"return_complex": True}
    cases = [((8,), (0,), true), ((8,), (4, 0), true), ((8,), (4, 1, 5), true), ((8,), (4,), {}),
             ((2, 2, 8), (4,), true), ((3,), (8,), {**true, "center": False}),
             ((8,), (4,), {**true, "window": HANN}),
             ((8,), (4,), {**true, "align_to_window": True})]
    for shape, args, options in cases:
        x = drawn(shape, "float64")
        for library in (tl, torch):
            with pytest.raises(RuntimeError):
                parts(library, x, *args, **options)
    for shape, args, options in [
            ((4, 7), (8,), {}), ((5, 7), (8, 9), {}), ((5, 7), (8,), {"return_complex": True}),
            ((5, 7), (8, 8), {"window": np.zeros(8)})]:
        z = drawn(shape, "complex128")
        for library in (tl, torch):
            with pytest.raises(RuntimeError):
                parts(library, z, *args, back=True, **options)


def test_gradients_of_parts_and_back():
    x, window = drawn((2, 30), "float64"), HANN
    found = []
    for library in (tl, torch):
        leaf = library.from_numpy(x.copy()).requires_grad_()
        w = library.from_numpy(window.copy()).requires_grad_()
        z = library.stft(leaf, 8, 3, window=w, return_complex=True)
        y = library.istft(z * z.abs(), 8, 3, window=w)
        (y ** 3).sum().backward()
        found.append((leaf.grad.numpy(), w.grad.numpy()))
    for ours, theirs in zip(*found):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-8)


def derivatives(library, name, array, args):
    """The result, and the gradients of both orders of a curved function of it."""
    x = library.tensor(array, requires_grad=True)
    y = getattr(library.fft, name)(x, *args)
    loss = (y.abs() ** 2 * library.arange(y.numel(), dtype=library.float64).reshape(y.shape)).sum()
    loss = loss + (y.real ** 3).sum()
    g, = library.autograd.grad(loss, x, create_graph=True)
    second, = library.autograd.grad((g.abs() ** 2).sum() + (g.real ** 3).sum(), x)
    return [value.detach().resolve_conj().numpy() for value in (y, g, second)]


@each("name", ONE + MANY + TWO)
def test_gradients(name):
    real = name.rstrip("n2") in OF_REAL
    for dtype in ("float64",) if real else ("float64", "complex128"):
        cases = [((5,), ()), ((3, 4), (3, 0)), ((3, 4), (6, -1, "ortho")), ((2, 1), (1,))]
        if name not in ONE:
            cases = [((3, 4), ()), ((2, 3, 5), ((4, 3), (0, 2), "forward")),
                     ((2, 3, 4), (None, (2, 0), "ortho"))]
        for shape, args in cases:
            array = drawn(shape, dtype)
            for mine, other in zip(derivatives(tl, name, array, args),
                                   derivatives(torch, name, array, args), strict=True):
                assert mine.dtype == other.dtype and mine.shape == other.shape
                np.testing.assert_allclose(mine, other, rtol=1e-9, atol=1e-9)
