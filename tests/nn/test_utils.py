"""`nn.utils`, `nn.init` and `functional_call`: what they refuse, and what is not in PyTorch."""

import copy
import pickle

import pytest
from cases import each

import tensorlib as tl
from tensorlib import nn
from tensorlib.func import functional_call, grad, stack_module_state, vmap
from tensorlib.nn.utils import parametrizations, parametrize, prune


class Doubled(nn.Module):
    def forward(self, x):
        return x * 2


class Invertible(Doubled):
    def right_inverse(self, x):
        return x / 2


class Longer(nn.Module):
    def forward(self, x):
        return tl.cat([x, x])


def with_gradients(*values):
    made = []
    for value in values:
        made.append(tl.ones(2, requires_grad=True))
        (made[-1] * value).sum().backward()
    return made


# ---- gradients ---------------------------------------------------------------------------------

def test_gradients_that_are_not_finite_are_named():
    made = with_gradients(1.0, float("nan"), float("inf"))
    with pytest.raises(RuntimeError, match=r"non-finite: number 1, of shape \(2,\), number 2"):
        nn.utils.clip_grad_norm_(made, 1.0, error_if_nonfinite=True)
    assert made[0].grad.tolist() == [1, 1]
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    model(tl.ones(2)).sum().backward()
    model[1].bias.grad.fill_(float("nan"))
    with pytest.raises(RuntimeError, match=r"is non-finite \(nan\).*non-finite: 1.bias"):
        nn.utils.clip_grad_norm_(model.named_parameters(), 1.0, error_if_nonfinite=True)
    assert nn.utils.clip_grad_norm_(model.parameters(), 1.0).isnan()
    w = tl.ones(2, requires_grad=True)
    (w * tl.tensor([3.0, -4.0])).sum().backward()
    assert nn.utils.clip_grad_norm_(w, 2.0, norm_type="inf") == 4 and w.grad[1] > -2.01
    assert model[0].weight.grad.isnan().all()                # as in PyTorch


def test_the_older_name_of_clipping_warns():
    first, second = with_gradients(3.0), with_gradients(3.0)
    with pytest.warns(FutureWarning, match="nn.utils.clip_grad_norm is deprecated") as caught:
        total = nn.utils.clip_grad_norm(first, 1.0, norm_type=1)
    assert caught[0].filename == __file__
    assert total == nn.utils.clip_grad_norm_(second, 1.0, norm_type=1) == 6
    assert first[0].grad.equal(second[0].grad)


@each("name, options", [
    ("uniform_", {}), ("normal_", {}), ("trunc_normal_", {}), ("xavier_uniform_", {}),
    ("xavier_normal_", {}), ("kaiming_uniform_", {}), ("kaiming_normal_", {}), ("orthogonal_", {}),
    ("sparse_", {"sparsity": 0.5})])
def test_first_values_come_from_the_given_generator_alone(name, options):
    before, found = tl.get_rng_state(), []
    for _ in range(2):
        generator = tl.Generator().manual_seed(5)
        found.append(getattr(nn.init, name)(tl.empty(8, 6), generator=generator, **options))
    assert found[0].equal(found[1]) and tl.get_rng_state().equal(before)


@each("act, error, text", [
    (lambda: nn.utils.clip_grad_norm_([3], 1.0), TypeError, "expected tensors, or pairs"),
    (lambda: nn.utils.clip_grad_norm_(tl.ones(2), "much"), ValueError, "much"),
    (lambda: nn.utils.vector_to_parameters([1.0], []), TypeError, "expected a Tensor"),
    (lambda: nn.utils.vector_to_parameters(tl.ones(1), [tl.ones(2)]), RuntimeError,
     "the parameters have 2 elements, the vector 1"),
    (lambda: nn.utils.skip_init(3), RuntimeError, "class of modules"),
    (lambda: nn.init.calculate_gain("softmax"), ValueError, "unsupported nonlinearity"),
    (lambda: nn.init.calculate_gain("leaky_relu", "a"), ValueError, "not a number"),
    (lambda: nn.init.xavier_uniform_(tl.ones(2)), ValueError, "fewer than 2"),
    (lambda: nn.init.kaiming_normal_(tl.ones(2, 2), mode="both"), ValueError, "not supported"),
    (lambda: nn.init.orthogonal_(tl.ones(2)), ValueError, "2 or more dimensions"),
    (lambda: nn.init.eye_(tl.ones(2)), ValueError, "2 dimensions"),
    (lambda: nn.init.sparse_(tl.ones(2), 0.1), ValueError, "2 dimensions"),
    (lambda: nn.init.dirac_(tl.ones(2, 2)), ValueError, "3, 4, or 5"),
    (lambda: nn.init.dirac_(tl.ones(3, 2, 2), groups=2), ValueError, "divisible"),
    (lambda: nn.utils.fuse_conv_bn_eval(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2)), RuntimeError,
     "only for eval"),
    (lambda: nn.utils.fuse_linear_bn_eval(nn.Linear(2, 3).eval(), nn.BatchNorm1d(2).eval()),
     ValueError, "gives 3 features"),
    (lambda: nn.utils.remove_weight_norm(nn.Linear(2, 2)), ValueError, "not found"),
    (lambda: nn.utils.remove_spectral_norm(nn.Linear(2, 2)), ValueError, "not found"),
    (lambda: nn.utils.weight_norm(nn.utils.weight_norm(nn.Linear(2, 2))), RuntimeError, "two"),
    (lambda: nn.utils.spectral_norm(nn.Linear(2, 2), n_power_iterations=0), ValueError, "positive"),
])
def test_what_is_refused(act, error, text):
    with pytest.raises(error, match=text):
        act()


