"""In-place and out= forms of every registered operation agree with the plain form."""

import numpy as np
import pytest
from catalogue import for_each, operations

import tensorlib as tl
from tensorlib._core.base.dtypes import has_gradients
from tensorlib._core.graph.op import registry
from tensorlib.ops.declare import FUNCTIONS
from tensorlib.testing import assert_close
from tensorlib.testing.catalogue import (
    Sample, call, dtypes_taken, elementwise, in_dtype, in_numpy, kinds_taken, leaves, numpy_dtypes,
    outputs, samples, values,
)
from tensorlib.testing.checks import random_like
from tensorlib.testing.layouts import GAP, reversed_dims, strided, transposed

LAYOUTS = {"contiguous": np.copy, "strided": strided, "reversed": reversed_dims,
           "transposed": transposed}


def assert_same(a, b):
    """Equal in dtype and values: contiguous and strided runs may round differently."""
    assert_close(a, b, rtol=1e-6, atol=1e-12, equal_nan=True)


def writable_first(op):
    """The first argument is one that the result can be written over."""
    return op.elementwise and 0 not in op.boolean_inputs


def refusal(first, result):
    """What an in-place form says that cannot write its result over its first tensor, or None."""
    if result.shape != first.shape:
        return "output with shape .* doesn't match the broadcast shape"
    if not tl.can_cast(result.dtype, first.dtype):
        return "can't be cast to the desired output type"
    if first.is_complex() and result.is_floating_point():
        return "its result is real"
    return None


def assert_written_or_refused(op, first, others, result):
    """Runs the in-place form, which writes the result of the plain form, or says why it cannot."""
    error = refusal(first, result)
    if error is None:
        assert op.function.inplace(first, *others) is first
        assert_same(first, result.to(first.dtype))
        return
    old = first.clone()
    with pytest.raises(RuntimeError, match=error):
        op.function.inplace(first, *others)
    assert_same(first, old)


def kept(op):
    """The samples, as precise leaves, whose result has the shape and dtype of the first."""
    found = [(tensors, wanted) for tensors, wanted in (leaves(op, x) for x in samples(op))
             if (out := call(op, tensors)).shape == tensors.arrays[0].shape
             and out.dtype == tensors.arrays[0].dtype]
    assert found, f"{op.name}: no sample whose result goes into its first tensor"
    return found


# ---- functions, methods, mixed dtypes ------------------------------------------------------------

def test_a_number_beside_a_condition_takes_the_dtype_of_the_values():
    """It was rounded to float32 first."""
    x, condition = tl.zeros(1, dtype=tl.float64), tl.tensor([True])
    assert tl.where(condition, 0.1, x).item() == 0.1
    assert tl.where(condition.logical_not(), x, 1e300).item() == 1e300
    assert x.masked_fill(condition, 0.1).item() == 0.1


@operations("values", lambda op: op.elementwise and op.name in FUNCTIONS)
def test_the_function_and_the_methods_agree(op):
    sample = max(samples(op), key=lambda sample: sample.arrays[0].size)
    tensors = in_numpy(op, sample, numpy_dtypes(op)[0]).tensors()
    plain = call(op, tensors)
    assert_same(FUNCTIONS[op.name](*tensors.arrays), plain)
    first, *others = tensors.arrays
    if op.boolean_inputs == (0,):            # x.where(condition, other): the condition is not first
        assert_same(others[0].where(first, *others[1:]), plain)
    else:
        assert_same(getattr(first, op.name)(*others), plain)


@operations("inplace", lambda op: writable_first(op) and hasattr(tl.Tensor, op.name + "_"))
def test_the_method_in_place_agrees(op):
    sample = max(samples(op), key=lambda sample: sample.arrays[0].size)
    tensors = in_numpy(op, sample, numpy_dtypes(op)[0]).tensors()
    first, *others = tensors.arrays
    plain = call(op, tensors)
    assert refusal(first, plain) is None
    assert_same(getattr(first.clone(), op.name + "_")(*others), plain.to(first.dtype))


MIXED = [("float32", "float64"), ("float16", "float32"), ("bfloat16", "float16"),
         ("int64", "float32"), ("int8", "int64"), ("uint8", "int8"), ("int16", "float16")]
ONE_DTYPE = {"lerp", "heaviside"}      # refuse tensors of several, as PyTorch's do


@operations("dtypes", lambda op: op.elementwise and len(op.arguments) > 1
            and op.name not in ONE_DTYPE)
