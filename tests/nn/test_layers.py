"""Layers: what they refuse, and what is not only a matter of values."""

import copy

import pytest
from cases import each

import tensorlib as tl
from tensorlib import nn
from tensorlib.nn import functional as F
from tensorlib.nn.parameter import Parameter


@each("make, error, text", [
    (lambda: nn.Conv2d(3, 4, 3, groups=2), ValueError, r"in_channels \(3\) must be divisible"),
    (lambda: nn.Conv2d(4, 3, 3, groups=2), ValueError, r"out_channels \(3\) must be divisible"),
    (lambda: nn.Conv2d(4, 4, 3, groups=0), ValueError, "positive"),
    (lambda: nn.Conv2d(4, 4, (3, 3, 3)), ValueError, "kernel_size must be one number or 2"),
    (lambda: nn.Conv2d(4, 4, 3, padding="some"), ValueError, "'same' or 'valid'"),
    (lambda: nn.Conv2d(4, 4, 3, 2, padding="same"), ValueError, "strided"),
    (lambda: nn.Conv2d(4, 4, 3, padding_mode="odd"), ValueError, "padding_mode"),
    (lambda: nn.ConvTranspose2d(4, 4, 3, padding_mode="reflect"), ValueError, "zeros"),
    (lambda: nn.ConvTranspose2d(1, 1, 3)(tl.ones(1, 4, 4), output_size=(9, 9)), ValueError,
     "can't be had"),
    (lambda: nn.ConvTranspose2d(1, 1, 3)(tl.ones(1, 4, 4), output_size=(9,)), ValueError,
     "2 or 3 numbers"),
    (lambda: nn.BatchNorm2d(3)(tl.ones(2, 3)), ValueError, r"expected 4D input \(got 2D input\)"),
    (lambda: nn.InstanceNorm1d(3, affine=True)(tl.ones(2, 4, 5)), ValueError, "3 channels, got 4"),
    (lambda: nn.Conv2d(4, 6, 3)(tl.ones(2, 3, 5, 5)), RuntimeError,
     r"Given groups=1, weight of size \[6, 4, 3, 3\], expected input\[2, 3, 5, 5\] to have 4 "
     "channels, but got 3 channels instead"),
    (lambda: nn.BCELoss()(tl.ones(3), tl.ones(2)), ValueError, "must be the same as input size"),
    (lambda: nn.GroupNorm(2, 3), ValueError, "divisible"),
    (lambda: nn.Dropout(1.5), ValueError, "between 0 and 1"),
    (lambda: nn.Dropout("a"), TypeError, "Dropout: p must be a number, not str"),
    (lambda: nn.utils.rnn.pad_packed_sequence(tl.ones(3)), TypeError, "expects a PackedSequence"),
    (lambda: nn.Embedding(3, 2, padding_idx=3), AssertionError, "within num_embeddings"),
    (lambda: nn.Embedding.from_pretrained(tl.ones(3)), ValueError, "2-dimensional"),
    (lambda: nn.Embedding(3, 2)(tl.tensor([3])), IndexError, "embedding: index out of range"),
    (lambda: nn.Hardtanh(2, 1), ValueError, "max_val must be above"),
    (lambda: nn.Softmax2d()(tl.ones(2)), ValueError, "3 or 4 dims"),
    (lambda: nn.Bilinear(0, 2, 3), ValueError, "above 0"),
    (lambda: nn.Unflatten(1, 3), TypeError, "tuple of ints"),
    (lambda: nn.ZeroPad2d((1, 2, 3)), ValueError, "one number or 4"),
    (lambda: nn.CircularPad1d(1)(tl.ones(2)), ValueError, "2 or 3 dims"),
    (lambda: nn.TripletMarginLoss(margin=0), ValueError, "greater than 0"),
    (lambda: nn.MultiMarginLoss(p=3), ValueError, "p == 1 and p == 2"),
    (lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 5, [3, 2]), ValueError, "increasing"),
    (lambda: nn.LazyConv2d(4, 3)(tl.ones(2)), ValueError, "expected an input of 3 or 4 dims"),
])
def test_bad_layers(make, error, text):
    with pytest.raises(error, match=text):
        make()


