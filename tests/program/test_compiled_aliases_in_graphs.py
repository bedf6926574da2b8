"""Tensors over one memory, in graphs: what is written, cut off, or kept by one of them."""

import pytest
from cases import each

import tensorlib as tl

pytestmark = pytest.mark.filterwarnings("ignore:compile")


class Around:
    """What functions find around them: a leaf, and what requires no gradient."""

    def __init__(self):
        self.w = tl.tensor([0.5, -1.0, 2.0], requires_grad=True)
        self.b = tl.tensor([1.0, 2.0, -0.5])


def leaf_that_is_returned(o, x):
    y = o.w * x
    with tl.no_grad():
        o.w.mul_(0.5)
    return y, o.w


def leaf_that_is_written_by_what_depends_on_it(o, x):
    y = o.w * x
    with tl.no_grad():
        o.w.add_(y)
    return o.w, y


def saved_value_that_data_writes(o, x):
    v = o.b + o.b
    y = o.w * v
    v.data[0] = 3.0
    return y,


def part_of_a_value_that_is_written_without_a_graph(o, x):
    u, v = o.w.neg(), o.w - o.b
    with tl.no_grad():
        v[1:].mul_(2)
    total = u + v
    tl.autograd.grad((u * u).sum(), u, retain_graph=True)
    return total, u


def view_of_what_has_a_graph_that_is_written(o, x):
    v = o.b.reshape(-1)
    v.copy_(o.w)
    return v, o.b


FUNCTIONS = {f.__name__: f for f in (
    leaf_that_is_returned, leaf_that_is_written_by_what_depends_on_it,
    saved_value_that_data_writes, part_of_a_value_that_is_written_without_a_graph,
    view_of_what_has_a_graph_that_is_written)}


def seen(f, o):
    """What calls of a function give, and their gradients."""
    found = []
    for k in range(3):
        outs = f(o, tl.arange(3.0) + k)
        found += [out.detach().tolist() for out in outs]
        (grad,) = tl.autograd.grad(sum((out * out).sum() for out in outs), o.w)
        found += [grad.tolist(), o.w.tolist()]
    return found


@each("name", FUNCTIONS)
def test_gradients_are_those_of_the_eager_calls(name):
    f = FUNCTIONS[name]
    assert seen(tl.compile(f), Around()) == seen(f, Around())


def test_only_what_an_arriving_gradient_needs_has_to_be_as_it_was():
    o = Around()
    for f in (tl.compile(lambda x: (o.w + x, o.w * x)), lambda x: (o.w + x, o.w * x)):
        for _ in range(3):
            x = tl.ones(3)
            total, product = f(x)
            x.add_(1)
            (grad,) = tl.autograd.grad(total.sum(), o.w, retain_graph=True)
            assert grad.tolist() == [1.0, 1.0, 1.0]
            with pytest.raises(RuntimeError, match="modified by an inplace operation: .* of mul"):
                product.sum().backward()


def test_a_leaf_over_the_memory_of_what_is_written_is_given_its_gradient():
    def step(o):
        v = o.w.data
        v.fill_(0.3)
        o.w.grad = None
        (v * o.w).sum().backward(retain_graph=True)
        return v

    found = []
    for f in (step, tl.compile(step)):
        o = Around()
        found.append([(f(o).tolist(), o.w.grad.tolist()) for _ in range(4)])
    assert found[0] == found[1]


def test_a_view_of_another_result_is_not_written_behind_its_back():
    o = Around()
    compiled = tl.compile(lambda x: (o.w * x, (o.w - x).view(3)), fullgraph=True)
    meeting = tl.compile(lambda x: (lambda y: (y[:2], y[1:]))(o.w * x), fullgraph=True)
    apart = tl.compile(lambda x: (lambda y: (y[:1], y[1:]))(o.w * x), fullgraph=True)
    for _ in range(3):
        for f in (compiled, apart):
            first, second = f(tl.ones(3))
            second.mul_(2)
            (grad,) = tl.autograd.grad(first.sum(), o.w)
            assert grad.tolist() == [1.0] + [float(f is compiled)] * 2
    for _ in range(2):
        first, second = meeting(tl.ones(3))
    with pytest.raises(RuntimeError, match="a view is being modified inplace"):
        second.mul_(2)


