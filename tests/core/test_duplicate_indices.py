"""What comes together at positions along a dim, by a whole index or an expanded one."""

import numpy as np
import pytest
from cases import each
import tensorlib as tl

HOW = {"amax": np.maximum, "amin": np.minimum, "prod": np.multiply, "sum": np.add}
INDEX = np.random.default_rng(0).integers(-7, 7, 3000)


@pytest.fixture(params=[1, 2])
def threads(request):
    before = tl.get_num_threads()
    tl.set_num_threads(request.param)
    yield
    tl.set_num_threads(before)


@each("dtype", ["uint8", "int16", "uint32", "int64", "uint64", "float16",
                "float32", "float64"])
@each("reduce", HOW)
def test_slices_that_meet_are_combined_one_after_the_other(dtype, reduce, threads):
    rng = np.random.default_rng(1)
    x, src = (rng.choice([1, 2, 200], shape, p=[0.998, 0.001, 0.001]).astype(dtype)
              for shape in ((7, 12), (3000, 12)))
    wanted = x.astype("float32" if dtype == "float16" else dtype)
    with np.errstate(over="ignore"):
        HOW[reduce].at(wanted, INDEX, src)
        wanted = wanted.astype(dtype)
    index = tl.from_numpy(INDEX).unsqueeze(1).expand(3000, 12)
    for places in (index, index.contiguous(), index.t().contiguous().t()):
        found = tl.from_numpy(x).scatter_reduce(0, places, tl.from_numpy(src), reduce)
        assert found.dtype.name == dtype
        np.testing.assert_array_equal(found.numpy(), wanted)


@pytest.mark.parametrize("reduce, others", [("amax", [np.inf, 3.0]), ("amin", [-np.inf, 3.0])])
def test_nan_is_the_extreme_of_what_meets(reduce, others):
    src = tl.tensor([others[0], float("nan"), others[1], 5.0])
    found = tl.zeros(2).scatter_reduce(0, tl.tensor([0, 0, 0, 1]), src, reduce)
    assert np.isnan(found[0].item()) and found[1].item() == (5.0 if reduce == "amax" else 0.0)


def test_slices_are_picked_at_positions_of_an_expanded_index(threads):
    x = tl.arange(7.0).unsqueeze(1) * tl.ones(12)
    index = tl.from_numpy(INDEX).unsqueeze(1).expand(3000, 12)
    assert (x.gather(0, index) == x[INDEX]).all()
    with pytest.raises(IndexError, match="index 7 is out of bounds"):
        x.gather(0, (index + 1)[:, :1].expand(3000, 12))


ADDS = {
    "index_put": lambda x, index, values: x.index_put((index,), values, accumulate=True),
    "index_put_": lambda x, index, values: x.index_put_((index,), values, accumulate=True),
    "put": lambda x, index, values: x.put(index, values, accumulate=True),
    "put_": lambda x, index, values: x.put_(index, values, accumulate=True),
}


@each("dtype", ["float16", "float32", "float64"])
@each("add", ADDS.values())
def test_values_that_meet_are_added_one_after_the_other_recorded_or_captured_too(add, dtype):
    rng = np.random.default_rng(2)
    x, index, values = rng.normal(size=7), tl.from_numpy(INDEX), rng.normal(size=len(INDEX))
    x, values = (tl.from_numpy(a.astype(dtype)) for a in (x, values))
    wide = np.promote_types(dtype, "float32")
    wanted = x.numpy().astype(wide)
    np.add.at(wanted, INDEX, values.numpy().astype(wide))
    captured = tl.compile(lambda *args: add(args[0] * 1, *args[1:]))
    for found in (add(x.clone(), index, values), captured(x, index, values),
                  captured(x, index, values),
                  add(x.clone().requires_grad_() * 1, index, values).detach()):
        np.testing.assert_array_equal(found.numpy(), wanted.astype(dtype))


