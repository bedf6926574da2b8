"""Recurrent layers and cells as functions of their weights, such as `lstm` and `gru_cell`."""

import numpy as np

from tensorlib import cat, ones, relu, stack, tanh, zeros
from tensorlib._core.apply.elementwise import UnsupportedDtype
from tensorlib._core.apply.halves import rounded_once
from tensorlib._core.base.dtypes import has_gradients
from tensorlib._core.base.shape import listed
from tensorlib._core.interpreters.foreign import is_tensor
from tensorlib._core.tensor.tensor import Tensor
from tensorlib.nn.functional.dropout import dropout as dropped
from tensorlib.nn.functional.linear import linear, wide_linear
from tensorlib.nn.functional.recurrent_steps import (
    GATES, STEPS, in_numpy, recurrent, recurrent_formula,
)
from tensorlib.ops.declare import composite
from tensorlib.ops.lazy import declared
from tensorlib.ops.publish import publish

# ---- one layer in one direction, and several -----------------------------------------------------

def one_layer(kind, rows, sizes, reverse, hidden, cell, w_ih, w_hh, b_ih=None, b_hh=None,
              projection=None):
    """The hidden states of all rows, then the last state and cell: see `recurrent`."""
    if kind == "gru":                   # whose reset gate acts on what comes with the second bias
        gates, bias = linear(rows, w_ih, b_ih), b_hh
    else:
        gates, bias = linear(rows, w_ih), b_ih if b_hh is None else b_ih + b_hh
    if bias is None:
        bias = zeros(w_hh.shape[0], dtype=w_hh.dtype, device=w_hh.device)
    if cell is None:
        cell = zeros((0, 0), dtype=hidden.dtype, device=hidden.device)
    if projection is not None or gates.is_complex():
        return recurrent_formula(gates, w_hh, bias, hidden, cell, kind, sizes, reverse,
                                 projection)[:3]
    return recurrent(gates, w_hh, bias, hidden, cell, kind, sizes, reverse)[:3]


def all_layers(kind, rows, sizes, states, params, has_biases, num_layers, dropout, train,
               bidirectional):
    """The hidden states of the last layer for all rows, and the last states of all layers.

    rows are those of a packed sequence, sizes[t] of step t. states: (layers * directions, B, H),
    for an LSTM two such. params: the weights of each layer and direction in turn.
    Raises: ValueError for another number of weights.
    """
    directions = 2 if bidirectional else 1
    count, each = num_layers * directions, 4 if has_biases else 2
    projected = kind == "lstm" and len(params) == count * (each + 1)
    if len(params) != count * (each + projected):
        raise ValueError(f"{kind}: {num_layers} layers with {directions} directions take "
                         f"{count * each} weights, got {len(params)}")
    states = [x.unbind(0) for x in states]
    if any(len(x) != count for x in states):
        raise RuntimeError(f"{kind}: expected states of {count} layers and directions, got "
                           f"{[len(x) for x in states]}")
    ends = []
    for layer in range(num_layers):
        outs = []
        for direction in range(directions):
            place = layer * directions + direction
            weights = list(params[place * (each + projected):][:each + projected])
            projection = weights.pop() if projected else None
            weights += [None] * (4 - len(weights))
            out, *end = one_layer(
                kind, rows, sizes, bool(direction), states[0][place],
                states[1][place] if len(states) > 1 else None, *weights, projection)
            outs.append(out)
            ends.append(end[:len(states)])
        rows = cat(outs, 1) if bidirectional else outs[0]
        if dropout and train and layer < num_layers - 1:
            rows = dropped(rows, dropout)
    return rows, *(stack(column) for column in zip(*ends))


def over_time(kind, input, states, batch_first, *rest):
    """`all_layers` of (T, B, I), or (B, T, I) with `batch_first`. Raises: RuntimeError."""
    if input.ndim != 3:
        raise RuntimeError(f"{kind}: expected an input of 3 dims, got {input.ndim}")
    steps = input.transpose(0, 1) if batch_first else input
    count, batch, width = steps.shape
    if count == 0:
        raise RuntimeError(f"{kind}: expected a sequence of at least one step")
    rows, *ends = all_layers(kind, steps.reshape(count * batch, width), (batch,) * count, states,
                             *rest)
    out = rows.reshape(count, batch, rows.shape[1])
    return (out.transpose(0, 1) if batch_first else out), *ends


# ---- the public functions ------------------------------------------------------------------------

def several(kind, input, hx, params, has_biases, num_layers, dropout, train, bidirectional,
            batch_first):
    """A call in one of PyTorch's two forms; the other one begins `data, batch_sizes, hx`."""
    if isinstance(has_biases, (tuple, list)):
        sizes, states, params, has_biases, num_layers, dropout, train, bidirectional = (
            hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)
        states = states if isinstance(states, (tuple, list)) else (states,)
        return all_layers(kind, input, tuple(sizes.tolist()), states, params, has_biases,
                          num_layers, dropout, train, bidirectional)
    states = hx if isinstance(hx, (tuple, list)) else (hx,)
    return over_time(kind, input, states, batch_first, params, has_biases, num_layers, dropout,
                     train, bidirectional)


