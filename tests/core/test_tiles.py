"""The executor of element-wise work: layouts whose rows and tiles end at different places."""

import itertools

import numpy as np
import pytest
from cases import each
import tensorlib as tl
from tensorlib.testing import assert_close

# around the lengths at which the walk changes: a tile has 8 KiB of the widest dtype
ROWS = (1, 63, 64, 65, 1023, 1024, 1025, 2047, 2048, 2049, 4100)


def operands(row, rows=3):
    """Arrays that broadcast to (2, rows, row), in all the ways that a row can lie in memory."""
    rng = np.random.default_rng(row)
    whole = rng.uniform(1, 2, (2, rows, row + 3))
    return {
        "whole": whole[..., 3:].copy(), "sliced": whole[..., 1:-2], "row": whole[0, 0, 3:].copy(),
        "column": whole[..., :1], "one of each": whole[:, :1, :1], "number": whole[0, 0, 0],
        "reversed": whole[..., 3:][..., ::-1], "repeated": whole[:, :1, 3:],
        "strided": np.repeat(whole[..., 3:], 2, -1)[..., ::2],
        "transposed": np.ascontiguousarray(whole[..., 3:].swapaxes(1, 2)).swapaxes(1, 2),
    }


@each("row", ROWS)
@each("dtype", ["float64", "float32", "int64"])
def test_rows_of_any_layout(row, dtype):
    arrays = {name: (x * 10).astype(dtype) for name, x in operands(row).items()}
    tensors = {name: tl.from_numpy(np.asarray(x)) for name, x in arrays.items()}
    for name, a in arrays.items():
        for other, b in arrays.items():
            assert_close((tensors[name] - tensors[other]).numpy(), a - b, rtol=0, atol=0,
                         msg=f"{name} - {other}")


@each("row", (31, 32, 64, 500, 1023, 1024, 1025, 2049))
@each("dtype", ["float64", "float32"])
def test_several_loops_on_rows_of_any_layout(row, dtype):
    """Derivatives, whose formulas are of several loops."""
    arrays = {name: x.astype(dtype) for name, x in operands(row).items()}
    g = np.random.default_rng(1).uniform(-1, 1, (2, 3, row)).astype(dtype)
    for name, a in arrays.items():
        x = tl.from_numpy(np.asarray(a)).requires_grad_()
        found, = tl.autograd.grad(x.expand(2, 3, row).asinh().logit(eps=0.1), x, tl.from_numpy(g))
        y = x.detach().to(tl.float64).requires_grad_()
        wanted, = tl.autograd.grad(y.expand(2, 3, row).asinh().logit(eps=0.1), y,
                                   tl.from_numpy(g).to(tl.float64))
        assert_close(found.to(tl.float64), wanted, rtol=2e-5 if dtype == "float32" else 1e-12,
                     atol=1e-5, msg=name)


