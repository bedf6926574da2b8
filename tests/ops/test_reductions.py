"""Reductions: what does not follow from the registry."""

import math
from itertools import product

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib.autograd.jvp import jvp_of
from tensorlib.testing import assert_close, gradcheck, gradgradcheck

inf, nan = math.inf, math.nan


def double(values, requires_grad=False):
    return tl.tensor(values, dtype=tl.float64, requires_grad=requires_grad)


def gradient(function, values):
    x = double(values, requires_grad=True)
    function(x).sum().backward()
    return x.grad.tolist()


# ---- arguments -----------------------------------------------------------------------------------

def test_numpys_names_of_dim_and_keepdim():
    x = double([[1.0, 2.0], [3.0, 5.0]])
    for name in ("sum", "mean", "amax", "argmin", "any", "var", "max"):
        function = getattr(tl, name)
        ours, numpys = function(x, dim=0, keepdim=True), function(x, axis=0, keepdims=True)
        if name == "max":
            ours, numpys = ours.values, numpys.values
        assert ours.shape == (1, 2) and ours.tolist() == numpys.tolist()


def test_a_dim_is_no_bool():
    x = double([[1.0, 2.0]])
    with pytest.raises(TypeError, match="sum: dim must be an int or a sequence of ints, got True"):
        x.sum(True)
    with pytest.raises(TypeError, match="argmax: dim must be one int"):
        x.argmax((0, 1))
    with pytest.raises(TypeError, match="sum: input must be a Tensor, not int"):
        tl.sum(1)
    with pytest.raises(TypeError, match="amax: takes no dtype"):
        x.amax(dtype=tl.float32)


@each("args, keywords, correction, dims", [
    ((), {}, 1, None), ((False,), {}, 0, None), ((), {"unbiased": False}, 0, None),
    ((0, False), {}, 0, 0), ((0,), {"correction": 0.5}, 0.5, 0),
    (((0, 1), True, True), {}, 1, None),
])
def test_ways_to_say_the_correction(args, keywords, correction, dims):
    x = np.random.default_rng(0).normal(size=(3, 4))
    for name in ("var", "std"):
        found = getattr(tl.from_numpy(x), name)(*args, **keywords)
        wanted = getattr(np, name)(x, axis=dims, ddof=correction)
        np.testing.assert_allclose(found.numpy().squeeze(), wanted, rtol=1e-12)


def test_unbiased_and_correction_exclude_each_other():
    with pytest.raises(TypeError, match="std: takes unbiased or correction, not both"):
        double([1.0, 2.0]).std(0, False, correction=1)


def test_pairs_with_the_mean():
    x = double([[1.0, 2.0], [3.0, 7.0]])
    var, mean = tl.var_mean(x, 0)
    std, same = tl.std_mean(x, 0)
    assert var.tolist() == [2.0, 12.5] and mean.tolist() == same.tolist() == [2.0, 4.5]
    assert_close(std * std, var)


def test_out():
    x = double([[1.0, 2.0], [3.0, 5.0]])
    out = double([0.0, 0.0])
    assert tl.sum(x, 0, out=out) is out and out.tolist() == [4.0, 7.0]
    assert tl.var(x, 0, out=out) is out and out.tolist() == [2.0, 4.5]
    assert tl.softmax(x[0] * 0, 0, out=out) is out and out.tolist() == [0.5, 0.5]
    places = tl.tensor([], dtype=tl.int64)
    found = tl.max(x, 1, out=(out, places))
    assert found.values is out and out.tolist() == [2.0, 5.0] and places.tolist() == [1, 1]
    with pytest.raises(TypeError, match="max: out must be a tuple of 2 Tensors"):
        tl.max(x, 1, out=out)


# ---- dtypes --------------------------------------------------------------------------------------

def test_integers_are_summed_in_int64():
    x = tl.tensor([100, 100, 100], dtype=tl.uint8)
    assert x.sum().item() == 300 and x.sum().dtype == x.cumsum(0).dtype == tl.int64
    assert x.sum(dtype=tl.uint8).item() == 300 % 256
    assert (x > 50).sum().item() == tl.count_nonzero(x).item() == 3
    assert x.prod(dtype=tl.float64).item() == 1e6


def test_half_types_are_computed_in_float32():
    x = tl.ones(4096, dtype=tl.float16)
    assert x.sum().item() == 4096.0            # adding in float16 stops at 2048
    assert x.mean().item() == 1.0 and x.var().item() == 0.0
    x.requires_grad_().sum().backward()
    assert x.grad.dtype == tl.float16