def test_norms_of_weights_come_off_again():
    for put, remove in ((nn.utils.weight_norm, nn.utils.remove_weight_norm),
                        (nn.utils.spectral_norm, nn.utils.remove_spectral_norm)):
        layer = put(nn.Linear(3, 2)).eval()
        x = tl.ones(3)
        before = layer(x)
        assert remove(layer) is layer and tl.allclose(layer(x), before)
        assert sorted(layer.state_dict()) == ["bias", "weight"] and not layer._forward_pre_hooks


def test_a_module_without_draws():
    tl.manual_seed(3)
    first = tl.rand(1)
    tl.manual_seed(3)
    nn.utils.skip_init(nn.Linear, 3, 3)
    assert tl.equal(tl.rand(1), first)


def test_older_names_of_first_values_warn():
    with pytest.warns(FutureWarning, match="nn.init.constant is now deprecated in favor of"):
        assert nn.init.constant(tl.empty(2), 3.0).tolist() == [3, 3]
    with pytest.warns(UserWarning, match="no-op"):
        nn.init.kaiming_uniform_(tl.empty(0, 2))
    with pytest.warns(UserWarning, match="2 std"):
        nn.init.trunc_normal_(tl.empty(2), mean=9.0)
    with pytest.raises(RuntimeError, match="trunc_normal_: a must not be above b, got 2 and 1"):
        nn.init.trunc_normal_(tl.empty(2), a=2, b=1)


def test_first_values_by_a_generator():
    draws = [nn.init.xavier_normal_(tl.empty(2, 3), generator=tl.Generator().manual_seed(5))
             for _ in range(2)]
    assert tl.equal(*draws)


# ---- parametrizations --------------------------------------------------------------------------

def test_a_parametrization_comes_and_goes():
    layer = nn.Linear(2, 2)
    weight, before = layer.weight, layer.weight.detach().clone()
    parametrize.register_parametrization(layer, "weight", Doubled())
    assert parametrize.is_parametrized(layer) and parametrize.is_parametrized(layer, "weight")
    assert not parametrize.is_parametrized(layer, "bias") and tl.equal(layer.weight, before * 2)
    assert layer.parametrizations.weight.original is weight      # an optimiser has it
    assert isinstance(layer, nn.Linear) and type(layer).__name__ == "ParametrizedLinear"
    assert parametrize.type_before_parametrizations(layer) is nn.Linear
    layer(tl.ones(2)).sum().backward()
    assert weight.grad.tolist() == [[2, 2], [2, 2]]
    with pytest.raises(RuntimeError, match="does not implement right_inverse"):
        layer.weight = before
    parametrize.register_parametrization(layer, "bias", Invertible())
    parametrize.remove_parametrizations(layer, "weight")
    assert layer.weight is weight and tl.equal(weight, before * 2) and weight.is_leaf
    parametrize.remove_parametrizations(layer, "bias", leave_parametrized=False)
    assert type(layer) is nn.Linear and sorted(layer.state_dict()) == ["bias", "weight"]


