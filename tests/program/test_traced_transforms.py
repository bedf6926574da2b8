"""Programs of functions that differentiate: their gradients are those of the functions."""

import pytest
from cases import each

import tensorlib as tl
from tensorlib import program
from tensorlib.utils.checkpoint import checkpoint


def wave(x):
    return x.sin() * x


TRANSFORMS = {
    "vjp": (lambda x, v: tl.func.vjp(wave, x)[1](v)[0], 2),
    "jvp": (lambda x, v: tl.func.jvp(wave, (x,), (v,))[1], 2),
    "value_and_pullback": (lambda x, v: sum((lambda y, pull: (y, pull(v)[0]))(
        *tl.func.vjp(wave, x))), 2),
    "grad": (lambda x: tl.func.grad(lambda t: wave(t).sum())(x), 1),
    "grad_of_grad": (lambda x: tl.func.grad(lambda t: tl.func.grad(
        lambda u: wave(u).sum())(t).sum())(x), 1),
    "grad_beside_the_closure": (lambda x: tl.func.grad(lambda t: (wave(t) * x).sum())(x), 1),
    "jacrev": (lambda x: tl.func.jacrev(wave)(x), 1),
    "autograd": (lambda x: (lambda t: tl.autograd.grad(wave(t).sum(), t, create_graph=True)[0])(
        x * 1 if x.requires_grad else x.requires_grad_()), 1),
}


@each("name", TRANSFORMS)
def test_gradients_of_a_traced_transform_are_those_of_the_function(name):
    function, n = TRANSFORMS[name]
    examples = [tl.tensor([1.0, 2.0]).double(), tl.tensor([0.3, -0.7]).double()][:n]
    p = program.trace(function, *[x.clone() for x in examples])
    slopes = program.gradients(p.outputs, p.inputs)
    for given in (examples, [x * 0.7 + 0.2 for x in examples]):
        leaves = [x.clone().requires_grad_() for x in given]
        out = function(*leaves)
        wanted = tl.autograd.grad(out.sum(), leaves)
        found = p.run({x.name: value for x, value in zip(p.inputs, given)}, [p.outputs, *slopes])
        for a, b in zip((out, *wanted), found):
            tl.testing.assert_close(a.detach(), b, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("f", [lambda z: z.sin(), lambda z: z.sin() * z, lambda z: z.exp() * z])
def test_gradients_of_tangents_through_a_checkpoint(f):
    def function(x):
        return tl.func.grad(lambda y: tl.func.jvp(
            lambda z: checkpoint(f, z, use_reentrant=False), (y,), (y.cos(),))[1].sum())(x)

    x = tl.arange(4.0) + 1
    traced = program.trace(function, x)
    assert tl.equal(traced(x + 1), function(x + 1))
