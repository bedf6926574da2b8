"""The stride of a dim of one element, and those of an empty tensor, say nothing: no kernel goes by
them, in an eager call, a replay or a gradient. Here they lead far out of all memory."""

import warnings

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib.ops import registry
from tensorlib.testing.catalogue import call, in_numpy, numpy_dtypes, outputs, samples
from tensorlib.testing.checks import laid_out
from tests.ops.catalogue import for_each

FAR = 2**40
REFUSALS = (RuntimeError, IndexError, ValueError, TypeError, AssertionError)
OPERATIONS = [op for op in registry.values()
              if op.testing.get("samples") and op.testing.get("reference") and not op.random]


def far(x):
    """The same tensor with strides that say nothing."""
    steps = [FAR if size == 1 or not x.numel() else step for size, step in zip(x.shape, x.stride())]
    return x.as_strided(x.shape, steps, x.storage_offset())


def cases(op):
    """The first sample of an operation, and it with all dims of one size cut to one element."""
    dtype = next((x for x in numpy_dtypes(op) if np.dtype(x).kind == "f"), None)
    if dtype is None:
        return
    arrays = in_numpy(op, samples(op)[0], dtype)
    yield arrays
    for size in {size for array in arrays.arrays for size in np.shape(array) if size > 1}:
        yield arrays.map(lambda i, array: array[tuple(
            slice(0, 1 if n == size else None) for n in np.shape(array))])


def tensors(result):
    return [x for x in outputs(result) if isinstance(x, tl.Tensor)]


def values_and_gradients(f, given):
    """What a function gives, with the gradients by the floating arguments."""
    given = [x.detach().requires_grad_(x.is_floating_point()) for x in given]
    found = tensors(f(*given))
    linked = [x for x in found if x.requires_grad]
    if linked:
        slopes = tl.autograd.grad(linked, [x for x in given if x.requires_grad],
                                  [far(tl.ones_like(x)) for x in linked], allow_unused=True)
        found += [x for x in slopes if x is not None]
    return [x.detach() for x in found]


@for_each(OPERATIONS)
@pytest.mark.filterwarnings("ignore")
def test_strides_of_one_element_say_nothing(op):
    for arrays in cases(op):
        plain = laid_out(arrays, np.copy)
        odd = arrays.map(lambda i, x: far(tl.from_numpy(np.array(x))))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                wanted = values_and_gradients(lambda *x: call(op, plain.with_arrays(x)),
                                              plain.arrays)
        except REFUSALS:
            continue                               # it does not take what was cut
        function = lambda *x: call(op, odd.with_arrays(x))            # noqa: E731
        compiled = tl.compile(function)
        for f in (function, compiled, compiled):
            found = values_and_gradients(f, odd.arrays)
            assert len(found) == len(wanted)
            for x, y in zip(found, wanted):
                assert x.dtype is y.dtype
                assert tl.allclose(x, y, rtol=1e-5, atol=1e-6, equal_nan=True)


@each("shape", [(1, 512, 4), (3, 1, 4), (1, 1, 4), (1, 0, 4)], ids=str)
@each("other", [(4, 4), (4,), (4, 1)], ids=str)
def test_rows_of_one_element_by_a_matrix(shape, other):
    w = tl.randn(*other)
    compiled = tl.compile(lambda x: x.transpose(0, 1) @ w)
    for _ in range(3):
        x = tl.randn(*shape)
        assert tl.equal(compiled(x), x.transpose(0, 1).contiguous() @ w)
        assert tl.equal(compiled(far(x)), x.transpose(0, 1).contiguous() @ w)


@pytest.mark.parametrize("shape", [(2, 1, 5), (2, 1, 1, 5), (1, 2, 1, 5), (2, 3, 1, 5), (1, 5)],
                         ids=str)
def test_slices_behind_a_dim_of_one_element(shape):
    """The distance of the rows is that of the dims with several."""
    x = tl.arange(60.0)[:np.prod(shape)].reshape(shape)
    for rows in (x, x.flip(0), x.to(tl.bool)):
        wanted = rows.numpy()[..., [3, 0, 3]].tolist()
        assert far(rows).index_select(-1, tl.tensor([3, 0, 3])).tolist() == wanted


def test_what_is_read_of_strides_that_say_nothing():
    """Views have them, and `stride()` gives them."""
    def f(x):
        return x.T, x[:, :2], x.unsqueeze(0), x + 1, x.stride()

    compiled = tl.compile(f)
    for shape, strides in [((1, 3), (3, 1)), ((0, 3), (3, 1))]:
        for steps in [strides, strides, (1, 1), (7, 2), (0, 0), strides]:
            x = tl.ones(40).as_strided(shape, steps)
            (*found, given), (*wanted, steps) = compiled(x), f(x)
            assert given == steps and all(
                y.stride() == z.stride() and tl.equal(y, z) for y, z in zip(found, wanted))
    w = tl.ones(40)
    seen = w.as_strided((1, 3), (3, 1))
    compiled = tl.compile(lambda x: (x + seen, seen.stride(), seen.T))
    for step in (3, 3, 9):
        seen.data = w.as_strided((1, 3), (step, 1))
        found = compiled(tl.ones(3))
        assert found[1] == (step, 1) and found[2].stride() == (1, step)
