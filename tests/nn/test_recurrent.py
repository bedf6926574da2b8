"""Recurrent layers without a peer: laws between their forms, derivatives, batches, bad input."""

import copy
import pickle

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib import nn
from tensorlib.autograd import gradcheck, gradgradcheck
from tensorlib.func import functional_call, vmap
from tensorlib.nn.functional.recurrent_steps import recurrent
from tensorlib.nn.utils import rnn
from tensorlib.testing import assert_close

LAYERS = [("LSTM", {}), ("GRU", {}), ("RNN", {}), ("RNN", {"nonlinearity": "relu"}),
          ("LSTM", {"proj_size": 2})]


def made(name, *args, **options):
    tl.manual_seed(0)
    return getattr(nn, name)(*args, dtype=tl.float64, **options)


def numbers(*shape, seed=0):
    return tl.tensor(np.random.default_rng(seed).normal(size=shape))


def flat(states):
    return states if isinstance(states, tuple) else (states,)


@pytest.mark.parametrize("name, options", LAYERS[:-1], ids=repr)      # no cell has a projection
def test_a_layer_is_its_cell_step_by_step(name, options):
    layer, x = made(name, 3, 4, **options), numbers(5, 2, 3)
    cell = made(name + "Cell", 3, 4, **options)
    cell.load_state_dict({key[:-3]: value for key, value in layer.state_dict().items()})
    out, last = layer(x)
    state = None
    for step, wanted in zip(x, out):
        state = cell(step, state)
        assert_close(flat(state)[0], wanted)
    for ours, wanted in zip(flat(state), flat(last)):
        assert_close(ours, wanted[0])


@pytest.mark.parametrize("name, options", LAYERS, ids=repr)
def test_packed_sequences_are_the_sequences_one_by_one(name, options):
    layer = made(name, 3, 4, num_layers=2, bidirectional=True, **options)
    rows = [numbers(n, 3, seed=n) for n in (2, 5, 1)]
    out, last = layer(rnn.pack_sequence(rows, enforce_sorted=False))
    for i, (row, found) in enumerate(zip(rows, rnn.unpack_sequence(out))):
        wanted, ends = layer(row)
        assert_close(found, wanted)
        for whole, end in zip(flat(last), flat(ends)):
            assert_close(whole[:, i], end)


def test_backwards_is_forwards_over_the_reversed():
    both = made("GRU", 3, 4, bidirectional=True)
    alone = made("GRU", 3, 4)
    alone.load_state_dict({key.removesuffix("_reverse"): value
                           for key, value in both.state_dict().items() if "reverse" in key})
    x = numbers(5, 2, 3)
    assert_close(both(x)[0][..., 4:], alone(x.flip(0))[0].flip(0))


@pytest.mark.parametrize("name, options", LAYERS, ids=repr)
def test_derivatives(name, options):
    layer = made(name, 2, 3, **options)
    names = [key for key, _ in layer.named_parameters()]
    tensors = [numbers(2, 2, 2).requires_grad_(), *layer.parameters()]

    def function(x, *params):
        out, last = functional_call(layer, dict(zip(names, params)), (x,))
        return out, *flat(last)
    assert gradcheck(function, tensors, check_forward_ad=True)
    assert gradgradcheck(function, tensors)


def test_what_the_kernel_keeps_has_a_gradient_too():
    inputs = [numbers(*shape).requires_grad_() for shape in ((4, 8), (8, 2), (8,), (2, 2), (2, 2))]
    assert gradcheck(lambda *xs: recurrent(*xs, "lstm", (2, 2), False)[3:], inputs)


@pytest.mark.filterwarnings("error")
def test_layers_under_vmap():
    layer, x = made("LSTM", 3, 4, num_layers=2), numbers(6, 5, 3)
    found = vmap(lambda row: layer(row)[0])(x)
    assert_close(found, tl.stack([layer(row)[0] for row in x]))
    weights = {key: tl.stack([value, 2 * value]) for key, value in layer.state_dict().items()}
    several = vmap(lambda w: functional_call(layer, w, (x[0],))[0])(weights)
    assert_close(several[0], layer(x[0])[0])


