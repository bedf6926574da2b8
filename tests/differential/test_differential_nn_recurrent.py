"""Recurrent layers, cells and sequences of different lengths beside PyTorch's."""

import itertools
import warnings

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib import nn
from tensorlib.testing import assert_close

torch = pytest.importorskip("torch")

LIBRARIES = ((tl, nn), (torch, torch.nn))
LAYERS = [("LSTM", {}), ("GRU", {}), ("RNN", {}), ("RNN", {"nonlinearity": "relu"})]
OPTIONS = [{}, {"bias": False}, {"num_layers": 2, "bidirectional": True},
           {"bidirectional": True, "batch_first": True}, {"num_layers": 3, "bias": False}]
CASES = [(name, {**kind, **options}) for (name, kind), options in
         itertools.product(LAYERS, OPTIONS)]
CASES += [("LSTM", {"proj_size": 2, **options}) for options in OPTIONS]


def arrays(seed, *shapes):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=shape) for shape in shapes]


def assert_equal(ours, theirs, **tolerance):
    """Tensors, or nested tuples of them, of both libraries."""
    if isinstance(theirs, (tuple, list)):
        assert len(ours) == len(theirs)
        for x, y in zip(ours, theirs):
            assert_equal(x, y, **tolerance)
    elif theirs is None:
        assert ours is None
    else:
        assert tuple(ours.shape) == tuple(theirs.shape)
        assert_close(ours.detach().numpy(), theirs.detach().numpy(), **tolerance)


def pair(name, *args, **options):
    """The module in both libraries, in float64, with the parameters that PyTorch drew."""
    theirs = getattr(torch.nn, name)(*args, dtype=torch.float64, **options)
    ours = getattr(nn, name)(*args, dtype=tl.float64, **options)
    states = {key: tl.tensor(value.numpy()) for key, value in theirs.state_dict().items()}
    assert list(ours.state_dict()) == list(states)
    ours.load_state_dict(states)
    assert repr(ours) == repr(theirs)
    return ours, theirs


def run(lib, call, *given):
    """What a call gives on tensors that require gradients, and the gradients of its sum of squares
    for them."""
    tensors = [lib.tensor(x, dtype=lib.float64).requires_grad_() for x in given]
    out = call(*tensors)
    flat = []

    def gather(x):
        for part in x if isinstance(x, (tuple, list)) else (x,):
            gather(part) if isinstance(part, (tuple, list)) else flat.append(part)
    gather(out)
    loss = sum(((i + 1) * x * x).sum() for i, x in enumerate(flat)
               if x is not None and x.is_floating_point())
    loss.backward()
    return out, [x.grad for x in tensors]


def assert_same_runs(ours, theirs, call, *given):
    """Both modules have the same results and gradients, of inputs and of parameters."""
    found, grads = run(tl, lambda *xs: call(tl, ours, *xs), *given)
    wanted, their_grads = run(torch, lambda *xs: call(torch, theirs, *xs), *given)
    assert_equal(found, wanted)
    assert_equal(grads, their_grads)
    assert_equal([p.grad for p in ours.parameters()], [p.grad for p in theirs.parameters()])


def states_of(name, options, batch, seed=5):
    layers = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
    hidden, cell = arrays(seed, (layers, *batch, options.get("proj_size", 4)), (layers, *batch, 4))
    return (hidden, cell) if name == "LSTM" else (hidden,)


def with_states(name):
    def call(lib, module, x, *states):
        return module(x, states if name == "LSTM" else states[0])
    return call


@each("name, options", CASES, ids=repr)
def test_layers(name, options):
    x, alone = arrays(1, (5, 2, 3), (5, 3))
    assert_same_runs(*pair(name, 3, 4, **options), lambda lib, module, x: module(x), x)
    states = states_of(name, options, (5 if options.get("batch_first") else 2,))
    assert_same_runs(*pair(name, 3, 4, **options), with_states(name), x, *states)
    assert_same_runs(*pair(name, 3, 4, **options), with_states(name), alone,
                     *states_of(name, options, ()))