def lstm(input: Tensor, hx, params, has_biases, num_layers, dropout, train, bidirectional,
         batch_first=False):
    """The hidden states of the last layer for all steps, and the last (hidden, cell) of each layer.

    Also `lstm(data, batch_sizes, hx, params, ...)`, of a packed sequence, without `batch_first`.
    hx: the hidden states and the cells to begin with. params: w_ih, w_hh, b_ih, b_hh of each layer
    and direction in turn; a sixth, w_hr, projects the hidden states.
    Shapes: (T, B, I) -> (T, B, D * H), (L * D, B, H), (L * D, B, H) for D directions of L layers.
    Raises: ValueError for another number of weights, RuntimeError for sizes that do not fit.
    Source: Hochreiter and Schmidhuber, "Long Short-Term Memory", Neural Computation 9(8), 1997.
    """
    return several("lstm", input, hx, params, has_biases, num_layers, dropout, train,
                   bidirectional, batch_first)


def gru(input: Tensor, hx, params, has_biases, num_layers, dropout, train, bidirectional,
        batch_first=False):
    """The hidden states of the last layer for all steps, and the last one of each layer.

    The forms, arguments and errors are those of `lstm`, with hidden states alone.
    Source: Cho et al., "Learning Phrase Representations using RNN Encoder-Decoder", EMNLP 2014.
    """
    return several("gru", input, hx, params, has_biases, num_layers, dropout, train,
                   bidirectional, batch_first)


def rnn_tanh(input: Tensor, hx, params, has_biases, num_layers, dropout, train, bidirectional,
             batch_first=False):
    """As `gru`, with h = tanh(w_ih @ x + b_ih + w_hh @ h + b_hh)."""
    return several("rnn_tanh", input, hx, params, has_biases, num_layers, dropout, train,
                   bidirectional, batch_first)


def rnn_relu(input: Tensor, hx, params, has_biases, num_layers, dropout, train, bidirectional,
             batch_first=False):
    """As `gru`, with h = relu(w_ih @ x + b_ih + w_hh @ h + b_hh)."""
    return several("rnn_relu", input, hx, params, has_biases, num_layers, dropout, train,
                   bidirectional, batch_first)


for _layer in (lstm, gru, rnn_tanh, rnn_relu):
    publish(_layer.__name__, _layer, _layer.__doc__, method=False)


# ---- cells ---------------------------------------------------------------------------------------

def one_step(kind, input, hidden, cell, *weights):
    """The hidden state and the cell after one step of (B, I). Raises: RuntimeError."""
    if input.ndim != 2 or hidden.ndim != 2 or input.shape[0] != hidden.shape[0]:
        raise RuntimeError(f"{kind}_cell: expected an input and a hidden state of 2 dims and as "
                           f"many rows, got {tuple(input.shape)} and {tuple(hidden.shape)}")
    try:
        return step_of_any(kind, input, hidden, cell, *weights)
    except (RuntimeError, ValueError):   # with a message about a cell, if the weights are the cause
        check_cell(kind, input, hidden, *weights)
        raise


def step_of_any(kind, input, hidden, cell, *weights):
    """The same, in the way that is fastest for a kind and a dtype."""
    if GATES[kind] == 1:
        check_cell(kind, input, hidden, *weights)
        return without_gates(kind, input, hidden, *weights), None
    if kind == "gru" and input.dtype.itemsize == 2:
        if input.dtype.name == "bfloat16" and hidden.shape[1] >= MANY_UNITS:
            return gated_in_float32(input, hidden, *weights), None
        return rounded_once(one_layer)(kind, input, (input.shape[0],), False, hidden, cell,
                                       *weights)[1:]
    return one_layer(kind, input, (input.shape[0],), False, hidden, cell, *weights)[1:]


MANY_UNITS = 128            # units from which on products of pairs outweigh passes over the gates


def check_cell(kind, input, hidden, w_ih, w_hh, b_ih=None, b_hh=None):
    """Raises RuntimeError for other shapes or dtypes than a cell takes."""
    units, width = hidden.shape[1], GATES[kind] * hidden.shape[1]
    if not has_gradients(input.dtype):
        raise UnsupportedDtype(f"{kind}_cell: takes floating-point dtypes, got {input.dtype}")
    for what, x, shape in (("weights", w_ih, (width, input.shape[1])),
                           ("weights", w_hh, (width, units)), ("a bias", b_ih, (width,)),
                           ("a bias", b_hh, (width,)), ("a state", hidden, (len(input), units))):
        if x is not None and (tuple(x.shape) != shape or x.dtype != input.dtype):
            raise RuntimeError(f"{kind}_cell: expected {what} of shape {shape} and {input.dtype}, "
                               f"got {tuple(x.shape)} and {x.dtype}")


