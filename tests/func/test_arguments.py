"""Arguments of transforms: numbers, containers, `has_aux`; and what is refused, by its message."""

from collections import OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass

import pytest
from cases import each
from process import run_forked

import tensorlib as tl
from tensorlib import func
from tensorlib.autograd import tree
from tensorlib.func import grad, vjp, vmap
from tensorlib.testing import assert_close
from tensorlib.utils._pytree import register_pytree_node

Point = namedtuple("Point", "x y")


def loss(params, batch, scale=1.0):
    hidden = batch["x"] @ params["layers"][0] + params["layers"][1][0]
    return (hidden.tanh() * params["out"]).sum() * scale


@pytest.fixture
def params():
    return {"layers": [tl.tensor([[0.5, -1.0], [0.25, 2.0]]), (tl.tensor([0.1, 0.2]), None)],
            "out": tl.tensor(1.5)}


# ---- containers ----------------------------------------------------------------------------------

def test_gradients_are_contained_as_the_arguments_are(params):
    batch = {"x": tl.tensor([[1.0, 2.0]])}
    found = func.grad(loss)(params, batch)
    assert list(found) == ["layers", "out"] and isinstance(found["layers"][1], tuple)
    assert found["layers"][1][1] is None
    leaves = [x.clone().requires_grad_() for x in (
        params["layers"][0], params["layers"][1][0], params["out"])]
    loss({"layers": [leaves[0], (leaves[1], None)], "out": leaves[2]}, batch).backward()
    for a, b in zip((found["layers"][0], found["layers"][1][0], found["out"]), leaves):
        assert_close(a, b.grad)


def test_keyword_arguments_are_passed_on_and_not_differentiated(params):
    batch = {"x": tl.tensor([[1.0, 2.0]])}
    once, twice = func.grad(loss)(params, batch), func.grad(loss)(params, batch, scale=2.0)
    assert_close(twice["out"], 2 * once["out"])


def test_numbers_of_arguments():
    a, b = tl.tensor(2.0), tl.tensor(3.0)

    def f(a, b):
        return a * a * b

    assert func.grad(f)(a, b).item() == 12.0
    assert func.grad(f, 1)(a, b).item() == 4.0
    assert func.grad(f, -1)(a, b).item() == 4.0
    assert [g.item() for g in func.grad(f, (1, 0))(a, b)] == [4.0, 12.0]
    assert isinstance(func.grad(f, (0,))(a, b), tuple)
    hessian = func.hessian(f, (0, 1))(a, b)
    assert [[h.item() for h in row] for row in hessian] == [[6.0, 4.0], [4.0, 0.0]]


def test_jacobians_contain_the_output_and_in_it_the_argument():
    p = {"a": tl.tensor([1.0, 2.0]), "b": [tl.tensor(3.0)]}

    def f(p):
        return Point(p["a"] * p["b"][0], {"s": p["a"].sum()})

    for transform in (func.jacrev, func.jacfwd):
        found = transform(f)(p)
        assert isinstance(found, Point)
        assert_close(found.x["a"], 3 * tl.eye(2))
        assert_close(found.x["b"][0], p["a"])
        assert_close(found.y["s"]["a"], tl.ones(2))
        assert found.y["s"]["b"][0].item() == 0.0


def test_tangents_and_cotangents_are_contained_as_what_they_belong_to():
    p = {"a": tl.tensor(2.0), "b": tl.tensor(3.0)}

    def f(p):
        return [p["a"] * p["b"], p["a"]]

    out, moved = func.jvp(f, (p,), ({"b": tl.tensor(10.0), "a": tl.tensor(1.0)},))
    assert [x.item() for x in moved] == [23.0, 1.0] and [x.item() for x in out] == [6.0, 2.0]
    out, pull = func.vjp(f, p)
    (pulled,) = pull([tl.tensor(1.0), tl.tensor(5.0)])
    assert pulled["a"].item() == 8.0 and pulled["b"].item() == 2.0


def test_empty_tensors_have_empty_jacobians():
    for transform in (func.jacrev, func.jacfwd):
        assert transform(tl.sin)(tl.zeros(0)).shape == (0, 0)
        assert transform(lambda x: x.sum())(tl.zeros(2, 0)).shape == (2, 0)
        assert transform(lambda x: x[:0])(tl.zeros(2)).shape == (0, 2)


@each("container", [
    1, (), [], {}, None, (1, [2, {"k": (3,)}], None), Point(1, [2]), {"b": 1, "a": (2, 3)}])
