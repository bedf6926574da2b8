"""Every registered operation equals its reference: in every dtype and layout, at the edges."""

import numpy as np
import pytest
from catalogue import operations

import tensorlib as tl
from tensorlib.testing import assert_close, checks
from tensorlib.testing.catalogue import (
    DTYPES, call, dtypes_taken, elementwise, holds_values, in_dtype, in_numpy, numpy_dtypes,
    outputs, public, samples, values,
)
from tensorlib.testing.checks import equal_to, laid_out
from tensorlib.testing.layouts import GAP, read_only, reversed_dims, strided, transposed


@operations("values")
def test_reference_in_every_dtype(op):
    checks.check_values(op)


@operations("dtypes", lambda op: (
    public(op) and holds_values(op) and set(DTYPES) > set(dtypes_taken(op))))
def test_a_dtype_it_does_not_take_is_refused(op):
    for dtype in sorted(set(DTYPES) - set(dtypes_taken(op))):
        name = r"\w+: " if op.linearity == "composite" else op.name
        with pytest.raises(RuntimeError, match=name):
            for sample in samples(op):           # some options take it, as sums of complex numbers
                call(op, in_dtype(op, sample, dtype))


@operations("edges", lambda op: (
    op.elementwise and "floating" in op.testing.get("takes", "floating")))
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_edges(op, dtype):
    checks.check_edges(op, dtype)


# ---- layouts -------------------------------------------------------------------------------------

@operations("layouts")
def test_layouts_agree_with_contiguous(op):
    checks.check_layouts(op)


@operations("layouts")
def test_overlapping_elements_agree_with_contiguous(op):
    """An expanded tensor: all its rows are the first."""
    checks.check_overlapping(op)


@operations("layouts", elementwise)
def test_several_tiles_agree_with_single_elements(op):
    """Long rows, short rows and mixed layouts go through the executor by different ways."""
    sample = max(samples(op), key=lambda sample: sample.arrays[0].size)
    ways = [np.copy, transposed, strided, reversed_dims]
    for dtype in numpy_dtypes(op):
        row = in_numpy(op, sample, dtype).map(lambda i, array: np.resize(array, PERIOD))
        one_by_one = np.stack([
            values(call(op, row.map(lambda i, array: tl.from_numpy(array[k:k + 1].copy()))))
            for k in range(PERIOD)]).reshape(-1)
        for shape in ((3, 700), (40, 40), (2, 130, 9)):
            arrays = row.map(lambda i, array: np.resize(array, shape))
            wanted = outputs(call(op, laid_out(arrays, np.copy)))
            for turn in range(len(ways)):
                mixed = arrays.map(
                    lambda i, array: tl.from_numpy(read_only(ways[(turn + i) % len(ways)](array))))
                assert_close(values(call(op, mixed)).reshape(-1)[:PERIOD], one_by_one,
                             rtol=1e-6, atol=1e-12)
                equal_to(op, mixed, wanted)


PERIOD = 97             # of the elements


# ---- views ---------------------------------------------------------------------------------------

@operations("view", lambda op: op.is_view)
def test_a_view_shows_what_is_written_to_its_input(op):
    for sample in samples(op):
        arrays = sample.map(lambda i, array: array.copy())
        result = call(op, arrays.tensors())
        arrays.arrays[0][...] = GAP
        if result.dtype != tl.from_numpy(arrays.arrays[0]).dtype:    # the bytes of the elements
            np.testing.assert_array_equal(values(result), values(call(op, arrays.tensors())))
        else:
            assert (values(result) == GAP).all()
