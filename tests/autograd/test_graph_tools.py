"""`autograd.graph`: gradient edges, hooks on several tensors, what becomes of saved values."""

import threading
import warnings

import pytest
from tensors import leaf

import tensorlib as tl
from tensorlib import autograd
from tensorlib.autograd import checkpoint, detect_anomaly
from tensorlib.autograd.graph import (
    GradientEdge,
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    get_gradient_edge,
    increment_version,
    register_multi_grad_hook,
    save_on_cpu,
    saved_tensors_hooks,
)
from tensorlib.testing import assert_close


# ---- gradient edges ------------------------------------------------------------------------------

def test_an_edge_stands_for_its_tensor_among_the_inputs_of_grad():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    y = x * w
    loss = (y.exp() * w).sum()
    tensors = [x, y, w]
    edges = [get_gradient_edge(t) for t in tensors]
    assert edges[1] == (y.grad_fn, 0) and edges[0].node.variable is x
    wanted = autograd.grad(loss, tensors, retain_graph=True)
    for some, found in zip(wanted, autograd.grad(loss, edges, retain_graph=True)):
        assert_close(some, found)
    mixed = autograd.grad(loss, [x, edges[1]], retain_graph=True)
    assert_close(mixed[1], wanted[1])
    assert_close(autograd.grad(loss, edges[1])[0], wanted[1])


def test_an_edge_stays_with_the_value_that_its_tensor_had():
    y = leaf(0.5).sin()
    edge = get_gradient_edge(y)
    y.mul_(3)
    assert autograd.grad(y.sum(), edge)[0].item() == 3.0


def test_one_output_of_several():
    x = leaf(1.0, 2.0, 3.0)
    low, high = x.aminmax()
    edge = GradientEdge(high.grad_fn, high.output_nr)
    assert autograd.grad(low * 2 + high * 5, edge)[0].item() == 5.0


def test_backward_accumulates_at_the_edge_of_a_leaf():
    x, w = leaf(2.0), leaf(3.0)
    autograd.backward((x * w).sum(), inputs=[get_gradient_edge(x)])
    assert x.grad.item() == 3.0 and w.grad is None


@pytest.mark.parametrize("call, error, text", [
    (lambda x, y: get_gradient_edge(x.detach()), RuntimeError, "does not require gradients"),
    (lambda x, y: autograd.grad(y, GradientEdge(y.grad_fn, 1)), RuntimeError, "output 1 of Sum"),
    (lambda x, y: y.backward(inputs=[get_gradient_edge(y)]), RuntimeError, "use autograd.grad"),
    (lambda x, y: autograd.grad(y, get_gradient_edge(x.exp())), RuntimeError, "not have been used"),
    (lambda x, y: autograd.grad(y, [get_gradient_edge(x.exp())], materialize_grads=True),
     RuntimeError, "materialize_grads cannot be used"),
])
def test_edges_that_make_no_sense(call, error, text):
    x = leaf(1.0, 2.0)
    y = (x * x).sum()
    with pytest.raises(error, match=text):
        call(x, y)
    y.backward()
    assert_close(x.grad, 2 * x.detach())


@pytest.mark.parametrize("create_graph", [True, False])
def test_materialized_zeros_have_gradients_with_create_graph(create_graph):
    x, other = leaf(1.0, 2.0), leaf(3.0)
    zeros, = autograd.grad((other * 2).sum(), [x], create_graph=create_graph,
                           materialize_grads=True)
    assert zeros.tolist() == [0, 0] and zeros.requires_grad == create_graph
    if create_graph:
        assert autograd.grad(zeros.sum(), x, materialize_grads=True)[0].tolist() == [0, 0]


# ---- hooks on several tensors --------------------------------------------------------------------

def test_a_hook_on_all_is_called_when_the_last_gradient_that_comes_is_there():
    a, b = leaf(1.0), leaf(2.0)
    c, d, apart = a * b, a + b, leaf(5.0)
    calls = []
    tensors = (a, b, c, d, apart)
    handle = register_multi_grad_hook(tensors, lambda grads: calls.append(
        [None if g is None else g.item() for g in grads]))
    c.sum().backward(retain_graph=True)
    c.sum().backward(inputs=[a], retain_graph=True)
    c.sum().backward(inputs=[a, apart], retain_graph=True)       # which does not lead there
    d.sum().backward(inputs=[apart], retain_graph=True)
    autograd.grad(c.sum(), c, retain_graph=True)
    (c + d).sum().backward(retain_graph=True)
    assert calls == [[2.0, 1.0, 1.0, None, None], [2.0, None, 1.0, None, None],
                     [2.0, None, 1.0, None, None], [None, None, 1.0, None, None],
                     [3.0, 2.0, 1.0, 1.0, None]]
    handle.remove()
    c.sum().backward()
    assert len(calls) == 5


