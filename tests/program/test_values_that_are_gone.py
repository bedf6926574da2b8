"""Writes after a call of a compiled function, before its gradient: what an eager graph says."""

import functools
import itertools

import pytest
from cases import each

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
@each("name", CASES)
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


def put(x, i):
    y = x * 1
    y[i] = x * 2
    return y


def put_in_a_branch(x, i):
    def taken():
        y = x * 1
        y[i] = 5.0
        return y * x
    return tl.cond(x.sum() > 0, taken, lambda: x * 2)


def written_in_the_call(x, i):
    y = x[i] * x
    i.zero_()
    return y


# What an eager call keeps a copy of: operands that are cast, and positions.
COPIED = {
    "product": lambda x, y: x @ y, "mm": lambda x, y: tl.mm(y, x), "addmm": lambda x, y: tl.addmm(
        y, x, y), "mul": lambda x, y: x * y, "activation": lambda x, y: (x @ y).tanh(),
    "cast": lambda x, y: x.to(tl.float64) @ y.to(tl.float64),
    "half": lambda x, y: x.bfloat16() @ y,
    "index": lambda x, y: x[y.long()[0]], "two": lambda x, y: x[y.long()[0], y.long()[1]],
    "gather": lambda x, y: x.gather(1, y.long()),
}
AT_POSITIONS = {
    "index": lambda x, i: x[i], "pair": lambda x, i: x[i, i.flip(0)], "part": lambda x, i: x[:, i],
    "view": lambda x, i: x[i[:1]], "cast": lambda x, i: x[i.int()], "put": put,
    "branch": lambda x, i: tl.cond(x.sum() > 0, lambda: x[i], lambda: x * 2),
    "put in a branch": put_in_a_branch, "written": written_in_the_call,
    "select": lambda x, i: x.index_select(0, i), "take": lambda x, i: x.take(i),
    "embedding": lambda x, i: F.embedding(i, x), "add": lambda x, i: x.index_add(0, i, x * x),
    "loss": lambda x, i: F.cross_entropy(x, i),
}


def after_an_overwrite(function, other, written, way):
    """The gradients, or that there are none."""
    x = tl.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    given = [x, other()]
    y = function(*given)
    kept = given[written]
    if way == "data":
        kept.data.zero_()
    elif way == "numpy":
        kept.detach().numpy()[...] = 0
    else:
        with tl.no_grad():
            kept.zero_()
    try:
        y.sum().backward()
    except RuntimeError as error:
        assert "has been modified" in str(error)
        return "modified"
    return [None if z.grad is None else z.grad.tolist() for z in given]


OTHERS = {
    **dict.fromkeys(AT_POSITIONS, lambda: tl.tensor([1, 0])),
    "float64": lambda: tl.tensor([[1.0, 0], [1, 1]], dtype=tl.float64, requires_grad=True),
    "int64": lambda: tl.tensor([[1, 0], [1, 1]]), "int32": lambda: tl.tensor(
        [[1, 0], [1, 1]], dtype=tl.int32),
}
KEPT = [(function, OTHERS[dtype]) for dtype in ("float64", "int64", "int32")
        for function in COPIED.values()] + [
    (function, OTHERS[name]) for name, function in AT_POSITIONS.items()]


@pytest.mark.filterwarnings("ignore:compile:RuntimeWarning")
@pytest.mark.parametrize("way", ["data", "numpy", "no_grad"])
@each("function, other", KEPT)
def test_what_an_eager_call_keeps_a_copy_of_is_as_it_was(function, other, way):
    for written in (0, 1):
        wanted = after_an_overwrite(function, other, written, way)
        compiled = tl.compile(function)
        assert [after_an_overwrite(compiled, other, written, way) for _ in range(3)] == [wanted] * 3


# ---- sweeps through a part of a call -------------------------------------------------------------

