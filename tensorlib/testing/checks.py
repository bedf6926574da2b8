"""The checks that follow from an operation's declaration, and `check_op`, which runs them all."""

import itertools
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import compress
from typing import Any

import numpy as np

import tensorlib as tl
from tensorlib.autograd.checking import gradcheck, gradgradcheck
from tensorlib.ops import Op
from tensorlib.ops.complete import missing
from tensorlib.testing import catalogue
from tensorlib.testing.catalogue import (
    KIND_OF, Sample, call, differentiable_samples, dtypes_taken, expected, function_of, in_dtype,
    in_numpy, is_data, kind_of_work, leaves, numpy_dtypes, outputs, precise_dtypes, prepared,
    recorded_samples, result_dtype, samples, tensors_among, values, waived,
)
from tensorlib.testing.closeness import assert_close
from tensorlib.testing.layouts import read_only, reversed_dims, shifted, strided, transposed
from tensorlib.testing.tolerances import tolerance


def require(condition, op, message):
    """Raises AssertionError with the operation's name unless the condition holds."""
    if not condition:
        raise AssertionError(f"{op.name}: {message}")


# ---- values --------------------------------------------------------------------------------------

def compare(op, sample, dtype, signed_zeros=False):
    """The operation on a sample of Tensors against the reference: dtype, shape and values."""
    before = [values(x).copy() for x in sample.arrays]
    given = call(op, sample)
    if op.returns is not tl.Tensor:
        require(type(given) is op.returns, op, f"the result is {type(given).__name__}")
    results, references = outputs(given), expected(op, sample)
    if op.random:
        compare_drawn(op, sample, dtype, results, references)
        return
    require(len(results) == len(references), op,
            f"{len(results)} results, but the reference gives {len(references)}")
    for result, reference in zip(results, references):
        wanted = result_dtype(op, sample, dtype, reference)
        require(result.dtype == wanted, op, f"the result is {result.dtype}, not {wanted}")
        require(tuple(result.shape) == reference.shape, op,
                f"the result has shape {tuple(result.shape)}, not {reference.shape}")
        with np.errstate(all="ignore"):
            reference = values(tl.tensor(reference).to(wanted))
        assert_close(values(result), reference, equal_nan=True, check_dtype=False,
                     **tolerance(wanted, kind_of_work(op)))
        if signed_zeros and result.dtype.is_floating_point and KIND_OF[dtype] != "complex":
            zeros = reference == 0
            signs = np.signbit(values(result))[zeros] == np.signbit(reference)[zeros]
            require(signs.all(), op, "a zero has the wrong sign")
    for x, old in zip(sample.arrays, before):
        require(values(x).tobytes() == old.tobytes(), op, "an input was changed")


def compare_drawn(op, sample, dtype, results, bounds):
    """Random numbers: dtype, shape and bounds, the same from one seed, then others.

    bounds: the least and the greatest numbers of the first result, of the second, and so on; those
    of complex numbers are of their parts.
    """
    require(2 * len(results) == len(bounds), op,
            f"{len(results)} results, but the reference gives {len(bounds)} bounds")
    drawn = [values(result) for result in results]
    for result, numbers, least, greatest in zip(results, drawn, bounds[::2], bounds[1::2]):
        wanted = result_dtype(op, sample, dtype, least)
        require(result.dtype == wanted, op, f"the result is {result.dtype}, not {wanted}")
        require(tuple(result.shape) == least.shape, op,
                f"the result has shape {tuple(result.shape)}, not {least.shape}")
        low, some, high = (x.view(x.real.dtype) if np.iscomplexobj(x) else x
                           for x in map(np.ascontiguousarray, (least, numbers, greatest)))
        require(((low <= some) & (some <= high)).all(), op, "a number is out of its bounds")
    for numbers, again in zip(drawn, outputs(call(op, sample))):
        np.testing.assert_array_equal(values(again), numbers, "one seed gives other numbers")
    if sum(np.sum(least < greatest) for least, greatest in zip(bounds[::2], bounds[1::2])) >= MANY:
        args, kwargs = prepared(op, sample)
        others = outputs(op.function(*args, **kwargs))
        require(any((values(x) != numbers).any() for x, numbers in zip(others, drawn)), op,
                "it draws the same numbers twice")


MANY = 10               # numbers, of which some differ from those drawn before


def check_values(op):
    """The reference, in every dtype that the operation takes."""
    for dtype in dtypes_taken(op):
        for sample in samples(op):
            compare(op, in_dtype(op, sample, dtype), dtype)


