"""Functions to compile that have a state: tensors from outside, modules, arguments."""

import tensorlib as tl
from compiled_cases import case, normal
from tensorlib import nn


@case
def outer_generator():
    g = tl.Generator().manual_seed(3)
    return (lambda x: x * tl.rand(3, generator=g)), lambda i: (normal(4, 3, seed=i),), []


@case
def side_effect_state():
    s = tl.zeros(3)

    def f(x):
        s.add_(x.detach().sum(0))
        return x * s

    return f, lambda i: (normal(4, 3, seed=i),), [s]


@case
def side_effect_setitem():
    s = tl.zeros(5, 3)

    def f(x):
        s[1] = x.detach()[0]
        s[2:4].mul_(2).add_(1)
        s.view(-1)[0] += 1
        return x * s[3]

    return f, lambda i: (normal(4, 3, seed=i),), [s]


@case
def state_rebound():
    h = {"s": tl.zeros(3)}

    def f(x):
        h["s"] = h["s"] + x.detach()[0]
        return x * h["s"]

    return f, lambda i: (normal(4, 3, seed=i),), [h]


@case
def list_stack():
    def f(x):
        parts = []
        for i in range(4):
            parts.append(x[i] * i)
            if len(parts) > 2:
                parts.pop(0)
        return tl.stack(parts), tl.cat(parts)

    return f, lambda i: (normal(4, 3, seed=i),), []


@case
def param_data_write():
    w = normal(3, seed=5)

    def f(x):
        with tl.no_grad():
            w.mul_(0.5)
        return x * w

    return f, lambda i: (normal(4, 3, seed=i),), [w]


@case
def param_data_write2():
    w = normal(3, seed=5)

    def f(x):
        y = x * w
        w.data.mul_(0.5)
        return y

    return f, lambda i: (normal(4, 3, seed=i, grad=False),), [w]


@case
def param_data_assign():
    w = normal(3, seed=5)

    def f(x):
        w.data = w.data * 0.5
        return x * w

    return f, lambda i: (normal(4, 3, seed=i),), [w]


@case
def batchnorm():
    m = nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Dropout(0.2))
    for k, p in enumerate(m.parameters()):
        p.data = normal(*p.shape, seed=k, grad=False)
    return m, lambda i: (normal(4, 3, seed=i),), [m]


@case
def batchnorm_eval():
    m = nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5), nn.ReLU())
    for k, p in enumerate(m.parameters()):
        p.data = normal(*p.shape, seed=k, grad=False)
    m.eval()
    return m, lambda i: (normal(4, 3, seed=i),), [m]


@case
def batchnorm_cumulative():
    m = nn.BatchNorm1d(3, momentum=None)
    return m, lambda i: (normal(4, 3, seed=i),), [m]


