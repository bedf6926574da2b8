"""Hooks: when they run, what they may change, and that they go away."""

import copy
import gc
import pickle
import weakref
from collections import namedtuple

import pytest

import tensorlib as tl
from tensorlib import nn
from tensorlib.nn.modules import module as hooks_for_all


class Pair(nn.Module):
    """Two inputs and a keyword in, two outputs out."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(tl.ones(3))

    def forward(self, x, y, *, factor=1.0):
        if factor == 0:
            raise ZeroDivisionError("no factor")
        return x * self.weight * factor, y + x


def doubled(module, args, output):
    """A hook that can be pickled."""
    return output * 2


X = tl.tensor([1.0, 2.0, 3.0])


# ---- forward ---------------------------------------------------------------------------------

def test_the_order_of_hooks():
    layer, seen = nn.Identity(), []
    handles = [
        layer.register_forward_pre_hook(lambda m, args: seen.append("pre 1")),
        layer.register_forward_pre_hook(lambda m, args: seen.append("pre 0"), prepend=True),
        layer.register_forward_hook(lambda m, args, out: seen.append("post 1")),
        layer.register_forward_hook(lambda m, args, out: seen.append("post 0"), prepend=True),
        hooks_for_all.register_module_forward_pre_hook(lambda m, args: seen.append("all pre")),
        hooks_for_all.register_module_forward_hook(lambda m, args, out: seen.append("all post"))]
    layer(X)
    assert seen == ["all pre", "pre 0", "pre 1", "all post", "post 0", "post 1"]
    for handle in handles:
        handle.remove()
        handle.remove()
    layer(X)
    assert len(seen) == 6


def test_hooks_change_arguments_and_outputs():
    layer = Pair()
    layer.register_forward_pre_hook(lambda m, args: (args[0] * 2, args[1]))
    layer.register_forward_pre_hook(
        lambda m, args, kwargs: (args, {**kwargs, "factor": 10.0}), with_kwargs=True)
    layer.register_forward_hook(
        lambda m, args, kwargs, out: out[0] + kwargs["factor"], with_kwargs=True)
    assert layer(X, X).tolist() == [30, 50, 70]
    single = nn.Identity()
    single.register_forward_pre_hook(lambda m, args: args[0] + 1)        # no tuple
    assert single(X).tolist() == [2, 3, 4]


@pytest.mark.parametrize("register", [
    nn.Module.register_forward_hook, nn.Module.register_forward_pre_hook,
    nn.Module.register_full_backward_hook, nn.Module.register_full_backward_pre_hook,
    nn.Module.register_state_dict_pre_hook, nn.Module.register_load_state_dict_post_hook,
    lambda m, hook: hooks_for_all.register_module_forward_hook(hook),
    lambda m, hook: hooks_for_all.register_module_module_registration_hook(hook)])
def test_a_hook_is_a_function(register):
    layer = nn.Linear(3, 3)
    with pytest.raises(TypeError, match="a hook must be callable, got int"):
        register(layer, 3)
    assert layer(X).shape == (3,) and len(layer.state_dict()) == 2


def test_a_handle_ends_its_hook_after_a_with_block():
    layer = nn.Identity()
    with layer.register_forward_hook(doubled):
        assert layer(X).tolist() == [2, 4, 6]
    assert layer(X).tolist() == [1, 2, 3]
    layer.register_forward_hook(doubled)
    layer._forward_hooks.clear()
    assert layer(X).tolist() == [1, 2, 3]


def test_a_pre_hook_with_kwargs_returns_both():
    layer = Pair()
    layer.register_forward_pre_hook(lambda m, args, kwargs: args, with_kwargs=True)
    with pytest.raises(RuntimeError, match="must return None or a tuple"):
        layer(X, X, factor=2.0)


def test_hooks_that_are_always_called():
    layer, seen = Pair(), []
    layer.register_forward_hook(lambda m, args, out: seen.append(("usual", out)))
    layer.register_forward_hook(lambda m, args, out: seen.append(("always", out)), always_call=True)
    with pytest.raises(ZeroDivisionError, match="no factor"):
        layer(X, X, factor=0)
    assert seen == [("always", None)]
    seen.clear()
    layer(X, X)
    assert [name for name, _ in seen] == ["usual", "always"]


def test_hooks_that_are_always_called_see_how_far_it_came():
    def fails(*args):
        raise ValueError("no")

    for register, there in ((nn.Module.register_forward_pre_hook, False),
                            (nn.Module.register_forward_hook, True)):
        layer, seen = nn.Identity(), []
        register(layer, fails)
        layer.register_forward_hook(lambda m, args, out: seen.append(out), always_call=True)
        with pytest.raises(ValueError, match="no"):
            layer(X)
        assert seen == [X if there else None]


def test_a_second_error_is_a_warning():
    layer = Pair()

    def fails(module, args, output):
        raise ValueError("second")

    layer.register_forward_hook(fails, always_call=True)
    with pytest.warns(UserWarning, match="second"), pytest.raises(ZeroDivisionError):
        layer(X, X, factor=0)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_hooks_go_along_with_copies(copied):
    layer = nn.Identity()
    handle = layer.register_forward_hook(doubled)
    other = copied(layer)
    handle.remove()
    assert layer(X).tolist() == [1, 2, 3] and other(X).tolist() == [2, 4, 6]


# ---- backward --------------------------------------------------------------------------------

def gradients(layer, *args, **kwargs):
    leaves = [x.clone().requires_grad_() for x in args]
    first, second = layer(*leaves, **kwargs)
    (first * tl.tensor([1.0, 10.0, 100.0]) + second * 2).sum().backward()
    return [leaf.grad.tolist() for leaf in leaves]


def test_full_backward_hooks_see_the_gradients():
    layer, seen = Pair(), []
    layer.register_full_backward_pre_hook(lambda m, grad_out: seen.append(("pre", grad_out)))
    layer.register_full_backward_hook(lambda m, grad_in, grad_out: seen.append((grad_in, grad_out)))
    assert gradients(layer, X, X) == [[3, 12, 102], [2, 2, 2]]
    (name, before), (grad_in, grad_out) = seen
    assert name == "pre" and [g.tolist() for g in before] == [[1, 10, 100], [2, 2, 2]]
    assert [g.tolist() for g in grad_out] == [[1, 10, 100], [2, 2, 2]]
    assert [g.tolist() for g in grad_in] == [[3, 12, 102], [2, 2, 2]]


def test_backward_hooks_change_gradients():
    layer = Pair()
    layer.register_full_backward_pre_hook(lambda m, grad_out: (grad_out[0] * 2, grad_out[1]))
    layer.register_full_backward_hook(lambda m, grad_in, grad_out: (grad_in[0], grad_in[1] * 0))
    assert gradients(layer, X, X) == [[4, 22, 202], [0, 0, 0]]


def test_backward_hooks_of_inputs_without_gradients():
    layer, seen = nn.Linear(3, 2), []
    layer.register_full_backward_hook(lambda m, *grads: seen.append(grads))
    layer(X).sum().backward()
    (grad_in, (grad_out,)), = seen
    assert grad_in == (None,) and grad_out.tolist() == [1, 1]
    seen.clear()
    with tl.no_grad():
        layer(X)
    layer.requires_grad_(False)(X)
    assert not seen


@pytest.mark.parametrize("kind", [tuple, namedtuple("Named", "first second")._make])
def test_outputs_keep_their_type(kind):
    class Several(nn.Module):
        def forward(self, x):
            return kind((x * 2, x * 3))

    layer, seen = Several(), []
    plain = layer(X)
    layer.register_full_backward_hook(lambda m, grad_in, grad_out: seen.append(len(grad_out)))
    out = layer(X.clone().requires_grad_())
    assert type(out) is type(plain) and [x.tolist() for x in out] == [x.tolist() for x in plain]
    (out[0] + out[1]).sum().backward()
    assert seen == [2]


def test_gradients_that_come_past_the_outputs_are_shown_to_nobody():
    """Those of tensors in a dict, of which hooks see no gradient."""
    class InDict(nn.Module):
        def forward(self, x):
            return {"out": x * 2}

    layer, seen, x = InDict(), [], X.clone().requires_grad_()
    layer.register_full_backward_hook(lambda m, *grads: seen.append(grads))
    layer(x)["out"].sum().backward()
    assert not seen and x.grad.tolist() == [2, 2, 2]


def test_what_is_no_tensor_has_no_gradient():
    class Scaled(nn.Module):
        def forward(self, x, factor):
            return x * factor

    layer, seen = Scaled(), []
    layer.register_full_backward_hook(lambda m, grad_in, grad_out: seen.append(grad_in))
    layer(X.clone().requires_grad_(), 3.0).sum().backward()
    assert seen[0][0].tolist() == [3, 3, 3] and seen[0][1] is None


def test_the_wrong_number_of_gradients():
    layer = Pair()
    layer.register_full_backward_hook(lambda m, grad_in, grad_out: (grad_in[0],))
    with pytest.raises(RuntimeError, match="returned 1 gradients for 2"):
        gradients(layer, X, X)


def test_backward_hooks_of_all_modules():
    net, seen = nn.Sequential(nn.Linear(3, 3), nn.Tanh()), []
    with hooks_for_all.register_module_full_backward_hook(
            lambda m, grad_in, grad_out: seen.append(type(m).__name__)):
        with hooks_for_all.register_module_full_backward_pre_hook(
                lambda m, grad_out: seen.append("to " + type(m).__name__)):
            net(X.clone().requires_grad_()).sum().backward()
    assert seen == ["to Sequential", "to Tanh", "Tanh", "to Linear", "Linear", "Sequential"]
    net(X.clone().requires_grad_()).sum().backward()
    assert len(seen) == 6


def test_gradients_with_hooks_can_be_differentiated():
    net = nn.Sequential(nn.Linear(3, 1), nn.Tanh()).double()
    plain = copy.deepcopy(net)
    net[0].register_full_backward_hook(lambda m, grad_in, grad_out: None)
    found = []
    for each in (net, plain):
        x = X.double().requires_grad_()
        slope, = tl.autograd.grad(each(x), x, create_graph=True)
        found.append(tl.autograd.grad((slope ** 2).sum(), x)[0])
    assert tl.allclose(*found)


def test_backward_hooks_leave_alone_what_requires_no_gradient():
    class Scaled(nn.Module):
        def forward(self, x, scale, at):
            seen.append((x.requires_grad, scale.requires_grad))
            return x * scale, scale * 2, at

    seen, module, x = [], Scaled(), tl.ones(2, requires_grad=True)
    module.register_full_backward_hook(lambda m, grad_in, grad_out: seen.append(
        [[None if g is None else g.tolist() for g in grads] for grads in (grad_in, grad_out)]))
    y, scale, _ = module(x, tl.tensor([3.0, 4.0]), tl.tensor(1))
    y.sum().backward()
    assert not scale.requires_grad
    assert seen == [(True, False), [[[3.0, 4.0], [0.0, 0.0], 0], [[1.0, 1.0], None, None]]]


def test_a_graph_with_hooks_is_gone_at_once():
    """Its memory does not wait for the collector."""
    layer = nn.Linear(3, 3)
    layer.register_full_backward_hook(lambda m, grad_in, grad_out: None)
    gc.collect()
    gc.disable()
    try:
        x = X.clone().requires_grad_()
        out, gone = layer(x).sum(), weakref.ref(x)
        out.backward()
        del x, out
        assert gone() is None
    finally:
        gc.enable()


# ---- registration ----------------------------------------------------------------------------

def test_hooks_on_registration():
    seen = []

    def sees(module, name, member):
        seen.append((type(member).__name__, name))

    with hooks_for_all.register_module_parameter_registration_hook(sees), (
            hooks_for_all.register_module_buffer_registration_hook(sees)), (
            hooks_for_all.register_module_module_registration_hook(sees)):
        nn.Sequential(nn.Linear(2, 1))
        nn.Module().register_buffer("steps", tl.zeros(()))
    assert seen == [("Parameter", "weight"), ("Parameter", "bias"), ("Linear", "0"),
                    ("Tensor", "steps")]
    with hooks_for_all.register_module_module_registration_hook(
            lambda module, name, member: nn.Identity()):
        assert isinstance(nn.Sequential(nn.ReLU())[0], nn.Identity)


def test_the_dicts_of_hooks_have_the_functions():
    """Libraries look for theirs there, take them out, and put functions in."""
    layer = nn.Identity()
    layer.register_forward_hook(doubled, always_call=True)
    assert list(layer._forward_hooks.values()) == [doubled]
    layer._forward_pre_hooks[7] = lambda module, args: (args[0] + 1,)
    assert layer(X).tolist() == [4, 6, 8]
    layer._forward_hooks = {}
    assert layer(X).tolist() == [2, 3, 4]
    nn.utils.prune.l1_unstructured(pruned := nn.Linear(2, 2), "weight", 0.5)
    hooks = pruned._forward_pre_hooks
    for key in list(hooks):
        assert isinstance(hooks[key], nn.utils.prune.BasePruningMethod)
        hooks.pop(key).remove(pruned)
    assert sorted(pruned.state_dict()) == ["bias", "weight"] and not hooks


def test_handles_have_numbers_that_find_the_hook_again():
    layer, optimizer = nn.Linear(1, 1), tl.optim.SGD([tl.ones(1, requires_grad=True)], 0.1)
    handles = [layer.register_forward_hook(doubled), layer.register_forward_pre_hook(print),
               layer.register_full_backward_hook(print), optimizer.register_step_pre_hook(print),
               layer.weight.register_hook(print)]
    numbers = [handle.id for handle in handles]
    assert all(isinstance(number, int) for number in numbers) and len(set(numbers)) == 5
    other = layer.register_forward_hook(print)
    assert layer._forward_hooks[handles[0].id] is doubled
    layer._forward_hooks.move_to_end(other.id, last=False)
    assert list(layer._forward_hooks.values()) == [print, doubled]
    again = pickle.loads(pickle.dumps(layer))
    last = again.register_forward_hook(print)
    assert list(again._forward_hooks.values()) == [print, doubled, print] and last.id != other.id


def test_classes_with_a_state_dict_of_their_own_call_its_hooks():
    layer, seen = nn.Linear(2, 1), []
    assert not layer._state_dict_hooks and not layer._state_dict_pre_hooks
    before = layer.register_state_dict_pre_hook(lambda *args: seen.append(args))
    after = layer._register_state_dict_hook(lambda module, state, prefix, local: {"all": prefix})
    for hook in layer._state_dict_pre_hooks.values():
        hook(layer, "a.", False)
    for hook in layer._state_dict_hooks.values():
        assert hook(layer, {}, "a.", {}) == {"all": "a."}
    assert seen == [(layer, "a.", False)]
    assert list(layer._state_dict_hooks) == [after.id]
    assert list(layer._state_dict_pre_hooks) == [before.id]
    layer._state_dict_hooks.clear()
    assert list(layer.state_dict()) == ["weight", "bias"]