def check_edges(op, dtype):
    """The reference at all combinations of the declared edges."""
    edges = list(op.testing["edges"])
    n = len(op.arguments)
    columns = np.array(list(itertools.product(edges, repeat=n - len(op.boolean_inputs)))).T
    args = [column.copy() for column in columns]
    for place in op.boolean_inputs:
        args.insert(place, np.arange(columns.shape[1]) % 2 == 0)
    sample = in_dtype(op, Sample(tuple(args), {}), dtype)
    compare(op, sample, dtype, signed_zeros=op.testing.get("signed_zeros", True))


# ---- layouts -------------------------------------------------------------------------------------

LAYOUTS = {"strided": strided, "reversed": reversed_dims, "transposed": transposed,
           "shifted": shifted}


def laid_out(sample, layout):
    """The sample as read-only Tensors, after `layout` arranged its arrays."""
    return sample.map(lambda i, array: tl.from_numpy(read_only(layout(array))))


def same(op, sample, other):
    """Raises AssertionError unless two samples give the same but for rounding."""
    equal_to(op, sample, outputs(call(op, other)))


def equal_to(op, sample, wanted_outputs):
    """Raises AssertionError unless a sample gives these outputs but for rounding."""
    for result, wanted in zip(outputs(call(op, sample)), wanted_outputs, strict=True):
        require(result.dtype == wanted.dtype, op, f"{result.dtype} instead of {wanted.dtype}")
        # sums in another order differ by what their terms are rounded by, however small the sum
        largest = 0.0 if op.elementwise else largest_finite(values(wanted))
        assert_close(values(result), values(wanted), rtol=1e-6, atol=1e-12 + 1e-6 * largest,
                     equal_nan=True)


def largest_finite(array):
    """The largest magnitude among the finite elements of an array, 0 where there are none."""
    array = np.abs(np.asarray(array, dtype=np.result_type(array, np.float64)))
    return np.max(array, initial=0.0, where=np.isfinite(array))


def check_layouts(op):
    """Inputs in other layouts give what contiguous ones give."""
    for dtype in numpy_dtypes(op):
        for sample in samples(op):
            arrays = in_numpy(op, sample, dtype)
            wanted = outputs(call(op, laid_out(arrays, np.copy)))
            for name, layout in LAYOUTS.items():
                try:
                    equal_to(op, laid_out(arrays, layout), wanted)
                except AssertionError as error:
                    error.add_note(f"{op.name}: {name}, {dtype}")
                    raise


def check_overlapping(op):
    """An expanded tensor: all its rows are the first."""
    for dtype in numpy_dtypes(op):
        for sample in samples(op):
            rows = in_numpy(op, sample, dtype).map(
                lambda i, array: np.broadcast_to(array[:1], array.shape)
                if array.ndim and is_data(op, i, array) and array.size else array)
            same(op, laid_out(rows, lambda array: array), laid_out(rows, np.copy))


# ---- derivatives ---------------------------------------------------------------------------------

def check_gradient(op):
    """Gradients equal finite differences."""
    for function, wanted in differentiable_samples(op):
        gradcheck(function, wanted, rtol=1e-6, atol=1e-7)


def check_second_gradient(op):
    """Gradients of gradients equal finite differences, along a random direction of each input."""
    for function, wanted in differentiable_samples(op):
        gradgradcheck(function, wanted, rtol=1e-6, atol=1e-6, fast_mode=True)


def random_like(x, seed=0):
    """Random numbers in [-1, 1) of the shape and dtype of `x`, complex ones of such parts."""
    return tl.tensor(numbers(tuple(x.shape), x.is_complex(), seed)).to(x.dtype)


@lru_cache(maxsize=256)
def numbers(shape, of_parts, seed):
    """The numbers of `random_like`: to make a generator takes longer than to draw."""
    rng = np.random.default_rng(seed)
    drawn = rng.uniform(-1, 1, shape)
    return drawn + 1j * rng.uniform(-1, 1, shape) if of_parts else drawn


def gradients(op, tensors, wanted, gs, create_graph=False):
    """What a sweep from `gs` gives for the tensors `wanted` of a sample."""
    outs = [out for out in outputs(call(op, tensors)) if out.requires_grad]
    return tl.autograd.grad(outs, wanted, gs, create_graph=create_graph, allow_unused=True)