def test_a_hook_on_any_is_called_at_the_first_gradient_of_each_sweep():
    a, b = leaf(1.0), leaf(2.0)
    c = a * b
    seen = []
    with register_multi_grad_hook((a, b, c, tl.ones(1)), seen.append, mode="any"):
        for _ in range(2):
            c.sum().backward(retain_graph=True)
        autograd.grad(c.sum() * 7, a, retain_graph=True)
    c.sum().backward()
    assert [g.item() for g in seen] == [1.0, 1.0, 7.0]


def test_a_hook_on_all_in_a_sweep_inside_a_sweep():
    a = leaf(2.0)
    b = a * a
    calls = []
    register_multi_grad_hook((a, b), lambda grads: calls.append([g.item() for g in grads]))
    c, inner = b * 3, b.sum() * 10
    c.register_hook(lambda g: autograd.grad(inner, a, retain_graph=True) and None)
    c.sum().backward(retain_graph=True)
    firsts = []
    register_multi_grad_hook((c, b), lambda g: firsts.append(g.item()), mode="any")
    c.sum().backward(retain_graph=True)
    assert calls == [[40.0, 10.0], [12.0, 3.0]] * 2 and firsts == [10.0, 1.0]


def test_a_hook_that_raises_in_one_sweep_is_ready_for_the_next():
    a, b = leaf(2.0), leaf(3.0)
    calls, broken = [], [True]

    def check(grads):
        calls.append([g.item() for g in grads])
        if broken:
            raise KeyError(broken.pop())

    register_multi_grad_hook((a, b), check)
    y = (a * b).sum()
    with pytest.raises(KeyError):
        y.backward(retain_graph=True)
    y.backward()
    assert calls == [[3.0, 2.0]] * 2


def test_hooks_on_several_tensors_are_checked():
    with pytest.raises(ValueError, match="'all', 'any'"):
        register_multi_grad_hook((leaf(1.0),), print, mode="some")
    with pytest.raises(RuntimeError, match="does not require grad"):
        register_multi_grad_hook((leaf(1.0), tl.ones(1)), print)


# ---- saved values --------------------------------------------------------------------------------

def test_hooks_on_saved_values_can_be_disabled_on_one_thread():
    entered = []

    def enter():
        with saved_tensors_hooks(lambda x: x, lambda x: x):
            entered.append(True)

    with disable_saved_tensors_hooks("not here"):
        with pytest.raises(RuntimeError, match="not here"):
            enter()
        with pytest.raises(RuntimeError, match="not here"):
            checkpoint(tl.exp, leaf(1.0))
        with pytest.raises(RuntimeError, match="not here"), save_on_cpu():
            entered.append(True)
        with disable_saved_tensors_hooks("nor here"), pytest.raises(RuntimeError, match="nor here"):
            enter()
        with pytest.raises(RuntimeError, match="not here"):
            enter()
        other = threading.Thread(target=enter)
        other.start()
        other.join()
    enter()
    assert len(entered) == 2


def test_values_saved_as_copies_may_be_written_over():
    x = leaf(0.3, 0.5)
    with allow_mutation_on_saved_tensors():
        y = x.exp()
        z = (y * y.sin()).sum()
        y.zero_()
    (g,) = autograd.grad(z, x, create_graph=True)
    again = x.exp()
    wanted = autograd.grad((again * again.sin()).sum(), x, create_graph=True)[0]
    assert_close(g, wanted)
    assert_close(autograd.grad(g.sum(), x)[0], autograd.grad(wanted.sum(), x)[0])


def test_save_on_cpu_changes_nothing():
    x = leaf(2.0)
    with save_on_cpu(pin_memory=True):
        y = x * x
    assert y.grad_fn.saved_values["input"].data_ptr() == x.data_ptr()
    y.backward()
    assert x.grad.item() == 4.0


