"""Operations and their declared samples, as tensors of any dtype and layout."""

from functools import cache
from itertools import count
from typing import Any, NamedTuple

import numpy as np

import tensorlib as tl
from tensorlib._core.base.dtypes import has_gradients
from tensorlib.ops.declare import FUNCTIONS

KINDS = {
    "bool": ("bool",),
    "integer": ("uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"),
    "floating": ("float16", "bfloat16", "float32", "float64"),
    "complex": ("complex64", "complex128"),
}
REAL = "bool integer floating"
DTYPES = tuple(name for names in KINDS.values() for name in names)
KIND_OF = {name: kind for kind, names in KINDS.items() for name in names}

# What a declaration may waive, with a reason: `waive={"layouts": "..."}`.
ASPECTS = ("values", "dtypes", "layouts", "edges", "inplace", "out", "gradient", "gradgradient",
           "third", "recorded", "half_gradient", "tangent", "view")


# ---- which operations ----------------------------------------------------------------------------

def waived(op):
    """What the tests leave out of this operation: a dict of aspects and reasons."""
    return op.testing.get("waive", {})


def differentiable(op):
    """Whether the operation has gradients."""
    return op.differentiable


def elementwise(op):
    """Whether a loop does the operation on each element."""
    return op.elementwise


def public(op):
    """Users may call it; the others are called by gradient rules, with what they take."""
    named = FUNCTIONS.get(op.name)            # which may take the arguments in another order
    return (getattr(named, "op", None) is op or hasattr(tl.Tensor, op.name) or "." in op.name)


def smooth(op):
    """Element-wise, with a derivative that is more than a constant."""
    return op.elementwise and op.differentiable


def tensors_among(op, args):
    """The tensors among the arguments of a call: the parts of the sequence, where it takes one."""
    return args[op.places[0]] if op.variadic else [args[place] for place in op.places]


def kinds_taken(op):
    """The kinds of dtypes the operation is declared to take."""
    kinds = op.testing.get("takes", REAL).split()
    return [*kinds, "complex"] if op.takes_complex else kinds


def dtypes_taken(op):
    """The names of the dtypes that the operation is declared to take."""
    return op.testing.get("dtypes") or [name for kind in kinds_taken(op) for name in KINDS[kind]]


# ---- samples -------------------------------------------------------------------------------------

ARRAYS = (np.ndarray, tl.Tensor)
HELD = (*ARRAYS, np.generic)


def has_arrays(value):
    """Whether an argument is a sequence with tensors among its parts."""
    return isinstance(value, tuple) and any(isinstance(x, ARRAYS) for x in value)


class Sample(NamedTuple):
    """Arguments of one call. Tensors are NumPy arrays, or Tensors once `tensors` has made them."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def map(self, function):
        """The sample with function(position, array) in the place of each array."""
        places, made = count(), []
        for value in (*self.args, *self.kwargs.values()):
            if isinstance(value, HELD):
                value = function(next(places), value)
            elif has_arrays(value):
                value = tuple([function(next(places), x) if isinstance(x, HELD) else x
                               for x in value])
            made.append(value)
        n = len(self.args)
        return Sample(tuple(made[:n]), dict(zip(self.kwargs, made[n:])))

    @property
    def arrays(self):
        found = []
        for value in (*self.args, *self.kwargs.values()):
            if isinstance(value, HELD):
                found.append(value)
            elif has_arrays(value):
                found += [x for x in value if isinstance(x, HELD)]
        return found

    def with_arrays(self, arrays):
        """The sample with other arrays (or tensors) in the places of its own."""
        return self.map(lambda i, array: arrays[i])

    def tensors(self):
        """The sample with Tensors that share the memory of its arrays."""
        return self.map(lambda i, array: tl.from_numpy(np.asarray(array)))


def samples(op):
    """The samples of an operation: its arrays are float64 unless they are indices or bools."""
    if not op.testing.get("samples"):
        raise ValueError(f"check_op: {op.name} declares no samples; pass samples=, see ops.samples")
    return generated(op.testing["samples"])


@cache
def generated(generate):
    """The samples that a generator yields, made once."""
    made = [Sample(tuple(np.asarray(x) if isinstance(x, np.generic) else x for x in args),
                   dict(kwargs))
            for args, kwargs in generate(np.random.default_rng(7))]
    if not made:
        raise ValueError("check_op: samples gave none")
    return made


def is_data(op, place, array):
    """Whether the array holds values (of any dtype), not indices or a condition."""
    if op.elementwise:
        return place not in op.boolean_inputs
    return array.dtype.kind in "fc"


def holds_values(op):
    """Whether a call has tensors of values, and so of a dtype that it may not take."""
    return any(is_data(op, place, array) for place, array in enumerate(samples(op)[0].arrays))


def in_dtype(op, sample, dtype):
    """The sample with its values brought into `dtype`, as Tensors."""
    def convert(place, array):
        if not is_data(op, place, array):
            return tl.tensor(array)
        return tl.tensor(representable(op, array, dtype)).to(getattr(tl, dtype))
    return sample.map(convert)


def in_numpy(op, sample, dtype):
    """The sample's values in a dtype that NumPy has."""
    return sample.map(lambda i, array: representable(op, array, dtype).astype(dtype)
                      if is_data(op, i, array) else array.copy())


