"""Functions to compile that take gradients, have hooks or transforms, or branch and loop."""

import tensorlib as tl
from compiled_cases import case, normal
from tensorlib import nn

F = nn.functional


@case
def tensor_hook_step():
    w = normal(3, seed=4)
    w.register_hook(lambda g: g * 3)

    def f(x):
        w.grad = None
        (x * w).sin().sum().backward()
        return w.grad * 1

    return f, lambda i: (normal(4, 3, seed=i, grad=False),), [w]


@case
def tensor_hook_inside_step():
    w = normal(3, seed=4)

    def f(x):
        w.grad = None
        y = x * w
        y.register_hook(lambda g: g * 3)
        y.sin().sum().backward()
        return w.grad * 1

    return f, lambda i: (normal(4, 3, seed=i, grad=False),), [w]


@case
def post_accumulate_hook():
    w = normal(3, seed=4)

    def h(p):
        with tl.no_grad():
            p.grad.mul_(2)

    w.register_post_accumulate_grad_hook(h)

    def f(x):
        w.grad = None
        (x * w).sin().sum().backward()
        return w.grad * 1

    return f, lambda i: (normal(4, 3, seed=i, grad=False),), [w]


@case
def retain_grad():
    w = normal(3, seed=4)

    def f(x):
        w.grad = None
        y = x * w
        y.retain_grad()
        y.sin().sum().backward()
        return y.grad * 1

    return f, lambda i: (normal(4, 3, seed=i, grad=False),), [w]


@case
def arg_hook():
    def make(i):
        x = normal(4, 3, seed=i)
        x.register_hook(lambda g: g * 3)
        return (x,)

    return (lambda x: x.sin()), make, []


@case
def forward_hook():
    m = nn.Linear(3, 2)
    m.weight.data = normal(2, 3, seed=1, grad=False)
    m.bias.data = normal(2, seed=2, grad=False)
    calls = []
    m.register_forward_hook(lambda mod, a, out: (calls.append(1), out * 2)[1])
    return m, lambda i: (normal(4, 3, seed=i),), [m]


@case
def forward_hook_late():
    m = nn.Linear(3, 2)
    m.weight.data = normal(2, 3, seed=1, grad=False)
    m.bias.data = normal(2, seed=2, grad=False)

    def make(i):
        if i == 2:
            m.register_forward_hook(lambda mod, a, out: out * 2)
        return (normal(4, 3, seed=i),)

    return m, make, [m]


@case
def backward_hook():
    m = nn.Linear(3, 2)
    m.weight.data = normal(2, 3, seed=1, grad=False)
    m.bias.data = normal(2, seed=2, grad=False)
    m.register_full_backward_hook(
        lambda mod, gi, go: tuple(g * 2 if g is not None else None for g in gi)
    )
    return m, lambda i: (normal(4, 3, seed=i),), [m]


@case
def param_hook_late():
    w = normal(3, seed=4)

    def make(i):
        if i == 2:
            w.register_hook(lambda g: g * 5)
        return (normal(4, 3, seed=i, grad=False),)

    def f(x):
        w.grad = None
        (x * w).sin().sum().backward()
        return w.grad * 1

    return f, make, [w]


@case
def saved_hooks():
    def f(x):
        with tl.autograd.graph.saved_tensors_hooks(lambda t: t * 2, lambda t: t):
            return x.sin().exp()

    return f, lambda i: (normal(4, 3, seed=i),), []


@case
def checkpointed():
    m = nn.Linear(3, 3)
    m.weight.data = normal(3, 3, seed=1, grad=False)
    m.bias.data = normal(3, seed=2, grad=False)
    from tensorlib.utils.checkpoint import checkpoint

    return (
        (lambda x: checkpoint(lambda y: m(y).tanh(), x, use_reentrant=False)),
        lambda i: (normal(4, 3, seed=i),),
        [m],
    )


@case
def nested_compiled():
    g = tl.compile(lambda x: x.sin() * 2)
    return (lambda x: g(x) + g(x * 2)), lambda i: (normal(4, 3, seed=i),), []


@case
def func_grad():
    return (
        (lambda x: tl.func.grad(lambda y: (y.sin() * x).sum())(x)),
        lambda i: (normal(4, 3, seed=i),),
        [],
    )


@case
def func_vjp():
    def f(x):
        out, pull = tl.func.vjp(lambda y: y.tanh() * y, x)
        return pull(tl.ones_like(out))[0] * out

    return f, lambda i: (normal(4, 3, seed=i),), []


@case
def func_vjp_nograd():
    def f(x):
        out, pull = tl.func.vjp(lambda y: y.tanh() * y, x)
        return pull(tl.ones_like(out))[0] * out

    return f, lambda i: (normal(4, 3, seed=i, grad=False),), []


