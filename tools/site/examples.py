"""Examples for pages whose docstring has none: calls with sample arguments, and what they give."""

import ast
import inspect
import io
import math
import re
import tempfile
import traceback
import warnings
from contextlib import chdir, redirect_stdout
from functools import cache
from pathlib import Path

import numpy as np

import tensorlib as tl
from tensorlib._core.graph.op import Op
from tensorlib.ops.declare import FUNCTIONS
from benchmarks.module_rows import module_rows


FOLDER = Path(__file__).with_name("sessions")
HEADER = "# ---- "
RAISES = " (raises)"
ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}")
# What a call may raise that is not meant as it was tried.
EXPECTED = (TypeError, ValueError, RuntimeError, IndexError, NotImplementedError)


def example(entry):
    """A session that calls what an entry is, as it ran just now; None where nothing is known."""
    if found := written().get(entry.qualified):
        text, raises = found
        with tempfile.TemporaryDirectory() as folder, chdir(folder):
            return session(statements_of(text), raises)
    lines = (operation_call(entry) or inplace_call(entry) or module_call(entry)
             or optimizer_call(entry))
    return lines and session(lines)


def has_example(entry):
    """Whether the docstring has one."""
    return ">>>" in (inspect.getdoc(entry.value) or "")


@cache
def written():
    """The sessions in the folder of that name: full names to statements, and whether they raise.

    A line `# ---- nn.Fold nn.Unfold` names the pages that the lines below it are for, in which NAME
    is the last part of each name, and CALL the whole as a program writes it. One such as
    `# ---- nn.Fold: 3, 2` says what VALUE is. With (raises) at its end the last statement raises an
    error, which the page shows.
    """
    found = {}
    for path in sorted(FOLDER.glob("*.py")):
        heads, lines = {}, []
        for line in [*path.read_text().splitlines(), HEADER]:
            if not line.startswith(HEADER):
                lines.append(line)
                continue
            if lines:
                for name, (value, raises) in heads.items():
                    if name in found:
                        raise ValueError(f"{path.name}: a second session for {name}")
                    found[name] = for_page(name, value, "\n".join(lines)), raises
                heads, lines = {}, []
            heads |= headed(line.removeprefix(HEADER))
    return found


def for_page(name, value, text):
    """The statements of a session for one of its pages."""
    words = {"NAME": name.rpartition(".")[2], "VALUE": value, "CALL": as_called(name)}
    text = re.sub(r"\b(NAME|VALUE|CALL)\b", lambda word: words[word[0]], text)
    return re.sub(r" {2,}# ", "  # ", text)


def as_called(qualified):
    """A full name as a program writes it: `tl.exp`, `nn.Linear`."""
    name = qualified.removeprefix("tensorlib.")
    return name if name.startswith("nn.") else f"tl.{name}"


def headed(line):
    """The names in the first line of a session, each with what VALUE is, and whether it raises."""
    names, colon, value = line.removesuffix(RAISES).partition(":")
    return {f"tensorlib.{name}": (value.strip(), line.endswith(RAISES)) for name in names.split()}


def statements_of(text):
    """The statements of a program, with the comments behind them."""
    lines, found = text.splitlines(), []
    starts = [min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))]) - 1
              for node in ast.parse(text).body]
    for start, end in zip(starts, [*starts[1:], len(lines)]):
        found.append("\n".join(lines[start:end]).rstrip())
    return found


def session(statements, raises=False):
    """Statements after >>> with what each gives; the names are those of a fresh interpreter.

    raises: the last one raises an error, which is shown. Without it there is no session for one
    that was tried with what it does not take.
    """
    names, shown = {"__name__": "__main__", "tl": tl, "nn": tl.nn}, []
    tl.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, statement in enumerate(statements, 1):
            shown.append(">>> " + statement.replace("\n", "\n... "))
            printed = io.StringIO()
            try:
                with redirect_stdout(printed):
                    exec(compile(statement + "\n", "<stdin>", "single"), names)
            except Exception as error:
                if not raises and isinstance(error, EXPECTED):
                    return None
                if not raises or number < len(statements):
                    raise
                printed.write(traceback_of(error))
            else:
                if raises and number == len(statements):
                    raise AssertionError(f"no error is raised by {statement}")
            if text := printed.getvalue().rstrip():
                shown.append(ADDRESS.sub("0x...", text))
    return "\n".join(shown)


def traceback_of(error):
    """An error as doctest has it."""
    return "Traceback (most recent call last):\n    ...\n" + "".join(
        traceback.format_exception_only(error)).rstrip()


X = object()            # the argument that has the name x


# ---- operations ----------------------------------------------------------------------------------

def operation_call(entry):
    """The call of an operation with the best of the samples that its tests use."""
    found = [call for arguments, keywords in samples_of(entry.value)
             if (call := text_of(entry, arguments, keywords)) and session([call])]
    return min(found, key=fitness, default=None) and [min(found, key=fitness)]


def inplace_call(entry):
    """The call of the in-place form of an operation, in the same way, and what it wrote."""
    found = []
    for arguments, keywords in samples_of(FUNCTIONS.get(entry.name.removesuffix("_"))):
        if not arguments or not isinstance(arguments[0], np.ndarray):
            continue
        first, call = as_source(arguments[0]), text_of(entry, [X, *arguments[1:]], keywords)
        if first and call and has_run(lines := [f"x = {first}", f"_ = {call}", "x"]):
            found.append(lines)
    return min(found, key=lambda lines: fitness(" ".join(lines)), default=None)


def samples_of(function):
    """Positional and named arguments of the calls that test an operation; none of others."""
    op = getattr(function, "op", None)
    samples = isinstance(op, Op) and op.testing.get("samples")
    return samples(np.random.default_rng(3)) if samples else []


def text_of(entry, arguments, keywords):
    """A call as source text, or None where an argument has none that reads well."""
    parts = [as_source(value) for value in arguments]
    named = {name: as_source(value) for name, value in keywords.items()}
    if None in parts or None in named.values():
        return None
    parts += [f"{name}={value}" for name, value in named.items()]
    return f"{as_called(entry.qualified)}({', '.join(parts)})"


def fitness(call):
    """How far a call is from the length that reads well; what has no numbers is last."""
    empty = "[]" in call or not any(c.isdigit() for c in call)
    return empty, call.count("[[["), abs(len(call) - 60)


def as_source(value):
    """An argument as source text, or None."""
    try:
        return literal(value)
    except TypeError:
        return None


def literal(value):
    """An argument as source text. Raises: TypeError for one that takes too much room."""
    if value is X:
        return "x"
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
