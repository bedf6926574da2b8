"""Element-wise operations in ONNX."""

import math
from functools import partial
from typing import Any

from tensorlib._core.base.dtypes import BY_NAME
from tensorlib.onnx.errors import unsupported
from tensorlib.onnx.symbolic_sizes import Dim
from tensorlib.onnx.writer import BOOL, FLOAT32, INT64, Handler, Writer, onnx_rule
from tensorlib.ops.lazy import operations
from tensorlib.program.ir.model import OpCall

ROOT_HALF = math.sqrt(0.5)


def same(type: str, of_bools: str = "") -> Handler:
    """The rule of what ONNX has as it is, in the dtype of the result, or has for bools apart."""
    def rule(g: Writer, call: OpCall) -> Any:
        x = g.inputs(call)
        return g.node(of_bools, *x) if of_bools and dtype_of(call) == BOOL else (
            g.node(type, *x, name=call.type))
    return rule


SAME = {
    operations.abs: "Abs", operations.acos: "Acos", operations.acosh: "Acosh",
    operations.asin: "Asin", operations.asinh: "Asinh", operations.atan: "Atan",
    operations.atanh: "Atanh", operations.cos: "Cos", operations.cosh: "Cosh",
    operations.erf: "Erf", operations.exp: "Exp", operations.log: "Log",
    operations.reciprocal: "Reciprocal", operations.sigmoid: "Sigmoid",
    operations.sin: "Sin", operations.sinh: "Sinh", operations.sqrt: "Sqrt",
    operations.tan: "Tan", operations.tanh: "Tanh",
    operations.softsign: "Softsign", operations.mish: "Mish", operations.hardswish: "HardSwish",
    operations.logical_not: "Not", operations.sub: "Sub", operations.div: "Div",
}
for _operation, _type in SAME.items():
    onnx_rule(_operation)(same(_type))
onnx_rule(operations.add)(same("Add", "Or"))
onnx_rule(operations.mul)(same("Mul", "And"))
onnx_rule(operations.maximum)(same("Max", "Or"))
onnx_rule(operations.minimum)(same("Min", "And"))


def rounded(write: Any) -> Handler:
    """The rule of what keeps whole numbers, for which ONNX has it not."""
    def rule(g: Writer, call: OpCall) -> Any:
        x, = g.inputs(call)
        return write(FormulaWriter(g, call), x) if dtype_of(call).is_floating_point else x
    return rule


onnx_rule(operations.ceil)(rounded(lambda t, x: t.Ceil(x)))
onnx_rule(operations.floor)(rounded(lambda t, x: t.Floor(x)))
onnx_rule(operations.round)(rounded(lambda t, x: t.Round(x)))
onnx_rule(operations.trunc)(rounded(lambda t, x: trunc(t, x)))


@onnx_rule(operations.neg)
def neg(g: Writer, call: OpCall) -> Any:
    """`Neg`, or a difference from 0 in unsigned dtypes."""
    x, = g.inputs(call)
    dtype = dtype_of(call)
    return g.node("Neg", x) if dtype.is_signed else g.node("Sub", g.constant(0, dtype), x)


@onnx_rule(operations.sign)
def sign(g: Writer, call: OpCall) -> Any:
    """That of NaN is 0 here, and NaN there."""
    x, = g.inputs(call)
    dtype = dtype_of(call)
    if dtype == BOOL:
        return x
    found = g.node("Sign", x)
    return found if not dtype.is_floating_point else g.node(
        "Where", g.node("IsNaN", x), g.constant(0.0, dtype), found)


@onnx_rule(operations.relu)
def relu(g: Writer, call: OpCall) -> Any:
    """`Relu`, or the greater of x and 0 in dtypes of integers."""
    x, = g.inputs(call)
    dtype = dtype_of(call)
    return g.node("Relu", x, name=call.type) if dtype.is_floating_point else g.node(
        "Max", x, g.constant(0, dtype))


