"""Element-wise operations in ONNX."""

import math
from typing import Any

from tensorlib._core.base.dtypes import BY_NAME
from tensorlib.onnx.errors import unsupported
from tensorlib.onnx.sizes import Dim
from tensorlib.onnx.writing import BOOL, Writer, exports
from tensorlib.program.model import OpCall

# Operations that ONNX has as they are, in the dtype of their result.
SAME = {
    "abs": "Abs", "acos": "Acos", "acosh": "Acosh", "asin": "Asin", "asinh": "Asinh",
    "atan": "Atan", "atanh": "Atanh", "ceil": "Ceil", "cos": "Cos", "cosh": "Cosh", "erf": "Erf",
    "exp": "Exp", "floor": "Floor", "log": "Log", "neg": "Neg", "reciprocal": "Reciprocal",
    "round": "Round", "sigmoid": "Sigmoid", "sign": "Sign", "sin": "Sin", "sinh": "Sinh",
    "sqrt": "Sqrt", "tan": "Tan", "tanh": "Tanh", "relu": "Relu", "softsign": "Softsign",
    "mish": "Mish", "hardswish": "HardSwish", "logical_not": "Not",
    "add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "pow": "Pow", "maximum": "Max",
    "minimum": "Min",
}
# Operations that compare their arguments in one dtype.
COMPARISONS = {"eq": "Equal", "lt": "Less", "le": "LessOrEqual", "gt": "Greater",
               "ge": "GreaterOrEqual"}
# Of bools, and of whole numbers.
BITWISE = {"bitwise_and": ("And", "BitwiseAnd"), "bitwise_or": ("Or", "BitwiseOr"),
           "bitwise_xor": ("Xor", "BitwiseXor"), "bitwise_not": ("Not", "BitwiseNot")}
LOGICAL = {"logical_and": "And", "logical_or": "Or", "logical_xor": "Xor"}
# What keeps the sign, or the whole numbers, of what ONNX takes floating numbers for.
WHOLE = ("ceil", "floor", "round")
UNCHANGED = ("detach", "clone", "contiguous", "positive")
ROOT_HALF = math.sqrt(0.5)


@exports(*SAME)
def same(g: Writer, call: OpCall) -> Any:
    x = g.inputs(call)
    if not dtype_of(call).is_floating_point and call.type in WHOLE:
        return x[0]
    if dtype_of(call) == BOOL and call.type in ("add", "mul", "maximum", "minimum"):
        return g.node("Or" if call.type in ("add", "maximum") else "And", *x)
    return g.node(SAME[call.type], *x, name=call.type)


@exports(*UNCHANGED)
def unchanged(g: Writer, call: OpCall) -> Any:
    return g.value(first_of(call))


@exports(*COMPARISONS, "ne")
def compared(g: Writer, call: OpCall) -> Any:
    dtype = g.common(call)
    if dtype == BOOL and call.type not in ("eq", "ne"):
        dtype = BY_NAME["int32"]
    x = g.inputs(call, dtype)
    if call.type == "ne":
        return g.node("Not", g.node("Equal", *x), name="ne")
    return g.node(COMPARISONS[call.type], *x, name=call.type)


@exports(*BITWISE)
def bitwise(g: Writer, call: OpCall) -> Any:
    return g.node(BITWISE[call.type][dtype_of(call) != BOOL], *g.inputs(call), name=call.type)


@exports(*LOGICAL)
def logical(g: Writer, call: OpCall) -> Any:
    return g.node(LOGICAL[call.type], *g.inputs(call, BOOL), name=call.type)


@exports("isnan", "isinf", "isfinite")
def classified(g: Writer, call: OpCall) -> Any:
    x = g.inputs(call, first_of(call).dtype)[0]
    if call.type != "isfinite":
        return g.node("IsNaN" if call.type == "isnan" else "IsInf", x, name=call.type)
    return g.node("Not", g.node("Or", g.node("IsNaN", x), g.node("IsInf", x)), name="isfinite")


@exports("where")
def where(g: Writer, call: OpCall) -> Any:
    condition, x, y = call.inputs.values()
    dtype = dtype_of(call)
    names = g.value(condition, BOOL), g.value(x, dtype), g.value(y, dtype)
    if dtype != BOOL:
        return g.node("Where", *names)
    taken = g.node("And", names[0], names[1])             # few runtimes choose among bools
    return g.node("Or", taken, g.node("And", g.node("Not", names[0]), names[2]))


# ---- activations ---------------------------------------------------------------------------------

