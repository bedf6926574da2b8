"""Values put and added at positions along a dim, against NumPy, with gradients."""

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib.testing import assert_close, gradcheck, gradgradcheck

PLACES = tl.tensor([3, 0, 2])
ROWS = tl.tensor([[0, 2, 1], [2, 1, 0]])           # of each column another one


def key_of(dim, places):
    """NumPy's key for positions along a dim."""
    return (slice(None),) * dim + (places.numpy(),)


def grid_of(places):
    """NumPy's key for the rows of each column."""
    return places.numpy(), np.arange(places.shape[1])


def copied(x, dim, places, source):
    x = x.copy()
    x[key_of(dim, places)] = source
    return x


def added(x, dim, places, source, alpha=1):
    x = x.copy()
    np.add.at(x, key_of(dim, places), alpha * np.asarray(source))
    return x


def put(x, dim, places, source):
    x = x.copy()
    x[grid_of(places)] = source if np.ndim(source) == 0 else source[:2, :3]
    return x


def summed(x, dim, places, source):
    x = x.copy()
    np.add.at(x, grid_of(places), source[:2, :3])
    return x


def values(*shape):
    return tl.tensor(np.random.default_rng(sum(shape)).uniform(-1, 1, shape), requires_grad=True)


CASES = {
    "index_copy": [(copied, 0, PLACES, (3, 5)), (copied, 1, PLACES, (4, 3))],
    "index_add": [(added, 0, PLACES, (3, 5)), (added, 1, tl.tensor([1, 1, 1]), (4, 3)),
                  (added, 0, tl.tensor([-1]), (1, 5))],
    "index_fill": [(copied, 0, PLACES, ()), (copied, 1, PLACES, ())],
    "scatter": [(put, 0, ROWS, (2, 3)), (put, 0, ROWS, (4, 5))],
    "scatter_add": [(summed, 0, ROWS, (2, 3)), (summed, 0, ROWS % 2, (4, 5))],
}
ALL = [(name, *case) for name, cases in CASES.items() for case in cases]


@pytest.mark.parametrize("name, reference, dim, places, shape", ALL)
class TestValuesPutAtPositions:
    def test_they_are_numpys(self, name, reference, dim, places, shape):
        x, source = values(4, 5), values(*shape)
        expected = reference(x.detach().numpy(), dim, places, source.detach().numpy())
        assert_close(getattr(tl, name)(x, dim, places, source), expected)
        assert_close(getattr(x, name)(dim - 2, places, source), expected)

    def test_gradients(self, name, reference, dim, places, shape):
        def function(x, source):
            return getattr(tl, name)(x, dim, places, source)
        assert gradcheck(function, (values(4, 5), values(*shape)))
        assert gradgradcheck(function, (values(4, 5), values(*shape)))

    def test_in_place(self, name, reference, dim, places, shape):
        x, source = values(4, 5), values(*shape)
        plain = getattr(tl, name)(x, dim, places, source)
        written = x * 1
        assert getattr(written, name + "_")(dim, places, source) is written
        assert_close(written, plain)
        weights = values(20).reshape(4, 5).detach()
        for a, b in zip(tl.autograd.grad((written * weights).sum(), (x, source)),
                        tl.autograd.grad((plain * weights).sum(), (x, source))):
            assert_close(a, b)
        with pytest.raises(RuntimeError, match=f"{name}_: a leaf Variable"):
            getattr(x, name + "_")(dim, places, source)


def test_alpha_scales_what_is_added():
    x = tl.ones(4)
    assert x.index_add(0, tl.tensor([1, 1]), tl.ones(2), alpha=3).tolist() == [1, 7, 1, 1]


def test_numbers():
    assert tl.zeros(3).index_fill(0, tl.tensor([1]), 2).tolist() == [0, 2, 0]
    assert tl.zeros(3).scatter(0, tl.tensor([2, 0]), 2).tolist() == [2, 0, 2]
    assert tl.zeros(3, dtype=tl.int64).scatter_(0, tl.tensor([2]), 5).tolist() == [0, 0, 5]


def test_a_tensor_without_dims():
    x, zero = tl.tensor(1.0), tl.tensor([0])
    assert x.index_fill(0, zero, 2.0).tolist() == 2.0
    assert x.index_copy(0, zero, tl.tensor(3.0)).tolist() == 3.0
    assert x.index_add(0, zero, tl.tensor([3.0])).tolist() == 4.0
    assert tl.zeros(2).index_copy(0, zero, x).tolist() == [1.0, 0.0]
    assert tl.zeros(2).index_copy_(0, tl.tensor(1), x).tolist() == [0.0, 1.0]
    assert x.scatter(0, zero, tl.tensor([5.0])).tolist() == 5.0
    assert x.scatter_add(-1, tl.tensor(0), tl.tensor(5.0)).tolist() == 6.0


def test_masked_fill_in_place_cuts_the_gradient_where_it_writes():
    x, mask = values(2, 3), tl.tensor([True, False, True])
    y = x * 2
    assert y.masked_fill_(mask, -1.0) is y
    assert_close(y[:, 0], tl.full((2,), -1.0, dtype=tl.float64))
    y.sum().backward()
    assert x.grad.tolist() == [[0, 2, 0]] * 2


