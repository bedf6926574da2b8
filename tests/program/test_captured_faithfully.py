"""What a capture notes holds for other inputs, or it is refused: nothing is taken for a constant
that a run computes, and no write is lost."""

from pathlib import Path

import pytest
from cases import each
from process import run_python

import tensorlib as tl
from tensorlib import program
from tensorlib.program.building.builder import unseen

FUNCTIONS = {
    "gather": lambda x, i: x.gather(0, i),
    "gather of computed places": lambda x, i: x.gather(0, (i + 1) % 4),
    "gather with int32": lambda x, i: x.gather(0, i.int()),
    "gather from the end": lambda x, i: x.gather(0, -i - 1),
    "gather with a strided index": lambda x, i: x.gather(0, i.T.contiguous().T),
    "take_along_dim": lambda x, i: x.take_along_dim(i, 0),
    "scatter": lambda x, i: x.scatter(0, i, x[:1] * 2),
    "scatter_add": lambda x, i: x.scatter_add(0, i, x[:1]),
    "scatter_reduce": lambda x, i: x.scatter_reduce(0, i, x[:1] * 2, "amax"),
    "scatter_reduce mean": lambda x, i: x.scatter_reduce(0, i, x[:1], "mean", include_self=False),
    "index_select": lambda x, i: x.index_select(0, i[0]),
    "index_add": lambda x, i: x.index_add(0, i[0, :2], x[:2]),
    "index": lambda x, i: x[i, -1],
    "sort": lambda x, i: x.sort(0)[0],
    "argsort": lambda x, i: x.gather(0, x.argsort(0, descending=True)),
    "topk": lambda x, i: x.topk(2, 0)[0],
    "max": lambda x, i: x.max(0)[0],
    "median": lambda x, i: x.median(0)[0],
    "kthvalue": lambda x, i: x.kthvalue(2, 0)[0],
    "cummax": lambda x, i: x.cummax(0)[0],
}


@each("requires_grad", [False, True])
@each("name", FUNCTIONS)
def test_positions_are_those_of_each_run(name, requires_grad):
    function = FUNCTIONS[name]
    x = tl.randn(4, 3, dtype=tl.float64, requires_grad=requires_grad)
    made = program.trace(function, x, tl.tensor([[0, 1, 2]]))
    for order in ([[2, 3, 1]], [[1, 1, 0]]):
        other = tl.randn(4, 3, dtype=tl.float64, requires_grad=requires_grad), tl.tensor(order)
        expected = function(*other)
        assert tl.equal(made(*other), expected.detach())
        if requires_grad:
            (slope,) = tl.autograd.grad(expected.sum(), other[0])
            (found,) = program.gradients(made.outputs, made.inputs[:1])
            assert tl.equal(made.run(dict(zip(("x", "i"), other)), found), slope)


def written_detached(x):
    y = x.sin()
    y.detach().mul_(2.0)
    return y.sum()


def detached_before(x):
    y = x.sin()
    z = y.detach()
    y.mul_(2.0)
    return z.sum()


def written_part(x):
    y = x.sin()
    y[0].detach().zero_()
    return y[1:].sum()


def written_outside(x):
    x.detach().mul_(2.0)
    return x * 1


@pytest.mark.parametrize("function", [written_detached, detached_before, written_outside])
def test_a_write_reaches_what_shares_its_memory(function):
    made = program.trace(function, tl.tensor([0.3, 0.7]))
    x, y = tl.tensor([0.1, 0.9]), tl.tensor([0.1, 0.9])
    assert tl.equal(made(x), function(y))
    assert tl.equal(x, y)


def test_a_write_into_a_part_of_shared_memory_is_refused():
    with pytest.raises(program.CaptureError, match=r"detach\(\).*test_captured_faithfully.py:\d+"):
        program.trace(written_part, tl.tensor([0.3, 0.7]))


def test_a_write_into_a_detached_tensor_that_nothing_else_reads():
    def function(x):
        y = x.sin().detach()
        y.mul_(2.0)
        y[0] = 5.0
        return y * 1

    made = program.trace(function, tl.tensor([0.3, 0.7]))
    x = tl.tensor([0.1, 0.9])
    assert tl.equal(made(x), function(x))


def test_what_no_operation_made_is_no_constant():
    def function(x):
        hidden = []
        with unseen():
            hidden.append(x * 2)
        return hidden[0] + 1

    with pytest.raises(program.CaptureError, match=r"a kernel.*shape \(2,\) can't be captured"):
        program.trace(function, tl.ones(2))


AROUND = tl.ones(3)
UNSEEN = {
    "a_part_of_an_argument": lambda x: x[0],
    "an_argument_transposed": lambda x: x.mT,
    "an_argument_detached": lambda x: x.detach(),
    "a_part_of_what_is_around": lambda x: AROUND[1:].sum(),
    "a_product": lambda x: x * 2,
}


@each("name", UNSEEN)
@each("used", [lambda y, x: y * 2, lambda y, x: y, lambda y, x: x * y.sum().item()])
def test_what_was_not_seen_is_no_constant_of_what_is_compiled(name, used):
    def function(x):
        with unseen():
            hidden = UNSEEN[name](x)
        return used(hidden, x)

    compiled = tl.compile(function)
    for value in (1.0, 2.0, 3.0):
        x = tl.full((3, 3), value)
        assert tl.equal(compiled(x), function(x))
    if name != "a_part_of_what_is_around":
        with pytest.raises(program.CaptureError, match="can't be captured|lies where an argument"):
            program.trace(function, tl.ones(3, 3))