@case
def func_jvp():
    return (
        (lambda x: tl.func.jvp(lambda y: y.tanh() * y, (x,), (tl.ones_like(x),))),
        lambda i: (normal(4, 3, seed=i, grad=False),),
        [],
    )


@case
def func_vmap():
    return (
        (lambda x: tl.func.vmap(lambda r: r.sin() * r.sum())(x)),
        lambda i: (normal(4, 3, seed=i),),
        [],
    )


@case
def func_jacrev():
    return (
        (lambda x: tl.func.jacrev(lambda y: (y**3).sum(0))(x)),
        lambda i: (normal(4, 3, seed=i, grad=False),),
        [],
    )


@case
def func_hessian():
    return (
        (lambda x: tl.func.hessian(lambda y: (y**3).sum())(x)),
        lambda i: (normal(3, seed=i, grad=False),),
        [],
    )


@case
def func_perex():
    w = normal(3, seed=4)
    return (
        (
            lambda x: tl.func.vmap(tl.func.grad(lambda p, r: (p * r).sum().tanh()), (None, 0))(
                w.detach(), x
            )
        ),
        lambda i: (normal(4, 3, seed=i, grad=False),),
        [],
    )


@case
def functional_call():
    m = nn.Linear(3, 3)
    m.weight.data = normal(3, 3, seed=1, grad=False)
    m.bias.data = normal(3, seed=2, grad=False)
    return (
        (lambda x: tl.func.functional_call(m, {"weight": x[:3] * 2, "bias": x[3]}, (x,))),
        lambda i: (normal(4, 3, seed=i),),
        [m],
    )


@case
def custom_function():
    class Five(tl.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.exp()

        @staticmethod
        def backward(ctx, g):
            return g * 5

    return (lambda x: Five.apply(x * 2) + 1), lambda i: (normal(4, 3, seed=i),), []


@case
def scan_param():
    w = normal(3, 3, seed=7)
    o = tl.optim.SGD([w], lr=0.1)

    def f(x):
        o.zero_grad()
        last, ys = tl.scan(lambda c, r: ((c @ w + r).tanh(), c * 2), tl.zeros(3), x)
        loss = (last * last).sum() + ys.sum()
        loss.backward()
        o.step()
        return loss.detach()

    return f, lambda i: (normal(4, 3, seed=i, grad=False),), [w]


@case
def case_switch():
    def f(x):
        a = tl.case([(x.sum() < -1, lambda: x * 2), (x.sum() < 1, lambda: x * 3)], lambda: x * 4)
        i = (x > 0).sum() % 3
        return tl.switch_case(i, [lambda: a + 1, lambda: a.sin(), lambda: a * a])

    return f, lambda i: (normal(4, 3, seed=i),), []


@case
def cond_writes():
    s = tl.zeros(3)

    def f(x):
        def up():
            s.add_(1)
            return x * s

        return tl.cond(x.sum() > 0, up, lambda: x * 2)

    return f, lambda i: (normal(4, 3, seed=i),), [s]


@case
def cond_writes_made():
    def f(x):
        s = tl.zeros(3) + x.detach()[0]

        def up():
            s.add_(1)
            return x * s

        return tl.cond(x.sum() > 0, up, lambda: x * 2), s

    return f, lambda i: (normal(4, 3, seed=i),), []


@case
def out_argument():
    def f(x):
        y = tl.empty(4, 3)
        tl.mul(x, 2, out=y)
        return y + 1

    return f, lambda i: (normal(4, 3, seed=i, grad=False),), []


@case
def detach_outside_write():
    w = tl.ones(4, 3)

    def f(x):
        w.detach().add_(x.detach())
        return w * x

    return f, lambda i: (normal(4, 3, seed=i),), [w]


@case
def grads_read():
    w = normal(3, seed=4)
    w.grad = tl.ones(3)

    def f(x):
        return w.grad * x

    def make(i):
        w.grad = tl.full((3,), i + 1.0)
        return (normal(4, 3, seed=i, grad=False),)

    return f, make, [w]


@case
def step_alone():
    w = normal(3, seed=4)
    o = tl.optim.SGD([w], lr=0.1)

    def f(x):
        o.step()
        return x * 2

    def make(i):
        w.grad = tl.full((3,), i + 1.0)
        return (normal(4, 3, seed=i, grad=False),)

    return f, make, [w]


@case
def zero_grad_alone():
    w = normal(3, seed=4)
    o = tl.optim.SGD([w], lr=0.1)

    def f(x):
        o.zero_grad()
        return x * 2

    def make(i):
        w.grad = tl.full((3,), i + 1.0)
        return (normal(4, 3, seed=i, grad=False),)

    return f, make, [w]