def gated_in_float32(input, hidden, w_ih, w_hh, b_ih=None, b_hh=None):
    """The hidden state after a step of a GRU of bfloat16, of which the products alone are in that:
    256 rows and units take a third of the time of a layer in float32."""
    check_cell("gru", input, hidden, w_ih, w_hh, b_ih, b_hh)
    gates, moved = wide_linear(input, w_ih), wide_linear(hidden, w_hh)
    gates = gates if b_ih is None else gates + b_ih.float()
    moved = moved if b_hh is None else moved + b_hh.float()
    return STEPS["gru"](gates, moved, hidden.float(), None)[0].to(input.dtype)


def without_gates(kind, input, hidden, w_ih, w_hh, b_ih=None, b_hh=None):
    """The hidden state after a step that has no gates: by operations of their own, which takes a
    half to two thirds of the time of a layer of one step.

    Of half types all is one product, which has the speed of these and rounds once.
    """
    if input.dtype.itemsize > 2:
        gates, moved = linear(input, w_ih, b_ih), linear(hidden, w_hh, b_hh)
        return STEPS[kind](gates, moved, hidden, None)[0]
    biases = [x.unsqueeze(1) for x in (b_ih, b_hh) if x is not None]
    rows = cat([input, hidden, ones(len(input), len(biases), dtype=input.dtype)], 1)
    return ACTIVATIONS[kind](linear(rows, cat([w_ih, w_hh, *biases], 1)))


ACTIVATIONS = {"rnn_tanh": tanh, "rnn_relu": relu}


def cell_reference(kind):
    """The reference of a cell without cell state."""
    def reference(x, hidden, w_ih, w_hh, b_ih, b_hh):
        return in_numpy(x @ w_ih.T + b_ih, w_hh, b_hh, hidden, np.zeros((0, 0)), kind, (len(x),),
                        False)[1]
    return reference


def cell_samples(kind):
    """Samples of a cell of one unit."""
    def generate(rng):
        width = GATES[kind]
        yield tuple(rng.uniform(-1, 1, shape) for shape in (
            (2, 2), (2, 1), (width, 2), (width, 1), (width,), (width,))), {}
    return generate


def cell(kind):
    """Declares the function of a cell without cell state."""
    return composite(tensors=("input", "hx", "w_ih", "w_hh", "b_ih", "b_hh"), method=False,
                     takes="floating", complex=kind != "rnn_relu", tolerance="product",
                     rounds_once=False,
                     reference=cell_reference(kind), samples=cell_samples(kind))


def lstm_cell(input: Tensor, hx, w_ih: Tensor, w_hh: Tensor, b_ih=None, b_hh=None):
    """The hidden state and the cell of an LSTM after one step; hx: those before it.

    Shapes: (B, I), ((B, H), (B, H)), (4 * H, I), (4 * H, H), (4 * H), (4 * H) -> (B, H), (B, H).
    Raises: RuntimeError for sizes that do not fit, TypeError for an `hx` that is not a pair.
    """
    hidden, cell = pair_of("lstm_cell", hx)
    return one_step("lstm", input, hidden, cell, w_ih, w_hh, b_ih, b_hh)


def pair_of(name, hx):
    """A hidden state and a cell. Raises: TypeError."""
    hx = listed(hx) if isinstance(hx, (tuple, list)) else ()
    if len(hx) != 2 or not all(map(is_tensor, hx)):
        raise TypeError(f"{name}: hx must be a pair of Tensors, the hidden state and the cell")
    return hx


publish("lstm_cell", lstm_cell, lstm_cell.__doc__, method=False)


@cell("gru")
def gru_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih=None, b_hh=None):
    """The hidden state of a GRU after one step; hx: that before it.

    Shapes: (B, I), (B, H), (3 * H, I), (3 * H, H), (3 * H), (3 * H) -> (B, H).
    Raises: RuntimeError for sizes that do not fit.
    """
    return one_step("gru", input, hx, None, w_ih, w_hh, b_ih, b_hh)[0]


@cell("rnn_tanh")
def rnn_tanh_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih=None, b_hh=None):
    """tanh(w_ih @ input + b_ih + w_hh @ hx + b_hh), of each row.

    Shapes: (B, I), (B, H), (H, I), (H, H), (H), (H) -> (B, H).
    Raises: RuntimeError for sizes that do not fit.
    """
    return one_step("rnn_tanh", input, hx, None, w_ih, w_hh, b_ih, b_hh)[0]


@cell("rnn_relu")
def rnn_relu_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih=None, b_hh=None):
    """relu(w_ih @ input + b_ih + w_hh @ hx + b_hh), of each row; shapes as of `rnn_tanh_cell`."""
    return one_step("rnn_relu", input, hx, None, w_ih, w_hh, b_ih, b_hh)[0]


declared(__name__)
