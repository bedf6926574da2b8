"""Functions to compile: writes in place, views, containers, random numbers, modes."""

import tensorlib as tl
from compiled_cases import NT, reg
from tensorlib import nn

F = nn.functional


def f_index_fill(x):
    y = tl.zeros(4, 3)
    y.index_fill_(0, tl.tensor([0, 2]), 1.0)
    return x * y


reg("index_fill_made", f_index_fill, (4, 3))


def f_index_fill2(x):
    y = tl.zeros_like(x).index_fill_(0, tl.tensor([0, 2]), 1.0)
    return x * y


reg("index_fill_like", f_index_fill2, (4, 3))


def f_index_add(x):
    y = tl.zeros(4, 3)
    y.index_add_(0, tl.tensor([0, 2, 0]), x[:3])
    return y * x


reg("index_add_made", f_index_add, (4, 3))


def f_scatter(x):
    y = tl.zeros(4, 3)
    y.scatter_(1, tl.tensor([[0], [1], [2], [0]]), 1.0)
    return y * x


reg("scatter_made", f_scatter, (4, 3))


def f_scatter_add(x):
    y = tl.zeros(4, 3)
    y.scatter_add_(1, tl.tensor([[0, 1, 1], [1, 0, 0], [2, 2, 2], [0, 0, 0]]), x)
    return y * 2


reg("scatter_add_made", f_scatter_add, (4, 3))


def f_masked_fill(x):
    m = tl.arange(12).reshape(4, 3) % 2 == 0
    y = tl.ones(4, 3)
    y.masked_fill_(m, -1.0)
    return x * y


reg("masked_fill_made", f_masked_fill, (4, 3))


def f_masked_fill_inf(x):
    m = tl.ones(4, 4, dtype=tl.bool).triu(1)
    return (x @ x.T).masked_fill(m, float("-inf")).softmax(-1)


reg("causal", f_masked_fill_inf, (4, 3))


def f_fill_diag(x):
    y = tl.zeros(3, 3)
    y.fill_diagonal_(2.0)
    return x @ y


reg("fill_diagonal", f_fill_diag, (4, 3))


def f_setitem(x):
    y = tl.zeros(4, 3)
    y[1] = x[0]
    y[:, 2] = 5
    y[tl.tensor([0, 3])] = x[:2] * 2
    return y


reg("setitem_made", f_setitem, (4, 3))


def f_setitem_mask(x):
    y = x.clone()
    y[x > 0] = 0.0
    return y


reg("setitem_mask", f_setitem_mask, (4, 3))


def f_arange_inplace(x):
    i = tl.arange(3.0)
    i += 1
    i.mul_(2)
    return x * i


reg("arange_inplace", f_arange_inplace, (4, 3))


def f_const_then_read(x):
    c = tl.tensor([1.0, 2.0, 3.0])
    a = x * c
    a = a.detach()
    c.add_(1)
    b = (x * c).detach()
    c.zero_()
    return a, b, c


reg("const_written_between", f_const_then_read, (4, 3))


def f_view_write(x):
    y = x * 1
    v = y[1:3]
    v.mul_(2)
    w = y.view(-1)
    w[0] = 7
    return y, v, w.sum()


reg("view_writes", f_view_write, (4, 3))


def f_view_of_made(x):
    y = tl.zeros(6)
    v = y.view(2, 3)
    v[0] = x[0]
    v[1].copy_(x[1])
    return y * 2, v.sum(0)


reg("view_of_made", f_view_of_made, (4, 3))


def f_t_view(x):
    y = x.clone()
    y.t().mul_(tl.tensor([[1.0], [2.0], [3.0]]))
    return y


reg("t_view", f_t_view, (4, 3))


def f_diag_view(x):
    y = x.clone()
    y.diagonal().zero_()
    return y * x


reg("diag_view", f_diag_view, (3, 3))


def f_split_views(x):
    y = x.detach() * 2
    a, b = y.split(2)
    a.add_(1)
    b.mul_(3)
    return y * x, a, b


reg("split_views", f_split_views, (4, 3))


def f_expand_write(x):
    y = tl.zeros(3)
    e = y.expand(4, 3)
    y.add_(1)
    return e * x


reg("expand_then_base_write", f_expand_write, (4, 3))


def f_relu_(x):
    y = x * 1
    F.relu(y, inplace=True)
    return y


reg("relu_inplace", f_relu_, (4, 3))


def f_arg_write(x):
    x.mul_(2)
    x[0] = 1
    return x + 1


reg("arg_write", f_arg_write, (4, 3), grad=False)


def f_arg_write_ret(x):
    return x.add_(1)


reg("arg_write_returned", f_arg_write_ret, (4, 3), grad=False)


def f_arg_view_write(x):
    x.t()[0].zero_()
    return x.sum()


reg("arg_view_write", f_arg_view_write, (4, 3), grad=False)


def f_arg_write_leaf_nograd(x):
    with tl.no_grad():
        x.mul_(2)
    return x * 3


reg("arg_leaf_write_nograd", f_arg_write_leaf_nograd, (4, 3))


def f_ret_arg(x, y):
    return x, y, x + y, x


