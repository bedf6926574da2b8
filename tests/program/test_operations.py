"""Every operation of the registry in a program: captured, run on other values, differentiated."""


import tensorlib as tl
from tensorlib import program
from tensorlib.ops import registry
from tensorlib.testing.catalogue import (
    SEED,
    call,
    differentiable,
    dtypes_taken,
    in_dtype,
    outputs,
    recorded_samples,
    samples,
)
from tests.ops.catalogue import for_each

OPERATIONS = [op for op in registry.values() if op.testing.get("samples") and "." not in op.name]
# What does other things for other elements, in Python.
NOT_CAPTURED = {"allclose", "equal", "is_nonzero", "repeat_interleave",
                "linalg_lstsq", "linalg_matrix_exp", "matrix_exp", "masked_scatter"}
SEVERAL = 3                  # samples of each operation that are looked at


def same(x, y):
    """Whether two tensors have the same bits, NaN being like NaN."""
    return x.dtype == y.dtype and x.shape == y.shape and (
        x.detach().contiguous().numpy().tobytes() == y.detach().contiguous().numpy().tobytes())


def captured(op, sample, dtype):
    """The program of an operation on the tensors of a sample, and these tensors; None where the
    operation gives no tensor."""
    tensors = sample.arrays

    def function(*given):
        return tuple(x for x in outputs(call(op, sample.with_arrays(list(given))))
                     if isinstance(x, tl.Tensor))

    return program.trace(function, *tensors), tensors


def usual_dtype(op):
    """A wide dtype that the operation takes, a floating one if it can be."""
    return next((x for x in ("float64", "int64", "complex128") if x in dtypes_taken(op)), "float64")


def seeded(made, tensors):
    """What a program gives that draws what `call` draws."""
    tl.manual_seed(SEED)
    return made(*tensors)


@for_each(OPERATIONS)
def test_a_program_gives_what_the_operation_gives(op):
    for sample in samples(op)[:SEVERAL]:
        sample = in_dtype(op, sample, usual_dtype(op))
        if not sample.arrays or not isinstance(call(op, sample), (tl.Tensor, tuple, list)):
            continue
        try:
            made, tensors = captured(op, sample, "float64")
        except program.CaptureError:
            assert op.name in NOT_CAPTURED
            continue
        again = program.parse(str(made), made.values()) if "<" not in str(made) else made
        for x, y, z in zip(outputs(call(op, sample)), seeded(made, tensors),
                           seeded(again, tensors)):
            assert same(x, y) and same(x, z)


@for_each([op for op in OPERATIONS if differentiable(op)])
def test_the_appended_backward_has_the_bits_of_the_sweep(op):
    for sample, wanted in recorded_samples(op)[:SEVERAL]:
        try:
            made, tensors = captured(op, sample, "float64")
        except program.CaptureError:
            assert op.name in NOT_CAPTURED
            continue
        results = [x for x in outputs(call(op, sample)) if isinstance(x, tl.Tensor)]
        roots = [x for x in results if x.requires_grad]
        weights = [tl.linspace(0.5, 1.5, x.numel(), dtype=x.dtype).reshape(x.shape) for x in roots]
        targets = [y for x, y in zip(results, made.outputs) if x.requires_grad]
        inputs = [x for x, tensor in zip(made.inputs, tensors) if tensor.requires_grad]
        with made:
            given = [program.parameter(f"weight{i}", w, trainable=False)
                     for i, w in enumerate(weights)]
        found = program.gradients(targets, inputs, given)
        expected = tl.autograd.grad(roots, wanted, weights, allow_unused=True)
        feed = {x.name: tensor for x, tensor in zip(made.inputs, tensors)}
        pairs = [(g, x) for g, x in zip(found, expected) if x is not None]
        assert all(g is not None for g, _ in pairs)
        for got, wanted_value in zip(made.run(feed, [g for g, _ in pairs]), pairs):
            assert same(got, wanted_value[1])


