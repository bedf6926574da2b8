"""Gradients of losses where they have a kink, and where an element is no number, as in PyTorch."""

import numpy as np
from cases import each

import tensorlib as tl
from tensorlib.nn import functional as F

NAN = float("nan")


def slopes(loss, *given):
    """The gradients of the sum of what a loss gives for each element."""
    given = [tl.tensor(x, dtype=tl.float64, requires_grad=True) for x in given]
    loss(*given).sum().backward()
    return [x.grad.tolist() for x in given]


def test_a_margin_that_is_just_kept_has_the_slope_of_one_that_is_not():
    ones = tl.ones(2, dtype=tl.float64)
    assert slopes(lambda a, b: F.margin_ranking_loss(a, b, ones, reduction="none"),
                  [1.0, 2.0], [1.0, 1.0]) == [[-1, 0], [1, 0]]
    assert slopes(lambda x: F.hinge_embedding_loss(x, -ones, reduction="none"),
                  [1.0, 1.5]) == [[-1, 0]]
    anchor = [[0.0, 0.0]]
    found = slopes(lambda a, b, c: F.triplet_margin_loss(a, b, c, margin=1.0, eps=0.0,
                                                         reduction="none"),
                   anchor, [[1.0, 0.0]], [[0.0, 2.0]])
    assert found == [[[-1, 1]], [[1, 0]], [[0, -1]]]


@each("loss", [F.smooth_l1_loss, F.huber_loss])
def test_a_slope_that_is_cut_off_has_none_from_where_it_is(loss):
    x = tl.tensor([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0], dtype=tl.float64, requires_grad=True)
    slope, = tl.autograd.grad(loss(x, tl.zeros_like(x), reduction="sum"), x, create_graph=True)
    assert slope.tolist() == [-1, -1, -0.5, 0.5, 1, 1]
    assert tl.autograd.grad(slope.sum(), x)[0].tolist() == [0, 0, 1, 1, 0, 0]


@each("loss, wanted", [
    (lambda x: F.smooth_l1_loss(x, tl.zeros_like(x), reduction="none"), [NAN, 0.5, 1.0, 1.0]),
    (lambda x: F.huber_loss(x, tl.zeros_like(x), reduction="none", delta=2.0),
     [NAN, 0.5, 2.0, 2.0]),
    (lambda x: F.softplus(x * 8), [NAN, 8 / (1 + np.exp(-4.0)), 8 / (1 + np.exp(-16.0)), 8.0]),
    (lambda x: tl.logit(x), [NAN, 4.0, NAN, NAN]),
    (lambda x: F.cosine_similarity(x[:, None], tl.ones_like(x)[:, None]), [NAN, 0, 0, NAN]),
])
def test_the_gradient_of_what_is_no_number_is_none(loss, wanted):
    (found,) = slopes(loss, [NAN, 0.5, 2.0, float("inf")])
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


def test_the_divergence_from_a_negative_probability_is_no_number():
    losses = F.kl_div(tl.tensor([-1.0, -1.0, -1.0]), tl.tensor([-0.5, 0.0, 1.0]), reduction="none")
    np.testing.assert_array_equal(losses.numpy(), np.array([NAN, 0.0, 1.0], np.float32))


@each("shape", [(1, 3, 2), (4, 1, 2), (4, 3, 1), (4, 3)])
def test_variances_may_be_the_same_along_any_dim(shape):
    x, target = tl.randn(4, 3, 2), tl.randn(4, 3, 2)
    var = tl.rand(shape) + 0.5
    whole = (var if len(shape) == 3 else var[..., None]).expand(4, 3, 2)
    tl.testing.assert_close(F.gaussian_nll_loss(x, target, var),
                            F.gaussian_nll_loss(x, target, whole.contiguous()))


@each("loss", [F.cross_entropy, F.nll_loss])
def test_one_example_may_have_a_vector_of_one_class(loss):
    x = tl.tensor([0.5, 1.0, -1.0])
    assert loss(x, tl.tensor([2])) == loss(x, tl.tensor(2))
    assert loss(x, tl.tensor([2]), reduction="none").shape == loss(
        x, tl.tensor(2), reduction="none").shape