@each("name, options", CASES, ids=repr)
def test_layers_on_packed_sequences(name, options):
    first = options.get("batch_first", False)
    x, = arrays(2, (3, 5, 3) if first else (5, 3, 3))

    def call(lib, module, x, *states):
        rnn = lib.nn.utils.rnn
        packed = rnn.pack_padded_sequence(x, [2, 5, 1], first, enforce_sorted=False)
        out, last = with_states(name)(lib, module, packed, *states) if states else module(packed)
        return *rnn.pad_packed_sequence(out, first, padding_value=-1.0), last
    assert_same_runs(*pair(name, 3, 4, **options), call, x)
    assert_same_runs(*pair(name, 3, 4, **options), call, x, *states_of(name, options, (3,)))


@each("name, options", [
    ("LSTMCell", {}), ("GRUCell", {}), ("RNNCell", {}), ("RNNCell", {"nonlinearity": "relu"}),
    ("LSTMCell", {"bias": False}), ("GRUCell", {"bias": False})], ids=repr)
def test_cells(name, options):
    x, alone, *states = arrays(3, (2, 3), (3,), (2, 4), (2, 4))
    states = states if name == "LSTMCell" else states[:1]

    def call(lib, module, x, *states):
        if not states:
            return module(x)
        return module(x, states if name == "LSTMCell" else states[0])
    assert_same_runs(*pair(name, 3, 4, **options), call, x)
    assert_same_runs(*pair(name, 3, 4, **options), call, x, *states)
    assert_same_runs(*pair(name, 3, 4, **options), call, alone, *(h[0] for h in states))


@each("name", ["lstm", "gru", "rnn_tanh", "rnn_relu"])
def test_functions(name):
    width = {"lstm": 4, "gru": 3}.get(name, 1) * 2
    given = arrays(4, (4, 2, 3), (1, 2, 2), (1, 2, 2), (width, 3), (width, 2), (width,), (width,))

    def layer(lib, _, x, h, c, *params):
        hx = (h, c) if name == "lstm" else h
        return getattr(lib, name)(x, hx, params, True, 1, 0.0, False, False, False)

    def packed(lib, _, x, h, c, *params):
        hx = (h, c) if name == "lstm" else h
        sizes = lib.tensor([2, 2, 1, 1])
        return getattr(lib, name)(x.reshape(8, 3)[:6], sizes, (hx if name == "lstm" else hx),
                                  params, True, 1, 0.0, False, False)

    def cell(lib, _, x, h, c, *params):
        hx = (h[0], c[0]) if name == "lstm" else h[0]
        return getattr(lib, name + "_cell")(x[0], hx, *params)
    for call in (layer, packed, cell):
        found, grads = run(tl, lambda *xs, call=call: call(tl, None, *xs), *given)
        wanted, theirs = run(torch, lambda *xs, call=call: call(torch, None, *xs), *given)
        assert_equal(found, wanted)
        assert_equal(grads, theirs)


def test_second_derivatives():
    """Of an LSTM's loss, along its own gradient."""
    x, = arrays(6, (3, 2, 3))
    found = []
    for lib, module in zip((tl, torch), pair("LSTM", 3, 4)):
        out, _ = module(lib.tensor(x))
        grads = lib.autograd.grad((out ** 2).sum(), list(module.parameters()), create_graph=True)
        sum((g ** 2).sum() for g in grads).backward()
        found.append([p.grad for p in module.parameters()])
    assert_equal(*found)


def test_dropout_lies_between_layers():
    ours, theirs = pair("GRU", 3, 4, num_layers=2, dropout=1.0)
    assert_same_runs(ours, theirs, lambda lib, module, x: module(x), *arrays(7, (4, 2, 3)))
    ours, theirs = pair("GRU", 3, 4, num_layers=2, dropout=0.5)
    assert_same_runs(ours.eval(), theirs.eval(), lambda lib, module, x: module(x),
                     *arrays(7, (4, 2, 3)))


def test_what_is_left_of_no_examples():
    for name in ("LSTM", "GRU"):
        assert_same_runs(*pair(name, 3, 4), lambda lib, module, x: module(x), np.zeros((5, 0, 3)))


# ---- sequences -----------------------------------------------------------------------------------

