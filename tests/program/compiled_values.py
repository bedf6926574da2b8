"""Functions to compile: what looks at elements, makes constants, or asks for facts."""

import numpy as np

import tensorlib as tl
from compiled_cases import COUNTER, add, of_tensors
from tensorlib import nn

F = nn.functional


@of_tensors((4, 3))
def from_numpy(x):
    import numpy as np

    return x * tl.from_numpy(np.arange(3, dtype=np.float32))


@of_tensors((4, 3))
def tensor_of_floats(x):
    return x * tl.tensor([float(v) for v in x[0]])


@of_tensors((4, 3))
def tensor_of_tensors(x):
    return tl.tensor([x[0, 0], x[1, 1]]) * 2


@of_tensors((4, 3))
def cond(x):
    return tl.cond(x.sum() > 0, lambda a: a.sin() * 2, lambda a: a.cos(), (x,))


@of_tensors((4, 3))
def while_loop(x):
    return tl.while_loop(
        lambda i, a: (a * a).sum() < 100, lambda i, a: (i + 1, a * 1.5), (tl.tensor(0), x)
    )


@of_tensors((4, 3))
def scan(x):
    return tl.scan(lambda c, r: ((c + r).tanh(), c * r), tl.zeros(3), x)


@of_tensors((4, 3))
def cond_mismatch(x):
    return tl.cond(x.sum() > 0, lambda a: a[:2], lambda a: a.double(), (x,))


@of_tensors((4, 3))
def set_data_made(x):
    y = x.detach().clone()
    y.data = tl.ones(3)
    return y * 2


@of_tensors((4, 3))
def requires_grad_inside(x):
    y = (x.detach() * 2).requires_grad_()
    return y * 3, x * 2


@of_tensors((4, 3))
def detach_(x):
    y = x * 2
    y.detach_()
    return y * x


@of_tensors((4, 3))
def squeeze_(x):
    y = x.detach().clone()[None]
    y.squeeze_(0)
    y.t_()
    y.unsqueeze_(0)
    return y * 2


@of_tensors((4, 3))
def topk_sort(x):
    v, i = x.topk(2)
    s, j = x.sort(0)
    return v, i, s, j, x.argmax(1), x.gather(1, i)


@of_tensors((4, 3))
def decompositions(x):
    a = x.T @ x + tl.eye(3)
    return (tl.linalg.cholesky(a), tl.linalg.inv(a), tl.linalg.det(a), tl.linalg.svdvals(x),
            tl.linalg.eigvalsh(a), *tl.linalg.eigh(a))


@of_tensors((4, 3))
def einsum(x):
    return tl.einsum("ij,kj->ik", x, x), tl.tensordot(x, x, 2), tl.bmm(x[None], x.T[None])


@of_tensors((4, 3))
def inplace_ops(x):
    y = x * 2
    y += x
    y -= 1
    y *= x
    y /= 2
    y **= 2
    return y


@of_tensors((4, 3))
def empty_filled(x):
    y = tl.empty(4, 3)
    y.copy_(x)
    z = tl.empty_like(x).fill_(3)
    return y * z


@of_tensors((4, 3))
def made_by_new_methods(x):
    return (
        x.new_zeros(3) + x,
        x.new_tensor([1.0, 2.0, 3.0]) * x,
        x.new_full((3,), 2.0) + x,
        x.new_ones(3).mul_(x.detach()[0]),
    )


@of_tensors((4, 3))
def constants(x):
    return (
        tl.linspace(0, 1, 3) * x
        + tl.eye(3)[0]
        + tl.full((3,), 2.0).add_(1)
        + tl.tril(tl.ones(4, 3))
    )


@of_tensors((4, 3))
def put_masked_scatter(x):
    y = tl.zeros(12)
    y.put_(tl.tensor([1, 3]), x[0, :2].detach())
    z = tl.zeros(4, 3)
    z.masked_scatter_(x > 100, x.detach())
    z.index_copy_(0, tl.tensor([1]), x[:1].detach())
    return y.view(4, 3) * x + z


@of_tensors((4, 3))
def index_put_(x):
    y = tl.zeros(4, 3)
    y.index_put_((tl.tensor([0, 1]), tl.tensor([1, 2])), x[0, :2], accumulate=True)
    return y + x


@of_tensors((4, 3))
def swap_rows(x):
    y = x.clone()
    y[[0, 1]] = y[[1, 0]]
    y[0], y[1] = y[1].clone(), y[0].clone()
    return y


@of_tensors((4, 3))
def overlapping_assign(x):
    y = x.clone()
    y[1:] = y[:-1]
    y[1:].add_(y[:-1])
    return y


@of_tensors((4, 3))
def empty_tensors(x):
    e = tl.zeros(0, 3)
    e.add_(1)
    return tl.cat([e, x]), e


@of_tensors((4, 3))
def mask_building(x):
    m = tl.zeros(4, 3, dtype=tl.bool)
    m[0] = True
    m |= x > 0
    m.logical_not_()
    return tl.where(m, x, 0.0)


@of_tensors((4, 3))
def branch_on_requires_grad(x):
    return x * 2 if x.requires_grad else x