def numpy_dtypes(op):
    """Which of six dtypes of NumPy the operation takes."""
    return [name for name in ("float64", "float32", "float16", "int64", "int8", "bool", "complex64")
            if name in dtypes_taken(op)]


def precise_dtypes(op):
    """The dtypes in which derivatives are held against finite differences."""
    taken = dtypes_taken(op)
    return [name for name in ("float64", "complex128")
            if name in taken or name == "float64" and "complex128" not in taken]


def representable(op, array, dtype):
    """Values for `dtype`: whole numbers away from zero, positive ones where it must be so."""
    if array.dtype.kind == "b" or KIND_OF[dtype] == "floating":
        return array
    if KIND_OF[dtype] == "complex":          # with other imaginary parts, and so other magnitudes
        return array if array.dtype.kind == "c" else (
            array + 0.75j * array.reshape(-1)[::-1].reshape(array.shape))
    if dtype == "bool":
        return array > 0
    whole = np.sign(array) * np.ceil(np.abs(array))
    positive = dtype.startswith("uint") or op.testing.get("refuses") == "negative"
    return np.abs(whole) if positive else whole


def values(x):
    """A Tensor's values as a NumPy array: half types as float32, which holds them exactly."""
    x = x.detach()
    return (x.float() if x.dtype in (tl.float16, tl.bfloat16) else x).numpy()


# ---- calls ---------------------------------------------------------------------------------------

SEED = 11


def call(op, sample, **options):
    """What the operation gives for a sample of Tensors; what is random draws the same each time."""
    args, kwargs = prepared(op, sample)
    if op.random:
        tl.manual_seed(SEED)
    return op.function(*args, **kwargs, **options)


def prepared(op, sample):
    """The arguments that the operation itself takes: index expressions parsed and the like."""
    prepare = op.testing.get("prepare")
    return (prepare(*sample.args), sample.kwargs) if prepare else (sample.args, sample.kwargs)


def expected(op, sample):
    """What the reference gives for a sample of Tensors, as NumPy arrays.

    Of what is random these are the least and the greatest that each element may be. Floats are
    computed in float64, so that the reference does not round.
    """
    given = sample.map(lambda i, x: wide(x) if has_gradients(x.dtype) else x.numpy())
    results = referred(op, given)
    reals = any(has_gradients(x.dtype) for x in sample.arrays)
    if not reals and any(x.dtype.kind == "f" for x in results):
        # NumPy takes the root of an int8 in float16
        results = referred(op, sample.map(
            lambda i, x: wide(x) if x.dtype.is_floating_point
            or i < len(op.arguments) and i not in op.boolean_inputs else x.numpy()))
    return results


def wide(x):
    """A Tensor as an array of float64 or complex128."""
    return x.to(tl.complex128 if x.is_complex() else tl.float64).numpy()


def referred(op, sample):
    """What the reference gives for a sample of arrays, as a list of arrays."""
    args = sample.args
    if args and isinstance(args[0], tuple) and any(isinstance(x, np.ndarray) for x in args[0]):
        args = (*args[0], *args[1:])
    with np.errstate(all="ignore"):
        result = op.testing["reference"](*args, **sample.kwargs)
    results = result if isinstance(result, (tuple, list)) else [result]
    if any(x.dtype == np.uint64 for x in sample.arrays):
        return [np.asarray(x) for x in results]
    return [signed(np.asarray(x)) for x in results]


def signed(x):
    """NumPy sums shorter unsigned integers in uint64, Tensors sum in int64."""
    return x.astype(np.int64) if x.dtype == np.uint64 else x


