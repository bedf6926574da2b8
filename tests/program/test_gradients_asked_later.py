"""Gradients of a program that was traced where nothing required one, and what they refuse."""

import pytest
from cases import each

import tensorlib as tl
from tensorlib import program
from tensorlib.program import ProgramError

F = tl.nn.functional
PLACES = tl.tensor([0, 1, 1, 2])
X = tl.tensor([[0.5, -1.5, 2.5], [3.5, 0.25, -0.75], [1.0, 2.0, 3.0]])


@pytest.mark.parametrize("function", [
    lambda x: F.embedding(PLACES, x, padding_idx=1),
    lambda x: F.embedding(PLACES, x, scale_grad_by_freq=True),
    lambda x: (x / x.trunc()).nan_to_num(),
    lambda x: x.norm(0) * x,
    lambda x: x.quantile(0.3, 1),
    lambda x: x.nanquantile(tl.tensor([0.3, 0.6])),
])
def test_they_are_those_of_the_sweep(function):
    p = program.trace(function, X)
    leaf = X.clone().requires_grad_()
    wanted = tl.autograd.grad(function(leaf).sum(), leaf)[0]
    found = p.run({p.inputs[0].name: X}, program.gradients(p.outputs, p.inputs))[0]
    assert found.numpy().tobytes() == wanted.numpy().tobytes()


def test_a_mask_that_was_added_to_scores_has_none():
    """Its gradient is refused, as the kernel that ran has none, and not left out."""
    p = program.trace(lambda q, mask: F.scaled_dot_product_attention(q, q, q, mask),
                      tl.rand(2, 3, 4), tl.rand(3, 3))
    count = len(p.block.ops)
    with pytest.raises(ProgramError, match="attention has no gradient of 'mask'"):
        program.gradients(p.outputs, p.inputs)
    assert len(p.block.ops) == count
    assert program.gradients(p.outputs, p.inputs[:1])[0] is not None


@pytest.mark.parametrize("dtype", [tl.float64, tl.float16, tl.int64, tl.bool])
def test_a_target_gradient_is_cast_as_a_sweep_casts_it(dtype):
    p = program.trace(lambda x: x.sin(), X)
    given = tl.tensor([2, 0, 1]).to(dtype).expand(3, 3)
    with p:
        weights = program.parameter("weights", given, False)
    leaf = X.clone().requires_grad_()
    wanted, = tl.autograd.grad(leaf.sin(), leaf, given)
    found, = p.run({"x": X}, program.gradients(p.outputs, p.inputs, weights))
    assert found.dtype is tl.float32 and tl.equal(found, wanted)


def test_a_gradient_after_a_step_needs_no_value_from_before_it():
    w = tl.tensor([1.0, 2.0], requires_grad=True)
    optimizer = tl.optim.SGD([w], 0.5)

    def losses(x):
        return (w * w * x).sum(), (w * x).sum()

    p = program.trace(losses, tl.ones(2))
    program.minimize(p.outputs[0], optimizer)
    count = len(p.block.ops)
    with pytest.raises(ProgramError, match="gradient of mul .* needs parameter as it was before"):
        program.minimize(p.outputs[0], optimizer)
    assert len(p.block.ops) == count
    program.minimize(p.outputs[1], optimizer)               # which needs x alone
    assert p(tl.ones(2))[1] == 3
    assert w.tolist() == [-0.5, -0.5]


def test_what_a_callback_raises_leaves_the_calls_as_they_were():
    w = tl.tensor([1.0, 2.0], requires_grad=True)
    p = program.trace(lambda x: (w * x).sum(), tl.ones(2))
    count = len(p.block.ops)
    with pytest.raises(ZeroDivisionError):
        program.append_backward(p.outputs, callbacks=[lambda block, call: 1 / 0])
    assert len(p.block.ops) == count and p(tl.ones(2)) == 3


W = tl.tensor([1.0, 2.0], requires_grad=True)


def traced():
    return program.trace(lambda x: (W * x).sum(), tl.ones(2))


class Steps:
    """What has `step`, and not the groups of an optimiser."""

    param_groups = None

    def step(self):
        pass


@each("call, message", [
    (lambda p: program.append_backward(p.outputs, 3), "parameter_list must be a sequence, got int"),
    (lambda p: program.append_backward(p.outputs, no_grad_set=3), "no_grad_set must be a sequence"),
    (lambda p: program.append_backward(p.outputs, callbacks=print), "callbacks must be a sequence"),
    (lambda p: program.append_backward(p.outputs, checkpoints=3), "checkpoints must be a sequence"),
    (lambda p: program.gradients(3, p.inputs), "targets must be a sequence, got int"),
    (lambda p: program.gradients(p.outputs, None), "inputs must be a sequence, got NoneType"),
    (lambda p: program.gradients(p.outputs, p.inputs, 3), "target_gradients must be a sequence"),
    (lambda p: program.minimize(p.outputs, Steps()), "param_groups must be a list of dicts"),
    (lambda p: p.run({"x": tl.ones(2)}, 3), "fetch must be a sequence, got int"),
    (lambda p: p.run([tl.ones(2)], p.outputs), "feed must be values by name, in a dict, not list"),
    (lambda p: program.optimize(p, 3), "passes must be a sequence, got int"),
    (lambda p: program.optimize(p.block), "optimize: takes a Program, got Block"),
    (lambda p: program.verify(None), "verify: takes a Program, got NoneType"),
    (lambda p: program.save(p.block, "p"), "save: takes a Program, got Block"),
    (lambda p: program.program_guard("p"), "program_guard: takes a Program, got str"),
])
def test_what_is_of_another_type_is_named(call, message):
    with pytest.raises(TypeError, match=message):
        call(traced())


def test_an_input_that_is_none_is_named():
    with pytest.raises(ValueError, match="the input x has no value"):
        traced().run({"x": None}, "sum")


def test_an_embedding_with_sparse_gradients_has_dense_ones_in_a_program():
    table = tl.linspace(-1, 1, 12).reshape(4, 3).requires_grad_()
    p = program.trace(lambda i: F.embedding(i, table, padding_idx=2, sparse=True).sum(), PLACES)
    (_, g), = program.append_backward(p.outputs)
    assert p.run({"i": PLACES}, g).tolist() == [[1.0] * 3, [2.0] * 3, [0.0] * 3, [0.0] * 3]
