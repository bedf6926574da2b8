"""Names and older names of modules, and layers with weights beside their functions."""

import copy

import pytest
from cases import each

import tensorlib as tl
from tensorlib import nn
from tensorlib.nn import functional as F
from tensorlib.nn.modules.transformer import is_causal_mask
from tensorlib.testing import assert_close

X = {n: tl.randn(2, 4, *(9, 8, 7)[:n], dtype=tl.float64) for n in (1, 2, 3)}


# ---- names ---------------------------------------------------------------------------------------

def test_what_dir_lists():
    assert dir(nn) == sorted(nn.__all__)
    net = nn.Sequential(nn.Linear(2, 2))
    net.count = nn.Buffer(tl.ones(1))
    names = dir(net)
    assert names == sorted(names) and "0" not in names          # which is not an attribute's name
    assert {"count", "forward", "state_dict", "training"} < set(names)
    assert {"weight", "bias"} < set(dir(net[0]))


def test_a_module_is_added_under_either_name():
    net, part = nn.Module(), nn.ReLU()
    assert net.register_module("part", part) is None
    assert net.part is part and dict(net.named_children()) == {"part": part}
    with pytest.raises(KeyError, match="attribute 'forward' already exists"):
        net.register_module("forward", part)


def test_backward_hooks_under_their_older_name():
    layer, seen = nn.Linear(2, 1, bias=False), []
    assert not layer._backward_hooks and not layer._backward_pre_hooks
    handle = layer.register_backward_hook(lambda module, before, after: seen.append(
        (module, len(before), after[0].tolist())))
    assert len(layer._backward_hooks) == 1 and not layer._backward_pre_hooks
    x = tl.ones(3, 2, requires_grad=True)
    layer(x).sum().backward()
    assert seen == [(layer, 1, [[1]] * 3)]
    handle.remove()
    assert not layer._backward_hooks
    layer.register_full_backward_pre_hook(lambda module, after: (after[0] * 2,))
    assert len(layer._backward_pre_hooks) == 1 and not layer._backward_hooks
    layer.weight.grad = None
    layer(x).sum().backward()
    assert layer.weight.grad.tolist() == [[6, 6]] and len(seen) == 1


def test_a_state_is_asked_for_by_position():
    """(destination, prefix, keep_vars), as it once could be; what is missing is as usual."""
    layer, own = nn.Linear(2, 1), {"x": 1}
    assert layer.state_dict(own) is own and list(own) == ["x", "weight", "bias"]
    assert list(layer.state_dict(None, "a.")) == ["a.weight", "a.bias"]
    assert list(layer.state_dict(None, prefix="b.")) == ["b.weight", "b.bias"]
    assert layer.state_dict(None, "a.", True)["a.weight"] is layer.weight
    assert layer.state_dict(None, "a.", keep_vars=True)["a.weight"] is layer.weight
    assert not layer.state_dict(None, "a.", False)["a.weight"].requires_grad
    assert not layer.state_dict(None, "a.")["a.weight"].requires_grad


def test_shared_memory_holds_the_same_values():
    layer = nn.BatchNorm1d(3).double()
    layer(tl.randn(4, 3, dtype=tl.float64)).sum().backward()
    before, kept = copy.deepcopy(layer.state_dict()), list(layer.parameters())
    grads = [parameter.grad.clone() for parameter in kept]
    places = [tensor.data_ptr() for tensor in layer.state_dict().values()]
    assert layer.share_memory() is layer
    assert all(tensor.equal(before[name]) and tensor.dtype == before[name].dtype
               for name, tensor in layer.state_dict().items())
    assert all(new is old and new.grad.equal(grad)
               for new, old, grad in zip(layer.parameters(), kept, grads))
    assert not set(places) & {tensor.data_ptr() for tensor in layer.state_dict().values()}
    assert nn.LayerNorm(0).share_memory().weight.shape == (0,)


def test_slopes_are_set_as_at_first():
    layer = nn.PReLU(2, init=0.5)
    weight = layer.weight
    with tl.no_grad():
        weight.add_(1)
    assert layer(-tl.ones(1, 2)).tolist() == [[-1.5, -1.5]]
    layer.reset_parameters()
    assert layer.weight is weight and weight.tolist() == [0.5, 0.5] and weight.requires_grad


# ---- convolutions --------------------------------------------------------------------------------

