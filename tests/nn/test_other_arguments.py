"""`tl.kl_div` and the like: the functions of `nn.functional` with PyTorch's other arguments."""

import pytest
from cases import each

import tensorlib as tl
from tensorlib.nn import functional as F
from tensorlib.testing import assert_close

X, Y, Z = (tl.linspace(low, 1.5, 6).reshape(2, 3) for low in (0.1, 0.2, -1.0))
SIGNS = tl.tensor([[1, -1, 1], [-1, 1, 1]])
LOSSES = {
    "binary_cross_entropy_with_logits": ((X, Y, Z), {"pos_weight": Y}),
    "cosine_embedding_loss": ((X, Y, SIGNS[:, 0]), {"margin": 0.1}),
    "ctc_loss": ((X.log_softmax(-1).reshape(2, 1, 3), tl.tensor([[1]]), [2], [1]), {"blank": 2}),
    "hinge_embedding_loss": ((X, SIGNS), {"margin": 0.5}),
    "kl_div": ((X, Y.log()), {"log_target": True}),
    "margin_ranking_loss": ((X, Y, SIGNS), {"margin": 0.5}),
    "poisson_nll_loss": ((X, Y, False, True), {"eps": 1e-3}),
    "triplet_margin_loss": ((X, Y, Z), {"margin": 0.5, "p": 1.0, "eps": 1e-5, "swap": True}),
}


@each("name", LOSSES)
def test_the_reduction_of_a_loss_is_a_number(name):
    args, options = LOSSES[name]
    loss, named = getattr(tl, name), getattr(F, name)
    for number, word in enumerate(("none", "mean", "sum")):
        wanted = named(*args, **options, reduction=word)
        for reduction in (number, word):
            assert_close(loss(*args, **options, reduction=reduction), wanted)
    if name != "poisson_nll_loss":                          # which has no default
        assert_close(loss(*args, **options), named(*args, **options, reduction="none"))
    for wrong in (3, -1, "most"):
        with pytest.raises(ValueError, match=f"{name}.*{wrong}"):
            loss(*args, **options, reduction=wrong)


def test_tables_come_first():
    places = tl.tensor([[1, 0], [1, 1]])
    for padding, wanted in ((-1, [1.0, 3.0]), (1, [1.0, 0.0])):
        weight = X.t().contiguous()[:2].detach().requires_grad_(True)
        found = tl.embedding(weight, places, padding)
        assert tl.equal(found, F.embedding(places, weight))
        found.sum().backward()
        assert weight.grad.tolist() == [[each] * 2 for each in wanted]


@pytest.mark.parametrize("name, used", [("batch_norm", True), ("batch_norm", False),
                                        ("instance_norm", True), ("instance_norm", False)])
def test_factors_come_before_running_statistics(name, used):
    x = tl.stack([X, Y, Z]).transpose(0, 1)
    weight, bias, mean, var = (tl.linspace(0.5, end, 3) for end in (1.0, 2.0, 0.1, 1.5))
    running, others = (mean.clone(), var.clone()), (mean.clone(), var.clone())
    found = getattr(tl, name)(x, weight, bias, *running, used, 0.3, 1e-3, True)
    assert tl.equal(found, getattr(F, name)(x, *others, weight, bias, used, 0.3, 1e-3))
    assert all(map(tl.equal, running, others))


@pytest.mark.parametrize("kinds", [
    ("float64", "float32"), ("int64", "float32"), ("int8", "float16")])
def test_the_angle_between_vectors_of_two_dtypes_is_that_in_their_common_one(kinds):
    x, y = (tl.tensor([[1, 2, 2], [3, 0, -4]]).to(getattr(tl, kind)) for kind in kinds)
    for a, b in ((x, y), (y, x)):
        found = F.cosine_similarity(a, b)
        assert found.dtype is tl.result_type(x, y)
        assert_close(found, tl.ones(2, dtype=found.dtype))