reg("outputs_are_inputs", f_ret_arg, (4, 3), (4, 3))


def f_ret_view(x):
    return x[0], x.t(), x.view(-1), x.reshape(3, 4)


reg("views_returned", f_ret_view, (4, 3))


def f_ret_view_made(x):
    y = x * 2
    return y[0], y.t(), y


reg("views_of_made_returned", f_ret_view_made, (4, 3))


def f_none(x):
    x * 2
    return None


reg("none", f_none, (4, 3))


def f_nest(x):
    return {"a": [x * 2, None, 3, "s"], "b": (x.sum(), {"c": x.exp()}), "d": ()}


reg("nested", f_nest, (4, 3))


def f_const_ret(x):
    return tl.zeros(2), tl.tensor([1, 2]), x


reg("constants_returned", f_const_ret, (4, 3))


def f_same_twice(x):
    y = x.sin()
    return y, y, [y]


reg("same_output_twice", f_same_twice, (4, 3))
reg("namedtuple", lambda x: NT(x * 2, x.sum()), (4, 3))


def f_dtypes(x):
    y = x.double() * 2
    z = (x > 0).long().sum() + x.int()
    return y, z, y.float().half(), x.to(tl.bfloat16) * 2


reg("dtypes", f_dtypes, (4, 3))


def f_to_same(x):
    return x.to(tl.float32), x.float() * 2, x.contiguous()


reg("to_same", f_to_same, (4, 3))


def f_rand(x):
    a = tl.rand(4, 3) + tl.randn(3)
    b = tl.randperm(4)
    c = tl.randint(0, 4, (2,))
    d = tl.empty(3).uniform_(0, 1)
    e = tl.empty(4, 3).normal_()
    m = tl.bernoulli(tl.full((4, 3), 0.5))
    return x * a + d, x[b], x[c], e, m


reg("random", f_rand, (4, 3))


def f_bern_(x):
    y = tl.zeros(4, 3)
    y.bernoulli_(0.3)
    return x * y


reg("bernoulli_", f_bern_, (4, 3))


def f_rand_like(x):
    return x * tl.rand_like(x) + tl.randn_like(x) + tl.randint_like(x, 5)


reg("rand_like", f_rand_like, (4, 3))


def f_multinomial(x):
    return x[tl.multinomial(tl.tensor([0.1, 0.2, 0.3, 0.4]), 3)]


reg("multinomial", f_multinomial, (4, 3))
reg("dropout", lambda x: F.dropout(x, 0.4) * F.dropout(x, 0.2), (4, 3))
reg(
    "dropout_fns",
    lambda x: (
        F.alpha_dropout(x, 0.4, True)
        + F.dropout1d(x[None], 0.5)[0]
        + F.feature_alpha_dropout(x[None], 0.3, True)[0]
    ),
    (4, 3),
)
reg("gumbel", lambda x: F.gumbel_softmax(x), (4, 3))
reg("gumbel_hard", lambda x: F.gumbel_softmax(x, hard=True), (4, 3))
reg("rrelu", lambda x: F.rrelu(x, training=True), (4, 3))


def f_gen(x):
    g = tl.Generator().manual_seed(3)
    return x * tl.rand(3, generator=g)


reg("own_generator_inside", f_gen, (4, 3))


def f_seed(x):
    tl.manual_seed(5)
    return x * tl.rand(3)


reg("manual_seed_inside", f_seed, (4, 3))


def f_nograd(x):
    with tl.no_grad():
        y = x * 2
    return y * x + y


reg("no_grad_block", f_nograd, (4, 3))


def f_detach(x):
    return x * x.detach() + x.sin().detach() * x


reg("detach", f_detach, (4, 3))


def f_enable(x):
    with tl.no_grad():
        with tl.enable_grad():
            y = x * 2
        z = x * 3
    return y + z


reg("enable_in_no_grad", f_enable, (4, 3))


def f_inf(x):
    with tl.inference_mode():
        y = x * 2
    return y


reg("inference_mode", f_inf, (4, 3))


def f_setgrad(x):
    tl.set_grad_enabled(False)
    y = x * 2
    tl.set_grad_enabled(True)
    return y * x


reg("set_grad_enabled", f_setgrad, (4, 3))
reg("nonzero", lambda x: x[(x > 0).nonzero()[:, 0]] * 2, (4, 3))
reg("masked_select", lambda x: x.masked_select(x > 0).sum(), (4, 3))
reg("bool_index", lambda x: x[x > 0] * 2, (4, 3))
reg("where1", lambda x: x[tl.where(x > 0)], (4, 3))
reg("unique", lambda x: (x > 0).long().unique(), (4, 3))
reg("item", lambda x: x * x.sum().item(), (4, 3))
reg("if", lambda x: x * 2 if x.sum() > 0 else x * 3, (4, 3))
reg("float", lambda x: x * float(x.sum()), (4, 3))
reg("tolist", lambda x: x * sum(x[0].tolist()), (4, 3))
reg("max_len", lambda x: x * int((x > 0).sum()), (4, 3))


def f_numpy(x):
    import numpy as np

    return x * tl.from_numpy(np.sin(x.detach().numpy()))


reg("numpy", f_numpy, (4, 3))
