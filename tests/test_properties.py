"""Laws that hold for any shapes, values, dtypes and layouts."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tensorlib as tl
from tensorlib.testing import assert_close, broadcastable_shapes, dtypes, shapes, tensors, tolerance

ALL = dtypes()
REAL = dtypes(("floating", "integer"))
LAID_OUT_F64 = tensors(dtype=tl.float64)
WRITABLE = ("contiguous", "transposed", "strided", "reversed")

UNARY = {
    "neg": np.negative, "abs": np.abs, "square": np.square, "exp": np.exp, "sin": np.sin,
    "tanh": np.tanh, "floor": np.floor, "atan": np.arctan, "expm1": np.expm1, "sign": np.sign,
}
BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "maximum": np.maximum,
    "minimum": np.minimum, "atan2": np.arctan2, "lt": np.less, "eq": np.equal,
}
IN_PLACE = ["add", "sub", "mul", "div"]
# Linear and differentiable everywhere, so that any incoming gradient is as good as another.
DIFFERENTIABLE = {
    "tanh": lambda x: x.tanh(), "square": lambda x: x * x, "sum": lambda x: x.sum(0, keepdim=True),
    "exp": lambda x: (x / 100).exp(), "reversed": lambda x: x.flatten()[::2] * 3,
}


def pairs(dtype=tl.float64):
    """Two Tensors of any layouts whose shapes broadcast."""
    return broadcastable_shapes(2).flatmap(
        lambda both: st.tuples(*(tensors(dtype=dtype, shape=shape) for shape in both))
    )


def assert_exact(actual, expected):
    """An array made from a list has lost the Tensor's dtype: only two Tensors must share it."""
    check_dtype = isinstance(expected, tl.Tensor)
    assert_close(actual, expected, rtol=0.0, atol=0.0, equal_nan=True, check_dtype=check_dtype)


class TestElementwise:
    @given(name=st.sampled_from(sorted(UNARY)), x=LAID_OUT_F64)
    def test_unary_equals_numpy_in_every_layout(self, name, x):
        with np.errstate(all="ignore"):
            expected = UNARY[name](x.numpy())
        assert_close(getattr(tl, name)(x), expected, **tolerance("float64"))

    @given(name=st.sampled_from(sorted(BINARY)), both=pairs())
    def test_binary_equals_numpy_in_every_layout(self, name, both):
        a, b = both
        expected = BINARY[name](a.numpy(), b.numpy())
        assert_close(getattr(tl, name)(a, b), expected, **tolerance("float64"))

    @given(name=st.sampled_from(sorted(UNARY)), x=tensors(dtype=dtypes("floating")))
    def test_a_result_has_the_bits_of_the_contiguous_one(self, name, x):
        assert_exact(getattr(tl, name)(x), getattr(tl, name)(x.clone().contiguous()))

    @given(both=pairs())
    def test_broadcasting_is_expanding(self, both):
        a, b = both
        shape = np.broadcast_shapes(tuple(a.shape), tuple(b.shape))
        result = a + b
        assert tuple(result.shape) == shape
        assert_exact(result, a.expand(shape) + b.expand(shape))
        assert_exact(result, a.expand(shape).contiguous() + b.expand(shape).contiguous())

    @given(both=pairs(dtype=REAL))
    def test_sums_and_products_commute(self, both):
        a, b = both
        assert_exact(a + b, b + a)
        assert_exact(a * b, b * a)
        assert_exact(tl.maximum(a, b), tl.maximum(b, a))

    @given(both=pairs(dtype=REAL))
    def test_comparisons_complement_each_other(self, both):
        a, b = both
        assert_exact(a < b, b > a)
        assert_exact(a <= b, ~(a > b))
        assert_exact(a == b, (a <= b) & (a >= b))

    @given(name=st.sampled_from(IN_PLACE), both=pairs(), data=st.data())
    def test_in_place_equals_out_of_place(self, name, both, data):
        _, b = both
        a = data.draw(tensors(
            dtype=tl.float64, layouts=WRITABLE,
            shape=np.broadcast_shapes(tuple(both[0].shape), tuple(b.shape)),
        ))
        expected = getattr(tl, name)(a, b)
        result = getattr(a, f"{name}_")(b)
        assert result is a
        assert_exact(a, expected)

    @given(name=st.sampled_from(["neg", "abs", "exp", "tanh", "floor"]), data=st.data())
    def test_unary_in_place_equals_out_of_place(self, name, data):
        x = data.draw(tensors(layouts=WRITABLE))
        expected = getattr(tl, name)(x)
        assert getattr(x, f"{name}_")() is x
        assert_exact(x, expected)

    @given(name=st.sampled_from(["add", "mul"]), both=pairs(), data=st.data())
    def test_out_receives_the_result(self, name, both, data):
        a, b = both
        expected = getattr(tl, name)(a, b)
        out = data.draw(tensors(dtype=tl.float64, shape=expected.shape, layouts=WRITABLE))
        assert getattr(tl, name)(a, b, out=out) is out
        assert_exact(out, expected)

    @given(x=tensors(dtype=tl.float64, shape=shapes(min_dims=1), layouts=WRITABLE))
    def test_an_operand_that_overlaps_the_output_is_read_first_or_refused(self, x):
        assume(x.shape[0] > 1)
        expected = x.numpy().copy()
        expected[1:] = expected[1:] + expected[:-1].copy()
        try:
            x[1:].add_(x[:-1])
        except RuntimeError as refusal:
            assert "overlap" in str(refusal) or "single memory location" in str(refusal)
        else:
            assert_exact(x, expected)

    @given(x=tensors(dtype=ALL))
    def test_inputs_are_left_as_they_were(self, x):
        before = x.tolist()
        for result in (x + x, x.sum(), x == x, x.clone(), x.float().exp(), x.reshape(-1)):
            assert result is not x
        assert x.tolist() == before


