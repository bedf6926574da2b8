"""Arguments of one call: an operation's declared samples, varied by a seed.

What is declared gives the form of a call that works; the variations reach the rest: other sizes
(none, one), broadcasting, numbers for tensors, other dtypes and layouts, NaN and infinities, other
dims, options that were not given. Many varied calls are refused, which is compared as well.
"""

import contextlib
import inspect
from dataclasses import dataclass, replace

import numpy as np

import tensorlib as tl
from tensorlib.testing.catalogue import DTYPES, KIND_OF, prepared, samples

LAYOUTS = ("contiguous", "transposed", "stepped", "expanded", "offset")
SPECIAL = (np.nan, np.inf, -np.inf, -0.0, 0.0, 1e30)

# What options may be, by their names; those of one operation alone are left as they are declared.
OPTIONS = {
    "dim": (0, 1, -1, -2, 2, None, (0, 1), (), (0, 0)), "keepdim": (True, False),
    "dtype": ("float64", "float32", "int64", "bool", "float16"), "correction": (0, 1, 2),
    "unbiased": (True, False), "descending": (True, False), "stable": (True, False),
    "largest": (True, False), "sorted": (True, False), "right": (True, False),
    "rounding_mode": ("floor", "trunc", None, "none"), "return_counts": (True, False),
    "return_inverse": (True, False), "reduction": ("mean", "sum", "none", "all"),
    "full": (True, False), "upper": (True, False), "align_corners": (True, False),
    "ceil_mode": (True, False), "interpolation": ("linear", "nearest", "lower", "midpoint"),
    "p": (0, 1, 2, 0.5, float("inf")), "ord": (0, 1, 2, -1, "fro", "nuc", float("inf"), None),
    "diagonal": (-2, -1, 0, 1, 5), "offset": (-1, 0, 1, 4), "alpha": (2, 0.5, True),
    "eps": (1e-3, None), "prepend": (None,), "n": (0, 1, 2, -1), "k": (-1, 0, 1, 3, 10),
    "approximate": ("none", "tanh", "other"), "include_self": (True, False),
    "accumulate": (True, False), "full_matrices": (True, False), "hermitian": (True, False),
}


@dataclass(frozen=True)
class Array:
    """A tensor to be made in both libraries."""

    values: np.ndarray
    dtype: str
    layout: str = "contiguous"
    requires_grad: bool = False

    def __repr__(self):
        parts = [f"{self.dtype}{list(self.values.shape)}", *[self.layout] * (
            self.layout != "contiguous"), *["grad"] * self.requires_grad]
        return " ".join(parts).replace(", ", ",")

    def made(self, library):
        """The tensor in a library, laid out as asked for."""
        x, shape = self.values, self.values.shape
        base = library.from_numpy(np.array(x, order="C")).to(getattr(library, self.dtype))
        if self.layout == "transposed" and x.ndim > 1:
            base = base.transpose(-1, -2).contiguous().transpose(-1, -2)
        elif self.layout == "stepped" and x.ndim:
            base = library.stack([base, base], -1).reshape(*shape[:-1], -1)[..., ::2]
        elif self.layout == "expanded" and x.ndim and shape[0]:
            base = base[:1].expand(shape)
        elif self.layout == "offset" and x.ndim:
            base = library.cat([base[:1], base])[min(1, shape[0]):]
        return base.detach().requires_grad_(self.requires_grad)


@dataclass(frozen=True)
class Call:
    """The arguments of a call; tensors are Arrays."""

    args: tuple
    kwargs: dict

    def __repr__(self):
        return ", ".join([*map(repr, self.args), *(f"{k}={v!r}" for k, v in self.kwargs.items())])

    def map(self, function):
        """The call with function(value) in the place of each argument that is not a sequence."""
        def one(value):
            if isinstance(value, (tuple, list)):
                return type(value)(one(x) for x in value)
            return function(value)
        return Call(tuple(one(x) for x in self.args),
                    {name: one(x) for name, x in self.kwargs.items()})

    def arrays(self):
        """The tensors, in order."""
        found = []
        self.map(lambda x: found.append(x) if isinstance(x, Array) else None)
        return found

    def with_array(self, wanted, other):
        """The call with another argument in the place of one of its tensors."""
        return self.map(lambda x: other if x is wanted else x)

    def made(self, library):
        """The arguments for a library, and its tensors."""
        tensors = []

        def one(value):
            if isinstance(value, Array):
                tensors.append(value.made(library))
                return tensors[-1]
            if isinstance(value, tl.dtype):
                return getattr(library, value.name)
            return value
        return self.map(one), tensors


def declared(op, function):
    """The calls of an operation's samples, as the public function takes them."""
    found, starred = [], False
    with contextlib.suppress(TypeError, ValueError):
        first = next(iter(inspect.signature(function).parameters.values()))
        starred = first.kind is first.VAR_POSITIONAL
    for sample in samples(op):
        args, kwargs = prepared(op, sample.tensors())
        call = Call(tuple(args), dict(kwargs)).map(lambda x: (
            Array(x.detach().numpy(), x.dtype.name) if isinstance(x, tl.Tensor) else x))
        if starred and len(call.args) == 1 and isinstance(call.args[0], (tuple, list)):
            call = Call(tuple(call.args[0]), call.kwargs)
        if all(x.dtype in DTYPES for x in call.arrays()):
            found.append(call)
    return found


