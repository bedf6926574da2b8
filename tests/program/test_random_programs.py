"""Random programs of the tests, captured: values, and gradients to second order, as eager code."""

from hypothesis import assume, example, given, settings
from programs import LEAVES, MAX_ELEMENTS, Machine, Step, laid_out, programs, weighted_sum
from program_steps import HOOKS, STEPS

import tensorlib as tl
from tensorlib import program
from tensorlib.program.passes import PASSES

# These are refused, with the line.
REFUSED = {"branch", "loop", "out", "dirty_function", "written_under_no_grad"}


class Guided(Machine):
    """A machine that keeps those results which the first one kept, without looking at them, for
    programs of which the same steps are refused."""

    def __init__(self, leaves, first=None):
        super().__init__(tl, leaves)
        self.kept, self.first = [], first

    def run(self, steps):
        for number, step in enumerate(steps):
            try:
                made = STEPS[step.name](self, self.value(step.i), step.j, step.number)
            except (RuntimeError, IndexError, ValueError, TypeError):
                assume(self.first is None or (number, step.name) in self.first.refused)
                self.refused.append((number, step.name))
                continue
            assume(self.first is None or (number, step.name) not in self.first.refused)
            for x in made if isinstance(made, (tuple, list)) else (made,):
                if self.first is None:
                    self.kept.append(x is not None and x.numel() <= MAX_ELEMENTS
                                     and not x.detach().isnan().any().item())
                else:
                    self.kept.append(self.first.kept[len(self.kept)])
                if self.kept[-1]:
                    self.values.append(laid_out(x))


def leaves():
    return [tl.tensor(x, dtype=tl.float64, requires_grad=True) for x in LEAVES]


def bits(x):
    return x.detach().contiguous().numpy().tobytes()


NO_GRADIENT_WANTED = [Step("function", 0, 0, 0.5), *[Step("sin", 0, 0, 0.5)] * 4,
                      Step("nested_grad", 9, 0, 0.5)]
WRITTEN_ALIAS = [Step(name, i, 0, 0.5) for name, i in (
    ("sin", 0), ("sin", 0), ("detach", 0), ("sin", 0), ("mul_", 16), ("sin", 0), ("mul_", 2))]

WRITTEN_VIEW = [Step("sin", 0, 0, 0.5), Step("t", 2, 0, 0.5), Step("masked_update", 2, 0, 0.5)]


@settings(max_examples=40, deadline=None)
@example(NO_GRADIENT_WANTED)
@example(WRITTEN_ALIAS)
@example(WRITTEN_VIEW)
@given(programs(without=HOOKS | REFUSED))
def test_captured_programs_give_what_eager_code_gives(steps):
    first = Guided(leaves())
    first.run(steps)

    def function(*inputs):
        machine = Guided(inputs, first)
        machine.run(steps)
        return weighted_sum(machine)

    try:
        made = program.trace(function, *leaves())
    except program.CaptureError as error:
        # a write through one of two tensors that share memory, or through a view of unknown size
        assert "detach" in str(error) or "size that depends on elements" in str(error)
        assume(False)
    given_leaves = leaves()
    expected = function(*given_leaves)
    value = made(*given_leaves)
    if any(step.name.startswith("func_") for step in steps):    # derivatives inside: by formulas,
        assert tl.allclose(value, expected, rtol=1e-12, atol=1e-12)     # where eager ones are fused
    else:
        assert bits(value) == bits(expected)
    assert bits(program.optimize(made, PASSES)(*given_leaves)) == bits(value)
    try:
        slopes = tl.autograd.grad(expected, given_leaves, create_graph=True, allow_unused=True)
    except RuntimeError:                  # what a gradient needs was written over
        assume(False)
    found = program.gradients(made.outputs, made.inputs)
    feed = {x.name: leaf for x, leaf in zip(made.inputs, given_leaves)}
    assert_agree(made, feed, found, slopes)
    roots = [x for x in slopes if x is not None and x.requires_grad]
    if not roots:
        return
    curvatures = tl.autograd.grad(sum((x * x).sum() for x in roots), given_leaves,
                                  allow_unused=True)
    targets = [g for g, x in zip(found, slopes) if x is not None and x.requires_grad]
    with made:
        total = sum(((g * g).sum() for g in targets[1:]), (targets[0] * targets[0]).sum())
    if not any(call.type == "function" for call in made.block.ops):    # their gradients have none
        assert_agree(made, feed, program.gradients(total, made.inputs), curvatures)
    if "<" not in str(made):
        again = program.parse(str(made), made.values())
        assert_agree(again, feed, [None if g is None else g.name for g in found], slopes)


def assert_agree(made, feed, found, expected):
    for g, x in zip(found, expected):
        if g is None:
            assert x is None or not x.any().item()
            continue
        value = made.run(feed, g)
        if x is None:
            assert not value.any().item()
        else:
            assert tl.allclose(value, x, rtol=1e-9, atol=1e-9, equal_nan=True)