@each("kind", [nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose2d, nn.LazyConv2d])
def test_a_sequence_of_one_number_is_for_all_dims_of_a_convolution(kind):
    channels = () if kind is nn.LazyConv2d else (2,)
    options = {"stride": 3, "padding": 1, "dilation": 2}
    if kind is nn.ConvTranspose2d:
        options["output_padding"] = 1
    layer = kind(*channels, 2, 3, **{name: [value] for name, value in options.items()})
    wanted = kind(*channels, 2, 3, **options)
    assert all(getattr(layer, name) == getattr(wanted, name) for name in options)


def test_the_output_size_of_a_transposed_convolution():
    layer = nn.ConvTranspose2d(1, 1, 3, stride=2)
    for size in ((9, 9), (10, 9), (10, 10)):
        assert layer(tl.ones(1, 1, 4, 4), output_size=size).shape == (1, 1, *size)
        assert layer(tl.ones(1, 1, 4, 4), output_size=(1, 1, *size)).shape == (1, 1, *size)


def test_the_first_call_of_a_lazy_layer_takes_its_options():
    for sizes in ((7, 8), [7, 8]):
        layer = nn.LazyConvTranspose2d(1, 3, stride=2)
        assert layer(tl.ones(1, 2, 3, 3), output_size=sizes).shape == (1, 1, 7, 8)


def test_lazy_layers_in_a_model():
    net = nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.ReLU(), nn.Flatten(),
                        nn.LazyLinear(2))
    parameters = list(net.parameters())
    state = net.state_dict()
    other = copy.deepcopy(net)
    assert repr(parameters[0]) == "<UninitializedParameter>"
    net.double()(tl.ones(2, 3, 6, 6, dtype=tl.float64)).sum().backward()
    assert [id(p) for p in net.parameters()] == [id(p) for p in parameters]
    assert [type(part).__name__ for part in net] == [
        "Conv2d", "BatchNorm2d", "ReLU", "Flatten", "Linear"]
    assert all(type(p) is Parameter and p.grad is not None for p in parameters)
    assert not net[0]._forward_pre_hooks and len(state) == len(net.state_dict())
    assert other(tl.ones(2, 1, 4, 4)).shape == (2, 2) and other[0].in_channels == 1
    with pytest.raises(RuntimeError, match="size mismatch for 0.weight"):
        other.load_state_dict(net.state_dict())


def test_a_lazy_layer_takes_on_a_state():
    full, lazy = nn.Linear(3, 2), nn.LazyLinear(2)
    lazy.load_state_dict(full.state_dict())
    assert tl.equal(lazy(tl.ones(3)), full(tl.ones(3))) and type(lazy) is nn.Linear


def test_an_embedding_with_a_table_of_its_own():
    table = tl.arange(6.0).reshape(3, 2)
    layer = nn.Embedding.from_pretrained(table)
    assert not layer.weight.requires_grad and layer.weight.data_ptr() == table.data_ptr()
    assert nn.EmbeddingBag.from_pretrained(table, freeze=False).weight.requires_grad
    layer = nn.Embedding(4, 2, padding_idx=-1)
    layer(tl.tensor([0, 3])).sum().backward()
    assert layer.weight[3].tolist() == [0, 0] and layer.weight.grad[3].tolist() == [0, 0]
    assert layer.padding_idx == 3 and "padding_idx=3" in repr(layer)


@pytest.mark.parametrize("index", [0, [2, 0, 2], [[0, 1], [1, 1]]])
def test_tables_with_sparse_gradients_have_those_of_dense_tables(index):
    index, found = tl.tensor(index), []
    for sparse in (False, True):
        layers = [nn.Embedding(3, 2, sparse=sparse)]
        if index.ndim == 2:
            layers += [nn.EmbeddingBag(3, 2, mode=mode, sparse=sparse) for mode in ("sum", "mean")]
        for layer in layers:
            nn.init.ones_(layer.weight)
            layer(index).square().sum().backward()
        found.append([layer.weight.grad.to_dense().tolist() for layer in layers])
    assert found[0] == found[1]


