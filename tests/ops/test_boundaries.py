"""Values and gradients exactly at bounds: equal and crossing limits, extreme diagonals, NaN bits,
subnormal halves, as many dims as a tensor may have."""

import itertools

import numpy as np
import pytest
from cases import each
from hypothesis import given
from hypothesis import strategies as st

import tensorlib as tl

MOST = 64                                            # dims of a tensor
POINTS = [-2.0, -1.0, 0.0, 1.0, 2.0]
EXTREME = [2**63 - 1, 2**63 - 2, 2**62, 2**31, -2**31, -2**62, -2**63 + 1, -2**63]


# ---- bounds of values ----------------------------------------------------------------------------

def gradients(run, *values):
    leaves = [tl.tensor(column, dtype=tl.float64, requires_grad=True) for column in values]
    out = run(*leaves)
    grads = tl.autograd.grad(out.sum(), leaves, allow_unused=True)
    return out.tolist(), [g.tolist() for g in grads]


def test_a_clamped_value_moves_with_what_it_equals():
    """At every order of the three, with ties; at crossing bounds the upper one counts."""
    x, low, high = np.array(list(itertools.product(POINTS, repeat=3))).T
    wanted = [(x >= low) & (x <= high), (x < low) & (low < high), (x > high) | (high < low)]
    for form in (tl.clamp, lambda x, low, high: x.clone().clamp_(low, high)):
        values, grads = gradients(form, x, low, high)
        assert values == np.minimum(np.maximum(x, low), high).tolist()
        assert grads == [part.astype(float).tolist() for part in wanted]


@each("bound", [-1.0, 0.0, 1.0])
@each("keywords", [["min"], ["max"], ["min", "max"]])
def test_a_value_at_a_bound_that_is_a_number_moves(bound, keywords):
    """The bound itself and its neighbours in the dtype, on either side."""
    x = np.array([np.nextafter(bound, -9), bound, np.nextafter(bound, 9)])
    moves = [1.0, 1.0, 1.0]
    if "min" in keywords:
        moves[0] = 0.0
    if "max" in keywords:
        moves[2] = 0.0
    limits = dict.fromkeys(keywords, bound)
    _, (g,) = gradients(lambda x: tl.clamp(x, **limits), x)
    assert g == moves


@pytest.mark.parametrize("name, other", [("maximum", "minimum"), ("clamp_min", "clamp_max"),
                                         ("amax", "amin"), ("relu", None), ("abs", None)])
def test_gradients_at_ties(name, other):
    """Ties are shared by `maximum` and `amax`, and belong to the clamped value."""
    x, y = np.array(list(itertools.product(POINTS, repeat=2))).T
    for sign, function in ((1, name), (-1, other)):
        if function is None:
            continue
        if name in ("relu", "abs"):
            _, (g,) = gradients(getattr(tl, function), x)
            assert g == ((x > 0) if function == "relu" else np.sign(x)).astype(float).tolist()
            continue
        if name == "amax":
            _, (a, b) = gradients(lambda p, q: getattr(tl.stack([p, q]), function)(0), x, y)
        else:
            _, (a, b) = gradients(getattr(tl, function), x, y)
        first = (sign * x > sign * y) + (x == y) * (1.0 if "clamp" in name else 0.5)
        assert a == first.tolist() and b == (1 - first).tolist()


# ---- diagonals and sizes -------------------------------------------------------------------------

@given(st.integers(0, 6), st.integers(0, 6),
       st.one_of(st.integers(-8, 8), st.sampled_from(EXTREME)))
def test_triangles_at_every_diagonal(rows, columns, k):
    x = np.arange(1, 1 + 2 * rows * columns).reshape(2, rows, columns)
    near = max(-9, min(9, k))
    for name in ("tril", "triu"):
        wanted = getattr(np, name)(x, near)
        assert getattr(tl, name)(tl.from_numpy(x), k).tolist() == wanted.tolist()
        if abs(k) < 2**62:
            places = getattr(np, f"{name}_indices")(rows, near, columns)
            assert getattr(tl, f"{name}_indices")(rows, columns, k).tolist() == np.stack(
                places).tolist()


MANY_DIMS = {
    "stack": lambda x, i: tl.stack([x, x]), "unsqueeze": lambda x, i: x.unsqueeze(-1),
    "unsqueeze_": lambda x, i: x.clone().unsqueeze_(0), "None": lambda x, i: x[None],
    "reshape": lambda x, i: x.reshape([1] * (MOST + 1)),
    "expand": lambda x, i: x.expand([2] + [-1] * MOST), "view": lambda x, i: x.view([1] * 65),
    "tile": lambda x, i: x.tile([1] * (MOST + 1)), "repeat": lambda x, i: x.repeat([1] * 65),
    "unflatten": lambda x, i: x.unflatten(0, (1, 1)), "ones": lambda x, i: tl.ones([1] * 65),
    "read": lambda x, i: x[i], "read a row": lambda x, i: x[i.reshape(1, 1)],
    "write": lambda x, i: x.__setitem__(i, 1.0), "read at two": lambda x, i: x[:, i, :, i],
    "batch": lambda x, i: tl.func.vmap(lambda y: y[i])(x),
    "jacobian": lambda x, i: tl.func.jacrev(lambda y: y * 2)(x),
}


