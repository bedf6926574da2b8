"""Declarations: what follows from each of their words, and what is refused."""

import inspect
import itertools

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib import ops
from tensorlib.ops.complete import missing, missing_for_tests
from tensorlib.ops.samples import PAIRS, given, pairs, reals
from tensorlib.testing import check_op

numbers = itertools.count()


def declared(how, source):
    """The function of an operation declared by the text of a function with a fresh name, NAME."""
    name = f"declared_{next(numbers)}"
    scope = {"__name__": __name__, "Tensor": tl.Tensor, "Tensors": ops.Tensors, "tl": tl}
    exec(source.replace("NAME", name), scope)
    return how(scope[name])


# ---- the names of a call are those of the declaration --------------------------------------------

def test_one_argument_goes_by_its_name():
    half = declared(ops.elementwise(kernel="tanh"), "def NAME(x): 'Text.'")
    t = tl.tensor([0.5])
    assert half(x=t).item() == half(t).item() == t.tanh().item()
    assert half(x=t, out=tl.empty(0)).item() == t.tanh().item()
    assert str(inspect.signature(half)) == "(x, *, out=None)"
    for call in (lambda: half(input=t), lambda: half(), lambda: half(t, t), lambda: half(t, x=t)):
        with pytest.raises(TypeError, match=half.__name__):
            call()


def test_two_arguments_go_by_their_names():
    pair = declared(ops.elementwise(kernel="sub"), "def NAME(a, b): 'Text.'")
    x, y = tl.tensor([5.0]), tl.tensor([2.0])
    assert pair(a=x, b=y).item() == pair(b=y, a=x).item() == pair(x, b=y).item() == 3
    assert pair(x, 2.0).item() == 3 and pair(7.0, b=y).item() == 5
    assert getattr(x.clone(), pair.__name__ + "_")(b=y).item() == 3
    for call in (lambda: pair(x, other=y), lambda: pair(input=x, other=y), lambda: pair(x),
                 lambda: getattr(x, pair.__name__ + "_")(other=y)):
        with pytest.raises(TypeError, match=pair.__name__):
            call()


def test_names_of_the_librarys_own_operations():
    x = tl.tensor([1.0, 5.0])
    assert tl.clamp_min(input=x, min=2).tolist() == x.clone().clamp_min_(min=2).tolist() == [2, 5]
    assert tl.clamp(input=x, max=3).tolist() == x.clone().clamp_(max=3).tolist() == [1, 3]
    assert x.clone().div_(other=2, rounding_mode="floor").tolist() == [0, 2]


# ---- more ways to call ---------------------------------------------------------------------------

def test_a_call_says_which_operation_ran():
    x = tl.tensor([[1.0, 4.0]], requires_grad=True)
    for call, name in ((ops.call("max", x), "amax"), (ops.call("max", x, dim=1), "max"),
                       (ops.call("div", x, 2.0), "div"), (ops.call("var", x), "var")):
        assert call.op.name == name
    grads = ops.build_grad_op(ops.call("max", x))(tl.tensor(1.0))
    assert grads[0].tolist() == [[0, 1]]
    assert ops.call("var", x).attributes["correction"] == 1


def test_a_bound_that_is_absent_is_that_of_the_other_operation():
    """Integers have no infinity; their one bound had another gradient than that of floats."""
    x, low = tl.tensor([1, 2, 3]), tl.tensor(2.0, requires_grad=True)
    tl.clamp(x, low).sum().backward()
    integers, low.grad = low.grad, None
    tl.clamp(x.float(), low).sum().backward()
    assert integers.item() == low.grad.item() == 1
    y = tl.tensor([1, 2, 3])
    assert y.clamp_(max=2) is y and y.tolist() == [1, 2, 2]
    assert tl.clamp(x, min=2, out=tl.empty(0, dtype=tl.int64)).tolist() == [2, 2, 3]


def test_a_conversion_that_is_declared():
    def scaled(x, y, *, times=1):
        return x, y * times
    product = declared(ops.elementwise(
        kernel="mul", convert=scaled, reference=lambda x, y, times=1: x * y * times,
        samples=pairs()), "def NAME(x, y): 'Text.'")
    product.deriv("x")(lambda y: y)
    product.deriv("y")(lambda x: x)
    x, y = tl.tensor([0.25]), tl.tensor([2.0])
    assert product(x, y).item() == 0.5 and product(x, y, times=2).item() == 1
    assert product(x, y=y, times=2, out=tl.empty(0)).item() == 1
    assert getattr(x, product.__name__ + "_")(y, times=2) is x and x.item() == 1
    assert str(inspect.signature(product)) == "(x, y, *, times=1, out=None)"
    assert check_op(product)
    for call in (lambda: product(x, y, factor=2), lambda: product(x), lambda: product(x, y, y),
                 lambda: getattr(x, product.__name__ + "_")(y, out=x)):
        with pytest.raises(TypeError, match=product.__name__):
            call()


