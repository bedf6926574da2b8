"""What `benchmarks.operations` times: at least one expression for each operation of the registry.

Most follow from the operation's samples: `lib.tanh(x)`, `lib.addmm(a, x, y)`. ROWS has those that
are timed in another form or in several. Questions, whose answer is no tensor, have no row. What
only gradient rules call has none either: it is timed by the backward direction of others.
Element-wise operations on several operands have rows in which these are broadcast.
"""

import math
from itertools import islice, repeat

import numpy as np

from benchmarks.settings import names_of
from tensorlib import Tensor
from tensorlib.ops import registry
from tensorlib.ops.declare import FUNCTIONS
from tensorlib.testing.catalogue import public, samples

# The operation, a space, an expression of it. The names in it stand for (`settings.arguments`):
#   x y z    matrices        a b    their first rows        c    a column of x
#   p q      bools           o      a bool for each row     u    the rows of x in groups of four
#   i j      positions of rows, (n,) and (n, n)             n    the number of rows
#   v        x as 16 matrices of 16 columns: what is between is the dim in the middle
ROWS = """
add x + y
add x + a
add x + c
add x + 2
mul x * y
mul x * a
mul x * c
mul x * 2
sub x - y
div x / y
div x / 3
floor_divide x // y
floor_divide x // 3
div_trunc lib.div(x, y, rounding_mode='trunc')
remainder x % y
remainder x % 3
pow x ** y
pow x ** 2
pow x ** 3
lt x < y
lt x < 1
logical_and lib.logical_and(x, y)
logical_not lib.logical_not(x)
where lib.where(p, x, y)
where lib.where(p, x, 0)
masked_fill x.masked_fill(p, 0)
masked_select x.masked_select(p)
clamp x.clamp(0.2, 0.5)
clamp x.clamp(min=0.5)
to x.to(lib.float32)
to x.to(lib.float64)
to x.to(lib.float16)
to x.to(lib.bfloat16)
to x.to(lib.int64)
to x.to(lib.bool)
view u.view(-1)
reshape x.reshape(-1)
expand a.expand(n, n)
sum_to_size x.sum_to_size(1, n)
sum_to_size x.sum_to_size(n, 1)
squeeze x.squeeze()
contiguous x.t().contiguous()
contiguous u.transpose(0, 1).contiguous()
cat lib.cat([x, y])
cat lib.cat([x, y], 1)
stack lib.stack([x, y])
stack lib.stack([x, y], -1)
copy lib.empty_like(x).copy_(y)
movedim x.movedim(0, 1)
broadcast_to lib.broadcast_to(a, (n, n))
flatten u.flatten(1)
unflatten x.unflatten(1, (-1, 1))
split x.split(2)
chunk x.chunk(2)
unbind x.unbind()
select x.select(0, 1)
flip x.flip(0)
flip x.flip(1)
roll x.roll(1, 0)
repeat a.repeat(n, 1)
tile a.tile(n)
repeat_interleave a.repeat_interleave(4)
diag a.diag()
diag x.diag()
trace x.trace()
tensor lib.tensor([0.5] * n)
as_tensor lib.as_tensor(x)
asarray lib.asarray(x)
frombuffer lib.frombuffer(bytearray(8 * n), dtype=lib.int64)
empty lib.empty(n, 0)
zeros lib.zeros(n, n)
ones lib.ones(n, n)
full lib.full((n, n), 2.0)
scalar_tensor lib.scalar_tensor(2.0)
empty_like lib.empty_like(x[:0])
zeros_like lib.zeros_like(x)
ones_like lib.ones_like(x)
full_like lib.full_like(x, 1)
arange lib.arange(n)
linspace lib.linspace(0, 1, n)
logspace lib.logspace(0, 1, n)
eye lib.eye(n)
tril_indices lib.tril_indices(n, n)
triu_indices lib.triu_indices(n, n)
rand lib.rand(n, n) < 1
randn lib.randn(n, n) < 99
rand_like lib.rand_like(x) < 1
randn_like lib.randn_like(x) < 99
randint lib.randint(9, (n, n)) < 9
randint_like lib.randint_like(x, 9) < 9
randperm lib.randperm(n) < n
bernoulli lib.bernoulli(x) < 2
searchsorted lib.searchsorted(a.sort()[0], x)
bucketize lib.bucketize(x, a.sort()[0])
histogram lib.histogram(x, a.sort()[0])
matrix_exp lib.matrix_exp(x / n)
triangular_solve lib.triangular_solve(y, x.triu() + n * lib.eye(n))
cholesky_solve lib.cholesky_solve(y, x.tril() + n * lib.eye(n))
normal lib.normal(0.0, 1.0, (n, n)) < 99
multinomial lib.multinomial(a, 1) < n
index_copy x.index_copy(0, i, y)
index_add x.index_add(0, i, y)
index_fill x.index_fill(0, i, 1)
scatter x.scatter(0, j, 1)
scatter x.scatter(1, j, y)
scatter_add x.scatter_add(1, j, y)
scatter_add x.scatter_add(0, i.reshape(n, 1), y)
matmul x @ y
matmul u @ u
mm lib.mm(x, y.t())
inner lib.inner(x, y)
baddbmm lib.baddbmm(u, u, u)
sum x.sum()
sum x.sum(0)
sum x.sum(1)
sum u.sum(1)
mean x.mean()
mean x.mean(0)
mean x.mean(1)
prod x.prod()
prod x.prod(1)
nansum x.nansum()
cumsum x.cumsum(0)
cumsum x.cumsum(1)
amax x.amax()
amax x.amax(0)
amax x.amax(1)
amin x.amin(1)
argmax x.argmax()
argmax x.argmax(0)
argmax x.argmax(1)
argmin x.argmin(1)
max x.max()
max x.max(0)
max x.max(1)
min x.min(1)
var x.var()
var x.var(0)
var x.var(1)
std x.std(1)
norm x.norm()
norm x.norm(dim=1)
any x.any()
any p.any(1)
all p.all()
all p.all(0)
logsumexp x.logsumexp(1)
logsumexp x.logsumexp(0)
softmax x.softmax(1)
softmax x.softmax(0)
softmax u.softmax(2)
log_softmax x.log_softmax(1)
log_softmax x.log_softmax(0)
getitem x[1]
getitem x[:, 1]
getitem x[1:3, ::2]
getitem x[i]
getitem x[:, i]
getitem x[i, i]
getitem x[p]
getitem x[o]
index_select x.index_select(0, i)
index_select x.index_select(1, i)
gather x.gather(0, j)
gather x.gather(1, j)
conv2d lib.conv2d(u.unsqueeze(1), u[:1, None, :2, :2])
conv3d lib.conv3d(u[None, None], u[None, None, :1, :2, :2])
conv_transpose2d lib.conv_transpose2d(u.unsqueeze(1), u[:1, None, :2, :2])
conv_transpose3d lib.conv_transpose3d(u[None, None], u[None, None, :1, :2, :2])
max_pool2d lib.max_pool2d(u.unsqueeze(1), 2)
max_pool3d lib.max_pool3d(u[None, None], (1, 2, 2))
index_put x.index_put((i, i), a)
put x.put(i, a)
take_along_dim lib.take_along_dim(x, j, 1)
put_index z.__setitem__(i, y)
put_index z.__setitem__(p, 0)
put_index z.__setitem__(slice(1, 3), y[0])
put_index z.__setitem__((i, i), a)
put_index z.__setitem__((slice(None), slice(None, None, 2)), y[:, ::2])
put_index z.__setitem__((Ellipsis, 0), a)
put_index z.t().__setitem__(Ellipsis, y)
put_index [z.detach().index_copy_(0, i[:3], y[:3])].clear()
put_index [z.detach().index_add_(0, i[:3], y[:3] * 1e-9)].clear()
put_index [z.detach().index_fill_(0, i[:3], 1)].clear()
put_index [z.detach().index_put_((i[:3], i[:3]), a[:3])].clear()
put_index [z.detach().put_(i, a)].clear()
put_index [z.detach().scatter_(1, j[:, :1], y[:, :1])].clear()
put_index [z.detach().scatter_add_(1, j[:, :1], y[:, :1] * 1e-9)].clear()
gru_cell lib.gru_cell(x, y, lib.cat([x, y, z]), lib.cat([z, y, x]))
rnn_tanh_cell lib.rnn_tanh_cell(x, y, x, z)
rnn_relu_cell lib.rnn_relu_cell(x, y, x, z)
layer_norm (x - x.mean(1, keepdim=True)) * (x.var(1, keepdim=True) + 1e-5).rsqrt() * a + b
gelu 0.5 * x * (1 + (x * 0.70710678).erf())
sum v.sum(1)
sum v.sum((0, 2))
mean v.mean((0, 2))
mean v.mean((1, 2))
amax v.amax(1)
argmax v.argmax(1)
var v.var((0, 2))
logsumexp v.logsumexp(1)
softmax v.softmax(1)
cumsum v.cumsum(1)
cat lib.cat([v, v], 1)
flip v.flip(1)
roll x.roll((1, 1), (0, 1))
roll v.roll(3, 1)
contiguous v.permute(1, 0, 2).contiguous()
contiguous v.permute(2, 1, 0).contiguous()
contiguous x.unfold(1, 4, 1).contiguous()
add x.t() + y
add x[:, ::2] + 1
mul a[:, None] * b
outer lib.outer(a, b)
sub a - c
addcmul lib.addcmul(x, y, z, value=0.5)
nan_to_num x.nan_to_num()
in_place z.mul_(0.99)
in_place z.add_(x, alpha=1e-9)
in_place z.copy_(x)
in_place z.zero_()
in_place z.clamp_(0.2, 0.5)
silu x * x.sigmoid()
"""


