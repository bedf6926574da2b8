"""Reductions over dims that are not neighbours in memory, of half types, and of rows with NaN."""

import numpy as np
from cases import each

import tensorlib as tl


@each("shape, dims", [((5, 6, 9, 10), (0, 2, 3)), ((30, 8, 70), (0, 2)),
                      ((2, 40, 3, 50, 4), (1, 3)), ((4, 3, 9, 2), (0, 2))])
@each("dtype", ["float32", "float64", "float16", "int64"])
def test_dims_apart_are_reduced_without_a_copy_and_with_the_same_bits_in_any_layout(
        shape, dims, dtype):
    x = tl.rand(*shape, generator=tl.Generator().manual_seed(1)).mul(10).to(getattr(tl, dtype))
    array = x.double().numpy()
    wide = tl.stack([x, x], -1)[..., 0]
    for op, wanted in (("sum", array.sum(dims)), ("amax", array.max(dims)),
                       ("amin", array.min(dims))):
        found = getattr(x, op)(dims)
        np.testing.assert_allclose(found.double().numpy(), wanted,
                                   rtol=2e-3 if dtype == "float16" else 1e-6)
        for other in (wide, x.flip(0).flip(0), x.contiguous()):
            assert (getattr(other, op)(dims) == found).all()
        assert getattr(x, op)(dims, keepdim=True).shape == wanted.reshape(
            [1 if d in dims else n for d, n in enumerate(shape)]).shape


@each("dtype", [tl.float16, tl.bfloat16])
@each("shape, dim", [
    ((9000,), 0), ((3, 9001), 1), ((700, 33), 1), ((50, 700), 0), ((2, 90, 130), 1),
    ((400_000,), 0), ((33, 9100), 0)])
def test_half_types_are_summed_in_float32_with_any_number_of_threads(dtype, shape, dim):
    x = (tl.rand(*shape, generator=tl.Generator().manual_seed(2)) - 0.25).to(dtype)
    before = tl.get_num_threads()
    found = []
    for threads in (1, 2):
        tl.set_num_threads(threads)
        found.append([x.sum(dim), x.mean(dim), x.amax(dim), x.sum(dim, dtype=tl.float32)])
    tl.set_num_threads(before)
    assert all((one == other).all() for one, other in zip(*found))
    wanted = x.double().numpy().sum(dim)
    np.testing.assert_allclose(found[0][3].numpy(), wanted, rtol=1e-5, atol=1e-3)
    assert (found[0][0] == found[0][3].to(dtype)).all()
    assert (found[0][2] == x.float().amax(dim).to(dtype)).all()


@each("dtype", [tl.float16, tl.bfloat16])
@each("shape", [(5, 7), (300, 129), (3, 4096), (2, 4097)])
def test_softmax_of_half_types_is_computed_in_float32(dtype, shape):
    x = tl.randn(*shape, generator=tl.Generator().manual_seed(3)).to(dtype)
    g = tl.randn(*shape, generator=tl.Generator().manual_seed(4)).to(dtype)
    for op in ("softmax", "log_softmax"):
        leaf = x.clone().requires_grad_()
        out = getattr(leaf, op)(-1)
        np.testing.assert_allclose(out.detach().float().numpy(), getattr(x.float(), op)(-1).numpy(),
                                   rtol=2.0 ** (-8 if dtype is tl.bfloat16 else -10), atol=1e-7)
        out.backward(g)
        wide = out.detach().float()
        wanted = (wide * (g.float() - (g.float() * wide).sum(-1, True)) if op == "softmax" else
                  g.float() - wide.exp() * g.float().sum(-1, True))
        np.testing.assert_allclose(leaf.grad.float().numpy(), wanted.numpy(), rtol=2e-2, atol=2e-3)


TOLERANCES = {tl.float32: (2e-5, 3e-5), tl.float64: (1e-12, 1e-14), tl.float16: (2e-3, 2e-3),
              tl.bfloat16: (1e-2, 2e-2)}


@each("dtype", TOLERANCES)
@each("shape", [(1, 3), (5, 1), (300, 129), (2, 7, 3), (3, 40, 5, 13),
                (1, 8200, 7), (2, 700, 97), (40, 1030)])