SLICES = {
    "index_add": lambda x, dim, index, values: x.index_add(dim, index, values),
    "index_add_": lambda x, dim, index, values: x.index_add_(dim, index, values),
    "scatter_add": lambda x, dim, index, values: x.scatter_add(
        dim, index.reshape([-1 if d == dim else 1 for d in range(x.ndim)]).expand(values.shape),
        values),
    "index_put_": lambda x, dim, index, values: x.index_put_(
        (*[slice(None)] * dim, index), values, accumulate=True) if dim == 0 else (
            x.transpose(0, dim).index_put_((index,), values.transpose(0, dim), accumulate=True), x),
}


@each("dtype", ["float16", "bfloat16"])
@each("shape", [(7,), (7, 3), (3, 7), (2, 7, 40), (7, 5000)])
@each("add", SLICES)
def test_sums_of_slices_of_half_types_are_rounded_once(add, shape, dtype, threads):
    rng, dim = np.random.default_rng(3), shape.index(7)
    half = getattr(tl, dtype)
    for places in ([2], [-1, 0, -1, 6], rng.integers(-7, 7, 30).tolist(), []):
        sizes = [len(places) if d == dim else n for d, n in enumerate(shape)]
        x, values = (tl.tensor(rng.normal(size=n), dtype=half) for n in (shape, sizes))
        wanted = x.float().numpy().copy()
        np.add.at(wanted, (slice(None),) * dim + (np.array(places, np.int64),),
                  values.float().numpy())
        wanted = tl.from_numpy(wanted).to(half)
        index = tl.tensor(places, dtype=tl.int64)
        for lay in (lambda x: x, lambda x: x.mT.contiguous().mT if x.ndim > 1 else x[::-1].flip(0),
                    lambda x: tl.stack([x, x], -1)[..., 0]):
            found = SLICES[add](lay(x.clone()), dim, index, lay(values))
            found = found[1] if type(found) is tuple else found
            assert tl.equal(found, wanted) and found.dtype is half


def test_slices_of_half_types_that_are_added_to_themselves_count_as_they_were():
    x = tl.arange(1000).reshape(10, 100).remainder(17).to(tl.bfloat16)
    want = x + x.flip(0)
    assert tl.equal(x.index_add_(0, tl.arange(10).flip(0), x), want)
    assert tl.tensor(1.0, dtype=tl.half).index_add(0, tl.tensor([0, 0]), tl.ones(2).half()) == 3
    with pytest.raises(IndexError, match="index_add_: index 10 is out of bounds"):
        x.index_add_(0, tl.tensor([0, 10]), x[:2])
    assert tl.equal(x, want)


@each("dtype", ["float32", "float64", "bfloat16", "int64", "complex64"])
def test_slices_times_alpha_are_added(dtype):
    x = tl.arange(12).reshape(4, 3).to(getattr(tl, dtype))
    want = x + 0
    want[1] += 2 * (x[0] + x[1])
    index = tl.tensor([1, 1])
    assert tl.equal(x.index_add(0, index, x[:2], alpha=2), want)
    assert tl.equal(x.clone().index_add_(0, index, x[:2], alpha=2), want)


@each("shape, dim", [((40,), 0), ((40, 3), 0), ((3, 40), 1)])
def test_of_values_put_at_one_place_the_last_has_the_gradient(shape, dim):
    rng = np.random.default_rng(3)
    index = rng.integers(-40, 40, shape)
    x, g = (tl.from_numpy(rng.standard_normal(shape)) for _ in range(2))
    src = x.clone().requires_grad_()
    for places in (tl.from_numpy(index), tl.from_numpy(index.T.copy()).t()):
        found, = tl.autograd.grad(x.scatter(dim, places, src), src, g)
        order = np.arange(index.size).reshape(shape)
        last = np.zeros(shape, int)
        rows, at = np.moveaxis(last, dim, -1), np.moveaxis(index, dim, -1)
        np.put_along_axis(rows, at, np.moveaxis(order, dim, -1), -1)
        wins = np.take_along_axis(last, index, dim) == order
        np.testing.assert_array_equal(found.numpy(), np.where(
            wins, np.take_along_axis(g.numpy(), index, dim), 0))
    whole = tl.compile(lambda src: x.scatter(dim, places, src))(src)
    assert (tl.autograd.grad(whole, src, g)[0] == found).all()
