"""Half types at the edges of their range: what is made of operations is computed in float32, and
rounded once, so that it is its own result in float32, rounded."""

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib._core.base.scratch import refuse_scratch
from tensorlib.nn import functional as F
from tensorlib.testing.catalogue import call, dtypes_taken, in_dtype, is_data, outputs, samples
from tests.ops.catalogue import operations

# Factors of the samples, which are near 1: squares, cubes and products of the numbers that come out
# are beyond a float16 at either end, though they are not.
SCALES = {tl.float16: (2.0**-9, 1 / 16, 1.0, 16.0, 200.0, 6000.0),
          tl.bfloat16: (2.0**-60, 1.0, 2.0**50)}
DIGITS = {tl.float16: (10, -24), tl.bfloat16: (7, -133)}      # bits; the exponent of the least


def scaled(op, sample, factor):
    """A sample with its real values times a factor."""
    return sample.map(lambda i, array: array * factor
                      if is_data(op, i, array) and array.dtype.kind == "f" else array)


def distances(found, wanted, dtype):
    """How far values of a half type are from others rounded to it, in units of the last place."""
    bits, least = DIGITS[dtype]
    found, wanted = found.double().numpy(), wanted.to(dtype).double().numpy()
    with np.errstate(all="ignore"):
        unit = 2.0 ** np.maximum(np.floor(np.log2(np.abs(wanted))) - bits, least)
        apart = np.abs(found - wanted) / unit
    same = (found == wanted) | np.isnan(found) & np.isnan(wanted)
    return np.where(same, 0, np.where(np.isfinite(found) & np.isfinite(wanted), apart, np.inf))


def both(op, sample, dtype):
    """What an operation gives for a sample in a half type, and for the same values in float32."""
    half = in_dtype(op, sample, dtype.name)
    wide = half.map(lambda i, x: x.float() if x.dtype is dtype else x)
    return [[x.detach() for x in outputs(call(op, given))] for given in (half, wide)]


@each("dtype", SCALES, ids=lambda dtype: dtype.name)
@operations("dtypes", lambda op: op.linearity == "composite" and not op.random
            and {"float16", "bfloat16"} <= set(dtypes_taken(op)))
def test_a_composed_operation_rounds_half_types_once(op, dtype):
    for factor in SCALES[dtype]:
        for sample in samples(op):
            try:
                found, wanted = both(op, scaled(op, sample, factor), dtype)
            except (RuntimeError, ValueError):
                continue                             # it refuses such values in every dtype
            for x, y in zip(found, wanted, strict=True):
                if x.dtype is dtype:
                    assert np.all(distances(x, y, dtype) <= 1), (factor, sample)


def test_what_lies_between_does_not_overflow():
    x = tl.full((1, 4096), 5.0, dtype=tl.float16, requires_grad=True)
    assert F.cosine_similarity(x, x.detach()).item() == 1
    big = tl.full((3,), 400.0, dtype=tl.float16)
    assert big.norm(3).item() == pytest.approx(400 * 3 ** (1 / 3), rel=1e-3)
    assert big.norm(4).item() == pytest.approx(400 * 3 ** (1 / 4), rel=1e-3)
    apart = F.pairwise_distance(big, -big, p=3.0).item()
    assert apart == pytest.approx(800 * 3 ** (1 / 3), rel=1e-3)
    assert tl.addcmul(big * 0, big, big, value=0.01).tolist() == [1600.0] * 3
    assert tl.addcdiv(big, big * 100, big / 4000, value=0.001).tolist() == [800.0] * 3
    m = tl.full((2, 2), 200.0, dtype=tl.float16)
    assert tl.addmm(m * 0, m, m, alpha=0.5).tolist() == [[40000.0] * 2] * 2
    assert tl.baddbmm(m[None] * 0, m[None], m[None], alpha=0.5).amax().item() == 40000


def test_a_dtype_that_is_asked_for_is_that_of_the_result():
    x = tl.full((3,), 400.0, dtype=tl.float16)
    assert tl.norm(x, 3, dtype=tl.float32).dtype is tl.float32
    assert tl.norm(x.float(), 3, dtype=tl.float16).dtype is tl.float16
    out = tl.empty((), dtype=tl.float16)
    assert tl.norm(x, 3, out=out) is out and out.isfinite()
    mixed = tl.addcmul(x, x, x.float())
    assert mixed.dtype is tl.float32 and tl.addcmul(x, x, x.bfloat16()).dtype is tl.float32
    assert tl.addcmul(x, x, tl.tensor(2.0)).dtype is tl.float16
    assert x.clone().addcmul_(x, x, value=0.001).dtype is tl.float16