@each("name", MANY_DIMS)
def test_no_tensor_has_more_dims_than_there_may_be(name):
    x, i = tl.ones([1] * MOST), tl.zeros([1] * MOST, dtype=tl.int64)
    with pytest.raises((RuntimeError, IndexError), match="at most 64 dims"):
        MANY_DIMS[name](x, i)
    assert x.tolist() == tl.ones([1] * MOST).tolist()


def test_what_has_as_many_dims_as_there_may_be_works():
    shape = [2] + [1] * (MOST - 3) + [2, 2]
    x = tl.arange(8.0).reshape(shape).requires_grad_()
    y = x.transpose(0, -1)[::1].clone() + x.sum((0, 5), keepdim=True)
    y = (y @ x).permute(list(range(MOST))[::-1]).contiguous()
    assert tl.stack([x.reshape(shape[1:] + [2])[0]]).ndim == MOST
    y.sum().backward()
    z = np.arange(8.0).reshape(2, 2, 2)
    made = z.transpose(2, 1, 0) + z.sum(0, keepdims=True)
    assert sorted(y.flatten().tolist()) == sorted((made @ z).ravel().tolist())
    assert x.grad.shape == x.shape


# ---- halves --------------------------------------------------------------------------------------

def half_bits(x):
    """Bits of a tensor of a half type; bfloat16 is the upper half of a float32."""
    if x.dtype is tl.float16:
        return x.numpy().view(np.uint16)
    return (x.to(tl.float32).numpy().view(np.uint32) >> 16).astype(np.uint16)


@each("source", ["float32", "float64"])
@each("n", [1, 7, 16, 33])
def test_a_nan_of_any_bits_stays_one(source, n):
    """In vectors and in what is left beside them; never infinity, which drops low bits only."""
    word, fraction = (np.uint32, 23) if source == "float32" else (np.uint64, 52)
    width = 8 * np.dtype(word).itemsize
    exponent = (1 << width - 1) - (1 << fraction)
    payloads = [1, 1 << 12, 1 << 13, 1 << fraction - 1, (1 << fraction) - 1, 1 << fraction - 2]
    bits = [sign << width - 1 | exponent | payload for sign in (0, 1) for payload in payloads]
    x = np.resize(np.array(bits, word), len(bits) * n)
    for target in (tl.float16, tl.bfloat16):
        for part in (x, *x.reshape(-1, n)):
            y = tl.from_numpy(part.view(source)).to(target)
            assert bool(y.isnan().all()) and not bool(y.isinf().any())
            back = y.to(getattr(tl, source))
            assert np.isnan(back.numpy()).all()
            if target is tl.float16:
                assert (half_bits(y) >> 15).tolist() == (part >> np.array(
                    width - 1, word)).tolist()


@each("dtype", [tl.float16, tl.bfloat16])
@each("name", ["mul", "add", "sub", "div"])
def test_arithmetic_of_subnormal_halves_rounds_once(dtype, name):
    """In float32, whose products of halves are exact, then to the nearest half, ties to even."""
    rng = np.random.default_rng(5)
    small, any_bits = rng.integers(0, 1 << 11, 4096), rng.integers(0, 1 << 16, 4096)
    if dtype is tl.bfloat16:
        x, y = (tl.from_numpy((bits.astype(np.uint32) << 16).view(np.float32)).to(dtype)
                for bits in (small, any_bits))
    else:
        x, y = (tl.from_numpy(bits.astype(np.uint16).view(np.float16))
                for bits in (small, any_bits))
    run, singles = getattr(tl, name), (x.to(tl.float32), y.to(tl.float32))
    wanted = run(*singles).to(dtype)
    got = run(x, y)
    known = ~np.isnan(wanted.to(tl.float32).numpy())
    assert half_bits(got)[known].tolist() == half_bits(wanted)[known].tolist()
    assert np.isnan(got.to(tl.float32).numpy()).tolist() == (~known).tolist()
    if dtype is tl.float16:
        with np.errstate(all="ignore"):
            exact = getattr(np, {"mul": "multiply", "sub": "subtract", "div": "divide"}.get(
                name, name))(*(z.numpy() for z in singles)).astype(np.float16)
        assert half_bits(got)[known].tolist() == exact.view(np.uint16)[known].tolist()

