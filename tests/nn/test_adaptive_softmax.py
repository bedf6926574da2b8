"""The softmax over clusters of classes, by the formula of its two steps."""

import re

import numpy as np
import pytest

import tensorlib as tl
from tensorlib import nn
from tensorlib.testing import assert_close


def made(**options):
    tl.manual_seed(1)
    return nn.AdaptiveLogSoftmaxWithLoss(8, 12, [3, 6, 9], div_value=2.0, dtype=tl.float64,
                                         **options)


def log_softmax(x):
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def by_formula(model, x):
    """log p(cluster) + log p(class in it), for all classes."""
    head = x @ model.head.weight.detach().numpy().T
    if model.head.bias is not None:
        head = head + model.head.bias.detach().numpy()
    head = log_softmax(head)
    parts = [head[:, :3]]
    for i, (to_short, to_classes) in enumerate(model.tail):
        scores = x @ to_short.weight.detach().numpy().T @ to_classes.weight.detach().numpy().T
        parts.append(head[:, 3 + i:4 + i] + log_softmax(scores))
    return np.concatenate(parts, 1)


@pytest.mark.parametrize("head_bias", [False, True])
def test_each_class_has_its_probability(head_bias):
    model, x = made(head_bias=head_bias), tl.randn(12, 8, dtype=tl.float64)
    wanted = tl.tensor(by_formula(model, x.numpy()))
    assert_close(model.log_prob(x), wanted)
    assert_close(wanted.exp().sum(1), tl.ones(12, dtype=tl.float64))
    assert model.predict(x).tolist() == wanted.argmax(1).tolist()
    for target in (tl.arange(12), tl.arange(12).flip(0), tl.full((12,), 7),
                   tl.tensor([11, 0, 3, 2, 6, 5, 9, 8, 11, 0, 3, 2])):
        output, loss = model(x, target)
        assert_close(output, wanted.gather(1, target.unsqueeze(1)).squeeze(1))
        assert_close(loss, -output.mean())
    for i in (0, 2, 3, 11):
        found = model(x[i], tl.tensor(i))
        assert found.output.shape == found.loss.shape == ()
        assert_close(found.output, wanted[i, i])
        assert_close(found.loss, -wanted[i, i])


def test_each_cluster_has_shorter_vectors():
    model = made()
    assert [[tuple(part.weight.shape) for part in pair] for pair in model.tail] == [
        [(4, 8), (3, 4)], [(2, 8), (3, 2)], [(1, 8), (3, 1)]]
    assert model.head.weight.shape == (6, 8) and model.cutoffs == [3, 6, 9, 12]


def test_the_loss_of_no_examples_is_in_the_graph():
    model = made()
    output, loss = model(tl.ones(0, 8, dtype=tl.float64), tl.ones(0, dtype=tl.int64))
    assert output.shape == (0,) and loss.isnan()
    output.sum().backward()
    assert not model.head.weight.grad.any()


def test_all_parameters_are_drawn_anew():
    model = made(head_bias=True)
    before = [parameter.detach().clone() for parameter in model.parameters()]
    model.reset_parameters()
    assert len(before) == 8
    assert not any(old.equal(new) for old, new in zip(before, model.parameters()))


@pytest.mark.parametrize("shape, target, text", [
    ((2, 8), [1], r"same size in the batch dimension, got \(2, 8\) and \(1,\)$"),
    ((8,), [1], r"got \(8,\) and \(1,\)$"), ((2, 8), 1, r"got \(2, 8\) and \(\)$"),
    ((2, 2, 8), [[1, 1], [1, 1]], r"got \(2, 2, 8\) and \(2, 2\)$"),
    ((2, 8), [0, 12], r"Target values should be in \[0, 11\]$"),
    ((2, 8), [-1, 0], r"Target values should be in \[0, 11\]$"),
    ((8,), 12, r"Target values should be in \[0, 11\]$"),
])
def test_targets_that_do_not_fit(shape, target, text):
    with pytest.raises(RuntimeError) as error:
        made()(tl.ones(shape, dtype=tl.float64), tl.tensor(target))
    assert re.search(f"^AdaptiveLogSoftmaxWithLoss: .*{text}", str(error.value))
    assert error.value.__notes__ == ["in AdaptiveLogSoftmaxWithLoss"]


@pytest.mark.parametrize("cutoffs", [[5], [0, 2], [2, 2], [3, 2], [1.5], [-1, 2]], ids=str)
def test_cutoffs_that_do_not_fit(cutoffs):
    with pytest.raises(ValueError, match="sorted in an increasing order, .* between 1 and n_class"):
        nn.AdaptiveLogSoftmaxWithLoss(4, 5, cutoffs)


def test_the_bounds_of_cutoffs():
    assert nn.AdaptiveLogSoftmaxWithLoss(16, 5, [1, 4]).cutoffs == [1, 4, 5]
    with pytest.raises(ValueError, match="a sequence of length larger than 0$"):
        nn.AdaptiveLogSoftmaxWithLoss(4, 5, [])
