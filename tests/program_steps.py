"""What the steps of random programs do, in tensorlib and in PyTorch alike: `programs.py` runs them.

A step is a function of the machine that runs the program (`m`), a value (`x`), the number of
another (`j`), and a number (`c`); it returns what it adds to the values, or None. Numbers that
`spread` gives keep values off the points where a gradient is chosen.
"""

import functools

import tensorlib as tl
from tensorlib import ops


def apart_from_leaves(x):
    """`x`, or a copy where it is a leaf or a view of one."""
    of_a_leaf = x.is_leaf or x._base is not None and x._base.is_leaf
    return x * 1 if of_a_leaf else x


def as_matrix(x):
    return x.reshape(-1, x.shape[-1]) if x.ndim else x.reshape(1, 1)


def detached_sum(x):
    """A value for control flow, off the numbers that programs make exactly."""
    return x.detach().sum().item() - 0.03719


STEPS = {}


def step(*names):
    def note(function):
        for name in names or (function.__name__,):
            STEPS[name] = function
        return function
    return note


def unary(**functions):
    for name, function in functions.items():
        STEPS[name] = lambda m, x, j, c, function=function: function(m, x, c)


def binary(**functions):
    for name, function in functions.items():
        STEPS[name] = lambda m, x, j, c, function=function: function(m, x, m.beside(x, j), c)


# ---- element-wise --------------------------------------------------------------------------------
unary(
    sin=lambda m, x, c: x.sin(), cos=lambda m, x, c: x.cos(), tanh=lambda m, x, c: x.tanh(),
    sigmoid=lambda m, x, c: x.sigmoid(), exp=lambda m, x, c: (x * 0.3).sin().exp(),
    log=lambda m, x, c: (x * x + 0.7).log(), sqrt=lambda m, x, c: (x * x + 0.4).sqrt(),
    reciprocal=lambda m, x, c: (x * x + 1).reciprocal(), erf=lambda m, x, c: x.erf(),
    atan=lambda m, x, c: x.atan(), square=lambda m, x, c: x.sin().square(),
    rsqrt=lambda m, x, c: (x * x + 0.6).rsqrt(), neg=lambda m, x, c: -x,
    relu=lambda m, x, c: (x.sin() + m.spread(x.shape, -0.04)).relu(),
    abs=lambda m, x, c: (x.cos() + m.spread(x.shape, -0.5)).abs(),
    clamp=lambda m, x, c: (x.sin() + m.spread(x.shape)).clamp(-0.37, 0.61),
    softplus=lambda m, x, c: x.tanh().exp().log1p(), cube=lambda m, x, c: x.tanh() ** 3,
    power=lambda m, x, c: (x.sin() + 1.6) ** c, exponent=lambda m, x, c: 1.7 ** x.sin(),
    scaled=lambda m, x, c: x * c, shifted=lambda m, x, c: c - x, divided=lambda m, x, c: c / (
        x * x + 1), floor=lambda m, x, c: (x.sin() + m.spread(x.shape)).floor() * x,
    remainder=lambda m, x, c: (x.sin() + m.spread(x.shape, 3.04)).remainder(0.77),
    erfc=lambda m, x, c: x.erfc(), log2=lambda m, x, c: (x * x + 0.9).log2(),
    clone=lambda m, x, c: x.clone(), double=lambda m, x, c: x.double(),
    single=lambda m, x, c: (x * 0).float().double() + x,
)
binary(
    add=lambda m, a, b, c: a + b, sub=lambda m, a, b, c: a - b, mul=lambda m, a, b, c: a * b.sin(),
    div=lambda m, a, b, c: a / (b * b + 1), alpha=lambda m, a, b, c: a.add(b, alpha=c),
    maximum=lambda m, a, b, c: m.library.maximum(a.sin() + m.spread(a.shape), b.cos()),
    atan2=lambda m, a, b, c: m.library.atan2(a, b * b + 0.8),
    pow=lambda m, a, b, c: (a.sin() + 1.5) ** b.sin(),
    where=lambda m, a, b, c: m.library.where(a.sin() > b + c, a.cos(), b * 0.9),
    where_zero=lambda m, a, b, c: m.library.where(a.sin() > c, a, b),
)