@pytest.mark.parametrize("call, text", [
    (lambda i: F.embedding(i, tl.ones(3, 2)), "embedding: index out of range in self: index 3"),
    (lambda i: F.embedding(i.reshape(1, 2), tl.ones(3, 2)), "embedding: index out of range"),
    (lambda i: F.embedding(i - 4, tl.ones(3, 2)), "embedding: index out of range in self: -4")])
def test_rows_that_a_table_does_not_have(call, text):
    with pytest.raises(IndexError, match=text):
        call(tl.tensor([0, 3]))


@pytest.mark.parametrize("option", ["scale_grad_by_freq", "sparse"])
def test_maxima_of_bags_have_gradients_of_their_own(option):
    with pytest.raises(ValueError, match="embedding_bag: max mode does not support"):
        nn.EmbeddingBag(3, 2, mode="max", **{option: True})(tl.tensor([[0, 1]]))


@pytest.mark.parametrize("stride, padding, dilation", [(1, 0, 1), (3, 1, 1), (2, 0, 2), (4, 2, 1)])
def test_transposed_convolutions_give_each_size_that_leads_here(stride, padding, dilation):
    """The sizes that a convolution brings to that of the input, and no others."""
    up = nn.ConvTranspose1d(1, 1, 5, stride, padding, dilation=dilation)
    down = nn.Conv1d(1, 1, 5, stride, padding, dilation)
    x = tl.ones(1, 1, 4)
    for size in range(1, 40):
        if size + 2 * padding > 4 * dilation and down(tl.ones(1, 1, size)).shape == x.shape:
            assert up(x, output_size=(size,)).shape == (1, 1, size)
            assert up(x, output_size=(1, 1, size)).shape == (1, 1, size)
        else:
            with pytest.raises(ValueError, match="output_size .* can't be had"):
                up(x, output_size=(size,))


@each("mode", ["zeros", "reflect", "replicate", "circular"])
@each("window, dilation", [(1, 1), (2, 1), (3, 1), (4, 1), (2, 3), (3, 2)])
def test_what_is_added_for_the_same_size_stands_behind_where_it_is_odd(window, dilation, mode):
    layer = nn.Conv1d(2, 3, window, padding="same", dilation=dilation, padding_mode=mode)
    x = tl.randn(2, 2, 8)
    margins = dilation * (window - 1) // 2, dilation * (window - 1) - dilation * (window - 1) // 2
    wide = F.pad(x, margins, mode="constant" if mode == "zeros" else mode)
    tl.testing.assert_close(layer(x), F.conv1d(wide, layer.weight, layer.bias, dilation=dilation))


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_of_equal_sizes_at_offsets_are_those_of_a_matrix(mode):
    indices = tl.tensor([[3, 0, 3], [1, 1, 2]])
    weight = tl.arange(12.0).reshape(4, 3).requires_grad_()
    factors = tl.tensor([[0.5, -1.0, 2.0], [1.0, 3.0, 0.25]])
    for options in [{}, {"padding_idx": 1}] + [{"per_sample_weights": factors}] * (mode == "sum"):
        found = []
        for index, more in ((indices, {}), (indices.flatten(), {"offsets": tl.tensor([0, 3])})):
            if "per_sample_weights" in options:
                options = {"per_sample_weights": factors.reshape(index.shape)}
            out = tl.nn.functional.embedding_bag(index, weight, mode=mode, **more, **options)
            grad, = tl.autograd.grad((out * tl.tensor([[1.0], [2.0]])).sum(), weight)
            found.append((out.detach(), grad))
        tl.testing.assert_close(*found)
    nothing = tl.nn.functional.embedding_bag(indices.flatten()[:0], weight, tl.tensor([0, 0]),
                                             mode=mode)
    assert nothing.tolist() == [[0.0] * 3] * 2