def test_half_precision():
    layer, x = nn.GRU(3, 4).bfloat16(), tl.ones(5, 2, 3, dtype=tl.bfloat16)
    out, last = layer(x)
    out.sum().backward()
    assert out.dtype == last.dtype == layer.weight_hh_l0.grad.dtype == tl.bfloat16
    assert_close(out.float(), copy.deepcopy(layer).float()(x.float())[0], rtol=0.02, atol=0.02)


def test_layers_are_copied_and_pickled():
    layer, x = made("LSTM", 3, 4), numbers(5, 2, 3)
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert_close(other(x)[0], layer(x)[0])
        assert [len(names) for names in other.all_weights] == [4]
        other.flatten_parameters()
    packed = rnn.pack_sequence([x[:, 0], x[:2, 1]])
    again = pickle.loads(pickle.dumps(packed))
    assert type(again) is rnn.PackedSequence and again.data.tolist() == packed.data.tolist()


def test_the_graph_is_freed_and_kept():
    layer, x = made("GRU", 3, 4), numbers(5, 2, 3)
    out, _ = layer(x)
    out.sum().backward(retain_graph=True)
    first = layer.weight_hh_l0.grad.clone()
    out.sum().backward()
    assert_close(layer.weight_hh_l0.grad, 2 * first)
    with pytest.raises(RuntimeError):
        out.sum().backward()


def test_threads_leave_the_bits_as_they_are():
    layer, x = nn.LSTM(64, 96), tl.randn(9, 70, 64)
    before, found = tl.get_num_threads(), []
    try:
        for threads in (1, 3):
            tl.set_num_threads(threads)
            layer.zero_grad()
            out, _ = layer(x)
            out.sum().backward()
            found.append([out, *(p.grad for p in layer.parameters())])
    finally:
        tl.set_num_threads(before)
    assert all((a == b).all() for a, b in zip(*found))


BAD = [((4, 8), (8, 2), (8,), (2, 2), (2, 2), "lstm", (2, 1)),
       ((4, 8), (8, 2), (8,), (2, 2), (2, 2), "lstm", (1, 3)),
       ((4, 8), (8, 2), (8,), (2, 2), (2, 2), "lstm", (2, 2**62, -2**62, 2)),
       ((4, 8), (8, 3), (8,), (2, 2), (2, 2), "lstm", (2, 2)),
       ((4, 8), (8, 2), (7,), (2, 2), (2, 2), "lstm", (2, 2)),
       ((4, 8), (8, 2), (8,), (3, 2), (2, 2), "lstm", (2, 2)),
       ((4, 8), (8, 2), (8,), (2, 2), (0, 0), "lstm", (2, 2)),
       ((4, 6), (6, 2), (6,), (2, 2), (2, 2), "gru", (2, 2)),
       ((4, 2, 4), (8, 2), (8,), (2, 2), (2, 2), "lstm", (2, 2))]


@each("case", BAD, ids=repr)
def test_sizes_that_do_not_fit(case):
    *shapes, kind, sizes = case
    with pytest.raises(RuntimeError, match="recurrent"):
        recurrent(*(tl.ones(shape) for shape in shapes), kind, sizes, False)


def test_other_bad_input():
    given = [tl.ones(shape) for shape in ((4, 8), (8, 2), (8,), (2, 2), (2, 2))]
    with pytest.raises(ValueError, match="none of"):
        recurrent(*given, "elman", (2, 2), False)
    with pytest.raises(TypeError):
        recurrent(*given, "lstm", (2.5, 2), False)
    with pytest.raises(RuntimeError, match="float64"):
        recurrent(given[0].double(), *given[1:], "lstm", (2, 2), False)
    with pytest.raises(ValueError, match="weights"):
        tl.lstm(tl.ones(2, 2, 3), (tl.ones(1, 2, 4),) * 2, [], True, 1, 0.0, False, False, False)
    with pytest.raises(TypeError, match="pair"):
        nn.LSTM(3, 4)(tl.ones(2, 2, 3), tl.ones(1, 2, 4))
    with pytest.raises(RuntimeError, match="more than"):
        rnn.pack_padded_sequence(tl.ones(5, 2, 3), [9, 3])