# ---- reductions ----------------------------------------------------------------------------------
unary(
    sum=lambda m, x, c: x.sum().sin(), mean=lambda m, x, c: x.mean(), total=lambda m, x, c: x.sum(
        -1, keepdim=True).sin(), rows=lambda m, x, c: x.sum(0), means=lambda m, x, c: x.mean(-1),
    prod=lambda m, x, c: (x.sin() + 1.3).prod(-1, keepdim=True).log(),
    amax=lambda m, x, c: (x.sin() + m.spread(x.shape)).amax(0),
    amin=lambda m, x, c: (x.sin() + m.spread(x.shape)).amin(-1, keepdim=True),
    max=lambda m, x, c: (x.sin() + m.spread(x.shape)).max(-1)[0],
    var=lambda m, x, c: (x + m.spread(x.shape)).var(-1, correction=0).tanh(),
    std=lambda m, x, c: m.library.stack([x, x.sin() + m.spread(x.shape, 0.2)]).std(0).tanh(),
    logsumexp=lambda m, x, c: x.sin().logsumexp(-1), softmax=lambda m, x, c: x.tanh().softmax(-1),
    log_softmax=lambda m, x, c: x.tanh().log_softmax(0), cumsum=lambda m, x, c: x.cumsum(-1).sin(),
    norm=lambda m, x, c: (x + 2.1).tanh().norm(),
    extremes=lambda m, x, c: tuple((x.sin() + m.spread(x.shape)).aminmax()),
)

# ---- views and shapes ----------------------------------------------------------------------------
unary(
    t=lambda m, x, c: x.t(), transpose=lambda m, x, c: x.transpose(0, -1),
    view=lambda m, x, c: x.view(-1), reshape=lambda m, x, c: x.reshape(-1),
    reshape_back=lambda m, x, c: x.reshape(2, 3), unsqueeze=lambda m, x, c: x.unsqueeze(0),
    squeeze=lambda m, x, c: x.squeeze(), flatten=lambda m, x, c: x.flatten(),
    narrow=lambda m, x, c: x.narrow(-1, 0, 1) if x.ndim else None,
    diagonal=lambda m, x, c: x.diagonal(),
    first=lambda m, x, c: x[0], last=lambda m, x, c: x[..., -1], rest=lambda m, x, c: x[1:],
    spaced=lambda m, x, c: x[..., ::2], widened=lambda m, x, c: x[:, None],
    permuted=lambda m, x, c: x.permute(tuple(range(x.ndim)[::-1])), whole=lambda m, x, c: x[...],
    expanded=lambda m, x, c: x.unsqueeze(0).expand(2, *x.shape),
    view_as=lambda m, x, c: x.view_as(x), moved=lambda m, x, c: x.movedim(0, -1),
    contiguous=lambda m, x, c: x.transpose(0, -1).contiguous(),
    stacked=lambda m, x, c: m.library.stack([x, x * c]), tril=lambda m, x, c: as_matrix(x).tril(),
    parts=lambda m, x, c: sum(part.sum(0).sin() for part in x.split(1)),
    triu=lambda m, x, c: as_matrix(x).triu(1),
    chunks=lambda m, x, c: m.library.stack([part * part.sin() for part in x.unbind(0)]),
)


@step()
def cat(m, x, j, c):
    y = m.into(x, j)
    return m.library.cat([x, y.expand(x.shape) * c])


# ---- indexing and products -----------------------------------------------------------------------
unary(
    gathered=lambda m, x, c: x[[0, -1, 0]], picked=lambda m, x, c: x[m.library.tensor([0, 0])],
    masked=lambda m, x, c: x[x.sin() > c], selected=lambda m, x, c: x.unsqueeze(0).index_select(
        0, m.library.tensor([0, 0])), filled=lambda m, x, c: x.masked_fill(x.sin() > c, 0.5),
    gather=lambda m, x, c: x.gather(0, m.library.zeros(x.shape, dtype=m.library.int64)),
    gram=lambda m, x, c: as_matrix(x).sin() @ as_matrix(x).t(),
    batches=lambda m, x, c: m.library.bmm(as_matrix(x)[None], as_matrix(x).mT[None].cos()),
    addmm=lambda m, x, c: m.library.addmm(x.sum(), as_matrix(x).sin(), as_matrix(x).t(), alpha=c),
    inner=lambda m, x, c: x.reshape(-1).sin() @ x.reshape(-1), outer=lambda m, x, c: (
        m.library.outer(x.reshape(-1)[:3], x.reshape(-1)[:2].cos())),
)


@step()
def weighted(m, x, j, c):
    """A weight that is shared: the first leaf, in each turn."""
    w = m.leaves[0]
    h = x.reshape(-1)[:3].sum() + m.leaves[1]
    for _ in range(3):
        h = (w @ h).tanh() @ w
    return h


@step()
def fan_out(m, x, j, c):
    y = x.sin()
    return y * y + y * x + y.cos() * c + sum([y] * 4)


# ---- in place ------------------------------------------------------------------------------------

def writing(**functions):
    for name, function in functions.items():
        def write(m, x, j, c, function=function):
            if all(x.stride()):      # PyTorch lets some operations write into expanded tensors
                function(m, x, m.source(x, j), c)
        STEPS[name] = write


def assign(x, index, y):
    x[index] = y