def test_a_mask_of_no_dims_is_that_of_each_run():
    made = program.trace(lambda x: (x[x > 0], tl.ones(2, 3)[x > 0, :, 1:]), tl.tensor(1.0))
    for number, count in ((2.0, 1), (-2.0, 0)):
        alone, parts = made(tl.tensor(number))
        assert alone.tolist() == [number] * count
        assert parts.shape == (count, 2, 2)


OF_ANY_SIZE = {
    "a mask": lambda x: x[x > 0],
    "a count": lambda x: tl.bincount(x.abs().long()),
    "places": lambda x: tl.nonzero(x)[:, 0],
}
VIEWS = {
    "a slice": lambda v: v[1:],
    "windows": lambda v: v.unfold(0, 2, 2),
    "another shape": lambda v: v.view(-1, 1),
}


@each("size", OF_ANY_SIZE)
@each("view", VIEWS)
@each("writes_base", [True, False])
def test_a_view_of_what_has_another_size_in_each_run_is_not_written(size, view, writes_base):
    def f(x):
        base = OF_ANY_SIZE[size](x)
        part = VIEWS[view](base)
        (base if writes_base else part).mul_(2)
        return part if writes_base else base

    with pytest.raises(program.CaptureError, match="a size that depends on elements can't be"):
        program.trace(f, tl.tensor([1.0, 2.0, -3.0, -4.0]))


def test_what_has_another_size_in_each_run_is_written_as_a_whole():
    def f(x):
        kept = x[x > 0]
        first = kept[1:] * 1
        kept[1:] = 7
        return first, kept.mul_(2)

    x = tl.tensor([1.0, 2.0, 3.0, 4.0])
    made = program.trace(f, tl.tensor([1.0, 2.0, -3.0, -4.0]))
    assert [y.tolist() for y in made(x)] == [y.tolist() for y in f(x)]


def test_a_view_that_is_first_read_again_under_no_grad_has_its_gradient():
    def f(x):
        base = x * 1
        row = base[0]
        base.mul_(x)
        with tl.no_grad():
            row.sin()                         # of the base as it is now, as all that follows
        return (row * row).sum()

    x = tl.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    wanted = tl.tensor([[4.0, 32.0], [0.0, 0.0]])
    made = program.trace(f, x)
    assert tl.equal(made.run({"x": x}, program.gradients(made.outputs, made.inputs))[0], wanted)
    compiled = tl.compile(f)
    for _ in range(2):
        assert tl.equal(tl.autograd.grad(compiled(x), x)[0], wanted)


CUT = {
    "data": lambda x, w: ((x * w).data * w).sum(),
    "data of a part": lambda x, w: ((x * w).data[1:] * w[1:]).sum(),
    "data of what is read again": lambda x, w: (lambda y: (y * y.data + y.data.exp()).sum())(x * w),
    "detach_": lambda x, w: ((x * w).detach_() * w).sum(),
}


@each("name", CUT)
def test_what_is_cut_from_its_graph_has_no_gradient(name):
    function = CUT[name]
    w, x = tl.tensor([1.0, 2.0, 3.0], requires_grad=True), tl.tensor([2.0, 0.5, -1.0])

    def slope(f):
        (found,) = tl.autograd.grad(f(x, w), w)
        return found

    compiled = tl.compile(function)
    within = tl.compile(lambda x: tl.autograd.grad(function(x, w), w)[0])
    for _ in range(3):
        assert tl.equal(slope(compiled), slope(function))
        assert tl.equal(within(x), slope(function))
    made = program.trace(lambda x: function(x, w), x)
    ((_, gradient),) = program.append_backward(made.outputs)
    assert tl.equal(made.run({"x": x}, gradient), slope(function))


@each("write", {
    "data": lambda y: setattr(y, "data", y * 2), "resize_": lambda y: y.resize_(2),
    "set_": lambda y: y.set_(tl.ones(3)), "as_strided_": lambda y: y.as_strided_((3,), (0,)),
}.values())
def test_a_tensor_that_is_given_other_memory_is_refused(write):
    def function(x):
        y = x * 2
        write(y)
        return y

    with pytest.raises(program.CaptureError, match="data: a tensor that is given other memory"):
        program.trace(function, tl.ones(3))


def test_positions_written_in_a_branch_are_those_of_each_run():
    def function(x, i):
        return tl.cond(x.sum() > 0, lambda: x.index_put((i,), tl.tensor(9.0)), lambda: x * 2)

    made = program.trace(function, tl.ones(3), tl.tensor([0]))
    for place in range(3):
        given = tl.ones(3), tl.tensor([place])
        assert tl.equal(made(*given), function(*given))


FIRST_USE = f"""
import sys, warnings
sys.path.insert(0, {str(Path(__file__).parent)!r})
import first_use
import tensorlib as tl
warnings.simplefilter("error")
for f in (first_use.likelihood, first_use.transformed):
    compiled = tl.compile(f)
    for k in range(4):
        x = tl.arange(3.0) + k
        assert compiled(x).equal(f(x)), (f, k)
    assert compiled._entries[0].is_replayed(), f
"""


def test_what_a_first_call_imports_is_no_part_of_it():
    run_python(FIRST_USE)