def test_what_can_be_inverted_keeps_its_value_and_is_assigned_to():
    layer = nn.Linear(2, 2)
    before = layer.weight.detach().clone()
    parametrize.register_parametrization(layer, "weight", Invertible())
    assert tl.allclose(layer.weight, before)
    layer.weight = nn.Parameter(tl.ones(2, 2))
    assert layer.weight.tolist() == [[1, 1], [1, 1]]
    assert layer.parametrizations.weight.original.tolist() == [[0.5, 0.5], [0.5, 0.5]]
    parametrize.register_parametrization(layer, "weight", Doubled())
    assert layer.weight.tolist() == [[2, 2], [2, 2]]
    other = parametrize.transfer_parametrizations_and_params(layer, nn.Linear(2, 2))
    assert tl.equal(other.weight, layer.weight)
    assert other.parametrizations.weight.original is not layer.parametrizations.weight.original


def test_parametrized_tensors_are_computed_once_while_cached():
    layer, calls = nn.Linear(2, 2), []

    class Counting(nn.Module):
        def forward(self, x):
            calls.append(1)
            return x

    parametrize.register_parametrization(layer, "weight", Counting())
    calls.clear()
    with parametrize.cached():
        with parametrize.cached():
            assert layer.weight is layer.weight
        layer(tl.ones(2))
        assert len(calls) == 1
    layer.weight, layer.weight
    assert len(calls) == 3


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_parametrized_modules_are_copied(copied):
    layer = parametrizations.weight_norm(nn.Linear(3, 2))
    other = copied(layer)
    assert tl.equal(other(tl.ones(3)), layer(tl.ones(3))) and isinstance(other, nn.Linear)
    with tl.no_grad():
        other.parametrizations.weight.original0 += 1
    assert not tl.equal(other.weight, layer.weight)


@each("act, text", [
    (lambda m: parametrize.register_parametrization(m, "weight", Longer()), "neither shape"),
    (lambda m: parametrize.register_parametrization(m, "nothing", Doubled()), "no parameter"),
    (lambda m: parametrize.remove_parametrizations(m, "weight"), "no parametrization"),
    (lambda m: parametrizations.weight_norm(m, "nothing"), "no parameter or buffer"),
    (lambda m: parametrizations.orthogonal(m, "bias"), "matrix or batch"),
    (lambda m: parametrizations.orthogonal(m, orthogonal_map="qr"), "has to be one of"),
    (lambda m: parametrizations.spectral_norm(m, n_power_iterations=0), "positive"),
    (lambda m: parametrize.remove_parametrizations(
        parametrizations.weight_norm(m), "weight", False), "cannot leave unparametrized"),
])
def test_bad_parametrizations(act, text):
    layer = nn.Linear(2, 3)
    with pytest.raises(ValueError, match=text):
        act(layer)
    assert layer(tl.ones(2)).shape == (3,)


# ---- masks -------------------------------------------------------------------------------------

@each("act, error, text", [
    (lambda m: prune.l1_unstructured(m, "weight", 7), ValueError, "smaller than the number"),
    (lambda m: prune.l1_unstructured(m, "weight", 1.5), ValueError, r"range \[0, 1\]"),
    (lambda m: prune.l1_unstructured(m, "weight", -1), ValueError, "non-negative"),
    (lambda m: prune.l1_unstructured(m, "weight", "all"), TypeError, "int or float"),
    (lambda m: prune.l1_unstructured(m, "nothing", 1), AttributeError, "nothing"),
    (lambda m: prune.ln_structured(m, "weight", 1, 2, 2), IndexError, "Invalid index 2"),
    (lambda m: prune.ln_structured(m, "bias", 1, 2, 0), ValueError, "multidimensional"),
    (lambda m: prune.custom_from_mask(m, "weight", tl.ones(2)), ValueError, "mask has shape"),
    (lambda m: prune.remove(m, "weight"), ValueError, "has to be pruned before"),
    (lambda m: prune.global_unstructured([(m, "weight")], prune.LnStructured, amount=1, n=2),
     TypeError, "Only \"unstructured\""),
    (lambda m: prune.global_unstructured(3, prune.L1Unstructured, amount=1), TypeError, "Iterable"),
    (lambda m: prune.l1_unstructured(m, "weight", 1, importance_scores=tl.ones(2)), ValueError,
     "importance_scores should have the shape"),
])
def test_bad_masks(act, error, text):
    layer = nn.Linear(2, 3)
    with pytest.raises(error, match=text):
        act(layer)
    assert sorted(layer.state_dict()) == ["bias", "weight"] and not prune.is_pruned(layer)


