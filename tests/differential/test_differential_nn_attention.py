"""Attention of several heads and transformers beside PyTorch's."""

import itertools

import numpy as np
import pytest
from cases import each
from test_differential_nn_recurrent import arrays, assert_same_runs, assert_equal, run

import tensorlib as tl
from tensorlib import nn

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.filterwarnings("ignore")


def pair(name, *args, **options):
    """The module in both libraries, in float64, with the parameters that PyTorch drew."""
    theirs = getattr(torch.nn, name)(*args, dtype=torch.float64, **options)
    return converted(theirs, getattr(nn, name)(*args, dtype=tl.float64, **options)), theirs


def converted(theirs, ours):
    states = {key: tl.tensor(value.numpy()) for key, value in theirs.state_dict().items()}
    assert list(ours.state_dict()) == list(states)
    ours.load_state_dict(states)
    assert repr(ours) == repr(theirs)
    return ours


MADE = [{}, {"bias": False}, {"batch_first": True}, {"add_bias_kv": True, "add_zero_attn": True},
        {"kdim": 3, "vdim": 5}, {"kdim": 3, "vdim": 5, "bias": False, "add_bias_kv": True}]
CALLED = ["plain", "no weights", "each head", "masked", "hidden", "per head", "padded",
          "padded more", "causal", "all masks"]
L, S, B, E, H = 3, 5, 2, 4, 2       # queries, keys, batch, embedding, heads


def call_of(how, keys):
    """A call of the module on a query, keys and values, with the masks that a name stands for."""
    rng = np.random.default_rng(1)
    seen = rng.normal(size=(L, keys))
    padding = np.zeros((B, keys), bool)
    padding[1, -1:] = True
    given = {"plain": {}, "no weights": {"need_weights": False},
             "each head": {"average_attn_weights": False},
             "masked": {"attn_mask": seen}, "hidden": {"attn_mask": seen > 0.8},
             "per head": {"attn_mask": rng.normal(size=(B * H, L, keys)), "need_weights": False},
             "padded": {"key_padding_mask": padding},
             "padded more": {"key_padding_mask": padding * -2.0, "need_weights": False},
             "causal": {"attn_mask": np.triu(np.ones((L, keys), bool), 1), "is_causal": True,
                        "need_weights": False},
             "all masks": {"attn_mask": seen > 0.8, "key_padding_mask": padding}}[how]

    def call(lib, module, q, k, v):
        options = {key: lib.tensor(x) if isinstance(x, np.ndarray) else x
                   for key, x in given.items()}
        out, weights = module(q, k, v, **options)
        return (out,) if weights is None else (out, weights)
    return call


# With the hint that a mask is causal, PyTorch forgets that keys were added, which all may look at.
BOTH = [(made, how) for made, how in itertools.product(MADE, CALLED)
        if how != "causal" or "add_bias_kv" not in made]


@each("made, how", BOTH, ids=repr)
def test_attention(made, how):
    sizes = E, made.get("kdim", E), made.get("vdim", E)
    q, k, v = arrays(2, *((n, B, size) for n, size in zip((L, S, S), sizes)))
    if made.get("batch_first"):
        q, k, v = (x.swapaxes(0, 1) for x in (q, k, v))
    assert_same_runs(*pair("MultiheadAttention", E, H, **made), call_of(how, S), q, k, v)


@each("how", CALLED)
def test_attention_to_itself(how):
    """One tensor as query, key and value, and one as key and value."""
    q, k = arrays(3, (L, B, E), (S, B, E))
    call, other = call_of(how, L), call_of(how, S)
    assert_same_runs(*pair("MultiheadAttention", E, H), lambda lib, m, x: call(lib, m, x, x, x), q)
    assert_same_runs(*pair("MultiheadAttention", E, H), lambda lib, m, x, y: other(lib, m, x, y, y),
                     q, k)


def test_attention_without_a_batch():
    q, k = arrays(4, (L, E), (S, E))

    def call(lib, module, q, k):
        return module(q, k, k, key_padding_mask=lib.tensor([False, True, False, False, True]))
    assert_same_runs(*pair("MultiheadAttention", E, H), call, q, k)


