"""Functions to compile: arguments that are one memory, branches and loops, more of states."""

import tensorlib as tl
from compiled_cases import case, normal
from tensorlib import nn

F = nn.functional


@case
def clip():
    m = nn.Linear(3, 2)
    m.weight.data = normal(2, 3, seed=1, grad=False)
    m.bias.data = normal(2, seed=2, grad=False)
    o = tl.optim.Adam(m.parameters())

    def f(x):
        o.zero_grad()
        loss = m(x).square().sum()
        loss.backward()
        n = nn.utils.clip_grad_norm_(m.parameters(), 0.5)
        o.step()
        return loss.detach(), n

    return f, lambda i: (normal(4, 3, seed=i, grad=False),), [m]


@case
def clip_value():
    m = nn.Linear(3, 2)
    m.weight.data = normal(2, 3, seed=1, grad=False)
    m.bias.data = normal(2, seed=2, grad=False)
    o = tl.optim.Adam(m.parameters())

    def f(x):
        o.zero_grad()
        loss = m(x).square().sum()
        loss.backward()
        nn.utils.clip_grad_value_(m.parameters(), 0.5)
        o.step()
        return loss.detach()

    return f, lambda i: (normal(4, 3, seed=i, grad=False),), [m]


@case
def grad_edit():
    w = normal(3, seed=4)
    o = tl.optim.SGD([w], lr=0.1)

    def f(x):
        o.zero_grad()
        (x * w).sum().backward()
        w.grad.mul_(0.5)
        w.grad = w.grad + 1
        o.step()
        return w.detach().sum()

    return f, lambda i: (normal(4, 3, seed=i, grad=False),), [w]


@case
def manual_sgd():
    w = normal(3, seed=4)

    def f(x):
        (g,) = tl.autograd.grad((x * w).tanh().sum(), [w])
        with tl.no_grad():
            w.sub_(0.1 * g)
            w.add_(g, alpha=-0.1)
        return (x * w).sum().detach()

    return f, lambda i: (normal(4, 3, seed=i, grad=False),), [w]


@case
def zero_grad_not_none():
    w = normal(3, seed=4)
    w.grad = tl.zeros(3)
    o = tl.optim.SGD([w], lr=0.1)

    def f(x):
        o.zero_grad(set_to_none=False)
        (x * w).sum().backward()
        o.step()
        return w.detach().sum()

    return f, lambda i: (normal(4, 3, seed=i, grad=False),), [w]


@case
def scheduler():
    w = normal(3, seed=4)
    o = tl.optim.SGD([w], lr=0.1)
    s = tl.optim.lr_scheduler.StepLR(o, 2)

    def f(x):
        o.zero_grad()
        (x * w).sum().backward()
        o.step()
        return w.detach().sum()

    def go(x):
        r = f(x)
        s.step()
        return r

    return go, lambda i: (normal(4, 3, seed=i, grad=False),), [w]


@case
def scheduler_inside():
    w = normal(3, seed=4)
    o = tl.optim.SGD([w], lr=0.1)
    s = tl.optim.lr_scheduler.StepLR(o, 2)

    def f(x):
        o.zero_grad()
        (x * w).sum().backward()
        o.step()
        s.step()
        return w.detach().sum()

    return f, lambda i: (normal(4, 3, seed=i, grad=False),), [w]


@case
def tensor_hook():
    def f(x):
        y = x * 2
        y.register_hook(lambda g: g * 3)
        return y.sin()

    return f, lambda i: (normal(4, 3, seed=i),), []


@case
def tensor_hook_param():
    w = normal(3, seed=4)
    w.register_hook(lambda g: g * 3)

    def f(x):
        return (x * w).sin()

    return f, lambda i: (normal(4, 3, seed=i),), [w]


@case
def lr_set_inside():
    w = normal(3, seed=4)
    o = tl.optim.SGD([w], lr=0.1)

    def f(x):
        o.zero_grad()
        (x * w).sum().backward()
        o.param_groups[0]["lr"] *= 0.5
        o.step()
        return w.detach().sum()

    return f, lambda i: (normal(4, 3, seed=i, grad=False),), [w]


