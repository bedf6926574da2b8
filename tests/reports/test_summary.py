"""Summaries of models: their figures, and that they leave the model as it was."""

import pytest

import tensorlib as tl
from tensorlib import nn
from tensorlib._core.interpreters import profile as observing
from tensorlib.profiler.model_summary import ModelSummary

# a layer, the shape it is called on, what it gives, and its multiplications
LAYERS = [
    (nn.Linear(8, 4), (2, 8), (2, 4), 2 * 8 * 4),
    (nn.Linear(8, 4, bias=False), (3, 2, 8), (3, 2, 4), 6 * 8 * 4),
    (nn.Conv2d(3, 6, 3, padding=1, groups=3), (2, 3, 5, 5), (2, 6, 5, 5), 2 * 6 * 25 * 9),
    (nn.Conv1d(3, 6, 3, stride=2), (2, 3, 9), (2, 6, 4), 2 * 6 * 4 * 3 * 3),
    (nn.ConvTranspose2d(3, 6, 2, stride=2), (2, 3, 4, 4), (2, 6, 8, 8), 2 * 3 * 16 * 6 * 4),
    (nn.ReLU(), (2, 3), (2, 3), 0), (nn.BatchNorm1d(3), (2, 3), (2, 3), 0),
    (nn.LSTM(5, 7), (4, 3, 5), "(4, 3, 7), (1, 3, 7), (1, 3, 7)", 12 * 4 * 7 * (5 + 7)),
    (nn.GRU(5, 7, bidirectional=True), (4, 3, 5), "(4, 3, 14), (2, 3, 7)",
     2 * 12 * 3 * 7 * (5 + 7)),
]


@pytest.mark.parametrize("layer, shape, gives, products", LAYERS,
                         ids=[type(each[0]).__name__ for each in LAYERS])
def test_layers(layer, shape, gives, products):
    found = tl.summary(layer, shape)
    assert found.layers[0].gives == str(gives)
    assert found.total_multiplications == products
    assert found.total_params == sum(p.numel() for p in layer.parameters())


@pytest.mark.parametrize("call, shapes, products", [
    (tl.addmm, [(4, 6), (4, 5), (5, 6)], 4 * 5 * 6),
    (tl.addmv, [(4,), (4, 5), (5,)], 4 * 5),
    (tl.baddbmm, [(2, 4, 6), (2, 4, 5), (2, 5, 6)], 2 * 4 * 5 * 6),
    (tl.dot, [(5,), (5,)], 5), (tl.bmm, [(2, 4, 5), (2, 5, 6)], 2 * 4 * 5 * 6)])
def test_products_that_are_added_to_something(call, shapes, products):
    class Model(nn.Module):
        def forward(self, *given):
            return call(*given)

    assert tl.summary(Model(), shapes).total_multiplications == products
    data = [tl.ones(shape) for shape in shapes]
    for container in (list, tuple):
        assert tl.summary(Model(), input_data=container(data)).total_multiplications == products


def test_a_tensor_is_the_only_argument():
    found = tl.summary(nn.Linear(8, 4), input_data=tl.ones(3, 2, 8))
    assert found.layers[0].gives == "(3, 2, 4)" and found.input_bytes == 3 * 2 * 8 * 4


def test_attention_is_counted_once():
    class Attention(nn.Module):
        def forward(self, x):
            return nn.functional.scaled_dot_product_attention(x, x, x)

    assert tl.summary(Attention(), (2, 5, 3)).total_multiplications == 2 * 5 * 5 * 6


class Two(nn.Module):
    """Two inputs, one module twice, one never, one frozen."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(10, 4)
        self.shared = nn.Linear(4, 4)
        self.never = nn.Linear(2, 2)
        self.end = nn.Sequential(nn.Dropout(0.5), nn.BatchNorm1d(4))
        self.shared.weight.requires_grad_(False)

    def forward(self, x, words):
        return {"out": self.end(self.shared(self.shared(x)) + self.table(words))}


def test_a_model_of_several_modules():
    model = Two()
    model.end[0].eval()
    seed = tl.get_rng_state()
    before = {name: x.clone() for name, x in model.state_dict().items()}
    found = tl.summary(model, [(3, 4), (3,)], dtypes=[tl.float32, tl.int64])
    rows = {row.name: row for row in found.layers}
    assert (rows["shared"].calls, rows["never"].calls) == (2, 0)
    assert rows[""].gives == "(3, 4)" and rows["end.1"].depth == 2
    assert found.total_multiplications == rows["shared"].multiplications == 2 * 3 * 16
    assert found.total_params == 40 + 20 + 6 + 8 and found.trainable_params == 74 - 16
    assert found.param_bytes == 4 * 74 + 4 * 8 + 8 and found.input_bytes == 3 * 16 + 3 * 8
    text = str(found)
    assert "shared: Linear x2" in text and "58 of them trained" in text and "not called" in text
    assert "1: BatchNorm1d" not in str(tl.summary(model, input_data={
        "x": tl.ones(3, 4), "words": tl.tensor([1, 2, 3])}, depth=1))
    # all is as it was
    assert model.training and not model.end[0].training and model.end[1].training
    assert all((x == before[name]).all() for name, x in model.state_dict().items())
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    assert (tl.get_rng_state() == seed).all() and isinstance(found, ModelSummary)


def test_an_error_of_the_model_leaves_it_as_it_was():
    model = nn.Sequential(nn.Linear(4, 4))
    with pytest.raises(RuntimeError):
        tl.summary(model, (2, 5))
    assert model.training and not observing.is_observed()
    assert not model[0]._forward_hooks


@pytest.mark.parametrize("call, error", [
    (lambda: tl.summary(3, (2,)), TypeError), (lambda: tl.summary(nn.ReLU()), ValueError),
    (lambda: tl.summary(nn.ReLU(), [(2,), (3,)], dtypes=[tl.int64]), ValueError)])
def test_what_is_refused(call, error):
    with pytest.raises(error, match="summary"):
        call()
