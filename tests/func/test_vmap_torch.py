"""vmap against torch.func.vmap, where PyTorch is installed: results and types of errors."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib import func
from tensorlib.testing import assert_close

torch = pytest.importorskip("torch")

RNG = np.random.default_rng(0)
# Four examples each: matrices, vectors, numbers, positions and masks.
X, Y = RNG.normal(size=(4, 2, 3)), RNG.normal(size=(4, 2, 3))
V, S = RNG.normal(size=(4, 3)), RNG.normal(size=4)
PLACES, J, PLACES3 = (RNG.integers(0, 2, shape) for shape in ((4, 3), (4,), (4, 2, 3)))
M = X > 0
LIBRARIES = (SimpleNamespace(lib=tl, f=func, t=tl.tensor, vmap=func.vmap),
             SimpleNamespace(lib=torch, f=torch.func, t=torch.tensor, vmap=torch.func.vmap))


def written(x, key, value):
    x = x.clone()
    x[key] = value
    return x


def mapped(function, *arrays, **options):
    """The case that maps `function(library, *examples)` over these arrays."""
    return lambda p: p.vmap(lambda *xs: function(p.lib, *xs), **options)(*map(p.t, arrays))


CASES = {
    "like": mapped(
        lambda lib, x: (lib.zeros_like(x) + 1, lib.ones_like(x), lib.full_like(x, 2.0)), X),
    "like, then in place": mapped(lambda lib, x: lib.zeros_like(x).add_(x), X),
    "new": mapped(lambda lib, x: (x.new_zeros(5), x.new_ones(2, 1), x.new_full((2,), 3.0)), X),
    "new_tensor": mapped(lambda lib, x: x.new_tensor([1.0, 2.0, 3.0]) * x, X),
    "position": mapped(lambda lib, x, j: x[j], X, J),
    "positions": mapped(lambda lib, x, i: x[:, i], X, PLACES),
    "write at a position": mapped(lambda lib, x, j, v: written(x, j, v), X, J, V),
    "write at two": mapped(lambda lib, x, j: written(x, (j, 0), 0.5), X, J),
    "write at the last": mapped(lambda lib, x, i: written(x, (..., i[:1]), 0.5), X, PLACES),
    "write at positions": mapped(lambda lib, x, i, v: written(
        x, (i[:2], lib.tensor([0, 1])), v[:2]), X, PLACES, V),
    "write through a shared mask": mapped(lambda lib, x: written(x, lib.tensor(M[0]), 0.5), X),
    "write a slice": mapped(lambda lib, x, y: written(
        x, (slice(None), slice(1, None)), y[:, 1:]), X, Y),
    "write at shared positions": mapped(lambda lib, x, y: written(
        x, (slice(None), lib.tensor([2, 0])), y[:, 1:]), X, Y),
    "where": mapped(lambda lib, x, m: lib.where(m, x, 0.0), X, M),
    "masked_fill": mapped(lambda lib, x, m: x.masked_fill(m, 0.0), X, M),
    "gather": mapped(lambda lib, x, i: x.gather(0, i), X, PLACES3),
    "gather at shared": mapped(lambda lib, x: x.gather(0, lib.tensor(PLACES3[0])), X),
    "gather of a shared": mapped(lambda lib, i: lib.tensor(X[0]).gather(0, i), PLACES3),
    "index_select": mapped(lambda lib, x, i: x.index_select(0, i), X, PLACES),
    "take_along_dim": mapped(lambda lib, x, i: lib.take_along_dim(x, i, 0), X, PLACES3),
    "softmax": mapped(lambda lib, x: (x.softmax(-1), x.log_softmax(0), x.logsumexp(1)), X),
    "reductions": mapped(
        lambda lib, x: (x.sum(0), x.prod(1), x.var(0), x.amax((0, 1)), x.argmax()), X),
    "norms": mapped(lambda lib, x: (x.norm(), x.norm(1, dim=0), x.nansum(0), x.cumsum(-1)), X),
    "max": mapped(lambda lib, x: (*x.max(0), *x.min(-1, keepdim=True)), X),
    "join with a shared": mapped(lambda lib, x: (
        lib.cat([x, lib.tensor(Y[0])], 1), lib.stack([x, lib.tensor(Y[0]), x], -1)), X),
    "shapes": mapped(lambda lib, x: (x.T.reshape(-1), x.flatten(), x.unsqueeze(-1), x.movedim(0, 1),
                                 x.expand(5, 2, 3), x[None, ..., 0], x.unflatten(1, (3, 1))), X),
    "parts": mapped(lambda lib, x: (*x.unbind(1), *x.chunk(2, 1), *x.split([1, 1])), X),
    "products": mapped(lambda lib, x, v: (x @ v, x @ x.mT, v @ v, lib.outer(v, v)), X, V),
    "in place": mapped(lambda lib, x, y: x.clone().add_(y, alpha=2).mul_(3).clamp_(0, 1), X, Y),
    "copy_": mapped(lambda lib, x, s: x.clone().copy_(s), X, S),
    "fill_": mapped(lambda lib, x, s: x.clone().fill_(s), X, S),
    "a view in place": mapped(lambda lib, x: [y := x.clone(), y[0].mul_(2), y.t().sub_(1)][0], X),
    "facts": mapped(lambda lib, x: x * x.element_size() * x.nelement() * len(x) * x.dim(), X),
    "as_tensor": mapped(lambda lib, x: lib.as_tensor(x) * 2, X),
    "in_dims": mapped(lambda lib, x, y: x[:, :1] * y[0], X, V, in_dims=(-1, None)),
    "out_dims": mapped(lambda lib, x: (x, x * 2, x.sum()), X, out_dims=(1, -1, 0)),
    "chunk_size": mapped(lambda lib, x: x.exp() + x.sum(), X, chunk_size=3),
    "containers": lambda p: p.vmap(
        lambda d, e: {"out": d["a"][0] * e[1] + e[0]}, ({"a": (1,)}, [None, 0]), 1)(
            {"a": (p.t(X.transpose(1, 0, 2)),)}, [p.t(X[0]), p.t(X)])["out"],
    "nested": lambda p: p.vmap(p.vmap(lambda x, y: x @ y, (None, 0)), (0, None))(p.t(V), p.t(V)),
    "vmap of a vjp": lambda p: as_one(p.vmap(p.f.vjp(
        lambda x: x.sin().sum(0) * x[0], p.t(X[0]))[1])(p.t(V))),
    "vmap of a linear map": lambda p: p.vmap(p.f.linearize(
        lambda x: x.sin().sum(0) * x[0], p.t(X[0]))[1])(p.t(X)),
    "vmap of grad": lambda p: p.vmap(p.f.grad(lambda x: (x.sin() * x.sum()).sum()))(p.t(X)),
    "vmap of jvp": lambda p: p.vmap(lambda x, t: p.f.jvp(
        lambda x: x.sin() * x.sum(), (x,), (t,)))(p.t(X), p.t(Y)),
    "vmap of hessian": lambda p: p.vmap(p.f.hessian(lambda x: (x.sin() * x.sum()).sum()))(p.t(V)),
    "vmap of jacrev": lambda p: p.vmap(p.f.jacrev(lambda x: x.sin() * x.sum()))(p.t(V)),
    "vmap of jacfwd": lambda p: p.vmap(p.f.jacfwd(lambda x: x.sin() * x.sum()))(p.t(V)),
    "jacfwd of vmap": lambda p: p.f.jacfwd(p.vmap(lambda x: x.sin() * x.sum()))(p.t(V)),
    "jacrev in chunks": lambda p: p.f.jacrev(lambda x: x.sin() * x.sum(), chunk_size=5)(p.t(X)),
    "grad of vmap": lambda p: p.f.grad(
        lambda x: p.vmap(lambda x: x.sin() * x.sum())(x).sum())(p.t(V)),
}

ERRORS = {
    "if": mapped(lambda lib, x: x if x.sum() > 0 else -x, X),
    "item": mapped(lambda lib, x: x.sum().item(), X),
    "float": mapped(lambda lib, x: float(x.sum()), X),
    "int": mapped(lambda lib, j: list(range(j)), J),
    "a slice": mapped(lambda lib, x, j: x[:j], X, J),
    "in": mapped(lambda lib, x: x if x in [1, 2] else x, X),
    "nonzero": mapped(lambda lib, m: lib.nonzero(m), M),
    "where alone": mapped(lambda lib, m: lib.where(m), M),
    "masked_select": mapped(lambda lib, x, m: x.masked_select(m), X, M),
    "pick by a mask": mapped(lambda lib, x, m: x[m], X, M),
    "in place on a shared": mapped(lambda lib, x: lib.tensor(X[0]).add_(x), X),
    "write to a shared": mapped(lambda lib, x: written(lib.tensor(X[0]), 0, x[0]), X),
    "write to a shared, somewhere": mapped(lambda lib, j: written(lib.tensor(X[0]), j, 0.0), J),
    "into a lower kind": mapped(lambda lib, i, x: i.clone().add_(x), PLACES3, X),
    "out=": mapped(lambda lib, x: lib.add(x, x, out=lib.zeros(2, 3)), X),
    "to an expanded": mapped(lambda lib, x: x.expand(2, 2, 3).add_(1), X),
    "backward": mapped(lambda lib, x: x.sum().backward(), X),
    "requires_grad_": mapped(lambda lib, x: x.requires_grad_(), X),
    "data": mapped(lambda lib, x: x.data * 2, X),
    "random": mapped(lambda lib, x: x + lib.rand(3), X),
    "in place draws of a shared": mapped(
        lambda lib, x: lib.zeros(3).normal_(), X, randomness="different"),
    "a mode": mapped(lambda lib, x: x, X, randomness="often"),
    "dims of a list": mapped(lambda lib, x, y: x * y, X, X, in_dims=[0, None]),
    "dims of a float": mapped(lambda lib, x, y: x * y, X, X, in_dims=(0, 1.5)),
    "a dim too far": mapped(lambda lib, x: x, X, in_dims=3),
    "no dims": mapped(lambda lib, x: x, X, in_dims=(None,)),
    "sizes that differ": mapped(lambda lib, x, y: x, X, X[1:]),
    "no tensor out": mapped(lambda lib, x: 2.0, X),
    "out_dims": mapped(lambda lib, x: x, X, out_dims=(0, 1)),
    "no out_dim": mapped(lambda lib, x: x, X, out_dims=None),
    "chunks": mapped(lambda lib, x: x, X, chunk_size=0),
}


def as_one(x):
    """What a vjp gives for one primal: PyTorch has it in a tuple."""
    return x[0] if isinstance(x, tuple) else x


def flat(result):
    return [y for x in result for y in flat(x)] if isinstance(result, (tuple, list)) else [
        result.numpy()]


@each("name", CASES)
def test_results(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = flat(CASES[name](LIBRARIES[1]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = flat(CASES[name](LIBRARIES[0]))
    assert len(found) == len(wanted)
    for x, y in zip(found, wanted):
        assert x.shape == y.shape and x.dtype == y.dtype
        assert_close(x, y)


@each("name", ERRORS)
def test_errors(name):
    with pytest.raises(Exception) as wanted:
        ERRORS[name](LIBRARIES[1])
    with pytest.raises(wanted.type) as found:
        ERRORS[name](LIBRARIES[0])
    assert str(found.value)
