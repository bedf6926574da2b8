"""Examples for pages whose docstring has none: calls with sample arguments, and what they give."""

import math
import warnings

import numpy as np

import tensorlib as tl
from tensorlib._core.graph.op import Op
from benchmarks.module_rows import module_rows


def example(entry):
    """A session that calls what an entry is, as it ran just now; None where nothing is known."""
    lines = (operation_call(entry) or module_call(entry) or optimizer_call(entry))
    return lines and session(lines)


def session(statements):
    """Statements after >>> with what each gives; the names are those of a fresh interpreter."""
    names, shown = {"tl": tl, "nn": tl.nn}, []
    tl.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for statement in statements:
            shown.append(">>> " + statement.replace("\n", "\n... "))
            try:
                value = eval(compile(statement, "example", "eval"), names)
            except SyntaxError:
                exec(compile(statement, "example", "exec"), names)
                continue
            except (TypeError, ValueError, RuntimeError, IndexError, NotImplementedError):
                return None
            if value is not None:
                shown.append(repr(value))
    return "\n".join(shown)


# ---- operations ----------------------------------------------------------------------------------

def operation_call(entry):
    """The call of an operation with the best of the samples that its tests use."""
    op = getattr(entry.value, "op", None)
    samples = isinstance(op, Op) and op.testing.get("samples")
    if not samples:
        return None
    found = [call for arguments, keywords in samples(np.random.default_rng(3))
             if (call := text_of(entry, arguments, keywords)) and session([call])]
    return min(found, key=fitness, default=None) and [min(found, key=fitness)]


def text_of(entry, arguments, keywords):
    try:
        parts = [literal(value) for value in arguments]
        parts += [f"{name}={literal(value)}" for name, value in keywords.items()]
    except TypeError:
        return None
    name = entry.qualified.replace("tensorlib.", "tl.", 1)
    return f"{name}({', '.join(parts)})"


def fitness(call):
    """How far a call is from the length that reads well; what has no numbers is last."""
    empty = "[]" in call or not any(c.isdigit() for c in call)
    return empty, call.count("[[["), abs(len(call) - 60)


def literal(value):
    """An argument as source text."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        raise TypeError
    if isinstance(value, np.ndarray):
        if value.size == 0 or value.size > 12 or not np.isfinite(value).all():
            raise TypeError
        if value.dtype.kind == "f":
            value = np.round(value, 1) + 0.0
        return f"tl.tensor({value.tolist()})"
    if isinstance(value, (tuple, list)):
        inner = ", ".join(literal(v) for v in value)
        if isinstance(value, list):
            return f"[{inner}]"
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    if isinstance(value, tl.dtype):
        return repr(value).replace("tensorlib.", "tl.")
    raise TypeError


# ---- modules and optimisers ----------------------------------------------------------------------

def module_call(entry):
    """A module applied to an input of the size that the benchmarks use."""
    if not (isinstance(entry.value, type) and issubclass(entry.value, tl.nn.Module)):
        return None
    for name, called, shape in module_rows():
        if name == f"nn.{entry.name}":
            sizes = ", ".join(shape.split("x"))
            result = "(x)[0]" if entry.name in ("LSTM", "GRU", "RNN") else "(x)"
            return [f"layer = tl.{called}", f"x = tl.randn({sizes})", f"layer{result}.shape"]
    for statements in ([f"layer = tl.nn.{entry.name}()",
                        "layer(tl.tensor([[-1.0, 0.5], [2.0, 0.0]]))"],
                       [f"loss = tl.nn.{entry.name}()",
                        "loss(tl.tensor([0.2, 0.9]), tl.tensor([0.0, 1.0]))"],
                       [f"loss = tl.nn.{entry.name}()",
                        "loss(tl.tensor([[0.2, 0.9]]), tl.tensor([1]))"]):
        if has_run(statements):
            return statements
    return None


def has_run(statements):
    try:
        return session(statements) is not None
    except Exception:                       # whatever a class that needs more arguments raises
        return False


def optimizer_call(entry):
    """A step of an optimiser on two numbers."""
    if not (isinstance(entry.value, type) and issubclass(entry.value, tl.optim.Optimizer)) or (
            entry.value is tl.optim.Optimizer):
        return None
    closure = "optimizer.step(lambda: w.square().sum())" if entry.name == "LBFGS" else None
    statements = ["w = tl.tensor([1.0, -2.0], requires_grad=True)",
                  f"optimizer = tl.optim.{entry.name}([w], lr=0.1)",
                  "w.square().sum().backward()", closure or "optimizer.step()", "w"]
    return statements if has_run(statements) else None