@each("row", (1, 31, 32, 33, 64, 200, 500, 1023))
def test_several_loops_on_parts_of_rows(row):
    """Each step goes over several rows, which lie apart; chunks end inside of rows."""
    before = tl.get_num_threads()
    rng = np.random.default_rng(row)
    x, y, z = (tl.tensor(rng.uniform(1, 2, (150_000 // row, row + 1))) for _ in range(3))
    x, y, z = x[:, 1:], y[:, :-1], z[:, 1:]
    wanted = x.numpy() + 0.5 * y.numpy() / z.numpy()
    try:
        for threads in (1, 2):
            tl.set_num_threads(threads)
            assert_close(x.addcdiv(y, z, value=0.5).numpy(), wanted, rtol=1e-14, atol=0)
            room = x.new_zeros(x.shape[0], row + 1)
            room[:, :-1] = x
            room[:, :-1].addcdiv_(y, z, value=0.5)
            assert_close(room[:, :-1].numpy(), wanted, rtol=1e-14, atol=0)
            assert not room[:, -1].any()
            room[:, :-1] = 3.0
            assert (room[:, :-1] == 3).all() and not room[:, -1].any()
    finally:
        tl.set_num_threads(before)


@each("row", (1, 2, 63, 64, 65, 500, 512, 513, 1023, 1024, 1025))
def test_several_loops_on_rows_and_a_bias(row):
    """Several rows make a tile, in which the bias lies over and over; chunks end inside of rows."""
    before = tl.get_num_threads()
    rng = np.random.default_rng(row)
    x, bias, other = rng.uniform(-1, 1, (150_000 // row, row)), rng.random(row + 1), rng.random(row)
    try:
        for a in (x, x[::2], x[:, ::-1]):
            chained = tl.compile(lambda x, bias, other: ((x + bias) * other - bias).relu())
            for b in (bias[1:], bias[:1], bias[::-1][1:]):
                for c in (other, a):
                    given = [tl.from_numpy(y) for y in (a, b, c)]
                    wanted = np.maximum((a + b) * c - b, 0)
                    for n_threads in (1, 1, 2):      # the first call of a kind is eager
                        tl.set_num_threads(n_threads)
                        found = chained(*given).numpy()
                        assert found.dtype == wanted.dtype and np.array_equal(found, wanted)
    finally:
        tl.set_num_threads(before)


@pytest.mark.parametrize("row", (64, 1025))
def test_rows_of_three_inputs_and_other_dtypes(row):
    arrays = operands(row)
    mask = arrays["whole"] > 1.5
    for a in arrays.values():
        for b in (arrays["column"], arrays["sliced"]):
            result = tl.where(tl.from_numpy(mask[:, :, :1]), tl.from_numpy(np.asarray(a)),
                              tl.from_numpy(b))
            assert (result.numpy() == np.where(mask[:, :, :1], a, b)).all()
    whole = tl.from_numpy(arrays["whole"])
    half = tl.from_numpy(arrays["column"].astype(np.float16))
    assert_close((whole + half).numpy(), arrays["whole"] + arrays["column"].astype(np.float16))


@pytest.mark.parametrize("dtype", ("uint8", "int16", "float32", "float64", "complex128"))
def test_operands_of_three_dtypes_that_repeat_in_any_way(dtype):
    """Of each operand a number, a column, a row or all: masks take fewer bytes than what they
    choose from."""
    rng = np.random.default_rng(0)
    for shape in ((7, 40), (3, 65, 140), (40, 3), (5, 600), (1500, 17)):
        mask, a, b = rng.random(shape) > 0.5, *(rng.integers(0, 99, (2, *shape)).astype(dtype))
        whole = (slice(None),) * len(shape)
        parts = (whole, (*whole[1:], slice(1)), (slice(1), *whole[1:]),
                 (slice(1),) * len(shape), (0,) * len(shape))
        for keys in itertools.product(parts, repeat=3):
            given = [np.asarray(x[key]) for x, key in zip((mask, a, b), keys)]
            found, wanted = tl.where(*map(tl.from_numpy, given)).numpy(), np.where(*given)
            assert found.dtype == wanted.dtype and np.array_equal(found, wanted)


@pytest.mark.parametrize("n_threads", (1, 2))
def test_rows_are_cut_between_threads_anywhere(n_threads):
    """Chunks of 32,768 elements end inside of rows."""
    before = tl.get_num_threads()
    x = np.random.default_rng(0).random((300, 331))
    tl.set_num_threads(n_threads)
    try:
        assert (tl.from_numpy(x) * tl.from_numpy(x[:, :1])).numpy().tolist() == (
            x * x[:, :1]).tolist()
    finally:
        tl.set_num_threads(before)


@each("dtype", [tl.float32, tl.float64])
@each("n", (100, 5_000, 100_000))
def test_derivatives_with_constants_on_large_tensors(n, dtype):
    """A rule of one step with a constant once wrote past its tile."""
    x = tl.linspace(-2, 2, n, dtype=dtype, requires_grad=True)
    y = tl.linspace(1, 3, n, dtype=dtype, requires_grad=True)
    g = tl.linspace(0.5, 1, n, dtype=dtype)
    mask = x.detach() > 0
    for result, dx, dy in (
            (-x, -g, None), (x - y, g, -g), (tl.where(mask, x, y), g * mask, g * ~mask),
            (x.masked_fill(mask, 0), g * ~mask, None)):
        result.backward(g)
        assert_close(x.grad, dx)
        if dy is not None:
            assert_close(y.grad, dy)
        x.grad = y.grad = None


def test_a_result_lies_as_the_operands_of_its_shape_do():
    """As in PyTorch: as the first of them; what is broadcast has no say."""
    x = tl.arange(12.0).reshape(3, 4).t()
    for result in (x * 2, x + x, x + tl.ones(3), x + tl.ones(4, 1), x.to(tl.float64), x > 1):
        assert result.stride() == (1, 4)
    assert (x + tl.ones(4, 3)).stride() == (1, 4) and (tl.ones(4, 3) + x).stride() == (3, 1)
    assert x.to(tl.float64).tolist() == x.tolist()


@each("row", (2, 3, 7, 8, 10, 31, 63))
def test_a_short_row_meets_many(row):
    before = tl.get_num_threads()
    rng = np.random.default_rng(row)
    x, repeated = rng.random((3, 60_000 // row, row + 2)), rng.random(row)
    try:
        for a in (x[..., :row].copy(), x[..., :row], x[:, ::2, :row], x[..., row - 1::-1]):
            for b in (repeated, repeated[::-1], repeated.astype("float32"), repeated[None, :1],
                      a[..., :1], a[:, :1, :1], a[..., :1].copy()):
                wanted = a - b
                for n_threads in (1, 2):
                    tl.set_num_threads(n_threads)
                    ours = tl.from_numpy(a), tl.from_numpy(b)
                    assert np.array_equal((ours[0] - ours[1]).numpy(), wanted)
                    assert np.array_equal((ours[1] - ours[0]).numpy(), -wanted)
    finally:
        tl.set_num_threads(before)


@each("dtype", ["bool", "int16", "float32", "float64"])
@each("shape", [(300, 2, 2, 2, 2), (7, 3, 5, 3, 4), (2, 700, 3, 2, 1),
                (5, 2, 17, 16, 3), (40, 1, 6, 40, 2)])
def test_short_rows_in_any_order_of_dims(shape, dtype, two_threads):
    values = np.arange(np.prod(shape)).reshape(shape) % (2 if dtype == "bool" else 9999)
    values = values.astype(dtype)
    for order in ((0, 1, 3, 2, 4), (0, 3, 1, 4, 2), (4, 3, 2, 1, 0), (2, 4, 0, 3, 1)):
        for key in ((...,), (slice(1, None), ..., slice(1)), (..., slice(None, None, 2))):
            moved = values.transpose(order)[key]
            x = tl.from_numpy(values).permute(order)[key]
            np.testing.assert_array_equal(x.contiguous().numpy(), moved)
            np.testing.assert_array_equal(x.flip(-1).numpy(), moved[..., ::-1])
            target = tl.from_numpy(np.zeros_like(values)).permute(order)[key]
            target.copy_(tl.from_numpy(np.ascontiguousarray(moved)))
            np.testing.assert_array_equal(target.numpy(), moved)
            doubled = (x + x).numpy()                  # gathered to tiles, and not to the result
            np.testing.assert_array_equal(doubled, moved + moved)


@pytest.mark.parametrize("row", [20, 100, 200, 700])
def test_columns_of_narrow_dtypes_among_casts(row):
    x = np.arange(64 * row).reshape(64, row).astype(np.uint8)
    column = np.arange(-32, 32, dtype=np.int8)[:, None]
    found = tl.from_numpy(x) + tl.from_numpy(column)
    np.testing.assert_array_equal(found.numpy(), x.astype(np.int16) + column)
    np.testing.assert_array_equal(tl.from_numpy(x).flip(1).numpy(), x[:, ::-1])
