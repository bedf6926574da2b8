"""What docs/conventions.md promises of bits in different layouts, in "Determinism"."""

import itertools

import numpy as np
import pytest
from cases import each
from catalogue import operations

import tensorlib as tl
from tensorlib._core.base.dtypes import has_gradients
from tensorlib.testing.catalogue import (
    call, dtypes_taken, elementwise, in_numpy, numpy_dtypes, outputs, samples,
)
from tensorlib.testing.checks import in_reals
from tensorlib.testing.layouts import reversed_dims, shifted, strided, transposed

SHAPES = [(5,), (1000,), (300_000,), (40, 50), (3, 700), (700, 3), (2, 50_000), (50_000, 2),
          (6, 7, 8), (1, 9, 300), (2, 3, 4, 5)]
ANY_LAYOUT = {
    "softmax": tl.softmax, "log_softmax": tl.log_softmax, "cumsum": tl.cumsum, "amax": tl.amax,
    "argmin": tl.argmin, "max": tl.max, "sum of integers": lambda x, dim: x.long().sum(dim),
}
SAME_ORDER = {
    "sum": tl.sum, "mean": tl.mean, "var": tl.var, "std": tl.std, "logsumexp": tl.logsumexp,
    "nansum": tl.nansum, "norm": lambda x, dim: tl.norm(x, dim=dim),
    "prod": lambda x, dim: tl.prod(x, dim[0]),
    "gradient of expand": lambda x, dim: x.sum_to_size(
        [1 if d in dim else n for d, n in enumerate(x.shape)]),
}


def bits(result):
    return [x.detach().contiguous().numpy().tobytes() for x in outputs(result)]


def sliced(array):
    """A copy inside of a larger array."""
    larger = np.full([n + 3 for n in array.shape], 99).astype(array.dtype)
    inside = larger[tuple(slice(2, n + 2) for n in array.shape)]
    inside[...] = array
    return inside


def permuted(array):
    """Copies with their dims in every other order in memory."""
    for order in itertools.permutations(range(array.ndim)):
        yield array.transpose(order).copy().transpose(np.argsort(order))


def same_order(array):
    """Copies with their dims in the same order in memory, and a stride of 0 where it can be."""
    yield from (strided(array), reversed_dims(array), sliced(array), shifted(array))
    for d in range(array.ndim):
        back = (slice(None),) * d + (slice(None, None, -1),)
        yield array[back].copy()[back]


def numbers(shape, dtype):
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


@operations("layouts", elementwise)
def test_elementwise_operations_in_any_layout(op):
    sample = max(samples(op), key=lambda sample: sample.arrays[0].size)
    for dtype, shape in itertools.product(numpy_dtypes(op), [(3, 70), (2, 13, 9)]):
        arrays = in_numpy(op, sample, dtype).map(lambda i, array: np.resize(array, shape))
        expected = bits(call(op, arrays.tensors()))
        ways = [np.copy, transposed, strided, reversed_dims, sliced, shifted]
        for turn in range(len(ways)):
            other = arrays.map(lambda i, array: ways[(turn + i) % len(ways)](array))
            assert bits(call(op, other.tensors())) == expected


@operations("layouts", elementwise)
def test_an_element_alone_is_as_among_others(op):
    """Loops end in tails of a few elements, which other code may compute."""
    sample = max(samples(op), key=lambda sample: sample.arrays[0].size)
    for dtype in numpy_dtypes(op):
        arrays = in_numpy(op, sample, dtype).map(lambda i, array: np.resize(array, 67))
        together = [x.detach().numpy() for x in outputs(call(op, arrays.tensors()))]
        for begin, end in [(i, i + 1) for i in range(0, 67, 6)] + [(1, 8), (8, 23), (23, 54)]:
            parts = arrays.map(lambda i, array: array[begin:end].copy())
            assert bits(call(op, parts.tensors())) == [x[begin:end].tobytes() for x in together]


