"""Recurrent layers and cells: what each of them refuses, and what a single example gives."""

import re
import warnings
from contextlib import contextmanager

import pytest
from cases import each

import tensorlib as tl
from tensorlib import nn
from tensorlib.testing import assert_close

LAYERS, CELLS = ("LSTM", "GRU", "RNN"), ("LSTMCell", "GRUCell", "RNNCell")


def states(name, *shape):
    """The states of a layer or cell, all of one shape."""
    return (tl.ones(shape), tl.ones(shape)) if name.startswith("LSTM") else tl.ones(shape)


@contextmanager
def refused(error, text):
    """Expects an error of this text, without the note that names the module."""
    with pytest.raises(error) as caught:
        yield
    assert re.search(text, str(caught.value)), caught.value


def flat(found):
    return found if isinstance(found, tuple) else (found,)


@each("name", LAYERS)
@each("options, error, text", [
    ({"input_size": 2.0}, TypeError, "^input_size should be of type int, got: float$"),
    ({"hidden_size": "4"}, TypeError, "^hidden_size should be of type int, got: str$"),
    ({"num_layers": None}, TypeError, "^num_layers should be of type int, got: NoneType$"),
    ({"input_size": 0}, ValueError, "^input_size must be greater than zero$"),
    ({"hidden_size": 0}, ValueError, "^hidden_size must be greater than zero$"),
    ({"num_layers": -1}, ValueError, "^num_layers must be greater than zero$"),
    ({"dropout": 1.5}, ValueError, r"^dropout should be a number in range \[0, 1\].*got 1.5$"),
    ({"dropout": -0.1}, ValueError, r"^dropout should be a number in range \[0, 1\].*got -0.1$"),
    ({"dropout": True}, ValueError, r"^dropout should be a number in range \[0, 1\].*got True$"),
    ({"dropout": "a"}, ValueError, r"^dropout should be a number in range \[0, 1\].*got 'a'$"),
    ({"proj_size": -1}, ValueError, "^proj_size should be a positive integer or zero.*got -1$"),
    ({"proj_size": 2.5}, TypeError, "float"),
    ({"bias": "True"}, TypeError, "^bias should be of type bool, got: str$"),
    ({"batch_first": 1}, TypeError, "^batch_first should be of type bool, got: int$"),
])
def test_options_that_no_layer_takes(name, options, error, text):
    with pytest.raises(error, match=text):
        getattr(nn, name)(**{"input_size": 3, "hidden_size": 4, **options})


@each("make, error, text", [
    (lambda: nn.RNNBase("RNN", 3, 4), ValueError, "^Unrecognized RNN mode: RNN$"),
    (lambda: nn.RNN(3, 4, nonlinearity="Tanh"), ValueError,
     "^Unknown nonlinearity 'Tanh'. Select from 'tanh' or 'relu'.$"),
    (lambda: nn.GRU(3, 4, proj_size=2), ValueError, "only supported for LSTM, not RNN or GRU$"),
    (lambda: nn.RNN(3, 4, proj_size=2), ValueError, "only supported for LSTM, not RNN or GRU$"),
    (lambda: nn.LSTM(3, 4, proj_size=4), ValueError, "^proj_size has to be smaller than hidden"),
    (lambda: nn.LSTMCell(3, 0), ValueError, "^hidden_size must be greater than zero$"),
    (lambda: nn.GRUCell(3, 2.0), TypeError, "^hidden_size should be of type int, got: float$"),
    (lambda: nn.RNNCell(3, 4, nonlinearity="Relu")(tl.ones(3)), RuntimeError,
     "^RNNCell: Unknown nonlinearity: Relu$"),
    (lambda: nn.LSTMCell(3, 4)(tl.ones(3), tl.ones(4)), TypeError,
     r"^LSTMCell: hx must be a pair of Tensors \(h, c\), not Tensor$"),
    (lambda: nn.LSTMCell(3, 4)(tl.ones(3), (tl.ones(4),)), TypeError,
     r"^LSTMCell: hx must be a pair of Tensors \(h, c\), not tuple$"),
    (lambda: nn.LSTM(3, 4)(tl.ones(2, 3), (tl.ones(1, 4),)), RuntimeError,
     "^LSTM: expected 2 states, got 1$"),
    (lambda: nn.LSTM(3, 4)(tl.ones(2, 3), (tl.ones(1, 4),) * 3), RuntimeError,
     "^LSTM: expected 2 states, got 3$"),
    (lambda: nn.LSTM(3, 4, proj_size=2)(tl.ones(5, 1, 3), states("LSTM", 1, 1, 4)), RuntimeError,
     r"^LSTM: Expected hidden\[0\] size \(1, 1, 2\), got \[1, 1, 4\]$"),
    (lambda: nn.LSTM(3, 4, proj_size=2)(tl.ones(5, 1, 3), states("LSTM", 1, 1, 2)), RuntimeError,
     r"^LSTM: Expected hidden\[1\] size \(1, 1, 4\), got \[1, 1, 2\]$"),
])
def test_what_some_refuse(make, error, text):
    with refused(error, text):
        make()


