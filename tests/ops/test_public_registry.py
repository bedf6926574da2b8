"""`tensorlib.ops`: the registry, operations from outside, calls as records, composed operations."""

import functools
import inspect

import numpy as np
import pytest
from cases import each
from catalogue import fresh, named, operations
from process import run_each

import tensorlib as tl
from tensorlib import func, ops
from tensorlib._core.sweep.python_nodes import sweep_inside
from tensorlib.ops.calls import flat
from tensorlib.ops.declare import resolved
from tensorlib.ops.samples import reals
from tensorlib.testing import assert_close, check_op, gradcheck, gradgradcheck
from tensorlib.testing.catalogue import (
    differentiable, prepared, recorded_samples, tensors_among,
)

def real(*shape, seed=0):
    values = np.random.default_rng(seed).uniform(-1, 1, shape)
    return tl.tensor(values, dtype=tl.float64, requires_grad=True)


def test_examples():
    """Each in a process of its own, as they register operations."""
    run_each("""
import doctest, sys, numpy as np, tensorlib
from tensorlib.testing import check_op
def run(text):
    test = doctest.DocTestParser().get_doctest(
        text, {"tensorlib": tensorlib, "np": np, "check_op": check_op}, "example", None, 0)
    failed, attempted = doctest.DocTestRunner().run(test, out=sys.stderr.write)
    assert attempted and not failed
""", [f"run({inspect.cleandoc(function.__doc__)!r})" for function in (
        ops.call, ops.build_grad_op, ops.compose, ops.primitive, check_op, tl.autograd.Function)])


# ---- the registry --------------------------------------------------------------------------------

def test_the_registry_is_a_read_only_mapping():
    tanh = ops.registry["tanh"]
    assert isinstance(tanh, ops.Op) and tanh.name == "tanh" and "tanh" in ops.registry
    assert "angent" in tanh.doc and tanh.arguments == ("input",) and tanh.outputs == ("out",)
    assert ops.registry["sum"].attributes[:2] == ("dim", "keepdim")
    assert tanh.needs == ("out", "grad_out")
    with pytest.raises(TypeError):
        ops.registry["tanh"] = tanh
    assert ops.registry.get("no such operation") is None


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(KeyError, match="no operation named 'tahn'; did you mean tan.*tanh"):
        ops.registry["tahn"]
    with pytest.raises(KeyError, match="no operation named 'qqqqqq'"):
        ops.call("qqqqqq", tl.ones(1))


def test_a_name_taken_twice_is_refused():
    def tanh(x):
        return x

    before = ops.registry["tanh"], tl.Tensor.tanh
    for declare in (ops.primitive, ops.op(), ops.elementwise(), lambda f: ops.compose("tanh", f)):
        with pytest.raises(ValueError, match="an operation named 'tanh' exists already"):
            declare(tanh)
    assert before == (ops.registry["tanh"], tl.Tensor.tanh)


# ---- calls and their backward operations ---------------------------------------------------------

def test_a_call_is_a_record():
    x = real(2, 3)
    call = ops.call("sum", x, dim=1)
    assert call.op is ops.registry["sum"] and call.inputs == (x,)
    assert call.attributes == {"dim": 1, "keepdim": False, "dtype": None}
    assert_close(call.outputs[0], x.sum(1))


@pytest.mark.parametrize("call, message", [
    (lambda: ops.call("mul", tl.ones(1)), "mul takes input, other; got 1 inputs"),
    (lambda: ops.call("sum", tl.ones(1), axis=0), "sum has no attribute 'axis'"),
    (lambda: ops.call(3, tl.ones(1)), "an operation or its name, not int"),
    (lambda: ops.build_grad_op(tl.ones(1)), "what ops.call returns, not Tensor"),
    (lambda: ops.build_grad_op(ops.call("tanh", tl.ones(1)))(), "takes 1 output gradients, got 0"),
    (lambda: ops.build_grad_op(ops.call("tanh", tl.ones(1)))(3), "grad_out must be a Tensor"),
])
def test_calls_that_make_no_sense(call, message):
    with pytest.raises(TypeError, match=message):
        call()


def test_an_operation_without_a_gradient_has_no_backward_operation():
    assert ops.registry["eq"].gradient is None and ops.registry["eq"].tangent is None
    with pytest.raises(RuntimeError, match="eq has no gradient"):
        ops.build_grad_op(ops.call("eq", tl.ones(1), tl.ones(1)))