class TestViews:
    @given(x=tensors(dtype=ALL, shape=shapes(min_dims=1)), data=st.data())
    def test_views_equal_copies(self, x, data):
        array = np.array(x.tolist()).reshape(tuple(x.shape))
        order = data.draw(st.permutations(range(x.ndim)))
        assert_exact(x.permute(order).contiguous(), array.transpose(order))
        assert_exact(x.reshape(-1), array.reshape(-1))
        assert_exact(x.transpose(0, -1), array.swapaxes(0, -1))
        assert_exact(x.unsqueeze(1), np.expand_dims(array, 1))
        assert_exact(x.squeeze(), array.squeeze())

    @given(x=tensors(dtype=tl.float64, shape=shapes(min_dims=1, min_side=1), layouts=WRITABLE))
    def test_writing_to_a_view_writes_to_its_base(self, x):
        expected = x.clone()
        view = x.unsqueeze(0).transpose(0, -1)[..., :1]
        values = view.clone() + 1
        view += 1
        assert_exact(view, values)
        expected.unsqueeze(0).transpose(0, -1)[..., :1].copy_(values)
        assert_exact(x, expected)

    @given(x=tensors(dtype=ALL, shape=shapes(min_dims=1, min_side=1)), data=st.data())
    def test_parts_join_to_the_whole(self, x, data):
        dim = data.draw(st.integers(-x.ndim, x.ndim - 1))
        size = data.draw(st.integers(1, x.shape[dim]))
        assert_exact(tl.cat(x.split(size, dim), dim), x)
        assert_exact(tl.cat(x.chunk(size, dim), dim), x)
        assert_exact(tl.stack(list(x)), x)

    @given(x=tensors(dtype=ALL), target=ALL)
    def test_a_cast_and_a_copy_do_not_share_memory(self, x, target):
        y = x.clone()
        assert y.dtype == x.dtype and tuple(y.shape) == tuple(x.shape)
        assert_exact(y, x)
        assert x.to(x.dtype) is x
        assert x.to(target).dtype == target


