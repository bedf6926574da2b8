"""Functions to compile: writes in place, views, containers, random numbers, modes."""

import tensorlib as tl
from compiled_cases import Pair, add, of_tensors
from tensorlib import nn

F = nn.functional


@of_tensors((4, 3))
def index_fill_made(x):
    y = tl.zeros(4, 3)
    y.index_fill_(0, tl.tensor([0, 2]), 1.0)
    return x * y


@of_tensors((4, 3))
def index_fill_like(x):
    y = tl.zeros_like(x).index_fill_(0, tl.tensor([0, 2]), 1.0)
    return x * y


@of_tensors((4, 3))
def index_add_made(x):
    y = tl.zeros(4, 3)
    y.index_add_(0, tl.tensor([0, 2, 0]), x[:3])
    return y * x


@of_tensors((4, 3))
def scatter_made(x):
    y = tl.zeros(4, 3)
    y.scatter_(1, tl.tensor([[0], [1], [2], [0]]), 1.0)
    return y * x


@of_tensors((4, 3))
def scatter_add_made(x):
    y = tl.zeros(4, 3)
    y.scatter_add_(1, tl.tensor([[0, 1, 1], [1, 0, 0], [2, 2, 2], [0, 0, 0]]), x)
    return y * 2


@of_tensors((4, 3))
def masked_fill_made(x):
    m = tl.arange(12).reshape(4, 3) % 2 == 0
    y = tl.ones(4, 3)
    y.masked_fill_(m, -1.0)
    return x * y


@of_tensors((4, 3))
def causal_mask(x):
    m = tl.ones(4, 4, dtype=tl.bool).triu(1)
    return (x @ x.T).masked_fill(m, float("-inf")).softmax(-1)


@of_tensors((4, 3))
def fill_diagonal(x):
    y = tl.zeros(3, 3)
    y.fill_diagonal_(2.0)
    return x @ y


@of_tensors((4, 3))
def elements_set_in_a_made_tensor(x):
    y = tl.zeros(4, 3)
    y[1] = x[0]
    y[:, 2] = 5
    y[tl.tensor([0, 3])] = x[:2] * 2
    return y


@of_tensors((4, 3))
def elements_set_by_a_mask(x):
    y = x.clone()
    y[x > 0] = 0.0
    y[1:][y[1:] < -1] = tl.tensor(-1.0)
    return y


@of_tensors((4, 3))
def several_set_by_a_mask(x):
    y = x.clone()
    y[x > 0] = x[0, :1]
    return y


@of_tensors((4, 3))
def range_written(x):
    i = tl.arange(3.0)
    i += 1
    i.mul_(2)
    return x * i


@of_tensors((4, 3))
def constant_written_between_reads(x):
    c = tl.tensor([1.0, 2.0, 3.0])
    a = x * c
    a = a.detach()
    c.add_(1)
    b = (x * c).detach()
    c.zero_()
    return a, b, c


@of_tensors((4, 3))
def view_writes(x):
    y = x * 1
    v = y[1:3]
    v.mul_(2)
    w = y.view(-1)
    w[0] = 7
    return y, v, w.sum()


@of_tensors((4, 3))
def view_of_made(x):
    y = tl.zeros(6)
    v = y.view(2, 3)
    v[0] = x[0]
    v[1].copy_(x[1])
    return y * 2, v.sum(0)


@of_tensors((4, 3))
def write_through_a_transpose(x):
    y = x.clone()
    y.t().mul_(tl.tensor([[1.0], [2.0], [3.0]]))
    return y


@of_tensors((3, 3))
def write_through_a_diagonal(x):
    y = x.clone()
    y.diagonal().zero_()
    return y * x


@of_tensors((4, 3))
def split_views(x):
    y = x.detach() * 2
    a, b = y.split(2)
    a.add_(1)
    b.mul_(3)
    return y * x, a, b


@of_tensors((4, 3))
def expand_then_base_write(x):
    y = tl.zeros(3)
    e = y.expand(4, 3)
    y.add_(1)
    return e * x


@of_tensors((4, 3))
def relu_inplace(x):
    y = x * 1
    F.relu(y, inplace=True)
    return y


@of_tensors((4, 3), grad=False)
def argument_written(x):
    x.mul_(2)
    x[0] = 1
    return x + 1


@of_tensors((4, 3), grad=False)
def argument_written_and_returned(x):
    return x.add_(1)


@of_tensors((4, 3), grad=False)
def view_of_an_argument_written(x):
    x.t()[0].zero_()
    return x.sum()


@of_tensors((4, 3))
def leaf_argument_written_without_grad(x):
    with tl.no_grad():
        x.mul_(2)
    return x * 3


@of_tensors((4, 3), (4, 3))
def outputs_are_inputs(x, y):
    return x, y, x + y, x