def varied(rng, call, function):
    """The call with some of its arguments changed."""
    for _ in range(rng.choice([0, 1, 1, 2, 2, 3])):
        call = VARIATIONS[rng.integers(len(VARIATIONS))](rng, call, function)
    if rng.random() < 0.5:
        call = call.map(lambda x: replace(x, requires_grad=True) if isinstance(x, Array)
                        and KIND_OF[x.dtype] == "floating" and rng.random() < 0.8 else x)
    return call


# ---- variations ----------------------------------------------------------------------------------

def other_size(rng, call, function):
    """One size, wherever it stands, becomes another."""
    sizes = sorted({n for x in call.arrays() for n in x.values.shape if n})
    if not sizes:
        return call
    old, new = int(rng.choice(sizes)), int(rng.choice([0, 1, 2, 5, 7]))

    def resized(x):
        if not isinstance(x, Array):
            return x
        values = x.values
        for dim, n in enumerate(values.shape):
            if n == old:
                values = np.take(values, np.arange(new) % old, dim)
                if new > old and values.dtype.kind == "f":      # no repeated rows: ties are a
                    values = values * rng.uniform(0.9, 1.1, values.shape)     # matter of luck
        return replace(x, values=values)
    return call.map(resized)


def one_of(rng, call):
    """One of the tensors, or None."""
    arrays = call.arrays()
    return arrays[rng.integers(len(arrays))] if arrays else None


def broadcast(rng, call, function):
    """A tensor with one dim of size 1, with fewer dims, or with more."""
    x = one_of(rng, call)
    if x is None or not x.values.ndim:
        return call
    dim = rng.integers(x.values.ndim)
    values = [lambda: np.take(x.values, [0], dim), lambda: x.values[0], lambda: x.values[None],
              lambda: x.values.ravel()[:1].reshape(())][rng.integers(4)]
    return call.with_array(x, replace(x, values=values())) if x.values.size else call


def number(rng, call, function):
    """A number in the place of a tensor that is not the first."""
    x = one_of(rng, call)
    if x is None or x is call.arrays()[0]:
        return call
    return call.with_array(x, (2, -1, 0.5, True)[rng.integers(4)])


def other_dtype(rng, call, function):
    """Another dtype for a tensor, or for all of a kind."""
    x = one_of(rng, call)
    if x is None:
        return call
    dtype, alone = DTYPES[rng.integers(len(DTYPES))], rng.random() < 0.3

    def cast(y):
        if isinstance(y, Array) and (y is x or not alone and y.dtype == x.dtype):
            return replace(y, dtype=dtype, values=fitting(y.values, dtype))
        return y
    return call.map(cast)


def fitting(values, dtype):
    """Values that the dtype can hold."""
    if KIND_OF[dtype] == "integer" and values.dtype.kind == "f":
        values = np.sign(np.nan_to_num(values)) * np.ceil(np.abs(np.nan_to_num(values)))
        values = np.clip(values, -100, 100)
    return np.abs(values) if dtype == "uint8" and values.dtype.kind != "b" else values


def layout(rng, call, function):
    """Other layouts."""
    return call.map(lambda x: replace(x, layout=LAYOUTS[rng.integers(len(LAYOUTS))])
                    if isinstance(x, Array) else x)


def special(rng, call, function):
    """NaN, an infinity or a zero among the elements."""
    x = one_of(rng, call)
    if x is None or x.values.dtype.kind != "f" or not x.values.size:
        return call
    values = x.values.copy()
    for _ in range(rng.integers(1, 3)):
        values.reshape(-1)[rng.integers(values.size)] = SPECIAL[rng.integers(len(SPECIAL))]
    return call.with_array(x, replace(x, values=values))


def other_number(rng, call, function):
    """Other whole numbers, booleans and floats where there are some."""
    def one(x):
        if rng.random() < 0.5:
            return x
        if isinstance(x, bool):
            return not x
        if isinstance(x, int):
            return int(rng.integers(-4, 6))
        if isinstance(x, float):
            return float(rng.choice([0.0, -1.5, 0.5, 2.0, 1e10, np.inf]))
        return x
    return call.map(one)


def option(rng, call, function):
    """An option that was not given."""
    try:
        names = list(inspect.signature(function).parameters)[len(call.args):]
    except (TypeError, ValueError):
        return call
    names = [name for name in names if name in OPTIONS and name not in call.kwargs]
    if not names:
        return call
    name = names[rng.integers(len(names))]
    value = OPTIONS[name][rng.integers(len(OPTIONS[name]))]
    value = getattr(tl, value) if name == "dtype" else value
    return Call(call.args, {**call.kwargs, name: value})


VARIATIONS = (other_size, other_size, broadcast, number, other_dtype, other_dtype, layout, layout,
              special, other_number, option, option)