def test_a_method_of_your_own_and_several_on_one_weight():
    class EveryOther(prune.BasePruningMethod):
        PRUNING_TYPE = "unstructured"

        def compute_mask(self, t, default_mask):
            mask = default_mask.clone()
            mask.view(-1)[::2] = 0
            return mask

    layer = nn.Linear(4, 1)
    EveryOther.apply(layer, "weight")
    assert layer.weight_mask.tolist() == [[0, 1, 0, 1]]
    container = EveryOther.apply(layer, "weight")
    assert layer.weight_mask.tolist() == [[0, 0, 0, 1]] and len(container) == 2
    assert isinstance(container[0], EveryOther) and list(container)[1] is container[1]
    layer(tl.ones(4)).sum().backward()
    assert layer.weight_orig.grad.tolist() == [[0, 0, 0, 1]]
    assert prune.remove(layer, "weight") is layer and layer.weight.tolist()[0][:3] == [0, 0, 0]


# ---- modules as functions ------------------------------------------------------------------------

def test_a_module_with_other_tensors():
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3).eval())
    state = {name: value * 2 for name, value in model.named_parameters()}
    x = tl.randn(4, 2)
    before, kept = model(x), dict(model.named_parameters())
    changed = functional_call(model, state, x)
    assert not tl.allclose(changed, before) and tl.equal(model(x), before)
    assert all(value is kept[name] for name, value in model.named_parameters())
    halves = [{name: value} for name, value in state.items()]
    assert tl.equal(functional_call(model, halves, (x,)), changed)
    slopes = grad(lambda params: functional_call(model, params, (x,)).sum())(state)
    assert slopes["0.weight"].shape == (3, 2)
    with pytest.raises(RuntimeError, match="linear"):
        functional_call(model, state, tl.ones(5))
    assert tl.equal(model(x), before)


def test_tied_tensors_are_replaced_together():
    model = nn.ModuleList([nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False)])
    model[1].weight = model[0].weight
    model.forward = lambda x: model[1](model[0](x))
    new, x = {"0.weight": tl.eye(2) * 3}, tl.ones(2)
    assert functional_call(model, new, x).tolist() == [9, 9]
    alone = functional_call(model, new, x, tie_weights=False)
    assert tl.equal(alone, model[1](x * 3))
    with pytest.raises(ValueError, match="one tensor of the module"):
        functional_call(model, {**new, "1.weight": tl.eye(2)}, x)


def test_functional_call_replaces_other_tensors_of_a_module_too():
    model = nn.Linear(2, 2, bias=False)
    model.scale, x = tl.ones(2), tl.ones(2)
    model.register_forward_hook(lambda m, args, out: out * m.scale + m.shift)
    state = {"weight": tl.eye(2), "bias": tl.tensor([1.0, 2.0]), "scale": tl.tensor([3.0, 4.0]),
             "shift": tl.tensor(0.5)}                # one that is None, one that is not there
    assert functional_call(model, state, x).tolist() == [6.5, 12.5]
    slope = grad(lambda scale: functional_call(model, {**state, "scale": scale}, x).sum())
    assert slope(tl.zeros(2)).tolist() == [2.0, 3.0]
    assert model.scale.tolist() == [1, 1] and model.bias is None and not hasattr(model, "shift")


def test_functional_call_gives_what_the_module_sets():
    model = nn.Linear(2, 2)
    model.register_buffer("calls", tl.zeros(2))

    def count(module, args):
        module.calls = module.calls + args[0]
    model.register_forward_pre_hook(count)
    state = {"calls": tl.ones(2), "bias": tl.zeros(2)}
    given = dict(state)
    functional_call(model, state, tl.tensor([2.0, 3.0]))
    assert state["calls"].tolist() == [3.0, 4.0] and given["calls"].tolist() == [1.0, 1.0]
    assert state["bias"] is given["bias"] and model.calls.tolist() == [0.0, 0.0]


def test_functional_call_of_a_module_within_itself_and_of_all_tied_names():
    model = nn.Sequential(nn.Linear(1, 1), nn.Identity())
    model[1].whole = model
    found = functional_call(model, {"1.whole.0.weight": tl.tensor([[2.0]]), "0.bias": tl.ones(1)},
                            tl.ones(1), tie_weights=False)
    assert found.tolist() == [3.0]
    pair = nn.Sequential(nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False))
    pair[1].weight = pair[0].weight
    state = {"0.weight": tl.tensor([[2.0]])}
    assert functional_call(pair, state, tl.ones(1), strict=True).tolist() == [4.0]
    with pytest.raises(RuntimeError, match=r"missing key\(s\): \['1.weight'\]"):
        functional_call(pair, state, tl.ones(1), tie_weights=False, strict=True)
    with pytest.warns(FutureWarning, match="call func.functional_call"):
        assert nn.utils.stateless.functional_call(pair, state, tl.ones(1)).tolist() == [4.0]