VIEWS = {
    "view": lambda y: (y.view(3, 1),),
    "part": lambda y: (y[1:], y[::2]),
    "view of a view": lambda y: (y.view(3, 1), y.view(3, 1).squeeze()),
    "view of a result": lambda y: (lambda z: (z, z.view(3, 1)))(y * 2),
    "expanded": lambda y: (y.sum(), y.unsqueeze(0).expand(2, 3)[:, :1]),
    "unbound": lambda y: y.unbind(),
    "itself": lambda y: (y, y.detach()),
}


def written_after(f, what):
    """Values, gradients and errors where a result, or the argument, is written after a call."""
    o, found = Around(), []
    for k in range(3):
        y = o.w * (k + 1)
        outs = f(y)
        try:
            (y if what == "argument" else outs[what]).mul_(3)
        except RuntimeError as error:
            found.append(str(error))
        loss = sum((out * out).sum() for out in (*outs, y) if out.requires_grad)
        found += [loss.item(), tl.autograd.grad(loss, o.w)[0].tolist(),
                  [out._base is y for out in outs]]
    return found


@each("name", VIEWS)
@pytest.mark.parametrize("what", [0, -1, "argument"])
def test_views_are_written_as_those_of_the_eager_call(name, what):
    f = VIEWS[name]
    assert written_after(tl.compile(f, fullgraph=True), what) == written_after(f, what)


def test_gradients_go_through_the_graphs_of_arguments():
    o = Around()
    functions = {
        "argument": lambda y: tl.autograd.grad((y * o.w).sum(), o.w, retain_graph=True)[0],
        "itself": lambda y: tl.autograd.grad((y * o.w).sum(), y, retain_graph=True)[0],
    }
    for f in functions.values():
        compiled = tl.compile(f)
        for _ in range(3):
            assert compiled(o.w * 2).tolist() == f(o.w * 2).tolist()


# ---- several places in the graph -----------------------------------------------------------------

OVER_ONE_MEMORY = {
    "another parameter": lambda p: tl.nn.Parameter(p.data),
    "a view from before the call": lambda p: p.view(3),
}


def twice(p, q, x):
    return (p * x).sum() + (q * x * 2).sum()


def the_other_first(p, q, x):
    return (q * x).sum() * (p.detach() * x).sum() + p.sum()


def asked_of_the_other(p, q, x):
    return tl.autograd.grad((p * x + q * x * 2).sum(), q)[0]


def swept_within(p, q, x):
    p.grad = None
    (q * x).sum().backward()
    return x + 1


def grads_over_one_memory(around, function, wrap):
    p = tl.nn.Parameter(tl.tensor([0.5, -1.0, 2.0]))
    q = OVER_ONE_MEMORY[around](p)
    f, found = wrap(lambda x: function(p, q, x)), []
    for k in range(3):
        p.grad = q.grad = None
        q.requires_grad and not q.is_leaf and q.retain_grad()
        y = f(tl.tensor([1.0, 2.0, -0.5]) * k)
        if y.requires_grad:
            y.backward(retain_graph=True)
        found += [y.detach(), p.grad, q.grad]
    return found


@each("around", OVER_ONE_MEMORY)
@each("function", [twice, the_other_first, asked_of_the_other, swept_within])
def test_tensors_over_one_memory_have_gradients_of_their_own(around, function):
    for eager, found in zip(grads_over_one_memory(around, function, lambda f: f),
                            grads_over_one_memory(around, function, tl.compile)):
        assert eager is found or tl.equal(eager, found)