MOST = 3                    # expressions of one operation that follow from its samples


def rows():
    """(operation, expression) of each row."""
    found = [tuple(line.split(" ", 1)) for line in ROWS.strip().splitlines()]
    by_hand = {name for name, _ in found}
    return [(name, code) for name, op in registry.items()
            if name not in by_hand and has_row(op) for code in derived(op)] + found


def broadcast_rows():
    """(operation, expression) of element-wise operations whose operands are broadcast."""
    for name, op in registry.items():
        if op.elementwise and public(op) and len(op.arguments) > 1:
            rest = "".join(f", {name}" for name in "yz"[:len(op.arguments) - 2])
            called = f"lib.{name}" if name in FUNCTIONS else f"lib.Tensor.{name}"
            first = "p" if 0 in op.boolean_inputs else None
            for one, other in (("x", "a"), ("x", "c"), ("c", "a"), ("x.t()", "y")):
                given = f"{first}, x, {other}" if first else f"{one}, {other}{rest}"
                if first is None or one == "x":
                    yield name, f"{called}({given})"


def has_row(op):
    """Whether an operation is timed by itself: one of the library that users call, and that gives
    tensors."""
    return public(op) and op.returns is Tensor and "." not in op.name


def derived(op):
    """Calls of the operation with the arguments of its samples, at the sizes of a benchmark.

    Calls on vectors are left out where there are others. Raises: ValueError where none of its
    samples can be written so.
    """
    found = dict.fromkeys(code for sample in samples(op) if (code := call_of(op, sample)))
    if not found:
        raise ValueError(f"benchmarks.rows: {op.name} has no sample that becomes a row; write one")
    large = [code for code in found if set("xu") & names_of(code)]
    return list(islice(large or found, MOST))