def test_a_backward_operation_takes_what_it_needs():
    x, y, g = real(2, 3), real(3, seed=1), tl.ones(2, 3, dtype=tl.float64)
    back = ops.build_grad_op(ops.call("mul", x, y))
    assert back.needs == ("input", "other", "grad_out") and back.inputs == (x, y)
    assert back.outputs == ("grad_input", "grad_other") and back.attributes == {}
    dx, dy = back(g)
    assert_close(dx.detach(), y.detach().expand(2, 3))
    assert_close(dy.detach(), x.detach().sum(0))
    assert ops.build_grad_op(ops.call("sum", x)).needs == ("grad_out",)


def test_a_backward_operation_is_an_operation_with_a_gradient():
    x = real(4)
    back = ops.build_grad_op(ops.call("tanh", x))
    assert isinstance(back.op, ops.Op) and back.op is ops.registry["tanh"].gradient
    assert isinstance(back.op.gradient.gradient, ops.Op)
    g = real(4, seed=1)
    assert gradcheck(lambda x, g: ops.build_grad_op(ops.call("tanh", x))(g)[0], (x, g))
    second = ops.build_grad_op(ops.call(back.op, *back.inputs, g, likes=back.likes))
    d_out, d_g = second(tl.ones_like(g))
    assert_close(d_g, 1 - x.detach().tanh() ** 2)
    assert_close(d_out, (-2 * g * x.tanh()).detach())


@operations("gradient", differentiable)
def test_backward_operations_equal_the_sweep(op):
    for tensors, _ in recorded_samples(op)[:3]:
        args, kwargs = prepared(op, tensors)
        wanted = [x for x in tensors_among(op, args) if x.requires_grad]
        doer, given, attributes = resolved(op, args, kwargs)
        call = ops.call(doer, *given, **attributes)
        outs = [x for x in call.outputs if isinstance(x, tl.Tensor) and x.requires_grad]
        gs = [tl.ones_like(x) if x.requires_grad else None for x in call.outputs]
        swept = tl.autograd.grad(outs, wanted, [g for g in gs if g is not None],
                                 retain_graph=True, allow_unused=True)
        several = len(call.outputs) > len(call.op.outputs)        # as many as there are parts
        grads = flat(ops.build_grad_op(call)(*[tuple(gs)] if several else gs))
        inputs = flat(call.inputs)
        for x, g in zip(wanted, swept):
            place = next(i for i, y in enumerate(inputs) if y is x)
            if g is not None:
                assert_close(grads[place].detach(), g)


def test_a_backward_operation_says_what_it_takes():
    x, likes = tl.ones(2, 2), [((2, 2), tl.float32)] * 2
    norm, matmul = ops.registry["norm"].gradient, ops.registry["matmul"].gradient
    for g in (3, "a", object(), [x, 3]):
        with pytest.raises(TypeError, match="norm_gradient: grad_out must be a Tensor or None"):
            norm(x, g)
        with pytest.raises(TypeError, match="matmul_gradient: grad_out must be a Tensor or None"):
            matmul(x, x, g, likes=likes)
    with pytest.raises(TypeError, match="norm_gradient: takes input, grad_out; got 1 values"):
        norm(x)
    for wrong in (None, 3, likes[:1], [(2, 2)] * 2):
        with pytest.raises(TypeError, match="matmul_gradient: likes must be the shape and dtype"):
            matmul(x, x, x, likes=wrong)


def test_a_backward_operation_takes_no_gradient_as_zero():
    x, likes = tl.ones(2, 2), [((2, 2), tl.float32)] * 2
    assert [g.tolist() for g in ops.registry["matmul"].gradient(x, x, None, likes=likes)] == (
        [[[0.0, 0.0], [0.0, 0.0]]] * 2)
    assert ops.registry["norm"].gradient(x, None)[0].tolist() == [[0.0, 0.0], [0.0, 0.0]]


# ---- primitives ----------------------------------------------------------------------------------

def test_a_primitive_is_made_of_a_function():
    for wrong in (tl.zeros(1), 3, None, functools.partial(tl.tanh)):
        with pytest.raises(TypeError, match="primitive: fun must be a function with a name"):
            ops.primitive(wrong)