@case
def layers():
    tl.manual_seed(0)
    m = nn.Sequential(
        nn.Conv2d(2, 3, 3, padding=1),
        nn.BatchNorm2d(3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(12, 4),
        nn.LayerNorm(4),
        nn.GELU(),
    )
    return m, lambda i: (normal(2, 2, 4, 4, seed=i),), [m]


@case
def lstm():
    tl.manual_seed(0)
    m = nn.LSTM(3, 4, num_layers=2, dropout=0.3)
    return m, lambda i: (normal(5, 2, 3, seed=i),), [m]


@case
def gru():
    tl.manual_seed(0)
    m = nn.GRU(3, 4, bidirectional=True)
    return m, lambda i: (normal(5, 2, 3, seed=i),), [m]


@case
def embedding():
    tl.manual_seed(0)
    m = nn.Embedding(10, 4, padding_idx=0)
    return m, lambda i: (tl.tensor([[1, 2], [0, 5 + i]]),), [m]


@case
def mha():
    tl.manual_seed(0)
    m = nn.MultiheadAttention(4, 2, dropout=0.1, batch_first=True)
    return (lambda x: m(x, x, x)), lambda i: (normal(2, 3, 4, seed=i),), [m]


@case
def transformer():
    tl.manual_seed(0)
    m = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
    return m, lambda i: (normal(2, 3, 4, seed=i),), [m]


@case
def spectral():
    tl.manual_seed(0)
    m = nn.utils.parametrizations.spectral_norm(nn.Linear(3, 4))
    return m, lambda i: (normal(2, 3, seed=i),), [m]


@case
def weight_norm():
    tl.manual_seed(0)
    m = nn.utils.parametrizations.weight_norm(nn.Linear(3, 4))
    return m, lambda i: (normal(2, 3, seed=i),), [m]


@case
def kwargs_case():
    def f(x, *, scale=1, bias=None):
        return x * scale if bias is None else x * scale + bias

    return f, lambda i: ((normal(4, 3, seed=i),), {"scale": 2, "bias": normal(3, seed=i + 50)}), []


@case
def containers_in():
    def f(d, items):
        return d["a"] * items[0] + items[1][0]

    return f, lambda i: ({"a": normal(4, 3, seed=i)},
                         [normal(3, seed=i + 50), (normal(3, seed=i + 60),)]), []


@case
def container_mutated():
    def f(d, items):
        items.append(d["a"] * 2)
        d["b"] = d["a"] * 3
        return d["a"] * 4

    def go(d):
        items = []
        out = f(d, items)
        return out, items, d

    return go, lambda i: ({"a": normal(4, 3, seed=i)},), []


@case
def arg_list_appended():
    def f(d, items):
        items.append(d * 2)
        return d * 4

    return f, lambda i: (normal(4, 3, seed=i), []), []


@case
def arg_attr():
    class Bag:
        pass

    def f(x, b):
        b.y = x * 2
        return b.y + 1

    b = Bag()
    return f, lambda i: (normal(4, 3, seed=i), b), []


@case
def aliased_args():
    def f(x, v):
        v.mul_(2)
        return x + 1, v

    def make(i):
        x = normal(4, 3, seed=i, grad=False)
        return (x, x[1:3])

    return f, make, []


@case
def aliased_args2():
    def f(x, v):
        x.mul_(2)
        return v + 1, x * v[0]

    def make(i):
        x = normal(4, 3, seed=i, grad=False)
        return (x, x[1:3])

    return f, make, []


@case
def aliased_args3():
    def f(x, v):
        y = v * 1
        x.add_(1)
        return v * 2 + y

    def make(i):
        x = normal(4, 3, seed=i, grad=False)
        return (x, x.view(-1)[:3])

    return f, make, []


@case
def alias_arg_captured():
    w = tl.ones(4, 3)

    def f(v):
        w.mul_(2)
        return v + 1

    return f, lambda i: (w[1],), [w]


@case
def alias_arg_captured2():
    w = tl.ones(4, 3)

    def f(v):
        v.mul_(2)
        return w + 1

    return f, lambda i: (w[1],), [w]


@case
def swapped_grads():
    w = normal(3, seed=4)

    def f(x):
        (x * w).sum().backward()
        g = w.grad.clone()
        w.grad = None
        return g * 2

    return f, lambda i: (normal(4, 3, seed=i, grad=False),), [w]


@case
def grad_accumulate():
    w = normal(3, seed=4)

    def f(x):
        (x * w).sum().backward()
        return w.grad * 1

    return f, lambda i: (normal(4, 3, seed=i, grad=False),), [w]


@case
def two_backwards():
    w = normal(3, seed=4)

    def f(x):
        w.grad = None
        (x * w).sum().backward()
        (x * w * w).sum().backward()
        return w.grad * 1

    return f, lambda i: (normal(4, 3, seed=i, grad=False),), [w]


@case
def autograd_grad_inside():
    w = normal(3, seed=4)

    def f(x):
        (g,) = tl.autograd.grad((x * w * w).sum(), [w])
        return g * x

    return f, lambda i: (normal(4, 3, seed=i, grad=False),), [w]


@case
def autograd_grad_arg():
    def f(x):
        (g,) = tl.autograd.grad((x**3).sum(), [x], create_graph=True)
        return g

    return f, lambda i: (normal(4, 3, seed=i),), []


@case
def grad_penalty():
    w = normal(3, seed=4)
    o = tl.optim.SGD([w], lr=0.1)

    def f(x):
        o.zero_grad()
        loss = ((x * w).tanh()).sum()
        (g,) = tl.autograd.grad(loss, [w], create_graph=True)
        (loss + (g * g).sum()).backward()
        o.step()
        return loss.detach()

    return f, lambda i: (normal(4, 3, seed=i, grad=False),), [w]
