"""Hooks: what they are given, what they may change, their order, and which sweeps run them.

The rules are those of PyTorch's notes, "Backward Hooks execution" of "Autograd mechanics".
"""

import gc
import weakref

import pytest
from cases import each
from tensors import leaf

import tensorlib as tl
from tensorlib.testing import assert_close


# ---- hooks of tensors ----------------------------------------------------------------------------

def test_hooks_run_in_the_order_of_registration_and_see_what_earlier_ones_made():
    x, seen = leaf(1.0), []
    x.register_hook(lambda g: seen.append(g.item()) or g * 2)
    x.register_hook(lambda g: seen.append(g.item()) or g + 1)
    x.register_hook(lambda g: seen.append(g.item()))
    (x * 3).sum().backward()
    assert seen == [3.0, 6.0, 7.0]
    assert_close(x.grad, [7.0])


def test_a_hook_of_a_result_changes_what_flows_on():
    x = leaf(1.0, 2.0)
    y = x * 2
    y.register_hook(lambda g: g * 10)
    y.sum().backward()
    assert_close(x.grad, [20.0, 20.0])


def test_a_hook_sees_the_whole_gradient_once():
    x, seen = leaf(1.0), []
    y = x * 1
    y.register_hook(lambda g: seen.append(g.item()))
    (y * 2 + y * 3 + y.exp() * 0).sum().backward()
    assert seen == [5.0]


def test_a_removed_hook_runs_no_more_and_removing_twice_is_no_error():
    x, seen = leaf(1.0), []
    handle = x.register_hook(lambda g: seen.append(1))
    (x * x).sum().backward()
    handle.remove()
    handle.remove()
    (x * x).sum().backward()
    assert seen == [1]
    with x.register_hook(lambda g: seen.append(2)):
        (x * x).sum().backward()
    (x * x).sum().backward()
    assert seen == [1, 2]


def test_hooks_removed_and_added_by_a_hook_count_from_the_next_sweep_on():
    x, seen = leaf(1.0), []

    def first(g):
        seen.append("first")
        second.remove()
        if len(seen) == 1:
            x.register_hook(lambda g: seen.append("third"))

    x.register_hook(first)
    second = x.register_hook(lambda g: seen.append("second"))
    (x * x).sum().backward()
    assert seen == ["first", "second"]
    (x * x).sum().backward()
    assert seen == ["first", "second", "first", "third"]


def test_a_hook_stays_with_the_value_it_was_registered_for():
    """Written over later, the old value keeps its hook and the new one gets those that follow."""
    x, seen = leaf(1.0, 2.0), []
    y = x * 1
    y.register_hook(lambda g: seen.append(("old", g.tolist())))
    y.mul_(3)
    y.register_hook(lambda g: seen.append(("new", g.tolist())))
    y.sum().backward()
    assert seen == [("new", [1.0, 1.0]), ("old", [3.0, 3.0])]


@each(
    "result, error, text",
    [(lambda g: 5, TypeError, "int"), (lambda g: "g", TypeError, "str"),
     (lambda g: g.sum(), RuntimeError, "size"), (lambda g: g.float(), RuntimeError, "type")],
)
@each("of_leaf", [True, False])
def test_what_a_hook_returns_must_look_like_the_gradient(result, error, text, of_leaf):
    x = leaf(1.0, 2.0)
    y = x * 1
    handle = (x if of_leaf else y).register_hook(result)
    loss = (y * y).sum()
    with pytest.raises(error, match=f"hook.*{text}"):
        loss.backward(retain_graph=True)
    handle.remove()
    loss.backward()                                  # the graph is still usable
    assert_close(x.grad, [2.0, 4.0])


def test_an_exception_of_a_hook_ends_the_sweep_and_leaves_the_graph_usable():
    x = leaf(1.0)
    y = x * x

    def fail(g):
        raise KeyError("mine")

    handle = y.register_hook(fail)
    with pytest.raises(KeyError, match="mine"):
        y.sum().backward()
    handle.remove()
    y.sum().backward()
    assert_close(x.grad, [2.0])


def test_hooks_are_recorded_only_with_create_graph():
    x, modes = leaf(1.0), []
    x.register_hook(lambda g: modes.append(tl.is_grad_enabled()))
    (x * x).sum().backward()
    (x * x).sum().backward(create_graph=True)
    assert modes == [False, True]
    x.grad = None


