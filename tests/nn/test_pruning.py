"""What each way to prune takes out, and what it refuses; `test_utils.py` has bad masks."""

import pytest
from cases import each

import tensorlib as tl
from tensorlib import nn
from tensorlib.nn.utils import prune

W = tl.tensor([[1.0, -2.0], [3.0, 0.5]])
TALL = tl.tensor([[3.0, 1, 2, 4], [3, 1, 2, 4], [0, 9, 0, 0]])


def mask_of(way, *args, **options):
    """The mask on a weight of shape (3, 4), after the function gave the module back."""
    layer = nn.Linear(4, 3)
    layer.weight.data = tl.arange(1.0, 13).reshape(3, 4)
    assert way(layer, "weight", *args, **options) is layer and prune.is_pruned(layer)
    assert layer.weight.equal(layer.weight_orig * layer.weight_mask)
    assert list(layer.state_dict()) == ["bias", "weight_orig", "weight_mask"]
    return layer.weight_mask


def named(method, name):
    method._tensor_name = name
    return method


@each("method, options, wanted", [
    (prune.L1Unstructured(2), {}, [[0, -2], [3, 0]]),
    (prune.L1Unstructured(0), {}, [[1, -2], [3, 0.5]]),
    (prune.L1Unstructured(1), {"importance_scores": 1 / W}, [[1, -2], [0, 0.5]]),
    (prune.L1Unstructured(2), {"default_mask": tl.tensor([[1.0, 1], [0, 1]])}, [[0, -2], [0, 0]]),
    (prune.LnStructured(1, 2, 0), {}, [[0, 0], [3, 0.5]]),
    (prune.LnStructured(1, 2), {}, [[1, 0], [3, 0]]),
    (prune.LnStructured(1, 2, 0), {"default_mask": tl.tensor([[1.0, 1], [0, 0]])},
     [[0, 0], [0, 0]]),
    (prune.Identity(), {}, [[1, -2], [3, 0.5]]),
    (prune.Identity(), {"default_mask": tl.tensor([[0.0, 1], [1, 1]])}, [[0, -2], [3, 0.5]]),
    (prune.CustomFromMask(tl.tensor([[1, 0], [0, 1]])), {}, [[1, 0], [0, 0.5]]),
    (prune.CustomFromMask(tl.tensor([[True, False], [True, True]])),
     {"default_mask": tl.tensor([[1.0, 1], [0, 1]])}, [[1, 0], [0, 0.5]]),
])
def test_a_method_masks_a_tensor_of_no_module(method, options, wanted):
    before = W.clone()
    assert method.prune(W, **options).tolist() == wanted and W.equal(before)


def test_scores_have_the_shape_of_the_tensor():
    for scores in (tl.ones(3), tl.ones(2, 1)):
        with pytest.raises(ValueError, match=r"importance_scores should .* \(2, 2\), got \("):
            prune.L1Unstructured(1).prune(W, importance_scores=scores)


def test_each_function_takes_out_what_it_says():
    assert mask_of(prune.identity).equal(tl.ones(3, 4))
    assert mask_of(prune.l1_unstructured, 3, tl.arange(12.0).reshape(3, 4) - 6).tolist() == [
        [1, 1, 1, 1], [1, 0, 0, 0], [1, 1, 1, 1]]
    assert mask_of(prune.ln_structured, 0.5, 1, 1, TALL[:1].expand(3, 4)).tolist() == [
        [1, 0, 0, 1]] * 3
    assert mask_of(prune.ln_structured, 1, float("inf"), -1, TALL).tolist() == [[1, 1, 0, 1]] * 3
    assert mask_of(prune.ln_structured, 2, 1, -1, TALL).tolist() == [[0, 1, 0, 1]] * 3
    assert mask_of(prune.custom_from_mask, TALL > 2).tolist() == [
        [1, 0, 0, 1], [1, 0, 0, 1], [0, 1, 0, 0]]


@pytest.mark.parametrize("amount, count", [(5, 5), (0.5, 6), (0, 0), (1.0, 12)])
def test_elements_at_random_are_as_many_as_is_said(amount, count):
    tl.manual_seed(0)
    masks = [mask_of(prune.random_unstructured, amount) for _ in range(9)]
    assert all(int((mask == 0).sum()) == count and int((mask == 1).sum()) == 12 - count
               for mask in masks)
    assert any(not mask.equal(masks[0]) for mask in masks) == (0 < count < 12)


@pytest.mark.parametrize("dim, size", [(0, 3), (1, 4), (-1, 4), (-2, 3)])
def test_slices_at_random_are_whole(dim, size):
    tl.manual_seed(0)
    chosen = set()
    for _ in range(30):
        mask = mask_of(prune.random_structured, 2, dim).movedim(dim, 0)
        assert mask.amin(1).equal(mask.amax(1)) and int((mask[:, 0] == 0).sum()) == 2
        chosen |= {i for i, kept in enumerate(mask[:, 0].tolist()) if not kept}
    assert chosen == set(range(size))
    with pytest.raises(ValueError, match=f"amount={size + 1} should be smaller .*prune={size}$"):
        prune.random_structured(nn.Linear(4, 3), "weight", size + 1, dim)