@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("n", X)
def test_convolutions_are_their_functions(n, bias):
    sizes = {"stride": (2, 1, 3)[:n], "padding": (2, 0, 1)[:n], "dilation": (1, 2, 1)[:n]}
    layer = getattr(nn, f"Conv{n}d")(4, 6, 2, **sizes, groups=2, bias=bias, dtype=tl.float64)
    assert layer(X[n]).equal(getattr(F, f"conv{n}d")(X[n], layer.weight, layer.bias, **sizes,
                                                     groups=2))
    more = {"output_padding": (1, 0, 2)[:n]}
    layer = getattr(nn, f"ConvTranspose{n}d")(4, 6, 2, **sizes, **more, groups=2, bias=bias,
                                              dtype=tl.float64)
    function = getattr(F, f"conv_transpose{n}d")
    found = layer(X[n])
    assert found.equal(function(X[n], layer.weight, layer.bias, **sizes, **more, groups=2))
    size = tuple(length - 1 for length in found.shape[2:3]) + found.shape[3:]
    assert layer(X[n], size).shape[2:] == size and layer(X[n][0]).shape == found.shape[1:]


@each("mode", ["reflect", "replicate", "circular"])
@each("n", X)
def test_margins_of_convolutions(n, mode):
    """As many as are said for each dim; `pad` takes the last dim first."""
    padding = (2, 0, 1)[:n]
    layer = getattr(nn, f"Conv{n}d")(4, 2, 2, padding=padding, padding_mode=mode,
                                     dtype=tl.float64)
    margins = [length for length in reversed(padding) for _ in range(2)]
    wide = F.pad(X[n], margins, mode=mode)
    assert layer(X[n]).equal(getattr(F, f"conv{n}d")(wide, layer.weight, layer.bias))


@each("mode", ["constant", "reflect", "replicate", "circular"])
@each("margins", [(0, 0, 0, 0), (0, -1, 0, 0), (-1, -1, -1, 0)])
def test_a_padded_tensor_has_elements_of_its_own(margins, mode):
    x = tl.ones(1, 1, 4, 4)
    F.pad(x, margins, mode=mode).zero_()
    assert x.sum() == 16


# ---- transformers --------------------------------------------------------------------------------

@pytest.mark.parametrize("mode", ["zeros", "circular"])
@pytest.mark.parametrize("n", X)
def test_convolutions_by_a_weight_of_their_subclass(n, mode):
    plain = getattr(nn, f"Conv{n}d")

    class Standardised(plain):
        def forward(self, input):
            return self._conv_forward(input, self.weight - self.weight.mean(), self.bias)

    class Cast(plain):
        def _conv_forward(self, input, weight, bias):
            return super()._conv_forward(input, weight - weight.mean(), bias)

    layer = plain(4, 4, 3, padding=1, padding_mode=mode, dtype=tl.float64)
    centred = {"weight": layer.weight - layer.weight.mean(), "bias": layer.bias}
    wanted = tl.func.functional_call(layer, centred, X[n])
    for kind in Standardised, Cast:
        other = kind(4, 4, 3, padding=1, padding_mode=mode, dtype=tl.float64)
        other.load_state_dict(layer.state_dict())
        assert tl.equal(other(X[n]), wanted)
    layer._conv_forward = Cast._conv_forward.__get__(other)      # of this one object
    assert tl.equal(layer(X[n]), wanted)


def test_margins_of_convolutions_as_pad_takes_them():
    layer = nn.Conv2d(1, 2, (3, 5), padding="same", padding_mode="reflect", dilation=(1, 2))
    assert layer._reversed_padding_repeated_twice == [4, 4, 1, 1]
    layer._reversed_padding_repeated_twice = [1, 1, 1, 1]
    assert layer(tl.ones(1, 1, 9, 9)).shape == (1, 2, 9, 3)
    layer = nn.ConvTranspose2d(1, 1, 3, stride=2)
    assert layer.transposed and tuple(layer._output_padding(
        tl.ones(1, 1, 4, 4), [10, 9], [2, 2], [0, 0], [3, 3], 2)) == (1, 0)
    assert "padding_mode" in layer.__constants__ and nn.Linear.__constants__[0] == "in_features"


def test_a_convolution_of_its_own_takes_eleven_options():
    class Sums(nn.modules.conv._ConvNd):
        def __init__(self):
            super().__init__(4, 6, (3, 3), (1, 1), (1, 1), (1, 1), False, (0, 0), 1, True, "zeros",
                             dtype=tl.float64)

        def forward(self, input):
            return F.conv2d(input, self.weight, self.bias, self.stride, self.padding)

    layer = Sums()
    assert layer.ndim == 2 and layer.weight.shape == (6, 4, 3, 3) and not layer.transposed
    assert layer(X[2]).shape == (2, 6, 9, 8)


