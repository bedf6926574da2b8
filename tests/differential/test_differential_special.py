"""Special functions, beside PyTorch: values at ordinary and odd points, dtypes and gradients."""

import numpy as np
import pytest
from cases import each
from peer import disagreement, run, tensor

import tensorlib as tl

torch = pytest.importorskip("torch")

inf, nan = float("inf"), float("nan")
POINTS = [-inf, -30.0, -7.25, -2.0, -1.0, -0.5, -0.0, 0.0, 1e-6, 0.25, 0.5, 0.9, 1.0, 1.5, 2.0, 3.7,
          9.0, 40.0, 1e4, inf, nan]
UNARY = ["asinh", "acosh", "atanh", "sinc", "frac", "signbit", "logit", "lgamma", "digamma",
         "erfinv", "i0", "isposinf", "isneginf", "isreal", "sgn"]
SPECIAL = ["entr", "erfcx", "expit", "gammaln", "i0e", "i1", "i1e", "log_ndtr", "ndtr", "ndtri",
           "psi"]
WITHOUT_GRADIENTS = ["bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "modified_bessel_k0",
                     "modified_bessel_k1", "scaled_modified_bessel_k0", "scaled_modified_bessel_k1",
                     "spherical_bessel_j0"]        # in PyTorch
POLYNOMIALS = [*(f"{shifted}chebyshev_polynomial_{kind}" for shifted in ("", "shifted_")
                 for kind in "tuvw"), "hermite_polynomial_h", "hermite_polynomial_he",
               "laguerre_polynomial_l", "legendre_polynomial_p"]
BINARY = ["copysign", "logaddexp2", "xlogy", "heaviside", "nextafter", "ldexp", "float_power"]
DTYPES = ("bool", "uint8", "int8", "int64", "float16", "bfloat16", "float32", "float64")

# where PyTorch's results are not the functions': see each line
EXCUSED = {
    "digamma": [-inf],                   # -inf; there is no limit
    "sinc": [-inf, inf],                 # NaN; the limit is 0
    "i0": [-inf, inf], "i0e": [-inf, inf], "i1": [-inf, inf], "i1e": [-inf, inf],     # NaN
    "erfcx": [-30.0, 1e4], "log_ndtr": [-inf],
}


def function(library, name):
    return getattr(library, name, None) or getattr(library.special, name)


def compared(name, dtype, *points, kind="product"):
    def call(library, *args):
        return function(library, name)(*args)
    ours, theirs = (run(call, lib, *(tensor(lib, x, dtype) for x in points)) for lib in (tl, torch))
    if isinstance(theirs[1], NotImplementedError) and dtype in ("float16", "bfloat16", "int64"):
        return None                      # PyTorch's kernels lack some of these
    return disagreement(ours, theirs, kind)


@each("name", UNARY + SPECIAL + WITHOUT_GRADIENTS)
def test_functions_of_one_tensor(name):
    for dtype in DTYPES:
        points = [x for x in POINTS if x not in EXCUSED.get(name, ())]
        if "float" not in dtype:
            points = [0, 1, 2, 5] if dtype in ("bool", "uint8") else [-2, 0, 1, 2, 5]
        assert (found := compared(name, dtype, points)) is None, (name, dtype, found)


@each("name", POLYNOMIALS)
def test_polynomials(name):
    points = [x for x in POINTS if abs(x) < 3]
    for n in (-2, 0, 1, 2, 3, 7, 2.7):
        found = [function(lib, name)(tensor(lib, points, "float64"), n).numpy()
                 for lib in (tl, torch)]
        np.testing.assert_allclose(*found, rtol=1e-9, atol=1e-9)
    degrees = [[-1], [0], [1], [4], [9]]
    assert (found := compared(name, "float64", [points], degrees)) is None, found
    assert function(tl, name)(tl.tensor([1, 2]), tl.tensor([2, 3])).dtype is tl.float32
    for dtype in ("bool", "uint8", "int8"):
        assert (found := compared(name, dtype, [[0], [1]], [[0, 1]])) is None, found
    x = tl.rand(3, dtype=tl.float64, requires_grad=True)
    assert tl.autograd.gradcheck(lambda x: function(tl, name)(x, 4), x)
    assert tl.autograd.gradcheck(lambda x: function(tl, name)(x, tl.tensor([0, 1, 5])), x)