def test_several_parameters_are_pruned_as_if_they_were_one():
    first, second = nn.Linear(2, 2), nn.Linear(2, 1)
    with tl.no_grad():
        first.weight.copy_(W)
        first.bias.copy_(tl.tensor([0.2, -5.0]))
        second.weight.copy_(tl.tensor([[0.1, 4.0]]))
    prune.custom_from_mask(second, "weight", tl.tensor([[1, 0]]))
    places = (first, "weight"), (second, "weight"), (first, "bias")
    prune.global_unstructured(iter(places), prune.L1Unstructured, amount=3)
    # 0.1, 0.2 and 0.5 are gone; 4 was before, and is not chosen again
    assert first.weight_mask.tolist() == [[1, 1], [1, 0]]
    assert second.weight_mask.tolist() == [[0, 0]] and first.bias_mask.tolist() == [0, 1]
    assert first.weight.tolist() == [[1, -2], [3, 0]] and first.bias.tolist() == [0, -5]
    prune.global_unstructured(places, prune.L1Unstructured, {places[0]: 1 / W}, amount=0.25)
    assert first.weight_mask.tolist() == [[1, 1], [0, 0]] and first.bias_mask.tolist() == [0, 1]
    assert len(first._forward_pre_hooks) == 2 and not second.weight.any()


def test_a_share_of_several_parameters():
    layers = [nn.Linear(2, 2) for _ in range(2)]
    for i, layer in enumerate(layers):
        with tl.no_grad():
            layer.weight.copy_(W + 10 * i)
    prune.global_unstructured([(layer, "weight") for layer in layers], prune.L1Unstructured,
                              {(layers[1], "weight"): W / 10}, amount=0.5)
    assert layers[0].weight_mask.all() and not layers[1].weight_mask.any()


@each("act, error, text", [
    (lambda c: c.add_pruning_method(3), TypeError, "<class 'int'> is not a BasePruningMethod"),
    (lambda c: c.add_pruning_method(named(prune.Identity(), "bias")), ValueError,
     "acting on the parameter named 'weight', found 'bias'$"),
    (lambda c: prune.PruningContainer(*c, named(prune.Identity(), "bias")), ValueError,
     "'weight', found 'bias'$"),
    (lambda c: prune.PruningContainer(3), TypeError, "not a BasePruningMethod subclass"),
    (lambda c: prune.global_unstructured([(nn.Linear(2, 2), "weight")], prune.L1Unstructured, [1],
                      amount=1), TypeError,
     r"^global_unstructured\(\): importance_scores must be of type dict$"),
    (lambda c: prune.BasePruningMethod(), TypeError, "abstract"),
    (lambda c: prune.Unstructured(1).prune(W), NotImplementedError, "^$"),
    (lambda c: prune.Structured(1).prune(W), NotImplementedError, "^$"),
])
def test_what_is_refused(act, error, text):
    container = prune.PruningContainer(named(prune.L1Unstructured(1), "weight"))
    with pytest.raises(error, match=text):
        act(container)
    assert len(container) == 1


def test_a_container_masks_by_its_last_method():
    container = prune.PruningContainer(
        named(prune.L1Unstructured(3), "weight"), named(prune.L1Unstructured(1), "weight"))
    assert container.add_pruning_method(None) is None and len(container) == 2
    assert container.compute_mask(W, tl.ones(2, 2)).tolist() == [[1, 1], [1, 0]]
    assert container.compute_mask(W, tl.tensor([[1.0, 1], [1, 0]])).tolist() == [[0, 1], [1, 0]]
    assert container.prune(W).tolist() == [[1, -2], [3, 0]]


def test_a_kind_of_method_that_is_not_known():
    class Odd(prune.Identity):
        PRUNING_TYPE = "odd"

    layer = nn.Linear(2, 2)
    Odd.apply(layer, "weight")                   # the kind says how methods are combined
    with pytest.raises(ValueError, match="^Unrecognized PRUNING_TYPE odd$"):
        Odd.apply(layer, "weight")
    assert len(layer._forward_pre_hooks) == 1
    assert list(layer.state_dict()) == ["bias", "weight_orig", "weight_mask"]


def test_the_first_method_sees_the_shape_of_the_parameter():
    class Triangle(prune.BasePruningMethod):
        PRUNING_TYPE = "unstructured"

        def compute_mask(self, t, default_mask):
            return default_mask.tril() * (t.ndim == 2)

    layer = nn.Linear(3, 2)
    Triangle.apply(layer, "weight")
    assert layer.weight_mask.tolist() == [[1, 0, 0], [1, 1, 0]]