class TestReductions:
    @given(x=tensors(dtype=tl.float64), data=st.data())
    def test_a_sum_over_dims_is_a_sum_of_sums(self, x, data):
        dims = sorted(data.draw(st.sets(st.integers(0, x.ndim - 1)))) if x.ndim else []
        assume(dims)
        by_turns = x
        for dim in reversed(dims):
            by_turns = by_turns.sum(dim)
        near = tolerance("float64", "reduction")
        assert_close(x.sum(dims), by_turns, **near)
        assert_close(x.sum(), x.numpy().sum(), **near)
        kept = x.numpy().sum(axis=tuple(dims), keepdims=True)
        assert_close(x.sum(dims, keepdim=True), kept, **near)

    @given(x=tensors(dtype=dtypes("integer")))
    def test_integer_sums_are_exact(self, x):
        assert_exact(x.sum(), x.numpy().sum(dtype=np.int64))
        assert x.sum().dtype == tl.int64

    @given(x=tensors(dtype=REAL, shape=shapes(min_dims=1, min_side=1)), data=st.data())
    def test_an_extreme_is_where_its_index_says(self, x, data):
        dim = data.draw(st.integers(0, x.ndim - 1))
        values, positions = x.max(dim)
        columns = x.transpose(dim, -1).reshape(-1, x.shape[dim])
        chosen = positions.unsqueeze(dim).transpose(dim, -1).reshape(-1)
        assert_exact(columns[tl.arange(columns.shape[0]), chosen], values.unsqueeze(dim)
                     .transpose(dim, -1).reshape(-1))
        assert_exact(values, x.amax(dim))
        assert bool((x <= values.unsqueeze(dim)).all())
        assert_exact(x.min(dim).values, -((-x.double()).amax(dim)).to(x.dtype))

    @given(x=tensors(dtype=tl.float64, shape=shapes(min_dims=1, min_side=1)))
    def test_softmax_sums_to_one_and_ignores_a_shift(self, x):
        y = x.softmax(-1)
        assert_close(y.sum(-1), tl.ones(y.shape[:-1], dtype=tl.float64))
        assert_close((x + 1000).softmax(-1), y, rtol=1e-9, atol=1e-12)
        assert_close(x.log_softmax(-1).exp(), y)
        assert_close(x.log_softmax(-1), x - x.logsumexp(-1, keepdim=True))

    @given(x=tensors(dtype=tl.bool))
    def test_any_and_all_are_duals(self, x):
        assert_exact(x.any(), ~(~x).all())
        assert_exact(x.any(), (x.sum() > 0))


class TestProducts:
    @given(
        sides=st.lists(st.integers(0, 6), min_size=4, max_size=4), data=st.data(),
        dtype=dtypes("floating"),
    )
    def test_products_associate(self, sides, data, dtype):
        assume(dtype in (tl.float32, tl.float64))
        a, b, c = (
            data.draw(tensors(dtype=dtype, shape=shape, elements=st.integers(-8, 8)))
            for shape in zip(sides, sides[1:])
        )
        assert_exact((a @ b) @ c, a @ (b @ c))  # small integers: every step is exact
        assert_exact((a @ b).t(), b.t() @ a.t())

    @given(data=st.data(), batch=broadcastable_shapes(2, max_dims=2, max_side=3))
    def test_batched_products_equal_numpy(self, data, batch):
        m, k, n = (data.draw(st.integers(0, 4)) for _ in range(3))
        a = data.draw(tensors(dtype=tl.float64, shape=(*batch[0], m, k)))
        b = data.draw(tensors(dtype=tl.float64, shape=(*batch[1], k, n)))
        assert_close(a @ b, a.numpy() @ b.numpy(), rtol=1e-9, atol=1e-8)

    @given(
        x=tensors(dtype=tl.float64, shape=shapes(1, 1)),
        y=tensors(dtype=tl.float64, shape=shapes(1, 1)),
    )
    def test_an_outer_product_is_a_broadcast_one(self, x, y):
        assert_exact(tl.outer(x, y), x.unsqueeze(1) * y)


class TestGradients:
    @given(
        name=st.sampled_from(sorted(DIFFERENTIABLE)),
        x=tensors(dtype=tl.float64, shape=shapes(min_dims=1), requires_grad=True),
        factors=st.tuples(st.integers(-5, 5), st.integers(-5, 5)),
        seed=st.integers(0, 100),
    )
    def test_the_gradient_is_linear_in_what_comes_in(self, name, x, factors, seed):
        y = DIFFERENTIABLE[name](x)
        rng = np.random.default_rng(seed)
        first, second = (tl.tensor(rng.normal(size=tuple(y.shape))) for _ in range(2))
        alpha, beta = factors

        def gradient(g):
            return tl.autograd.grad(y, x, g, retain_graph=True)[0]

        assert_close(
            gradient(alpha * first + beta * second),
            alpha * gradient(first) + beta * gradient(second),
            rtol=1e-9, atol=1e-7,
        )

    @given(both=broadcastable_shapes(2).flatmap(lambda both: st.tuples(*(
        tensors(dtype=tl.float64, shape=shape, requires_grad=True) for shape in both))))
    def test_the_gradient_of_a_broadcast_product_is_the_other_operand(self, both):
        a, b = both
        (a * b).sum().backward()
        for x, other in ((a, b), (b, a)):
            full = np.broadcast_shapes(tuple(a.shape), tuple(b.shape))
            array = np.broadcast_to(other.detach().numpy(), full)
            lead = len(full) - x.ndim
            widened = tuple(
                dim for dim in range(len(full))
                if dim < lead or (x.shape[dim - lead] == 1 and full[dim] != 1)
            )
            expected = array.sum(axis=widened, keepdims=True).reshape(tuple(x.shape))
            assert_close(x.grad, expected, rtol=1e-9, atol=1e-9)

    @given(x=tensors(dtype=tl.float64, shape=shapes(min_dims=1), requires_grad=True))
    def test_the_gradient_in_a_layout_is_that_of_its_copy(self, x):
        copied = x.detach().clone().requires_grad_()
        for leaf in (x, copied):
            (leaf.tanh() * leaf).sum().backward()
        assert_exact(x.grad, copied.grad)