@of_tensors((4, 3))
def version_read(x):
    y = x * 2
    v = y._version
    y.add_(1)
    return y * (y._version - v)


@of_tensors((4, 3))
def exception_inside(x):
    try:
        y = x @ x
    except RuntimeError:
        y = x * 2
    return y


@of_tensors((4, 3))
def sizes_as_numbers(x):
    n, m = x.shape
    return x.reshape(m, n) / n


@of_tensors((4, 3))
def deepcopy(x):
    import copy

    y = x.detach() * 2
    z = copy.deepcopy(y)
    z.add_(1)
    c = copy.copy(y)
    return y, z, c


@of_tensors((4, 3))
def pickled(x):
    import pickle

    y = x.detach() * 2
    return pickle.loads(pickle.dumps(y))


@of_tensors((4, 3))
def truths_of_all_elements(x):
    return tl.isnan(x).any(), tl.allclose(x, x), tl.equal(x, x)


@of_tensors((4, 3))
def shown_as_text(x):
    return str(x), x * 2


@of_tensors((4, 3))
def facts_of_memory(x):
    y = x * 2
    return y, y.is_contiguous(), y.stride(), y.data_ptr() != 0


@of_tensors((4, 3))
def default_dtype(x):
    tl.set_default_dtype(tl.float64)
    try:
        y = tl.ones(3) * 2
    finally:
        tl.set_default_dtype(tl.float32)
    return y * x


@of_tensors((4, 3))
def generator_fn(x):
    def gen():
        for i in range(3):
            yield x[i] * i

    return list(gen())


@of_tensors((4, 3))
def as_strided(x):
    y = x.clone()
    return y.as_strided((2, 2), (1, 3)) * 2, y.unfold(0, 2, 1)


@of_tensors((4, 3))
def broadcast_meshgrid(x):
    return tl.broadcast_tensors(x, tl.ones(3))[1].clone().add_(x.detach()), tl.meshgrid(
        tl.arange(3.0), tl.arange(2.0), indexing="ij"
    )


@of_tensors((4, 3))
def leaf_made_inside(x):
    w = tl.ones(3, requires_grad=True)
    (x.detach() * w).sum().backward()
    return w.grad * 2


@of_tensors((4, 3))
def module_made_inside(x):
    m = nn.Linear(3, 2)
    with tl.no_grad():
        m.weight.fill_(0.5)
        m.bias.zero_()
    return m(x)


@of_tensors((4, 3))
def init_inside(x):
    w = tl.empty(3, 2)
    nn.init.kaiming_normal_(w)
    return x @ w


@of_tensors((4, 3))
def python_global(x):
    return x * 1.0 + COUNTER["n"]


@of_tensors((4, 3))
def zero_dim(x):
    return x.sum() * tl.tensor(2) + tl.tensor(2.5, dtype=tl.float64)


@of_tensors((4, 3))
def losses(x):
    t = tl.tensor([0, 1, 2, 0])
    return (
        F.cross_entropy(x, t),
        F.nll_loss(x.log_softmax(1), t),
        F.mse_loss(x, x * 2),
        F.smooth_l1_loss(x, tl.zeros(4, 3)),
        F.ctc_loss(x[:, None].log_softmax(-1), tl.tensor([[1, 2]]), tl.tensor([4]), tl.tensor([2])),
    )


@of_tensors((4, 3))
def images(x):
    return (
        F.interpolate(x[None], scale_factor=2),
        F.max_pool1d(x[None], 2, return_indices=True),
        F.unfold(x[None, None], 2),
    )


@of_tensors((4, 3), grad=False)
def detached_write(x):
    y = x.sin().detach()
    z = y.detach()
    z.mul_(0.5)
    y.add_(1)
    return y * 1, z * 2


@of_tensors((4, 3))
def detached_write_linked(x):
    y = x.sin()
    z = y.detach()
    z.mul_(0.5)
    return y * 1


@of_tensors((4, 3))
def detached_view_write(x):
    y = x.detach() * 1
    z = y.detach()[1:]
    z.mul_(0.5)
    return y * x, z


@of_tensors((4, 3), grad=False)
def detached_argument_written(x):
    x.detach().mul_(2)
    return x + 0


@of_tensors((4, 3), grad=False)
def data_of_an_argument_written(x):
    x.data[0] = 2
    x.data.mul_(2)
    return x + 0


ONE_LINE = {      # functions of a tensor of shape (4, 3)
    "repeat_interleave": lambda x: x.repeat_interleave(tl.tensor([1, 2, 0, 1]), 0),
    "cumsum": lambda x: (x.cumsum(0), x.cumprod(1), x.flip(0), x.roll(1, 0)),
    "argument_returned_as_it_is": lambda x: x,
    "pad": lambda x: (F.pad(x, (1, 1)), F.one_hot(tl.tensor([0, 2, 1, 0]), 3) * x),
    "rows_iterated": lambda x: sum(r * i for i, r in enumerate(x)) * len(x),
    "numpy_scalar": lambda x: x * np.float32(2) + np.array([1.0, 2.0, 3.0], dtype="float32"),
    "same_memory_views": lambda x: (x.view(4, 3) * 2, x[:] + x, x.detach() * 3),
}
for name, function in ONE_LINE.items():
    add(name, function, (4, 3))