@case
def two_models_two_optims():
    a, b = normal(3, seed=4), normal(3, seed=5)
    o, p = tl.optim.SGD([a], lr=0.1), tl.optim.Adam([b], lr=0.1)

    def f(x):
        p.zero_grad()
        ((x * a).tanh() * b).sum().backward()
        p.step()
        o.zero_grad()
        (x * a * b.detach()).sum().backward()
        o.step()
        return a.detach().sum() + b.detach().sum()

    return f, lambda i: (normal(4, 3, seed=i, grad=False),), [a, b]


@case
def create_graph_false_grad_used():
    w = normal(3, seed=4)

    def f(x):
        (g,) = tl.autograd.grad((x * w * w).sum(), [w])
        return (g * x * w).sum(0)

    return f, lambda i: (normal(4, 3, seed=i),), [w]


@case
def create_graph_used():
    w = normal(3, seed=4)

    def f(x):
        (g,) = tl.autograd.grad((x * w * w).sin().sum(), [w], create_graph=True)
        return (g * x * w).sum(0)

    return f, lambda i: (normal(4, 3, seed=i),), [w]


@case
def module_attr_state():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.l = nn.Linear(3, 3)
            self.h = tl.zeros(3)

        def forward(self, x):
            self.h = (self.l(x)[0] + self.h).tanh().detach()
            return self.h * x

    tl.manual_seed(0)
    m = M()
    return m, lambda i: (normal(4, 3, seed=i),), [m]


@case
def nonlocal_state():
    h = tl.zeros(3)

    def f(x):
        nonlocal h
        h = h + x.detach()[0]
        return h * x

    return f, lambda i: (normal(4, 3, seed=i),), []


@case
def embedding_bag():
    tl.manual_seed(0)
    m = nn.EmbeddingBag(10, 4)
    return m, lambda i: (tl.tensor([[1, 2], [0, 5 + i]]),), [m]


@case
def max_norm_embedding():
    tl.manual_seed(0)
    m = nn.Embedding(10, 4, max_norm=1.0)
    return m, lambda i: (tl.tensor([[1, 2], [0, 5 + i]]),), [m]


@case
def ce_loss():
    return (
        (
            lambda x, t: (
                F.cross_entropy(x, t, label_smoothing=0.1)
                + F.nll_loss(x.log_softmax(1), t, ignore_index=1)
            )
        ),
        lambda i: (normal(4, 3, seed=i), tl.tensor([0, 1, 2, i % 3])),
        [],
    )


@case
def cond_nested():
    w = normal(3, seed=3)

    def f(x):
        def inner(a):
            return tl.cond(a.sum() > 0.5, lambda: a * w, lambda: (a - w).sin())

        return tl.cond(x.sum() > 0, lambda: inner(x * 2), lambda: inner(x))

    return f, lambda i: (normal(4, 3, seed=i),), [w]


@case
def while_in_scan():
    w = normal(3, seed=3)

    def f(x):
        def step(c, r):
            n, v = tl.while_loop(
                lambda n, v: (v.abs().sum() < 4) & (n < 5),
                lambda n, v: (n + 1, v * 1.5 + w),
                (tl.tensor(0), r),
            )
            return (c + v).tanh(), v

        return tl.scan(step, tl.zeros(3), x)

    return f, lambda i: (normal(4, 3, seed=i),), [w]


@case
def scan_with_rand():
    def f(x):
        return tl.scan(lambda c, r: (c + r * tl.rand(3), c), tl.zeros(3), x)

    return f, lambda i: (normal(4, 3, seed=i),), []


@case
def cond_step():
    w = normal(3, seed=3)
    o = tl.optim.Adam([w], lr=0.1)

    def f(x):
        o.zero_grad()
        loss = tl.cond(x.sum() > 0, lambda: (x * w).sum(), lambda: (x - w).square().sum())
        loss.backward()
        o.step()
        return loss.detach()

    return f, lambda i: (normal(4, 3, seed=i, grad=False),), [w]


@case
def accumulated_with_a_graph():
    w = normal(3, seed=4)

    def f(x):
        w.grad = None
        (x * w * w).sum().backward(create_graph=True)
        return (w.grad.detach() * x).sum(0)

    return f, lambda i: (normal(4, 3, seed=i),), [w]