def test_a_hook_under_create_graph_is_differentiated():
    x = leaf(3.0)
    y = x * 1
    handle = y.register_hook(lambda g: g * y)
    (g,) = tl.autograd.grad(y.sum(), x, create_graph=True)
    handle.remove()
    g.sum().backward()
    assert_close(g, [3.0])
    assert_close(x.grad, [1.0])


def test_registering_needs_a_gradient():
    plain, x = tl.ones(2), leaf(1.0)
    for method in ("register_hook", "register_post_accumulate_grad_hook"):
        with pytest.raises(RuntimeError, match="require"):
            getattr(plain, method)(print)
    with pytest.raises(RuntimeError, match="non-leaf"):
        (x * 2).register_post_accumulate_grad_hook(print)
    with pytest.raises(RuntimeError, match="retain_grad"):
        plain.retain_grad()


# ---- which sweeps run them -----------------------------------------------------------------------

def test_grad_runs_the_hooks_of_its_inputs_though_not_their_nodes():
    x, seen = leaf(2.0), []
    y = x * x
    y.register_hook(lambda g: seen.append("tensor") or g * 5)
    y.grad_fn.register_prehook(lambda gs: seen.append("pre"))
    y.grad_fn.register_hook(lambda to, of: seen.append("node"))
    (g,) = tl.autograd.grad((y * 3).sum(), y, retain_graph=True)
    assert_close(g, [15.0])
    assert seen == ["tensor"]
    tl.autograd.grad((y * 3).sum(), [y, x])
    assert seen == ["tensor", "tensor", "pre", "node"]


def test_hooks_off_the_path_to_the_inputs_do_not_run():
    x, w, seen = leaf(2.0), leaf(3.0), []
    w.register_hook(lambda g: seen.append(1))
    tl.autograd.grad((x * w).sum(), x)
    assert seen == []


def test_grad_does_not_run_post_accumulate_hooks():
    x, seen = leaf(2.0), []
    x.register_post_accumulate_grad_hook(lambda x: seen.append(1))
    tl.autograd.grad((x * x).sum(), x)
    assert seen == []
    (x * x).sum().backward(inputs=[x])
    assert seen == [1]


# ---- leaves, after accumulation ------------------------------------------------------------------

def test_post_accumulate_hooks_see_the_accumulated_grad():
    x, seen = leaf(2.0), []
    x.register_post_accumulate_grad_hook(lambda x: seen.append(x.grad.item()))
    for _ in range(2):
        (x * x).sum().backward()
    assert seen == [4.0, 8.0]


def test_an_optimiser_step_in_the_sweep():
    """Each parameter is stepped when its gradient is there, and the gradient let go at once."""
    x, w = leaf(1.0), leaf(2.0)

    def step(p):
        with tl.no_grad():
            p -= 0.5 * p.grad
        p.grad = None

    handles = [p.register_post_accumulate_grad_hook(step) for p in (x, w)]
    (x * 3 + w * 4).sum().backward()
    assert x.grad is None and w.grad is None
    assert_close([x, w], [[-0.5], [0.0]])
    for handle in handles:
        handle.remove()
    (x * 3).sum().backward()
    assert_close(x.grad, [3.0])


def test_the_order_at_a_leaf():
    """Tensor hooks, pre-hooks of the node, accumulation, post-accumulate hooks, node hooks."""
    x, seen = leaf(2.0), []
    y = x * x
    node = y.grad_fn.next_functions[0][0]
    node.register_hook(lambda to, of: seen.append(("node", to, len(of))))
    x.register_post_accumulate_grad_hook(lambda x: seen.append("accumulated"))
    node.register_prehook(lambda gs: seen.append(("pre", x.grad)))
    x.register_hook(lambda g: seen.append("tensor"))
    y.sum().backward()
    assert seen == ["tensor", ("pre", None), "accumulated", ("node", (), 1)]


# ---- hooks of nodes ------------------------------------------------------------------------------

def test_the_order_at_a_node():
    x, seen = leaf(2.0), []
    y = x * 3
    y.grad_fn.register_hook(lambda to, of: seen.append("node"))
    y.grad_fn.register_prehook(lambda gs: seen.append("pre"))
    y.register_hook(lambda g: seen.append("tensor"))
    x.register_hook(lambda g: seen.append("leaf"))
    y.sum().backward()
    assert seen == ["tensor", "pre", "node", "leaf"]