@pytest.mark.parametrize("leaf", [False, True])
@pytest.mark.parametrize("by_name", [False, True])
def test_an_argument_of_a_checkpoint_written_over_is_noticed(leaf, by_name):
    """The second run would see other values than the first."""
    x = tl.ones(3, requires_grad=True)
    w = tl.tensor([1.0, 2.0, 3.0], requires_grad=leaf)
    function = lambda x, w: (x * w).sin()           # noqa: E731
    y = checkpoint(function, x, w=w) if by_name else checkpoint(function, x, w)
    with tl.no_grad():
        w.mul_(2)
    with pytest.raises(RuntimeError, match="argument " + ("'w'" if by_name else "1")):
        y.sum().backward()
    assert x.grad is None
    checkpoint(function, x, w).sum().backward()
    assert_close(x.grad, (w * w.cos()).detach())
    z = checkpoint(lambda x: x.mul_(2).sin(), x * 1)
    with pytest.raises(RuntimeError, match="argument 0"):
        z.sum().backward()


def test_numbers_are_not_packed():
    """They are saved as 0-d tensors, which a user never made."""
    x, packed = tl.tensor([1.0, 2.0], requires_grad=True), []
    with saved_tensors_hooks(lambda x: packed.append(x.shape) or 2 * x, lambda x: x):
        y = (x * 3 + x ** 2 + x * tl.tensor(4.0)) / 0.5
    y.sum().backward()
    assert packed == [(2,), ()] and x.grad.tolist() == [2 * (3 + 4 + 8), 2 * (3 + 8 + 8)]


def test_forward_mode_passes_checkpoints_and_saved_values():
    """What forward mode needs is computed again as it was recorded, and passes the hooks."""
    def network(x, w):
        return (x * w).tanh() * x.sin()

    def kept_as_lists(x, w):
        with saved_tensors_hooks(lambda x: (x.tolist(), x.dtype),
                                 lambda kept: tl.tensor(kept[0], dtype=kept[1])):
            return network(x, w)

    x, w = tl.tensor([0.5, -0.2]), tl.tensor([1.0, 3.0])
    wanted = tl.func.jvp(network, (x, w), (w, x))
    for function in (lambda x, w: checkpoint(network, x, w), kept_as_lists):
        found = tl.func.jvp(function, (x, w), (w, x))
        assert_close(found[0], wanted[0])
        assert_close(found[1], wanted[1])
        assert_close(tl.func.hessian(lambda x: function(x, w).sum())(x),
                     tl.func.hessian(lambda x: network(x, w).sum())(x))


@pytest.mark.parametrize("as_list", [False, True])
def test_a_write_by_other_means_can_be_told(as_list):
    x = leaf(1.0)
    y = x.exp()
    z = y * 2 + y * y
    y.detach().numpy()[:] = 7
    increment_version([y] if as_list else y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()
    with tl.inference_mode():
        increment_version(tl.ones(1))            # it has no count


# ---- modes under PyTorch's names -----------------------------------------------------------------

def test_names_of_modes():
    assert autograd.grad_mode.no_grad is tl.no_grad
    assert autograd.anomaly_mode.detect_anomaly is detect_anomaly
    x = leaf(1.0)
    with autograd.set_multithreading_enabled(False):
        x.exp().backward()
    autograd.grad_mode.set_multithreading_enabled(True)(lambda: x.exp().backward())()
    assert_close(x.grad, 2 * x.detach().exp())


# ---- anomalies of gradients of gradients ---------------------------------------------------------

def test_an_anomaly_of_a_recorded_gradient_tells_of_the_operation_it_is_the_gradient_of():
    x = leaf(-1.0)
    with detect_anomaly():
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            with pytest.raises(RuntimeError, match="nan"):
                x.sqrt().sum().backward()
        assert "Previous calculation" not in str(told[0].message)
        x = leaf(4.0)
        y = x.sqrt()
        (g,) = autograd.grad(y.sum(), x, create_graph=True)
        assert g.grad_fn.metadata["parent_"].name() == "SqrtBackward0"
        outside = (g - 0.25).sqrt()
        assert "parent_" not in outside.grad_fn.metadata
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            y.detach().mul_(2)
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                g.sum().backward()
    text = str(told[0].message)
    assert text.index("Error detected in") < text.index(
        "Previous calculation was induced by SqrtBackward0. Traceback of forward call that induced")
    assert "y = x.sqrt()" in text and "create_graph=True" in text
    with warnings.catch_warnings(record=True) as told, detect_anomaly():
        warnings.simplefilter("always")
        (g,) = autograd.grad(autograd.grad(x.exp().sum(), x, create_graph=True)[0], x,
                             create_graph=True)
    assert not told
