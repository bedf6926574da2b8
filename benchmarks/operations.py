"""Compares every operation of the registry with PyTorch's, by size, dtype, layout and direction.

    python -m benchmarks.operations --peer-python PATH          # prints what is slower, worst first
    python -m benchmarks.operations --only softmax --all        # every figure of some operations
    python -m benchmarks.operations --quick --no-peer           # a smoke run of tensorlib alone

A case is a row of ROWS on matrices of one size, dtype and layout: "softmax 65,536 float32 plain
forward". Results are compared before they are timed. What a library refuses (softmax of integers)
is left out and counted. `--json PATH` keeps all ratios, `--below 1.2` prints more of them.
"""

import argparse
import json
import math
import statistics
import sys
from functools import lru_cache
from pathlib import Path

import numpy as np

from benchmarks.case import Case, Timed
from benchmarks.report import quantity
from benchmarks.run import Effort, WorkerError, start_workers, time_in_turn

# The operation, a space, an expression of it. Names in it:
#   x y z    matrices        a b    their first rows        c    a column of x
#   p q      bools           o      a bool for each row     u    the rows of x in groups of four
#   i j      positions of rows, (n,) and (n, n)             n    the number of rows
ROWS = """
neg -x
abs x.abs()
sign x.sign()
sqrt x.sqrt()
rsqrt x.rsqrt()
square x.square()
reciprocal x.reciprocal()
exp x.exp()
expm1 x.expm1()
exp2 x.exp2()
log x.log()
log1p x.log1p()
log2 x.log2()
log10 x.log10()
sin x.sin()
cos x.cos()
tan x.tan()
asin x.asin()
acos x.acos()
atan x.atan()
sinh x.sinh()
cosh x.cosh()
tanh x.tanh()
sigmoid x.sigmoid()
relu x.relu()
erf x.erf()
erfc x.erfc()
floor x.floor()
ceil x.ceil()
round x.round()
trunc x.trunc()
isnan lib.isnan(x)
isinf lib.isinf(x)
isfinite lib.isfinite(x)
add x + y
add x + a
add x + c
add x + 2
sub x - y
mul x * y
mul x * a
mul x * c
mul x * 2
div x / y
div x / 3
floor_divide x // y
floor_divide x // 3
div_trunc lib.div(x, y, rounding_mode='trunc')
remainder x % y
remainder x % 3
fmod lib.fmod(x, y)
pow x ** y
pow x ** 2
pow x ** 3
atan2 lib.atan2(x, y)
maximum lib.maximum(x, y)
minimum lib.minimum(x, y)
eq x == y
ne x != y
lt x < y
lt x < 1
le x <= y
gt x > y
ge x >= y
logical_and lib.logical_and(x, y)
logical_or lib.logical_or(p, q)
logical_xor lib.logical_xor(p, q)
logical_not lib.logical_not(x)
bitwise_and x & y
bitwise_or x | y
bitwise_xor x ^ y
bitwise_not ~x
bitwise_left_shift x << y
bitwise_right_shift x >> y
where lib.where(p, x, y)
where lib.where(p, x, 0)
masked_fill x.masked_fill(p, 0)
masked_select x.masked_select(p)
lerp x.lerp(y, 0.3)
addcmul lib.addcmul(x, y, z)
addcdiv lib.addcdiv(x, y, z)
clamp x.clamp(0.2, 0.5)
clamp x.clamp(min=0.5)
clamp_min x.clamp_min(0.5)
clamp_max x.clamp_max(0.5)
isclose lib.isclose(x, y)
rsub lib.rsub(x, y)
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
transpose x.transpose(0, 1)
permute x.permute(1, 0)
t x.t()
squeeze x.squeeze()
unsqueeze x.unsqueeze(0)
narrow x.narrow(0, 1, 2)
diagonal x.diagonal()
movedim x.movedim(0, 1)
broadcast_to lib.broadcast_to(a, (n, n))
flatten u.flatten(1)
ravel x.ravel()
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
clone x.clone()
contiguous x.t().contiguous()
contiguous u.transpose(0, 1).contiguous()
cat lib.cat([x, y])
cat lib.cat([x, y], 1)
stack lib.stack([x, y])
stack lib.stack([x, y], -1)
copy lib.empty_like(x).copy_(y)
tril x.tril()
triu x.triu()
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
normal lib.normal(0.0, 1.0, (n, n)) < 99
multinomial lib.multinomial(a, 1) < n
matmul x @ y
matmul u @ u
mm lib.mm(x, y.t())
mv lib.mv(x, a)
dot lib.dot(a, b)
bmm lib.bmm(u, u)
outer lib.outer(a, b)
inner lib.inner(x, y)
addmm lib.addmm(a, x, y)
addmv lib.addmv(a, x, b)
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
cumsum x.cumsum(0)
cumsum x.cumsum(1)
nansum x.nansum()
count_nonzero lib.count_nonzero(x)
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
aminmax lib.aminmax(x)
var_mean lib.var_mean(x)
std_mean lib.std_mean(x)
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
take_along_dim lib.take_along_dim(x, j, 1)
nonzero x.nonzero()
masked_select x.masked_select(p)
masked_fill x.masked_fill(p, 0)
index_copy x.index_copy(0, i, y)
index_add x.index_add(0, i, y)
index_fill x.index_fill(0, i, 1)
scatter x.scatter(0, j, 1)
scatter_add x.scatter_add(0, i.reshape(n, 1), y)
index_put z.__setitem__(i, y)
index_put z.__setitem__(p, 0)
index_put z.__setitem__(slice(1, 3), y[0])
index_put z.__setitem__((i, i), a)
layer_norm (x - x.mean(1, keepdim=True)) * (x.var(1, keepdim=True) + 1e-5).rsqrt() * a + b
gelu 0.5 * x * (1 + (x * 0.70710678).erf())
silu x * x.sigmoid()
"""