def test_mixed_dtypes_are_promoted(op):
    """The result is that of both brought to the promoted dtype first."""
    sample = max(samples(op), key=lambda sample: sample.arrays[0].size)
    promoted = [(one, other, tl.promote_types(getattr(tl, one), getattr(tl, other)))
                for one, other in MIXED]
    taken = [row for row in promoted if row[2].name in dtypes_taken(op)]
    assert taken
    for one, other, both in taken:
        for dtypes in ((one, other), (other, one)):
            mixed = sample.with_arrays([
                in_dtype(op, sample, dtypes[i % 2]).arrays[i] for i in range(len(op.arguments))])
            alike = mixed.map(lambda i, x: x if i in op.boolean_inputs else x.to(both))
            assert_same(call(op, mixed), call(op, alike))


# ---- in place ------------------------------------------------------------------------------------

@operations("inplace", writable_first)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_in_place_equals_plain_or_is_refused(op, layout):
    for dtype in numpy_dtypes(op):
        for sample in samples(op):
            arrays = in_numpy(op, sample, dtype)
            tensors = arrays.tensors()
            target = LAYOUTS[layout](arrays.arrays[0])
            x = tl.from_numpy(np.asarray(target))
            assert_written_or_refused(op, x, tensors.arrays[1:], call(op, tensors))
            if layout == "strided" and target.base is not None:
                assert (target.base[..., 1] == np.array(GAP).astype(dtype)).all()


@operations("inplace", writable_first)
def test_in_place_with_itself(op):
    """All arguments are the tensor that is written."""
    sample = max(samples(op), key=lambda sample: sample.arrays[0].size)
    for dtype in numpy_dtypes(op):
        array = in_numpy(op, sample, dtype).arrays[0]
        x, old = tl.from_numpy(array), tl.from_numpy(array.copy())
        plain = op.function(*[old] * len(op.arguments))
        assert_written_or_refused(op, x, [x] * (len(op.arguments) - 1), plain)


@operations("inplace", lambda op: writable_first(op) and len(op.arguments) == 2)
def test_in_place_where_the_arguments_overlap(op):
    sample = max(samples(op), key=lambda sample: sample.arrays[0].size)
    for dtype in numpy_dtypes(op):
        array = np.resize(in_numpy(op, sample, dtype).arrays[1], 9)
        x, old = tl.from_numpy(array), tl.from_numpy(array.copy())
        plain = op.function(old[1:], old[:-1])
        assert_written_or_refused(op, x[1:], [x[:-1]], plain)
        assert_same(x[:1], old[:1])


@operations("inplace", lambda op: writable_first(op) and op.differentiable)
def test_the_gradient_goes_through_the_in_place_form(op):
    for tensors, wanted in kept(op):
        plain = call(op, tensors)
        g = random_like(plain, 3)
        first, *others = tensors.arrays
        x = first * 1
        op.function.inplace(x, *others)
        for a, b in zip(tl.autograd.grad(x, wanted, g), tl.autograd.grad(plain, wanted, g)):
            assert_same(a, b)


def written_whole(op):
    """Its in-place form writes its result over its first tensor."""
    return not op.elementwise and hasattr(op.function, "inplace")


@operations("inplace", written_whole)
def test_a_result_written_over_the_first_tensor(op):
    """Values, the version, and gradients as those of the plain form."""
    for tensors, wanted in kept(op):
        plain = call(op, tensors)
        g = random_like(plain, 3)
        x = tensors.arrays[0] * 1
        others, before = tensors.args[1:], x._version
        assert op.function.inplace(x, *others, **tensors.kwargs) is x
        assert x._version > before
        assert_same(x, plain)
        for a, b in zip(tl.autograd.grad(x, wanted, g), tl.autograd.grad(plain, wanted, g)):
            assert_same(a, b)


@operations("inplace", written_whole)
def test_a_result_written_over_a_view(op):
    """The base has it, with its gradient; a value saved before is noticed as overwritten."""
    for tensors, wanted in kept(op):
        first = tensors.arrays[0]
        base = tl.stack([first * 1, first * 2])
        saved = base.square()
        op.function.inplace(base[0], *tensors.args[1:], **tensors.kwargs)
        plain = tl.stack([call(op, tensors), first * 2])
        assert_same(base, plain)
        g = random_like(plain, 3)
        for a, b in zip(tl.autograd.grad(base, wanted, g), tl.autograd.grad(plain, wanted, g)):
            assert_same(a, b)
        with pytest.raises(RuntimeError, match="inplace operation"):
            saved.sum().backward()


