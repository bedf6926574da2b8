"""Functions to compile: what looks at elements, makes constants, or asks for facts."""

import tensorlib as tl
from compiled_cases import COUNTER, reg
from tensorlib import nn

F = nn.functional


def f_array_made(x):
    import numpy as np

    return x * tl.from_numpy(np.arange(3, dtype=np.float32))


reg("from_numpy", f_array_made, (4, 3))


def f_tensor_of_tensor(x):
    return x * tl.tensor([float(v) for v in x[0]])


reg("tensor_of_floats", f_tensor_of_tensor, (4, 3))


def f_list_tensor(x):
    return tl.tensor([x[0, 0], x[1, 1]]) * 2


reg("tensor_of_tensors", f_list_tensor, (4, 3))


def f_cond(x):
    return tl.cond(x.sum() > 0, lambda a: a.sin() * 2, lambda a: a.cos(), (x,))


reg("cond", f_cond, (4, 3))


def f_while(x):
    return tl.while_loop(
        lambda i, a: (a * a).sum() < 100, lambda i, a: (i + 1, a * 1.5), (tl.tensor(0), x)
    )


reg("while_loop", f_while, (4, 3))


def f_scan(x):
    return tl.scan(lambda c, r: ((c + r).tanh(), c * r), tl.zeros(3), x)


reg("scan", f_scan, (4, 3))


def f_cond_mismatch(x):
    return tl.cond(x.sum() > 0, lambda a: a[:2], lambda a: a.double(), (x,))


reg("cond_mismatch", f_cond_mismatch, (4, 3))


def f_set_data(x):
    y = x.detach().clone()
    y.data = tl.ones(3)
    return y * 2


reg("set_data_made", f_set_data, (4, 3))


def f_req(x):
    y = (x.detach() * 2).requires_grad_()
    return y * 3, x * 2


reg("requires_grad_inside", f_req, (4, 3))


def f_detach_(x):
    y = x * 2
    y.detach_()
    return y * x


reg("detach_", f_detach_, (4, 3))


def f_squeeze_(x):
    y = x.detach().clone()[None]
    y.squeeze_(0)
    y.t_()
    y.unsqueeze_(0)
    return y * 2


reg("squeeze_", f_squeeze_, (4, 3))


def f_topk(x):
    v, i = x.topk(2)
    s, j = x.sort(0)
    return v, i, s, j, x.argmax(1), x.gather(1, i)


reg("topk_sort", f_topk, (4, 3))


def f_linalg(x):
    a = x.T @ x + tl.eye(3)
    return tl.linalg.cholesky(a), tl.linalg.inv(a), tl.linalg.det(a), tl.linalg.svdvals(x)


reg("linalg", f_linalg, (4, 3))


def f_einsum(x):
    return tl.einsum("ij,kj->ik", x, x), tl.tensordot(x, x, 2), tl.bmm(x[None], x.T[None])


reg("einsum", f_einsum, (4, 3))
reg("repeat_interleave", lambda x: x.repeat_interleave(tl.tensor([1, 2, 0, 1]), 0), (4, 3))
reg("cumsum", lambda x: (x.cumsum(0), x.cumprod(1), x.flip(0), x.roll(1, 0)), (4, 3))
reg("complexish", lambda x: tl.fft.rfft(x).abs() if hasattr(tl, "fft") else x, (4, 3))
reg("pad", lambda x: (F.pad(x, (1, 1)), F.one_hot(tl.tensor([0, 2, 1, 0]), 3) * x), (4, 3))
reg("len_iter", lambda x: sum(r * i for i, r in enumerate(x)) * len(x), (4, 3))
reg(
    "numpy_scalar",
    lambda x: (
        x * __import__("numpy").float32(2)
        + __import__("numpy").array([1.0, 2.0, 3.0], dtype="float32")
    ),
    (4, 3),
)
reg("inplace_ops", lambda x: iop(x), (4, 3))


def iop(x):
    y = x * 2
    y += x
    y -= 1
    y *= x
    y /= 2
    y **= 2
    return y


reg("same_memory_views", lambda x: (x.view(4, 3) * 2, x[:] + x, x.detach() * 3), (4, 3))


def f_empty(x):
    y = tl.empty(4, 3)
    y.copy_(x)
    z = tl.empty_like(x).fill_(3)
    return y * z


reg("empty_filled", f_empty, (4, 3))


def f_newx(x):
    return (
        x.new_zeros(3) + x,
        x.new_tensor([1.0, 2.0, 3.0]) * x,
        x.new_full((3,), 2.0) + x,
        x.new_ones(3).mul_(x.detach()[0]),
    )


reg("new_x", f_newx, (4, 3))


def f_lin(x):
    return (
        tl.linspace(0, 1, 3) * x
        + tl.eye(3)[0]
        + tl.full((3,), 2.0).add_(1)
        + tl.tril(tl.ones(4, 3))
    )


reg("constants", f_lin, (4, 3))


def f_put(x):
    y = tl.zeros(12)
    y.put_(tl.tensor([1, 3]), x[0, :2].detach())
    z = tl.zeros(4, 3)
    z.masked_scatter_(x > 100, x.detach())
    z.index_copy_(0, tl.tensor([1]), x[:1].detach())
    return y.view(4, 3) * x + z


reg("put_masked_scatter", f_put, (4, 3))


def f_index_put(x):
    y = tl.zeros(4, 3)
    y.index_put_((tl.tensor([0, 1]), tl.tensor([1, 2])), x[0, :2], accumulate=True)
    return y + x


reg("index_put_", f_index_put, (4, 3))


def f_swap(x):
    y = x.clone()
    y[[0, 1]] = y[[1, 0]]
    y[0], y[1] = y[1].clone(), y[0].clone()
    return y