# Called by gradient rules alone, and timed by the backward direction of others.
INTERNAL = {"as_strided", "spread_view", "view_scatter", "put_along", "spread_index",
            "spread_along", "zmul", "softmax_backward", "log_softmax_backward"}

# What answers with a bool or a number, or makes no new values: there is no work to time.
QUESTIONS = {"allclose", "detach", "equal", "is_complex", "is_floating_point", "is_tensor", "numel"}

PRODUCTS = {"matmul", "mm", "inner", "addmm"}

SIZES = (16, 1_024, 65_536, 4_194_304)
USUAL = 65_536
DTYPES = ("float32", "float64", "int64", "bool", "float16", "bfloat16")
LAYOUTS = ("plain", "transposed", "sliced")
DIRECTIONS = ("forward", "backward")
HALF = ("float16", "bfloat16")


def rows():
    """(operation, expression) of each row."""
    return [tuple(line.split(" ", 1)) for line in ROWS.strip().splitlines()]


def settings():
    """(size, dtype, layout, direction) of each variant: float32 in full, and one thing varied."""
    for size in SIZES:
        for dtype in DTYPES if size < SIZES[-1] else ("float32", "int64"):
            yield size, dtype, "plain", "forward"
        yield size, "float32", "plain", "backward"
    for layout in LAYOUTS[1:]:
        for direction in DIRECTIONS:
            yield USUAL, "float32", layout, direction
    for dtype in ("float64", "float16"):
        yield USUAL, dtype, "plain", "backward"


def matrix(lib, n, dtype, layout, seed):
    """The same matrix in either library, on memory of the layout."""
    rng = np.random.default_rng(seed)
    shape = (n, n + 8) if layout == "sliced" else (n, n)
    if dtype == "bool":
        values = rng.random(shape) < 0.5
    elif dtype == "int64":
        values = rng.integers(1, 10, shape)
    else:
        values = rng.random(shape, dtype=np.float32) * np.float32(0.8) + np.float32(0.1)
    x = lib.from_numpy(values).to(getattr(lib, dtype))
    return x[:, 4:-4] if layout == "sliced" else x.t() if layout == "transposed" else x


@lru_cache(1)                                 # the cases of one setting come one after the other
def arguments(lib, size, dtype, layout):
    """What the names in an expression stand for."""
    n = math.isqrt(size)
    x, y, z = (matrix(lib, n, dtype, layout, seed) for seed in range(3))
    p, q = (matrix(lib, n, "bool", layout, seed) for seed in (3, 4))
    rng = np.random.default_rng(5)
    return {
        "lib": lib, "n": n, "x": x, "y": y, "z": z, "p": p, "q": q, "o": p[0].contiguous(),
        "u": x.reshape(-1, 4, 4), "a": x[0].contiguous(), "b": y[0].contiguous(), "c": x[:, 1:2],
        "i": lib.from_numpy(rng.permutation(n)),
        "j": lib.from_numpy(rng.integers(0, n, (n, n))),
    }


def as_leaf(x):
    return x.detach().requires_grad_()


class Refused(Exception):
    """This library has no such case."""


def prepare(lib, code, size, dtype, layout, direction):
    """A Timed for one case. Raises Refused where the library does not do it."""
    names = dict(arguments(lib, size, dtype, layout))
    if direction == "backward":
        leaves = {key: as_leaf(names[key]) for key in "xyabcu" if key in names_of(code)}
        names |= leaves
        result = value_of(code, names)
        if not leaves or result is None or not result.requires_grad:
            raise Refused("no gradient")
        names |= {"given": result.detach() * 0 + 1, "leaves": list(leaves.values())}
        several = "[0]" if isinstance(eval(code, names), tuple) else ""
        code = f"lib.autograd.grad(({code}){several}, leaves, given)"
    return Compared(code, names)


