"""Sums, means, casts, copies, products of vectors are steps of a machine; the bits are eager's."""

import itertools

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib.program.compiled.compiling import Compiled


def tensor(*shape, dtype="float32", seed=0):
    values = np.random.default_rng([seed, *shape]).normal(size=shape) * 4
    return tl.tensor(values).to(getattr(tl, dtype))


def same(f, *inputs):
    """The steps of a replay of `f`, after it was found to give the bits of the eager call."""
    compiled = tl.compile(f, fullgraph=True)
    assert isinstance(compiled, Compiled)
    for _ in range(3):
        wanted, found = f(*inputs), compiled(*inputs)
        assert wanted.dtype is found.dtype and wanted.stride() == found.stride()
        np.testing.assert_array_equal(found.double().numpy(), wanted.double().numpy())
    (way,) = compiled._entries
    return way.replay.machine.describe()


DIMS = None, 0, 1, -1, (0, 1), (0, 2), (1, 2), (0, 1, 2), ()
LAYOUTS = {
    "packed": lambda x: x, "turned": lambda x: x.transpose(0, 2), "middle": lambda x: x.mT,
    "gaps": lambda x: x[:, ::2], "back": lambda x: x.flip(1),
    "broadcast": lambda x: x[:, :1].expand(-1, 4, -1),
}


@each("dtype", ["float32", "float64"])
@each("layout", LAYOUTS)
@each("name", ["sum", "mean"])
def test_sums_and_means(name, layout, dtype):
    x = LAYOUTS[layout](tensor(6, 10, 7, dtype=dtype))
    for dim, keepdim in itertools.product(DIMS, [False, True]):
        steps = same(lambda x: getattr(x, name)(dim, keepdim=keepdim) * 2, x)  # noqa: B023
        if layout == "packed" and dim not in [(0, 2)]:
            assert steps[0] == "sum", (dim, steps)


@pytest.mark.parametrize("name", ["sum", "mean"])
def test_sums_of_other_dtypes_and_of_nothing(name):
    for x in (tensor(3, 0), tensor(0, 3), tensor(1), tensor(), tensor(70, 3000)):
        for dim in (None, 0, -1):
            same(lambda x: getattr(x, name)(dim) * 2, x)  # noqa: B023
    for dtype in ("float16", "bfloat16"):
        same(lambda x: getattr(x, name)(0), tensor(5, 4, dtype=dtype))
        same(lambda x: getattr(x, name)(0, dtype=tl.float64), tensor(5, 4, dtype=dtype))
    same(lambda x: x.float().sum(), tensor(5, 4, dtype="int64"))
    same(lambda x: (x > 0).sum(), tensor(5, 4))
    same(lambda x: x.sum(0, dtype=tl.float64), tensor(5, 4))


def test_casts_and_copies():
    for source, to in itertools.permutations(["float32", "float64", "int64", "bool"], 2):
        x = tensor(4, 6, dtype=source)
        for given in (x, x.t(), x[::2], x[:, :1].expand(4, 6)):
            assert same(lambda x: x.to(getattr(tl, to)), given) == ["copy"]  # noqa: B023
    same(lambda x: x.to(tl.float32) + 1, tensor(4))


def test_what_is_summed_back_to_a_size():
    for shape, size in [((4, 5), (5,)), ((4, 5), (4, 1)), ((2, 4, 5), (4, 1)), ((4, 5), (1, 1)),
                        ((4, 5), ()), ((1, 5), (5,)), ((4, 5), (4, 5))]:
        same(lambda x: x.sum_to_size(size) * 1.5, tensor(*shape))  # noqa: B023


def gradients_of(f):
    """A step that leaves the gradient of its argument."""
    def step(x):
        y = x.detach().requires_grad_()
        return tl.autograd.grad(f(y), y)[0]
    return step


@pytest.mark.parametrize("shape", [(3, 4), (70, 50), (), (0, 3), (1,)])
def test_gradients_of_sums_and_means(shape):
    """Few elements are filled with the gradient of a sum; many look at it."""
    for f in (lambda y: y.sum(), lambda y: y.mean(), lambda y: (y * y).mean(),
              lambda y: y.sum(-1).exp().mean() if y.ndim else y.exp(),
              lambda y: y.mean(0, keepdim=True).exp().sum() if y.ndim else y.exp(),
              lambda y: (y + 1).relu().mean() * 3):
        same(gradients_of(f), tensor(*shape))