@operations("layouts", lambda op: op.elementwise and op.differentiable)
def test_their_gradients_in_any_layout(op):
    sample = max(samples(op), key=lambda sample: sample.arrays[0].size)
    dtype = in_reals(dtypes_taken(op))[0]
    arrays = in_numpy(op, sample, dtype).map(lambda i, array: np.resize(array, (3, 70)))
    seed = numbers((3, 70), dtype)
    results = set()
    for way in (np.copy, transposed, strided, reversed_dims, sliced):
        tensors = arrays.map(lambda i, array: tl.from_numpy(way(array)))
        wanted = [x.requires_grad_() for x in tensors.arrays if has_gradients(x.dtype)]
        call(op, tensors).backward(tl.from_numpy(way(seed)))
        results.add(b"".join(bits([x.grad for x in wanted if x.grad is not None])))
    assert len(results) == 1


@each("dtype", ["float16", "float32", "float64"])
@each("shape", SHAPES, ids=str)
@each("name", ANY_LAYOUT)
def test_functions_along_a_dim_in_any_layout(name, shape, dtype):
    function, array = ANY_LAYOUT[name], numbers(shape, dtype)
    for dim in range(array.ndim):
        expected = bits(function(tl.tensor(array), dim))
        for other in itertools.chain(same_order(array), permuted(array)):
            assert bits(function(tl.from_numpy(other), dim)) == expected


@each("dtype", ["float16", "float32", "float64"])
@each("shape", SHAPES, ids=str)
@each("name", SAME_ORDER)
def test_reductions_with_the_dims_in_the_same_order(name, shape, dtype):
    function, array = SAME_ORDER[name], numbers(shape, dtype)
    for n in range(1, array.ndim + 1):
        for dims in itertools.combinations(range(array.ndim), n):
            expected = bits(function(tl.tensor(array), dims))
            for other in same_order(array):
                assert bits(function(tl.from_numpy(other), dims)) == expected


@pytest.mark.parametrize("name", ["sum", "var", "prod", "norm"])
def test_expanded_dims(name):
    x = tl.from_numpy(numbers((1, 70, 1), "float32")).expand(50, 70, 9)
    for dims in [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1, 2)]:
        assert bits(SAME_ORDER[name](x, dims)) == bits(SAME_ORDER[name](x.contiguous(), dims))


@each("name", ["sum", "mean", "var", "logsumexp", "norm", "prod"])
def test_gradients_of_reductions(name):
    array = numbers((6, 70, 8), "float32")
    for dims in [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2)]:
        results = set()
        for other in [array, *same_order(array)]:
            x = tl.from_numpy(other).requires_grad_()
            (SAME_ORDER[name](x, dims) * 1.7).sum().backward()
            results.update(bits(x.grad))
        assert len(results) == 1


@each("dtype", ["float32", "float64"])
@each("size", [4, 8, 16])
def test_small_matrix_products_in_any_layout(size, dtype):
    a, b = numbers((3, size), dtype), numbers((size, size), dtype)
    expected = bits(tl.tensor(a) @ tl.tensor(b))
    for left in (a, *permuted(a), *same_order(a)):
        for right in (b, *permuted(b), *same_order(b)):
            product = tl.from_numpy(left) @ tl.from_numpy(right)
            np.testing.assert_allclose(product.numpy(), a @ b, rtol=1e-5, atol=1e-6)
            if b[0].nbytes <= 16:           # a row fits every register: a loop of ours
                assert bits(product) == expected


def test_products_with_a_reversed_vector_are_as_exact_as_others():
    x, y = (np.abs(numbers((n,), "float32"))[:500_000] for n in (500_000, 500_001))
    exact = x.astype("float64") @ y
    got = tl.from_numpy(x[::-1].copy())[::-1] @ tl.tensor(y)
    assert abs(got.item() - exact) < 1e-6 * exact
    assert bits(got) == bits(tl.tensor(x) @ tl.tensor(y))


@pytest.mark.parametrize("stride", [0, 1, 7, 10_000])
def test_dims_of_size_1_change_nothing(stride):
    x = numbers((40, 50), "float32")
    between = np.lib.stride_tricks.as_strided(x, (50, 1, 40), (4, 4 * stride, 200))
    for dims in [(0,), (2,), (0, 2)]:
        plain = tuple(d // 2 for d in dims)
        assert bits(tl.from_numpy(between).sum(dims)) == bits(tl.from_numpy(x.T).sum(plain))
