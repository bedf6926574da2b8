"""What options of losses give: laws between calls, and numbers known beforehand."""

import math

import pytest
from cases import each

import tensorlib as tl
from tensorlib.nn import functional as F
from tensorlib.testing import assert_close

INF = math.inf
LOGITS = tl.tensor([[0.5, -1.0, 2.0], [1.5, 0.25, -0.5]])
CLASSES = tl.tensor([2, 0])
SOFT = tl.tensor([[0.2, 0.3, 0.5], [0.6, 0.4, 0.0]])
WEIGHT = tl.tensor([0.5, 1.0, 2.0])
OLD_WORDS = [(None, None, "mean"), (True, True, "mean"), (False, None, "sum"), (None, True, "mean"),
             (False, True, "sum"), (True, False, "none"), (None, False, "none")]
LOSSES = {
    "mse_loss": (LOGITS, SOFT), "l1_loss": (LOGITS, SOFT), "cross_entropy": (LOGITS, CLASSES),
    "nll_loss": (LOGITS, CLASSES), "multi_margin_loss": (LOGITS, CLASSES),
}


def assert_values(found, wanted):
    """The same numbers, up to rounding."""
    assert_close(found, tl.tensor(wanted, dtype=found.dtype), atol=2e-6, rtol=2e-6)


@each("size_average, reduce, reduction", OLD_WORDS[1:])
@each("name", LOSSES)
def test_old_words_for_reductions(name, size_average, reduce, reduction):
    loss, values = getattr(F, name), LOSSES[name]
    with pytest.warns(UserWarning, match=f"use reduction='{reduction}' instead"):
        found = loss(*values, size_average=size_average, reduce=reduce)
    assert_close(found, loss(*values, reduction=reduction))


def test_targets_of_another_size_warn():
    with pytest.warns(UserWarning, match=r"size .*\(.*3.*\).*different to the input size .*2, 3"):
        F.mse_loss(LOGITS, WEIGHT)


def test_a_squared_loss_with_weights():
    x, zero, weight = tl.tensor([1.0, 2.0]), tl.zeros(2), tl.tensor([3.0, 1.0])
    found = [F.mse_loss(x, zero, reduction=r, weight=weight).tolist()
             for r in ("mean", "sum", "none")]
    assert found == [1.75, 7.0, [3.0, 4.0]]


def test_a_weight_multiplies_each_cross_entropy():
    p, t, w = tl.tensor([0.25, 0.5]), tl.tensor([1.0, 0.0]), tl.tensor([3.0, 5.0])
    assert_values(F.binary_cross_entropy(p, t, w, reduction="none"),
                  [6 * math.log(2), 5 * math.log(2)])
    assert_values(F.binary_cross_entropy_with_logits(p.logit(), t, w, reduction="none"),
                  [6 * math.log(2), 5 * math.log(2)])


@pytest.mark.parametrize("edge", [[0.0, 1.0], []])
def test_probabilities_may_lie_at_the_ends(edge):
    x = tl.tensor(edge)
    assert F.binary_cross_entropy(x, x, reduction="sum").item() == 0.0


def test_the_weight_of_positive_targets_repeats_these():
    x, t = tl.tensor([0.5, -1.0]), tl.tensor([0.75, 0.25])
    found = F.binary_cross_entropy_with_logits(x, t, pos_weight=tl.tensor(3.0), reduction="none")
    assert_values(found, (-3 * t * x.sigmoid().log() - (1 - t) * (1 - x.sigmoid()).log()).tolist())


def test_the_mean_of_a_divergence_over_the_batch():
    x, t = LOGITS.log_softmax(1), SOFT
    each = F.kl_div(x, t, reduction="none")
    assert_close(F.kl_div(x, t, reduction="batchmean"), each.sum() / 2)
    assert_close(F.kl_div(x[0, 0], t[0, 0], reduction="batchmean"), each[0, 0])


def test_the_variance_of_a_gaussian_may_be_a_number_or_one_for_each_row():
    x, t = tl.zeros(2, 2), tl.tensor([[1.0, 2.0], [3.0, 4.0]])
    full = tl.tensor([[2.0, 2.0], [0.5, 0.5]])
    wanted = F.gaussian_nll_loss(x, t, full, reduction="none")
    assert_values(wanted, [[0.5 * math.log(2) + 0.25, 0.5 * math.log(2) + 1],
                           [-0.5 * math.log(2) + 9, -0.5 * math.log(2) + 16]])
    assert_close(F.gaussian_nll_loss(x, t, full[:, 0], reduction="none"), wanted)
    assert_close(F.gaussian_nll_loss(x, t, 2.0, reduction="none")[0], wanted[0])
    infinite = tl.tensor([INF, 1.0])
    assert F.gaussian_nll_loss(infinite, tl.zeros(2), 4.0, reduction="none")[0] == INF


