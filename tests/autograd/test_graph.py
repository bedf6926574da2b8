"""The graph that operations record: leaves, nodes, their names and their links."""

import gc
import weakref

import pytest
from cases import each
from tensors import leaf

import tensorlib as tl
from tensorlib._core.sweep.python_nodes import payload_of
from tensorlib.testing import assert_close


def test_what_a_user_makes_is_a_leaf():
    for x in (tl.ones(2), leaf(1.0), tl.ones(2).tanh(), leaf(1.0).detach()):
        assert x.is_leaf
        assert x.grad_fn is None


def test_results_that_require_grad_are_no_leaves():
    y = leaf(1.0).tanh()
    assert y.requires_grad
    assert not y.is_leaf
    assert y.grad_fn is not None


def test_one_input_that_requires_grad_is_enough():
    a, x = tl.ones(1, dtype=tl.float64), leaf(2.0)
    assert not (a * a).requires_grad
    assert (a * x).requires_grad and (x * a).requires_grad
    assert not (a > x).requires_grad


@pytest.mark.parametrize(
    "operation, name",
    [
        (lambda x: x.tanh(), "TanhBackward0"),
        (lambda x: x * x, "MulBackward0"),
        (lambda x: x + 1, "AddBackward0"),
        (lambda x: x - 2, "SubBackward0"),
        (lambda x: x.exp(), "ExpBackward0"),
        (lambda x: x.sum(), "SumBackward0"),
        (lambda x: -x, "NegBackward0"),
    ],
)
def test_nodes_are_named_for_their_operation(operation, name):
    node = operation(leaf(1.0, 2.0)).grad_fn
    assert node.name() == name
    assert name in repr(node)


@pytest.mark.parametrize("operation", [
    lambda x: 2 * x, lambda x: x * 2, lambda x: 2 + x, lambda x: x + 2,
])
def test_sums_and_products_with_numbers_show_the_tensor_first(operation):
    x = leaf(1.0, 2.0)
    (node, _), (nothing, _) = operation(x).grad_fn.next_functions
    assert node.variable is x and nothing is None


def test_each_operation_has_a_class_of_nodes():
    x = leaf(1.0, 2.0)
    node = x.exp().tanh().sum().grad_fn
    seen = []
    while node is not None:
        seen.append(node)
        node = node.next_functions[0][0] if node.next_functions else None
    assert [type(each).__name__ for each in seen] == [
        "SumBackward0", "TanhBackward0", "ExpBackward0", "AccumulateGrad"]
    assert all(isinstance(each, tl.autograd.graph.Node) for each in seen)
    assert type(x.sin().sum().grad_fn) is type(seen[0])
    assert type(tl.autograd.graph.get_gradient_edge(x).node) is type(seen[-1])
    with pytest.raises(TypeError, match="cannot create"):
        type(seen[0])()


def test_a_deep_graph_dies_whose_nodes_were_all_seen():
    x = leaf(1.0)
    y = x
    for _ in range(50_000):
        y = y * 1.0
    node, count = y.grad_fn, 0
    while node.next_functions:
        node, count = node.next_functions[0][0], count + 1
    assert count == 50_000 and node.variable is x
    y.backward()
    assert_close(x.grad, [1.0])
    dead = weakref.ref(watched_with_a_class())
    del y, node
    gc.collect()
    assert dead() is None


def watched_with_a_class():
    y = Watched([1.0]).requires_grad_() * 2
    y.grad_fn.metadata["node"] = y.grad_fn, y
    return y


def test_next_functions_lead_to_the_inputs():
    x, w = leaf(1.0), leaf(2.0)
    hidden = x.exp()
    node = (hidden * w).grad_fn
    (first, first_output), (second, second_output) = node.next_functions
    assert first.name() == "ExpBackward0"
    assert second.name().endswith("AccumulateGrad")
    assert second.variable is w
    assert (first_output, second_output) == (0, 0)
    ((below, _),) = first.next_functions
    assert below.variable is x