def value_of(code, names):
    """The first result. Raises Refused where the library refuses the dtype."""
    try:
        result = eval(code, names)
    except (RuntimeError, TypeError, NotImplementedError, ValueError, AttributeError) as error:
        raise Refused(f"{type(error).__name__}: {error}") from None
    return result[0] if isinstance(result, tuple) else result


def names_of(code):
    return set(compile(code, "row", "eval").co_names)


class Compared(Timed):
    """A Timed whose result is one tensor: what was written to, or the first of several."""

    def result(self):
        result = value_of(self._code, self._names)
        result = self._names["z"] if result is None else result
        lib = self._names["lib"]
        return result.float() if result.dtype in (lib.float16, lib.bfloat16) else result


def name_of(op, code, size, dtype, layout, direction):
    return f"{op}: {code}; {size:,} {dtype} {layout} {direction}"


def left_out(op, size, dtype, layout, direction):
    """Products of large matrices of integers, which take minutes; sums of bools, which stay bools
    here in `sum_to_size` and are int64 in PyTorch."""
    return (op in PRODUCTS and (size, dtype) == (SIZES[-1], "int64")
            or op == "sum_to_size" and dtype == "bool")


def cases():
    """Every row in every setting, by name."""
    def made(op, code, setting):
        return Case(name_of(op, code, *setting), "operations",
                    lambda lib: prepare(lib, code, *setting),
                    rtol=5e-2 if setting[1] in HALF else 1e-4)
    found = [made(op, code, setting) for setting in settings() for op, code in rows()
             if not left_out(op, *setting)]
    return {case.name: case for case in found}


# ---- the run -------------------------------------------------------------------------------------

FULL = Effort(rounds=3, batches=3, batch_ns=2_000_000)
QUICK = Effort(rounds=1, batches=1, batch_ns=100_000)


def compare(workers, chosen, effort):
    """The figures of each case by name, what was refused, and what went wrong."""
    figures, refused, wrong = {}, {}, {}
    for case in chosen:
        if sys.stderr.isatty():
            print(f"\r\033[K{case.name}", end="", file=sys.stderr, flush=True)
        try:
            rounds = time_in_turn(case, workers, effort)
        except WorkerError as error:
            (refused if "Refused" in str(error) else wrong)[case.name] = str(error)
            continue
        figures[case.name] = [statistics.median(each[place]["time"] for each in rounds)
                              for place in range(len(workers))]
    return figures, refused, wrong


def table(figures, below):
    """The cases whose ratio is less than `below`, worst first, in Markdown."""
    lines = ["| | tensorlib | PyTorch | ratio |", "| :-- | --: | --: | --: |"]
    slow = sorted((their / our, name, our, their) for name, (our, their) in figures.items()
                  if their / our < below)
    lines += [f"| {name} | {quantity(our, 'time')} | {quantity(their, 'time')} | {ratio:.2f} |"
              for ratio, name, our, their in slow]
    return "\n".join(lines)


def parse_arguments(argv):
    parser = argparse.ArgumentParser(prog="benchmarks.operations",
                                     description=__doc__.partition("\n")[0])
    option = parser.add_argument
    option("--peer-python", default=sys.executable, metavar="PATH",
           help="the interpreter that has PyTorch (default: this one)")
    option("--no-peer", action="store_true", help="time tensorlib alone")
    option("--threads", type=int, default=1, help="for each library (default: 1)")
    option("--only", default="", metavar="TEXT", help="cases with all these words in their names")
    option("--below", type=float, default=1.0, help="print ratios below this (default: 1)")
    option("--all", action="store_true", help="print every case")
    option("--quick", action="store_true", help="one short round on the two smaller sizes")
    option("--json", type=Path, metavar="PATH", help="write all figures there")
    return parser.parse_args(argv)


def main(argv=None):
    args = parse_arguments(argv)
    chosen = [case for case in cases().values()
              if all(word in case.name for word in args.only.split())]
    if args.quick:
        chosen = [case for case in chosen if "65,536" not in case.name
                  and "4,194,304" not in case.name]
    workers = start_workers(args)
    figures, refused, wrong = compare(workers, chosen, QUICK if args.quick else FULL)
    for worker in workers:
        worker.close()
    if len(workers) > 1:
        print(table(figures, math.inf if args.all else args.below))
        ratios = [their / our for our, their in figures.values()]
        if ratios:
            print(f"\n{len(ratios)} cases compared, {sum(r < 1 for r in ratios)} slower than "
                  f"PyTorch; geometric mean {statistics.geometric_mean(ratios):.2f}.")
    print(f"{len(figures)} cases timed, {len(refused)} refused by a library.")
    if args.json:
        args.json.write_text(json.dumps(
            {"figures": figures, "refused": refused, "wrong": wrong}, indent=1) + "\n")
    for name, error in wrong.items():
        print(f"{name}: {error}", file=sys.stderr)
    if wrong:
        sys.exit(f"benchmarks.operations: {len(wrong)} cases failed")


if __name__ == "__main__":
    main()