@each("layout", ["packed", "turned"])
@each("dtype", ["float32", "bfloat16", "float64"])
def test_gradients_of_products_that_look_at_elements(dtype, layout):
    for zeros in (0, 1, 2):
        x = tensor(3, 4, 5, dtype=dtype)
        x.view(-1)[:zeros] = 0
        w = LAYOUTS[layout](x).detach().requires_grad_()
        for dim in (None, 0, -1):
            def f(y):
                product = (w * y).prod() if dim is None else (w * y).prod(dim)  # noqa: B023
                return tl.autograd.grad(product.sum(), w)[0]  # noqa: B023

            steps = same(f, tl.ones(1, dtype=x.dtype))
            assert dtype == "bfloat16" or sum("packed" in x for x in steps) == 1, (dim, steps)


def test_gradients_that_meet_are_added_by_loops():
    for f in (lambda y: (y.exp() * y.sin() + y).sum(), lambda y: ((y * y) @ y).sum()):
        steps = same(gradients_of(f), tensor(12, 12))
        assert set(steps) <= {"loop", "tiles", "copy", "sum", "product"}, steps


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "float16", "bool"])
def test_products_of_vectors(dtype):
    x, v, w = tensor(20, 9, dtype=dtype), tensor(9, dtype=dtype), tensor(20, dtype=dtype)
    for f, inputs in [(lambda x, v: x @ v, (x, v)), (lambda x, v: x.t() @ v, (x, w)),
                      (lambda v, x: v @ x, (w, x)), (lambda v, x: v @ x.t(), (v, x)),
                      (lambda v, w: v @ w, (v, v)), (lambda x, v: x @ v[::1], (x, v)),
                      (lambda x, v: x @ v.flip(0), (x, v)),
                      (lambda x, v: x[:, ::2] @ v[::2], (x, v)),
                      (lambda x, v: x[:0] @ v, (x, v)), (lambda x, v: x[:, :0] @ v[:0], (x, v))]:
        if dtype == "bool":
            with pytest.raises(RuntimeError, match="not implemented"):
                f(*inputs)
        else:
            same(f, *inputs)
    if dtype in ("float32", "float64"):
        assert same(lambda x, v: x @ v, x, v) == ["product"]


def test_a_regression_takes_these_steps():
    w, b = tensor(20).requires_grad_(), tensor().requires_grad_()
    updates = tl.optim.SGD([w, b], lr=1e-3)

    def step(x, y):
        updates.zero_grad()
        loss = ((x @ w + b - y) ** 2).mean()
        loss.backward()
        updates.step()
        return loss.detach()

    compiled = tl.compile(step, fullgraph=True)
    x, y = tensor(50, 20), tensor(50)
    losses = [compiled(x, y).item() for _ in range(5)]
    assert losses == sorted(losses, reverse=True)
    steps = compiled._entries[0].replay.machine.describe()
    assert {"product", "sum", "copy"} <= set(steps)
    assert all(name in ("product", "sum", "copy", "loop", "tiles", "put_grad")
               for name in steps[:-1]), steps


def test_composed_operations_are_replayed_as_their_parts():
    """So that each part can have a step, and share memory with others; what draws stays whole."""
    edges, classes = tl.arange(3), tl.arange(5)
    composed = {
        "smooth_l1_loss": lambda x: tl.nn.functional.smooth_l1_loss(x, x * 2),
        "addmm": lambda x: tl.addmm(x, x, x), "isclose": lambda x: tl.isclose(x, x + 1),
        "isin": lambda x: tl.isin(x, x[0]), "bucketize": lambda x: tl.bucketize(x, edges),
        "nextafter": lambda x: tl.nextafter(x, x + 1),
        "cross_entropy": lambda x: tl.nn.functional.cross_entropy(x, classes),
    }
    for name, f in composed.items():
        compiled = tl.compile(f, fullgraph=True)
        assert tl.equal(compiled(tensor(5, 5)), f(tensor(5, 5)))
        kinds = [call.type for call in compiled._entries[0].replay.calls]
        assert kinds and name not in kinds
    for f in (lambda x: tl.bernoulli(x), lambda x: tl.nn.functional.dropout(x, 0.5)):
        compiled = tl.compile(f, fullgraph=True)
        for _ in range(3):
            tl.manual_seed(3)
            wanted = f(tl.full((50,), 0.5))
            tl.manual_seed(3)
            assert tl.equal(compiled(tl.full((50,), 0.5)), wanted)