def test_static_keys_and_values():
    given = arrays(5, (L, B, E), (B * H, S, E // H), (B * H, S, E // H), (3 * E, E), (E, E))

    def call(lib, q, k, v, first, last):
        return lib.nn.functional.multi_head_attention_forward(
            q, q, q, E, H, first, None, None, None, False, 0.0, last, None, static_k=k, static_v=v)
    found, grads = run(tl, lambda *xs: call(tl, *xs), *given)
    wanted, theirs = run(torch, lambda *xs: call(torch, *xs), *given)
    assert_equal(found, wanted)
    assert_equal(grads, theirs)


# ---- transformers --------------------------------------------------------------------------------

LAYERS = [{}, {"norm_first": True}, {"activation": "gelu", "bias": False}, {"batch_first": True}]


def of_layer(options):
    return {"dim_feedforward": 6, "dropout": 0.0, **options}


@each("options", LAYERS, ids=repr)
def test_layers(options):
    x, memory = arrays(6, (L, B, E), (S, B, E))
    if options.get("batch_first"):
        x, memory = x.swapaxes(0, 1), memory.swapaxes(0, 1)
    padding = [[False] * S, [False] * (S - 1) + [True]]

    def encode(lib, module, x):
        mask = lib.nn.Transformer.generate_square_subsequent_mask(L, dtype=lib.float64)
        hidden = lib.tensor([[False] * L, [True] + [False] * (L - 1)])
        return (module(x), module(x, mask, is_causal=True), module(x, mask),
                module(x, src_key_padding_mask=hidden))

    def decode(lib, module, x, memory):
        mask = lib.nn.Transformer.generate_square_subsequent_mask(L, dtype=lib.float64)
        return (module(x, memory), module(x, memory, mask, tgt_is_causal=True),
                module(x, memory, mask, memory_key_padding_mask=lib.tensor(padding)))
    assert_same_runs(*pair("TransformerEncoderLayer", E, H, **of_layer(options)), encode, x)
    assert_same_runs(*pair("TransformerDecoderLayer", E, H, **of_layer(options)), decode, x, memory)


@each("options", LAYERS, ids=repr)
def test_transformers(options):
    source, target = arrays(7, (S, B, E), (L, B, E))
    if options.get("batch_first"):
        source, target = source.swapaxes(0, 1), target.swapaxes(0, 1)

    def call(lib, module, source, target):
        mask = lib.nn.Transformer.generate_square_subsequent_mask(L, dtype=lib.float64)
        hidden = lib.tensor([[False] * S, [False] * (S - 1) + [True]])
        return (module(source, target),
                module(source, target, tgt_mask=mask, src_key_padding_mask=hidden,
                       memory_key_padding_mask=hidden))
    assert_same_runs(*pair("Transformer", E, H, 2, 2, **of_layer(options)), call, source, target)
    alone = [x[0] if options.get("batch_first") else x[:, 0] for x in (source, target)]
    assert_same_runs(*pair("Transformer", E, H, 1, 1, **of_layer(options)),
                     lambda lib, module, *xs: module(*xs), *alone)


def test_an_encoder_and_a_decoder():
    x, memory = arrays(8, (L, B, E), (S, B, E))
    for kind, given in (("Encoder", (x,)), ("Decoder", (x, memory))):
        made = []
        for lib in (tl, torch):
            layer = getattr(lib.nn, f"Transformer{kind}Layer")(E, H, 6, 0.0, dtype=lib.float64)
            made.append(getattr(lib.nn, f"Transformer{kind}")(
                layer, 2, lib.nn.LayerNorm(E, dtype=lib.float64)))
        ours, theirs = made
        converted(theirs, ours)
        assert_same_runs(ours, theirs, lambda lib, module, *xs: module(*xs), *given)


# ---- bad input -----------------------------------------------------------------------------------

def attend(lib, q=(L, B, E), k=(L, B, E), v=None, **options):
    return lib.nn.MultiheadAttention(E, H)(lib.ones(*q), lib.ones(*k), lib.ones(*(v or k)),
                                           **options)


REFUSED = {
    "heads that do not divide": lambda lib: lib.nn.MultiheadAttention(4, 3),
    "no size": lambda lib: lib.nn.MultiheadAttention(0, 3),
    "another size": lambda lib: attend(lib, (L, B, 5)),
    "one dim": lambda lib: attend(lib, (4,)),
    "dims that differ": lambda lib: attend(lib, k=(L, E)),
    "values of other lengths": lambda lib: attend(lib, v=(S, B, E)),
    "a hint alone": lambda lib: attend(lib, is_causal=True),
    "a small mask": lambda lib: attend(lib, attn_mask=lib.ones(2, 2)),
    "a mask of few heads": lambda lib: attend(lib, attn_mask=lib.ones(2, 2, 2)),
    "a flat mask": lambda lib: attend(lib, attn_mask=lib.ones(2)),
    "a mask of integers": lambda lib: attend(lib, attn_mask=lib.ones(L, L, dtype=lib.int64)),
    "padding of another batch": lambda lib: attend(lib, key_padding_mask=lib.ones(3, L)),
    "padding of integers": lambda lib: attend(
        lib, key_padding_mask=lib.ones(B, L, dtype=lib.int64)),
    "an activation": lambda lib: lib.nn.TransformerEncoderLayer(4, 2, activation="abc"),
    "batches that differ": lambda lib: lib.nn.Transformer(4, 2, 1, 1, 8)(
        lib.ones(3, 2, 4), lib.ones(3, 3, 4)),
    "another number of features": lambda lib: lib.nn.Transformer(4, 2, 1, 1, 8)(
        lib.ones(3, 2, 5), lib.ones(3, 2, 5)),
    "four dims": lambda lib: lib.nn.TransformerEncoderLayer(4, 2)(lib.ones(2, 2, 2, 2)),
}


@each("what", REFUSED)
def test_refused_as_by_pytorch(what):
    kinds = []
    for lib in (tl, torch):
        with pytest.raises(Exception) as caught:
            REFUSED[what](lib)
        kinds.append(caught.type)
    assert issubclass(kinds[0], kinds[1])