def test_a_primitive_with_its_rules_passes_the_generated_tests():
    @ops.primitive
    @named
    def softplus(x):
        return np.logaddexp(0, x.numpy())

    ops.defvjp(softplus, lambda g, ans, x: g * (1 - (-ans).exp()))
    ops.defjvp(softplus, lambda g, ans, x: g * (1 - (-ans).exp()))
    assert check_op(softplus, samples=reals(-2, 2), reference=lambda x: np.logaddexp(0, x),
                    dtypes=["float32", "float64"]) is True


def scaled_product():
    @ops.primitive
    @named
    def product(x, y, k=2.0):
        return x * y * k
    return product


def test_rules_for_some_arguments_and_with_attributes():
    product = scaled_product()
    ops.defvjp(product, lambda g, ans, x, y, k: g * x * k, argnums=[1])
    ops.defvjp(product, lambda g, _ans, _x, y, k: g * y * k, argnums=[0])
    x, y = real(3), real(3, seed=1)
    for f in (product, lambda x, y: product(x, y, k=3.0)):
        assert gradcheck(f, (x, y)) and gradgradcheck(f, (x, y))
    assert product(x, y.detach()).grad_fn.saved_bytes == y.nbytes      # neither ans nor _x


def test_none_in_the_place_of_a_rule_is_zero():
    product = scaled_product()
    ops.defvjp(product, None, lambda g, ans, x, y, k: g * x * k)
    ops.defjvp(product, None, lambda g, ans, x, y, k=2.0: g * x * k)
    x, y = real(3), real(3, seed=1)
    product(x, y).sum().backward()
    assert x.grad.tolist() == [0.0] * 3
    _, moved = product.op.tangent((x, y), {}, (tl.ones_like(x), None))
    assert moved.tolist() == [0.0] * 3
    other = scaled_product()
    ops.defjvp(other, lambda g, ans, x, y, k: g * y * k)
    _, moved = other.op.tangent((x, y), {}, (tl.ones_like(x), None))
    assert_close(moved.detach(), 2 * y.detach())
    with pytest.raises(RuntimeError, match="no forward-mode rule for its argument 'y'"):
        other.op.tangent((x, y), {}, (None, tl.ones_like(y)))


def test_a_primitive_that_returns_its_input_keeps_its_rule():
    @ops.primitive
    @named
    def reverse(x):
        return x

    ops.defvjp(reverse, lambda g, ans, _x: -g)
    x = real(2)
    reverse(x).sum().backward()
    assert x.grad.tolist() == [-1.0, -1.0]


def test_without_a_rule_the_sweep_names_the_operation_on_the_path():
    product = scaled_product()
    x, y = real(3), real(3, seed=1)
    loss = (product(x * 2, y) + 1).sum()
    with pytest.raises(RuntimeError, match=f"{product.op.name} has no gradient for .* 'x'"):
        loss.backward(retain_graph=True)
    assert x.grad is None
    ops.defvjp(product, lambda g, ans, x, y, k: g * y * k, lambda g, ans, x, y, k: g * x * k)
    (product(x * 2, y) + 1).sum().backward()
    assert_close(x.grad, 4 * y.detach())


def test_integers_and_comparisons_cut_the_path():
    x = real(3)
    assert not (x > 0).requires_grad and not x.argmax().requires_grad
    (x * (x > 0) + x.long()).sum().backward()
    assert x.grad.tolist() == (x > 0).double().tolist()


@each("define, error, message", [
    (lambda f: ops.defvjp(f, *[lambda g, ans: g] * 3), ValueError, "there is no argument 2"),
    (lambda f: ops.defvjp(f, 3), TypeError, "for its argument 'x' is int, not a function"),
    (lambda f: ops.defvjp(f, None, argnums=[0, 1]), ValueError, "got 1 rules for 2 argnums"),
    (lambda f: ops.defvjp("tanh", None), ValueError, "tanh is not a primitive"),
    (lambda f: ops.defjvp(len, None), TypeError, "op must be what primitive made"),
    (lambda f: ops.primitive(named(lambda **xs: 0)), ValueError, "takes no tensor"),
    (lambda f: ops.primitive(named(lambda k=1: 0)), ValueError, "takes no tensor"),
    (lambda f: ops.primitive(named(lambda g: 0)), ValueError, "parameter 'g'"),
])
def test_definitions_that_make_no_sense(define, error, message):
    with pytest.raises(error, match=message):
        define(scaled_product())


