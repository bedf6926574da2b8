"""Laws of reductions, products, indexing, filling and joining on 1,000 to 100,000 elements in odd
layouts, against NumPy.

See tests/large.py for the layouts.
"""

import numpy as np
import pytest
from cases import each
from hypothesis import given
from hypothesis import strategies as st
from large import POOLS, Positions, assert_equal, layouts, shapes, tensor

import tensorlib as tl

pytestmark = pytest.mark.usefixtures("two_threads")     # chunks begin in the middle of rows

DTYPES = st.sampled_from(sorted(POOLS))
NUMBERS = st.sampled_from(sorted(set(POOLS) - {"bool"}))
EXACT = ["int32", "int64", "float32", "float64"]       # hold sums of 1,000 products
REDUCTIONS = {"sum": np.sum, "amax": np.max, "amin": np.min, "any": np.any, "all": np.all,
              "count_nonzero": np.count_nonzero}


@st.composite
def arrays(draw, dtypes=DTYPES, repeats=True, shape=None):
    """How an array lies; `whole()` is the array."""
    shape = draw(shapes()) if shape is None else shape
    return draw(layouts(shape, draw(dtypes), repeats))


def wide(x):
    """In a dtype that holds sums of all the elements, as float64 does."""
    return x.astype(np.float64)


# ---- reductions ----------------------------------------------------------------------------------

@given(st.sampled_from(sorted(REDUCTIONS)), arrays(), st.data())
def test_reductions_over_any_dims(name, x, data):
    x = x.whole()
    if name in ("any", "all", "count_nonzero"):
        x = x % 7 != 0 if name == "any" else x > 3       # some rows of each kind
    elif x.dtype == bool:
        x = x.astype("uint8")
    dims = data.draw(st.sets(st.integers(0, x.ndim - 1), min_size=1)) if x.ndim > 1 else {0}
    if x.dtype == np.float16 and name == "sum":
        x = x % 2                                          # 100,000 of them do not fit
    expected = REDUCTIONS[name](x if x.dtype == bool else wide(x), axis=tuple(dims))
    if x.dtype == np.float16:
        expected = expected.astype("float16")
    assert_equal(getattr(tl, name)(tensor(x), tuple(dims)), np.asarray(expected))


@given(st.sampled_from(["argmax", "argmin", "max", "min"]), arrays(NUMBERS), st.data())
def test_the_first_of_the_extremes_along_a_dim(name, x, data):
    x = x.whole()
    dim = data.draw(st.integers(0, x.ndim - 1))
    places = (np.argmax if "max" in name else np.argmin)(x, axis=dim)
    if name.startswith("arg"):
        assert_equal(getattr(tl, name)(tensor(x), dim), places)
        return
    values, indices = getattr(tl, name)(tensor(x), dim)
    assert_equal(indices, places)
    assert_equal(values, np.take_along_axis(x, np.expand_dims(places, dim), dim).squeeze(dim))


@given(arrays(st.sampled_from(["float64", "int64"])), st.data())
def test_a_mean_and_a_variance_are_those_of_the_values_in_order(x, data):
    x = wide(x.whole())
    dims = tuple(data.draw(st.sets(st.integers(0, x.ndim - 1), min_size=1)))
    np.testing.assert_allclose(tensor(x).mean(dims).numpy(), x.mean(dims), rtol=1e-12)
    if np.prod([x.shape[d] for d in dims]) > 1:
        np.testing.assert_allclose(
            tensor(x).var(dims).numpy(), x.var(dims, ddof=1), rtol=1e-9, atol=1e-9)


@given(st.data())
def test_the_gradient_of_a_broadcast_operand_is_a_sum(data):
    shape = data.draw(shapes())
    g = wide(data.draw(arrays(shape=shape, dtypes=NUMBERS)).whole())
    kept = data.draw(st.lists(st.booleans(), min_size=len(shape), max_size=len(shape)))
    small = [n if keep else 1 for n, keep in zip(shape, kept)]
    first = data.draw(st.integers(0, kept.index(True) if True in kept else len(kept)))
    leaf = tl.zeros(small[first:], dtype=tl.float64, requires_grad=True)
    (leaf + tl.zeros(shape)).backward(tensor(g))
    lost = tuple(d for d, keep in enumerate(kept) if not keep)
    np.testing.assert_array_equal(leaf.grad.numpy(), g.sum(lost, keepdims=True).reshape(leaf.shape))


