"""Writes in place of what is computed in another dtype: the target keeps its own, captured too."""

import pytest
from cases import each

import tensorlib as tl

WIDER = tl.arange(1, 6).to(tl.float64) * 1.1
WRITES = [
    lambda y: y.add_(WIDER), lambda y: y.mul_(WIDER).sub_(2.5), lambda y: y.div_(WIDER) * 3,
    lambda y: y.pow_(WIDER), lambda y: y.atan2_(WIDER), lambda y: y.eq_(2.0),
    lambda y: y.logical_not_(), lambda y: (y[1:4].mul_(WIDER[1:4]), y),
    lambda y: (y.view(5, 1).t().add_(WIDER), y * 2),
]


@each("dtype", [tl.float16, tl.bfloat16, tl.float32, tl.int32])
@each("write", WRITES)
def test_the_target_keeps_its_dtype(write, dtype):
    def f(x):
        return write(x + 1)

    compiled, x = tl.compile(f), tl.arange(5).to(dtype)
    try:
        wanted = f(x)
    except RuntimeError as error:
        for _ in range(3):
            with pytest.raises(RuntimeError) as found:
                compiled(x)
            assert str(found.value) == str(error)
        return
    for _ in range(3):
        for a, b in zip(leaves(compiled(x)),
                        leaves(wanted)):
            assert a.dtype is b.dtype and a.equal(b)


def leaves(found):
    return found if isinstance(found, tuple) else (found,)


@pytest.mark.filterwarnings("ignore:compile")
@pytest.mark.parametrize("frozen", [False, True])
def test_a_gradient_goes_the_way_of_the_eager_call(frozen):
    def f(x, y):
        return (x * 2).mul_(y)

    def gradients(g):
        x = tl.arange(5).to(tl.float16).requires_grad_(not frozen)
        y = WIDER.clone().requires_grad_()
        out = g(x, y)
        out.float().sum().backward()
        return out.detach(), y.grad, x.detach() if frozen else x.grad

    compiled = tl.compile(f)
    for _ in range(3):
        for a, b in zip(gradients(compiled), gradients(f)):
            assert a.dtype is b.dtype and a.equal(b)


def test_a_trace_writes_what_the_eager_call_writes():
    def f(x):
        return (x * 2).mul_(x.double() * 1.1) + 1

    x = tl.arange(5).to(tl.float32)
    p = tl.program.trace(f, x)
    assert p.run({"x": x}, p.outputs).equal(f(x))