def test_the_bounds_are_taken():
    assert nn.LSTM(1, 2, 1, proj_size=1)(tl.ones(5, 1))[0].shape == (5, 1)
    assert all(nn.GRU(1, 1, 2, dropout=share).dropout == share for share in (0, 1, 0.5))


@pytest.mark.parametrize("name", LAYERS)
def test_dropout_after_the_only_layer_is_warned_of(name):
    with pytest.warns(UserWarning, match="got dropout=0.5 and num_layers=1$") as found:
        getattr(nn, name)(3, 4, dropout=0.5)
    assert len(found) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        getattr(nn, name)(3, 4, 2, dropout=0.5)


@each("name", LAYERS)
@each("x, hx, error, text", [
    ((3,), None, ValueError, "Expected input to be 2D or 3D, got 1D instead$"),
    ((5, 2, 2, 3), None, ValueError, "Expected input to be 2D or 3D, got 4D instead$"),
    ((5, 2, 4), None, RuntimeError,
     r"input.size\(-1\) must be equal to input_size. Expected 3, got 4$"),
    ((5, 2, 3), (2, 4), RuntimeError, "For batched 3-D input, hx should also be 3-D but got 2-D"),
    ((5, 3), (1, 1, 4), RuntimeError,
     "For unbatched 2-D input, hx should also be 2-D but got 3-D"),
    ((5, 2, 3), (1, 3, 4), RuntimeError,
     r"Expected hidden(\[0\])? size \(1, 2, 4\), got \[1, 3, 4\]$"),
    ((5, 2, 3), (2, 2, 4), RuntimeError,
     r"Expected hidden(\[0\])? size \(1, 2, 4\), got \[2, 2, 4\]$"),
    ((5, 3), (1, 3), RuntimeError, r"Expected hidden(\[0\])? size \(1, 1, 4\), got \[1, 1, 3\]$"),
], ids=str)
def test_input_that_no_layer_takes(name, x, hx, error, text):
    with refused(error, f"^{name}: {text}"):
        getattr(nn, name)(3, 4)(tl.ones(x), hx and states(name, *hx))


@pytest.mark.parametrize("name", LAYERS)
def test_input_of_another_dtype_than_the_weights(name):
    """Packed or not; PyTorch raises the same error."""
    packed = nn.utils.rnn.pack_sequence([tl.ones(5, 3, dtype=tl.float64)])
    for x in (tl.ones(5, 2, 3, dtype=tl.float64), tl.ones(5, 3, dtype=tl.float64), packed):
        with refused(ValueError, (
                rf"^{name}: RNN input dtype \(tensorlib.float64\) does not match weight dtype "
                r"\(tensorlib.float32\). Convert input: input.to\(tensorlib.float32\), or "
                r"convert model: model.to\(tensorlib.float64\)$")):
            getattr(nn, name)(3, 4)(x)
        out, _ = getattr(nn, name)(3, 4).to(tl.float64)(x)
        assert (out.data if x is packed else out).dtype == tl.float64
    with pytest.raises(ValueError, match=r"dtype \(tensorlib.int64\) does not match"):
        getattr(nn, name)(3, 4)(tl.ones(5, 3, dtype=tl.int64))