class TestRoundTrips:
    @given(x=tensors(dtype=ALL))
    def test_copies_and_pickles_equal_the_original(self, x):
        for twin in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
            assert twin.dtype == x.dtype and tuple(twin.shape) == tuple(x.shape)
            assert_exact(twin, x)

    @given(x=tensors(dtype=ALL))
    def test_lists(self, x):
        back = tl.tensor(x.tolist(), dtype=x.dtype).reshape(x.shape)
        assert_exact(back, x)

    @given(x=tensors(dtype=dtypes(("bool", "integer"))))
    def test_numpy(self, x):
        assert_exact(tl.from_numpy(x.numpy().copy()), x)
        assert_exact(tl.tensor(np.asarray(x)), x)

    @given(x=tensors(dtype=dtypes("floating")))
    def test_a_wider_dtype_and_back(self, x):
        assert_exact(x.to(tl.float64).to(x.dtype), x)


SIDES = (3, 4, 2)


def indices():
    """NumPy's basic and advanced index expressions for an array of shape SIDES."""
    basic = hnp.basic_indices(SIDES, allow_newaxis=True, allow_ellipsis=True)
    arrays = hnp.integer_array_indices(SIDES, result_shape=hnp.array_shapes(max_dims=2, max_side=3))
    masks = st.integers(1, 3).flatmap(lambda n: hnp.arrays(np.bool_, SIDES[:n]))
    one_array = st.tuples(
        st.integers(0, 2),
        hnp.arrays(np.int64, hnp.array_shapes(max_dims=2, max_side=3), elements=st.integers(-2, 1)),
        st.slices(3),
    ).map(lambda parts: (slice(None),) * parts[0] + (parts[1],))
    return st.one_of(basic, arrays, masks, one_array)


def as_tensors(index):
    """The same index with Tensors for its arrays."""
    if isinstance(index, tuple):
        return tuple(as_tensors(part) for part in index)
    return tl.tensor(index) if isinstance(index, np.ndarray) else index


class TestIndexing:
    @given(index=indices(), x=tensors(dtype=ALL, shape=SIDES))
    def test_reading_agrees_with_numpy(self, index, x):
        array = np.array(x.tolist())
        assert_exact(x[as_tensors(index)], array[index])

    @given(index=indices(), x=tensors(dtype=tl.float64, shape=SIDES, layouts=WRITABLE))
    def test_writing_a_number_agrees_with_numpy(self, index, x):
        array = x.numpy().copy()
        array[index] = 7.5
        x[as_tensors(index)] = 7.5
        assert_exact(x, array)

    @given(index=indices(), x=tensors(dtype=tl.float64, shape=SIDES, layouts=WRITABLE))
    def test_writing_a_tensor_agrees_with_numpy(self, index, x):
        array = x.numpy().copy()
        values = array[index] * 2 + 1
        array[index] = values
        x[as_tensors(index)] = tl.tensor(values)
        assert_exact(x, array)

    @given(index=indices(), x=tensors(dtype=tl.float64, shape=SIDES, requires_grad=True))
    def test_the_gradient_of_reading_counts_the_reads(self, index, x):
        x[as_tensors(index)].sum().backward()
        expected = np.zeros(SIDES)
        np.add.at(expected, index, 1.0)
        assert_exact(x.grad, expected)

    @given(index=hnp.basic_indices(SIDES, allow_newaxis=True))
    def test_basic_indexing_is_a_view(self, index):
        x = tl.zeros(SIDES)
        part = x[index]
        part.fill_(1.0)
        assert x.sum().item() == part.numel()

    @pytest.mark.parametrize("step", [-1, -2, -3])
    def test_a_negative_step_is_a_view(self, step):
        x = tl.arange(6.0)
        y = x[::step]
        assert_exact(y, np.arange(6.0, dtype=np.float32)[::step])
        y[0] = 100.0
        assert x[-1].item() == 100.0