@onnx_rule(operations.pow)
def power(g: Writer, call: OpCall) -> Any:
    """In int64 what ONNX has not: the low bits are the same."""
    dtype = dtype_of(call)
    wide = dtype if dtype.is_floating_point else INT64
    return g.cast(g.node("Pow", *g.inputs(call, wide), name=call.type), wide, dtype)


@onnx_rule(operations.detach, operations.clone, operations.contiguous, operations.positive)
def unchanged(g: Writer, call: OpCall) -> Any:
    """The argument itself."""
    return g.value(first_of(call))


def ordered(type: str) -> Handler:
    """The rule of what compares the order of its arguments in one dtype, bools as numbers."""
    def rule(g: Writer, call: OpCall) -> Any:
        dtype = g.common(call)
        x = g.inputs(call, BY_NAME["int32"] if dtype == BOOL else dtype)
        return g.node(type, *x, name=call.type)
    return rule


onnx_rule(operations.lt)(ordered("Less"))
onnx_rule(operations.le)(ordered("LessOrEqual"))
onnx_rule(operations.gt)(ordered("Greater"))
onnx_rule(operations.ge)(ordered("GreaterOrEqual"))


@onnx_rule(operations.eq)
def eq(g: Writer, call: OpCall) -> Any:
    """`Equal` in the common dtype."""
    return g.node("Equal", *g.inputs(call, g.common(call)), name=call.type)


@onnx_rule(operations.ne)
def ne(g: Writer, call: OpCall) -> Any:
    """The negation of `Equal`, in the common dtype."""
    return g.node("Not", g.node("Equal", *g.inputs(call, g.common(call))), name=call.type)


def bitwise(of_bools: str, type: str) -> Handler:
    """The rule of what ONNX has under another name for bools."""
    return lambda g, call: g.node(of_bools if dtype_of(call) == BOOL else type, *g.inputs(call),
                                  name=call.type)


onnx_rule(operations.bitwise_and)(bitwise("And", "BitwiseAnd"))
onnx_rule(operations.bitwise_or)(bitwise("Or", "BitwiseOr"))
onnx_rule(operations.bitwise_xor)(bitwise("Xor", "BitwiseXor"))
onnx_rule(operations.bitwise_not)(bitwise("Not", "BitwiseNot"))


def logical(type: str) -> Handler:
    """The rule of what takes all numbers as bools."""
    return lambda g, call: g.node(type, *g.inputs(call, BOOL), name=call.type)


onnx_rule(operations.logical_and)(logical("And"))
onnx_rule(operations.logical_or)(logical("Or"))
onnx_rule(operations.logical_xor)(logical("Xor"))


def classified(write: Any) -> Handler:
    """The rule of what asks for NaN or infinities, of the argument in a floating dtype."""
    def rule(g: Writer, call: OpCall) -> Any:
        dtype = first_of(call).dtype
        x, = g.inputs(call, dtype if dtype.is_floating_point else FLOAT32)
        return write(FormulaWriter(g, call), x)
    return rule


onnx_rule(operations.isnan)(classified(lambda t, x: t.IsNaN(x)))
onnx_rule(operations.isinf)(classified(lambda t, x: t.IsInf(x)))
onnx_rule(operations.isfinite)(classified(
    lambda t, x: t.Not(t.Or(t.IsNaN(x), t.IsInf(x)), name="isfinite")))


@onnx_rule(operations.where)
def where(g: Writer, call: OpCall) -> Any:
    """`Where`, or And and Or of bools."""
    condition, x, y = call.inputs.values()
    dtype = dtype_of(call)
    names = g.value(condition, BOOL), g.value(x, dtype), g.value(y, dtype)
    if dtype != BOOL:
        return g.node("Where", *names)
    taken = g.node("And", names[0], names[1])             # few runtimes choose among bools
    return g.node("Or", taken, g.node("And", g.node("Not", names[0]), names[2]))


# ---- activations ---------------------------------------------------------------------------------

