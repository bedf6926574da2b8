"""Every operation of the registry inside of a branch: its value, and the appended gradient.

There it is called on variables, without values, so it must ask for nothing but shapes and dtypes.
"""

import pytest

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
# Where sizes depend on elements, or elements are looked at by NumPy: no branch can have these.
REFUSED = {"pivot_matrices", "linalg_lu",
           "lu_unpack", "linalg_lu_solve", "lu_solve", "linalg_ldl_solve", "ldl_systems_solved",
           "scatter_reduce", "index_reduce", "getitem", "put_index", "add_index"}
# Written with writes in place, which have no gradient in a block: an error says so.
WITHOUT_GRADIENT = {"diag", "diag_embed", "diagflat", "diagonal_scatter", "select_scatter",
                    "slice_scatter", "fill"}


def same(x, y):
    return x.dtype == y.dtype and x.shape == y.shape and (
        x.detach().contiguous().numpy().tobytes() == y.detach().contiguous().numpy().tobytes())


def first_sample(op):
    """A sample of an operation, and those of its tensors that have gradients."""
    if differentiable(op):
        return recorded_samples(op)[0]
    taken = dtypes_taken(op)
    dtype = next((x for x in ("float64", "int64", "complex128") if x in taken), "float64")
    return in_dtype(op, samples(op)[0], dtype), []


def branch_of(op, sample):
    """An operation in a branch that is always taken, and in the other one."""
    def function(*given):
        return tuple(x for x in outputs(call(op, sample.with_arrays(list(given))))
                     if isinstance(x, tl.Tensor))

    def in_branch(*given):
        return tl.cond(given[0].new_ones((), dtype=tl.float64) >= 0, lambda: function(*given),
                       lambda: function(*(x.clone() for x in given)))

    return function, in_branch


@for_each(OPERATIONS)
def test_in_a_branch_it_is_as_eager(op):
    sample, wanted = first_sample(op)
    found = call(op, sample)
    if not sample.arrays or not isinstance(found, (tl.Tensor, tuple, list)):
        return
    function, in_branch = branch_of(op, sample)
    try:
        program.trace(function, *sample.arrays)
    except program.CaptureError:
        return                              # test_operations.py says which these are
    if op.name in REFUSED:
        with pytest.raises((program.CaptureError, RuntimeError, IndexError, TypeError)):
            program.trace(in_branch, *sample.arrays)
        return
    made = program.trace(in_branch, *sample.arrays)
    tl.manual_seed(SEED)
    results = [x for x in outputs(call(op, sample)) if isinstance(x, tl.Tensor)]
    tl.manual_seed(SEED)
    assert all(map(same, made(*sample.arrays), results))
    roots = [x for x in results if x.requires_grad]
    if not roots:
        return
    targets = [y for y, x in zip(made.outputs, results) if x.requires_grad]
    inputs = [x for x, value in zip(made.inputs, sample.arrays) if value.requires_grad]
    if op.name in WITHOUT_GRADIENT:
        with pytest.raises(program.ProgramError, match="writes over a value in place"):
            program.gradients(targets, inputs)
        return
    slopes = program.gradients(targets, inputs)
    expected = tl.autograd.grad(roots, wanted, list(map(tl.ones_like, roots)), allow_unused=True)
    feed = dict(zip((x.name for x in made.inputs), sample.arrays))
    for g, slope in zip(slopes, expected):
        if slope is not None:
            tl.manual_seed(SEED)
            value = made.run(feed, g)
            assert same(value, slope)


def test_writes_into_a_view_do_not_lose_a_gradient():
    x = tl.ones(3, requires_grad=True)

    def function(x):
        def inside():
            y = x * 2
            y[0].zero_()
            return y
        return tl.cond(x.sum() > 0, inside, lambda: x * 3)

    made = program.trace(function, x)
    assert made(tl.ones(3)).tolist() == [0.0, 2.0, 2.0]
    with pytest.raises(program.ProgramError, match="writes over a value in place.*new value"):
        program.gradients(made.outputs, made.inputs)


def test_what_is_written_beside_the_way_of_the_gradient_is_left_alone():
    """Running means are written with values that have gradients, and nobody reads them."""
    with program.Program() as p:
        x = program.data("x", (2, 3))
        running = program.parameter("running", [0.0] * 3, trainable=False)
        mean = x.mean(0)
        running.mul_(0.5).add_(mean * 0.5)
        y = (x - mean) * x
    (slope,) = program.gradients(y, [x])
    given = tl.arange(6.0).reshape(2, 3)
    assert p.run({"x": given}, slope).tolist() == [[-3.0] * 3, [3.0] * 3]
    assert p.parameters() == [] and p.values()["running"].tolist() == [0.75, 1.25, 1.75]