reg("swap_rows", f_swap, (4, 3))


def f_self_overlap(x):
    y = x.clone()
    y[1:] = y[:-1]
    y[1:].add_(y[:-1])
    return y


reg("overlapping_assign", f_self_overlap, (4, 3))


def f_zero_numel(x):
    e = tl.zeros(0, 3)
    e.add_(1)
    return tl.cat([e, x]), e


reg("empty_tensors", f_zero_numel, (4, 3))


def f_bools(x):
    m = tl.zeros(4, 3, dtype=tl.bool)
    m[0] = True
    m |= x > 0
    m.logical_not_()
    return tl.where(m, x, 0.0)


reg("mask_building", f_bools, (4, 3))


def f_grad_attr(x):
    return x * 2 if x.requires_grad else x


reg("requires_grad_test", f_grad_attr, (4, 3))


def f_version(x):
    y = x * 2
    v = y._version
    y.add_(1)
    return y * (y._version - v)


reg("version_read", f_version, (4, 3))


def f_try(x):
    try:
        y = x @ x
    except RuntimeError:
        y = x * 2
    return y


reg("exception_inside", f_try, (4, 3))


def f_print_shape(x):
    n, m = x.shape
    return x.reshape(m, n) / n


reg("shapes", f_print_shape, (4, 3))


def f_deepcopy(x):
    import copy

    y = x.detach() * 2
    z = copy.deepcopy(y)
    z.add_(1)
    c = copy.copy(y)
    return y, z, c


reg("deepcopy", f_deepcopy, (4, 3))


def f_pickle(x):
    import pickle

    y = x.detach() * 2
    return pickle.loads(pickle.dumps(y))


reg("pickled", f_pickle, (4, 3))


def f_isnan(x):
    return tl.isnan(x).any(), tl.allclose(x, x), tl.equal(x, x)


reg("truths", f_isnan, (4, 3))


def f_repr(x):
    return str(x), x * 2


reg("repr", f_repr, (4, 3))


def f_dataptr(x):
    y = x * 2
    return y, y.is_contiguous(), y.stride(), y.data_ptr() != 0


reg("facts", f_dataptr, (4, 3))


def f_default_dtype(x):
    tl.set_default_dtype(tl.float64)
    try:
        y = tl.ones(3) * 2
    finally:
        tl.set_default_dtype(tl.float32)
    return y * x


reg("default_dtype", f_default_dtype, (4, 3))


def f_gen_ex(x):
    def gen():
        for i in range(3):
            yield x[i] * i

    return list(gen())


reg("generator_fn", f_gen_ex, (4, 3))


def f_as_strided(x):
    y = x.clone()
    return y.as_strided((2, 2), (1, 3)) * 2, y.unfold(0, 2, 1)


reg("as_strided", f_as_strided, (4, 3))


def f_sparse_out(x):
    return tl.broadcast_tensors(x, tl.ones(3))[1].clone().add_(x.detach()), tl.meshgrid(
        tl.arange(3.0), tl.arange(2.0), indexing="ij"
    )


reg("broadcast_meshgrid", f_sparse_out, (4, 3))


def f_leaf_inside(x):
    w = tl.ones(3, requires_grad=True)
    (x.detach() * w).sum().backward()
    return w.grad * 2


reg("leaf_made_inside", f_leaf_inside, (4, 3))


def f_param_inside(x):
    m = nn.Linear(3, 2)
    with tl.no_grad():
        m.weight.fill_(0.5)
        m.bias.zero_()
    return m(x)


reg("module_made_inside", f_param_inside, (4, 3))


def f_init_inside(x):
    w = tl.empty(3, 2)
    nn.init.kaiming_normal_(w)
    return x @ w


reg("init_inside", f_init_inside, (4, 3))


def f_global_mod(x):
    return x * 1.0 + COUNTER["n"]


reg("python_global", f_global_mod, (4, 3))


def f_ndim0(x):
    return x.sum() * tl.tensor(2) + tl.tensor(2.5, dtype=tl.float64)


reg("zero_dim", f_ndim0, (4, 3))


def f_losses(x):
    t = tl.tensor([0, 1, 2, 0])
    return (
        F.cross_entropy(x, t),
        F.nll_loss(x.log_softmax(1), t),
        F.mse_loss(x, x * 2),
        F.smooth_l1_loss(x, tl.zeros(4, 3)),
        F.ctc_loss(x[:, None].log_softmax(-1), tl.tensor([[1, 2]]), tl.tensor([4]), tl.tensor([2])),
    )


reg("losses", f_losses, (4, 3))


def f_interp(x):
    return (
        F.interpolate(x[None], scale_factor=2),
        F.max_pool1d(x[None], 2, return_indices=True),
        F.unfold(x[None, None], 2),
    )


reg("images", f_interp, (4, 3))


def f_det_write(x):
    y = x.sin().detach()
    z = y.detach()
    z.mul_(0.5)
    y.add_(1)
    return y * 1, z * 2


reg("detached_write", f_det_write, (4, 3), grad=False)


def f_det_write2(x):
    y = x.sin()
    z = y.detach()
    z.mul_(0.5)
    return y * 1


reg("detached_write_linked", f_det_write2, (4, 3))


def f_det_view_write(x):
    y = x.detach() * 1
    z = y.detach()[1:]
    z.mul_(0.5)
    return y * x, z


reg("detached_view_write", f_det_view_write, (4, 3))


def f_arg_det_write(x):
    x.detach().mul_(2)
    return x + 0


reg("arg_detached_write", f_arg_det_write, (4, 3), grad=False)


def f_arg_data_write(x):
    x.data[0] = 2
    x.data.mul_(2)
    return x + 0


reg("arg_data_write", f_arg_data_write, (4, 3), grad=False)