def test_softmax_down_columns_is_that_of_rows(dtype, shape):
    rtol, atol = TOLERANCES[dtype]
    x = (5 * tl.randn(*shape, generator=tl.Generator().manual_seed(3))).to(dtype)
    g = tl.randn(*shape, generator=tl.Generator().manual_seed(4)).to(dtype)
    x[..., 0] = -tl.inf
    x[(0, 0) + (slice(None),) * (len(shape) - 2)] = 1
    before = tl.get_num_threads()
    for op in ("softmax", "log_softmax"):
        found = []
        for threads in (1, 2):
            tl.set_num_threads(threads)
            columns = x.clone().requires_grad_()
            out = getattr(columns, op)(-2)
            out.backward(g)
            found.append((out.detach(), columns.grad))
        tl.set_num_threads(before)
        rows = x.transpose(-1, -2).contiguous().requires_grad_()
        wanted = getattr(rows, op)(-1)
        wanted.backward(g.transpose(-1, -2))
        for i, value in enumerate((wanted.detach(), rows.grad)):
            np.testing.assert_array_equal(found[0][i].float().numpy(), found[1][i].float().numpy())
            np.testing.assert_allclose(
                found[0][i].double().numpy(), value.transpose(-1, -2).double().numpy(), rtol, atol)


@each("dtype", [tl.bool, tl.uint8, tl.int8, tl.int16, tl.int32, tl.uint16, tl.uint32])
@each("shape, dim", [
    ((5,), 0), ((7, 9), 0), ((7, 9), 1), ((300, 129), 0), ((3, 5000), 1), ((3, 40, 1100), 1),
    ((33, 9100), 0), ((300_001,), 0), ((2, 0, 3), 1), ((6, 5, 4), (0, 2))])
def test_sums_of_small_integers_are_exact(dtype, shape, dim):
    x = 300 * tl.rand(*shape, generator=tl.Generator().manual_seed(2)) - 100
    x = x.to(tl.int64).to(dtype)
    for y in (x, x.flip(0), x.transpose(0, -1).contiguous().transpose(0, -1), x[::2]):
        assert y.sum(dim).dtype is tl.int64
        np.testing.assert_array_equal(y.sum(dim).numpy(), y.numpy().sum(dim, np.int64))
        np.testing.assert_array_equal(y.count_nonzero(dim).numpy(),
                                      (y.numpy() != 0).sum(dim, np.int64))
        if isinstance(dim, int):
            np.testing.assert_array_equal(y.prod(dim).numpy(), y.numpy().prod(dim, np.int64))


@each("dtype", [tl.float16, tl.bfloat16])
@each("shape, dim", [((5,), 0), ((7, 9), 0), ((300, 129), 0), ((3, 5000), 1),
                     ((33, 9100), 0), ((6, 5, 4), (0, 2)), ((70_000,), 0)])
@each("scale", [1, 1e-25, 1e30])
def test_variances_and_norms_of_half_types_are_computed_in_float32(dtype, shape, dim, scale):
    if dtype is tl.float16 and scale != 1:
        scale = 1e-3 if scale < 1 else 1e3
    x = (tl.randn(*shape, generator=tl.Generator().manual_seed(2)) * scale + scale).to(dtype)
    eps = 2.0 ** (-8 if dtype is tl.bfloat16 else -10)
    for y in (x, x.flip(0), x.transpose(0, -1).contiguous().transpose(0, -1)):
        for op in ("std", "norm"):
            found = getattr(y, op)(dim=dim)
            wanted = getattr(y.double(), op)(dim=dim)
            assert found.dtype is dtype
            np.testing.assert_allclose(found.double().numpy(), wanted.to(dtype).double().numpy(),
                                       rtol=eps)


@each("dtype", [np.float32, np.float64])
@each("n", [8, 16, 31, 32, 33, 64, 100, 130, 1000])
def test_extremes_of_rows_are_nan_wherever_one_is(dtype, n):
    x = np.random.default_rng(5).normal(size=(n + 1, n)).astype(dtype)
    x[np.arange(n), np.arange(n)] = np.nan
    for op, reference in (("amax", np.max), ("amin", np.min)):
        found = getattr(tl.from_numpy(x), op)(1).numpy()
        np.testing.assert_array_equal(found, reference(x, 1))
    assert tl.from_numpy(x).argmax(1).tolist()[:n] == list(range(n))