PARTS = {
    "numbers": lambda x, w: (x * 2, w / 3),
    "one and a number": lambda x, w: (x.sin(), w * 2),
    "two": lambda x, w: (x.sin(), w.cos()),
    "a sum": lambda x, w: (x.sin() + w.cos(),),
    "a product": lambda x, w: (x * w,),
    "one of the other": lambda x, w: (x.exp(), x.exp() * 3 + w),
    "both": lambda x, w: (x * w, x + w),
    "views": lambda x, w: ((x * 2).view(2, 2), w * 3),
}


def in_parts(function, order, changed, retains):
    """What sweeps give that each ask for the gradient of one argument, or the errors."""
    x, w = (tl.tensor([0.5, -1.0, 2.0, 0.25], requires_grad=True) for _ in range(2))
    results, found = function(x, w), []
    with tl.no_grad():
        if changed:
            {"x": x, "w": w}[changed].mul_(2)
    for i, name in enumerate(order):
        y = results[i % len(results)] if len(order) == 2 else sum(y.sum() for y in results)
        try:
            found.append(tl.autograd.grad(y.sum(), {"x": x, "w": w}[name], allow_unused=True,
                                          retain_graph=retains and i == 0)[0])
        except RuntimeError as error:
            found.append(str(error))
            break
    return found


@each("name", PARTS)
def test_each_sweep_needs_and_releases_what_an_eager_one_does(name):
    function = PARTS[name]
    compiled = tl.compile(function)
    for _ in range(2):
        compiled(*(tl.ones(4, requires_grad=True) for _ in range(2)))
    for order, changed, retains in itertools.product(
            ("xw", "wx", "xx", "ww", "xwx", "wxw"), ("", "x", "w"), (False, True)):
        for eager, found in zip(*(in_parts(f, order, changed, retains)
                                  for f in (function, compiled))):
            if isinstance(eager, str):
                assert found.partition(";")[0] == eager.partition(";")[0]
            else:
                assert eager is found or tl.equal(eager, found)


# Of more operations than bits in a number of C's, and of nodes that keep more in forward mode.
LONG = {
    "chain": lambda x: functools.reduce(lambda y, _: y.sin(), range(70), x),
    "hessian": tl.func.hessian(lambda x: (x ** 3).sum()),
    "long hessian": tl.func.hessian(lambda x: (x ** 3).sum() * x.sum()),
}


@pytest.mark.parametrize("name", LONG)
@pytest.mark.parametrize("first", range(2))
def test_a_sweep_of_one_result_leaves_the_graph_of_the_other(name, first):
    def function(x):
        return LONG[name](x), x.exp() * x

    def gradients(f):
        x = tl.tensor([1.0, 2.0, 3.0], requires_grad=True)
        results, found = f(x), []
        for y, with_graph in ((results[first], False), (results[1 - first], True),
                              (results[first], True)):
            try:
                found.append(tl.autograd.grad(y.sum(), x, create_graph=with_graph)[0])
                if with_graph:
                    found += tl.autograd.grad(found[-1].sum(), x)
            except RuntimeError as error:
                found.append(str(error))
        return [g if isinstance(g, str) else g.tolist() for g in found]

    compiled, eager = tl.compile(function), gradients(function)
    assert [type(x) for x in eager] == [list] * 3 + [str]
    assert [gradients(compiled) for _ in range(3)] == [eager] * 3


def classes(x, t):
    return F.cross_entropy(x * x, t)


def places(x, t):
    return (x * x).gather(1, t[:, None])


def own_places(x, t):
    return (x * x)[:, t]


@pytest.mark.parametrize("function", [classes, places, own_places])
def test_classes_written_before_a_sweep_with_a_graph_are_noticed_as_in_an_eager_graph(function):
    def written(f):
        x, t = tl.arange(9.0).reshape(3, 3).requires_grad_(), tl.tensor([0, 1, 1])
        y = f(x, t).sum()
        t.add_(1)
        try:
            return tl.autograd.grad(y, x, create_graph=True)[0].tolist()
        except RuntimeError as error:
            return str(error).partition(", of shape")[0]

    compiled = tl.compile(function, fullgraph=True)
    assert [written(compiled) for _ in range(3)] == [written(function)] * 3