@each("name", ["mean", "var", "std"])
def test_integers_have_no_mean(name):
    with pytest.raises(RuntimeError, match=f"{name}: takes floating-point dtypes, got tensorlib"):
        getattr(tl.tensor([1, 2]), name)()


# ---- nothing, NaN and infinity -------------------------------------------------------------------

def test_reductions_of_nothing():
    x = tl.zeros(0, 3)
    assert x.sum().item() == 0.0 and x.prod().item() == 1.0
    assert math.isnan(x.mean().item()) and math.isnan(x.var().item())
    assert x.logsumexp(0).tolist() == [-inf] * 3
    assert x.all().item() and not x.any().item()
    assert x.max(1).indices.shape == x.argmin(1).shape == (0,)
    with pytest.raises(IndexError, match="max: dim 0 has size 0"):
        x.max(0)


def test_one_element_has_no_variance():
    assert math.isnan(double([2.0]).var().item())
    assert double([2.0]).var(correction=0).item() == 0.0
    assert double([1.0, 2.0]).var(correction=2).item() == inf


def test_nan_is_the_largest_and_the_smallest():
    x = double([[1.0, nan], [inf, -inf]])
    assert x.argmax().item() == x.argmin().item() == 1
    assert math.isnan(x.max().item()) and math.isnan(x.min().item())
    assert x.max(1).indices.tolist() == [1, 0]


@each("dtype", ["float32", "float64", "int64", "uint8", "float16", "complex64"])
@each("shape", [(3, 70, 65), (4, 33, 3), (2, 5, 300)])
def test_gaps_between_rows_change_no_bit(dtype, shape):
    """Rows and slices with gaps are reduced where they lie, those without as one piece."""
    rng = np.random.default_rng(7)
    whole = tl.from_numpy(rng.normal(0, 9, [n + 1 for n in shape])).to(getattr(tl, dtype))
    gapped = whole[1:, 1:, 1:]
    packed = gapped.contiguous()
    for dims in ((0,), (1,), (2,), (0, 1), (1, 2)):
        for name in ("sum", *(() if packed.is_complex() else ("amax", "amin")), *(
                ("var",) if packed.is_floating_point() else ())):
            found, expected = (getattr(x, name)(dims) for x in (gapped, packed))
            assert found.tolist() == expected.tolist(), (name, dims)
    for dim in (0, 1, 2):
        for name in ("prod", *(() if packed.is_complex() else ("argmax", "argmin"))):
            found, expected = (getattr(x, name)(dim) for x in (gapped, packed))
            assert np.array_equal(found, expected, equal_nan=True), (name, dim)


@each("dtype", ["float32", "float64", "int64", "uint8", "float16", "complex64"])
@each("kept", list(product((False, True), repeat=3)))
@each("shape", [(3, 70, 65), (70, 3, 300), (40, 300, 2), (2, 0, 3), (5, 400, 7),
                (9, 80, 100)])
def test_expanded_dims_change_no_bit(dtype, kept, shape):
    """Slices, rows and elements that are all the same are read where they lie, or copied once."""
    rng = np.random.default_rng(7)
    once = [n if keep else min(n, 1) for n, keep in zip(shape, kept)]
    expanded = tl.from_numpy(rng.normal(0, 9, once)).to(getattr(tl, dtype)).expand(shape)
    packed = expanded.contiguous()
    ordered = not expanded.is_complex() and expanded.numel() > 0
    for dims in ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)):
        for name in ("sum", *(("amax",) if ordered else ()), *(
                ("var", "nansum", "mean") if expanded.is_floating_point() else ())):
            found, expected = (getattr(x, name)(dims) for x in (expanded, packed))
            assert np.array_equal(found, expected, equal_nan=True), (name, dims)
    for dim in (0, 1, 2):
        for name in ("prod", *(("argmax", "argmin") if ordered else ())):
            found, expected = (getattr(x, name)(dim) for x in (expanded, packed))
            assert np.array_equal(found, expected, equal_nan=True), (name, dim)


@each("dims", [1, (0, 1), (1, 2), None], ids=str)
def test_what_repetitions_do_not_change_is_found_without_them(dims):
    once = tl.arange(-7, 8, dtype=tl.int32).reshape(3, 1, 5)
    many = once.expand(3, 2**34, 5)                       # whose copy would take a terabyte
    assert many.sum(dims).equal(once.sum(dims) * 2**34)
    for x in (once, once.float(), once.to(tl.uint8), once > 0):
        repeated = x.expand(3, 2**34, 5)
        for name in ("amax", "amin"):
            assert getattr(repeated, name)(dims).equal(getattr(x, name)(dims))
    for name in ("any", "all"):
        assert getattr((once > 0).expand(many.shape), name)(dims).equal(
            getattr(once > 0, name)(dims))


