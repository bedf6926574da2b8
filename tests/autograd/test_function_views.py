"""A `Function` that returns a view of its input, or the input itself."""

import pytest
from tensors import leaf

import tensorlib as tl
from tensorlib.autograd import Function


def function(forward, backward):
    """A Function of plain functions."""
    return type("Mine", (Function,), {
        "forward": staticmethod(forward), "backward": staticmethod(backward)})


VIEWS = {
    "as it is": function(lambda ctx, x: x, lambda ctx, g: g * 10),
    "view_as": function(lambda ctx, x: x.view_as(x), lambda ctx, g: g * 10),
    "a part": function(lambda ctx, x: x[:1], lambda ctx, g: tl.cat([g, g * 0]) * 10),
    "several": function(lambda ctx, x: (x[0], x[1]), lambda ctx, *gs: tl.stack(gs) * 10),
}
viewing = pytest.mark.parametrize("View", VIEWS.values(), ids=VIEWS)


def first_of(output):
    return output[0] if isinstance(output, tuple) else output


@viewing
def test_a_view_of_an_input_is_read_with_the_function_s_gradient(View):
    x = leaf(1.0, 2.0)
    base = x * 1
    y = first_of(View.apply(base))
    assert y._base is base and y.data_ptr() == base.data_ptr()
    (y.sum() + base.sum()).backward()
    assert x.grad[0] == 11.0


@viewing
def test_writing_into_a_view_that_a_function_made_is_refused(View):
    x = leaf(1.0, 2.0)
    base = x * 1
    y = first_of(View.apply(base))
    for write in (lambda: y.mul_(3), lambda: y.view_as(y).add_(1), lambda: y.zero_()):
        with pytest.raises(RuntimeError, match="inside a custom Function .*clone"):
            write()
    assert base.tolist() == [1.0, 2.0]
    (y.clone().mul_(3).sum() + base.sum()).backward()
    assert x.grad[0] == 31.0


@viewing
def test_a_view_that_a_function_made_has_no_gradient_once_its_base_is_written(View):
    x = leaf(1.0, 2.0)
    base = x * 1
    y = first_of(View.apply(base))
    base.mul_(5)
    assert y.reshape(-1)[0] == 5.0
    with pytest.raises(RuntimeError, match="output of MineBackward is a view whose base"):
        y.sum().backward()
    base.sum().backward()
    assert x.grad.tolist() == [5.0, 5.0]


@viewing
def test_outside_the_graph_a_view_of_an_input_can_be_written(View):
    x = tl.tensor([1.0, 2.0])
    first_of(View.apply(x)).mul_(5)
    assert x[0] == 5.0
    recorded = leaf(1.0, 2.0) * 1
    y = first_of(View.apply(recorded))
    with tl.no_grad():
        y.mul_(5)
    assert recorded[0] == 5.0


def test_what_is_marked_non_differentiable_is_no_view():
    def forward(ctx, x):
        part = x[:1]
        ctx.mark_non_differentiable(part)
        return x * 2, part
    x = leaf(1.0, 2.0)
    _, part = function(forward, lambda ctx, g, h: g * 2).apply(x)
    assert part._base is None and not part.requires_grad