@pytest.mark.parametrize("dtype", [tl.float16, tl.bfloat16], ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("create_graph", [False, True])
def test_gradients_are_computed_in_float32(dtype, create_graph):
    """The rules multiply, square and subtract; what they give is rounded once."""
    rng = np.random.default_rng(0)
    x = tl.tensor(rng.uniform(100, 300, (3, 40)), dtype=dtype)
    g = tl.tensor(rng.uniform(-1, 1, (3,)), dtype=dtype)
    for function in (lambda x: x.var(1), lambda x: x.norm(3, 1), lambda x: (x / 100).prod(1),
                     lambda x: x.atan().sum(1), lambda x: F.layer_norm(x, (40,))[:, 0],
                     lambda x: F.softsign(x).sum(1), lambda x: x.asinh().sum(1)):
        grads = []
        for wide in (False, True):
            leaf = (x.float() if wide else x.clone()).requires_grad_()
            out = function(leaf)
            grads.append(tl.autograd.grad(out, leaf, g.to(out.dtype), create_graph=create_graph)[0])
        assert grads[0].dtype is dtype
        assert np.all(distances(grads[0].detach(), grads[1].detach(), dtype) <= 40), function


@pytest.mark.parametrize("dtype", [tl.float16, tl.bfloat16, tl.float32], ids=lambda d: d.name)
def test_the_slope_of_selu_fades_far_below_zero(dtype):
    x = tl.tensor([-0.5, -4.0, -7.0, -9.0, -12.0, 0.0, 1.0], dtype=dtype, requires_grad=True)
    F.selu(x).sum().backward()
    exact = np.where(x.tolist() <= np.zeros(7), 1.7580993408473766 * np.exp(x.tolist()),
                     1.0507009873554805)
    np.testing.assert_allclose(x.grad.double().numpy(), exact, rtol=4e-3, atol=6e-8)


def factors(x, number):
    """What a number scales, which keeps its digits."""
    return x * number, number * x.t(), x / number, number / x, x // number, x.clone().mul_(number)


def terms(x, number):
    """What a number is compared with or added to, which rounds it to the dtype of the tensor."""
    return (x + number, number - x, x.clone().add_(number), x[:, None] - number, x % number,
            number // x, x.abs() ** number, x == number, x != number, x < number, number <= x)


@each("dtype", SCALES, ids=lambda dtype: dtype.name)
@each("number", (2, 0.5, 0.1, -3, 65519.0, 1e-8, 70000, 2**40 + 1, np.inf, np.nan))
@each("made", (lambda function: function, tl.compile), ids=("eager", "captured"))
def test_a_number_beside_a_half_type_is_rounded_to_it_unless_it_is_a_factor(dtype, number, made):
    x = tl.tensor([number, *np.linspace(-4, 4, 299)]).to(dtype)
    rounded = tl.tensor(float(number)).to(dtype).item()
    for function, wide in ((factors, number), (terms, rounded)):
        for found, wanted in zip(made(function)(x, number), function(x.float(), wide)):
            assert found.dtype is (wanted.dtype if wanted.dtype is tl.bool else dtype)
            assert found.equal(wanted.to(found.dtype)) or tl.equal(
                *(y.double().nan_to_num(0.25) for y in (found, wanted.to(found.dtype))))


@each("dtype", [tl.float16, tl.bfloat16])
@each("shape", [(300, 40), (64, 64, 64), (9, 2048), (9, 2049), (8192, 1), (200, 0)])
def test_a_matrix_by_a_vector_is_the_product_in_float32_rounded_once(dtype, shape):
    """Rows are widened some at a time: of any number of them, and of tensors with gaps."""
    x, w = tl.randn(*shape).to(dtype), tl.randn(shape[-1]).to(dtype)
    for rows in (x, x[1:], x[::2]):
        wanted = rows.double() @ w.double()
        assert (distances(rows @ w, wanted, dtype)[wanted.abs() > 0.5] <= 1).all()
        assert (rows @ w[:, None]).shape == (*rows.shape[:-1], 1)
        assert tl.equal((rows @ w[:, None])[..., 0], rows @ w)
    with tl.device("meta"):
        x, w = tl.empty(*shape, dtype=dtype), tl.empty(shape[-1], dtype=dtype)
        assert (x @ w).shape == shape[:-1]


def test_a_matrix_by_a_vector_without_memory_for_rows():
    x, w = tl.ones(300, 40).half(), tl.ones(40).half()
    refuse_scratch(True)
    try:
        with pytest.raises(MemoryError, match="^matmul: no memory for rows"):
            x @ w
    finally:
        refuse_scratch(False)
    assert (x @ w).tolist() == [40.0] * 300