def test_an_input_without_gradient_has_no_next_function():
    node = (leaf(1.0) * tl.ones(1, dtype=tl.float64)).grad_fn
    assert [following is None for following, _ in node.next_functions] == [False, True]
    assert node.next_functions[1] == (None, 0)


def test_gradients_that_fan_in_are_summed():
    x = leaf(3.0)
    (x * x + x * 5 + x).sum().backward()
    assert_close(x.grad, [2 * 3.0 + 5 + 1])


def test_a_value_used_by_many_sums_all_of_them():
    x = leaf(0.5, -1.0)
    hidden = x.exp()
    sum((hidden * k).sum() for k in range(100)).backward()
    assert_close(x.grad, x.detach().exp() * sum(range(100)))


def test_a_diamond_visits_its_top_once():
    """Without counting dependents, n diamonds in a row would cost 2^n visits."""
    x = leaf(1.0)
    y = x
    for _ in range(60):
        y = y * 0.5 + y * 0.5
    y.sum().backward()
    assert_close(x.grad, [1.0])


def test_fan_in_does_not_write_into_a_gradient_that_others_hold():
    a, b = leaf(1.0), leaf(2.0)
    total = a + b  # both get the same incoming gradient
    (total.sum() + a.sum()).backward()
    assert_close(a.grad, [2.0])
    assert_close(b.grad, [1.0])


def test_the_gradient_passed_in_is_left_as_it_was():
    x, g = leaf(1.0, 2.0), tl.tensor([3.0, 4.0], dtype=tl.float64)
    (x + x).backward(g)
    x.grad.add_(1)
    assert_close(g, [3.0, 4.0])


@pytest.mark.parametrize("view", [lambda x: x.t(), lambda x: x[0], lambda x: x.reshape(-1)])
def test_gradients_flow_through_views(view):
    x = tl.ones(2, 3, dtype=tl.float64, requires_grad=True)
    y = view(x)
    (y * y).sum().backward()
    expected = tl.zeros(2, 3, dtype=tl.float64)
    view(expected).copy_(2 * tl.ones(y.shape, dtype=tl.float64))
    assert_close(x.grad, expected)


def test_in_place_on_a_view_reaches_its_base():
    x = leaf(1.0, 2.0, 3.0)
    y = x * 1
    y[1].mul_(10)
    y.sum().backward()
    assert_close(y, [1.0, 20.0, 3.0])
    assert_close(x.grad, [1.0, 10.0, 1.0])


def test_in_place_on_a_base_reaches_its_view():
    x = leaf(1.0, 2.0)
    y = x * 1
    first = y[0]
    y.mul_(3)
    first.backward()
    assert_close(x.grad, [3.0, 0.0])


def test_in_place_operations_enter_the_graph():
    x = leaf(1.0, 2.0)
    y = x * 2
    y += x
    y *= 3
    y.sum().backward()
    assert_close(x.grad, [9.0, 9.0])


def test_detach_shares_memory_but_not_the_graph():
    x = leaf(1.0, 2.0)
    y = x.detach()
    assert not y.requires_grad and y.is_leaf
    assert y.data_ptr() == x.data_ptr()
    (x * x.detach()).sum().backward()
    assert_close(x.grad, [1.0, 2.0])


def test_requires_grad_can_be_switched_on_leaves():
    x = tl.ones(2)
    assert x.requires_grad_() is x
    assert x.requires_grad
    x.requires_grad = False
    assert not (x * 2).requires_grad
    assert not x.requires_grad_(False).requires_grad


def test_retain_grad_keeps_the_gradient_of_a_result():
    x = leaf(2.0)
    y, z = x * 3, x * 4
    y.retain_grad()
    (y * y + z).sum().backward()
    assert_close(y.grad, [12.0])
    assert y.retains_grad and not z.retains_grad


def test_a_gradient_can_be_set_and_cleared():
    x = leaf(1.0, 2.0)
    x.grad = tl.ones(2, dtype=tl.float64)
    (x * 2).sum().backward()
    assert_close(x.grad, [3.0, 3.0])
    x.grad = None
    assert x.grad is None