@each("act, error, text", [
    (lambda m: functional_call(m, {"weight": m.weight}, strict=True), RuntimeError,
     r"missing key\(s\): \['bias'\]"),
    (lambda m: functional_call(m, {**dict(m.named_parameters()), "a": m.bias}, strict=True),
     RuntimeError, r"unexpected key\(s\): \['a'\]"),
    (lambda m: functional_call(m, [{"bias": m.bias}, {"bias": m.bias}]), ValueError, "several"),
    (lambda m: functional_call(m, 3), ValueError, "expected a dict"),
    (lambda m: functional_call(m, {"module.weight": m.weight}), AttributeError, "'module'"),
    (lambda m: functional_call(m, {"in_features": m.bias}), TypeError, "is no tensor .* int"),
    (lambda m: functional_call(65, {}), TypeError, "must be a Module, got int"),
    (lambda m: stack_module_state([]), RuntimeError, "at least one"),
    (lambda m: stack_module_state([m, nn.ReLU()]), RuntimeError, "same class"),
    (lambda m: stack_module_state([m, nn.Linear(2, 2).eval()]), RuntimeError, "same training"),
    (lambda m: stack_module_state([m, nn.Linear(2, 2, bias=False)]), RuntimeError, "names"),
    (lambda m: stack_module_state([m, nn.Linear(2, 2).requires_grad_(False)]), RuntimeError,
     "requires gradients in some"),
])
def test_bad_calls(act, error, text):
    with pytest.raises(error, match=text):
        act(nn.Linear(2, 2))


def test_an_ensemble_and_gradients_of_each_example():
    models = [nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)) for _ in range(3)]
    params, buffers = stack_module_state(models)
    assert not buffers and all(p.requires_grad and p.is_leaf for p in params.values())
    x = tl.randn(4, 2)

    def call(params, x):
        return functional_call(models[0], params, x)

    together = vmap(call, (0, None))(params, x)
    assert tl.allclose(together, tl.stack([model(x) for model in models]))
    each = vmap(grad(lambda params, x: call(params, x).sum()), (None, 0))(
        dict(models[0].named_parameters()), x)
    models[0](x).sum().backward()
    for name, parameter in models[0].named_parameters():
        assert tl.allclose(each[name].sum(0), parameter.grad, atol=1e-6)


# ---- what is done more than once, or to very little ---------------------------------------------

def test_slices_are_taken_out_one_after_the_other():
    """Those that are out already are not chosen again."""
    layer = nn.Linear(3, 5)
    for times in range(1, 5):
        prune.ln_structured(layer, "weight", 1, n=2, dim=0)
        assert int((layer.weight == 0).all(1).sum()) == times
    norms = layer.weight_orig.norm(dim=1)
    assert layer.weight_mask.any(1).tolist() == (norms == norms.max()).tolist()


def test_a_value_that_is_assigned_is_read_where_values_are_kept():
    layer = parametrize.register_parametrization(nn.Linear(2, 2), "weight", Invertible())
    with parametrize.cached():
        first = layer.weight
        assert layer.weight is first
        layer.weight = tl.full((2, 2), 6.0)
        assert layer.weight.tolist() == [[6, 6], [6, 6]] and layer.weight is not first


def test_tiny_gradients_are_divided_by_no_less_than_a_millionth():
    p = tl.zeros(1, requires_grad=True)
    p.grad = tl.tensor([1e-6])
    assert nn.utils.clip_grad_norm_(p, 1e-6).item() == pytest.approx(1e-6)
    assert p.grad.item() == pytest.approx(0.5e-6)


def test_weights_of_convolutions_take_a_memory_format():
    net = nn.Sequential(nn.Conv2d(2, 3, 3), nn.Sequential(nn.ConvTranspose2d(3, 2, 2)),
                        nn.Conv3d(2, 2, 2), nn.Conv1d(2, 2, 2), nn.Linear(2, 2))
    before = [p.detach().clone() for p in net.parameters()]
    parameters = list(net.parameters())
    assert nn.utils.convert_conv2d_weight_memory_format(net, tl.channels_last) is net
    assert [p.is_contiguous(memory_format=tl.channels_last) for p in (
        net[0].weight, net[1][0].weight)] == [True, True]
    assert net[2].weight.is_contiguous() and net[3].weight.is_contiguous()
    nn.utils.convert_conv3d_weight_memory_format(net, tl.channels_last_3d)
    assert net[2].weight.is_contiguous(memory_format=tl.channels_last_3d)
    for parameter, after, value in zip(parameters, net.parameters(), before, strict=True):
        assert parameter is after and after.requires_grad and after.equal(value)
