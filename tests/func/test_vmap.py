"""vmap against a loop over the batch: every operation of the registry, nesting, gradients."""

import copy
import functools
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib import func, ops
from tensorlib._core.graph.op import registry
from tensorlib.autograd.batch import Batched, has_rule
from tensorlib.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap
from tensorlib.testing import assert_close
from tests.ops.catalogue import for_each

LIBRARY = tuple(registry)          # without what tests declare
# What has a result of no fixed shape, or takes how often from its tensors.
NO_FIXED_SHAPE = {"argwhere", "nonzero", "masked_select", "repeat_interleave", "unique",
                  "unique_consecutive", "bincount", "histogram"}
TESTED = sorted(name for name, op in registry.items()
                if op.testing.get("samples") and op.arguments and not op.random
                and op.returns is tl.Tensor and name not in NO_FIXED_SHAPE)


@functools.cache
def from_outside():
    """An operation that a user declared, made when the first test needs it."""
    @ops.primitive
    def vmap_reversed(x):
        return tl.tensor(x.numpy()[::-1].copy())
    ops.defvjp(vmap_reversed, lambda g, ans, x: vmap_reversed(g))
    ops.defjvp(vmap_reversed, lambda g, ans, x: vmap_reversed(g))
    return vmap_reversed


def random(*shape, seed=0):
    return tl.tensor(np.random.default_rng(seed).normal(size=shape))


def outputs(result):
    return list(result) if isinstance(result, tuple) else [result]


def looped(f, *args, in_dims=None):
    """What vmap must give: the function example by example."""
    dims = in_dims or (0,) * len(args)
    size = next(x.shape[d] for x, d in zip(args, dims) if d is not None)
    rows = [outputs(f(*[x if d is None else x.movedim(d, 0)[i] for x, d in zip(args, dims)]))
            for i in range(size)]
    return [tl.stack(column) for column in zip(*rows)]