def test_broadcast_inputs_get_gradients_of_their_own_shape():
    a = tl.ones(3, 1, dtype=tl.float64, requires_grad=True)
    b = tl.ones(4, dtype=tl.float64, requires_grad=True)
    c = tl.ones((), dtype=tl.float64, requires_grad=True)
    (a * b * c).sum().backward()
    assert_close(a.grad, [[4.0]] * 3)
    assert_close(b.grad, [3.0] * 4)
    assert_close(c.grad, 12.0)


class Watched(tl.Tensor):
    """A tensor that can be referred to weakly, whatever compiled tensors allow."""


def leaf_in_a_cycle():
    x = Watched([1.0, 2.0])
    x.requires_grad_()
    (x * x).exp().sum().backward(create_graph=True)     # x.grad has a graph that leads to x
    return weakref.ref(x)


def hook_in_a_cycle():
    x = tl.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: g + 0 * y)
    return weakref.ref(y)


def hook_on_a_leaf_with_a_later_result():
    x, later = tl.ones(2, requires_grad=True), []
    x.register_hook(lambda g: later and None)
    later.append((x * 2).exp().sin())
    return weakref.ref(later[0])


def hook_of_a_node():
    y = tl.ones(2, requires_grad=True) * 2
    y.grad_fn.register_hook(lambda grads, arrived: y and None)
    return weakref.ref(y)


def metadata_of_a_node():
    y = tl.ones(2, requires_grad=True) * 2
    y.grad_fn.metadata["output"] = y
    return weakref.ref(y)


class KeepsItsOutput(tl.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.out, ctx.later = x * 2, []
        return ctx.out

    @staticmethod
    def backward(ctx, g):
        return 2 * g


def context_with_an_output():
    return weakref.ref(KeepsItsOutput.apply(tl.ones(2, requires_grad=True)))


def context_with_a_later_result():
    y = KeepsItsOutput.apply(tl.ones(2, requires_grad=True))
    z = y.exp().sin()
    payload_of(y.grad_fn).later.append(z)
    return weakref.ref(z)


def retained_gradient_with_a_graph():
    y = tl.ones(2, requires_grad=True) * 2
    y.retain_grad()
    (y * y).exp().sum().backward(create_graph=True)
    return weakref.ref(y)


@each("make", [
    leaf_in_a_cycle, hook_in_a_cycle, hook_on_a_leaf_with_a_later_result, hook_of_a_node,
    metadata_of_a_node, context_with_an_output, context_with_a_later_result,
    retained_gradient_with_a_graph])
def test_cycles_are_collected(make):
    dead = make()
    gc.collect()
    assert dead() is None


def test_what_is_in_no_cycle_costs_the_collector_nothing():
    x = tl.ones(2, requires_grad=True)
    y = (x * 2).exp()
    assert not gc.is_tracked(x) and not gc.is_tracked(y)
    y.register_hook(lambda g: None)
    assert gc.is_tracked(y) and gc.is_tracked(y * 2) and gc.is_tracked(y.grad_fn)


def test_what_dies_at_the_end_of_a_sweep_may_run_one_itself():
    x = leaf(2.0, 3.0)
    y = x * x
    fourth_powers = (y * y).sum()
    found = []

    class Last:
        def __del__(self):
            found.append(tl.autograd.grad(fourth_powers, x, retain_graph=True)[0])

    class Holds(tl.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            ctx.last = Last()
            return a.clone()

        @staticmethod
        def backward(ctx, g):
            return g

    z = Holds.apply(y)
    out = z.sum()

    def let_go(g):
        z.detach_()
        out.detach_()

    y.register_hook(let_go)
    out.backward(retain_graph=True)
    assert_close(found[0], tl.tensor([32.0, 108.0], dtype=tl.float64))
    assert_close(x.grad, tl.tensor([4.0, 6.0], dtype=tl.float64))