@exports("elu", "celu", "leaky_relu", "selu", "hardsigmoid", "softplus", "softshrink", "hardshrink",
         "threshold", "tanhshrink", "silu", "logsigmoid", "gelu", "gelu_tanh", "square", "rsqrt",
         "exp2", "log2", "log10", "log1p", "expm1", "trunc", "frac", "squared_error",
         "logaddexp", "fmax", "fmin", "sinc", "xlogy", "lerp", "hypot", "logit")
def formula(g: Writer, call: OpCall) -> Any:
    """What is written as several nodes, or with numbers that have to be constants."""
    return FORMULAS[call.type](Terms(g, call), *g.inputs(call))


class Terms:
    """Writes formulas: `t.Add(x, 1.0)` is a node of names, and of numbers in the call's dtype."""

    def __init__(self, g: Writer, call: OpCall):
        self.g, self.call = g, call

    def __getattr__(self, type: str) -> Any:
        def node(*args: Any, **attributes: Any) -> Any:
            names = [x if isinstance(x, str) else self.g.constant(x, dtype_of(self.call))
                     for x in args]
            return self.g.node(type, *names, **attributes)
        return node


def gelu(t: Terms, x: str, approximate: str = "none") -> Any:
    if t.g.opset >= 20:
        return t.Gelu(x, approximate=approximate)
    if approximate == "none":
        return t.Mul(t.Mul(x, 0.5), t.Add(t.Erf(t.Mul(x, ROOT_HALF)), 1.0))
    inner = t.Mul(t.Add(x, t.Mul(t.Mul(t.Mul(x, x), x), 0.044715)), math.sqrt(2 / math.pi))
    return t.Mul(t.Mul(x, 0.5), t.Add(t.Tanh(inner), 1.0))


def celu(t: Terms, x: str, alpha: str) -> Any:
    """max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0)"""
    grown = t.Mul(alpha, expm1(t, t.Div(t.Min(x, 0.0), alpha)))
    return t.Add(t.Max(x, 0.0), grown)


def expm1(t: Terms, x: str) -> Any:
    """Near zero by tanh, which loses no digits there."""
    half = t.Tanh(t.Mul(x, 0.5))
    near = t.Div(t.Mul(half, 2.0), t.Sub(1.0, half))
    return t.Where(t.Less(t.Abs(x), 0.5), near, t.Sub(t.Exp(x), 1.0))


def log1p(t: Terms, x: str) -> Any:
    """log(u) * x / (u - 1) of u = 1 + x as it is rounded, which loses no digits near zero."""
    u = t.Add(x, 1.0)
    exact = t.Equal(u, 1.0)
    rest = t.Where(exact, 1.0, t.Sub(u, 1.0))
    return t.Where(exact, x, t.Where(t.IsInf(x), x, t.Mul(t.Log(u), t.Div(x, rest))))


def logaddexp(t: Terms, x: str, y: str) -> Any:
    return t.Add(t.Max(x, y), t.Softplus(t.Neg(t.Abs(t.Sub(x, y)))))


def chosen(t: Terms, x: str, y: str, both: str) -> Any:
    """The one that is a number, where the other one is none."""
    return t.Where(t.IsNaN(x), y, t.Where(t.IsNaN(y), x, both))


def trunc(t: Terms, x: str) -> Any:
    return t.Mul(t.Sign(x), t.Floor(t.Abs(x)))