@operations("inplace", written_whole)
def test_a_result_is_not_written_over_a_leaf_or_what_cannot_be_written(op):
    """The tensor stays as it was."""
    tensors, _ = kept(op)[0]
    first, others = tensors.arrays[0], tensors.args[1:]
    old = first.detach().clone()
    with pytest.raises(RuntimeError, match=f"{op.name}_: a leaf Variable"):
        op.function.inplace(first, *others, **tensors.kwargs)
    with pytest.raises(RuntimeError, match=f"{op.name}_: .*read-only"):
        read_only = old.numpy().copy()
        read_only.flags.writeable = False
        op.function.inplace(tl.from_numpy(read_only), *others, **tensors.kwargs)
    assert_same(first.detach(), old)


@operations("inplace", lambda op: written_whole(op) and any(
    call(op, x).shape != x.arrays[0].shape for x in (leaves(op, y)[0] for y in samples(op))))
def test_a_result_of_another_shape_is_not_written_over_the_first_tensor(op):
    for sample in samples(op):
        tensors, _ = leaves(op, sample)
        first = tensors.arrays[0]
        if call(op, tensors).shape != first.shape:
            with pytest.raises(RuntimeError, match=f"{op.name}_: output with shape"):
                op.function.inplace(first * 1, *tensors.args[1:], **tensors.kwargs)


@operations("inplace", writable_first)
def test_in_place_refuses_what_it_cannot_write(op):
    sample = in_numpy(op, samples(op)[1], numpy_dtypes(op)[0]).tensors()
    first, *others = sample.arrays
    assert refusal(first, call(op, sample)) is None
    read_only = first.numpy().copy()
    read_only.flags.writeable = False
    with pytest.raises(RuntimeError, match=f"{op.name}_: .*read-only"):
        op.function.inplace(tl.from_numpy(read_only), *others)
    with pytest.raises(RuntimeError, match=f"{op.name}_: .*single memory location"):
        op.function.inplace(first.reshape(-1)[:1].expand(3), *[x.reshape(-1)[:1] for x in others])


@operations("inplace", lambda op: writable_first(op) and len(op.arguments) > 1)
def test_in_place_refuses_to_grow(op):
    first, *others = in_numpy(op, samples(op)[1], numpy_dtypes(op)[0]).tensors().arrays
    with pytest.raises(RuntimeError, match=f"{op.name}_: output with shape"):
        op.function.inplace(first.reshape(-1)[0], *[x.reshape(-1)[:1] for x in others])


# ---- out= ----------------------------------------------------------------------------------------

def takes_out(op):
    return op.takes_out and op.name in FUNCTIONS


def rooms(results, room_of):
    """What goes as `out`: a tensor, or a tuple of one for each of several results."""
    made = tuple(map(room_of, outputs(results)))
    return made if isinstance(results, tuple) else made[0]


@operations("out", takes_out)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_out_equals_plain(op, layout):
    def room_of(plain):
        room = np.full(tuple(plain.shape), 1).astype(plain.numpy().dtype)
        return tl.from_numpy(np.asarray(LAYOUTS[layout](room)))
    for dtype in numpy_dtypes(op):
        for sample in samples(op):
            tensors = in_numpy(op, sample, dtype).tensors()
            plain = call(op, tensors)
            assert_same_into_out(op, tensors, plain, rooms(plain, room_of))


def assert_same_into_out(op, tensors, plain, out):
    given = call(op, tensors, out=out)
    for result, room, wanted in zip(outputs(given), outputs(out), outputs(plain), strict=True):
        assert result is room
        assert_same(room, wanted)


@operations("out", takes_out)
def test_an_empty_out_is_given_the_shape(op):
    for sample in samples(op):
        tensors = in_numpy(op, sample, numpy_dtypes(op)[0]).tensors()
        plain = call(op, tensors)
        assert_same_into_out(op, tensors, plain, rooms(plain, lambda x: tl.empty(0, dtype=x.dtype)))


@operations("out", lambda op: not op.takes_out and op.name in FUNCTIONS)
def test_out_is_refused_where_it_is_not_declared(op):
    """It was taken by every function that is not element-wise, whatever its signature said."""
    tensors = in_numpy(op, samples(op)[0], numpy_dtypes(op)[0]).tensors()
    with pytest.raises(TypeError, match=rf"{op.name}(\(\)|:) .*out"):
        op.function(*tensors.args, **tensors.kwargs, out=tl.empty(0))