@pytest.mark.parametrize("rule, message", [
    (lambda g, ans: g[:2], r"returned shape \(2,\) for its argument 'x'"),
    (lambda g, ans: 3.0, "returned float for its argument 'x', not a Tensor"),
    (lambda g, ans: (g, g), "returned tuple for its argument 'x'"),
])
def test_what_a_rule_returns_is_checked(rule, message):
    product = scaled_product()
    ops.defvjp(product, rule)
    x = real(3)
    y = product(x, tl.ones(3))
    with pytest.raises(RuntimeError, match=f"rule of {product.op.name} {message}"):
        y.sum().backward()
    assert x.grad is None


def test_a_rule_that_raises_is_named():
    product = scaled_product()

    def broken(g, ans):
        raise KeyError("mine")

    ops.defvjp(product, broken)
    with pytest.raises(KeyError, match="mine") as caught:
        product(real(3), tl.ones(3)).sum().backward()
    assert caught.value.__notes__ == [
        f"backward: raised in the gradient rule of {product.op.name} for its argument 'x'"]


def test_a_forward_that_returns_no_tensor_is_named():
    bad = ops.primitive(named(lambda x: "text"))
    with pytest.raises(TypeError, match=f"{bad.op.name}: its forward returned str"):
        bad(tl.ones(1))


# ---- composed operations -------------------------------------------------------------------------

def layer(x, w):
    return (x @ w).tanh()


def nested():
    """An operation of an operation of an operation, and the same function plainly."""
    dense = ops.compose(fresh("dense"), layer)
    block = ops.compose(fresh("block"), lambda x, w: dense(dense(x, w), w) + x)
    net = ops.compose(fresh("net"), lambda x, w: (block(block(x, w), w), x.sum() * w))

    def plain(x, w):
        def step(x):
            return layer(layer(x, w), w) + x
        return step(step(x)), x.sum() * w
    return net, plain


def test_a_composed_operation_is_one_node():
    net, _ = nested()
    assert isinstance(net, ops.Op) and ops.registry[net.name] is net
    x, w = real(3, 3), real(3, 3, seed=1)
    y, z = net(x, w)
    assert y.grad_fn is z.grad_fn and y.grad_fn.name() == net.node_name
    assert all(node.variable is leaf for (node, _), leaf in zip(y.grad_fn.next_functions, (x, w)))
    with pytest.raises(AttributeError, match="has no variable; AccumulateGrad nodes have"):
        y.grad_fn.variable


def test_composed_operations_equal_what_they_are_made_of():
    net, plain = nested()
    x, w = real(3, 3), real(3, 3, seed=1)
    for some in ([x, w], [w]):
        found, wanted = (
            tl.autograd.grad([out.sum() for out in f(x * 1, w)], some) for f in (net, plain))
        for a, b in zip(found, wanted):
            assert_close(a, b)
    assert gradcheck(net, (x, w)) and gradgradcheck(net, (x, w))


def test_forward_mode_goes_through_the_parts():
    net, plain = nested()
    x, w = real(3, 3).detach(), real(3, 3, seed=1).detach()
    moves = (real(3, 3, seed=2).detach(), real(3, 3, seed=3).detach())
    for wanted in (func.jvp(plain, (x, w), moves), net.tangent((x, w), {}, moves)):
        for a, b in zip(func.jvp(net, (x, w), moves), wanted):
            for one, other in zip(a, b):
                assert_close(one, other)
    alone = net.tangent((x, w), {}, (moves[0], None))[1]
    assert_close(alone[0], func.jvp(lambda x: plain(x, w)[0], (x,), moves[:1])[1])

    def scalar(f):
        return lambda x: f(x, w)[0].sin().sum()
    for first, second in ((func.jacfwd, func.jacrev), (func.jacrev, func.jacfwd)):
        assert_close(first(second(scalar(net)))(x), first(second(scalar(plain)))(x))


def test_composed_operations_of_a_batch():
    net, plain = nested()
    xs, w = real(4, 3, 3).detach(), real(3, 3, seed=1).detach()
    for f, g in ((net, plain), (lambda x, w: net(w, w), lambda x, w: plain(w, w))):
        found = func.vmap(lambda x: f(x, w)[0])(xs)
        assert_close(found, func.vmap(lambda x: g(x, w)[0])(xs))
    found = func.vmap(func.grad(lambda x, w: net(x, w)[0].sum(), (0, 1)), (0, None))(xs, w)
    wanted = func.vmap(func.grad(lambda x, w: plain(x, w)[0].sum(), (0, 1)), (0, None))(xs, w)
    for a, b in zip(found, wanted):
        assert_close(a, b)
    batch = func.vmap(lambda x, w: net(x, w)[0].sum(), (0, None))
    assert_close(func.grad(lambda w: batch(xs, w).sum())(w),
                 func.grad(lambda w: sum(plain(x, w)[0].sum() for x in xs))(w))