class FormulaWriter:
    """Writes formulas: `t.Add(x, 1.0)` is a node of names, and of numbers in the call's dtype."""

    def __init__(self, g: Writer, call: OpCall):
        self.g, self.call = g, call

    def __getattr__(self, type: str) -> Any:
        def node(*args: Any, **attributes: Any) -> Any:
            names = [x if isinstance(x, str) else self.g.constant(x, dtype_of(self.call))
                     for x in args]
            return self.g.node(type, *names, **attributes)
        return node


def gelu(t: FormulaWriter, x: str, approximate: str = "none") -> Any:
    """`Gelu` from opset 20 on, before that its formula."""
    if t.g.opset >= 20:
        return t.Gelu(x, approximate=approximate)
    if approximate == "none":
        return t.Mul(t.Mul(x, 0.5), t.Add(t.Erf(t.Mul(x, ROOT_HALF)), 1.0))
    inner = t.Mul(t.Add(x, t.Mul(t.Mul(t.Mul(x, x), x), 0.044715)), math.sqrt(2 / math.pi))
    return t.Mul(t.Mul(x, 0.5), t.Add(t.Tanh(inner), 1.0))


def celu(t: FormulaWriter, x: str, alpha: str) -> Any:
    """max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0)"""
    grown = t.Mul(alpha, expm1(t, t.Div(t.Min(x, 0.0), alpha)))
    return t.Add(t.Max(x, 0.0), grown)


def expm1(t: FormulaWriter, x: str) -> Any:
    """Near zero by tanh, which loses no digits there."""
    half = t.Tanh(t.Mul(x, 0.5))
    near = t.Div(t.Mul(half, 2.0), t.Sub(1.0, half))
    return t.Where(t.Less(t.Abs(x), 0.5), near, t.Sub(t.Exp(x), 1.0))


def log1p(t: FormulaWriter, x: str) -> Any:
    """log(u) * x / (u - 1) of u = 1 + x as it is rounded, which loses no digits near zero."""
    u = t.Add(x, 1.0)
    exact = t.Equal(u, 1.0)
    rest = t.Where(exact, 1.0, t.Sub(u, 1.0))
    return t.Where(exact, x, t.Where(t.IsInf(x, detect_negative=0), x, t.Mul(
        t.Log(u), t.Div(x, rest))))


def logaddexp(t: FormulaWriter, x: str, y: str) -> Any:
    """max(x, y) + log(1 + exp(-|x - y|))"""
    return t.Add(t.Max(x, y), t.Softplus(t.Neg(t.Abs(t.Sub(x, y)))))


def chosen(type: str, of_bools: str) -> Handler:
    """The rule of the greater or lesser one, which is a number where the other one is none."""
    both = same(type, of_bools)

    def rule(g: Writer, call: OpCall) -> Any:
        found = both(g, call)
        if not dtype_of(call).is_floating_point:
            return found
        t, (x, y) = FormulaWriter(g, call), g.inputs(call)
        return t.Where(t.IsNaN(x), y, t.Where(t.IsNaN(y), x, found))
    return rule


onnx_rule(operations.fmax)(chosen("Max", "Or"))
onnx_rule(operations.fmin)(chosen("Min", "And"))


def trunc(t: FormulaWriter, x: str) -> Any:
    """sign(x) * floor(|x|)"""
    return t.Mul(t.Sign(x), t.Floor(t.Abs(x)))