def weighted(reduction, **options):
    return F.cross_entropy(LOGITS, CLASSES, WEIGHT, reduction=reduction, **options)


def test_weights_of_classes_multiply_and_divide():
    each = F.cross_entropy(LOGITS, CLASSES, reduction="none") * tl.tensor([2.0, 0.5])
    assert_close(weighted("none"), each)
    assert_close(weighted("sum"), each.sum())
    assert_close(weighted("mean"), each.sum() / 2.5)
    assert_close(weighted("mean", ignore_index=0), each[0] / 2)
    logs = LOGITS.log_softmax(1)
    assert_close(F.nll_loss(logs, CLASSES, WEIGHT), each.sum() / 2.5)


def test_smoothed_labels_are_probabilities():
    for weight in (None, WEIGHT):
        wanted = tl.tensor([[0.1, 0.1, 0.8], [0.8, 0.1, 0.1]])
        assert_close(
            F.cross_entropy(LOGITS, CLASSES, weight, label_smoothing=0.3, reduction="sum"),
            F.cross_entropy(LOGITS, wanted, weight, reduction="sum"))


def test_the_cross_entropy_of_probabilities():
    logs = LOGITS.log_softmax(1)
    for weight in (None, WEIGHT):
        each = -(logs * SOFT * (1 if weight is None else weight)).sum(1)
        for reduction, wanted in (("none", each), ("sum", each.sum()), ("mean", each.sum() / 2)):
            assert_close(F.cross_entropy(LOGITS, SOFT, weight, reduction=reduction), wanted)
    images = F.cross_entropy(LOGITS.T.unsqueeze(0), SOFT.T.unsqueeze(0), WEIGHT, reduction="none")
    assert_close(images[0], each)
    assert_close(F.cross_entropy(LOGITS[0], SOFT[0], WEIGHT, reduction="none"), each[0])


def test_margins_with_weights_and_without_a_batch():
    x = tl.tensor([0.5, 1.0, 0.25])
    assert F.multi_margin_loss(x, tl.tensor(1)).item() == pytest.approx((0.5 + 0.25) / 3)
    assert F.multi_margin_loss(x, tl.tensor(1), 2).item() == pytest.approx(
        (0.25 + 0.0625) / 3)
    assert F.multi_margin_loss(x.unsqueeze(0), tl.tensor([2]), weight=WEIGHT).item() == (
        pytest.approx(2 * (1.25 + 1.75) / 3))
    assert F.multilabel_margin_loss(x, tl.tensor([1, -1, 0])).item() == pytest.approx(
        (0.5 + 0.25) / 3)


def test_weights_of_labels():
    target, ln2 = tl.tensor([[1.0, 0.0]]), math.log(2)
    found = F.multilabel_soft_margin_loss(tl.zeros(1, 2), target, tl.tensor([3.0, 5.0]))
    assert found.item() == pytest.approx(4 * ln2)


def test_targets_of_sequences_may_follow_one_another():
    tl.manual_seed(2)
    logs, lengths = tl.randn(5, 3, 4).log_softmax(2), (5, 4, 5)
    rows = tl.tensor([[1, 2, 3], [3, 0, 0], [2, 2, 0]])
    for sizes, flat in (((3, 1, 2), [1, 2, 3, 3, 2, 2]), ((0, 1, 2), [3, 2, 2])):
        for reduction in ("none", "mean"):
            assert_close(F.ctc_loss(logs, tl.tensor(flat), lengths, sizes, reduction=reduction),
                         F.ctc_loss(logs, rows, lengths, sizes, reduction=reduction))


def test_a_sequence_without_targets_is_of_blanks_alone():
    logs = tl.tensor([[0.5, 0.5], [0.25, 0.75]]).log().unsqueeze(1)
    found = F.ctc_loss(logs, tl.tensor([], dtype=tl.int64), (2,), (0,), reduction="none")
    assert_values(found, [math.log(8)])