@each("dtype", [tl.float32, tl.float64])
@each("step", [1, 2, 3])
def test_rows_of_slices_with_gaps_change_no_bit(dtype, step):
    """Long enough ones are read where they lie; a sum over all of memory is cut into pieces."""
    x = tl.randn(40, 9, 200 * step, dtype=dtype)[:, 1:, :199 * step:step]
    for dims in ((1, 2), (2,), (0, 1, 2)):
        assert x.sum(dims).tolist() == x.contiguous().sum(dims).tolist()
    y = tl.randn(3, 700, 200 * step, dtype=dtype)[:, 1:, :199 * step:step]
    assert y.sum((1, 2)).tolist() == y.contiguous().sum((1, 2)).tolist()


@each("dtype", [tl.float32, tl.float64, tl.bfloat16])
@each("shape, dim", [((20, 40), 0), ((3, 20, 16), 1), ((2, 21, 60, 60), 1),
                     ((300, 600), 0), ((1, 64), 0), ((4, 6, 32), (0, 1))])
def test_exponentials_down_columns_are_those_of_each_column(shape, dim, dtype):
    x = (3 * tl.randn(shape, dtype=tl.float64)).to(dtype)
    x[..., 1], x[0, ..., 2], x[0, ..., 3], x[0, ..., 4] = -math.inf, math.inf, math.nan, 1000.0
    apart = x.movedim(dim, tuple(range(-len(dim), 0)) if isinstance(dim, tuple) else -1)
    rows = apart.flatten(-len(dim)) if isinstance(dim, tuple) else apart
    atol, rtol = (0.02, 0.02) if dtype is tl.bfloat16 else (4e-6, 4e-6)
    found = x.logsumexp(dim)
    assert_close(found, rows.contiguous().logsumexp(-1), atol=atol, rtol=rtol, equal_nan=True)
    wide = tl.cat([x, x], -1)[..., :shape[-1]]               # whose rows have gaps between them
    assert tl.equal(wide.logsumexp(dim).nan_to_num(), found.nan_to_num())
    for function in (tl.softmax, tl.log_softmax) if isinstance(dim, int) else ():
        assert_close(function(x, dim).movedim(dim, -1), function(rows.contiguous(), -1),
                     atol=atol, rtol=rtol, equal_nan=True)


@each("dtype", [np.float32, np.float64])
@each("n", [3, 8, 31, 64, 257, 1000])
def test_extremes_and_their_places_are_numpys_wherever_they_stand(dtype, n):
    """Rows have loops for whole registers, for what is left of them, and for less than one."""
    rng = np.random.default_rng(n)
    rows = np.stack([rng.permutation(n) for _ in range(2 * n)]).astype(dtype)
    rows[np.arange(n), np.arange(n)] = np.nan
    x = tl.from_numpy(rows)
    for name in ("argmax", "argmin"):
        assert np.array_equal(getattr(x, name)(1).numpy(), getattr(np, name)(rows, 1))
    for name in ("amax", "amin"):
        assert np.array_equal(getattr(x, name)(1).numpy(), getattr(np, name)(rows, 1),
                              equal_nan=True)


def test_ties_give_the_first_place_in_row_major_order():
    x = double([[0.0, 1.0], [1.0, 1.0]]).T
    assert x.argmax().item() == 1 and x.argmax(0).tolist() == [1, 0]


# ---- gradients at the kinks ----------------------------------------------------------------------

def test_equal_extremes_share_the_gradient():
    for function in (tl.amax, tl.max):
        assert gradient(function, [1.0, 2.0, 2.0]) == [0.0, 0.5, 0.5]
        assert gradient(function, [nan, 1.0, nan]) == [0.5, 0.0, 0.5]
    assert gradient(lambda x: x.amin((0, 1)), [[1.0, 1.0], [1.0, 1.0]]) == [[0.25, 0.25]] * 2
    assert gradient(lambda x: x.max(0).values, [1.0, 2.0, 2.0]) == [0.0, 1.0, 0.0]


def test_the_gradient_of_std_is_0_at_0():
    assert gradient(lambda x: x.std(), [2.0, 2.0]) == [0.0, 0.0]
    x = double([2.0, 2.0], requires_grad=True)
    _, tangent = jvp_of(tl.std.op, (x, None, 1, False), {}, (tl.ones_like(x),))
    assert tangent.item() == 0.0