def check_formula(op, dtype):
    """An ordinary sweep runs what was traced from the formula, or a fused loop in its place."""
    sample = max(samples(op), key=lambda sample: sample.arrays[0].size)
    for shape in [(1300,), (7, 33)]:
        big = sample.map(lambda i, array: np.resize(array, shape))
        tensors, wanted = leaves(op, big, dtype)
        g = random_like(wanted[0])
        swept = gradients(op, tensors, wanted, [g])
        recorded = gradients(op, tensors, wanted, [g], create_graph=True)
        for a, b in zip(swept, recorded):
            assert_close(a, b, **tolerance(dtype, "gradient"))


def at_edges(op, dtype):
    """A sample of the operation at all pairs of its edges, and 1 more than once."""
    n = len(op.arguments) - len(op.boolean_inputs)
    edges = np.array(np.meshgrid(*[op.testing["edges"]] * n)).reshape(n, -1)
    args = list(edges)
    for place in op.boolean_inputs:
        args.insert(place, np.arange(edges.shape[1]) % 2 == 0)
    return leaves(op, Sample(tuple(args), {}), dtype)


def check_strong_zero(op):
    """Also where the derivative is infinite or NaN, whichever way it is computed."""
    for dtype in in_reals(dtypes_taken(op)):
        tensors, wanted = at_edges(op, dtype)
        for create_graph in (False, True):
            g = tl.zeros(wanted[0].shape, dtype=wanted[0].dtype)
            for grad in gradients(op, tensors, wanted, [g], create_graph):
                require((values(grad) == 0).all(), op,
                        "a gradient of zero times its derivative is not zero")


def check_lower_precision(op, dtype):
    """The inputs are rounded first, so that only what is computed differs."""
    for tensors, wanted in recorded_samples(op, dtype):
        precise = tensors.map(
            lambda i, x: in_double(x.detach()).requires_grad_() if x.requires_grad else x)
        gs = [random_like(out) for out in outputs(call(op, tensors)) if out.requires_grad]
        low = gradients(op, tensors, wanted, gs)
        high = gradients(op, precise, [x for x in precise.arrays if x.requires_grad],
                         [in_double(g) for g in gs])
        for x, a, b in zip(wanted, low, high):
            if a is None:
                require(b is None or (values(b) == 0).all(), op, f"no gradient in {dtype}")
                continue
            require(a.dtype == x.dtype and a.shape == x.shape, op,
                    f"the gradient of {x.dtype}{tuple(x.shape)} is {a.dtype}{tuple(a.shape)}")
            # a derivative such as 1 - out * out starts from an output that was rounded
            rtol = tolerance(dtype, "gradient")["rtol"]
            assert_close(a, b, check_dtype=False, rtol=rtol, atol=rtol)


def in_double(x):
    """A tensor as float64 or complex128."""
    return x.to(tl.complex128 if x.is_complex() else tl.float64)


def check_tangent(op):
    """The tangent equals a finite difference, and <u, J v> = <J' u, v>.

    Source: the dot-product test of Claerbout, Earth Soundings Analysis (Blackwell, 1992).
    """
    for tensors, wanted in [sample for dtype in precise_dtypes(op)
                            for sample in recorded_samples(op, dtype)]:
        args, kwargs = prepared(op, tensors)
        flat = tensors_among(op, args)
        tangents = [random_like(x, i) if x.requires_grad else None for i, x in enumerate(flat)]
        outs, moved = op.tangent(args, kwargs, tangents)
        moving = [out.requires_grad for out in outputs(outs)]
        ends = [*compress(outputs(outs), moving)], [*compress(outputs(moved), moving)]
        check_differences(op, tensors, wanted, [t for t in tangents if t is not None], moving,
                          *ends)
        us = [random_like(out, 9) for out in ends[0]]
        grads = tl.autograd.grad(ends[0], wanted, us, allow_unused=True)
        forward = sum(inner(u, t) for u, t in zip(us, ends[1]))
        reverse = sum(inner(g, t) for g, t in zip(
            grads, [t for t in tangents if t is not None]) if g is not None)
        assert_close(np.float64(forward), np.float64(reverse), rtol=1e-9, atol=1e-9)


def inner(a, b):
    """The real inner product of Tensors: of complex numbers as pairs."""
    return np.real(np.conj(values(a)) * values(b)).sum()


