"""Texts of everything that can be called, and how an odd call of it is written."""

import importlib
import inspect
from functools import cache, partial
from types import ModuleType

import numpy as np

import tensorlib as tl
from tensorlib import ops

from .values import compiled

PACKAGES = ("autograd", "autograd.graph", "autograd.functional", "autograd.forward_ad", "func",
            "graph", "memory", "ops", "testing", "utils.checkpoint", "linalg", "special",
            "nn.functional", "distributions", "optim", "optim.lr_scheduler")

# What starts programs or test runs of its own, or changes the operations that other calls use.
LEFT_OUT = {"draw", "check_op", "strategies", "add_rule", "add_tangent", "vjp", "jvp", "deriv",
            "gradcheck", "gradgradcheck", "set_cache_limit", "__del__", "__class__",
            "__init_subclass__", "__subclasshook__", "__getattribute__", "__delattr__", "__dir__",
            "__sizeof__", "__getstate__", "__weakref__", "__dict__", "__doc__", "__module__"}

NUMPY = ["add", "sum", "mean", "where", "concatenate", "stack", "reshape", "transpose", "dot",
         "clip", "take", "argmax", "einsum", "split", "matmul", "power", "cumsum", "sort", "copyto",
         "broadcast_to", "expand_dims", "squeeze", "var", "allclose", "array", "asarray",
         "ones_like", "put", "roll", "tile", "repeat", "moveaxis", "take_along_axis"]

# Objects whose methods are called, beside tensors.
OTHERS = ["tl.Generator()", "tl.float32", "tl.Size([2, 3])", "tl.device('cpu')",
          "ops.registry['add']", "ops.call('sum', tl.rand(2, requires_grad=True), dim=0)",
          "ops.build_grad_op(ops.call('sum', tl.ones(2), dim=0))",
          "tl.rand(2, requires_grad=True).tanh().grad_fn", "ops.registry['sum'].rules[0]",
          "tl.rand(2, requires_grad=True).register_hook(print)", "tl.no_grad()", "tl.tanh",
          "tl.optim.Adam([tl.rand(2, requires_grad=True)])"]


@cache
def functions():
    """Texts of the public functions and classes."""
    found = []
    for package in ("", *PACKAGES):
        module = importlib.import_module("tensorlib." + package) if package else tl
        listed = getattr(module, "__all__", dir(module))
        names = [name for name in listed if name[0] != "_" and name not in LEFT_OUT
                 and callable(getattr(module, name))
                 and not isinstance(getattr(module, name), ModuleType)
                 and getattr(getattr(module, name), "__module__", "").startswith("tensorlib")]
        found += [".".join(filter(None, ("tl", package, name))) for name in names]
    return found + [f"np.{name}" for name in NUMPY if hasattr(np, name)]


@cache
def methods():
    """Texts of the methods of tensors, which are called with any `self`."""
    return [f"tl.Tensor.{name}" for name in dir(tl.Tensor)
            if name not in LEFT_OUT and callable(getattr(tl.Tensor, name))]


@cache
def properties():
    """Names of what is read and set on a tensor."""
    return [name for name in dir(tl.Tensor)
            if inspect.isgetsetdescriptor(getattr(tl.Tensor, name, None))
            or isinstance(getattr(tl.Tensor, name, None), property)]


@cache
def operations():
    """Texts of what the registry hands out."""
    found = []
    for name, op in ops.registry.items():
        record = f"ops.registry[{name!r}]"
        found += [record, f"partial(ops.call, {name!r})"]
        found += [f"{record}.{part}" for part in ("forward", "gradient", "tangent_rule", "tangent")
                  if callable(getattr(op, part))]
        found += [f"{record}.rules[{i}].function" for i, rule in enumerate(op.rules)
                  if rule is not None]
    return found


@cache
def members():
    """Texts of the methods of other objects."""
    names = {"tl": tl, "ops": ops, "print": print}
    return [f"{text}.{name}" for text in OTHERS for name in dir(type(eval(text, names)))
            if name not in LEFT_OUT and (name[0] != "_" or name[:2] == "__")
            and callable(getattr(type(eval(text, names)), name))]


@cache
def keywords(target):
    """Names of what a function, given as text, takes by keyword."""
    names = {"tl": tl, "ops": ops, "np": np, "print": print, "partial": partial}
    function = eval(compiled(target), names)
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)]


def some_target(rng):
    """The text of something to call."""
    return rng.choice(rng.choices([functions(), methods(), operations(), members()],
                                  [4, 4, 4, 1])[0])


def odd_call(rng, value):
    """(text of a function, texts of its arguments, texts of its keywords); `value(rng)` gives each.

    The first argument is often a tensor, since most calls are refused without.
    """
    if rng.random() < 0.05:
        name = rng.choice(properties())
        return rng.choice([("setattr", [tensor(rng, value), repr(name), value(rng)], {}),
                           ("getattr", [tensor(rng, value), repr(name)], {}),
                           ("delattr", [tensor(rng, value), repr(name)], {})])
    target = some_target(rng)
    args = [value(rng) for _ in range(rng.choices([0, 1, 2, 3, 4, 5], [1, 6, 8, 5, 2, 1])[0])]
    if args and rng.random() < 0.7:
        args[0] = tensor(rng, value)
    named = keywords(target)
    chosen = rng.sample(named, min(len(named), rng.choice([0, 0, 1, 2])))
    if rng.random() < 0.1:
        chosen = [*chosen, rng.choice(["out", "dim", "dtype", "index", "place", "keepdim"])]
    return target, args, {name: value(rng) for name in chosen if name.isidentifier()}


def tensor(rng, value):
    """The text of a tensor as `value` makes them."""
    for _ in range(20):
        text = value(rng)
        if text.startswith(("tl.rand", "tl.ones", "tl.zeros", "tl.tensor", "liars.with_graph",
                            "liars.inference")) and ".tolist" not in text:
            return text
    return "tl.rand(2, 3)"