def assert_equals_loop(f, *args, in_dims=0):
    """`vmap` of a function gives what a loop over the examples gives, without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = outputs(vmap(f, in_dims)(*args))
    dims = in_dims if isinstance(in_dims, tuple) else (in_dims,) * len(args)
    wanted = looped(f, *args, in_dims=dims)
    assert len(found) == len(wanted)
    for x, y in zip(found, wanted):
        assert type(x) is tl.Tensor and x.shape == y.shape and x.dtype == y.dtype
        assert_close(x, y, equal_nan=True)


def batched_samples(op):
    """Samples of three examples each; all are distinct for floating arrays."""
    for args, kwargs in op.testing["samples"](np.random.default_rng(3)):
        at = op.places[0]                                   # of a sequence, where it takes one
        count = len(args[at]) if isinstance(args[at], tuple) else None
        flat = [*args[:at], *args[at], *args[at + 1:]] if count is not None else list(args)
        arrays = [i for i, x in enumerate(flat) if isinstance(x, (np.ndarray, np.generic))]
        places = [i for i in arrays if (at <= i < at + count if count else i in op.places)]
        flat = [tl.tensor(np.asarray(x)) if i in arrays else x for i, x in enumerate(flat)]
        if "prepare" in op.testing:                     # what a parsed key was parsed for
            flat = list(op.testing["prepare"](*flat))
        batches = []
        for i in places:
            x = flat[i].numpy()
            copies = np.stack([x, np.flip(x), x])
            if x.dtype.kind in "fc":
                copies[2] = copies[2] * 0.5
            batches.append(tl.tensor(copies))

        def call(*xs, flat=flat, places=places, kwargs=kwargs, count=count, at=at):
            given = list(flat)
            for i, x in zip(places, xs):
                given[i] = x
            if count is not None:
                given[at:at + count] = [tuple(given[at:at + count])]
            return op.function(*given, **kwargs)
        yield call, batches


@for_each(TESTED)
def test_every_operation_equals_a_loop(name):
    for call, batches in batched_samples(registry[name]):
        assert_equals_loop(call, *batches)
        for shared in range(len(batches)):              # each argument in turn one for all
            if len(batches) > 1:
                dims = tuple(None if i == shared else 0 for i in range(len(batches)))
                given = [x[0] if i == shared else x for i, x in enumerate(batches)]
                assert_equals_loop(call, *given, in_dims=dims)


@each("name", ["mul", "sum", "matmul", "softmax", "cat", "reshape", "max"])
def test_nested_twice(name):
    for call, batches in batched_samples(registry[name]):
        twice = [tl.stack([x, x * 2]) for x in batches]
        assert_equals_loop(lambda *xs, call=call: vmap(call)(*xs), *twice)


KEYS = [0, -1, slice(1, None), None, ..., (..., 0), (0, ..., None), [1, 0], ([0, 1], [1, 2]),
        (slice(None), [2, 0]), ([0, 1], slice(None), [1, 0]), (slice(None), [0, 1], [1, 1]),
        (0, slice(None), [1, 1])]


@each("key", KEYS, ids=repr)
def test_indexing(key):
    assert_equals_loop(lambda x: x[key], random(4, 2, 3, 2))


@each("key", [
    lambda i: i, lambda i: (slice(None), i), lambda i: (i, i), lambda i: (..., i),
    lambda i: (i, slice(None), i), lambda i: (0, i), lambda i: (None, i), lambda i: (i, [1, 0])],
    ids=range(8))
@each("dims", [(0, 0), (None, 0), (0, None)])
@each("shape", [(2,), (1, 2)])
def test_positions_that_differ_between_examples(key, dims, shape):
    x = random(*(() if dims[0] is None else (4,)), 2, 2, 2)
    sizes = shape if dims[1] is None else (4, *shape)
    i = tl.tensor(np.random.default_rng(1).integers(0, 2, sizes))
    assert_equals_loop(lambda x, i: x[key(i)], x, i, in_dims=dims)


def test_gather_and_its_kin():
    x, i = random(4, 3, 2), tl.tensor(np.random.default_rng(1).integers(0, 2, (4, 3, 2)))
    assert_equals_loop(lambda x, i: x.gather(1, i), x, i)
    assert_equals_loop(lambda x, i: x.index_select(0, i[:, 0]), x, i)
    assert_equals_loop(lambda x, i: tl.masked_fill(x, i > 0, 7.0), x, i)


@pytest.mark.parametrize("x, places", [(2.0, 0), (2.0, [0, -1]), ([1.0, 2.0, 3.0], -1),
                                       ([1.0, 2.0, 3.0], [2, -1, 2, 0])])
def test_gradients_of_gather_with_a_tensor_or_an_index_without_dims(x, places):
    def slope(g, i):
        return vjp(lambda x: x.gather(0, i), x)[1](g)[0]
    x, i = tl.tensor(x), tl.tensor(places)
    assert_equals_loop(slope, random(4, *i.shape).float(), i, in_dims=(0, None))
    assert_equals_loop(slope, random(4, *i.shape).float(), tl.stack([i] * 4))


@each("f", [
    lambda x: x + tl.zeros_like(x), lambda x: 2 - x / 3, lambda x: x.T @ x, lambda x: -x.mT,
    lambda x: abs(x) ** 2, lambda x: x.float(), lambda x: tl.var_mean(x, 0),
    lambda x: x.unbind(1), lambda x: x.flatten(), lambda x: [y for y in x][1],
    lambda x: x[None].flatten(1), lambda x: x[None].movedim((0, 1), (2, 0)),
    lambda x: tl.stack([x[0], x[1]]), lambda x: x.chunk(2, -1), lambda x: tl.outer(x[0], x[1]),
    lambda x: tl.addmm(x[0, :2], x[:, :2], x[:2, :2]) if x.shape[0] == 2 else x,
    lambda x: x.movedim(0, 1).sum(0, keepdim=True), lambda x: x.norm(), lambda x: x.max(0),
    lambda x: random(2, 3) * x, lambda x: random(3) - x, lambda x: 3 > x, lambda x: x.size(0) * x,
], ids=range(23))
def test_operators_methods_and_composites(f):
    assert_equals_loop(lambda x: tuple(r) if isinstance(r := f(x), tuple) else r, random(4, 2, 3))


@each("f", [
    lambda w, x: w.matmul(x), lambda w, x: w.add(x, alpha=2), lambda w, x: w.where(x > 0, 0),
    lambda w, x: tl.where(w > 0, x, 0.0), lambda w, x: w[0].expand_as(x), lambda w, x: w.max(x),
    lambda w, x: w.gather(0, (x > 0).long()), lambda w, x: w.masked_fill(x > 0, 0.0),
    lambda w, x: tl.div(w, x, rounding_mode="floor"), lambda w, x: w.clamp(min=x),
    lambda w, x: x.clamp(0, 1), lambda w, x: tl.rsub(x, 1), lambda w, x: x + np.ones(3),
    lambda w, x: w[(x > 0).long()], lambda w, x: tl.cat([w, x]), lambda w, x: tl.stack([w, x], 1),
    lambda w, x: x[w > 0], lambda w, x: x @ w[0], lambda w, x: x[0] @ w,
    lambda w, x: x[0].dot(w[0]),
    lambda w, x: x.sum() + np.ones(2),
    lambda w, x: np.float32(2) * x[0, 0].float() + np.arange(3.0),
    lambda w, x: np.tanh(x) + np.where(x > 0, w, np.ones((2, 3, 3))), lambda w, x: np.dot(w, x),
    lambda w, x: np.add.reduce(x) * np.linalg.norm(x), lambda w, x: np.concatenate([x, w.numpy()]),
    lambda w, x: w > x, lambda w, x: w % x, lambda w, x: tl.full_like(x, 2.0) + w,
    lambda w, x: x.clone().add_(w), lambda w, x: tl.inner(w, x), lambda w, x: x.std(),
], ids=range(32))
def test_shared_tensors_beside_examples(f):
    assert_equals_loop(f, random(3, 3), random(4, 3, 3, seed=1), in_dims=(None, 0))


def test_dtypes_promote_as_they_do_for_one_example():
    assert_equals_loop(lambda a, b: a + b, tl.ones(4, 3), tl.ones(4, dtype=tl.float64))
    assert_equals_loop(lambda a, b: a + b, tl.ones(4), tl.ones(4, dtype=tl.float64))
    assert_equals_loop(lambda a, b: a * b, tl.ones(4), tl.tensor(2.0, dtype=tl.float64),
                       in_dims=(0, None))
    assert_equals_loop(lambda a: a * 2.5, tl.ones(4, dtype=tl.int32))


# ---- dims and containers -------------------------------------------------------------------------

def test_asarray_of_an_example_takes_a_dtype_and_copies():
    x = tl.arange(3.0)
    out = func.vmap(lambda e: tl.asarray(e, dtype=tl.float64, copy=True).add_(1))(x)
    assert out.dtype is tl.float64 and out.tolist() == [1, 2, 3] and x.tolist() == [0, 1, 2]
    shared = func.vmap(lambda e: tl.asarray(e))(x)
    assert shared.tolist() == [0, 1, 2]


def test_in_dims_and_out_dims():
    x, y = random(3, 4), random(5, 3)
    assert_equals_loop(lambda a, b: a * b.sum(), x, y, in_dims=(1, None))
    out = vmap(tl.mul, (0, None), 1)(x, random(4))
    assert out.shape == (4, 3)
    a, b = vmap(lambda x: (x, x.sum()), out_dims=(1, 0))(x)
    assert a.shape == (4, 3) and b.shape == (3,)
    assert vmap(lambda x: x, -1, -1)(x).shape == (3, 4)


def test_containers():
    x = random(3, 4)
    found = vmap(lambda d, n: {"out": d["a"] * n[0] + d["b"]}, ({"a": 0, "b": None}, 0))(
        {"a": x, "b": x[0]}, [x])
    assert_close(found["out"], x * x + x[0])
    assert_close(vmap(lambda x, scale: x * scale)(x, scale=x[0]), x * x[0])


def test_results_that_are_the_same_for_all():
    shared = random(2)
    assert_close(vmap(lambda x: shared)(random(3)), tl.stack([shared] * 3))
    assert vmap(lambda x: shared, out_dims=None)(random(3)) is shared


@pytest.mark.parametrize("chunk", [1, 2, 3, 5, 9])
def test_chunks_change_nothing(chunk):
    x = random(2, 5)
    f = lambda x: (x.sum(), x * 2)                                       # noqa: E731
    for a, b in zip(vmap(f, 1, (0, 1), chunk_size=chunk)(x), vmap(f, 1, (0, 1))(x)):
        assert_close(a, b)


def test_no_examples():
    assert vmap(lambda x: x.reshape(-1).sum())(tl.zeros(0, 3, 2)).shape == (0,)


# ---- derivatives ---------------------------------------------------------------------------------

def loss(w, x):
    return ((w @ x).tanh() * x.sum()).sum()


def test_gradients_of_each_example():
    w, xs = random(2, 3), random(5, 3, seed=1)
    found = vmap(grad(loss), (None, 0))(w, xs)
    assert_close(found, tl.stack([grad(loss)(w, x) for x in xs]))
    assert not found.requires_grad


def test_gradients_of_each_example_in_containers():
    params = {"w": random(2, 3), "b": random(2)}
    xs = random(4, 3, seed=1)
    f = lambda p, x: tl.softmax(p["w"] @ x + p["b"], 0)[0].log()         # noqa: E731
    found = vmap(grad(f), (None, 0))(params, xs)
    for name in params:
        assert_close(found[name], tl.stack([grad(f)(params, x)[name] for x in xs]))


@each("transform", [
    jacrev, jacfwd, hessian, lambda f: grad(lambda x: f(x).sum()),
    lambda f: lambda x: jvp(f, (x,), (x * 2,))[1], lambda f: lambda x: vjp(f, x)[1](f(x))[0],
    lambda f: grad(lambda x: grad(lambda y: f(y).sum())(x).prod()),
    lambda f: func.elementwise_grad(f)])
def test_derivatives_inside(transform):
    assert_equals_loop(transform(lambda x: (x * x.sum()).sin()), random(4, 3))


def test_derivatives_inside_of_two():
    f = grad(lambda x, y: (x * y).sin().sum())
    found = vmap(vmap(f, (None, 0)), (0, None))(random(3, 2), random(4, 2))
    assert_close(found, tl.stack([tl.stack([f(x, y) for y in random(4, 2)])
                                  for x in random(3, 2)]))


def test_derivatives_outside():
    xs = random(4, 3)
    f = lambda x: (x.exp() * x.sum()).sum()                              # noqa: E731
    assert_close(grad(lambda xs: vmap(f)(xs).sum())(xs), vmap(grad(f))(xs))
    assert_close(jvp(vmap(f), (xs,), (xs,))[1], vmap(lambda x: jvp(f, (x,), (x,))[1])(xs))
    w = random(3).requires_grad_()
    vmap(lambda x: (w * x).sum())(xs).sum().backward()
    assert_close(w.grad, xs.sum(0))


def test_gradient_of_what_gradients_of_each_example_give():
    w, xs = random(2, 3), random(5, 3, seed=1)
    norm = lambda w: (vmap(grad(loss), (None, 0))(w, xs) ** 2).sum()     # noqa: E731
    slow = lambda w: tl.stack([(grad(loss)(w, x) ** 2).sum() for x in xs]).sum()  # noqa: E731
    assert_close(grad(norm)(w), grad(slow)(w))


# ---- in place ------------------------------------------------------------------------------------

def test_in_place_on_an_example():
    def f(x):
        y = x * 1
        y += x
        y.mul_(x.sum())
        y[0] = x[1]
        y[1:].zero_()
        return y
    xs = random(4, 3)
    kept = xs.clone()
    assert_equals_loop(f, xs)
    assert_close(xs, kept)


def test_a_shared_tensor_is_not_written_with_what_differs():
    shared = tl.zeros(3, dtype=tl.float64)
    for write in (shared.add_, shared.__iadd__, lambda x: shared.__setitem__(0, x[0]),
                  shared.copy_,
                  lambda x: tl.mul(shared, x, out=shared)):
        with pytest.raises(RuntimeError, match="that all examples of a batch share"):
            vmap(lambda x, write=write: write(x))(random(2, 3))
    assert_close(shared, tl.zeros(3, dtype=tl.float64))


# ---- what has no rule ----------------------------------------------------------------------------

def test_an_operation_without_a_rule_runs_in_a_loop_and_warns_once(monkeypatch):
    monkeypatch.setattr("tensorlib.autograd.batch.rules._warned", set())
    xs, backwards = random(3, 4), from_outside()
    with pytest.warns(UserWarning, match="vmap_reversed has no batching rule") as caught:
        found = vmap(lambda x: backwards(x) + backwards(x))(xs)
    assert len(caught) == 1
    assert_close(found, xs.numpy()[:, ::-1] * 2)


def test_every_operation_of_the_library_has_a_rule():
    assert not [name for name in LIBRARY
                if registry[name].linearity != "composite" and not has_rule(registry[name])]


# ---- errors --------------------------------------------------------------------------------------

@each("call, error, message", [
    (lambda x: vmap(lambda x: x, 2)(x), ValueError, "in_dim=2"),
    (lambda x: vmap(lambda x: x, "0")(x), ValueError, "in_dims"),
    (lambda x: vmap(lambda x: x, (0, 0))(x), ValueError, "in_dims is not compatible"),
    (lambda x: vmap(lambda x: x, (None,))(x), ValueError, "at least one input"),
    (lambda x: vmap(lambda: x)(), ValueError, "no inputs"),
    (lambda x: vmap(lambda x, y: x)(x, 2.0), ValueError, "float"),
    (lambda x: vmap(lambda x, y: x)(x, x[1:]), ValueError, "same size"),
    (lambda x: vmap(lambda x: 2.0)(x), ValueError, "only return Tensors"),
    (lambda x: vmap(lambda x: x, 0, (0, 0))(x), ValueError, "out_dims"),
    (lambda x: vmap(lambda x: x, 0, None)(x), ValueError, "out_dim is None"),
    (lambda x: vmap(lambda x: x, 0, 3)(x), IndexError, "vmap"),
    (lambda x: vmap(lambda x: x, chunk_size=0)(x), ValueError, "chunk_size"),
    (lambda x: vmap(lambda x: x, randomness="some")(x), RuntimeError, "randomness"),
    (lambda x: vmap(lambda x: x if x.sum() > 0 else -x)(x), RuntimeError, "control flow"),
    (lambda x: vmap(lambda x: x.sum().item())(x), RuntimeError, "item"),
    (lambda x: vmap(lambda x: x * float(x.sum()))(x), RuntimeError, "item"),
    (lambda x: vmap(lambda x: x[x > 0])(x), RuntimeError, "no fixed shape"),
    (lambda x: vmap(lambda x: x + tl.rand(3))(x), RuntimeError, "random operation"),
    (lambda x: vmap(lambda x: tl.mm(x, x))(x), RuntimeError, "mm"),
    (lambda x: vmap(lambda x: x @ x[1:])(x), RuntimeError, "matmul"),
    (lambda x: vmap(lambda i: x.sum(i))(tl.tensor([0, 1])), RuntimeError, "item"),
    (lambda x: vmap(lambda i: x.transpose(i, 0))(tl.tensor([0, 1])), RuntimeError, "item"),
    (lambda x: vmap(lambda x: tl.clone((x, x)))(x), TypeError, "clone: input must be a Tensor"),
    (lambda x: vmap(lambda x: tl.mul(x, (x,)))(x), TypeError, "mul: other must be a Tensor"),
    (lambda x: vmap(lambda x: tl.exp([x]))(x), TypeError, "exp: input must be a Tensor"),
    (lambda x: vmap(lambda x: copy.deepcopy(x))(x), RuntimeError, "deepcopy"),
    (lambda x: vmap(lambda x: pickle.dumps(x))(x), RuntimeError, "pickled"),
    (lambda x: vmap(lambda x: x.sum(1))(x), IndexError, "sum"),
    (lambda x: vmap(lambda x: x.retain_grad())(x), RuntimeError, "retain_grad"),
    (lambda x: vmap(lambda y: y.clone().copy_(x))(x), RuntimeError, "does not expand"),
], ids=range(30))
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call(random(2, 3))
    assert tl.rand(1).shape == (1,)                 # drawing is allowed again
    assert_close(vmap(tl.sin)(random(2)), random(2).sin())


def test_the_same_random_numbers_for_all_examples():
    out = vmap(lambda x: x * 0 + tl.rand(3), randomness="same")(tl.zeros(2, 3))
    assert_close(out[0], out[1])


def test_threads_map_apart():
    xs = random(3, 2)
    wanted = vmap(grad(lambda x: x.sin().sum()))(xs)

    def f(x):
        with ThreadPoolExecutor(1) as pool:
            elsewhere = pool.submit(vmap(grad(lambda x: x.sin().sum())), xs).result()
            assert pool.submit(tl.rand, 2).result().shape == (2,)
        return x.sum() + elsewhere.sum()
    assert_close(vmap(f)(xs), xs.sum(1) + wanted.sum())


def test_an_example_does_not_outlive_its_vmap():
    kept = []
    vmap(lambda x: kept.append(x) or x)(random(2))
    assert type(kept[0]) is Batched
    with pytest.raises(RuntimeError, match="has ended"):
        kept[0] + 1


# ---- examples without dims, and results of one shape that need not be ----------------------------

@each("name", ["max", "min", "median", "nanmedian", "mode"])
@pytest.mark.parametrize("keepdim", [False, True])
def test_extremes_of_examples_without_dims(name, keepdim):
    found = vmap(lambda x: getattr(x, name)(0, keepdim=keepdim))(tl.tensor([1.0, 2.0]))
    assert found.values.tolist() == [1.0, 2.0] and found.indices.tolist() == [0, 0]


@each("dim", [0, -1, (0,), None])
def test_nothing_is_squeezed_out_of_examples_without_dims(dim):
    def squeezed(x):
        return x.squeeze() if dim is None else x.squeeze(dim)
    assert vmap(squeezed)(tl.tensor([1.0, 2.0])).tolist() == [1.0, 2.0]


def test_counts_of_each_example_where_they_are_as_many():
    x = tl.tensor([[1.0, 2.0], [3.0, 3.0]])
    assert vmap(lambda row: row.histc(3, 0, 4))(x).tolist() == [[1.0, 1.0, 0.0], [0.0, 0.0, 2.0]]
    found = vmap(lambda row: tl.histogram(row, 2, range=(0.0, 4.0)))(x)
    assert found.hist.tolist() == [[1.0, 1.0], [0.0, 2.0]]
    assert found.bin_edges.tolist() == [[0.0, 2.0, 4.0]] * 2
    counts = vmap(lambda row: tl.bincount(row, minlength=5))
    assert counts(x.long()).tolist() == [[0, 1, 1, 0, 0], [0, 0, 0, 2, 0]]
    nested = vmap(vmap(lambda row: row.histc(2, 0, 4)))(x[None])
    assert nested.tolist() == [[[1.0, 1.0], [0.0, 2.0]]]
    with pytest.raises(RuntimeError, match="bincount: vmap: the shape .* would differ"):
        vmap(tl.bincount)(x.long())


X, Y = tl.arange(6.0).reshape(2, 3), tl.ones(2, 3) * 2


@each("name", """__add__ __radd__ __sub__ __rsub__ __mul__ __truediv__ __matmul__
    __pow__ __mod__ __eq__ __lt__ add matmul maximum""".split())
def test_methods_of_the_class_are_functions_of_two_examples(name):
    wanted = tl.stack([getattr(x, name)(y) for x, y in zip(X, Y)])
    assert vmap(getattr(tl.Tensor, name))(X, Y).tolist() == wanted.tolist()


@each("name", "__neg__ __abs__ neg sum exp clone detach t".split())
def test_methods_of_the_class_are_functions_of_an_example(name):
    wanted = tl.stack([getattr(x, name)() for x in X])
    assert vmap(getattr(tl.Tensor, name))(X).tolist() == wanted.tolist()


def test_an_item_is_taken_of_each_example_by_the_method_of_the_class():
    assert vmap(tl.Tensor.__getitem__, (0, None))(X, 1).tolist() == [1, 4]