BAD = [
    (lambda x: x.index_copy(0, PLACES, tl.ones(2, 5)), RuntimeError, "index_copy: source .*shape"),
    (lambda x: x.index_add(0, PLACES, tl.ones(3, 5, dtype=tl.int64)), RuntimeError, "same dtype"),
    (lambda x: x.index_fill(0, PLACES, tl.ones(2)), RuntimeError, "index_fill: value .*0-d"),
    (lambda x: x.index_fill(2, PLACES, 1.0), IndexError, "index_fill: Dimension out of range"),
    (lambda x: x.index_copy(0, ROWS, tl.ones(2, 5)), IndexError, "index_copy: index .*vector"),
    (lambda x: x.index_fill(0, tl.tensor([4]), 1.0), IndexError, "4 is out of bounds"),
    (lambda x: x.index_fill(0, [1], 1.0), TypeError, "index_fill: index must be a Tensor"),
    (lambda x: x.index_fill_(0, [1], 1.0), TypeError, "index_fill_: index must be a Tensor"),
    (lambda x: x.scatter(0, ROWS, tl.ones(1, 3)), RuntimeError, "scatter: size of index"),
    (lambda x: x.scatter(0, PLACES, 1.0), RuntimeError, "scatter: index .*dimensions"),
    (lambda x: x.scatter_add(0, ROWS, tl.ones(2, 3).int()), RuntimeError, "scatter_add: .*dtype"),
    (lambda x: x[0].masked_fill_(tl.ones(2, 5).bool(), 1.0), RuntimeError,
     "masked_fill_: output with shape"),
]


@each("call, error, message", BAD)
def test_bad_arguments(call, error, message):
    x = tl.zeros(4, 5)
    with pytest.raises(error, match=message):
        call(x)
    assert not x.any()


HALVES = [tl.float16, tl.bfloat16]


@each("dtype", [*HALVES, tl.float32, tl.float64, tl.int64, tl.complex64])
@each("count", [3, 40])
def test_slices_times_alpha_are_added_in_place_as_in_a_copy(dtype, count):
    tl.manual_seed(0)
    x, source = tl.randn(30, 4).mul(9).to(dtype), tl.randn(count, 4).mul(9).to(dtype)
    index = tl.randint(-30, 30, (count,))
    for alpha in (-3, 0):
        y = x.clone()
        assert y.index_add_(0, index, source, alpha=alpha) is y
        assert tl.equal(y, x.index_add(0, index, source, alpha=alpha))
    with pytest.raises(IndexError, match="index_add"):
        y.index_add_(0, index.fill_(30), source, alpha=3)


@each("dtype", HALVES)
def test_few_elements_of_halves_are_added_in_place_as_in_a_copy(dtype):
    tl.manual_seed(0)
    for shape, sizes, dim in (((40, 30), (3, 30), 0), ((30, 40), (7, 5), 1), ((600,), (9,), 0),
                              ((9, 8, 10), (9, 2, 1), 1)):
        x, src = tl.randn(shape).to(dtype), tl.randn(sizes).to(dtype)
        index = tl.randint(-x.shape[dim], x.shape[dim], sizes)
        y = x.clone()
        assert y.scatter_add_(dim, index, src) is y
        assert tl.equal(y, x.scatter_add(dim, index, src))
        with pytest.raises(IndexError, match="scatter_add"):
            y.scatter_add_(dim, index.fill_(x.shape[dim]), src)


@each("dtype", [tl.float32, *HALVES])
def test_an_index_of_one_column_adds_to_that_column(dtype):
    x, src = tl.zeros(5, 3).to(dtype), tl.ones(4, 3).to(dtype)
    index = tl.tensor([[0], [2], [2], [4]])
    wanted = [[1.0, 0, 0], [0] * 3, [2, 0, 0], [0] * 3, [1, 0, 0]]
    assert x.scatter_add(0, index, src).tolist() == wanted
    assert x.scatter_add_(0, index, src).tolist() == wanted


@each("shape", [(0,), (2, 0), (5, 0), (0, 3, 1)])
@each("dtype", [tl.int64, tl.int32, tl.float32])
def test_an_empty_index_may_have_any_shape(shape, dtype):
    x, index = tl.arange(6.0).reshape(2, 3).requires_grad_(), tl.empty(shape, dtype=dtype)
    found = x.gather(1, index)
    assert found.shape == shape
    found.sum().backward()
    assert x.grad.tolist() == [[0] * 3] * 2
    if dtype is tl.int64:
        for written in (x.scatter(1, index, 1.0), x.scatter(1, index, tl.ones(2, 3)),
                        x.scatter_add(1, index, tl.ones(2, 3)),
                        x.scatter_reduce(1, index, tl.ones(2, 3), "sum")):
            assert written.equal(x)


@each("include_self", [True, False])
@each("reduce", ["sum", "prod", "mean"])
def test_complex_numbers_that_meet(reduce, include_self):
    x, source = tl.tensor([1 + 2j, 0j, 2j]), tl.tensor([1j, 2, 0, 3 + 1j, 1 - 1j])
    x, source = (y.to(tl.complex128).requires_grad_() for y in (x, source))
    places = tl.tensor([0, 1, 1, 1, 0])
    meeting = [[x[i], *(source[k] for k in range(5) if places[k] == i)][not include_self and i < 2:]
               for i in range(3)]
    means = {"sum": tl.sum, "prod": tl.prod, "mean": tl.mean}
    want = tl.stack([means[reduce](tl.stack(parts)) for parts in meeting])

    def f(x, source):
        return x.scatter_reduce(0, places, source, reduce, include_self=include_self)
    assert_close(f(x, source), want)
    assert_close(x.detach().scatter_reduce_(0, places, source.detach(), reduce,
                                            include_self=include_self), want)
    assert gradcheck(f, (x, source)) and gradgradcheck(f, (x, source))


def test_complex_numbers_have_no_extremes():
    x = tl.ones(2, dtype=tl.complex64)
    with pytest.raises(tl.UnsupportedDtype, match="scatter_reduce: not implemented for"):
        x.scatter_reduce(0, tl.tensor([0, 1]), x, "amax")