def test_a_conversion_keeps_the_tensor_that_is_written():
    halved = declared(ops.elementwise(kernel="tanh", convert=lambda x, *, by=2: (x / by,)),
                      "def NAME(x): 'Text.'")
    x = tl.ones(1)
    with pytest.raises(RuntimeError, match="made another of the tensor to be written"):
        getattr(x, halved.__name__ + "_")(by=3)
    assert x.item() == 1


# ---- other forms and kinds -----------------------------------------------------------------------

def test_out_and_in_place_follow_from_a_word():
    for how in (ops.op(linear=True, out=True, inplace=True),
                ops.composite(out=True, inplace=True)):
        twice = declared(how, "def NAME(x: Tensor): return x * 2")
        x, out = tl.tensor([1.0, 2.0]), tl.empty(0)
        assert twice(x, out=out) is out and out.tolist() == [2, 4]
        assert getattr(x, twice.__name__ + "_")() is x and x.tolist() == [2, 4]
        with pytest.warns(UserWarning, match=f"{twice.__name__}: out has shape"):
            assert twice(x, out=tl.empty(3)).tolist() == [4, 8]
    plain = declared(ops.op(linear=True), "def NAME(x: Tensor): return x * 2")
    with pytest.raises(TypeError, match="takes no out"):
        plain(x, out=out)
    assert not hasattr(x, plain.__name__ + "_")


def test_tensors_after_what_else_a_composite_takes():
    picked = declared(
        ops.composite(reference=lambda x, n, y: x * n + y, samples=lambda rng: (
            ((rng.normal(size=3), 2, rng.normal(size=3)), {}) for _ in range(2)),
            takes="floating"),
        "def NAME(x, n: int, y): return x * n + y")
    assert picked.op.arguments == ("x", "y") and picked.op.attributes == ("n",)
    assert picked.op.places == (0, 2)
    assert check_op(picked)
    x, y = tl.ones(2, requires_grad=True), tl.ones(2, requires_grad=True)
    call = ops.call(picked, x, y, n=3)
    assert [g.tolist() for g in ops.build_grad_op(call)(tl.ones(2))] == [[3, 3], [1, 1]]


def test_an_operation_without_tensors():
    new = declared(ops.composite(
        differentiable=False, samples=lambda rng: [((3,), {})],
        reference=lambda n: np.arange(n)), "def NAME(n: int): return tl.arange(n)")
    assert new.op.arguments == () and new.op.attributes == ("n",)
    assert check_op(new)


def test_what_is_asked_of_a_tensor():
    asked = declared(ops.composite(
        differentiable=False, samples=reals(-1, 1), reference=lambda x: x.ndim),
        "def NAME(x) -> int: return x.ndim")
    assert asked.op.returns is int and check_op(asked)
    asked.op.testing["reference"] = lambda x: x.ndim + 1
    with pytest.raises(AssertionError):
        check_op(asked)


def bounds(low, high, dtype="float32"):
    """The reference of random numbers between two."""
    return lambda *size: (np.full(size, low, dtype), np.full(size, high, dtype))


def test_random_numbers_are_held_to_their_bounds_and_their_seed():
    draw = declared(ops.composite(
        random=True, reference=bounds(0, 1), samples=lambda rng: [((4, 5), {})]),
        "def NAME(n: int, m: int): return tl.rand(n, m)")
    assert draw.op.random and not draw.op.differentiable and check_op(draw)
    for wrong, message in ((bounds(0, 0.5), "out of its bounds"), (bounds(0, 1, "float64"), "is"),
                           (lambda n, m: bounds(0, 1)(m, n), "shape")):
        draw.op.testing["reference"] = wrong
        with pytest.raises(AssertionError, match=message):
            check_op(draw)


def test_what_draws_the_same_numbers_twice_is_noticed():
    draw = declared(ops.composite(
        random=True, reference=bounds(0, 1), samples=lambda rng: [((4, 5), {})]),
        "def NAME(n: int, m: int): return tl.full((n, m), 0.5)")
    with pytest.raises(AssertionError, match="the same numbers twice"):
        check_op(draw)


# ---- what is refused -----------------------------------------------------------------------------