def test_a_node_hook_is_given_the_gradients_of_inputs_and_outputs():
    x, w, seen = leaf(2.0), tl.tensor([5.0], dtype=tl.float64), []
    y = x * w
    y.grad_fn.register_hook(lambda to, of: seen.append((to, of)))
    (y * 10).sum().backward()
    ((to, of),) = seen
    assert_close(to[0], [50.0])
    assert to[1] is None
    assert_close(of[0], [10.0])


def test_hooks_of_a_node_replace_gradients():
    x, w = leaf(2.0), leaf(5.0)
    y = x * w
    y.grad_fn.register_prehook(lambda gs: (gs[0] * 2,))
    y.grad_fn.register_hook(lambda to, of: (to[0] + 1, None))
    y.sum().backward()
    assert_close(x.grad, [11.0])
    assert w.grad is None


def test_a_node_with_several_outputs_gets_none_for_those_unused():
    x, seen = leaf(3.0, 1.0), []
    values, _ = x.max(0)
    values.grad_fn.register_prehook(lambda gs: seen.append([g is None for g in gs]))
    values.sum().backward()
    assert seen == [[False, True]]


@pytest.mark.parametrize(
    "register, result, error",
    [("register_hook", lambda to, of: (to[0],), RuntimeError),
     ("register_hook", lambda to, of: (1, 2), TypeError),
     ("register_hook", lambda to, of: (to[0].sum(), to[1]), RuntimeError),
     ("register_prehook", lambda of: (of[0], of[0]), RuntimeError),
     ("register_prehook", lambda of: (None, 3), RuntimeError),
     ("register_prehook", lambda of: ("g",), TypeError)],
)
def test_what_node_hooks_return_is_checked(register, result, error):
    x, w = leaf(2.0, 1.0), leaf(5.0, 1.0)
    y = x * w
    handle = getattr(y.grad_fn, register)(result)
    with pytest.raises(error, match="hook"):
        y.sum().backward()
    handle.remove()
    y.sum().backward()
    assert_close(x.grad, [5.0, 1.0])


def test_a_removed_node_hook_runs_no_more():
    x, seen = leaf(2.0), []
    y = x * 3
    y.grad_fn.register_hook(lambda to, of: seen.append(1)).remove()
    y.grad_fn.register_prehook(lambda of: seen.append(1)).remove()
    y.sum().backward()
    assert seen == []


def test_a_hook_that_holds_its_node_is_collected():
    def hooked():
        y = leaf(1.0) * 2
        y.grad_fn.register_hook(lambda to, of: y)
        return weakref.ref(y)

    dead = hooked()
    gc.collect()
    assert dead() is None


# ---- retain_grad ---------------------------------------------------------------------------------

def test_retain_grad_comes_after_all_hooks():
    x = leaf(1.0)
    y = x * 1
    y.retain_grad()
    y.register_hook(lambda g: g * 2)
    y.sum().backward()
    assert_close(y.grad, [2.0])


def test_retain_grad_accumulates_over_sweeps():
    x = leaf(2.0)
    y = x * 1
    y.retain_grad()
    y.retain_grad()
    loss = (y * y).sum()
    loss.backward(retain_graph=True)
    assert_close(y.grad, [4.0])
    loss.backward()
    assert_close(y.grad, [8.0])


def test_retain_grad_is_of_the_newest_value():
    x = leaf(1.0, 2.0)
    y = x * 1
    y.retain_grad()
    y.mul_(2)
    y.mul_(3)
    y.sum().backward()
    assert_close(y.grad, [1.0, 1.0])
    assert_close(x.grad, [6.0, 6.0])


def test_retain_grad_of_a_base_and_of_its_view():
    x = leaf(1.0, 2.0, 3.0)
    y = x * 1
    view = y[1:]
    y.retain_grad()
    view.retain_grad()
    y.mul_(2)
    (view * view).sum().backward()
    assert_close(y.grad, [0.0, 8.0, 12.0])
    assert_close(view.grad, [8.0, 12.0])
    assert_close(x.grad, [0.0, 16.0, 24.0])


def test_retain_grad_of_a_leaf_does_nothing():
    x = leaf(1.0)
    x.retain_grad()
    (x * x).sum().backward()
    assert_close(x.grad, [2.0])
    assert not x.retains_grad