# ---- products ------------------------------------------------------------------------------------

@st.composite
def factors(draw):
    """Two matrices, vectors or stacks in odd layouts that can be multiplied.

    The largest, 6 of 130 x 130 with every other element of each dim, just lie within the pool.
    """
    m, k, n = (draw(st.sampled_from([1, 2, 7, 15, 16, 17, 33, 65, 130])) for _ in range(3))
    stack = draw(st.sampled_from([(), (), (1,), (5,), (2, 3)]))
    left = draw(st.sampled_from([(k,), (m, k), (*stack, m, k)]))
    right = draw(st.sampled_from([(k,), (k, n), (*stack, k, n), (*stack[1:], k, n)]))
    dtype = st.just(draw(st.sampled_from(EXACT)))
    return tuple(draw(arrays(dtype, repeats=draw(st.booleans()), shape=shape))
                 for shape in (left, right))


@given(factors())
def test_products(both):
    x, y = (z.whole() for z in both)
    assert_equal(tl.matmul(tensor(x), tensor(y)), np.asarray(np.matmul(wide(x), wide(y))))


@given(factors())
def test_gradients_of_products(both):
    """<g, x @ dy> is linear in each factor: both gradients give the whole product."""
    x, y = (tensor(wide(z.whole())).requires_grad_() for z in both)
    out = tl.matmul(x, y)
    out.backward(tl.ones_like(out) * 2)
    for leaf in (x, y):
        assert leaf.grad.shape == leaf.shape
        assert (leaf.grad * leaf).sum().item() == 2 * out.sum().item()


# ---- indexing ------------------------------------------------------------------------------------

@st.composite
def keys(draw, shape):
    """Slices and numbers, and at most one mask or array of positions, which do not repeat."""
    parts = []
    for n in draw(st.sampled_from([shape[:1], shape])):
        begin, end = sorted((draw(st.integers(0, n)), draw(st.integers(0, n))))
        parts.append(draw(st.sampled_from(
            [slice(begin, end, draw(st.integers(1, 3))), slice(None), n - 1, -n])))
    if draw(st.booleans()):      # numbers beside it are positions, too, to NumPy and not to PyTorch
        parts = [part if isinstance(part, slice) else slice(None) for part in parts]
        d = draw(st.integers(0, len(parts) - 1))
        parts[d] = Positions(shape[d], draw(st.integers(0, 99)),
                             draw(st.sampled_from(["mask", "order"])))
    return tuple(parts)


@given(shapes().flatmap(lambda shape: st.tuples(arrays(repeats=False, shape=shape), keys(shape))),
       st.sampled_from(["others", "one", "none"]))
def test_reading_and_writing_at_positions(drawn, values):
    x, (_, key) = drawn[0].whole(), drawn
    key = tuple(part.array() if isinstance(part, Positions) else part for part in key)
    of_tensors = tuple(tensor(part) if isinstance(part, np.ndarray) else part for part in key)
    found = np.array(x[key])
    assert_equal(tensor(x)[of_tensors], found)
    values = {"others": found.ravel()[::-1].reshape(found.shape), "none": found * 0,
              "one": np.asarray(1, x.dtype)}[values]
    expected = x.copy()
    expected[key] = values
    tensor(x)[of_tensors] = tensor(values)
    np.testing.assert_array_equal(x, expected)