@each("how, source, error, message", [
    (ops.op(tollerance="product"), "def NAME(x: Tensor): pass", TypeError,
     "op: declared_.* 'tollerance', .*mean tolerance"),
    (ops.elementwise(kernel="tanh", sample=1), "def NAME(x): pass", TypeError, "mean samples"),
    (ops.composite(no_such_word=1), "def NAME(x): pass", TypeError, "composite: .*'no_such_word'"),
    (ops.op(), "def NAME(x): pass", ValueError, "has no tensors: annotate .*x"),
    (ops.op(), "def NAME(dim, x: Tensor): pass", ValueError,
     "takes its tensors first, but 'x' stands after 'dim'"),
    (ops.op(), "def NAME(x: Tensor, g): pass", ValueError, "a parameter 'g', which rules use"),
    (ops.op(outputs=("y",)), "def NAME(x: Tensor, y: Tensor): pass", ValueError, "parameter 'y'"),
    (ops.op(linear=True, multilinear=True), "def NAME(x: Tensor): pass", ValueError,
     "linear and multilinear"),
    (ops.elementwise(kernel="tanh"), "def NAME(node): pass", ValueError, "parameter 'node'"),
    (ops.elementwise(kernel="where", boolean=("c",)), "def NAME(x, y, z): pass", ValueError,
     "has no argument 'c'; it takes x, y, z"),
    (ops.elementwise(kernel="tahn"), "def NAME(x): pass", ValueError,
     "has no loop 'tahn'; did you mean tan or tanh"),
    (ops.elementwise(kernel="add"), "def NAME(x): pass", ValueError,
     "takes x, but its loop 'add' 2 arguments"),
    (ops.composite(tensors=("y",)), "def NAME(x): pass", ValueError, "has no argument 'y'"),
])
def test_a_declaration_that_cannot_be(how, source, error, message):
    before = set(ops.registry)
    with pytest.raises(error, match=message):
        declared(how, source)
    assert set(ops.registry) == before


@pytest.mark.parametrize("rule, message", [
    (lambda made: made.vjp("z")(lambda g: g), "has no argument 'z'"),
    (lambda made: made.vjp("x")(lambda g, z: g), "a rule asks for 'z'"),
    (lambda made: made.jvp(lambda d_x, d_z: d_x), "a rule asks for 'd_z'"),
    (lambda made: made.jvp(lambda d_x, x_length: d_x), "a rule asks for 'x_length'"),
])
def test_a_rule_that_names_what_is_not_there(rule, message):
    made = declared(ops.op(), "def NAME(x: Tensor, y: Tensor, k=1): return x * y")
    with pytest.raises(ValueError, match=message):
        rule(made)


def test_a_formula_that_names_what_is_not_there():
    made = declared(ops.elementwise(kernel="tanh"), "def NAME(x): 'Text.'")
    with pytest.raises(ValueError, match="has no argument 'y'"):
        made.deriv("y")(lambda out: out)
    with pytest.raises(ValueError, match="a rule asks for 'y'"):
        made.deriv(lambda y: y)


def test_a_rule_of_what_has_no_derivative():
    made = declared(ops.op(differentiable=False), "def NAME(x: Tensor): return x * 2")
    with pytest.raises(ValueError, match="without a derivative and takes no rule"):
        made.vjp("x")(lambda g: g)
    with pytest.raises(ValueError, match="without a derivative and takes no rule"):
        made.jvp(lambda d_x: d_x)


def test_a_differentiable_operation_without_a_rule():
    """It may follow the declaration, so that it is missed when the tests are to run."""
    made = declared(ops.op(samples=given(((3,),))), "def NAME(x: Tensor): return x * 2")
    with pytest.raises(ValueError, match=rf"{made.__name__}: .*add @{made.__name__}.vjp, or decl"):
        check_op(made)
    made.vjp("x")(lambda g: g * 2)
    made.jvp(lambda d_x: d_x * 2)
    assert check_op(made, reference=lambda x: 2 * x, dtypes=["float32", "float64"])


def test_what_the_library_declares_has_a_reference_and_samples():
    made = declared(ops.elementwise(kernel="add"), "def NAME(x, y): 'Text.'")
    assert list(missing_for_tests(made.op)) == [
        "it is declared without reference", "it is declared without samples"]
    assert len(list(missing(made.op))) == 1
    with pytest.raises(ValueError, match="declares no samples"):
        check_op(made)
    made.deriv("x")(lambda: 1)
    made.deriv("y")(lambda: 1)
    assert not list(missing(made.op)) and check_op(made, samples=pairs(), reference=np.add)


@each("seed", range(20))
def test_samples_of_pairs_that_stay_apart(seed):
    samples = list(pairs(apart=0.1)(np.random.default_rng(seed)))
    assert len(samples) == len(PAIRS)
    for (a, b), _ in samples:
        assert (np.abs(a - b) >= 0.1).all()