def masked_update(m, x, y, c):
    mask = x.detach().sin() > c - 1
    x[mask] += (x * 0.1).cos()[mask] * c


def row_by_row(m, x, y, c):
    for row in range(1, x.shape[0]):
        x[row] = x[row] * 0.5 + x[row - 1].clone() * c


writing(
    mul_=lambda m, x, y, c: x.mul_(y.cos()), add_=lambda m, x, y, c: x.add_(y, alpha=c),
    sub_=lambda m, x, y, c: x.sub_(y), div_=lambda m, x, y, c: x.div_(y * y + 1.2),
    plain_mul_=lambda m, x, y, c: x.mul_(y), scale_=lambda m, x, y, c: x.mul_(c),
    sin_=lambda m, x, y, c: x.sin_(), tanh_=lambda m, x, y, c: x.tanh_(),
    neg_=lambda m, x, y, c: x.neg_(), sigmoid_=lambda m, x, y, c: x.sigmoid_(),
    zero_=lambda m, x, y, c: x.zero_(), fill_=lambda m, x, y, c: x.fill_(c),
    fill_tensor_=lambda m, x, y, c: x.fill_(y.sum() * 0.3), copy_=lambda m, x, y, c: x.copy_(y),
    clamp_=lambda m, x, y, c: x.sin_().add_(m.spread(x.shape)).clamp_(-0.37, 0.61),
    row_copy_=lambda m, x, y, c: x[0].copy_(y.cos() if y.ndim < x.ndim else y[0]),
    row_mul_=lambda m, x, y, c: x[-1].mul_(c), turned_mul_=lambda m, x, y, c: x.t().mul_(c),
    assign=lambda m, x, y, c: assign(x, ..., y), assign_row=lambda m, x, y, c: assign(
        x, 0, x[-1].clone().sin() * c), assign_number=lambda m, x, y, c: assign(x, 0, c),
    assign_column=lambda m, x, y, c: assign(x, (..., 0), y.sum().sin()),
    assign_rows=lambda m, x, y, c: assign(x, [0, -1], x[[-1, 0]] * c) if len(x) > 1 else None,
    assign_mask=lambda m, x, y, c: assign(x, x.detach().sin() > c - 1, y.mean().sin()),
    masked_update=masked_update, row_by_row=row_by_row,
    add_rest_=lambda m, x, y, c: x[1:].add_(x[:-1].clone(), alpha=c),
    view_add_=lambda m, x, y, c: x.view(-1)[:2].add_(y.sum() * 0.2),
    exp_of_=lambda m, x, y, c: x.copy_((y.sin() * c).exp()),
)


@step()
def views_before_and_after(m, x, j, c):
    """A view made before and one made after a write into their base."""
    base = x * 1
    before = base[0]
    base.mul_(m.into(base, j).cos())
    after = base[..., -1]
    after.mul_(c)
    return base, before, after


@step()
def buffer(m, x, j, c):
    """A tensor without history that gets one by writes."""
    y = m.library.zeros(x.shape, dtype=m.library.float64)
    y[0] = x[0] * c
    y[1:] += x[1:].sin()
    return y


@step()
def out(m, x, j, c):
    y = m.library.empty(x.shape, dtype=m.library.float64)
    m.library.mul(x.detach(), c, out=y)
    return y * x


# ---- operations of one's own ---------------------------------------------------------------------

def layer(x, w):
    return (x * w.sin()).tanh() + w


def network(x, w):
    return layer(layer(x, w), w) * x.sin()


@functools.cache
def composed_network():
    """The network as an operation made of another; PyTorch runs the function."""
    inner = ops.compose("program_layer", layer)
    return ops.compose("program_network", lambda x, w: inner(inner(x, w), w) * x.sin())


@functools.cache
def functions_for(library):
    """Functions with backward passes of their own: of results saved, of two outputs, dirty."""
    Function = library.autograd.Function

    class Exp(Function):
        @staticmethod
        def forward(ctx, x):
            y = x.sin().exp()
            ctx.save_for_backward(x, y)
            ctx.save_for_forward(x, y)
            return y

        @staticmethod
        def jvp(ctx, dx):
            x, y = ctx.saved_tensors
            return dx * y * x.cos()

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return g * y * x.cos()

    class Both(Function):
        @staticmethod
        def forward(ctx, x, w, k):
            ctx.save_for_backward(x, w)
            ctx.save_for_forward(x, w)
            ctx.k = k
            return x * w, (x + w) * k

        @staticmethod
        def jvp(ctx, dx, dw, _):
            x, w = ctx.saved_tensors
            return dx * w + x * dw, (dx + dw) * ctx.k

        @staticmethod
        def backward(ctx, g, h):
            x, w = ctx.saved_tensors
            by_x = (g * w + h * ctx.k) if ctx.needs_input_grad[0] else None
            by_w = (g * x + h * ctx.k) if ctx.needs_input_grad[1] else None
            return by_x, by_w, None

    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def jvp(ctx, dx):
            return dx.mul_(2)

        @staticmethod
        def backward(ctx, g):
            return g * 2

    return Exp, Both, Double