def check_differences(op, tensors, wanted, tangents, moving, outs, moved, eps=1e-6):
    """The tangents `moved` of the outputs that are `moving` equal two-sided finite differences."""
    function = function_of(op, tensors, wanted)
    with tl.no_grad():
        there, back = (
            outputs(function(*[x + step * t for x, t in zip(wanted, tangents)]))
            for step in (eps, -eps))
        ahead, below = compress(there, moving), compress(back, moving)
    for out, tangent, after, before in zip(outs, moved, ahead, below, strict=True):
        require(tangent.shape == out.shape and tangent.dtype == out.dtype, op,
                f"the tangent of {out.dtype}{tuple(out.shape)} is "
                f"{tangent.dtype}{tuple(tangent.shape)}")
        after, before = values(after), values(before)
        change = np.subtract(after, before, where=after != before, out=np.zeros_like(after))
        assert_close(values(tangent), change / (2 * eps), rtol=1e-4, atol=1e-6)



# ---- all of them ---------------------------------------------------------------------------------

HALVES = ("float16", "bfloat16")


def in_reals(takes):
    """The wider floating dtypes, or the complex ones of what takes no others."""
    return ("float32", "float64") if "float64" in takes else ("complex64", "complex128")


def checks(op):
    """The aspects of an operation, each with what checks it."""
    takes = dtypes_taken(op)
    if op.testing.get("reference"):
        yield "values", check_values, ()
        if op.elementwise and op.testing.get("edges"):
            for dtype in ("float32", "float64", *HALVES):
                if dtype in takes:
                    yield "edges", check_edges, (dtype,)
    if op.arguments:
        yield "layouts", check_layouts, ()
        yield "layouts", check_overlapping, ()
    if not op.differentiable:
        return
    yield "gradient", check_gradient, ()
    yield "gradgradient", check_second_gradient, ()
    if op.elementwise:
        for dtype in in_reals(takes):
            yield "recorded", check_formula, (dtype,)
        if op.testing.get("edges"):
            yield "recorded", check_strong_zero, ()
    for dtype in ("float32", *HALVES):
        if dtype in takes:
            yield "half_gradient", check_lower_precision, (dtype,)
    if op.tangent is not None:
        yield "tangent", check_tangent, ()


@contextmanager
def declared(op, more):
    """A context in which the declaration of an operation says `more` for its tests."""
    before = dict(op.testing)
    op.testing.update(more)
    try:
        yield
    finally:
        op.testing.clear()
        op.testing.update(before)


@contextmanager
def usual_modes():
    """A context with grad mode on and float32 as the default dtype, that draws no numbers outside.

    The operation may change any of these; afterwards they are as they were.
    """
    dtype, state = tl.get_default_dtype(), tl.get_rng_state()
    tl.set_default_dtype(tl.float32)
    try:
        with tl.inference_mode(False), tl.enable_grad():
            yield
    finally:
        tl.set_default_dtype(dtype)
        tl.set_rng_state(state)


def check_op(
    op: Any,
    *,
    samples: Callable[..., Any] | None = None,
    reference: Callable[..., Any] | None = None,
    dtypes: Sequence[str] | None = None,
) -> bool:
    """True where an operation passes the tests that follow from its declaration.

    `op` is an Op, its name, or a function that `tensorlib.ops` made. Samples and reference may be
    given here instead of in the declaration: a function of a NumPy random generator that yields
    `(arguments, keywords)`, and the NumPy function to equal, without which values are not compared.
    `dtypes` are the names of those that the operation takes, by default all, or of a `primitive`
    the floating ones.
    Layouts, first and second derivatives, lower precision and forward mode follow from the samples.
    An aspect may be waived in the declaration, `waive={"half_gradient": "the reason"}`. The
    declaration, the grad mode, the default dtype and the random generator stay as they are.

    Raises: AssertionError or GradcheckError that names the operation and the check; ValueError for
    an operation without samples, or one that is differentiable and has no rule.

    >>> import tensorlib
    >>> check_op("square")
    True
    """
    record = tl.ops.registry[op] if isinstance(op, str) else getattr(op, "op", op)
    if not isinstance(record, Op):
        raise TypeError(f"check_op: takes an operation or its name, not {type(op).__name__}")
    given = {"samples": samples, "reference": reference, "dtypes": dtypes}
    with usual_modes(), declared(
            record, {name: value for name, value in given.items() if value is not None}):
        catalogue.samples(record)            # which raises where there are none
        for text in missing(record):
            raise ValueError(f"check_op: {record.name}: {text}")
        for aspect, check, arguments in checks(record):
            if aspect in waived(record):
                continue
            try:
                check(record, *arguments)
            except Exception as error:
                error.add_note(f"check_op: {record.name}: {check.__name__}{arguments or '()'}")
                raise
    return True
