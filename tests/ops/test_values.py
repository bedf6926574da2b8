"""Every registered operation equals its reference: in every dtype and layout, at the edges."""

import itertools

import numpy as np
import pytest
from catalogue import (
    DTYPES, call, dtypes_taken, elementwise, expected, in_dtype, in_numpy, is_data, kind_of_work,
    numpy_dtypes, operations, outputs, public, result_dtype, samples, values,
)
from layouts import GAP, read_only, reversed_dims, shifted, strided, transposed

import tensorlib as tl
from tensorlib.testing import assert_close, tolerance


def compare(op, sample, dtype, signed_zeros=False):
    """The operation on a sample of Tensors against the reference: dtype, shape and values."""
    before = [values(x).copy() for x in sample.arrays]
    results = outputs(call(op, sample))
    references = expected(op, sample)
    assert len(results) == len(references)
    for result, reference in zip(results, references):
        wanted = result_dtype(op, sample, dtype, reference)
        assert result.dtype == wanted
        assert tuple(result.shape) == reference.shape
        with np.errstate(all="ignore"):
            reference = values(tl.tensor(reference).to(wanted))
        assert_close(values(result), reference, equal_nan=True, check_dtype=False,
                     **tolerance(wanted, kind_of_work(op)))
        if signed_zeros and result.dtype.is_floating_point:
            zeros = reference == 0
            assert (np.signbit(values(result))[zeros] == np.signbit(reference)[zeros]).all()
    for x, old in zip(sample.arrays, before):
        np.testing.assert_array_equal(values(x), old, "an input was changed")


@operations("values")
def test_reference_in_every_dtype(op):
    for dtype in dtypes_taken(op):
        for sample in samples(op):
            compare(op, in_dtype(op, sample, dtype), dtype)


@operations("dtypes", public)
def test_a_dtype_it_does_not_take_is_refused(op):
    sample = samples(op)[0]
    for dtype in set(DTYPES) - set(dtypes_taken(op)):
        name = r"\w+: " if op.linearity == "composite" else op.name
        with pytest.raises(RuntimeError, match=name):
            call(op, in_dtype(op, sample, dtype))


@operations("edges", lambda op: (
    op.elementwise and "floating" in op.testing.get("takes", "floating")))
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_edges(op, dtype):
    edges = list(op.testing["edges"])
    n = len(op.arguments)
    columns = np.array(list(itertools.product(edges, repeat=n - len(op.boolean_inputs)))).T
    args = [column.copy() for column in columns]
    for place in op.boolean_inputs:
        args.insert(place, np.arange(columns.shape[1]) % 2 == 0)
    sample = in_dtype(op, type(samples(op)[0])(tuple(args), {}), dtype)
    compare(op, sample, dtype, signed_zeros=op.testing.get("signed_zeros", True))


# ---- layouts -------------------------------------------------------------------------------------

LAYOUTS = {"strided": strided, "reversed": reversed_dims, "transposed": transposed,
           "shifted": shifted}


def laid_out(sample, layout):
    return sample.map(lambda i, array: tl.from_numpy(read_only(layout(array))))


def same(op, sample, other):
    for result, wanted in zip(outputs(call(op, sample)), outputs(call(op, other)), strict=True):
        assert result.dtype == wanted.dtype
        assert_close(values(result), values(wanted), rtol=1e-6, atol=1e-12, equal_nan=True)


@operations("layouts")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_agree_with_contiguous(op, layout):
    for dtype in numpy_dtypes(op):
        for sample in samples(op):
            arrays = in_numpy(op, sample, dtype)
            same(op, laid_out(arrays, LAYOUTS[layout]), laid_out(arrays, np.copy))


@operations("layouts")
def test_overlapping_elements_agree_with_contiguous(op):
    """An expanded tensor: all its rows are the first."""
    for dtype in numpy_dtypes(op):
        for sample in samples(op):
            rows = in_numpy(op, sample, dtype).map(
                lambda i, array: np.broadcast_to(array[:1], array.shape)
                if array.ndim and is_data(op, i, array) and array.size else array)
            same(op, laid_out(rows, lambda array: array), laid_out(rows, np.copy))


@operations("layouts", elementwise)
@pytest.mark.parametrize("shape", [(3, 700), (40, 40), (2, 130, 9)], ids=str)
def test_several_tiles_agree_with_single_elements(op, shape):
    """Long rows, short rows and mixed layouts go through the walker by different ways."""
    sample = max(samples(op), key=lambda sample: sample.arrays[0].size)
    ways = [np.copy, transposed, strided, reversed_dims]
    for dtype in numpy_dtypes(op):
        arrays = in_numpy(op, sample, dtype).map(lambda i, array: np.resize(array, shape))
        flat = arrays.map(lambda i, array: array.reshape(-1))
        period = min(97, flat.arrays[0].size)
        one_by_one = np.stack([
            values(call(op, flat.map(lambda i, array: tl.from_numpy(array[k:k + 1].copy()))))
            for k in range(period)]).reshape(-1)
        for turn in range(len(ways)):
            mixed = arrays.map(
                lambda i, array: tl.from_numpy(read_only(ways[(turn + i) % len(ways)](array))))
            assert_close(values(call(op, mixed)).reshape(-1)[:period], one_by_one,
                         rtol=1e-6, atol=1e-12)
            same(op, mixed, laid_out(arrays, np.copy))


# ---- views ---------------------------------------------------------------------------------------

@operations("view", lambda op: op.is_view)
def test_a_view_shows_what_is_written_to_its_input(op):
    for sample in samples(op):
        arrays = sample.map(lambda i, array: array.copy())
        result = call(op, arrays.tensors())
        arrays.arrays[0][...] = GAP
        assert (values(result) == GAP).all()