@step()
def function(m, x, j, c):
    return functions_for(m.library)[0].apply(x)


@step()
def function_of_two(m, x, j, c):
    return functions_for(m.library)[1].apply(x, m.into(x, j).expand(x.shape), c)


@step()
def dirty_function(m, x, j, c):
    """A leaf would be refused when its values are others already."""
    return functions_for(m.library)[2].apply(apart_from_leaves(x))


@step()
def composed(m, x, j, c):
    w = m.into(x, j)
    return composed_network()(x, w) if m.library is tl else network(x, w)


@step()
def checkpoint(m, x, j, c):
    w = m.into(x, j)
    return m.library.utils.checkpoint.checkpoint(network, x, w, use_reentrant=False)


@step()
def packed(m, x, j, c):
    """Values saved as lists of numbers."""
    def pack(y):
        return y.reshape(-1).tolist(), tuple(y.shape)

    def unpack(kept):
        return m.constant(kept[0]).reshape(kept[1])

    with m.library.autograd.graph.saved_tensors_hooks(pack, unpack):
        return network(x, m.into(x, j))


@step()
def nested_grad(m, x, j, c):
    """A gradient in the program itself."""
    if not x.requires_grad:
        return None
    (g,) = m.library.autograd.grad((x.sin() * x.detach()).sum(), x, create_graph=True)
    return g


# ---- transforms in the program -------------------------------------------------------------------

@step()
def func_grad(m, x, j, c):
    return m.library.func.grad(lambda v: (v * c).sin().sum() * v.sum())(x)


@step()
def func_grad_of_captured(m, x, j, c):
    w = m.into(x, j)
    return m.library.func.grad(lambda v: ((v * w).sin() * c).sum())(x)


@step()
def func_jvp(m, x, j, c):
    x = x.contiguous()               # PyTorch refuses expanded tensors
    return m.library.func.jvp(lambda v: v.sin() * v.sum(), (x,), (m.spread(x.shape, c),))


@step()
def func_vjp(m, x, j, c):
    out, pull = m.library.func.vjp(lambda v: v.tanh() * c, x)
    return out, *pull(m.into(x, j).expand(x.shape))


@step()
def func_vmap(m, x, j, c):
    if not x.numel():                # PyTorch has no batch of nothing
        return None
    return m.library.func.vmap(lambda row: row.sin() * row.sum() * c)(x)


@step()
def per_example(m, x, j, c):
    if not x.numel():
        return None
    return m.library.func.vmap(m.library.func.grad(lambda row: (row * c).sin().sum()))(x)


@step()
def backwards(m, x, j, c):
    """A slice with a negative step, which PyTorch does not have."""
    x = x.unsqueeze(0)
    return (x[..., ::-1] if m.library is tl else x.flip(-1)) * c


# ---- what is cut, dead or chosen by values -------------------------------------------------------

@step()
def detach(m, x, j, c):
    return apart_from_leaves(x).detach()


@step()
def under_no_grad(m, x, j, c):
    with m.library.no_grad():
        return x.sin() * c


@step()
def written_under_no_grad(m, x, j, c):
    y = x * 1
    with m.library.no_grad():
        y.mul_(c)
    return y.sin()


@step()
def dead(m, x, j, c):
    y = (x * c).exp().log1p().reshape(-1)
    y[:1].mul_(2)
    return None


@step()
def branch(m, x, j, c):
    return x.cos() * c if detached_sum(x) > 0 else x.sin() * m.into(x, j)


@step()
def loop(m, x, j, c):
    y, turns = x.sin(), 0
    while abs(detached_sum(y)) < 2 and turns < 4:
        y = y * 1.3 + m.leaves[1].sum() * 0.1
        turns += 1
    return y


# ---- hooks: what they make of gradients, no derivative of the values -----------------------------

@step()
def hook(m, x, j, c):
    y = x.sin()
    y.register_hook(lambda g: g * c)
    return y


@step()
def hook_then_write(m, x, j, c):
    y = x.sin()
    y.register_hook(lambda g: g * c)
    y.mul_(0.7)
    y.register_hook(lambda g: g + 0.1)
    return y


@step()
def retained(m, x, j, c):
    y = x * c
    y.retain_grad()
    return y


HOOKS = {"hook", "hook_then_write"}
CUTS = {"detach", "under_no_grad", "written_under_no_grad", "nested_grad", "floor", "out"}
