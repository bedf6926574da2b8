"""The same call on tensorlib and on PyTorch: what each gives, and where they differ."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tensorlib.testing import assert_close, tolerance

INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
DTYPES = ("bool", *INTEGERS, *FLOATS)


@dataclass(frozen=True)
class Difference:
    """A place where tensorlib is not PyTorch on purpose, or where PyTorch is inconsistent."""

    operation: str
    applies: Callable[..., bool]  # takes the names of the tensors' dtypes
    reason: str


# The only place where a difference may be excused. Each line says why.
DIFFERENCES = [
    Difference(
        "reversed slices",
        lambda *dtypes: True,
        "a slice with a negative step is a view, as in NumPy; PyTorch refuses it",
    ),
    Difference(
        "matmul",
        lambda *dtypes: dtypes == ("bool", "bool"),
        "bools have no matrix product; PyTorch refuses them too, unless there is nothing to add",
    ),
    *[Difference(
        name,
        lambda *dtypes: "float" not in dtypes[0],
        "integers have no softmax; PyTorch refuses them too, unless there are none",
    ) for name in ("softmax", "log_softmax")],
]

DIFFERENCES += [
    *[Difference(name, lambda *dtypes: dtypes == ("bool", "bool"), "bools have no power")
      for name in ("**", "reflected **")],
    Difference(
        "reflected **",
        lambda dtype, number: dtype.startswith("int") and number in ("bool", "int"),
        "integers to negative integer powers are refused, as in NumPy; of tensors PyTorch makes 0",
    ),
    *[Difference(name, lambda dtype, _: dtype == "uint8",
                 "a bound that the dtype cannot hold is refused; in PyTorch -1 becomes 255")
      for name in ("clamp", "crossed clamp")],
    *[Difference(name, lambda *dtypes: len(set(dtypes)) > 1,
                 "products promote as all other operators; PyTorch's take one dtype")
      for name in ("matmul", "@", "mm", "mv", "bmm", "dot", "addmm", "addmv", "baddbmm", "inner")],
    Difference(
        "writing a tensor",
        lambda dtype: dtype == "bool",
        "values are cast to the dtype that they are put in; PyTorch casts them for slices only",
    ),
]

# The last argument is a kind of index, as test_differential_shapes.py calls it.
DIFFERENCES += [
    *[Difference(name, lambda kind: kind == "int32",
                 "positions may have any signed integer dtype; PyTorch's functions differ on it")
      for name in ("index_fill", "index_copy", "take_along_dim")],
    Difference("index_fill", lambda kind: kind in ("bool", "uint8", "float", "matrix"),
               "one error for indices of a wrong dtype, and one for those with dims; in PyTorch "
               "index_fill alone has them the other way round"),
    *[Difference(name, lambda kind: kind == "far",
                 "a position out of range is an IndexError; PyTorch's functions differ on it")
      for name in ("gather", "scatter", "scatter_add", "index_add", "take_along_dim",
                   "take_along_dim of all")],
]


def excused(operation, *dtypes):
    return any(d.operation == operation and d.applies(*dtypes) for d in DIFFERENCES)


def name_of(dtype):
    return str(dtype).rpartition(".")[2]


def tensor(library, values, dtype, requires_grad=False):
    made = library.tensor(np.asarray(values).tolist(), dtype=getattr(library, dtype))
    made = made.reshape(np.shape(values))
    return made.requires_grad_() if requires_grad else made


def values_of(x):
    """A tensor's values, in a NumPy dtype that holds them exactly."""
    x = x.detach()
    return (x.double() if x.dtype.is_floating_point else x).numpy(force=True)


def run(call, library, *args):
    """What a call gives: ("raised", error) or ("returned", results as (dtype, shape, values))."""
    try:
        results = call(library, *args)
    except Exception as error:
        return "raised", error
    return "returned", flat(results)


def flat(results):
    if isinstance(results, (tuple, list)):
        return [one for each in results for one in flat(each)]
    if isinstance(results, (bool, int, float, complex)):
        return [(type(results).__name__, (), np.asarray(results))]
    return [(name_of(results.dtype), tuple(results.shape), values_of(results))]


def disagreement(ours, theirs, kind="elementwise"):
    """A text that says how two outcomes of `run` differ, or None."""
    (verb, mine), (their_verb, other) = ours, theirs
    if verb != their_verb:
        return f"tensorlib {verb} {summary(mine)}, PyTorch {their_verb} {summary(other)}"
    if verb == "raised":
        if same_kind(mine, other):
            return None
        return f"tensorlib raised {summary(mine)}, PyTorch {summary(other)}"
    if len(mine) != len(other):
        return f"{len(mine)} results, PyTorch gives {len(other)}"
    for (dtype, shape, values), (their_dtype, their_shape, their_values) in zip(mine, other):
        if dtype != their_dtype:
            return f"result is {dtype}, PyTorch's {their_dtype}"
        if shape != their_shape:
            return f"result has shape {shape}, PyTorch's {their_shape}"
        try:
            assert_close(values, their_values, equal_nan=True, **tolerance(dtype, kind))
        except AssertionError as error:
            return f"values: {error}"
    return None


def same_kind(mine, other):
    """Whether an error may stand for PyTorch's. NotImplementedError is one of its RuntimeErrors;
    what it says of dtypes is a matter of its dispatcher, so that TypeError will do as well."""
    if type(other).__name__ == "_LinAlgError":          # ours is that of the same name
        return type(mine).__name__ == "LinAlgError"
    if isinstance(other, NotImplementedError):
        return isinstance(mine, (RuntimeError, TypeError))
    return isinstance(mine, type(other))


def summary(outcome):
    return repr(outcome)[:200]


def gradients(call, library, arrays, seed=0):
    """The gradients of sum(call(*tensors) * weights) with respect to float64 tensors."""
    tensors = [tensor(library, array, "float64", requires_grad=True) for array in arrays]
    result = call(library, *tensors)
    results = [result] if isinstance(result, library.Tensor) else list(result)
    rng = np.random.default_rng(seed)
    total = 0.0
    for one in results:
        if one.requires_grad:
            weights = rng.uniform(0.5, 1.5, size=tuple(one.shape))
            total = total + (one * tensor(library, weights, "float64")).sum()
    total.backward()
    return [x.grad for x in tensors]