def test_packing_and_padding():
    x, = arrays(8, (4, 3, 2))
    for first, lengths, ordered in itertools.product((True, False), ((4, 2, 2), (1, 4, 3)),
                                                     (True, False)):
        if ordered and lengths[0] == 1:
            continue

        def call(lib, x, first=first, lengths=lengths, ordered=ordered):
            rnn = lib.nn.utils.rnn
            given = x.transpose(0, 1) if first else x
            packed = rnn.pack_padded_sequence(given, lib.tensor(lengths), first, ordered)
            return (tuple(packed), rnn.pad_packed_sequence(packed, first, 7.0),
                    rnn.pad_packed_sequence(packed, not first, total_length=6),
                    rnn.unpack_sequence(packed))
        found, grads = run(tl, lambda x: call(tl, x), x)
        wanted, theirs = run(torch, lambda x: call(torch, x), x)
        assert_equal(found, wanted)
        assert_equal(grads, theirs)


@each("options", [{}, {"batch_first": True}, {"padding_value": -2.0},
                  {"padding_side": "left", "batch_first": True}], ids=repr)
def test_padding(options):
    given = arrays(9, (2, 3), (4, 3), (1, 3))
    found, grads = run(tl, lambda *xs: tl.nn.utils.rnn.pad_sequence(xs, **options), *given)
    wanted, theirs = run(torch, lambda *xs: torch.nn.utils.rnn.pad_sequence(xs, **options), *given)
    assert_equal(found, wanted)
    assert_equal(grads, theirs)
    if "padding_side" not in options:
        first = options.get("batch_first", False)
        assert_equal(*(lib.nn.utils.rnn.unpad_sequence(x, lib.tensor([2, 4, 1]), first)
                       for lib, x in ((tl, found), (torch, wanted))))


def test_packed_sequences_convert():
    for lib, _ in LIBRARIES:
        rnn = lib.nn.utils.rnn
        packed = rnn.pack_sequence([lib.tensor([1.0, 2.0]), lib.tensor([3.0])])
        assert packed.double().data.dtype == lib.float64 == packed.to(lib.float64).data.dtype
        assert packed.to(lib.float32) is packed and packed.cpu().data is packed.data
        assert not packed.is_cuda and not packed.is_pinned() and len(packed) == 4
        assert packed.long().data.dtype == lib.int64 and packed.byte().data.dtype == lib.uint8
        assert packed.data.tolist() == [1, 3, 2] and packed._replace(data=None).data is None
        again = rnn.PackedSequence((packed.data, packed.batch_sizes))
        assert again.sorted_indices is None and again.batch_sizes.tolist() == [2, 1]
        assert rnn.invert_permutation(lib.tensor([2, 0, 1])).tolist() == [1, 2, 0]


# ---- bad input -----------------------------------------------------------------------------------

def ones(lib, *shape):
    return lib.ones(*shape)


