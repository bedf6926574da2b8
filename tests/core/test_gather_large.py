"""Elements picked and put along a dim, of tensors so large that several threads take part."""

import numpy as np
import pytest
from cases import each

import tensorlib as tl

SHAPES = [(70, 900), (900, 70), (40_001,), (3, 200, 101), (2, 30_000), (30_000, 2)]


@pytest.fixture(params=[1, 2])
def threads(request):
    before = tl.get_num_threads()
    tl.set_num_threads(request.param)
    yield request.param
    tl.set_num_threads(before)


def case(shape, dim, *, negative=False):
    """A tensor, positions in it of which many are the same, and values for these."""
    rng = np.random.default_rng(sum(shape) + dim)
    x, y = rng.integers(-9, 9, shape).astype("float32"), rng.standard_normal(shape)
    places = rng.integers(-shape[dim] if negative else 0, shape[dim], shape)
    return x, places, y.astype("float32")


def grid(places, dim):
    """The places of all elements, as NumPy indexes them."""
    return tuple(places if d == dim else own for d, own in enumerate(np.indices(places.shape)))


@each("negative", [False, True])
@each("shape", SHAPES, ids=str)
def test_gather_and_scatter_of_large_tensors_equal_numpys(shape, negative, threads):
    for dim in range(len(shape)):
        x, places, y = case(shape, dim, negative=negative)
        tensor, index = tl.from_numpy(x), tl.from_numpy(places)
        at = grid(places, dim)
        if not negative:                    # PyTorch's take none from the end
            np.testing.assert_array_equal(tensor.gather(dim, index).numpy(), x[at])
            added, laid = x.copy(), x.copy()
            np.add.at(added, at, y)         # in the order of the elements, as here
            np.testing.assert_array_equal(
                tensor.scatter_add(dim, index, tl.from_numpy(y)).numpy(), added)
            laid[at] = y                    # the last one stays
            np.testing.assert_array_equal(
                tensor.scatter(dim, index, tl.from_numpy(y)).numpy(), laid)
        np.testing.assert_array_equal(tl.take_along_dim(tensor, index, dim).numpy(), x[at])


@each("shape", SHAPES, ids=str)
@each("transposed", [False, True])
def test_in_any_layout(shape, transposed, threads):
    for dim in range(len(shape)):
        tensors = [tl.from_numpy(np.asfortranarray(x) if transposed else x[..., ::-1])
                   for x in case(shape, dim)]
        x, index, y = tensors
        packed = [t.contiguous() for t in tensors]
        for name, found, wanted in (
                ("gather", x.gather(dim, index), packed[0].gather(dim, packed[1])),
                ("add", x.scatter_add(dim, index, y), packed[0].scatter_add(dim, *packed[1:])),
                ("lay", x.scatter(dim, index, y), packed[0].scatter(dim, *packed[1:]))):
            assert tl.equal(found, wanted), name


@pytest.mark.parametrize("place", [70, -71, 2**62, -2**63])
def test_one_position_that_is_not_there_is_found_wherever_it_is(place, threads):
    x, places, y = case((70, 900), 0)
    for at in ((0, 0), (33, 17), (69, 896), (69, 899)):
        wrong = places.copy()
        wrong[at] = place
        index = tl.from_numpy(wrong)
        for call in (lambda: tl.from_numpy(x).gather(0, index),
                     lambda: tl.from_numpy(x.T).gather(1, index.mT),
                     lambda: tl.from_numpy(x).scatter_add(0, index, tl.from_numpy(y)),
                     lambda: tl.from_numpy(x.T).scatter_add(1, index.mT, tl.from_numpy(y.T)),
                     lambda: tl.from_numpy(x).scatter(0, index, tl.from_numpy(y))):
            with pytest.raises((IndexError, RuntimeError), match="out of bounds"):
                call()
