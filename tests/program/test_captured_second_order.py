"""Gradients with a graph inside of captured functions, and the leaves that these make."""

import pytest
from beside_eager import agrees
from cases import each

import tensorlib as tl
from tensorlib import func

F = tl.nn.functional
W = [0.5, -1.0, 2.0, 0.25]
PLACES = tl.tensor([2, 0, 0])

FUNCTIONS = {
    "sin": lambda x, w: (x.sin() * w).sum(),
    "power": lambda x, w: (x ** 3 * w).sum(),
    "quotient": lambda x, w: (w / (x * x + 1)).mean(),
    "product": lambda x, w: ((x.view(2, 2) @ x.view(2, 2).t()).exp() * w[0]).sum(),
    "parts": lambda x, w: (tl.cat([x[1:], x[:1] * w[:1]]) ** 3).sum(),
    "positions": lambda x, w: (x[PLACES] ** 3).sum() * w.sum(),
    "scan": lambda x, w: ((x * w).cumsum(0) ** 2).sum(),
    "where": lambda x, w: tl.where(x > 0, x ** 3, x * w).sum(),
    "several uses": lambda x, w: (x * x.sum() * w + x.flip(0) * x).sigmoid().sum(),
    "dtypes": lambda x, w: (x.double().sin().float() * w).sum(),
    "linear": lambda x, w: (x * w * 2).sum(),
    "pieces": lambda x, w: ((x * w).relu() * x.clamp(-1, 1)).square().sum(),
    "the largest": lambda x, w: (x * w).max() ** 2 + tl.maximum(x, w[:1]).square().sum(),
    "slopes": lambda x, w: F.prelu(F.leaky_relu(x - w, 0.1).square() - 1, w[:1]).sum(),
    "layers": lambda x, w: F.linear(F.linear(x.view(2, 2), w.view(2, 2), w[:2]).relu(),
                                    w.view(2, 2).t(), w[2:]).square().sum(),
    "norms": lambda x, w: (F.layer_norm(x * w, (4,)) ** 3).sum() * x.norm() + w.var(),
    "pools": lambda x, w: (F.max_pool1d((x * w).view(1, 1, 4), 2) ** 2).sum(),
    "slopes of doubles": lambda x, w: (
        F.leaky_relu((x * w).double(), 0.1) + F.hardtanh(x.double())).square().sum().float(),
    "halves": lambda x, w: (x * w).bfloat16().relu().square().float().sum(),
}