def test_containers_come_back_as_they_were(container):
    leaves, structure = tree.flatten(container)
    again = tree.unflatten(structure, leaves)
    assert again == container and type(again) is type(container)
    assert tree.flatten(again)[1] == structure and structure.count == len(leaves)


def test_ordered_dicts_stay_what_they_are():
    given = OrderedDict(b=tl.ones(2), a=tl.zeros(2))
    for found in (vmap(lambda d: d)(given), grad(lambda d: (d["a"] * d["b"]).sum())(given),
                  vjp(lambda x: OrderedDict(b=x, a=x), tl.ones(2))[0]):
        assert type(found) is OrderedDict and list(found) == ["b", "a"]
    assert type(vmap(lambda d: d)(dict(given))) is dict
    _, pull = vjp(lambda d: d, given)
    assert pull(dict(given))[0]["b"].tolist() == [1.0, 1.0]        # a dict fits in its place


def test_dicts_in_another_order_have_the_same_structure():
    _, structure = tree.flatten({"a": 1, "b": (2, 3)})
    assert tree.flatten_as("f", "x", {"b": (5, 6), "a": 4}, structure, "y") == [4, 5, 6]


class Scaled:
    """A container of users, which makes nothing of what is no tensor."""

    def __init__(self, value, rest, scale):
        assert isinstance(value, tl.Tensor)
        self.value, self.rest, self.scale = value, rest, scale

    def __call__(self):
        return self.value * self.rest["b"] * self.scale


register_pytree_node(Scaled, lambda x: ((x.value, x.rest), x.scale),
                     lambda children, scale: Scaled(*children, scale))


@pytest.fixture
def scaled():
    return Scaled(tl.tensor([1.0, 2.0]), {"b": tl.tensor([3.0, 5.0])}, 2)


def seen(container):
    return [type(container), container.scale, container.value.tolist(),
            {key: x.tolist() for key, x in container.rest.items()}]


GRADIENTS = {
    "grad": lambda x: grad(lambda x: x().sum())(x),
    "grad of what is aux": lambda x: grad(lambda x: x().sum())(
        grad(lambda x: (x().sum(), x), has_aux=True)(x)[1]),
    "vjp": lambda x: vjp(Scaled.__call__, x)[1](tl.ones(2))[0],
    "vjp of a result": lambda x: vjp(lambda x: Scaled(x(), {"b": x.rest["b"]}, 3), x)[1](
        Scaled(tl.ones(2), {"b": tl.zeros(2)}, 3))[0],
    "jacrev": lambda x: func.jacrev(lambda x: x().sum())(x),
    "jacfwd": lambda x: func.jacfwd(lambda x: x().sum())(x),
    "vmap": lambda x: vmap(grad(Scaled.__call__))(x),
    "vmap in chunks": lambda x: vmap(grad(Scaled.__call__), chunk_size=1)(x),
}


@each("name", GRADIENTS)
def test_containers_of_users_are_containers(scaled, name):
    assert seen(GRADIENTS[name](scaled)) == [Scaled, 2, [6.0, 10.0], {"b": [2.0, 4.0]}]


def test_tangents_are_contained_as_containers_of_users(scaled):
    out, moved = func.jvp(lambda x: x(), (scaled,), (
        Scaled(tl.ones(2), {"b": tl.zeros(2)}, 2),))
    assert out.tolist() == [6.0, 20.0] and moved.tolist() == [6.0, 10.0]
    with pytest.raises(RuntimeError, match=r"expected \(Scaled\(2, .*got \(Scaled\(7, "):
        func.jvp(lambda x: x(), (scaled,), (Scaled(tl.ones(2), {"b": tl.zeros(2)}, 7),))


def test_deques_and_default_dicts_are_containers():
    given = defaultdict(list, a=deque([tl.tensor([1.0, 2.0])], maxlen=3))
    for found in (vmap(lambda d: d)(given), grad(lambda d: d["a"][0].sum())(given)):
        assert type(found) is defaultdict and found.default_factory is list
        assert type(found["a"]) is deque and found["a"].maxlen == 3


@dataclass
class Dims:
    """A container that may have dims in place of tensors."""

    a: object
    b: object
    scale: float = 2.0


register_pytree_node(Dims, lambda x: ((x.a, x.b), x.scale), lambda ab, scale: Dims(*ab, scale))