def test_a_decoder_normalises_before_or_after():
    x, memory = tl.randn(5, 2, 4), tl.randn(3, 2, 4)
    for first in (True, False):
        layer = nn.TransformerDecoderLayer(4, 2, 8, norm_first=first).eval()
        for i, parameter in enumerate(layer.parameters()):
            nn.init.normal_(parameter, std=0.5 + 0.1 * i)

        def own(y):
            return layer.self_attn(y, y, y)[0]

        def other(y):
            return layer.multihead_attn(y, memory, memory)[0]

        def forward(y):
            return layer.linear2(F.relu(layer.linear1(y)))

        wanted = x
        for step, norm in ((own, layer.norm1), (other, layer.norm2), (forward, layer.norm3)):
            wanted = wanted + step(norm(wanted)) if first else norm(wanted + step(wanted))
        assert_close(layer(x, memory), wanted, rtol=1e-4, atol=1e-5)


def test_blocks_of_layers_take_masks_by_name():
    encoder, decoder = (kind(4, 2, dropout=0.0) for kind in (
        nn.TransformerEncoderLayer, nn.TransformerDecoderLayer))
    x, mask = tl.randn(3, 2, 4), tl.ones(3, 3, dtype=tl.bool).triu(1)
    padding = tl.tensor([[False, False, True], [False, False, False]])
    masks = {"attn_mask": mask, "key_padding_mask": padding}
    for layer in encoder, decoder:
        assert tl.equal(layer._sa_block(x=x, **masks), layer._sa_block(x, mask, padding, True))
        assert layer._ff_block(x=x).shape == x.shape
    assert tl.equal(decoder._mha_block(x=x, mem=x, **masks),
                    decoder._mha_block(x, x, mask, padding, False))
    assert len(nn.modules.transformer._get_clones(encoder, 2)) == 2
    assert nn.modules.transformer._get_activation_fn("gelu") is F.gelu


def test_attention_says_whether_one_matrix_projects_all():
    for sizes, together in (({}, True), ({"kdim": 2}, False), ({"kdim": 4, "vdim": 4}, True)):
        layer = nn.MultiheadAttention(4, 2, **sizes)
        assert layer._qkv_same_embed_dim is together is (layer.in_proj_weight is not None)


def test_a_decoder_that_normalises_first_hides_what_masks_say():
    layer = nn.TransformerDecoderLayer(4, 2, 8, norm_first=True).eval()
    x, memory = tl.randn(5, 2, 4), tl.randn(3, 2, 4)
    later = nn.Transformer.generate_square_subsequent_mask(5)
    hidden = tl.tensor([[False, False, True]] * 2)
    found = layer(x, memory, tgt_mask=later, memory_key_padding_mask=hidden)
    assert_close(layer(x[:2], memory[:2], tgt_mask=later[:2, :2]), found[:2])
    assert_close(layer(x, memory, tgt_mask=later != 0, memory_key_padding_mask=hidden), found)


SQUARE = nn.Transformer.generate_square_subsequent_mask(3)


@each("mask, hint, batch_first, wanted", [
    (SQUARE, None, False, True), (SQUARE, None, True, False), (SQUARE != 0, None, False, True),
    (SQUARE.double(), None, False, True), (SQUARE.mT, None, False, False),
    ((SQUARE == 0), None, False, False), (SQUARE * 0 - 1, None, False, False),
    (SQUARE[:2, :2], None, False, False), (SQUARE[:2, :2], None, True, True),
    (SQUARE[:, :2], None, False, False), (None, None, False, False), (None, True, False, True),
    (None, False, False, False), (SQUARE, False, False, False), (SQUARE.mT, True, False, True)])
def test_a_mask_is_causal_by_the_hint_or_by_its_elements(mask, hint, batch_first, wanted):
    assert is_causal_mask(mask, hint, tl.ones(3, 2, 4), batch_first) is wanted
    if not batch_first:
        assert is_causal_mask(mask, hint, tl.ones(3, 4), True) is wanted


def test_dicts_of_members_are_made_anew_by_their_type():
    """As libraries do that go through containers, among them the attributes of a module."""
    module = nn.Linear(2, 3)
    members = vars(module)["_parameters"]
    assert type(members)(members) == type(members)(list(members.items())) == members
    copy = type(members)({name: x.detach() for name, x in members.items()})
    copy["more"] = 1
    assert copy.pop("more") == 1 and not hasattr(module, "more")
    vars(module).update(_parameters=copy)
    assert not any(x.requires_grad for x in module.parameters())


@pytest.mark.parametrize("name", ["float", "double", "half", "bfloat16"])
def test_complex_members_stay_where_floats_change(name):
    module = nn.Linear(2, 2)
    module.register_buffer("waves", tl.complex(tl.tensor([1.0]), tl.tensor([2.0])))
    assert getattr(module, name)() is module
    assert module.weight.dtype is getattr(tl, name) and module.waves.item() == 1 + 2j
