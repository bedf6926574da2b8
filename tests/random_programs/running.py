"""Runs the text of a program, eagerly or compiled, and notes all that can be seen of it.

A text defines `build()`, which gives `f`, `steps` and `look`: the function, what happens between
its calls, and what else to look at. A step is a function that changes something, or the arguments
of a call: a dict, where what is under "also" is looked up when the call comes.
"""

import importlib.util
import itertools
import linecache
import math
import os
import random
import struct
import sys
import tempfile
import types
import warnings

import numpy as np

import tensorlib as tl

NUMBERS = itertools.count()
DEEPEST = 8


def loaded(text):
    """A module of this text, in a file of its own, so that its source can be had."""
    name = f"drawn_{os.getpid()}_{next(NUMBERS)}"
    path = os.path.join(folder(), name + ".py")
    with open(path, "w") as file:
        file.write(text)
    spec = importlib.util.spec_from_file_location(name, path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def folder(kept=[]):  # one folder for the process
    if not kept:
        kept.append(tempfile.TemporaryDirectory(prefix="drawn"))
    return kept[0].name


def unloaded(module):
    """Lets go of a module and its file."""
    del sys.modules[module.__name__]
    linecache.cache.pop(module.__file__, None)
    os.unlink(module.__file__)


def history(text, wrap):
    """All that can be seen of the steps, the function wrapped."""
    module = loaded(text)
    try:
        os.environ.pop("DRAWN", None)
        random.seed(3)
        np.random.seed(3)
        tl.manual_seed(3)
        f, steps, look = module.build()
        f = wrap(f)
        log = []
        for step in steps:
            if callable(step):
                step()
                continue
            try:
                also = step.pop("also", {})
                given = {**(also() if callable(also) else also), **{
                    name: x() if callable(x) else x for name, x in step.items()}}
                log.append(("result", called(f, given, look)))
            except Exception as error:
                log.append(("raised", type(error).__name__))
            try:
                log.append(("state", seen(look())))
            except Exception as error:
                log.append(("state raised", type(error).__name__))
        log.append(("drawn", random.random(), np.random.rand(), seen(tl.rand(1))))
        return log
    finally:
        tl.autograd.set_detect_anomaly(False)      # a step that turns it on may be the last
        unloaded(module)


def called(f, given, look):
    """What a call shows: its results, which of them are arguments or each other, their strides, and
    the gradients of leaves, of which those that are differentiated agree nearly."""
    out = f(**given)
    given = [x for x in given.values() if isinstance(x, tl.Tensor)]
    found = [x for x in (out if type(out) is tuple else [out]) if isinstance(x, tl.Tensor)]
    log = [seen(out), [[x is y for y in (*given, *found)] for x in found],
           [x.stride() for x in found if x.numel()]]
    linked = [x for x in found if x.requires_grad and x.is_floating_point()]
    if not linked:
        return log
    around = look()
    leaves = {id(x): x for x in (*given, *(around if type(around) is list else ()))
              if isinstance(x, tl.Tensor) and x.is_leaf and x.requires_grad}
    total = sum((x.double() * (k + 1)).sum() for k, x in enumerate(linked))
    slopes = gradients(total, leaves.values())
    total.backward(retain_graph=True)
    log += [seen(x.grad) for x in leaves.values()]
    total = sum((x.double() ** 2).sum() for x in slopes if x is not None)
    curves = [None] * len(slopes)
    if isinstance(total, tl.Tensor) and total.requires_grad:
        curves = gradients(total, leaves.values())
    return log + [near(x, like) for like, x in zip((*leaves.values(),) * 2, (*slopes, *curves))]


class Near(float):
    """A number that equals another one but for what float32 rounds away, as NaN equals NaN."""

    def __eq__(self, other):
        return math.isclose(self, other, rel_tol=1e-5, abs_tol=1e-5) or (
            math.isnan(self) and math.isnan(other))

    def __ne__(self, other):
        return not self == other

    __hash__ = None


def near(x, like):
    """The elements of a gradient: zeros where there is none."""
    x = tl.zeros_like(like) if x is None else x
    return [Near(v) for v in x.double().flatten().tolist()]


def gradients(total, leaves):
    return list(tl.autograd.grad(total, list(leaves), create_graph=True, allow_unused=True))


def seen(x, depth=0):
    """A value as plain data, to the bit."""
    if depth > DEEPEST:
        return "deeper"
    if isinstance(x, tl.Tensor):
        plain = x.detach().contiguous()
        data = plain.float() if plain.dtype is tl.bfloat16 else plain
        return (type(x).__name__, x.dtype.name, tuple(x.shape), x.requires_grad,
                data.numpy().tobytes())
    if isinstance(x, float) and type(x) is float:
        return "float", struct.pack("<d", x)
    if isinstance(x, np.ndarray) and x.dtype.kind == "O":
        return "array of objects", seen(x.tolist(), depth + 1)
    if isinstance(x, (np.ndarray, np.generic)):
        return type(x).__name__, str(x.dtype), x.shape, x.tobytes()
    if isinstance(x, (int, str, bytes, complex, type(None), tl.dtype, type(...))):
        return type(x).__name__, repr(x)
    if isinstance(x, (set, frozenset)):
        return type(x).__name__, sorted(map(repr, x))
    if hasattr(type(x), "items") and hasattr(type(x), "keys"):
        return type(x).__name__, [(repr(k), seen(v, depth + 1)) for k, v in list(x.items())]
    if isinstance(x, (list, tuple)) or type(x).__name__ in ("deque", "UserList", "ListOf"):
        return type(x).__name__, [seen(v, depth + 1) for v in list(x)]
    if isinstance(x, tl.nn.Module):
        return type(x).__name__, [seen(v, depth + 1) for v in x.state_dict().values()], x.training
    if isinstance(x, (types.FunctionType, type, types.BuiltinFunctionType)):
        return type(x).__name__, x.__name__
    if isinstance(getattr(x, "__dict__", None), dict):
        return type(x).__name__, seen(vars(x), depth + 1)
    return type(x).__name__


def difference(text):
    """Where a compiled function is not as the eager one: "" where it is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = history(text, lambda f: f)
        found = history(text, tl.compile)
    for number, (x, y) in enumerate(zip(wanted, found)):
        if x != y:
            where, x, y = first_difference(x, y)
            return f"step {number}{where}: eager {x}, compiled {y}"
    return "" if len(wanted) == len(found) else "one has more steps"


def first_difference(x, y, where=""):
    """The first part in which two logs differ, and where it is in them."""
    if type(x) is type(y) and isinstance(x, (list, tuple)) and len(x) == len(y):
        for i, (a, b) in enumerate(zip(x, y)):
            if a != b:
                return first_difference(a, b, f"{where}[{i}]")
    return where, x, y