def outputs(result):
    """One or several outputs as a list; a bool or a number as a Tensor."""
    if isinstance(result, (bool, int, float, complex)):
        return [tl.tensor(result)]
    return [result] if isinstance(result, tl.Tensor) else list(result)


def result_dtype(op, sample, dtype, reference):
    """The dtype a result must have, given the dtype of the data and the reference's array."""
    rule = op.testing.get("result_dtype")
    if rule is not None:
        return rule(*sample.args, **sample.kwargs)
    if not op.arguments:
        return getattr(tl, reference.dtype.name)
    if reference.dtype.kind in "fc" and KIND_OF[dtype] == "complex":
        given = getattr(tl, dtype)
        return given if reference.dtype.kind == "c" else given.to_real()
    if reference.dtype.kind == "c":
        return tl.complex128 if dtype == "float64" else tl.complex64
    if reference.dtype.kind == "f":
        return getattr(tl, dtype) if KIND_OF[dtype] == "floating" else tl.float32
    if reference.dtype.kind == "b":
        return tl.bool
    if op.elementwise:
        return getattr(tl, dtype)
    return getattr(tl, reference.dtype.name)


def kind_of_work(op):
    """The row of the tolerance table that the operation's results are held to."""
    usual = "product" if op.linearity == "multilinear" else "elementwise"
    return op.testing.get("tolerance", usual)


# ---- differentiation -----------------------------------------------------------------------------

def leaves(op, sample, dtype=None):
    """The sample as Tensors, and the list of those that hold values, which require grad.

    dtype: by default the first of `precise_dtypes`.
    """
    dtype = dtype or precise_dtypes(op)[0]
    sample = in_dtype(op, sample, dtype).map(
        lambda i, x: x.requires_grad_() if has_gradients(x.dtype) else x)
    return sample, [x for x in sample.arrays if x.requires_grad]


def function_of(op, sample, wanted):
    """The operation as a function of the tensors `wanted` of a sample, for gradcheck."""
    given = sample.arrays
    places = [i for i, x in enumerate(given) if any(x is y for y in wanted)]

    def function(*tensors):
        arrays = given.copy()
        for place, x in zip(places, tensors):
            arrays[place] = x
        return call(op, sample.with_arrays(arrays))

    return function


def recorded_samples(op, dtype=None, largest=1000):
    """(sample, leaves) for each sample that has an output and inputs to differentiate.

    Raises: AssertionError where there is none, so that what looks at each has looked at one.
    """
    found = [(tensors, wanted) for tensors, wanted in (leaves(op, x, dtype) for x in samples(op))
             if wanted and max(x.numel() for x in wanted) <= largest
             and any(out.requires_grad for out in outputs(call(op, tensors)))]
    if not found:
        raise AssertionError(f"{op.name}: none of its samples can be differentiated")
    return found


def differentiable_samples(op, largest=24):
    """(function, leaves) for each sample that has an output and inputs to differentiate."""
    return [(function_of(op, tensors, wanted), wanted) for dtype in precise_dtypes(op)
            for tensors, wanted in recorded_samples(op, dtype, largest)]


# ---- what the graph keeps ------------------------------------------------------------------------

def names_in_rules(op, wanted):
    """What the gradient rules of the arguments at the places `wanted` name, each once."""
    rules = [op.rules[0 if op.variadic else place] for place in wanted]
    return list(dict.fromkeys(name for rule in rules if rule is not None for name in rule.names))


def kept_names(op, wanted):
    """The inputs and outputs whose values the gradients of the arguments at `wanted` need."""
    values = op.outputs if op.variadic else (*op.arguments, *op.outputs)
    return [name for name in values if name in names_in_rules(op, wanted)]


def facts_named(op):
    """What the gradient needs beside values: attributes, and shapes or dtypes of inputs."""
    everything = range(len(op.rules))
    values = {"g", *kept_names(op, everything)}
    return [name for name in names_in_rules(op, everything) if name not in values]


def kept_bytes(op, sample, wanted):
    """How many bytes the gradients of the arguments at `wanted` keep alive, as the record says."""
    with tl.no_grad():
        results = outputs(call(op, sample))
    known = dict(zip((*op.arguments, *op.outputs), (*sample.arrays[:len(op.arguments)], *results)))
    return sum(known[name].nbytes for name in kept_names(op, wanted))
