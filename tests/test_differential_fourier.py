"""Fourier transforms, beside PyTorch: values, dtypes, errors and gradients of both orders."""

import numpy as np
import pytest

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


@pytest.mark.parametrize("name", MANY + TWO)
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


@pytest.mark.parametrize("name", ONE + MANY + TWO)
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
            ours, theirs = (run(lambda library, *_: getattr(library.fft, name)(
                *args, dtype=dtype and getattr(library, dtype)), library) for library in (tl, torch))
            assert (found := disagreement(ours, theirs)) is None, (args, dtype, found)


@pytest.mark.parametrize("name", ["fftshift", "ifftshift"])
def test_shifts(name):
    for shape, *args in (((5,),), ((4, 3),), ((4, 3), 0), ((2, 3, 4), (0, -1)), ((0, 3),),
                         ((3,), 1), ((4, 3), (0, 0))):
        for dtype in DTYPES:
            assert (found := beside(name, drawn(shape, dtype), *args)) is None, (shape, args, found)


def derivatives(library, name, array, args):
    """The result, and the gradients of both orders of a curved function of it."""
    x = library.tensor(array, requires_grad=True)
    y = getattr(library.fft, name)(x, *args)
    loss = (y.abs() ** 2 * library.arange(y.numel(), dtype=library.float64).reshape(y.shape)).sum()
    loss = loss + (y.real ** 3).sum()
    g, = library.autograd.grad(loss, x, create_graph=True)
    second, = library.autograd.grad((g.abs() ** 2).sum() + (g.real ** 3).sum(), x)
    return [value.detach().resolve_conj().numpy() for value in (y, g, second)]


@pytest.mark.parametrize("name", ONE + MANY + TWO)
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