def test_dims_of_vmap_may_be_in_a_container_of_users():
    x = tl.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    given = Dims(x, tl.ones(3))
    rows = vmap(lambda p: p.a * p.b, (Dims(0, None),))(given)
    assert rows.tolist() == x.tolist()
    found = vmap(lambda p: Dims(p.a, p.a[0]), (Dims(0, None),), Dims(1, 0))(given)
    assert found.a.tolist() == x.T.tolist() and found.b.tolist() == [1.0, 4.0]
    for wrong in (Dims(0, None, 3.0), (0, None)):
        with pytest.raises(ValueError, match="in_dims is not compatible with the structure"):
            vmap(lambda p: p.a, (wrong,))(given)


# ---- aux -----------------------------------------------------------------------------------------

def test_what_comes_with_the_output_is_handed_on():
    x = tl.tensor(3.0)

    def f(x):
        return x * x, {"twice": 2 * x, "note": "kept"}

    slope, aux = func.grad(f, has_aux=True)(x)
    assert slope.item() == 6.0 and aux["note"] == "kept" and not aux["twice"].requires_grad
    (value, aux), slope = func.value_and_grad(f, has_aux=True)(x)
    assert (value.item(), aux["twice"].item(), slope.item()) == (9.0, 6.0, 6.0)
    slope, (value, aux) = func.grad_and_value(f, has_aux=True)(x)
    assert (value.item(), aux["twice"].item(), slope.item()) == (9.0, 6.0, 6.0)
    assert func.jacrev(f, has_aux=True)(x)[1]["twice"].item() == 6.0
    assert func.jacfwd(f, has_aux=True)(x)[1]["twice"].item() == 6.0
    assert func.jvp(f, (x,), (x,), has_aux=True)[2]["twice"].item() == 6.0
    out, pull, aux = func.vjp(f, x, has_aux=True)
    assert aux["twice"].item() == 6.0 and pull(tl.tensor(1.0))[0].item() == 6.0


def test_what_comes_with_the_output_keeps_the_graph_of_what_was_captured():
    w = tl.tensor(2.0, requires_grad=True)
    _, aux = func.grad(lambda x: (x * x, w * x), has_aux=True)(tl.tensor(3.0))
    assert tl.autograd.grad(aux, w)[0].item() == 3.0


# ---- what is refused -----------------------------------------------------------------------------

ONES = tl.ones(3)
REFUSED = {
    "no scalar": (lambda: func.grad(tl.sin)(ONES), RuntimeError, r"grad: .*scalar.*\(3,\).*jacrev"),
    "one element is no scalar": (lambda: func.grad(tl.sin)(tl.ones(1)), RuntimeError, "scalar"),
    "no tensor": (lambda: func.grad(lambda x: "2")(ONES), RuntimeError, "grad: .*got str"),
    "integer output": (lambda: func.grad(lambda x: x.sum().int())(ONES), RuntimeError,
                       "floating-point"),
    "text as argument": (lambda: func.grad(tl.sin)("3"), ValueError, "grad: .*str"),
    "text is a TypeError": (lambda: func.grad(tl.sin)("3"), TypeError, "grad: .*str"),
    "text in a container": (lambda: func.grad(lambda p: p[0])((tl.ones(()), "3")), ValueError,
                            "str"),
    "integer argument": (lambda: func.jacfwd(tl.sin)(tl.tensor([1, 2])), RuntimeError,
                         "floating point.*int64"),
    "argnums too large": (lambda: func.grad(tl.sin, 3)(ONES), RuntimeError, "argnum=3.*only 1"),
    "argnums twice": (lambda: func.grad(tl.add, (0, -2))(ONES, ONES), RuntimeError, "unique"),
    "argnums empty": (lambda: func.grad(tl.add, ())(ONES, ONES), RuntimeError, "non-empty"),
    "argnums a name": (lambda: func.grad(tl.sin, "a")(ONES), RuntimeError, "got str"),
    "argnums a bool": (lambda: func.grad(tl.sin, True)(ONES), RuntimeError, "got bool"),
    "argnums of floats": (lambda: func.grad(tl.sin, (0.5,))(ONES), RuntimeError, "0.5"),
    "no aux": (lambda: func.grad(tl.sum, has_aux=True)(ONES), RuntimeError, "has_aux"),
    "primals no tuple": (lambda: func.jvp(tl.sin, ONES, ONES), RuntimeError, "jvp: .*tuple"),
    "hvp's tangents of one primal in a tuple": (
        lambda: func.hvp(tl.sum, ONES, (ONES,)), RuntimeError, "must have the structure"),
    "vhp's cotangents no tuple": (lambda: func.vhp(tl.sum, (ONES,), ONES), RuntimeError,
                                  "vhp: expected cotangents to be a tuple"),
    "too many tangents": (lambda: func.jvp(tl.sin, (ONES,), (ONES, ONES)), RuntimeError,
                          "jvp: tangents.*primals"),
    "shape of a tangent": (lambda: func.jvp(tl.sin, (ONES,), (tl.ones(2),)), RuntimeError,
                           r"jvp: tangent 0 has shape \(2,\).*\(3,\)"),
    "tangent no tensor": (lambda: func.jvp(tl.sin, (ONES,), ("2",)), RuntimeError, "tangents"),
    "strict": (lambda: func.jvp(lambda x: (x, tl.ones(2)), (ONES,), (ONES,), strict=True),
               RuntimeError, "output 1.*strict"),
    "shape of a cotangent": (lambda: func.vjp(tl.sin, ONES)[1](tl.ones(2)), RuntimeError,
                             r"vjp: cotangent 0 has shape \(2,\)"),
    "too few cotangents": (lambda: func.vjp(lambda x: (x, x), ONES)[1](ONES), RuntimeError,
                           r"cotangents.*\(\*, \*\).*got \*"),
    "jvp of a text": (lambda: func.jvp(lambda x: "2", (ONES,), (ONES,)), RuntimeError,
                      "jvp: .*str"),
}