def call_of(op, sample):
    """A call with the arguments of a sample, or None where they cannot be written."""
    names = {"bool": iter("pq"), 1: iter("ab"), 2: iter("xyz"), 3: repeat("u")}
    try:
        arguments = [written(op, value, names) for value in sample.args]
        arguments += [f"{key}={written(op, x, names)}" for key, x in sample.kwargs.items()]
    except KeyError:
        return None
    called = "lib" if op.name in FUNCTIONS else arguments.pop(0)
    # the libraries draw different numbers
    nothing = ("[0]" * (len(op.outputs) > 1) + "[:0]") if op.random else ""
    return f"{called}.{op.name}({', '.join(arguments)}){nothing}"


def written(op, value, names):
    """An argument of a sample as it stands in an expression: an array by the next of its names.

    Raises: KeyError where there is no name for it.
    """
    if isinstance(value, tuple) and any(isinstance(x, np.ndarray) for x in value):
        return f"[{', '.join([written(op, x, names) for x in value])}]"
    if isinstance(value, float) and not math.isfinite(value):
        return f"float('{value}')"
    if not isinstance(value, np.ndarray):
        return repr(value).replace("tensorlib.", "lib.")
    kind = "bool" if value.dtype.kind == "b" else 2 if op.elementwise else value.ndim
    name = next(names[kind], None)
    if name is None:
        raise KeyError(kind)
    return name