@of_tensors((4, 3))
def views_returned(x):
    return x[0], x.t(), x.view(-1), x.reshape(3, 4)


@of_tensors((4, 3))
def views_of_made_returned(x):
    y = x * 2
    return y[0], y.t(), y


@of_tensors((4, 3))
def nothing_returned_beside(x):
    x * 2
    return None


@of_tensors((4, 3))
def nested_containers_returned(x):
    return {"a": [x * 2, None, 3, "s"], "b": (x.sum(), {"c": x.exp()}), "d": ()}


@of_tensors((4, 3))
def constants_returned(x):
    return tl.zeros(2), tl.tensor([1, 2]), x


@of_tensors((4, 3))
def one_tensor_returned_twice(x):
    y = x.sin()
    return y, y, [y]


@of_tensors((4, 3))
def dtypes_converted(x):
    y = x.double() * 2
    z = (x > 0).long().sum() + x.int()
    return y, z, y.float().half(), x.to(tl.bfloat16) * 2


@of_tensors((4, 3))
def to_same(x):
    return x.to(tl.float32), x.float() * 2, x.contiguous()


@of_tensors((4, 3))
def random_numbers(x):
    a = tl.rand(4, 3) + tl.randn(3)
    b = tl.randperm(4)
    c = tl.randint(0, 4, (2,))
    d = tl.empty(3).uniform_(0, 1)
    e = tl.empty(4, 3).normal_()
    m = tl.bernoulli(tl.full((4, 3), 0.5))
    return x * a + d, x[b], x[c], e, m


@of_tensors((4, 3))
def bernoulli_(x):
    y = tl.zeros(4, 3)
    y.bernoulli_(0.3)
    return x * y


@of_tensors((4, 3))
def rand_like(x):
    return x * tl.rand_like(x) + tl.randn_like(x) + tl.randint_like(x, 5)


@of_tensors((4, 3))
def multinomial(x):
    return x[tl.multinomial(tl.tensor([0.1, 0.2, 0.3, 0.4]), 3)]


@of_tensors((4, 3))
def own_generator_inside(x):
    g = tl.Generator().manual_seed(3)
    return x * tl.rand(3, generator=g)


@of_tensors((4, 3))
def manual_seed_inside(x):
    tl.manual_seed(5)
    return x * tl.rand(3)


@of_tensors((4, 3))
def no_grad_block(x):
    with tl.no_grad():
        y = x * 2
    return y * x + y


@of_tensors((4, 3))
def detach(x):
    return x * x.detach() + x.sin().detach() * x


@of_tensors((4, 3))
def enable_in_no_grad(x):
    with tl.no_grad():
        with tl.enable_grad():
            y = x * 2
        z = x * 3
    return y + z


@of_tensors((4, 3))
def inference_mode(x):
    with tl.inference_mode():
        y = x * 2
    return y


@of_tensors((4, 3))
def set_grad_enabled(x):
    tl.set_grad_enabled(False)
    y = x * 2
    tl.set_grad_enabled(True)
    return y * x


@of_tensors((4, 3))
def by_way_of_numpy(x):
    import numpy as np

    return x * tl.from_numpy(np.sin(x.detach().numpy()))


ONE_LINE = {      # functions of a tensor of shape (4, 3)
    "namedtuple": lambda x: Pair(x * 2, x.sum()),
    "dropout": lambda x: F.dropout(x, 0.4) * F.dropout(x, 0.2),
    "dropout_of_other_kinds": lambda x: (
        F.alpha_dropout(x, 0.4, True) + F.dropout1d(x[None], 0.5)[0]
        + F.feature_alpha_dropout(x[None], 0.3, True)[0]),
    "gumbel": lambda x: F.gumbel_softmax(x),
    "gumbel_hard": lambda x: F.gumbel_softmax(x, hard=True),
    "rrelu": lambda x: F.rrelu(x, training=True),
    "nonzero": lambda x: x[(x > 0).nonzero()[:, 0]] * 2,
    "masked_select": lambda x: x.masked_select(x > 0).sum(),
    "bool_index": lambda x: x[x > 0] * 2,
    "where_of_one_argument": lambda x: x[tl.where(x > 0)],
    "unique": lambda x: (x > 0).long().unique(),
    "item_of_a_sum": lambda x: x * x.sum().item(),
    "truth_of_a_sum": lambda x: x * 2 if x.sum() > 0 else x * 3,
    "float_of_a_sum": lambda x: x * float(x.sum()),
    "list_of_a_row": lambda x: x * sum(x[0].tolist()),
    "int_of_a_count": lambda x: x * int((x > 0).sum()),
}
for name, function in ONE_LINE.items():
    add(name, function, (4, 3))