@each("name", REFUSED)
def test_bad_input_is_refused(name):
    call, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        call()


TRANSFORMS = [
    lambda f, x: func.grad(f)(x), lambda f, x: func.vjp(f, x),
    lambda f, x: func.jvp(f, (x,), (x,)), lambda f, x: func.linearize(f, x),
    lambda f, x: func.jacrev(f)(x), lambda f, x: func.hvp(f, (x,), (x,)),
]


@each("transform", TRANSFORMS)
def test_writing_to_a_captured_tensor_is_named_and_leaves_it_alone(transform):
    captured, empty = tl.zeros(3), tl.empty(0)
    writes = {
        "add_": lambda x: captured.add_(x), "mul_": lambda x: captured[:2].mul_(x[:2]),
        "copy_": lambda x: captured.copy_(x), "setitem": lambda x: captured.__setitem__(0, x[0]),
        "fill_": lambda x: captured.fill_(1.0), "exp": lambda x: tl.exp(ONES, out=captured),
        "sin_": lambda x: x.sin_(), "cos": lambda x: tl.cos(ONES, out=empty),
        "normal_": lambda x: captured.normal_(), "zero_": lambda x: captured.zero_(),
    }
    x = tl.ones(3)
    for name, write in writes.items():
        def f(x):
            write(x)
            return (captured * x).sum()

        with pytest.raises(RuntimeError, match=f"{name}: in place on a tensor .*outside"):
            transform(f, x)
        assert (captured == 0).all() and not captured.requires_grad and (x == 1).all()
    assert empty.shape == (0,)
    captured.add_(1)                     # outside of a transform it is an ordinary tensor


def test_a_function_that_raises_leaves_the_modes_as_they_were():
    def f(x):
        raise KeyError("of the user's")

    for transform in TRANSFORMS:
        with pytest.raises(KeyError):
            transform(f, tl.ones(3))
    with tl.no_grad():
        with pytest.raises(KeyError):
            func.grad(f)(ONES)
        assert not tl.is_grad_enabled()


def test_a_value_that_forward_mode_needs_and_that_was_overwritten_is_noticed(x):
    def f(x):
        y = x.exp()
        z = y * y
        y.add_(1)
        return z

    with pytest.raises(RuntimeError, match="modified by an inplace operation.*of exp"):
        func.jvp(f, (x,), (x,))


def test_the_input_of_a_transform_is_not_marked(x):
    func.jacfwd(tl.sin)(x), func.hessian(lambda x: x.exp().sum())(x)
    assert x.is_leaf and not x.requires_grad and x.grad is None


def test_an_operation_without_a_forward_rule_is_named():
    """Registered in a process of its own."""
    run_forked("""
import tensorlib as tl
from tensorlib import Tensor, func
from tensorlib.ops.declare import op

@op(reference=None, samples=None)
def cube(input: Tensor):
    return input * input * input

@cube.vjp("input")
def cube_vjp(g, input):
    return g * input * input * 3

x = tl.tensor(2.0)
assert func.grad(cube)(x).item() == 12.0
try:
    func.jvp(cube, (x,), (x,))
except RuntimeError as error:
    assert "cube has no forward-mode rule" in str(error), error
    assert "@cube.jvp" in str(error)
else:
    raise AssertionError("forward mode passed")

@cube.jvp
def cube_jvp(d_input, input):
    return d_input * input * input * 3

assert func.jvp(cube, (x,), (x,))[1].item() == 24.0
""")