def test_tensors_taken_from_around_are_summed():
    w = real(3, 3, seed=1)
    deep = w * 2
    op = ops.compose(fresh(), lambda x: (x @ w @ deep).tanh() @ deep + w)
    x = real(3, 3)
    found = tl.autograd.grad(op(op(x)).sum(), [x, w], retain_graph=True)
    plain = lambda x: (x @ w @ deep).tanh() @ deep + w      # noqa: E731
    for a, b in zip(found, tl.autograd.grad(plain(plain(x)).sum(), [x, w])):
        assert_close(a, b)
    again = ops.compose(fresh(), lambda x: (x @ w).tanh() @ (w * 2))
    assert gradgradcheck(lambda x, w: again(x), (x, w))


def test_a_tensor_given_twice_to_a_composed_operation_has_the_sum_of_both_gradients():
    product = ops.compose(fresh(), lambda a, b: a * b.exp())
    x = real(2)
    product(x, b=x).sum().backward()
    assert_close(x.grad, ((1 + x) * x.exp()).detach())
    assert gradgradcheck(lambda x: product(b=x, a=x), (x,))


def test_a_composed_graph_is_released_and_retained():
    square = ops.compose(fresh(), lambda x: x * x)
    x = real(2)
    y = square(x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert_close(x.grad, 4 * x.detach())
    with pytest.raises(RuntimeError, match="was released .* retain_graph=True"):
        (square(x).sum() * 0 + y).backward()


def test_a_sweep_inside_does_not_look_below_its_inputs():
    """So a chain of n composed operations costs n, not n * n; nothing below is released."""
    x = real(2)
    below = x.exp()
    y = below * below.cos()
    with tl.no_grad():
        (g,) = sweep_inside((y,), (tl.ones_like(y),), (below,))
    assert_close(g, (below.cos() - below * below.sin()).detach())
    below.sum().backward()
    assert_close(x.grad, x.detach().exp())


def test_composed_operations_without_a_graph():
    net, plain = nested()
    x, w = real(3, 3), real(3, 3, seed=1)
    with tl.no_grad():
        assert not net(x, w)[0].requires_grad
    assert not net(x.detach(), w.detach())[0].requires_grad
    same = ops.compose(fresh(), lambda x: x)
    same(x).sum().backward()
    assert_close(x.grad, tl.ones_like(x))


def test_transforms_go_through_composed_operations():
    net, plain = nested()
    x, w = (real(3, 3, seed=i).detach() for i in range(2))
    for transformed in (
            lambda f: func.jvp(f, (x, w), (w, x)),
            lambda f: func.linearize(f, x, w)[1](w, x),
            lambda f: func.grad(lambda x: f(x, w)[0].sum())(x),
            lambda f: func.hessian(lambda x: f(x, w)[0].sum())(x),
            lambda f: func.vmap(f, (0, None))(x.expand(2, 3, 3), w),
            lambda f: func.vmap(func.grad(lambda x: f(x, w)[1].sum()))(x.expand(2, 3, 3)),
            lambda f: func.grad(lambda w: func.vmap(lambda x: f(x, w)[0])(x[None]).sum())(w)):
        assert_close(transformed(net), transformed(plain))


def test_bad_composed_operations():
    x = real(2)
    writes = ops.compose(fresh(), lambda x: x.mul_(2))
    with pytest.raises(RuntimeError, match="wrote into one of its tensors"):
        writes(x * 1)
    with pytest.raises(TypeError, match="returns Tensors, got int"):
        ops.compose(fresh(), lambda x: (x, 3))(x)
    with pytest.raises(TypeError, match="fun must be a function"):
        ops.compose(fresh(), 3)
    broken = ops.compose(fresh(), lambda x: scaled_product()(x, x))
    y = broken(x).sum()
    with pytest.raises(RuntimeError, match="has no gradient for its argument 'x'") as caught:
        y.backward()
    assert broken.name in caught.value.__notes__[0]
    x.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_a_gradient_names_the_attribute_that_it_lacks():
    x = tl.ones(3)
    with pytest.raises(TypeError, match="einsum: missing required argument 'equation'"):
        tl.ops.registry["einsum"].gradient(x, x)
