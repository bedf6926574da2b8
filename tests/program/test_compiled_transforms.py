"""Compiled functions that differentiate or map over batches: each call gives what an eager one
does."""

import warnings

import pytest
from cases import each

import tensorlib as tl
from tensorlib import program

func = tl.func
VALUES = (1.0, 2.0, -3.0)


def agrees(function, *calls, fullgraph=True, traced=True):
    """The reasons for which a function is not replayed, each call of which, compiled and traced,
    gives what an eager one does."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        compiled = tl.compile(function, fullgraph=fullgraph)
        made = [compiled, program.trace(function, *calls[0])] if traced else [compiled]
        for args in calls:
            expected = function(*args)
            for found in (f(*args) for f in made):
                assert tl.equal(found, expected)
    return [str(w.message) for w in caught if str(w.message).startswith("compile: ")]


# ---- gradients for batches -----------------------------------------------------------------------

PRODUCTS = {
    "mm": lambda x, y: x @ y,
    "einsum": lambda x, y: tl.einsum("ij,kj->ik", x, y),
    "tensordot": lambda x, y: tl.tensordot(x, y, 1),
    "addmm": lambda x, y: tl.addmm(y, x, y),
    "baddbmm": lambda x, y: tl.baddbmm(*[z.expand(2, 2, 2) for z in (y, x, y)]),
    "bmm": lambda x, y: tl.bmm(x.expand(2, 2, 2), y.expand(2, 2, 2)),
    "dot": lambda x, y: tl.dot(x.flatten(), y.flatten()),
    "matrix_power": lambda x, y: tl.linalg.matrix_power(x, 3) @ y,
    "of_batches": lambda x, y: x.expand(3, 2, 2) @ y,
}


def pulled_back_for_a_batch(product):
    def function(x, y):
        out, pull = func.vjp(lambda z: product(z, y), x)
        return func.vmap(pull)(tl.stack([out, out * 2]))[0]
    return function


BATCHES = {
    "vmap_of_a_pullback": pulled_back_for_a_batch,
    "jacrev": lambda product: lambda x, y: func.jacrev(lambda z: product(z, y * z))(x),
    "jacobian": lambda product: lambda x, y: tl.autograd.functional.jacobian(
        lambda z: product(z, y * z), x),
}


@each("name", PRODUCTS)
@each("transform", BATCHES)
def test_gradients_of_products_for_a_batch_are_of_the_matrices_of_each_call(transform, name):
    agrees(BATCHES[transform](PRODUCTS[name]),
           *[(tl.eye(2) + value, tl.ones(2, 2) * value) for value in VALUES],
           traced=transform != "jacobian")


# ---- control flow --------------------------------------------------------------------------------

def dual_tangent(function):
    def tangent(x):
        with tl.autograd.forward_ad.dual_level():
            dual = tl.autograd.forward_ad.make_dual(x, tl.ones(2))
            found = tl.autograd.forward_ad.unpack_dual(function(dual)).tangent
            return tl.zeros(2) if found is None else found
    return tangent


def pulled_back_in_rows(function):
    def rows(x):
        out, pull = func.vjp(function, x)
        return func.vmap(pull)(tl.stack([tl.ones(2), out]))[0]
    return rows


FLOWS = {
    "cond": lambda x: tl.cond(x.sum() > 0, lambda: x * 2, lambda: x * 3),
    "constant_in_a_branch": lambda x: tl.cond(x.sum() > 0, lambda: tl.ones(2), lambda: x * 3),
    "while_loop": lambda x: tl.while_loop(
        lambda n, y: n < 5, lambda n, y: (n + 1, y * 2), ((x.sum() > 0).long() * 3, x))[1],
    "switch_case": lambda x: tl.switch_case(
        (x.sum() > 0).long(), [lambda: x * 5, lambda: x * 7]),
}
TANGENTS = {
    "jvp": lambda f: lambda x: func.jvp(f, (x,), (tl.ones(2),))[1],
    "linearize": lambda f: lambda x: func.linearize(f, x)[1](tl.ones(2)),
    "jacfwd": func.jacfwd,
    "jacrev": func.jacrev,
    "functional_jvp": lambda f: lambda x: tl.autograd.functional.jvp(f, x, tl.ones(2))[1],
    "functional_jacobian": lambda f: lambda x: tl.autograd.functional.jacobian(f, x),
    "dual_numbers": dual_tangent,
    "vmap_of_a_pullback": pulled_back_in_rows,
}


@each("name", FLOWS)
@each("transform", TANGENTS)
def test_derivatives_along_control_flow_are_those_of_the_branch_of_each_call(transform, name):
    function = TANGENTS[transform](FLOWS[name])
    for values in ((1.0, -1.0, 2.0), (-1.0, 1.0, -2.0)):
        (why,) = agrees(function, *[(tl.full((2,), value),) for value in values], fullgraph=False,
                        traced=False)
        assert "a derivative of control flow" in why
    with pytest.raises(program.CaptureError, match="a derivative of control flow"):
        program.trace(function, tl.ones(2))


def test_control_flow_beside_a_derivative_is_captured():
    agrees(lambda x: func.jvp(lambda y: y * FLOWS["cond"](x), (x,), (tl.ones(2),))[1],
           *[(tl.full((2,), value),) for value in VALUES])


# ---- examples of a batch -------------------------------------------------------------------------

ROWS = tl.arange(12.0).reshape(4, 3)
F = tl.nn.functional
OF_EXAMPLES = {                       # of a position and three numbers, different for each example
    "getitem": lambda i, x: ROWS[i] + x,
    "getitem_of_a_part": lambda i, x: ROWS[i, 1:].sum() + x,
    "index_select": lambda i, x: ROWS.index_select(0, i[None]) + x,
    "take": lambda i, x: ROWS.take(i) + x,
    "gather": lambda i, x: ROWS.gather(0, i.expand(1, 3)) + x,
    "index_put": lambda i, x: ROWS.index_put((i,), x),
    "embedding": lambda i, x: F.embedding(i, ROWS) + x,
    "embedding_of_rows": lambda i, x: F.embedding(tl.tensor([0, 0]), x[None]),
    "grid_sample": lambda i, x: F.grid_sample(
        ROWS[None, None], x[:2].expand(1, 2, 2, 2) / 4, align_corners=False),
    "cross_entropy": lambda i, x: F.cross_entropy(x, i % 3),
    "nll_loss": lambda i, x: F.nll_loss(ROWS[:1] * x, i[None] % 3),
    "binary_cross_entropy": lambda i, x: F.binary_cross_entropy(x.sigmoid(), tl.ones(3)),
    "log_prob": lambda i, x: tl.distributions.Normal(x, 1.0).log_prob(tl.ones(3)),
    "searchsorted": lambda i, x: tl.searchsorted(ROWS[0], x),
    "bucketize": lambda i, x: tl.bucketize(x, ROWS[0]),
    "cat": lambda i, x: tl.cat([ROWS[0], x]),
    "where": lambda i, x: tl.where(x > 0, ROWS[0], 0.0),
    "gradient": lambda i, x: func.grad(lambda y: (y * ROWS[i]).sin().sum())(x),
    "tangent": lambda i, x: func.jvp(lambda y: y[i % 3] * y, (x,), (x,))[1],
    "jacobian": lambda i, x: func.jacrev(lambda y: y[i % 3] * y)(x),
}


@each("name", OF_EXAMPLES)
def test_operations_on_what_is_shared_by_a_batch_take_examples(name):
    calls = [(tl.tensor(i), tl.tensor([[0.1, 0.5, -0.3], [1.0, -2.0, 0.7]]) * value)
             for i, value in zip(([1, 2], [0, 3], [3, 3]), VALUES)]
    function = func.vmap(OF_EXAMPLES[name])
    agrees(lambda i, x: function(i, x), *calls, fullgraph=False, traced=name != "tangent")


DRAWS = {
    "dropout": lambda x: F.dropout(x, 0.5),
    "dropout_of_what_is_shared": lambda x: x * F.dropout(ROWS[0], 0.5),
    "rand": lambda x: x * tl.rand(3),
    "rand_like": tl.rand_like,
    "randn_like": lambda x: tl.randn_like(x[:, None].expand(3, 2).t()),
    "randint_like": lambda x: tl.randint_like(x, 9),
    "rrelu": lambda x: F.rrelu(x, training=True),
    "gumbel_softmax": F.gumbel_softmax,
    "alpha_dropout": lambda x: F.alpha_dropout(x, 0.5, True),
    "gradient": func.grad(lambda x: F.dropout(x.sin(), 0.5).sum()),
    "bernoulli": lambda x: tl.bernoulli(x.sigmoid()),
    "multinomial": lambda x: tl.multinomial(x.abs(), 2),
    "normal": lambda x: tl.normal(x, 1.0),
    "normal_": lambda x: x.clone().normal_(),
    "rsample": lambda x: tl.distributions.Normal(x, 1.0).rsample(),
}


@pytest.mark.filterwarnings("ignore:compile:RuntimeWarning")
@each("randomness", ["different", "same", "error"])
@each("name", DRAWS)
def test_examples_of_a_batch_draw_as_in_an_eager_call(name, randomness):
    def result(f, x):
        tl.manual_seed(int(x.abs().sum() * 10))          # each call draws other numbers
        try:
            return f(x).tolist()
        except RuntimeError as error:
            return str(error)

    function = func.vmap(DRAWS[name], randomness=randomness)
    compiled = tl.compile(lambda x: function(x))
    for value in VALUES:
        x = tl.tensor([[0.1, 0.5, -0.3], [1.0, -2.0, 0.7]]) * value
        assert result(compiled, x) == result(function, x)


# ---- tangents ------------------------------------------------------------------------------------

MOVED = {                             # functions of a matrix and positions
    "row": lambda x, i: x[0] * 2,
    "slice": lambda x, i: x[1:, ::2],
    "new_dim": lambda x, i: x[:, None],
    "mask": lambda x, i: x[i > 0],
    "positions": lambda x, i: x[i] * x,
    "computed_positions": lambda x, i: x[(i + 1) % 3],
    "number_of_a_tensor": lambda x, i: x[i[0]],
    "positions_twice": lambda x, i: x[i][:, i],
    "unbind": lambda x, i: x.unbind()[1] * x.unbind()[0],
    "split": lambda x, i: x.split(2)[0],
    "iteration": lambda x, i: sum(row * row for row in x),
    "index_add": lambda x, i: x.index_add(0, i, x),
    "index_select": lambda x, i: x.index_select(0, i),
    "put": lambda x, i: x.put(i, x[0]),
    "masked_select": lambda x, i: x.masked_select(i > 0),
    "embedding": lambda x, i: F.embedding(i, x),
    "trapz": lambda x, i: tl.trapz(x),
    "vander": lambda x, i: tl.vander(x[0]),
    "local_response_norm": lambda x, i: F.local_response_norm(x[None], 2),
    "scan": lambda x, i: tl.scan(lambda c, y: (c + y, c * y), x[0], x)[1],
    "number_to_a_power": lambda x, i: 2**x,
    "power": lambda x, i: tl.pow(2.5, x),
}
FORWARD = {
    "jvp": lambda f: lambda x, i: func.jvp(lambda y: f(y, i), (x,), (x * 2,))[1],
    "linearize": lambda f: lambda x, i: func.linearize(lambda y: f(y, i), x)[1](x * 2),
    "jacfwd": lambda f: lambda x, i: func.jacfwd(lambda y: f(y, i))(x),
}


@each("name", MOVED)
@each("transform", FORWARD)
def test_tangents_of_what_is_picked_are_those_of_each_call(transform, name):
    function = FORWARD[transform](MOVED[name])
    x = tl.tensor([[0.1, 0.5, -0.3], [1.0, 2.0, 0.7], [0.3, 0.4, 0.9]])
    calls = [(x * value, tl.tensor(i))
             for i, value in zip(([0, 1, 2], [2, 1, 0], [1, 0, 2]), VALUES)]
    agrees(function, *calls, fullgraph=False, traced=False)
    try:
        traced = program.trace(function, *calls[0])
    except program.CaptureError:
        return
    for args in calls:
        assert tl.equal(traced(*args), function(*args))


# ---- transforms that were made before ------------------------------------------------------------

FACTOR = {"k": 2.0}


def scaled(x):
    return (x.sin() * FACTOR["k"]).sum()


MADE_BEFORE = {
    "vmap of grad": func.vmap(func.grad(scaled)), "vmap of jacrev": func.vmap(func.jacrev(scaled)),
    "vmap of jacfwd": func.vmap(func.jacfwd(scaled)),
    "vmap of vmap": func.vmap(func.vmap(lambda x: x.sin() * FACTOR["k"])),
    "without gradients": tl.no_grad()(func.vmap(func.grad(scaled))),
    "grad of vmap": func.grad(lambda x: func.vmap(scaled)(x).sum()),
}


@pytest.mark.parametrize("name", MADE_BEFORE)
@pytest.mark.parametrize("way", [
    lambda f: lambda x: f(x) * 2, lambda f: lambda x: sum(map(f, [x, x])),
    lambda f: lambda x, g=f: g(x) + x])
def test_what_transforms_of_transforms_read_is_seen(name, way, monkeypatch):
    function, x = way(MADE_BEFORE[name]), tl.arange(6.0).view(2, 3)
    compiled = tl.compile(function, fullgraph=True)
    for k in (2.0, 2.0, 3.0, 3.0):
        monkeypatch.setitem(FACTOR, "k", k)
        assert tl.equal(compiled(x), function(x))


# ---- forward mode that is replayed whole ---------------------------------------------------------

LINEAR = tl.nn.Linear(3, 3)
PUSHED = {
    "power": lambda x: x ** 2, "root": lambda x: x ** 0.5, "own power": lambda x: x ** x,
    "number to a power": lambda x: 2 ** x, "positions": lambda x: x[tl.tensor([2, 0])] ** 3,
    "embedding": lambda x: F.embedding(tl.tensor([0, 2]), x.view(3, 1)),
    "linear": lambda x: LINEAR(x).tanh(), "softmax": lambda x: x.softmax(0),
    "norm": lambda x: x.norm() * x, "std": lambda x: x.std(), "hypot": lambda x: tl.hypot(x, x),
    "layer_norm": lambda x: F.layer_norm(x, (3,)), "scatter": lambda x: x.scatter(
        0, tl.tensor([1]), 2.0), "cross_entropy": lambda x: F.cross_entropy(
        x[None], tl.tensor([1])),
}


@each("name", PUSHED)
@each("requires_grad", [False, True])
def test_tangents_are_replayed(name, requires_grad):
    def function(x):
        return func.jvp(PUSHED[name], (x,), (x.detach().cos(),))[1]

    compiled, found = tl.compile(function, fullgraph=True), []
    for f in (function, compiled):
        for k in range(3):
            x = tl.tensor([0.1, 0.5, 0.25]) + k
            x.requires_grad_(requires_grad)
            y = f(x)
            if y.requires_grad:
                y.sum().backward()
            found.append((y.tolist(), y.requires_grad, x.grad is not None and x.grad.tolist()))
    assert found[:3] == found[3:]