def test_the_gradient_of_a_logsumexp_of_nothing_possible_is_0():
    assert gradient(lambda x: x.logsumexp(0), [-inf, -inf]) == [0.0, 0.0]
    assert gradient(lambda x: x.logsumexp(0), [-inf, 3.0]) == [0.0, 1.0]


@each("values", [[2.0, 0.0, 3.0, 4.0, 5.0], [0.0, 2.0, 0.0], [0.0, 0.0, 0.0],
                 [3.0], [1e-150, 1e150, 1e200]])
def test_the_gradient_of_prod_is_the_product_of_the_others(values):
    wanted = [math.prod(values[:i] + values[i + 1:]) for i in range(len(values))]
    np.testing.assert_allclose(gradient(tl.prod, values), wanted, rtol=1e-12)
    if max(values) < 10:
        x = double(values, requires_grad=True)
        assert gradcheck(tl.prod, x) and gradgradcheck(tl.prod, x)


def test_the_gradient_of_norm_is_0_at_0():
    assert gradient(tl.norm, [0.0, 0.0]) == [0.0, 0.0]
    assert gradient(tl.norm, [3.0, 4.0]) == pytest.approx([0.6, 0.8])
    assert double([3.0, -4.0]).norm(inf).item() == 4.0 and double([0.0, 2.0]).norm(0).item() == 1.0
    assert math.isnan(double([nan]).norm().item())
    with pytest.raises(RuntimeError, match="norm: takes floating-point dtypes"):
        tl.tensor([3, 4]).norm()


@each("operation", [tl.softmax, tl.log_softmax])
def test_gradients_of_the_fused_backward_kernels(operation):
    """Their own gradients and tangents, which no other test reaches at third order."""
    x = double([[0.3, -1.0, 2.0], [0.1, 0.2, -0.4]], requires_grad=True)

    def slope(x):
        (g,) = tl.autograd.grad((operation(x, 1) ** 2).sum(), x, create_graph=True)
        return g

    assert gradgradcheck(slope, x)


def test_large_and_small_sums_agree_in_their_gradients():
    for n in (10, 5000):                       # below and above what is filled rather than viewed
        x = tl.ones(n, requires_grad=True)
        (x * x).sum().backward()
        assert x.grad.shape == (n,) and (x.grad == 2).all().item()
        x.grad = None
        x.sum().backward()
        x.grad += 1                            # a buffer of its own, not a view of one element
        assert (x.grad == 2).all().item()


# ---- another dtype of the result -----------------------------------------------------------------

@pytest.mark.filterwarnings("ignore:to. casting complex")
@each("name, args", [("sum", ()), ("mean", ()), ("prod", ()), ("nansum", ()),
                     ("cumsum", (0,)), ("cumprod", (0,)), ("softmax", (0,)),
                     ("log_softmax", (0,))])
@each("taken, dtype", [("complex64", tl.float64), ("complex128", tl.float64),
                       ("float32", tl.float64)])
def test_derivatives_are_those_of_the_numbers_cast_first(name, args, taken, dtype):
    x, change = (tl.tensor([0.5 - 1j, -1.5 + 0.25j, 2 + 1j, 0.75 - 2j]).mul(factor) for factor in
                 (1, 0.5 + 1j))
    x, change = (part.to(getattr(tl, taken)) if "complex" in taken else part.real
                 for part in (x, change))

    def function(x):
        return getattr(tl, name)(x, *args, dtype=dtype)

    def of_cast(x):
        return getattr(tl, name)((x.real if x.is_complex() else x).to(dtype), *args)

    for found, wanted in zip(*(tl.func.jvp(f, (x,), (change,)) for f in (function, of_cast))):
        assert found.dtype is dtype
        assert_close(found, wanted)
    x.requires_grad_()
    weights = tl.arange(1.0, 5)
    found, wanted = (tl.autograd.grad((f(x) * weights).sum(), x)[0] for f in (function, of_cast))
    assert found.dtype is x.dtype
    assert_close(found, wanted)


# ---- running sums --------------------------------------------------------------------------------

@each("dtype", (tl.float32, tl.float64), ids=str)
@each("columns", range(1, 10))
def test_running_sums_of_few_columns_are_those_of_each_alone(columns, dtype):
    x = tl.randn(3, 50, columns, dtype=dtype)
    alone = tl.stack([tl.stack([row.contiguous().cumsum(0) for row in plane.T]).T for plane in x])
    assert tl.equal(x.cumsum(1), alone)
    assert tl.equal(x.cumsum_(1), alone)