FORMULAS: dict[str, Any] = {
    "elu": lambda t, x, alpha: t.Where(t.Greater(x, 0.0), x, t.Mul(
        alpha, expm1(t, t.Min(x, 0.0)))),
    "celu": celu,
    "leaky_relu": lambda t, x, slope: t.Where(t.Less(x, 0.0), t.Mul(x, slope), x),
    "selu": lambda t, x: t.Selu(x, alpha=1.6732632423543772, gamma=1.0507009873554805),
    "hardsigmoid": lambda t, x: t.HardSigmoid(x, alpha=1 / 6, beta=0.5),
    "softplus": lambda t, x, beta, threshold: t.Where(
        t.Greater(t.Mul(x, beta), threshold), x, t.Div(t.Softplus(t.Mul(x, beta)), beta)),
    "softshrink": lambda t, x, lambd: t.Sub(x, t.Max(t.Min(x, lambd), t.Neg(lambd))),
    "hardshrink": lambda t, x, lambd: t.Where(t.Greater(t.Abs(x), lambd), x, 0.0),
    "fmax": lambda t, x, y: chosen(t, x, y, t.Max(x, y)),
    "fmin": lambda t, x, y: chosen(t, x, y, t.Min(x, y)),
    "sinc": lambda t, x: t.Where(t.Equal(x, 0.0), 1.0, t.Div(
        t.Sin(t.Mul(x, math.pi)), t.Where(t.Equal(x, 0.0), 1.0, t.Mul(x, math.pi)))),
    "threshold": lambda t, x, limit, value: t.Where(t.Greater(x, limit), x, value),
    "tanhshrink": lambda t, x: t.Sub(x, t.Tanh(x)),
    "silu": lambda t, x: t.Mul(x, t.Sigmoid(x)),
    "logsigmoid": lambda t, x: t.Neg(t.Softplus(t.Neg(x))),
    "gelu": gelu,
    "gelu_tanh": lambda t, x: gelu(t, x, "tanh"),
    "square": lambda t, x: t.Mul(x, x),
    "rsqrt": lambda t, x: t.Reciprocal(t.Sqrt(x)),
    "exp2": lambda t, x: t.Pow(2.0, x),
    "log2": lambda t, x: t.Div(t.Log(x), math.log(2)),
    "log10": lambda t, x: t.Div(t.Log(x), math.log(10)),
    "log1p": log1p,
    "expm1": expm1,
    "trunc": trunc,
    "frac": lambda t, x: t.Sub(x, trunc(t, x)),
    "squared_error": lambda t, x, y: t.Mul(t.Sub(x, y), t.Sub(x, y)),
    "logaddexp": logaddexp,
    "xlogy": lambda t, x, y: t.Where(t.Equal(x, 0.0), 0.0, t.Mul(x, t.Log(y))),
    "lerp": lambda t, x, y, weight: t.Add(x, t.Mul(t.Sub(y, x), weight)),
    "hypot": lambda t, x, y: t.Sqrt(t.Add(t.Mul(x, x), t.Mul(y, y))),
    "logit": lambda t, x: t.Log(t.Div(x, t.Sub(1.0, x))),
}


@exports("clamp", "clamp_min", "clamp_max", "hardtanh")
def clamped(g: Writer, call: OpCall) -> Any:
    low = call.inputs.get("min", call.inputs.get("min_val"))
    high = call.inputs.get("max", call.inputs.get("max_val"))
    dtype = dtype_of(call)
    x = g.value(first_of(call), dtype)
    for bound, type, open_one in ((low, "Max", -math.inf), (high, "Min", math.inf)):
        if bound is not None and not (isinstance(bound, float) and bound == open_one):
            x = g.node(type, x, g.value(bound, dtype))
    return x


# ---- division ------------------------------------------------------------------------------------

@exports("remainder", "fmod", "floor_divide", "div_trunc")
def divided(g: Writer, call: OpCall) -> Any:
    x, y = g.inputs(call)
    floating = dtype_of(call).is_floating_point
    if call.type == "fmod":
        return g.node("Mod", x, y, fmod=1)
    if call.type == "div_trunc":
        whole = g.node("Div", x, y)
        return trunc(Terms(g, call), whole) if floating else whole
    if floating:
        whole = g.node("Floor", g.node("Div", x, y))
        return whole if call.type == "floor_divide" else g.node("Sub", x, g.node("Mul", whole, y))
    rest = g.node("Mod", x, y)
    return rest if call.type == "remainder" else g.node("Div", g.node("Sub", x, rest), y)


# ---- dtypes and fillings -------------------------------------------------------------------------

@exports("to")
def to(g: Writer, call: OpCall) -> Any:
    return g.inputs(call)[0]


@exports("copy", "zeros_like", "ones_like", "full_like")
def filled(g: Writer, call: OpCall) -> Any:
    """A tensor like the first argument, of what comes after it."""
    like, *rest = call.inputs.values()
    value = {"zeros_like": 0, "ones_like": 1}.get(
        call.type, rest[0] if rest else call.attributes.get("fill_value"))
    if value is None or isinstance(value, Dim):
        raise unsupported(call, "has no counterpart in ONNX in this form")
    return g.node("Expand", g.value(value, dtype_of(call)), g.shape_vector(g.shape(like))
                  if None not in g.shape(like) else g.node("Shape", g.value(like)))


def first_of(call: OpCall) -> Any:
    """The first argument of a call."""
    return next(iter(call.inputs.values()))


def dtype_of(call: OpCall) -> Any:
    """The dtype of the first result that is read."""
    return next(x.dtype for x in call.outputs if x is not None)