TRANSFORMS = {
    "grad": lambda f: lambda x, w: func.grad(f)(x, w),
    "grad of grad": lambda f: lambda x, w: func.grad(
        lambda y: func.grad(f)(y, w).square().sum())(x),
    "hessian": lambda f: lambda x, w: func.hessian(f)(x, w),
    "product with the Hessian": lambda f: lambda x, w: func.jvp(
        func.grad(lambda y: f(y, w)), (x,), (x.cos(),))[1],
    "jacrev of grad": lambda f: lambda x, w: func.jacrev(func.grad(f))(x, w),
    "autograd.grad": lambda f: lambda x, w: tl.autograd.grad(
        f(x * 1, w), w, create_graph=True)[0].sin() * x,
    "by a leaf of its own": lambda f: lambda x, w: (lambda y: tl.autograd.grad(
        f(y, w), y, create_graph=True)[0].square() * x)(x.detach().requires_grad_()),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@each("name", FUNCTIONS)
@each("turn", [0, 1])
def test_gradients_with_a_graph_are_captured(turn, name, transform):
    """With two of the sets of leaves for each function and transform; all of them occur in turn."""
    sets = ("w", "x w") if transform == "autograd.grad" else ("x", "w", "x w", "")   # its leaf is w
    required = sets[(turn * len(sets) // 2 + list(FUNCTIONS).index(name)) % len(sets)]

    def build():
        w = tl.tensor(W, requires_grad="w" in required)
        f = TRANSFORMS[transform](FUNCTIONS[name])
        return lambda x: f(x, w), [tl.tensor([0.3, 0.7, -0.4, 1.1]).mul(k).requires_grad_(
            "x" in required) for k in (1, 2, 1.5, 0.5)], w

    warnings = agrees(build)
    assert not warnings or name == "linear", warnings


ROWS, LARGE = (3, 4), (64, 64)
OF_ROWS = {
    "sum": lambda x, w: (x * w).exp().sum(),
    "mean": lambda x, w: (x * w).exp().mean(),
    "sum of squares": lambda x, w: (x * w).pow(2).sum(),
    "sums of columns": lambda x, w: (x * w).sum(0).exp().sum(),
    "variance": lambda x, w: (x * w).var(),
}


@each("transform", [
    lambda f: lambda x, w: func.grad(f)(x, w),
    lambda f: lambda x, w: func.vjp(lambda y: f(y, w), x)[1](tl.tensor(2.0))[0],
    lambda f: lambda x, w: (lambda y: tl.autograd.grad(f(y, w), y, create_graph=True)[0])(
        x if x.requires_grad else x.detach().requires_grad_())])
@each("name", OF_ROWS)
@each("shape, required", [(ROWS, "x"), (ROWS, "w"), (ROWS, ""), (LARGE, "x"), (LARGE, "w")])
def test_a_gradient_with_a_graph_lies_as_that_of_the_eager_call(transform, name, shape, required):
    """Also that of what lies in columns, and of few elements as of many."""
    def build():
        w = tl.linspace(0, 1, shape[1]).requires_grad_("w" in required)
        f = transform(OF_ROWS[name])
        x = tl.linspace(-1, 1, shape[0] * shape[1]).reshape(*shape[::-1]).t()
        return lambda x: f(x, w), [(x * k).requires_grad_("x" in required) for k in (1, 2)], w

    agrees(build)


def test_a_leaf_of_the_call_is_in_its_graph():
    """Sweeps go there: they need, and let go of, what leads to it, and gradients have a graph."""
    def two_results(x, v, w):
        y = x.detach().requires_grad_().exp()
        return y * v, y.sin() * w, y + 1

    def drawn(x, v, w):
        noise = tl.rand(3).requires_grad_()
        return (x + noise).exp() * v, noise.sin() * w, noise * 2

    def constant(x, v, w):
        noise = tl.zeros(3).requires_grad_()
        return (x + noise).exp() * v, noise.cos() * w, noise * 2

    def transform(x, v, w):
        return [func.jvp(lambda y: y.exp() * z, (x,), (x,))[1] for z in (v, w)]

    def told(act):
        try:
            found = act()
        except RuntimeError as error:
            return str(error)
        return None if found is None else [
            None if g is None else (g.tolist(), g.requires_grad) for g in found]

    def seen(f, acts):
        tl.manual_seed(0)
        x = tl.arange(3.0)
        v, w = (tl.ones(3, requires_grad=True) for _ in range(2))
        results = f(x, v, w)
        return [told(lambda act=act: act(results, x, (v, w))) for act in acts], [
            y.requires_grad for y in results], v.grad is None or v.grad.tolist(), (
                w.grad is None or w.grad.tolist())

    acts = [
        lambda results, x, leaves: results[0].sum().backward(),
        lambda results, x, leaves: results[1].sum().backward(),
        lambda results, x, leaves: tl.autograd.grad(
            results[0].sum(), leaves, create_graph=True, allow_unused=True),
        lambda results, x, leaves: tl.autograd.grad(
            results[1].sum(), leaves, retain_graph=True, allow_unused=True),
        lambda results, x, leaves: [x.mul_(2)],
    ]
    for f in (two_results, drawn, constant, transform):
        for first in acts:
            for second in acts:
                compiled = tl.compile(f)
                assert [seen(compiled, (first, second)) for _ in range(3)] == [
                    seen(f, (first, second))] * 3, f.__name__
                assert compiled._entries[0].replay is not None, f.__name__