def test_a_rule_of_a_batch_works_outside_of_it():
    """A transform in the rule of a primitive sees whole batches, not the examples around it."""
    @tl.ops.primitive
    def doubled_slope(x):
        return 2 * x
    doubled_slope.batching = lambda info, dims, x: (
        tl.func.vmap(lambda row: tl.func.grad(lambda y: (y * y).sum())(row))(x), 0)
    x = numbers(3, 2)
    found = vmap(doubled_slope)(x)
    assert type(found) is tl.Tensor
    assert_close(found, 2 * x)


@pytest.mark.parametrize("hx", [(1, 2), tl.ones(2, 1), (tl.ones(2, 1),), None, [tl.ones(2, 1)] * 3])
def test_the_states_of_an_lstm_are_a_pair_of_tensors(hx):
    with pytest.raises(TypeError, match="lstm_cell: hx must be a pair of Tensors"):
        tl.lstm_cell(tl.ones(2, 3), hx, tl.ones(4, 3), tl.ones(4, 1))


@each("kind", ["LSTM", "GRU", "RNN"])
@each("hidden", [16, 33, 70])
def test_bfloat16_is_as_near_as_it_can_be_for_any_number_of_threads(kind, hidden):
    """Also where states meet the weight in pairs, of several panels and of rows that are few."""
    layer = getattr(nn, kind)(20, hidden)
    exact = getattr(nn, kind)(20, hidden).double()
    layer.bfloat16()
    exact.load_state_dict(layer.double().state_dict())
    layer.bfloat16()
    x = tl.randn(6, 9, 20).bfloat16()
    wanted = exact(x.double())[0]
    wanted.square().sum().backward()

    def results():
        layer.zero_grad()
        out = layer(x)[0]
        out.float().square().sum().backward()
        return [out.detach(), *(p.grad.clone() for p in layer.parameters())]
    found, before = results(), tl.get_num_threads()
    try:
        tl.set_num_threads(before + 1)
        assert all(map(tl.equal, found, results()))
    finally:
        tl.set_num_threads(before)
    for rounded, sharp in zip(found, [wanted.detach(), *(p.grad for p in exact.parameters())]):
        tl.testing.assert_close(rounded.double(), sharp, rtol=0.05, atol=0.02 * sharp.abs().max())


# ---- what subclasses and tools for PyTorch use ---------------------------------------------------

@each("bias", [True, False])
@each("name, options", LAYERS)
def test_layers_without_memory(name, options, bias):
    layer = getattr(nn, name)(3, 4, 2, bias=bias, **options, device="meta")
    out, last = layer(tl.ones(5, 2, 3, device="meta"))
    assert all(x.is_meta for x in (out, *flat(last))) and out.shape[:2] == (5, 2)
    if not options:
        cell = getattr(nn, name + "Cell")(3, 4, bias, device="meta")
        assert all(x.is_meta for x in flat(cell(tl.ones(2, 3, device="meta"))))


@pytest.mark.parametrize("name, options", LAYERS)
def test_layers_tell_their_weights_and_check_their_states(name, options):
    layer = made(name, 3, 4, 2, bidirectional=True, **options)
    assert layer._flat_weights_names == [key for key, _ in layer.named_parameters()]
    assert all(map(lambda x, y: x is y, layer._flat_weights, layer.parameters()))
    other = nn.Parameter(layer.weight_hh_l1.detach() + 1)
    layer._flat_weights = [other if x is layer.weight_hh_l1 else x for x in layer._flat_weights]
    assert layer.weight_hh_l1 is other and len(layer._flat_weights) == len(layer._all_weights) * (
        4 + ("proj_size" in options))
    x, width = numbers(5, 2, 3), options.get("proj_size", 4)
    assert layer.get_expected_hidden_size(x, None) == (4, 2, width)
    assert layer.get_expected_hidden_size(x, tl.tensor([3, 1])) == (4, 3, width)
    _, states = layer(x)
    layer.check_forward_args(x, states, None)
    turned = flat(layer.permute_hidden(states, tl.tensor([1, 0])))
    assert all(tl.equal(x, y.flip(1)) for x, y in zip(turned, flat(states)))
    with pytest.raises(RuntimeError, match="Expected hidden"):
        layer.check_forward_args(x[:, :1], states, None)