REFUSED = {
    "other features": lambda lib: lib.nn.LSTM(3, 4)(ones(lib, 5, 2, 4)),
    "one dim": lambda lib: lib.nn.LSTM(3, 4)(ones(lib, 5)),
    "a wider state": lambda lib: lib.nn.GRU(3, 4)(ones(lib, 5, 2, 3), ones(lib, 1, 2, 5)),
    "a flat state": lambda lib: lib.nn.GRU(3, 4)(ones(lib, 5, 2, 3), ones(lib, 1, 4)),
    "another batch": lambda lib: lib.nn.LSTM(3, 4)(
        ones(lib, 5, 2, 3), (ones(lib, 1, 2, 4), ones(lib, 1, 3, 4))),
    "no steps": lambda lib: lib.nn.LSTM(3, 4)(ones(lib, 0, 2, 3)),
    "another dtype": lambda lib: lib.nn.LSTM(3, 4)(ones(lib, 5, 2, 3).double()),
    "much dropout": lambda lib: lib.nn.LSTM(3, 4, dropout=1.5),
    "dropout of a bool": lambda lib: lib.nn.LSTM(3, 4, dropout=True),
    "no units": lambda lib: lib.nn.GRU(3, 0),
    "no inputs": lambda lib: lib.nn.GRU(0, 4),
    "no layers": lambda lib: lib.nn.GRU(3, 4, 0),
    "a float": lambda lib: lib.nn.GRU(3, 4.0),
    "a wide projection": lambda lib: lib.nn.LSTM(3, 4, proj_size=4),
    "a negative projection": lambda lib: lib.nn.LSTM(3, 4, proj_size=-1),
    "a projection of a GRU": lambda lib: lib.nn.GRU(3, 4, proj_size=2),
    "a nonlinearity": lambda lib: lib.nn.RNN(3, 4, nonlinearity="abs"),
    "a cell of three dims": lambda lib: lib.nn.LSTMCell(3, 4)(ones(lib, 5, 2, 3)),
    "a cell's features": lambda lib: lib.nn.LSTMCell(3, 4)(ones(lib, 2, 5)),
    "a cell's batch": lambda lib: lib.nn.GRUCell(3, 4)(ones(lib, 2, 3), ones(lib, 3, 4)),
    "a cell's state": lambda lib: lib.nn.LSTMCell(3, 4)(ones(lib, 2, 3), ones(lib, 2, 4)),
    "a cell's nonlinearity": lambda lib: lib.nn.RNNCell(3, 4, nonlinearity="x")(ones(lib, 2, 3)),
    "lengths in no order": lambda lib: lib.nn.utils.rnn.pack_padded_sequence(
        ones(lib, 3, 2), [1, 2]),
    "a length of 0": lambda lib: lib.nn.utils.rnn.pack_padded_sequence(ones(lib, 3, 2), [1, 0]),
    "few lengths": lambda lib: lib.nn.utils.rnn.pack_padded_sequence(ones(lib, 3, 2), [1]),
    "a short total": lambda lib: lib.nn.utils.rnn.pad_packed_sequence(
        lib.nn.utils.rnn.pack_sequence([ones(lib, 3)]), total_length=2),
    "nothing to pad": lambda lib: lib.nn.utils.rnn.pad_sequence([]),
    "a number to pad": lambda lib: lib.nn.utils.rnn.pad_sequence(3),
    "another side": lambda lib: lib.nn.utils.rnn.pad_sequence([ones(lib, 2)], padding_side="x"),
    "no pair": lambda lib: lib.nn.utils.rnn.PackedSequence(ones(lib, 3)),
}


@each("what", REFUSED)
def test_refused_as_by_pytorch(what):
    kinds = []
    for lib, _ in LIBRARIES:
        with pytest.raises(Exception) as caught, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            REFUSED[what](lib)
        kinds.append(caught.type)
    assert issubclass(kinds[0], kinds[1])


@pytest.mark.filterwarnings("ignore")
def test_a_warning_of_dropout_after_one_layer():
    for _, modules in LIBRARIES:
        with pytest.warns(UserWarning, match="num_layers greater than 1"):
            modules.LSTM(3, 4, dropout=0.5)


def test_parameters_begin_within_bounds():
    bound = float(np.float32(0.1))              # which is drawn, too, and above 0.1
    for lib, modules in LIBRARIES:
        lib.manual_seed(0)
        for name in ("LSTM", "GRU", "RNN", "LSTMCell"):
            weights = [p.detach().abs().max() for p in getattr(modules, name)(3, 100).parameters()]
            assert all(0.09 < float(x) <= bound for x in weights)


@each("name, options", [
    ("RNN", {"num_layers": 2, "bidirectional": True}), ("GRU", {"batch_first": True}),
    ("LSTM", {"num_layers": 2}), ("LSTM", {"proj_size": 2}), ("RNNCell", {}), ("GRUCell", {}),
    ("LSTMCell", {})])
def test_complex_weights(name, options):
    found = []
    for lib, modules in LIBRARIES:
        rng = np.random.default_rng(6)
        module = getattr(modules, name)(3, 4, dtype=lib.complex128, **options)
        with lib.no_grad():
            for _, weight in sorted(module.named_parameters()):
                drawn = 0.3 * (rng.normal(size=(2, *weight.shape)))
                weight.copy_(lib.tensor(drawn[0] + 1j * drawn[1]))
        shape = (2, 3) if "Cell" in name else (5, 2, 3)
        x = lib.tensor(rng.normal(size=shape) + 1j * rng.normal(size=shape)).requires_grad_()
        out = module(x)
        out = out[0] if isinstance(out, tuple) else out
        out.abs().square().sum().backward()
        found.append([out, x.grad, *(p.grad for _, p in sorted(module.named_parameters()))])
    assert_equal(*found, rtol=1e-10, atol=1e-12)