FORMULAS: dict[Any, Any] = {
    operations.elu: lambda t, x, alpha: t.Where(t.Greater(x, 0.0), x, t.Mul(
        alpha, expm1(t, t.Min(x, 0.0)))),
    operations.celu: celu,
    operations.leaky_relu: lambda t, x, slope: t.Where(t.Less(x, 0.0), t.Mul(x, slope), x),
    operations.selu: lambda t, x: t.Selu(x, alpha=1.6732632423543772, gamma=1.0507009873554805),
    operations.hardsigmoid: lambda t, x: t.HardSigmoid(x, alpha=1 / 6, beta=0.5),
    operations.softplus: lambda t, x, beta, threshold: t.Where(
        t.Greater(t.Mul(x, beta), threshold), x, t.Div(t.Softplus(t.Mul(x, beta)), beta)),
    operations.softshrink: lambda t, x, lambd: t.Sub(x, t.Max(t.Min(x, lambd), t.Neg(lambd))),
    operations.hardshrink: lambda t, x, lambd: t.Where(t.Greater(t.Abs(x), lambd), x, 0.0),
    operations.sinc: lambda t, x: t.Where(t.Equal(x, 0.0), 1.0, t.Div(
        t.Sin(t.Mul(x, math.pi)), t.Where(t.Equal(x, 0.0), 1.0, t.Mul(x, math.pi)))),
    operations.threshold: lambda t, x, limit, value: t.Where(t.Greater(x, limit), x, value),
    operations.tanhshrink: lambda t, x: t.Sub(x, t.Tanh(x)),
    operations.silu: lambda t, x: t.Mul(x, t.Sigmoid(x)),
    operations.logsigmoid: lambda t, x: t.Neg(t.Softplus(t.Neg(x))),
    operations.gelu: gelu,
    operations.gelu_tanh: lambda t, x: gelu(t, x, "tanh"),
    operations.square: lambda t, x: t.Mul(x, x),
    operations.rsqrt: lambda t, x: t.Reciprocal(t.Sqrt(x)),
    operations.exp2: lambda t, x: t.Pow(2.0, x),
    operations.log2: lambda t, x: t.Div(t.Log(x), math.log(2)),
    operations.log10: lambda t, x: t.Div(t.Log(x), math.log(10)),
    operations.log1p: log1p,
    operations.expm1: expm1,
    operations.frac: lambda t, x: t.Sub(x, trunc(t, x)),
    operations.squared_error: lambda t, x, y: t.Mul(t.Sub(x, y), t.Sub(x, y)),
    operations.logaddexp: logaddexp,
    operations.xlogy: lambda t, x, y: t.Where(t.Or(
        t.Not(t.Equal(x, 0.0)), t.IsNaN(y)), t.Mul(x, t.Log(y)), 0.0),
    operations.add_product: lambda t, x, y, z: t.Add(x, t.Mul(y, z)),
    operations.add_quotient: lambda t, x, y, z: t.Add(x, t.Div(y, z)),
    operations.add_scaled_product: lambda t, x, y, z, v: t.Add(x, t.Mul(t.Mul(y, v), z)),
    operations.add_scaled_quotient: lambda t, x, y, z, v: t.Add(x, t.Div(t.Mul(y, v), z)),
    operations.lerp: lambda t, x, y, weight: t.Add(x, t.Mul(t.Sub(y, x), weight)),
    operations.root_of_positive: lambda t, x: t.Sqrt(t.Relu(x)),
    operations.hypot: lambda t, x, y: t.Sqrt(t.Add(t.Mul(x, x), t.Mul(y, y))),
    operations.logit: lambda t, x: t.Log(t.Div(x, t.Sub(1.0, x))),
}


def formula(write: Any) -> Handler:
    """The rule of what is several nodes, or has numbers that have to be constants."""
    return lambda g, call: write(FormulaWriter(g, call), *g.inputs(call))


for _operation, _formula in FORMULAS.items():
    onnx_rule(_operation)(formula(_formula))


@onnx_rule(operations.clamp, operations.clamp_min, operations.clamp_max, operations.hardtanh)
def clamped(g: Writer, call: OpCall) -> Any:
    """`Max` and `Min` with the bounds that are given."""
    low = call.inputs.get("min", call.inputs.get("min_val"))
    high = call.inputs.get("max", call.inputs.get("max_val"))
    dtype = dtype_of(call)
    x = g.value(first_of(call), dtype)
    for bound, type, open_one in ((low, "Max", -math.inf), (high, "Min", math.inf)):
        if bound is not None and not (isinstance(bound, float) and bound == open_one):
            x = g.node(type, x, g.value(bound, dtype))
    return x