@operations("out", elementwise)
def test_out_may_be_an_input_or_overlap_it(op):
    sample = max(samples(op), key=lambda sample: sample.arrays[0].size)
    checked = 0
    for dtype in numpy_dtypes(op):
        for start in (0, 1):
            flat = in_numpy(op, sample, dtype).map(lambda i, array: np.resize(array, 9))
            old, new = flat.tensors(), flat.map(lambda i, array: tl.from_numpy(array.copy()))
            plain = op.function(*[x[:8] for x in old.arrays])
            for x in new.arrays:
                if x.dtype == plain.dtype:
                    checked += 1
                    out = x[start:start + 8]
                    op.function(*[x[:8] for x in new.arrays], out=out)
                    assert_same(out, plain)
                    break
    assert checked


@operations("out", takes_out)
def test_out_of_another_shape_is_resized(op):
    tensors = in_numpy(op, samples(op)[0], numpy_dtypes(op)[0]).tensors()
    plain = op.function(*tensors.args, **tensors.kwargs)
    given = rooms(plain, lambda x: tl.zeros(7, 7, dtype=x.dtype))
    with pytest.warns(UserWarning, match="out has shape.*it is resized, which is deprecated"):
        op.function(*tensors.args, **tensors.kwargs, out=given)
    if not op.random:
        for x, y in zip(outputs(given), outputs(plain)):
            assert_same(x, y)


@operations("out", lambda op: takes_out(op) and op.name != "bernoulli")     # takes any dtype
def test_out_refuses_what_does_not_fit(op):
    tensors = in_numpy(op, samples(op)[0], numpy_dtypes(op)[0]).tensors()
    plain = call(op, tensors)
    if outputs(plain)[0].dtype.is_floating_point and op.arguments:     # else `out` says the dtype
        with pytest.raises(RuntimeError, match="out|cast"):
            op.function(*tensors.args, **tensors.kwargs,
                        out=rooms(plain, lambda x: tl.zeros(x.shape, dtype=tl.int64)))
    with pytest.raises(TypeError, match="out must be a (Tensor|tuple)"):
        op.function(*tensors.args, **tensors.kwargs, out=[1.0])


@operations("out", lambda op: takes_out(op) and "floating" in kinds_taken(op) and op.differentiable)
def test_out_of_integers_refuses_real_numbers(op):
    tensors, _ = leaves(op, samples(op)[0])
    plain = call(op, tensors)
    assert has_gradients(outputs(plain)[0].dtype)
    with tl.no_grad(), pytest.raises(RuntimeError, match="out|cast"):
        op.function(*tensors.args, **tensors.kwargs,
                    out=rooms(plain, lambda x: tl.zeros(x.shape, dtype=tl.int64)))


@operations("out", lambda op: takes_out(op) and op.differentiable)
def test_out_refuses_to_be_differentiated(op):
    tensors, _ = leaves(op, samples(op)[0])
    plain = call(op, tensors)
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        op.function(*tensors.args, **tensors.kwargs,
                    out=rooms(plain, lambda x: tl.zeros_like(x.detach())))


# ---- an operation that raises --------------------------------------------------------------------

ERRORS = [op for op in registry.values() if op.testing.get("errors")]


@for_each(ERRORS)
def test_declared_errors(op):
    """They raise what is declared, name an operation, and leave the inputs as they were."""
    for args, kwargs, error in op.testing["errors"]():
        sample = Sample(args, kwargs)
        tensors = sample.map(lambda i, array: tl.tensor(array))
        with pytest.raises(error, match=r"\w+: "):
            op.function(*tensors.args, **tensors.kwargs)
        for x, array in zip(tensors.arrays, sample.arrays):
            np.testing.assert_array_equal(values(x), array)


REFUSES = [op for op in registry.values() if op.testing.get("refuses")]


@for_each(REFUSES)
def test_integers_that_have_no_answer(op):
    """Whether they are tensors, numbers, broadcast or written in place; the input stays."""
    bad = {"zero": 0, "negative": -1}[op.testing["refuses"]]
    x = tl.arange(1, 5)
    others = [tl.tensor([1, bad, 2, 1]), tl.tensor(bad), bad,
              tl.tensor([1, 1, bad, 1], dtype=tl.int8)]
    for other in others:
        for form in (op.function, op.function.inplace):
            with pytest.raises(RuntimeError, match=op.name):
                form(x, other)
        assert x.tolist() == [1, 2, 3, 4]
    assert op.function(x, tl.tensor(float(bad))).dtype == tl.float32
