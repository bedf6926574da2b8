"""Writes after a call of a compiled function, before its gradient: what an eager graph says."""

import pytest

import tensorlib as tl
from tensorlib import program

F = tl.nn.functional


def looped(x, w):
    return tl.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * w), (tl.tensor(0), x))[1]


def added(x, w):
    return tl.while_loop(lambda v: v.sum() < 20, lambda v: v * 2 + w, (x,))[0]


def printed(x, w):
    y = added(x, w)
    print(end="")                                       # which takes the function apart
    return y


CASES = {
    "mul": lambda x, w: x * w, "exp": lambda x, w: (x * w).exp(), "pow": lambda x, w: w ** x,
    "both": lambda x, w: (w.tanh() * x) * w, "linear": lambda x, w: F.linear(w, x.expand(2, 2)),
    "branch": lambda x, w: tl.cond(x.sum() > 0, lambda: x * w, lambda: w * x * 2),
    "loop": looped, "added": added, "in parts": printed,
    "scan": lambda x, w: tl.scan(lambda c, v: (c + v * 2, c), w, x.expand(3, 2))[0],
    "scan of products": lambda x, w: tl.scan(lambda c, v: (c * w, c), x, x.expand(3, 2) * 1)[0],
}


def after_a_write(function, written):
    """The gradient, or the error."""
    tensors = {"x": tl.tensor([1.0, 2.0]), "w": tl.tensor([2.0, 3.0], requires_grad=True)}
    tensors["y"] = function(tensors["x"], tensors["w"])
    with tl.no_grad():
        tensors[written].add_(1)
    try:
        tensors["y"].sum().backward()
    except RuntimeError as error:
        return str(error)
    return tensors["w"].grad.tolist()


@pytest.mark.filterwarnings("ignore:compile:RuntimeWarning")
@pytest.mark.parametrize("name", CASES)
def test_the_gradient_or_the_error_is_that_of_the_eager_call(name):
    function = CASES[name]
    for written in ("x", "w", "y"):
        compiled, wanted = tl.compile(function), after_a_write(function, written)
        assert [after_a_write(compiled, written) for _ in range(3)] == [wanted] * 3


def test_nothing_is_kept_of_a_loop_for_its_shape():
    p = program.trace(lambda x: added(x, x), tl.ones(2))
    program.gradients(p.outputs, p.inputs)
    loop, = (call for call in p.block.ops if call.type == "while_loop")
    assert loop.attributes["kept"] == 1
    assert [x.shape for x in loop.outputs] == [(2,), (None,)]          # the number of steps