@given(st.data())
def test_positions_along_a_dim(data):
    x = data.draw(arrays()).whole()
    dim = data.draw(st.integers(0, x.ndim - 1))
    n = x.shape[dim]
    rng = np.random.default_rng(data.draw(st.integers(0, 9)))
    places = rng.integers(0, n, x.shape)
    assert_equal(tl.gather(tensor(x), dim, tensor(places)), np.take_along_axis(x, places, dim))
    row = rng.integers(0, n, data.draw(st.integers(1, 2 * n)))
    assert_equal(tl.index_select(tensor(x), dim, tensor(row)), np.take(x, row, dim))
    sums = np.zeros(x.shape)
    where = list(np.indices(x.shape))
    where[dim] = places
    np.add.at(sums, tuple(where), wide(x))
    into = tl.zeros(x.shape, dtype=tl.float64)
    assert_equal(into.scatter_add(dim, tensor(places), tensor(wide(x))), sums)


# ---- filling, joining, and other orders of the same elements -------------------------------------

@given(st.data())
def test_what_is_written_over_a_layout_stays_inside(data):
    """The gaps of a strided target are not touched."""
    x = data.draw(arrays(repeats=False)).array()
    value = data.draw(st.sampled_from([0, 1]))
    whole = x if x.base is None else x.base
    inside = np.zeros(whole.shape, bool)
    steps = [s // x.itemsize for s in x.strides]
    start = (x.__array_interface__["data"][0] - whole.__array_interface__["data"][0]) // x.itemsize
    flat = sum(np.arange(n).reshape([-1] + [1] * (x.ndim - 1 - d)) * step
               for d, (n, step) in enumerate(zip(x.shape, steps))) + start
    inside.ravel()[np.ravel(flat)] = True
    expected = np.where(inside, np.asarray(value, x.dtype), whole)
    data.draw(st.sampled_from([
        lambda t: t.fill_(value), lambda t: t.copy_(tl.tensor(value)),
        lambda t: t.masked_fill_(tl.ones((), dtype=tl.bool), value),
        lambda t: t.__setitem__(..., value)]))(tensor(x))
    np.testing.assert_array_equal(whole, expected)


@given(st.data())
def test_joins(data):
    shape = data.draw(shapes())
    parts = [data.draw(arrays(shape=shape, dtypes=st.sampled_from(["int16", "float64"]))).whole()
             for _ in range(data.draw(st.integers(1, 3)))]
    dim = data.draw(st.integers(-len(shape), len(shape) - 1))
    assert_equal(tl.cat([tensor(x) for x in parts], dim), np.concatenate(parts, dim))
    assert_equal(tl.stack([tensor(x) for x in parts], dim), np.stack(parts, dim))


@given(arrays(), st.data())
def test_the_same_elements_in_another_shape(x, data):
    x = x.whole()
    order = data.draw(st.permutations(range(x.ndim)))
    shape = data.draw(st.sampled_from([(-1,), x.shape[::-1], (1, -1, 1), (x.shape[0], -1)]))
    moved = x.transpose(order)
    assert_equal(tensor(x).permute(order).reshape(shape), moved.reshape(shape))
    assert_equal(tensor(moved).clone(), moved)
    assert_equal(tensor(moved).flatten().flip(0), moved.ravel()[::-1])
    shift, dim = data.draw(st.integers(-5, 900)), data.draw(st.integers(0, x.ndim - 1))
    assert_equal(tl.roll(tensor(x), shift, dim), np.roll(x, shift, dim))


@each("width", [1, 3, 7, 31, 63, 65])
@each("dtype", ["int8", "float32"])
@each("even", [False, True])
def test_copies_of_short_rows_that_lie_apart(width, dtype, even):
    """Chunks begin inside of rows, whose elements may be as far apart as the rows are."""
    x = np.resize(POOLS[dtype], (100_000 // width, 2 * width))
    x = x[:, ::2] if even else x[:, :width]
    assert_equal(tensor(x).contiguous(), x)
    y = np.zeros((len(x), 3 * width), dtype)
    tensor(y[:, width:2 * width]).copy_(tensor(x))
    np.testing.assert_array_equal(y[:, width:2 * width], x)
    assert not y[:, :width].any() and not y[:, 2 * width:].any()