@each("name", BINARY)
def test_functions_of_two_tensors(name):
    points = [x for x in POINTS if abs(x) < 100 or x != x]
    grid = [list(map(float, x.ravel())) for x in np.meshgrid(points, points)]
    for dtype in ("float32", "float64"):
        assert (found := compared(name, dtype, *grid)) is None, (name, dtype, found)
    if name != "nextafter":
        whole = [[-2, 0, 3, 5], [1, 2, 0, 3]]
        assert (found := compared(name, "int64", *whole)) is None, (name, found)


@pytest.mark.parametrize("name", ["gcd", "lcm"])
def test_whole_numbers(name):
    for dtype in ("uint8", "int8", "int64", "float32", "bool"):
        found = compared(name, dtype, [0, 12, 100, 7, 0], [0, 18, 75, 1, 5])
        assert found is None, (name, dtype, found)


@pytest.mark.parametrize("name", ["igamma", "igammac"])
def test_incomplete_gamma_functions(name):
    values = [0.0, 0.1, 1.0, 2.5, 30.0, 1000.0, inf, -1.0]
    grid = [list(map(float, x.ravel())) for x in np.meshgrid(values, values)]
    assert (found := compared(name, "float64", *grid)) is None, found


def test_functions_with_a_number():
    x = [0.3, 1.0, 2.5, 9.0, 30.0]
    for call in (lambda lib, x: lib.polygamma(0, x), lambda lib, x: x.polygamma(1),
                 lambda lib, x: lib.polygamma(3, x), lambda lib, x: lib.mvlgamma(x + 1, 3),
                 lambda lib, x: lib.special.multigammaln(x + 3, p=2),
                 lambda lib, x: lib.logit(x, eps=0.1), lambda lib, x: lib.special.zeta(x + 1, x),
                 lambda lib, x: lib.frexp(x), lambda lib, x: lib.frexp(x).exponent):
        for dtype in ("float32", "float64"):
            ours, theirs = (run(call, lib, tensor(lib, x, dtype)) for lib in (tl, torch))
            assert (found := disagreement(ours, theirs, "gradient")) is None, found


@each("name", ["asinh", "acosh", "atanh", "sinc", "logit", "lgamma", "digamma",
               "erfinv", *SPECIAL])
def test_gradients(name):
    points = [1.5, 2.0, 40.0] if name == "acosh" else [0.05, 0.25, 0.5, 0.9]
    gradients = []
    for lib in (tl, torch):
        x = tensor(lib, points, "float64", requires_grad=True)
        g, = lib.autograd.grad(function(lib, name)(x).sum(), x, create_graph=True)
        gg, = lib.autograd.grad(g.sum(), x)
        gradients.append((g.detach().numpy(), gg.numpy()))
    np.testing.assert_allclose(*gradients, rtol=1e-8)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_the_logit_of_the_smallest_numbers(dtype):
    least = {"float16": 2.0**-24, "bfloat16": 2.0**-133, "float32": 2.0**-149, "float64": 5e-324}
    points = [least[dtype] * step for step in (0, 1, 3, 1000, 2**22)] + [-least[dtype], -0.0, 1.0]
    for eps in (None, 0, least[dtype], 1e-3):
        ours, theirs = (run(lambda lib, x, eps=eps: lib.logit(x, eps=eps), lib,
                            tensor(lib, points, dtype)) for lib in (tl, torch))
        assert (found := disagreement(ours, theirs, "product")) is None, (eps, found)