# ---- division ------------------------------------------------------------------------------------

@onnx_rule(operations.fmod)
def fmod(g: Writer, call: OpCall) -> Any:
    """`Mod` with the sign of the dividend."""
    return g.node("Mod", *g.inputs(call), fmod=1)


@onnx_rule(operations.div_trunc)
def div_trunc(g: Writer, call: OpCall) -> Any:
    """The quotient rounded towards 0, as division of integers rounds."""
    whole = g.node("Div", *g.inputs(call))
    return trunc(FormulaWriter(g, call), whole) if dtype_of(call).is_floating_point else whole


@onnx_rule(operations.floor_divide)
def floor_divide(g: Writer, call: OpCall) -> Any:
    """The quotient of what the remainder of the division leaves, as C's `fmod` has it."""
    t, (x, y) = FormulaWriter(g, call), g.inputs(call)
    rest = t.Mod(x, y, fmod=1)
    dtype = dtype_of(call)
    if not dtype.is_floating_point:
        less = t.Not(t.Equal(t.Mod(x, y), rest))
        return t.Sub(t.Div(x, y), g.cast(less, BOOL, dtype))
    whole = t.Div(t.Sub(x, rest), y)
    whole = t.Where(other_sign(t, rest, y), t.Sub(whole, 1.0), whole)
    floor = t.Floor(whole)
    floor = t.Where(t.Greater(t.Sub(whole, floor), 0.5), t.Add(floor, 1.0), floor)
    return t.Where(t.Equal(y, 0.0), t.Div(x, y), floor)


def other_sign(t: FormulaWriter, rest: str, y: str) -> Any:
    """Where a remainder that is not 0 has another sign than the divisor."""
    return t.And(t.Not(t.Equal(rest, 0.0)), t.Xor(t.Less(rest, 0.0), t.Less(y, 0.0)))


@onnx_rule(operations.remainder)
def remainder(g: Writer, call: OpCall) -> Any:
    """`Mod` with the sign of the divisor; for floats that of the dividend is corrected."""
    x, y = g.inputs(call)
    if not dtype_of(call).is_floating_point:
        return g.node("Mod", x, y)
    t = FormulaWriter(g, call)
    rest = t.Mod(x, y, fmod=1)
    return t.Where(other_sign(t, rest, y), t.Add(rest, y), rest)


# ---- dtypes and fillings -------------------------------------------------------------------------

@onnx_rule(operations.to)
def to(g: Writer, call: OpCall) -> Any:
    """The argument in the dtype of the result."""
    return g.inputs(call)[0]


@onnx_rule(operations.copy, operations.full_like)
def filled(g: Writer, call: OpCall) -> Any:
    """A tensor like the first argument, of what comes after it."""
    _, *rest = call.inputs.values()
    return like_first(g, call, rest[0] if rest else call.attributes.get("fill_value"))


def like_first(g: Writer, call: OpCall, value: Any) -> Any:
    """A value in the shape of the first argument."""
    like = first_of(call)
    if value is None or isinstance(value, Dim):
        raise unsupported(call, "has no counterpart in ONNX in this form")
    return g.node("Expand", g.value(value, dtype_of(call)), g.shape_vector(g.shape(like))
                  if None not in g.shape(like) else g.node("Shape", g.value(like)))


onnx_rule(operations.zeros_like)(partial(like_first, value=0))
onnx_rule(operations.ones_like)(partial(like_first, value=1))


def first_of(call: OpCall) -> Any:
    """The first argument of a call."""
    return next(iter(call.inputs.values()))


def dtype_of(call: OpCall) -> Any:
    """The dtype of the first result that is read."""
    return next(x.dtype for x in call.outputs if x is not None)