@pytest.mark.parametrize("name", LAYERS)
def test_a_packed_sequence_holds_vectors(name):
    packed = nn.utils.rnn.pack_sequence([tl.ones(2, 2, 3), tl.ones(1, 2, 3)])
    with refused(ValueError, f"^{name}: Expected input to be 2D, got 3D instead$"):
        getattr(nn, name)(3, 4)(packed)


@each("name", CELLS)
@each("x, hx, error, text", [
    ((1, 2, 3), None, ValueError, "Expected input to be 1D or 2D, got 3D instead$"),
    ((), None, ValueError, "Expected input to be 1D or 2D, got 0D instead$"),
    ((2, 4), None, RuntimeError, "input has inconsistent input_size: got 4 expected 3$"),
    ((2, 3), (2, 3), RuntimeError, r"expected hidden0 of shape \(2, 4\) for an input of shape "
     r"\(2, 3\), got \(2, 3\)$"),
    ((2, 3), (3, 4), RuntimeError, r"expected hidden0 of shape \(2, 4\)"),
    ((2, 3), (1, 2, 4), ValueError, "expected hidden0 to be 1D or 2D, got 3D instead$"),
    ((3,), (1, 4), RuntimeError, r"expected hidden0 of shape \(4,\) for an input of shape \(3,\)"),
], ids=str)
def test_input_that_no_cell_takes(name, x, hx, error, text):
    with refused(error, f"^{name}: {text}"):
        getattr(nn, name)(3, 4)(tl.ones(x), None if hx is None else states(name, *hx))


def test_the_cell_of_an_lstm_has_the_shape_of_its_state():
    with pytest.raises(RuntimeError, match=r"^LSTMCell: expected hidden1 of shape \(4,\)"):
        nn.LSTMCell(3, 4)(tl.ones(3), (tl.ones(4), tl.ones(3)))


@each("bias", [True, False])
@each("name, options", [
    *((name, {}) for name in CELLS), ("RNNCell", {"nonlinearity": "relu"})], ids=str)
def test_one_example_is_a_batch_of_one(name, options, bias):
    cell, x = getattr(nn, name)(3, 4, bias=bias, **options), tl.randn(2, 3)
    hx = flat(tl.randn(2, 2, 4).unbind() if name == "LSTMCell" else tl.randn(2, 4))
    together = flat(cell(x, hx if len(hx) > 1 else hx[0]))
    usual = flat(cell(x))
    for i, row in enumerate(x):
        alone = tuple(h[i] for h in hx)
        found = flat(cell(row, alone if len(hx) > 1 else alone[0]))
        assert len(found) == len(hx) and all(state.shape == (4,) for state in found)
        for state, wanted in zip(found, together):
            assert_close(state, wanted[i])
        for state, wanted in zip(flat(cell(row)), usual):
            assert_close(state, wanted[i])
    assert len(list(cell.parameters())) == (4 if bias else 2)


@pytest.mark.parametrize("name", LAYERS)
def test_one_sequence_is_a_batch_of_one(name):
    layer, x = getattr(nn, name)(3, 4, 2, bidirectional=True), tl.randn(5, 3)
    hx = tuple(tl.randn(4, 4) for _ in flat(states(name, 1)))
    together = tuple(state.unsqueeze(1) for state in hx)
    for given, batch in ((None, None), (hx, together)):
        given, batch = (found and (found if len(found) > 1 else found[0])
                        for found in (given, batch))
        out, last = layer(x, given)
        wanted, ends = layer(x.unsqueeze(1), batch)
        assert_close(out, wanted.squeeze(1))
        for state, end in zip(flat(last), flat(ends), strict=True):
            assert_close(state, end.squeeze(1))
